//! The `intel` log: what was seen of the indicators that somebody listed.

use netsniff_packet::{Address, Timestamp};

use crate::record::Port;

crate::record! {
    /// One row for each sighting of an indicator of `--intel`.
    pub struct Intel => "intel" {
        /// Time of the row in which it was seen.
        ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
        /// Identifier of the connection, if it was seen in one.
        uid: Option<String> => "uid", string, None, Plain, Zeek;
        /// Address of the originator.
        id_orig_h: Option<Address> => "id.orig_h", addr, None, Address, Zeek;
        /// Port of the originator.
        id_orig_p: Option<Port> => "id.orig_p", port, None, Plain, Zeek;
        /// Address of the responder.
        id_resp_h: Option<Address> => "id.resp_h", addr, None, Address, Zeek;
        /// Port of the responder.
        id_resp_p: Option<Port> => "id.resp_p", port, None, Plain, Zeek;
        /// What was seen. With pseudonyms it is told of addresses and domains alone.
        seen_indicator: Option<Box<[u8]>> => "seen.indicator", string, None, Name, Zeek;
        /// Type of what was seen.
        seen_indicator_type: &'static str => "seen.indicator_type", enum, None, Plain, Zeek;
        /// Where it was seen.
        seen_where: &'static str => "seen.where", enum, None, Plain, Zeek;
        /// Name of the process that saw it.
        seen_node: &'static str => "seen.node", string, None, Plain, Zeek;
        /// Types of the indicators that match.
        matched: Vec<&'static str> => "matched", set[enum], None, Plain, Zeek;
        /// Sources of these indicators, `meta.source` of the file.
        sources: Vec<String> => "sources", set[string], None, Plain, Zeek;
        /// Identifier of the file, if it was seen in one.
        fuid: Option<String> => "fuid", string, None, Plain, Zeek;
        /// Type of that file.
        file_mime_type: Option<Box<[u8]>> => "file_mime_type", string, None, FreeText, Zeek;
    }
}

impl Intel {
    /// Whether an address or a domain was seen: their pseudonyms are those of other logs.
    pub(crate) fn is_of_hosts(&self) -> bool {
        matches!(self.seen_indicator_type, "Intel::ADDR" | "Intel::DOMAIN")
    }
}
