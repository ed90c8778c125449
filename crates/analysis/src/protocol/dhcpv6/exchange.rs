//! Messages that belong together: a row of the log.

use netsniff_packet::Address;

use super::log::Dhcpv6;
use super::message::{Dhcpv6Message, Lease, Status};
use crate::correlator::exchanges::{ExchangeProgress, MessageExchange, learn};
use crate::protocol::Role;
use crate::protocol::dhcp::colons;
use crate::record::{Connection, Interval, UnsetIfEmpty};

/// The messages with one transaction identifier of one client.
#[derive(Debug)]
pub(super) struct Dhcpv6Exchange {
    course: ExchangeProgress,
    client: Option<Address>,
    server: Option<Address>,
    client_duid: Option<Box<[u8]>>,
    server_duid: Option<Box<[u8]>>,
    /// The name that the client gave, and the one that the server gave.
    names: [Option<Box<[u8]>>; 2],
    requested: Vec<Lease<Address>>,
    requested_prefixes: Vec<Lease<String>>,
    assigned: Vec<Lease<Address>>,
    assigned_prefixes: Vec<Lease<String>>,
    status: Option<Status>,
    relays: u64,
}

impl MessageExchange for Dhcpv6Exchange {
    /// The client where it tells its DUID, and the transaction identifier.
    type Name = (Option<Box<[u8]>>, u32);
    type Message = Dhcpv6Message;
    type Row = Dhcpv6;

    const PLURAL: &'static str = "exchanges of DHCPv6 at a time";

    fn name_of(message: &Dhcpv6Message) -> Self::Name {
        (message.client.clone(), message.xid)
    }

    fn begun(message: &Dhcpv6Message) -> Self {
        Self {
            course: ExchangeProgress::begun(message.time),
            client: None,
            server: None,
            client_duid: None,
            server_duid: None,
            names: [None, None],
            requested: Vec::new(),
            requested_prefixes: Vec::new(),
            assigned: Vec::new(),
            assigned_prefixes: Vec::new(),
            status: None,
            relays: 0,
        }
    }

    fn take(&mut self, connection: &Connection, message: &Dhcpv6Message) {
        self.course.note(message.time, connection.uid, message.kind);
        self.relays = self.relays.max(message.relays);
        learn(&mut self.client_duid, &message.client);
        learn(&mut self.server_duid, &message.server);
        let sender = match message.from {
            Role::Originator => connection.originator.address,
            Role::Responder => connection.responder.address,
        };
        let is_servers = is_servers(message.kind);
        learn(&mut self.names[usize::from(is_servers)], &message.fqdn);
        let (addresses, prefixes) = if is_servers {
            self.server = Some(sender);
            self.client = self.client.or(message.peer);
            learn(&mut self.status, &message.status);
            (&mut self.assigned, &mut self.assigned_prefixes)
        } else {
            self.client = Some(message.peer.unwrap_or(sender));
            (&mut self.requested, &mut self.requested_prefixes)
        };
        if !message.addresses.is_empty() {
            addresses.clone_from(&message.addresses);
        }
        if !message.prefixes.is_empty() {
            prefixes.clone_from(&message.prefixes);
        }
    }

    fn course(&self) -> &ExchangeProgress {
        &self.course
    }

    fn heap_bytes(&self) -> usize {
        // The client's identifier is in the name, too, and that at two places.
        let client = self.client_duid.as_ref().map_or(0, |duid| 3 * duid.len());
        let [of_client, of_server] = &self.names;
        let texts = [&self.server_duid, of_client, of_server].into_iter().flatten();
        let status = self.status.as_ref().map_or(0, |status| status.text.len());
        let addresses = self.requested.capacity() + self.assigned.capacity();
        let prefixes = [&self.requested_prefixes, &self.assigned_prefixes];
        let prefix = |lease: &Lease<String>| size_of::<Lease<String>>() + lease.what.capacity();
        self.course.heap_bytes()
            + client
            + texts.map(|text| text.len()).sum::<usize>()
            + status
            + addresses * size_of::<Lease<Address>>()
            + prefixes.into_iter().flatten().map(prefix).sum::<usize>()
    }

