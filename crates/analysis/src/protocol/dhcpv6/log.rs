//! The `dhcpv6` log: one row for each exchange of DHCPv6 messages.

use netsniff_packet::{Address, Timestamp};

use crate::key::uid::Uid;
use crate::record::{Interval, UnsetIfEmpty};

crate::record! {
    /// One row for each exchange of DHCPv6 (RFC 8415): the messages with one transaction identifier
    /// of one client, in whatever connections they came. What relays pass on counts as what is in it.
    pub(super) struct Dhcpv6 => "dhcpv6" {
        /// Time of the first message.
        ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
        /// Identifiers of the connections that the messages came in.
        uids: Vec<Uid> => "uids", set[string], None, Plain, Netsniff;
        /// Address of the client: the one that it sent from, by the relay's word where there is one.
        client_addr: Option<Address> => "client_addr", addr, None, Address, Netsniff;
        /// Address that the server's last message came from.
        server_addr: Option<Address> => "server_addr", addr, None, Address, Netsniff;
        /// What the client calls itself: its DUID, in hexadecimal digits.
        client_duid: Option<String> => "client_duid", string, None, Address, Netsniff;
        /// What the server calls itself: its DUID, in hexadecimal digits.
        server_duid: Option<String> => "server_duid", string, None, Address, Netsniff;
        /// The client's hardware address, where its DUID has one of Ethernet.
        mac: Option<String> => "mac", string, None, Address, Netsniff;
        /// Name with domain that the client gave (RFC 4704), or else the server.
        client_fqdn: Option<Box<[u8]>> => "client_fqdn", string, None, Name, Netsniff;
        /// Addresses that the client asked for or has.
        requested_addrs: UnsetIfEmpty<Address> => "requested_addrs", vector[addr], None, Address, Netsniff;
        /// Prefixes that the client asked for or has.
        requested_prefixes: UnsetIfEmpty<String> => "requested_prefixes", vector[string], None, Address, Netsniff;
        /// Addresses that the server assigned or offered, of its last message that has any.
        assigned_addrs: UnsetIfEmpty<Address> => "assigned_addrs", vector[addr], None, Address, Netsniff;
        /// How long each of these is preferred; 136 years stand for ever.
        addr_preferred_lifetimes: UnsetIfEmpty<Interval> => "addr_preferred_lifetimes", vector[interval], Seconds, Plain, Netsniff;
        /// How long each of these is valid; 136 years stand for ever.
        addr_valid_lifetimes: UnsetIfEmpty<Interval> => "addr_valid_lifetimes", vector[interval], Seconds, Plain, Netsniff;
        /// Prefixes that the server delegated or offered, of its last message that has any.
        assigned_prefixes: UnsetIfEmpty<String> => "assigned_prefixes", vector[string], None, Address, Netsniff;
        /// How long each of these is preferred; 136 years stand for ever.
        prefix_preferred_lifetimes: UnsetIfEmpty<Interval> => "prefix_preferred_lifetimes", vector[interval], Seconds, Plain, Netsniff;
        /// How long each of these is valid; 136 years stand for ever.
        prefix_valid_lifetimes: UnsetIfEmpty<Interval> => "prefix_valid_lifetimes", vector[interval], Seconds, Plain, Netsniff;
        /// How the server answered: code of its last status (RFC 8415, section 21.13); 0 is success.
        status: Option<u16> => "status", count, None, Plain, Netsniff;
        /// What it said in words with that.
        server_message: Option<Box<[u8]>> => "server_message", string, None, FreeText, Netsniff;
        /// The types of the messages, in their order.
        msg_types: Vec<String> => "msg_types", vector[string], None, Plain, Netsniff;
        /// The most relays that passed a message on.
        relays: u64 => "relays", count, None, Plain, Netsniff;
        /// Time from the first message to the last.
        duration: Interval => "duration", interval, Seconds, Plain, Netsniff;
    }
}
