//! The `files` log: one row for each file that was carried, as Zeek writes it.

use netsniff_packet::Timestamp;

use super::kept::Kept;
use crate::key::uid::Uid;
use crate::record::{Connection, Interval};

crate::record! {
    /// One row for each file: the body of a message, an attachment, the content of a data connection.
    pub(crate) struct Files => "files" {
        /// Time of its first bytes.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        /// Identifier of the file, the same in every log.
        fuid: Uid => "fuid", string, None, Plain, Zeek;
        connection Zeek, Self::place;
        /// The protocol that carried it, in Zeek's words.
        source: Option<&'static str> => "source", string, None, Plain, Zeek;
        /// Where in its carrier it was: the request of HTTP, the level of MIME.
        depth: u32 => "depth", count, None, Plain, Zeek;
        /// What else looked into it.
        analyzers: &'static [&'static str] => "analyzers", set[string], None, Plain, Zeek;
        /// Kind of file, by its first bytes.
        mime_type: Option<&'static str> => "mime_type", string, None, Plain, Zeek;
        /// The name that it came with.
        filename: Option<Box<[u8]>> => "filename", string, None, FreeText, Zeek;
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
        md5: Option<String> => "md5", string, None, ContentHash, Zeek;
        /// SHA-1 of its content, where that is complete and wanted.
        sha1: Option<String> => "sha1", string, None, ContentHash, Zeek;
        /// SHA-256 of its content, where that is complete and wanted.
        sha256: Option<String> => "sha256", string, None, ContentHash, Zeek;
        /// Whether only its begin was decoded (`--bodies head`): `seen_bytes` of it. `total_bytes` is what the trailer of gzip
        /// tells then, modulo 4 GiB.
        partly_decoded: bool => "partly_decoded", bool, None, Plain, Netsniff;
        joined Kept;
    }
}

impl Files {
    /// Sets whether the end that sent it is local.
    fn place(&mut self, connection: &Connection) {
        let is_orig = self.is_orig == Some(true);
        let [originator, responder] = connection.local;
        self.local_orig = Some(if is_orig { originator } else { responder });
    }
}
