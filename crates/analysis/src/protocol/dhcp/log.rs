//! The `dhcp` log: one row for each exchange of DHCP messages, as Zeek writes it.

use netsniff_packet::{Address, Timestamp};

use crate::key::uid::Uid;
use crate::record::Interval;

crate::record! {
    /// One row for each exchange of DHCP: the messages with one transaction identifier, in
    /// whatever connections they came.
    pub(super) struct Dhcp => "dhcp" {
        /// Time of the first message.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        /// Identifiers of the connections that the messages came in.
        uids: Vec<Uid> => "uids", set[string], None, Plain, Zeek;
        /// Address of the client: the one that it sent from, or else the one it was given.
        client_addr: Option<Address> => "client_addr", addr, None, Address, Zeek;
        /// Address of the server that gave an address, or of the relay that passed that on.
        server_addr: Option<Address> => "server_addr", addr, None, Address, Zeek;
        /// The client's hardware address.
        mac: Option<String> => "mac", string, None, Address, Zeek;
        /// Name that the client gave (option 12).
        host_name: Option<Box<[u8]>> => "host_name", string, None, Name, Zeek;
        /// Name with domain that the client gave (option 81), as it stands there.
        client_fqdn: Option<Box<[u8]>> => "client_fqdn", string, None, Name, Zeek;
        /// Domain that the server gave (option 15).
        domain: Option<Box<[u8]>> => "domain", string, None, Name, Zeek;
        /// Address that the client asked for.
        requested_addr: Option<Address> => "requested_addr", addr, None, Address, Zeek;
        /// Address that the server assigned.
        assigned_addr: Option<Address> => "assigned_addr", addr, None, Address, Zeek;
        /// How long the client may keep it.
        lease_time: Option<Interval> => "lease_time", interval, Seconds, Plain, Zeek;
        /// What the client said in words, mostly why it declined.
        client_message: Option<Box<[u8]>> => "client_message", string, None, FreeText, Zeek;
        /// What the server said in words, mostly why it refused.
        server_message: Option<Box<[u8]>> => "server_message", string, None, FreeText, Zeek;
        /// The types of the messages, in their order.
        msg_types: Vec<String> => "msg_types", vector[string], None, Plain, Zeek;
        /// Time from the first message to the last.
        duration: Interval => "duration", interval, Seconds, Plain, Zeek;
    }
}
