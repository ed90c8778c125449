//! The `rtt` log: round-trip times over the life of a TCP connection.

use netsniff_packet::{Address, Timestamp};

use crate::key::uid::Uid;
use crate::record::{Interval, Port};

crate::record! {
    /// One row for each TCP connection, direction and sampling interval in which there were
    /// samples.
    #[transport(Tcp)]
    pub struct Rtt => "rtt" {
        /// When the interval began: a multiple of its length since the epoch.
        ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
        /// Identifier of the connection, the same in every log.
        uid: Uid => "uid", string, None, Plain, Netsniff;
        /// Address of the originator.
        id_orig_h: Address => "id.orig_h", addr, None, Address, Netsniff;
        /// Port of the originator.
        id_orig_p: Port => "id.orig_p", port, None, Plain, Netsniff;
        /// Address of the responder.
        id_resp_h: Address => "id.resp_h", addr, None, Address, Netsniff;
        /// Port of the responder.
        id_resp_p: Port => "id.resp_p", port, None, Plain, Netsniff;
        /// Whether the originator's data was timed, from the tap to the responder and back; else
        /// it was the responder's.
        is_orig: bool => "is_orig", bool, None, Plain, Netsniff;
        /// RTT samples in the interval, taken as in the log `tcp`.
        samples: u32 => "samples", count, Times, Plain, Netsniff;
        /// Shortest RTT of the interval.
        rtt_min: Interval => "rtt_min", interval, Seconds, Plain, Netsniff;
        /// Mean RTT of the interval.
        rtt_avg: Interval => "rtt_avg", interval, Seconds, Plain, Netsniff;
        /// Longest RTT of the interval.
        rtt_max: Interval => "rtt_max", interval, Seconds, Plain, Netsniff;
        /// Smoothed difference of consecutive samples at the end of the interval, by the formula of
        /// RFC 3550, 6.4.1; it continues from interval to interval.
        jitter: Option<Interval> => "jitter", interval, Seconds, Plain, Netsniff;
    }
}
