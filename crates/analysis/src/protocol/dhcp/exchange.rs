//! Messages that belong together: a row of the log, as Zeek's `base/protocols/dhcp/main.zeek` makes it.

use core::net::{IpAddr, Ipv4Addr};

use super::log::Dhcp;
use super::message::DhcpMessage;
use crate::correlator::exchanges::{ExchangeProgress, MessageExchange, learn};
use crate::key::Endpoint;
use crate::protocol::Role;
use crate::record::Connection;

/// The messages with one transaction identifier.
#[derive(Debug)]
pub(super) struct DhcpExchange {
    course: ExchangeProgress,
    /// The row of the log, as far as it is known. Its hardware address is that by the client's identifier or
    /// the server's word.
    row: Dhcp,
    /// The hardware address by the client's field, which counts least.
    client_mac: Option<String>,
}

impl MessageExchange for DhcpExchange {
    /// As in Zeek, the transaction identifier alone.
    type Name = u32;
    type Message = DhcpMessage;
    type Row = Dhcp;

    const PLURAL: &'static str = "exchanges of DHCP at a time";

    fn name_of(message: &DhcpMessage) -> u32 {
        message.xid
    }

    fn begun(message: &DhcpMessage) -> Self {
        let course = ExchangeProgress::begun(message.time);
        let row = Dhcp {
            ts: course.start(),
            uids: Vec::new(),
            client_addr: None,
            server_addr: None,
            mac: None,
            host_name: None,
            client_fqdn: None,
            domain: None,
            requested_addr: None,
            assigned_addr: None,
            lease_time: None,
            client_message: None,
            server_message: None,
            msg_types: Vec::new(),
            duration: course.duration(),
        };
        Self { course, row, client_mac: None }
    }

    fn take(&mut self, connection: &Connection, message: &DhcpMessage) {
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

    fn course(&self) -> &ExchangeProgress {
        &self.course
    }

    fn heap_bytes(&self) -> usize {
        let row = &self.row;
        let strings = [&row.mac, &self.client_mac].into_iter().flatten();
        let texts = [&row.host_name, &row.client_fqdn, &row.domain];
        let texts = texts.into_iter().chain([&row.client_message, &row.server_message]);
        self.course.heap_bytes()
            + strings.map(String::capacity).sum::<usize>()
            + texts.flatten().map(|text| text.len()).sum::<usize>()
    }

    fn row(self) -> Dhcp {
        let Self { course, mut row, client_mac } = self;
        row.mac = row.mac.or(client_mac);
        row.msg_types = course.kinds(&KINDS);
        row.duration = course.duration();
        row.uids = course.into_uids();
        row
    }
}

impl DhcpExchange {
    fn of_client(&mut self, sender: Endpoint, message: &DhcpMessage) {
        let is_host = ![Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST]
            .map(|address| IpAddr::from(address).into())
            .contains(&sender.address);
        if !message.is_relayed && is_host {
            self.row.client_addr = Some(sender.address);
        }
        learn(&mut self.row.client_message, &message.text);
        learn(&mut self.row.host_name, &message.host_name);
        learn(&mut self.row.client_fqdn, &message.fqdn);
        learn(&mut self.row.requested_addr, &message.requested);
        if message.identifier.is_some() {
            learn(&mut self.row.mac, &message.identifier);
        } else {
            learn(&mut self.client_mac, &message.hardware);
        }
    }

    fn of_server(&mut self, sender: Endpoint, message: &DhcpMessage) {
        if message.assigned.is_some() {
            self.row.server_addr = Some(sender.address);
            self.row.assigned_addr = message.assigned;
        }
        if self.row.mac.is_none() {
            learn(&mut self.row.mac, &message.hardware);
        }
        if self.row.client_addr.is_none() {
            self.row.client_addr = self.row.assigned_addr;
        }
        learn(&mut self.row.server_message, &message.text);
        learn(&mut self.row.domain, &message.domain);
        learn(&mut self.row.lease_time, &message.lease);
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
