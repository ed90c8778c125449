//! The `ntp` log: one row for each NTP message, as Zeek writes it.

use netsniff_packet::{Address, Timestamp};

use crate::record::{Interval, Port};
use crate::uid::Uid;

crate::record! {
    /// One row for each message of the Network Time Protocol. Messages that control or query a
    /// server (modes 6 and 7) show in `service` of `conn` only.
    pub struct Ntp<'a> => "ntp" {
        /// Time of the message.
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
        /// Version of the protocol.
        version: u8 => "version", count, None, Plain, Zeek;
        /// Who speaks: 1 and 2 peers, 3 a client, 4 a server, 5 a server that broadcasts; 0 is
        /// reserved, and such a message tells nothing more.
        mode: u8 => "mode", count, None, Plain, Zeek;
        /// Distance from a reference clock; 0 is not synchronised, 1 has the clock itself.
        stratum: Option<u8> => "stratum", count, None, Plain, Zeek;
        /// The longest time between two messages of the sender; unset beyond 2^33 seconds.
        poll: Option<Interval> => "poll", interval, Seconds, Plain, Zeek;
        /// Precision of the sender's clock; unset beyond 2^33 seconds.
        precision: Option<Interval> => "precision", interval, Seconds, Plain, Zeek;
        /// Round-trip time to the reference clock.
        root_delay: Option<Interval> => "root_delay", interval, Seconds, Plain, Zeek;
        /// How far the reference clock may be off.
        root_disp: Option<Interval> => "root_disp", interval, Seconds, Plain, Zeek;
        /// The reference: of stratum 0 a code for why, of stratum 1 the kind of clock, else the
        /// address of the server, for IPv6 the first four bytes of its MD5 hash.
        ref_id: Option<&'a [u8]> => "ref_id", string, None, Address, Zeek;
        /// When the sender's clock was last set; 0 seconds where it never was.
        ref_time: Option<Timestamp> => "ref_time", time, Seconds, Plain, Zeek;
        /// When the message that this one answers left, by the clock of who asked.
        org_time: Option<Timestamp> => "org_time", time, Seconds, Plain, Zeek;
        /// When that message arrived, by the clock of who answers.
        rec_time: Option<Timestamp> => "rec_time", time, Seconds, Plain, Zeek;
        /// When this message left, by the sender's clock.
        xmt_time: Option<Timestamp> => "xmt_time", time, Seconds, Plain, Zeek;
        /// Number of extension fields.
        num_exts: u64 => "num_exts", count, None, Plain, Zeek;
    }
}
