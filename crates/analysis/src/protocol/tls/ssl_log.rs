//! The `ssl` log: one row for each handshake of SSL, TLS or DTLS, as Zeek writes it.

use std::borrow::Cow;
use std::sync::Arc;

use netsniff_packet::Timestamp;

use crate::protocol::dns::answers::{Followed, Following};
use crate::protocol::session::findings::Findings;
use crate::series::Failure;

/// Letters of a history, beyond which no more are added (`max_ssl_history_length`).
const MAX_HISTORY: usize = 100;

crate::record! {
    /// One row for each connection with a handshake of SSL, TLS or DTLS, also within QUIC.
    #[derive(Default)]
    pub(in crate::protocol) struct Ssl => "ssl" {
        /// Time of the first record of the handshake.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        connection Zeek;
        /// Version that the server chose.
        version: Option<Cow<'static, str>> => "version", string, None, Plain, Zeek;
        /// Cipher suite that the server chose.
        cipher: Option<Cow<'static, str>> => "cipher", string, None, Plain, Zeek;
        /// Group of the key exchange that the server chose.
        curve: Option<Cow<'static, str>> => "curve", string, None, Plain, Zeek;
        /// Name of the server that the client asked for.
        server_name: Option<Box<[u8]>> => "server_name", string, None, Name, Zeek;
        /// Whether keys of an earlier connection were used.
        resumed: bool => "resumed", bool, None, Plain, Zeek;
        /// The last alert that was not encrypted.
        last_alert: Option<Cow<'static, str>> => "last_alert", string, None, Plain, Zeek;
        /// Protocol within that the server chose.
        next_protocol: Option<Box<[u8]>> => "next_protocol", string, None, Word(Alpn), Zeek;
        /// Whether the handshake was completed: both sides have sent encrypted records.
        established: bool => "established", bool, None, Plain, Zeek;
        /// What was sent, in order: letters of the client in upper case, of the server in lower
        /// case. `C` ClientHello, `S` ServerHello, `J` HelloRetryRequest, `V` HelloVerifyRequest,
        /// `H` HelloRequest, `X` Certificate, `K` ServerKeyExchange, `R` CertificateRequest,
        /// `N` ServerHelloDone, `Y` CertificateVerify, `G` ClientKeyExchange, `T` NewSessionTicket,
        /// `U` CertificateStatus, `W` CertificateURL, `A` SupplementalData, `F` Finished,
        /// `E` EndOfEarlyData, `O` EncryptedExtensions, `P` KeyUpdate, `M` MessageHash, `Z` another
        /// message, `I` ChangeCipherSpec, `L` alert, `B` heartbeat, `^` the roles were exchanged.
        ssl_history: String => "ssl_history", string, None, Plain, Zeek;
        /// SHA-256 of the certificates that the server sent, in their order.
        cert_chain_fps: Option<Vec<Arc<str>>> => "cert_chain_fps", vector[string], None, ContentHash, Zeek;
        /// SHA-256 of the certificates that the client sent, in their order.
        client_cert_chain_fps: Option<Vec<Arc<str>>> =>
            "client_cert_chain_fps", vector[string], None, ContentHash, Zeek;
        /// Whether the server's certificate is for `server_name`.
        sni_matches_cert: Option<bool> => "sni_matches_cert", bool, None, Plain, Zeek;
        /// JA3 fingerprint of the client.
        ja3: Option<Arc<str>> => "ja3", string, None, ContentHash, Netsniff;
        /// JA3S fingerprint of the server.
        ja3s: Option<Arc<str>> => "ja3s", string, None, ContentHash, Netsniff;
        /// JA4 fingerprint of the client.
        ja4: Option<Arc<str>> => "ja4", string, None, ContentHash, Netsniff;
        joined Followed;
    }
}

impl Ssl {
    /// Adds a letter to the history.
    pub(super) fn push_letter(&mut self, letter: u8, found: &mut Findings) {
        if self.ssl_history.len() >= MAX_HISTORY {
            return;
        }
        self.ssl_history.push(char::from(letter));
        if self.ssl_history.len() == MAX_HISTORY {
            found.weirds.add("SSL_max_ssl_history_length_reached");
        }
    }

    /// The certificates of one side, once either has sent one.
    pub(super) fn chain(&mut self, is_client: bool) -> &mut Vec<Arc<str>> {
        let server = self.cert_chain_fps.get_or_insert_default();
        let client = self.client_cert_chain_fps.get_or_insert_default();
        if is_client { client } else { server }
    }

    /// Bytes that it holds outside itself, without fingerprints, which are shared.
    pub(super) fn heap_bytes(&self) -> usize {
        let names = [&self.server_name, &self.next_protocol];
        let names = names.into_iter().flatten().map(|name| name.len()).sum::<usize>();
        let chains = [&self.cert_chain_fps, &self.client_cert_chain_fps];
        let chains = chains.into_iter().flatten();
        let chains = chains.map(|chain| chain.capacity() * size_of::<Arc<str>>());
        names + chains.sum::<usize>() + self.ssl_history.capacity()
    }

    /// Tells it, by way of the DNS answers that were seen.
    pub(super) fn report(self: Box<Self>, found: &mut Findings) {
        if !self.established {
            found.failures.push((self.ts, Failure::Tls));
        }
        let host = self.server_name.clone();
        found.row_with(self, Following { host });
    }
}
