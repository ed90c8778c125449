//! The `x509` log: one row for each certificate of a handshake, as Zeek writes it.

use std::sync::Arc;

use netsniff_packet::{Address, Timestamp};

use crate::record::{Seconds, UnsetIfEmpty};

crate::record! {
    /// One row for each certificate that sides of handshakes sent, once in each day of UTC: for the
    /// host itself and as an authority, and for clients apart from servers. Rows are joined to those
    /// of `ssl` by `fingerprint`.
    pub(in crate::protocol) struct X509 => "x509" {
        /// Time of the packet that completed the certificate's message.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        /// SHA-256 of the certificate.
        fingerprint: Arc<str> => "fingerprint", string, None, ContentHash, Zeek;
        /// Version of the certificate.
        version: u64 => "certificate.version", count, None, Plain, Zeek;
        /// Serial number in hexadecimal digits.
        serial: String => "certificate.serial", string, None, ContentHash, Zeek;
        /// Whose certificate it is.
        subject: Box<[u8]> => "certificate.subject", string, None, Name, Zeek;
        /// Who signed it.
        issuer: Box<[u8]> => "certificate.issuer", string, None, Name, Zeek;
        /// Time before which it is not valid.
        not_valid_before: Option<Seconds> => "certificate.not_valid_before", time, Seconds, Plain, Zeek;
        /// Time after which it is not valid.
        not_valid_after: Option<Seconds> => "certificate.not_valid_after", time, Seconds, Plain, Zeek;
        /// Algorithm of the key.
        key_alg: String => "certificate.key_alg", string, None, Word(ObjectName), Zeek;
        /// Algorithm of the signature.
        sig_alg: &'static str => "certificate.sig_alg", string, None, Word(ObjectName), Zeek;
        /// Kind of key: `rsa`, `dsa` or `ecdsa`.
        key_type: Option<&'static str> => "certificate.key_type", string, None, Plain, Zeek;
        /// Length of the key in bits.
        key_length: Option<u32> => "certificate.key_length", count, None, Plain, Zeek;
        /// Exponent of a key of RSA.
        exponent: Option<String> => "certificate.exponent", string, None, Plain, Zeek;
        /// Curve of a key of ECDSA.
        curve: Option<&'static str> => "certificate.curve", string, None, Plain, Zeek;
        /// Names of hosts that the certificate is for.
        san_dns: UnsetIfEmpty<Box<[u8]>> => "san.dns", vector[string], None, Name, Zeek;
        /// URIs that the certificate is for.
        san_uri: UnsetIfEmpty<Box<[u8]>> => "san.uri", vector[string], None, Name, Zeek;
        /// Mail addresses that the certificate is for.
        san_email: UnsetIfEmpty<Box<[u8]>> => "san.email", vector[string], None, User, Zeek;
        /// Addresses that the certificate is for.
        san_ip: UnsetIfEmpty<Address> => "san.ip", vector[addr], None, Address, Zeek;
        /// Whether its key may sign certificates.
        basic_constraints_ca: Option<bool> => "basic_constraints.ca", bool, None, Plain, Zeek;
        /// Certificates of authorities that may follow it in a chain.
        basic_constraints_path_len: Option<u64> => "basic_constraints.path_len", count, None, Plain, Zeek;
        /// Whether it is the first one that its side sent: that of the host itself.
        host_cert: bool => "host_cert", bool, None, Plain, Zeek;
        /// Whether the client sent it.
        client_cert: bool => "client_cert", bool, None, Plain, Zeek;
        /// SHA-1 of the certificate, by which lists of bad ones name it.
        sha1: Box<str> => "sha1", string, None, ContentHash, Netsniff;
    }
}

impl X509 {
    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let strings = [Some(&self.serial), Some(&self.key_alg), self.exponent.as_ref()];
        let names = [&self.san_dns.0, &self.san_uri.0, &self.san_email.0].into_iter().flatten();
        self.fingerprint.len()
            + self.sha1.len()
            + strings.into_iter().flatten().map(String::capacity).sum::<usize>()
            + self.subject.len()
            + self.issuer.len()
            + names.map(|name| size_of::<Box<[u8]>>() + name.len()).sum::<usize>()
            + self.san_ip.0.capacity() * size_of::<Address>()
    }
}
