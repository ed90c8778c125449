//! A handshake as a row of the log `ssl`.

use std::borrow::Cow;
use std::sync::Arc;

use netsniff_packet::Timestamp;

use super::{ciphers, names};
use crate::correlator::Answer;
use crate::log::Ssl;
use crate::protocol::findings::{Connection, Findings};
use crate::record::Port;

/// Letters of a history, beyond which no more are added (`max_ssl_history_length`).
const MAX_HISTORY: usize = 100;

/// What was seen of a handshake.
#[derive(Debug, Default)]
pub struct TlsHandshake {
    /// Time of its first record.
    pub(super) start: Timestamp,
    /// The version that the server chose.
    pub(super) version: Option<u16>,
    /// The cipher suite that the server chose.
    pub(super) cipher: Option<u32>,
    /// The group of the key exchange.
    pub(super) group: Option<u16>,
    /// The server that the client asked for.
    pub(super) server_name: Option<Box<[u8]>>,
    /// Whether keys of an earlier connection were used.
    pub(super) is_resumed: bool,
    /// The last alert in the clear.
    pub(super) last_alert: Option<Cow<'static, str>>,
    /// The protocol within.
    pub(super) next_protocol: Option<Box<[u8]>>,
    /// Whether both sides have sent something encrypted.
    pub(super) is_established: bool,
    /// Fingerprints of the certificates of server and client, once either has sent one.
    pub(super) chains: Option<[Vec<Arc<str>>; 2]>,
    /// Whether the server's certificate is for the name that the client asked for.
    pub(super) matches_name: Option<bool>,
    /// JA3 of the client.
    pub(super) ja3: Option<Arc<str>>,
    /// JA3S of the server.
    pub(super) ja3s: Option<Arc<str>>,
    /// JA4 of the client.
    pub(super) ja4: Option<Arc<str>>,
    history: String,
}

impl TlsHandshake {
    /// Adds a letter to the history.
    pub(super) fn push_letter(&mut self, letter: u8, found: &mut Findings) {
        if self.history.len() >= MAX_HISTORY {
            return;
        }
        self.history.push(char::from(letter));
        if self.history.len() == MAX_HISTORY {
            found.weirds.add("SSL_max_ssl_history_length_reached");
        }
    }

    /// Bytes that it holds outside itself, without fingerprints, which are shared.
    pub(crate) fn heap_bytes(&self) -> usize {
        let names = [&self.server_name, &self.next_protocol];
        let names = names.into_iter().flatten().map(|name| name.len()).sum::<usize>();
        let chains = self.chains.iter().flatten();
        let chains = chains.map(|chain| chain.capacity() * size_of::<Arc<str>>());
        names + chains.sum::<usize>() + self.history.capacity()
    }

    /// The server that the client asked for.
    #[must_use]
    pub fn server_name(&self) -> Option<&[u8]> {
        self.server_name.as_deref()
    }

    /// Hands the row of the log to `take`, with the DNS answer that the connection followed.
    pub fn report<T>(
        &self,
        connection: &Connection,
        answer: Option<&Answer>,
        take: impl FnOnce(&Ssl<'_>) -> T,
    ) -> T {
        let version = self.version.map(names::version);
        let unknown = |cipher| Cow::Owned(format!("unknown-{cipher}"));
        let cipher = self
            .cipher
            .map(|cipher| ciphers::name(cipher).map_or_else(|| unknown(cipher), Cow::Borrowed));
        let group = self.group.map(names::group);
        take(&Ssl {
            ts: self.start,
            uid: connection.uid,
            id_orig_h: connection.originator.address,
            id_orig_p: Port(connection.originator.port),
            id_resp_h: connection.responder.address,
            id_resp_p: Port(connection.responder.port),
            version: version.as_deref(),
            cipher: cipher.as_deref(),
            curve: group.as_deref(),
            server_name: self.server_name.as_deref(),
            resumed: self.is_resumed,
            last_alert: self.last_alert.as_deref(),
            next_protocol: self.next_protocol.as_deref(),
            established: self.is_established,
            ssl_history: &self.history,
            cert_chain_fps: self.chains.as_ref().map(|[server, _]| server.as_slice()),
            client_cert_chain_fps: self.chains.as_ref().map(|[_, client]| client.as_slice()),
            sni_matches_cert: self.matches_name,
            ja3: self.ja3.as_deref(),
            ja3s: self.ja3s.as_deref(),
            ja4: self.ja4.as_deref(),
            dns_uid: answer.map(|answer| answer.uid),
            dns_rtt: answer.and_then(|answer| answer.rtt),
            dns_age: answer.map(|answer| answer.age),
        })
    }
}
