//! The `ssl` log: one row for each handshake of SSL, TLS or DTLS, as Zeek writes it.

use std::sync::Arc;

use netsniff_packet::{Address, Timestamp};

use crate::record::{Interval, Port};
use crate::uid::Uid;

crate::record! {
    /// One row for each connection with a handshake of SSL, TLS or DTLS, also within QUIC.
    pub struct Ssl<'a> => "ssl" {
        /// Time of the first record of the handshake.
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
        /// Version that the server chose.
        version: Option<&'a str> => "version", string, None, Plain, Zeek;
        /// Cipher suite that the server chose.
        cipher: Option<&'a str> => "cipher", string, None, Plain, Zeek;
        /// Group of the key exchange that the server chose.
        curve: Option<&'a str> => "curve", string, None, Plain, Zeek;
        /// Name of the server that the client asked for.
        server_name: Option<&'a [u8]> => "server_name", string, None, Name, Zeek;
        /// Whether keys of an earlier connection were used.
        resumed: bool => "resumed", bool, None, Plain, Zeek;
        /// The last alert that was not encrypted.
        last_alert: Option<&'a str> => "last_alert", string, None, Plain, Zeek;
        /// Protocol within that the server chose.
        next_protocol: Option<&'a [u8]> => "next_protocol", string, None, Word(Alpn), Zeek;
        /// Whether the handshake was completed: both sides have sent encrypted records.
        established: bool => "established", bool, None, Plain, Zeek;
        /// What was sent, in order: letters of the client in upper case, of the server in lower
        /// case. `C` ClientHello, `S` ServerHello, `J` HelloRetryRequest, `V` HelloVerifyRequest,
        /// `H` HelloRequest, `X` Certificate, `K` ServerKeyExchange, `R` CertificateRequest,
        /// `N` ServerHelloDone, `Y` CertificateVerify, `G` ClientKeyExchange, `T` NewSessionTicket,
        /// `U` CertificateStatus, `W` CertificateURL, `A` SupplementalData, `F` Finished,
        /// `E` EndOfEarlyData, `O` EncryptedExtensions, `P` KeyUpdate, `M` MessageHash, `Z` another
        /// message, `I` ChangeCipherSpec, `L` alert, `B` heartbeat, `^` the roles were exchanged.
        ssl_history: &'a str => "ssl_history", string, None, Plain, Zeek;
        /// SHA-256 of the certificates that the server sent, in their order.
        cert_chain_fps: Option<&'a [Arc<str>]> => "cert_chain_fps", vector[string], None, ContentHash, Zeek;
        /// SHA-256 of the certificates that the client sent, in their order.
        client_cert_chain_fps: Option<&'a [Arc<str>]> =>
            "client_cert_chain_fps", vector[string], None, ContentHash, Zeek;
        /// Whether the server's certificate is for `server_name`.
        sni_matches_cert: Option<bool> => "sni_matches_cert", bool, None, Plain, Zeek;
        /// JA3 fingerprint of the client.
        ja3: Option<&'a str> => "ja3", string, None, ContentHash, Netsniff;
        /// JA3S fingerprint of the server.
        ja3s: Option<&'a str> => "ja3s", string, None, ContentHash, Netsniff;
        /// JA4 fingerprint of the client.
        ja4: Option<&'a str> => "ja4", string, None, ContentHash, Netsniff;
        /// Identifier of the connection in `dns` whose answer told the client the responder's address:
        /// the last one before the connection, for this name if there is one.
        dns_uid: Option<Uid> => "dns_uid", string, None, Plain, Netsniff;
        /// How long that lookup took: time from the query to the answer.
        dns_rtt: Option<Interval> => "dns_rtt", interval, Seconds, Plain, Netsniff;
        /// How old the answer was: time from it to the first packet of the connection.
        dns_age: Option<Interval> => "dns_age", interval, Seconds, Plain, Netsniff;
    }
}
