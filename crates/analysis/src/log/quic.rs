//! The `quic` log: one row for each connection of QUIC, as Zeek writes it.

use netsniff_packet::{Address, Timestamp};

use crate::record::Port;
use crate::uid::Uid;

crate::record! {
    /// One row for each connection of QUIC; a Retry, a version that is not read and a close begin a
    /// new row.
    pub struct Quic<'a> => "quic" {
        /// Time of the first packet.
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
        /// Version of the first packet.
        version: &'a str => "version", string, None, Plain, Zeek;
        /// First destination connection identifier of the client, from which the keys of Initial
        /// packets follow.
        client_initial_dcid: Option<&'a str> => "client_initial_dcid", string, None, Plain, Zeek;
        /// Connection identifier that the client chose for itself.
        client_scid: Option<&'a str> => "client_scid", string, None, Plain, Zeek;
        /// Connection identifier that the server chose for itself.
        server_scid: Option<&'a str> => "server_scid", string, None, Plain, Zeek;
        /// Name of the server that the client asked for.
        server_name: Option<&'a [u8]> => "server_name", string, None, Name, Zeek;
        /// The first of the protocols that the client offered.
        client_protocol: Option<&'a [u8]> => "client_protocol", string, None, Word(Alpn), Zeek;
        /// What was sent, in order: letters of the client in upper case, of the server in lower
        /// case. `I` Initial, `S` ClientHello or ServerHello, `H` Handshake, `Z` 0-RTT, `R` Retry,
        /// `C` the connection was closed, `U` a version that is not read, `X` no packet of QUIC,
        /// `O` short headers: the 1st, 2nd, 4th, 8th and so on.
        history: &'a str => "history", string, None, Plain, Zeek;
        /// JA4 fingerprint of the client.
        ja4: Option<&'a str> => "ja4", string, None, ContentHash, Netsniff;
    }
}
