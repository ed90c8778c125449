//! The `ocsp` log: one row for each certificate whose status a reply of OCSP tells, as Zeek writes it.

use netsniff_packet::Timestamp;

use crate::key::uid::Uid;
use crate::record::Seconds;

crate::record! {
    /// One row for each status in a reply of OCSP (RFC 6960), which HTTP carries, or a handshake of TLS
    /// beside the certificate. Rows are joined to those of `files` by `id`.
    pub(crate) struct Ocsp => "ocsp" {
        /// Time of the reply's first bytes.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        /// Identifier of the reply, as of a file.
        id: Uid => "id", string, None, Plain, Zeek;
        /// Algorithm of the hashes.
        hash_algorithm: String => "hashAlgorithm", string, None, Word(ObjectName), Zeek;
        /// Hash of the issuer's name, in hexadecimal digits.
        issuer_name_hash: String => "issuerNameHash", string, None, ContentHash, Zeek;
        /// Hash of the issuer's key, in hexadecimal digits.
        issuer_key_hash: String => "issuerKeyHash", string, None, ContentHash, Zeek;
        /// Serial number of the certificate, in hexadecimal digits.
        serial_number: String => "serialNumber", string, None, ContentHash, Zeek;
        /// What became of the certificate: `good`, `revoked` or `unknown`.
        cert_status: &'static str => "certStatus", string, None, Plain, Zeek;
        /// When it was revoked.
        revoketime: Option<Seconds> => "revoketime", time, Seconds, Plain, Zeek;
        /// Why it was revoked.
        revokereason: Option<&'static str> => "revokereason", string, None, Plain, Zeek;
        /// When the status was known to be right.
        this_update: Option<Seconds> => "thisUpdate", time, Seconds, Plain, Zeek;
        /// When there will be news at the latest.
        next_update: Option<Seconds> => "nextUpdate", time, Seconds, Plain, Zeek;
    }
}
