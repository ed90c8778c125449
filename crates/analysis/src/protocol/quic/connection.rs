//! A connection as a row of the log `quic`.

use netsniff_packet::Timestamp;

use super::packet::Invariant;
use super::version;
use crate::log::Quic;
use crate::protocol::findings::{Connection, Findings};
use crate::protocol::session::Role;
use crate::protocol::tls::fingerprint::hex;
use crate::record::Port;

/// Letters of a history, beyond which no more are added (`max_history_length`).
const MAX_HISTORY: usize = 100;

/// What was seen of a connection.
#[derive(Debug)]
pub struct QuicConnection {
    start: Timestamp,
    version: u32,
    client_initial_dcid: Option<String>,
    client_scid: Option<String>,
    server_scid: Option<String>,
    /// The server that the client asked for.
    pub(super) server_name: Option<Box<[u8]>>,
    /// The first of the protocols that the client offered.
    pub(super) client_protocol: Option<Box<[u8]>>,
    /// JA4 of the client.
    pub(super) ja4: Option<String>,
    history: String,
}

impl QuicConnection {
    /// A connection whose first packet is of this version.
    pub(super) const fn new(start: Timestamp, version: u32) -> Self {
        Self {
            start,
            version,
            client_initial_dcid: None,
            client_scid: None,
            server_scid: None,
            server_name: None,
            client_protocol: None,
            ja4: None,
            history: String::new(),
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

    /// Hands the row of the log to `take`.
    pub fn report<T>(&self, connection: &Connection, take: impl FnOnce(&Quic<'_>) -> T) -> T {
        take(&Quic {
            ts: self.start,
            uid: connection.uid,
            id_orig_h: connection.originator.address,
            id_orig_p: Port(connection.originator.port),
            id_resp_h: connection.responder.address,
            id_resp_p: Port(connection.responder.port),
            version: &version::name(self.version),
            client_initial_dcid: self.client_initial_dcid.as_deref(),
            client_scid: self.client_scid.as_deref(),
            server_scid: self.server_scid.as_deref(),
            server_name: self.server_name.as_deref(),
            client_protocol: self.client_protocol.as_deref(),
            history: &self.history,
            ja4: self.ja4.as_deref(),
        })
    }
}
