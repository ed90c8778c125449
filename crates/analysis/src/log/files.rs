//! The `files` log: one row for each file that was carried, as Zeek writes it.

use netsniff_packet::{Address, Timestamp};

use crate::record::{Interval, Port};
use crate::uid::Uid;

crate::record! {
    /// One row for each file: the body of a message, an attachment, the content of a data connection.
    pub struct Files<'a> => "files" {
        /// Time of its first bytes.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        /// Identifier of the file, the same in every log.
        fuid: Uid => "fuid", string, None, Plain, Zeek;
        /// Identifier of the connection that carried it.
        uid: Option<Uid> => "uid", string, None, Plain, Zeek;
        /// Address of the connection's originator.
        id_orig_h: Option<Address> => "id.orig_h", addr, None, Address, Zeek;
        /// Port of the connection's originator.
        id_orig_p: Option<Port> => "id.orig_p", port, None, Plain, Zeek;
        /// Address of the connection's responder.
        id_resp_h: Option<Address> => "id.resp_h", addr, None, Address, Zeek;
        /// Port of the connection's responder.
        id_resp_p: Option<Port> => "id.resp_p", port, None, Plain, Zeek;
        /// The protocol that carried it, in Zeek's words.
        source: Option<&'a str> => "source", string, None, Plain, Zeek;
        /// Where in its carrier it was: the request of HTTP, the level of MIME.
        depth: u32 => "depth", count, None, Plain, Zeek;
        /// What else looked into it.
        analyzers: &'a [&'a str] => "analyzers", set[string], None, Plain, Zeek;
        /// Kind of file, by its first bytes.
        mime_type: Option<&'a str> => "mime_type", string, None, Plain, Zeek;
        /// The name that it came with.
        filename: Option<&'a [u8]> => "filename", string, None, FreeText, Zeek;
        /// Time from its first bytes to its last.
        duration: Interval => "duration", interval, Seconds, Plain, Zeek;
        /// Whether its sender's address is local.
        local_orig: Option<bool> => "local_orig", bool, None, Plain, Zeek;
        /// Whether the connection's originator sent it.
        is_orig: Option<bool> => "is_orig", bool, None, Plain, Zeek;
        /// Bytes of it that came.
        seen_bytes: u64 => "seen_bytes", count, Bytes, Plain, Zeek;
        /// Bytes that it should have, where the protocol told.
        total_bytes: Option<u64> => "total_bytes", count, Bytes, Plain, Zeek;
        /// Bytes that are missing in between.
        missing_bytes: u64 => "missing_bytes", count, Bytes, Plain, Zeek;
        /// Bytes that came twice.
        overflow_bytes: u64 => "overflow_bytes", count, Bytes, Plain, Zeek;
        /// Whether its end was never seen.
        timedout: bool => "timedout", bool, None, Plain, Zeek;
        /// Identifier of the file that it was taken out of.
        parent_fuid: Option<Uid> => "parent_fuid", string, None, Plain, Zeek;
        /// MD5 of its content, where that is complete and wanted.
        md5: Option<&'a str> => "md5", string, None, ContentHash, Zeek;
        /// SHA-1 of its content, where that is complete and wanted.
        sha1: Option<&'a str> => "sha1", string, None, ContentHash, Zeek;
        /// SHA-256 of its content, where that is complete and wanted.
        sha256: Option<&'a str> => "sha256", string, None, ContentHash, Zeek;
        /// Name of the file that its content was written to, where that was wanted.
        extracted: Option<&'a str> => "extracted", string, None, Plain, Zeek;
        /// Whether the content was longer than what may be written of a file.
        extracted_cutoff: Option<bool> => "extracted_cutoff", bool, None, Plain, Zeek;
        /// Size of that file: bytes that came, and zeros for those that are missing.
        extracted_size: Option<u64> => "extracted_size", count, Bytes, Plain, Zeek;
    }
}
