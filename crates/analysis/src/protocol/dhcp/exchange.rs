//! Messages that belong together: a row of the log, as Zeek's `base/protocols/dhcp/main.zeek` makes it.

use core::net::{IpAddr, Ipv4Addr};

use netsniff_packet::Address;

use super::message::Message;
use crate::correlator::exchanges::{Course, Exchange, learn};
use crate::correlator::{Content, Joined};
use crate::flow::key::Endpoint;
use crate::log::Dhcp;
use crate::protocol::{Connection, Role};
use crate::record::Interval;

/// The messages with one transaction identifier.
#[derive(Debug)]
pub struct DhcpExchange {
    course: Course,
    client: Option<Address>,
    server: Option<Address>,
    /// The hardware address by the client's identifier or the server's word, and by the client's
    /// field, which counts least.
    mac: Option<String>,
    client_mac: Option<String>,
    host_name: Option<Box<[u8]>>,
    fqdn: Option<Box<[u8]>>,
    domain: Option<Box<[u8]>>,
    requested: Option<Address>,
    assigned: Option<Address>,
    lease: Option<Interval>,
    client_message: Option<Box<[u8]>>,
    server_message: Option<Box<[u8]>>,
}

impl Exchange for DhcpExchange {
    /// As in Zeek, the transaction identifier alone.
    type Name = u32;
    type Message = Message;

    fn message_of(content: &Content) -> Option<&Message> {
        if let Content::Dhcp(message) = content { Some(message) } else { None }
    }

    fn name_of(message: &Message) -> u32 {
        message.xid
    }

    fn begun(message: &Message) -> Self {
        Self {
            course: Course::begun(message.time),
            client: None,
            server: None,
            mac: None,
            client_mac: None,
            host_name: None,
            fqdn: None,
            domain: None,
            requested: None,
            assigned: None,
            lease: None,
            client_message: None,
            server_message: None,
        }
    }

    fn take(&mut self, connection: &Connection, message: &Message) {
        self.course.note(message.time, connection.uid, message.kind);
        let sender = match message.from {
            Role::Originator => connection.originator,
            Role::Responder => connection.responder,
        };
        if message.is_reply {
            self.of_server(sender, message);
        } else {
            self.of_client(sender, message);
        }
    }

    fn course(&self) -> &Course {
        &self.course
    }

    fn joined(self) -> Joined {
        Joined::Dhcp(Box::new(self))
    }
}

impl DhcpExchange {
    fn of_client(&mut self, sender: Endpoint, message: &Message) {
        let is_host = ![Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST]
            .map(|address| IpAddr::from(address).into())
            .contains(&sender.address);
        if !message.is_relayed && is_host {
            self.client = Some(sender.address);
        }
        learn(&mut self.client_message, &message.text);
        learn(&mut self.host_name, &message.host_name);
        learn(&mut self.fqdn, &message.fqdn);
        learn(&mut self.requested, &message.requested);
        if message.identifier.is_some() {
            learn(&mut self.mac, &message.identifier);
        } else {
            learn(&mut self.client_mac, &message.hardware);
        }
    }

    fn of_server(&mut self, sender: Endpoint, message: &Message) {
        if message.assigned.is_some() {
            self.server = Some(sender.address);
            self.assigned = message.assigned;
        }
        if self.mac.is_none() {
            learn(&mut self.mac, &message.hardware);
        }
        if self.client.is_none() {
            self.client = self.assigned;
        }
        learn(&mut self.server_message, &message.text);
        learn(&mut self.domain, &message.domain);
        learn(&mut self.lease, &message.lease);
    }

    /// Hands the row of the log to `take`.
    pub fn report<T>(&self, take: impl FnOnce(&Dhcp<'_>) -> T) -> T {
        take(&Dhcp {
            ts: self.course.start(),
            uids: self.course.uids(),
            client_addr: self.client,
            server_addr: self.server,
            mac: self.mac.as_deref().or(self.client_mac.as_deref()),
            host_name: self.host_name.as_deref(),
            client_fqdn: self.fqdn.as_deref(),
            domain: self.domain.as_deref(),
            requested_addr: self.requested,
            assigned_addr: self.assigned,
            lease_time: self.lease,
            client_message: self.client_message.as_deref(),
            server_message: self.server_message.as_deref(),
            msg_types: &self.course.kinds(&KINDS),
            duration: self.course.duration(),
        })
    }
}

/// Zeek's names of the types of messages: RFC 2132, RFC 3203, RFC 4388, RFC 6926 and RFC 7724.
const KINDS: [&str; 18] = [
    "DISCOVER",
    "OFFER",
    "REQUEST",
    "DECLINE",
    "ACK",
    "NAK",
    "RELEASE",
    "INFORM",
    "FORCERENEW",
    "LEASEQUERY",
    "LEASEUNASSIGNED",
    "LEASEUNKNOWN",
    "LEASEACTIVE",
    "BULKLEASEQUERY",
    "LEASEQUERYDONE",
    "ACTIVELEASEQUERY",
    "LEASEQUERYSTATUS",
    "TLS",
];
