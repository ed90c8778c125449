//! The `dns` log: one row for each question with its answer, as Zeek writes it.

use netsniff_packet::{Address, Timestamp};

use super::conn::Proto;
use crate::record::{Interval, Port};
use crate::uid::Uid;

crate::record! {
    /// One row for each DNS transaction: a query with its reply, or one of them alone. Multicast
    /// DNS, LLMNR and NetBIOS names are DNS, too.
    pub struct Dns<'a> => "dns" {
        /// Time of the first message of the transaction.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        /// Identifier of the connection, the same in every log.
        uid: Uid => "uid", string, None, Plain, Zeek;
        /// Address of the originator.
        id_orig_h: Address => "id.orig_h", addr, None, Address, Zeek;
        /// Port of the originator.
        id_orig_p: Port => "id.orig_p", port, None, Plain, Zeek;
        /// Address of the responder.
        id_resp_h: Address => "id.resp_h", addr, None, Address, Zeek;
        /// Port of the responder.
        id_resp_p: Port => "id.resp_p", port, None, Plain, Zeek;
        /// Transport protocol.
        proto: Proto => "proto", enum, None, Plain, Zeek;
        /// Identifier that the client chose and the server repeated.
        trans_id: u16 => "trans_id", count, None, Plain, Zeek;
        /// Time from the query to the reply, where that has answers.
        rtt: Option<Interval> => "rtt", interval, Seconds, Plain, Zeek;
        /// Name that is asked about, in lower case; NetBIOS names are decoded.
        query: Option<&'a [u8]> => "query", string, None, Name, Zeek;
        /// Class that is asked for.
        qclass: Option<u16> => "qclass", count, None, Plain, Zeek;
        /// Name of the class.
        qclass_name: Option<&'a str> => "qclass_name", string, None, Plain, Zeek;
        /// Type of record that is asked for.
        qtype: Option<u16> => "qtype", count, None, Plain, Zeek;
        /// Name of the type.
        qtype_name: Option<&'a str> => "qtype_name", string, None, Plain, Zeek;
        /// Response code of the reply.
        rcode: Option<u8> => "rcode", count, None, Plain, Zeek;
        /// Name of the response code.
        rcode_name: Option<&'a str> => "rcode_name", string, None, Plain, Zeek;
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
        answers: Option<&'a [Box<[u8]>]> => "answers", vector[string], None, Name, Zeek;
        /// How long each of `answers` may be kept.
        ttls: Option<&'a [Interval]> => "TTLs", vector[interval], Seconds, Plain, Zeek;
        /// Whether the reply has nothing but the question, or an error code and nothing at all.
        rejected: bool => "rejected", bool, None, Plain, Zeek;
        /// Kind of query.
        opcode: u8 => "opcode", count, None, Plain, Zeek;
        /// Name of the kind of query.
        opcode_name: &'a str => "opcode_name", string, None, Plain, Zeek;
    }
}
