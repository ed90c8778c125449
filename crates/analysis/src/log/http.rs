//! The `http` log: one row for each request with its response, as Zeek writes it.

use netsniff_packet::{Address, Timestamp};

use crate::record::{Interval, Port};
use crate::uid::Uid;

crate::record! {
    /// One row for each HTTP request with its response, or one of them alone.
    pub struct Http<'a> => "http" {
        /// Time of the request, or of the response without one.
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
        /// Number of the request in its connection, from 1 on.
        trans_depth: u64 => "trans_depth", count, None, Plain, Zeek;
        /// Method of the request.
        method: Option<&'a [u8]> => "method", string, None, Word(HttpMethod), Zeek;
        /// The field `Host`, with the port if there is one.
        host: Option<&'a [u8]> => "host", string, None, Name, Zeek;
        /// What is requested, with its percent signs decoded.
        uri: Option<&'a [u8]> => "uri", string, None, FreeText, Zeek;
        /// The field `Referer`.
        referrer: Option<&'a [u8]> => "referrer", string, None, FreeText, Zeek;
        /// Version of the response.
        version: Option<&'a str> => "version", string, None, Plain, Zeek;
        /// The field `User-Agent`.
        user_agent: Option<&'a [u8]> => "user_agent", string, None, FreeText, Zeek;
        /// The field `Origin`.
        origin: Option<&'a [u8]> => "origin", string, None, FreeText, Zeek;
        /// Length of the request's body, without its compression; unset where it was not all decoded.
        request_body_len: Option<u64> => "request_body_len", count, Bytes, Plain, Zeek;
        /// Length of the response's body, without its compression; unset where it was not all decoded.
        response_body_len: Option<u64> => "response_body_len", count, Bytes, Plain, Zeek;
        /// Status code of the response.
        status_code: Option<u16> => "status_code", count, None, Plain, Zeek;
        /// What the response says of its status.
        status_msg: Option<&'a [u8]> => "status_msg", string, None, FreeText, Zeek;
        /// Status code of the last preliminary response (1xx).
        info_code: Option<u16> => "info_code", count, None, Plain, Zeek;
        /// What that says of it.
        info_msg: Option<&'a [u8]> => "info_msg", string, None, FreeText, Zeek;
        /// Signs of attacks: none are looked for.
        tags: &'a [&'a str] => "tags", set[enum], None, Plain, Zeek;
        /// The user of Basic authentication.
        username: Option<&'a [u8]> => "username", string, None, User, Zeek;
        /// That user's password: it is not kept.
        password: Option<&'a [u8]> => "password", string, None, User, Zeek;
        /// Header fields by which proxies tell of themselves, each with its name.
        proxied: Option<&'a [Box<[u8]>]> => "proxied", set[string], None, FreeText, Zeek;
        /// Identifiers of the files that the client sent.
        orig_fuids: Option<&'a [Uid]> => "orig_fuids", vector[string], None, Plain, Zeek;
        /// Names of those that have one.
        orig_filenames: Option<&'a [Box<[u8]>]> => "orig_filenames", vector[string], None, FreeText, Zeek;
        /// Kinds of those whose kind is known.
        orig_mime_types: Option<&'a [&'a str]> => "orig_mime_types", vector[string], None, Plain, Zeek;
        /// Identifiers of the files that the server sent.
        resp_fuids: Option<&'a [Uid]> => "resp_fuids", vector[string], None, Plain, Zeek;
        /// Names of those that have one.
        resp_filenames: Option<&'a [Box<[u8]>]> => "resp_filenames", vector[string], None, FreeText, Zeek;
        /// Kinds of those whose kind is known.
        resp_mime_types: Option<&'a [&'a str]> => "resp_mime_types", vector[string], None, Plain, Zeek;
        /// Identifier of the connection in `dns` whose answer told the client the responder's address:
        /// the last one before the connection, for this name if there is one.
        dns_uid: Option<Uid> => "dns_uid", string, None, Plain, Netsniff;
        /// How long that lookup took: time from the query to the answer.
        dns_rtt: Option<Interval> => "dns_rtt", interval, Seconds, Plain, Netsniff;
        /// How old the answer was: time from it to the first packet of the connection.
        dns_age: Option<Interval> => "dns_age", interval, Seconds, Plain, Netsniff;
    }
}
