//! The `dns` log: one row for each question with its answer, as Zeek writes it.

use std::borrow::Cow;

use netsniff_packet::Timestamp;

use super::NETBIOS;
use crate::record::{Connection, Interval, Proto, UnsetIfEmpty};

crate::record! {
    /// One row for each DNS transaction: a query with its reply, or one of them alone. Multicast
    /// DNS, LLMNR and NetBIOS names are DNS, too.
    pub(super) struct Dns => "dns" {
        /// Time of the first message of the transaction.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        connection Zeek, Self::place;
        /// Transport protocol.
        proto: Proto => "proto", enum, None, Plain, Zeek;
        /// Identifier that the client chose and the server repeated.
        trans_id: u16 => "trans_id", count, None, Plain, Zeek;
        /// Time from the query to the reply, where that has answers.
        rtt: Option<Interval> => "rtt", interval, Seconds, Plain, Zeek;
        /// Name that is asked about, in lower case; NetBIOS names are decoded.
        query: Option<Box<[u8]>> => "query", string, None, Name, Zeek;
        /// Class that is asked for.
        qclass: Option<u16> => "qclass", count, None, Plain, Zeek;
        /// Name of the class.
        qclass_name: Option<Cow<'static, str>> => "qclass_name", string, None, Plain, Zeek;
        /// Type of record that is asked for.
        qtype: Option<u16> => "qtype", count, None, Plain, Zeek;
        /// Name of the type.
        qtype_name: Option<Cow<'static, str>> => "qtype_name", string, None, Plain, Zeek;
        /// Response code of the reply.
        rcode: Option<u8> => "rcode", count, None, Plain, Zeek;
        /// Name of the response code.
        rcode_name: Option<&'static str> => "rcode_name", string, None, Plain, Zeek;
        /// Whether the server is an authority for the name; F without answers, too.
        aa: bool => "AA", bool, None, Plain, Zeek;
        /// Whether the query was cut.
        tc: bool => "TC", bool, None, Plain, Zeek;
        /// Whether the client wants recursion.
        rd: bool => "RD", bool, None, Plain, Zeek;
        /// Whether the server offers recursion; F without answers, too.
        ra: bool => "RA", bool, None, Plain, Zeek;
        /// The reserved bits of the query.
        z: u8 => "Z", count, None, Plain, Zeek;
        /// What the records of the answer section say, in their order.
        answers: UnsetIfEmpty<Box<[u8]>> => "answers", vector[string], None, Name, Zeek;
        /// How long each of `answers` may be kept.
        ttls: UnsetIfEmpty<Interval> => "TTLs", vector[interval], Seconds, Plain, Zeek;
        /// Whether the reply has nothing but the question, or an error code and nothing at all.
        rejected: bool => "rejected", bool, None, Plain, Zeek;
        /// Kind of query.
        opcode: u8 => "opcode", count, None, Plain, Zeek;
        /// Name of the kind of query.
        opcode_name: &'static str => "opcode_name", string, None, Plain, Zeek;
    }
}

/// QTYPE of SRV, which is older than SRV in NetBIOS and asks for the state of a node there
/// (RFC 1002, 4.2.17).
const SRV: u16 = 33;

impl Dns {
    /// Sets what the connection tells.
    fn place(&mut self, connection: &Connection) {
        self.proto = connection.proto;
        if self.qtype == Some(SRV) && connection.responder.port == NETBIOS {
            self.qtype_name = Some(Cow::Borrowed("NBSTAT"));
        }
    }
}
