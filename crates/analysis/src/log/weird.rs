//! The `weird` log: what no standard foresees, by name.

use netsniff_packet::{Address, Timestamp};

use crate::key::uid::Uid;
use crate::record::Port;

crate::record! {
    /// One row for each oddity: traffic that breaks its protocol's rules, under Zeek's name for it. What headers show has
    /// a row the first time that a side of a connection shows it; the summary counts all.
    pub struct Weird<'a> => "weird" {
        /// Time of the packet.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        /// Identifier of the connection, if the oddity belongs to one.
        uid: Option<Uid> => "uid", string, None, Plain, Zeek;
        /// Address of the originator.
        id_orig_h: Option<Address> => "id.orig_h", addr, None, Address, Zeek;
        /// Port of the originator.
        id_orig_p: Option<Port> => "id.orig_p", port, None, Plain, Zeek;
        /// Address of the responder.
        id_resp_h: Option<Address> => "id.resp_h", addr, None, Address, Zeek;
        /// Port of the responder.
        id_resp_p: Option<Port> => "id.resp_p", port, None, Plain, Zeek;
        /// Name of the oddity.
        name: &'a str => "name", string, None, Plain, Zeek;
        /// What more is known, such as the layer and offset, or the bytes at fault.
        addl: Option<&'a [u8]> => "addl", string, None, FreeText, Zeek;
        /// Whether a notice was raised.
        notice: bool => "notice", bool, None, Plain, Zeek;
        /// Name of the process that saw it.
        peer: &'a str => "peer", string, None, Plain, Zeek;
        /// The analyser that saw it.
        source: Option<&'a str> => "source", string, None, Plain, Zeek;
    }
}
