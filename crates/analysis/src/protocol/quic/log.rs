//! The `quic` log: one row for each connection of QUIC, as Zeek writes it.

use std::borrow::Cow;

use netsniff_packet::Timestamp;

use super::packet::Invariant;
use super::version;
use crate::file::digest::hex;
use crate::protocol::session::Role;
use crate::protocol::session::findings::Findings;

/// Letters of a history, beyond which no more are added (`max_history_length`).
const MAX_HISTORY: usize = 100;

crate::record! {
    /// One row for each connection of QUIC; a Retry, a version that is not read and a close begin a
    /// new row.
    pub(super) struct Quic => "quic" {
        /// Time of the first packet.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        connection Zeek;
        /// Version of the first packet.
        version: Cow<'static, str> => "version", string, None, Plain, Zeek;
        /// First destination connection identifier of the client, from which the keys of Initial
        /// packets follow.
        client_initial_dcid: Option<String> => "client_initial_dcid", string, None, Plain, Zeek;
        /// Connection identifier that the client chose for itself.
        client_scid: Option<String> => "client_scid", string, None, Plain, Zeek;
        /// Connection identifier that the server chose for itself.
        server_scid: Option<String> => "server_scid", string, None, Plain, Zeek;
        /// Name of the server that the client asked for.
        server_name: Option<Box<[u8]>> => "server_name", string, None, Name, Zeek;
        /// The first of the protocols that the client offered.
        client_protocol: Option<Box<[u8]>> => "client_protocol", string, None, Word(Alpn), Zeek;
        /// What was sent, in order: letters of the client in upper case, of the server in lower
        /// case. `I` Initial, `S` ClientHello or ServerHello, `H` Handshake, `Z` 0-RTT, `R` Retry,
        /// `C` the connection was closed, `U` a version that is not read, `X` no packet of QUIC,
        /// `O` short headers: the 1st, 2nd, 4th, 8th and so on.
        history: String => "history", string, None, Plain, Zeek;
        /// JA4 fingerprint of the client.
        ja4: Option<String> => "ja4", string, None, ContentHash, Netsniff;
    }
}

impl Quic {
    /// A connection whose first packet is of this version.
    pub(super) fn new(ts: Timestamp, version: u32) -> Self {
        Self {
            ts,
            version: version::name(version),
            client_initial_dcid: None,
            client_scid: None,
            server_scid: None,
            server_name: None,
            client_protocol: None,
            history: String::new(),
            ja4: None,
        }
    }

    /// Notes the connection identifiers of a packet.
    pub(super) fn note(&mut self, from: Role, invariant: &Invariant<'_>) {
        let source = Some(hex(invariant.source));
        match from {
            Role::Originator => {
                if !invariant.destination.is_empty() {
                    self.client_initial_dcid.get_or_insert_with(|| hex(invariant.destination));
                }
                self.client_scid = source;
            }
            Role::Responder => self.server_scid = source,
        }
    }

    /// Adds a letter to the history.
    pub(super) fn push_letter(&mut self, letter: u8, found: &mut Findings) {
        if self.history.len() >= MAX_HISTORY {
            return;
        }
        self.history.push(char::from(letter));
        if self.history.len() == MAX_HISTORY {
            found.weirds.add("QUIC_max_history_length_reached");
        }
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let texts = [&self.client_initial_dcid, &self.client_scid, &self.server_scid, &self.ja4];
        let names = [&self.server_name, &self.client_protocol];
        texts.into_iter().flatten().map(String::capacity).sum::<usize>()
            + names.into_iter().flatten().map(|name| name.len()).sum::<usize>()
            + self.history.capacity()
    }
}
