//! The `series_conn` log: the busiest connections of each interval of time.

use netsniff_packet::{Address, Timestamp};

use crate::key::uid::Uid;
use crate::record::{Interval, Port, Proto};

crate::record! {
    /// What a connection sent in an interval of the log `series`, also while it is open: a row for each of those with the most
    /// bytes, and one for all others. Counts of rows with the same `ts` and `uid` add up, and those of all rows add up to
    /// what the row `total` of `series` has.
    pub struct SeriesConn => "series_conn" {
        /// When the interval begins: a multiple of its length since the epoch.
        ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
        /// Length of the interval.
        interval: Interval => "interval", interval, Seconds, Plain, Netsniff;
        /// Identifier of the connection; unset in the row of all others.
        uid: Option<Uid> => "uid", string, None, Plain, Netsniff;
        /// Address of the originator, as it was known when the interval was told.
        id_orig_h: Option<Address> => "id.orig_h", addr, None, Address, Netsniff;
        /// Port of the originator.
        id_orig_p: Option<Port> => "id.orig_p", port, None, Plain, Netsniff;
        /// Address of the responder.
        id_resp_h: Option<Address> => "id.resp_h", addr, None, Address, Netsniff;
        /// Port of the responder.
        id_resp_p: Option<Port> => "id.resp_p", port, None, Plain, Netsniff;
        /// Transport protocol.
        proto: Option<Proto> => "proto", enum, None, Plain, Netsniff;
        /// Application protocols that its content had shown when the interval was told, or when it ended before that.
        service: Option<Box<str>> => "service", string, None, Plain, Netsniff;
        /// Whether it is the row of all that have no row of their own.
        is_other: bool => "other", bool, None, Plain, Netsniff;
        /// How many have no row of their own.
        others: Option<u64> => "others", count, None, Plain, Netsniff;
        /// Whether the interval was told before, so that this is added to it.
        is_late: bool => "late", bool, None, Plain, Netsniff;
        /// Connections whose first packet lies in the interval: 1 or 0 of a single one.
        new_flows: u64 => "new_flows", count, Flows, Plain, Netsniff;
        /// Packets that originators sent.
        orig_pkts: u64 => "orig_pkts", count, Packets, Plain, Netsniff;
        /// Bytes of IP in them, headers included.
        orig_ip_bytes: u64 => "orig_ip_bytes", count, Bytes, Plain, Netsniff;
        /// Packets that responders sent.
        resp_pkts: u64 => "resp_pkts", count, Packets, Plain, Netsniff;
        /// Bytes of IP in them, headers included.
        resp_ip_bytes: u64 => "resp_ip_bytes", count, Bytes, Plain, Netsniff;
        /// TCP segments that were sent again, as in `series`.
        retransmitted: Option<i64> => "retransmitted", int, Segments, Plain, Netsniff;
        /// Round-trip times of TCP data to responders that ended in the interval.
        rtt_samples: Option<u64> => "rtt_samples", count, Times, Plain, Netsniff;
        /// The shortest of them.
        rtt_min: Option<Interval> => "rtt_min", interval, Seconds, Plain, Netsniff;
        /// Their median, off by 1.6 % at most.
        rtt_p50: Option<Interval> => "rtt_p50", interval, Seconds, Plain, Netsniff;
        /// The longest of them.
        rtt_max: Option<Interval> => "rtt_max", interval, Seconds, Plain, Netsniff;
    }
}
