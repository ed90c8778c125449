//! The `http` log: one row for each request with its response, as Zeek writes it.

use netsniff_packet::Timestamp;

use crate::key::uid::Uid;
use crate::protocol::dns::answers::Followed;
use crate::record::UnsetIfEmpty;

crate::record! {
    /// One row for each HTTP request with its response, or one of them alone.
    pub(super) struct Http => "http" {
        /// Time of the request, or of the response without one.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        connection Zeek;
        /// Number of the request in its connection, from 1 on.
        trans_depth: u64 => "trans_depth", count, None, Plain, Zeek;
        /// Method of the request.
        method: Option<Box<[u8]>> => "method", string, None, Word(HttpMethod), Zeek;
        /// The field `Host`, with the port if there is one.
        host: Option<Box<[u8]>> => "host", string, None, Name, Zeek;
        /// What is requested, with its percent signs decoded.
        uri: Option<Box<[u8]>> => "uri", string, None, FreeText, Zeek;
        /// The field `Referer`.
        referrer: Option<Box<[u8]>> => "referrer", string, None, FreeText, Zeek;
        /// Version of the response.
        version: Option<String> => "version", string, None, Plain, Zeek;
        /// The field `User-Agent`.
        user_agent: Option<Box<[u8]>> => "user_agent", string, None, FreeText, Zeek;
        /// The field `Origin`.
        origin: Option<Box<[u8]>> => "origin", string, None, FreeText, Zeek;
        /// Length of the request's body, without its compression; unset where it was not all decoded.
        request_body_len: Option<u64> => "request_body_len", count, Bytes, Plain, Zeek;
        /// Length of the response's body, without its compression; unset where it was not all decoded.
        response_body_len: Option<u64> => "response_body_len", count, Bytes, Plain, Zeek;
        /// Status code of the response.
        status_code: Option<u16> => "status_code", count, None, Plain, Zeek;
        /// What the response says of its status.
        status_msg: Option<Box<[u8]>> => "status_msg", string, None, FreeText, Zeek;
        /// Status code of the last preliminary response (1xx).
        info_code: Option<u16> => "info_code", count, None, Plain, Zeek;
        /// What that says of it.
        info_msg: Option<Box<[u8]>> => "info_msg", string, None, FreeText, Zeek;
        /// Signs of attacks: none are looked for.
        tags: &'static [&'static str] => "tags", set[enum], None, Plain, Zeek;
        /// The user of Basic authentication.
        username: Option<Box<[u8]>> => "username", string, None, User, Zeek;
        /// That user's password: it is not kept.
        password: Option<Box<[u8]>> => "password", string, None, User, Zeek;
        /// Header fields by which proxies tell of themselves, each with its name.
        proxied: UnsetIfEmpty<Box<[u8]>> => "proxied", set[string], None, FreeText, Zeek;
        /// Identifiers of the files that the client sent.
        orig_fuids: UnsetIfEmpty<Uid> => "orig_fuids", vector[string], None, Plain, Zeek;
        /// Names of those that have one.
        orig_filenames: UnsetIfEmpty<Box<[u8]>> => "orig_filenames", vector[string], None, FreeText, Zeek;
        /// Kinds of those whose kind is known.
        orig_mime_types: UnsetIfEmpty<&'static str> => "orig_mime_types", vector[string], None, Plain, Zeek;
        /// Identifiers of the files that the server sent.
        resp_fuids: UnsetIfEmpty<Uid> => "resp_fuids", vector[string], None, Plain, Zeek;
        /// Names of those that have one.
        resp_filenames: UnsetIfEmpty<Box<[u8]>> => "resp_filenames", vector[string], None, FreeText, Zeek;
        /// Kinds of those whose kind is known.
        resp_mime_types: UnsetIfEmpty<&'static str> => "resp_mime_types", vector[string], None, Plain, Zeek;
        /// Sides whose body was decoded only at its begin (`--bodies head`): `orig`, `resp`. How long it is, the trailer of
        /// gzip tells, modulo 4 GiB; else the length is unset.
        partly_decoded: UnsetIfEmpty<&'static str> => "partly_decoded", set[string], None, Plain, Netsniff;
        joined Followed;
    }
}