    fn row(self) -> Dhcpv6 {
        let [client_duid, server_duid] =
            [&self.client_duid, &self.server_duid].map(|duid| duid.as_deref().map(digits));
        let [preferred, valid] = lifetimes(&self.assigned);
        let [prefix_preferred, prefix_valid] = lifetimes(&self.assigned_prefixes);
        let [of_client, of_server] = self.names;
        let (status, server_message) = self.status.map(|it| (it.code, it.text)).unzip();
        Dhcpv6 {
            ts: self.course.start(),
            client_addr: self.client,
            server_addr: self.server,
            client_duid,
            server_duid,
            mac: self.client_duid.as_deref().and_then(mac_of),
            client_fqdn: of_client.or(of_server),
            requested_addrs: column(&self.requested, |lease| lease.what),
            requested_prefixes: column(&self.requested_prefixes, |lease| lease.what.clone()),
            assigned_addrs: column(&self.assigned, |lease| lease.what),
            addr_preferred_lifetimes: preferred,
            addr_valid_lifetimes: valid,
            assigned_prefixes: column(&self.assigned_prefixes, |lease| lease.what.clone()),
            prefix_preferred_lifetimes: prefix_preferred,
            prefix_valid_lifetimes: prefix_valid,
            status,
            server_message,
            msg_types: self.course.kinds(&KINDS),
            relays: self.relays,
            duration: self.course.duration(),
            uids: self.course.into_uids(),
        }
    }
}

/// One value of each lease.
fn column<L, V>(leases: &[Lease<L>], value: impl Fn(&Lease<L>) -> V) -> UnsetIfEmpty<V> {
    UnsetIfEmpty(leases.iter().map(value).collect())
}

/// How long leases are preferred, and how long they are valid.
fn lifetimes<L>(leases: &[Lease<L>]) -> [UnsetIfEmpty<Interval>; 2] {
    [column(leases, |lease| lease.preferred), column(leases, |lease| lease.valid)]
}

fn digits(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The Ethernet address that a DUID was made of: DUID-LLT or DUID-LL (RFC 8415, sections 11.2 and
/// 11.4) of hardware type 1.
fn mac_of(duid: &[u8]) -> Option<String> {
    let ([0, 1, 0, 1, _, _, _, _, address @ ..] | [0, 3, 0, 1, address @ ..]) = duid else {
        return None;
    };
    (address.len() == 6).then(|| colons(address))
}

/// Whether a type of messages is one that servers send: ADVERTISE, REPLY, RECONFIGURE, and the
/// answers of RFC 5007, RFC 6977, RFC 7341 and RFC 9686.
const fn is_servers(kind: u8) -> bool {
    matches!(kind, 2 | 7 | 10 | 15 | 16 | 17 | 19 | 21 | 37)
}

/// The names of the types of messages, as IANA's registry has them.
pub(super) const KINDS: [&str; 37] = [
    "SOLICIT",
    "ADVERTISE",
    "REQUEST",
    "CONFIRM",
    "RENEW",
    "REBIND",
    "REPLY",
    "RELEASE",
    "DECLINE",
    "RECONFIGURE",
    "INFORMATION-REQUEST",
    "RELAY-FORW",
    "RELAY-REPL",
    "LEASEQUERY",
    "LEASEQUERY-REPLY",
    "LEASEQUERY-DONE",
    "LEASEQUERY-DATA",
    "RECONFIGURE-REQUEST",
    "RECONFIGURE-REPLY",
    "DHCPV4-QUERY",
    "DHCPV4-RESPONSE",
    "ACTIVELEASEQUERY",
    "STARTTLS",
    "BNDUPD",
    "BNDREPLY",
    "POOLREQ",
    "POOLRESP",
    "UPDREQ",
    "UPDREQALL",
    "UPDDONE",
    "CONNECT",
    "CONNECTREPLY",
    "DISCONNECT",
    "STATE",
    "CONTACT",
    "ADDR-REG-INFORM",
    "ADDR-REG-REPLY",
];
