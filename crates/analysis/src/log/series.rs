//! The `series` log: what passed in each interval of time.

use netsniff_packet::{Address, Timestamp};

use super::capture::CaptureVerdict;
use crate::record::Interval;

crate::record! {
    /// What passed in an interval, by the packets' own stamps: a row for all of it, and one for each interface, each service
    /// and each of the hosts with the most bytes. Counts of rows with the same `ts`, `kind` and name add up: what comes late,
    /// and what is known late, has rows of its own.
    pub struct Series => "series" {
        /// When the interval begins: a multiple of its length since the epoch.
        ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
        /// Length of the interval.
        interval: Interval => "interval", interval, Seconds, Plain, Netsniff;
        /// What the row is about.
        kind: Kind => "kind", enum, None, Plain, Netsniff;
        /// The interface: its name, or its number in the input, counted from 0.
        interface: Option<Box<str>> => "interface", string, None, Plain, Netsniff;
        /// Application protocols that the content of the flows had shown when the interval was told, or when they ended before
        /// that. Unset for flows of which nothing was known then.
        service: Option<Box<str>> => "service", string, None, Plain, Netsniff;
        /// The host.
        host: Option<Address> => "host", addr, None, Address, Netsniff;
        /// Whether it is the row of all that have no row of their own: with it, the rows of a kind add up to all.
        is_other: bool => "other", bool, None, Plain, Netsniff;
        /// How many have no row of their own. Unset where there were more than are told apart.
        others: Option<u64> => "others", count, None, Plain, Netsniff;
        /// Whether the interval was told before, so that this is added to it.
        is_late: bool => "late", bool, None, Plain, Netsniff;
        /// Packets, whatever is in them.
        packets: Option<u64> => "packets", count, Packets, Plain, Netsniff;
        /// Bytes of these packets on the wire, from the first header of the link.
        bytes: Option<u64> => "bytes", count, Bytes, Plain, Netsniff;
        /// Packets that the host sent, by the outermost IP header.
        sent_packets: Option<u64> => "sent_packets", count, Packets, Plain, Netsniff;
        /// Bytes of these packets on the wire.
        sent_bytes: Option<u64> => "sent_bytes", count, Bytes, Plain, Netsniff;
        /// Packets that were sent to the host, by the outermost IP header.
        received_packets: Option<u64> => "received_packets", count, Packets, Plain, Netsniff;
        /// Bytes of these packets on the wire.
        received_bytes: Option<u64> => "received_bytes", count, Bytes, Plain, Netsniff;
        /// Packets of flows that originators sent, as in `conn`.
        orig_pkts: Option<u64> => "orig_pkts", count, Packets, Plain, Netsniff;
        /// Bytes of IP in them, headers included.
        orig_ip_bytes: Option<u64> => "orig_ip_bytes", count, Bytes, Plain, Netsniff;
        /// Packets of flows that responders sent, as in `conn`.
        resp_pkts: Option<u64> => "resp_pkts", count, Packets, Plain, Netsniff;
        /// Bytes of IP in them, headers included.
        resp_ip_bytes: Option<u64> => "resp_ip_bytes", count, Bytes, Plain, Netsniff;
        /// Flows whose first packet lies in the interval; of a host those at either end.
        new_flows: Option<u64> => "new_flows", count, Flows, Plain, Netsniff;
        /// Flows with packets in the interval that did not come late.
        active_flows: Option<u64> => "active_flows", count, Flows, Plain, Netsniff;
        /// Flows that are open when the interval is told, which is soon behind its end. Unset where time went on over several
        /// intervals at once, at the end of the input, and with several rings.
        open_flows: Option<u64> => "open_flows", count, Flows, Plain, Netsniff;
        /// TCP segments that were sent again, as the log `tcp` counts them (`retx_rto`, `retx_fast`, `retx_spurious`); of a
        /// host those that it sent.
        retransmitted: Option<i64> => "retransmitted", int, Segments, Plain, Netsniff;
        /// Payload bytes of TCP that the network lost, as the log `gaps` lists them, at the time that they have there. It is
        /// known when the connection ends. Of a host what it sent.
        network_lost: Option<u64> => "network_lost", count, Bytes, Plain, Netsniff;
        /// Payload bytes of TCP that the capture lost, likewise.
        capture_lost: Option<u64> => "capture_lost", count, Bytes, Plain, Netsniff;
        /// Payload bytes of TCP that are missing, and nothing tells who lost them, likewise.
        unknown_lost: Option<u64> => "unknown_lost", count, Bytes, Plain, Netsniff;
        /// Packets that the capture lost, as it tells itself, at the time that the log `gaps` has. Unset where nothing told of
        /// a loss in the interval, and the capture is not known to tell of every one.
        dropped: Option<u64> => "dropped", count, Packets, Plain, Netsniff;
        /// Whether the packets of the interval can be believed, by the share of all that was dropped as far as it was told by
        /// then: of rows with the same `ts` the last one counts.
        verdict: Option<CaptureVerdict> => "verdict", enum, None, Plain, Netsniff;
        /// Round-trip times of TCP data that ended in the interval: from the tap to the host and back, or else to responders.
        rtt_samples: Option<u64> => "rtt_samples", count, Times, Plain, Netsniff;
        /// The shortest of them.
        rtt_min: Option<Interval> => "rtt_min", interval, Seconds, Plain, Netsniff;
        /// Their median, off by 1.6 % at most, as are the other percentiles.
        rtt_p50: Option<Interval> => "rtt_p50", interval, Seconds, Plain, Netsniff;
        /// What 90 % of them do not exceed.
        rtt_p90: Option<Interval> => "rtt_p90", interval, Seconds, Plain, Netsniff;
        /// What 99 % of them do not exceed.
        rtt_p99: Option<Interval> => "rtt_p99", interval, Seconds, Plain, Netsniff;
        /// The longest of them.
        rtt_max: Option<Interval> => "rtt_max", interval, Seconds, Plain, Netsniff;
        /// Queries of DNS that were answered by an error, at the time of the query (`rcode` in the log `dns` is not 0).
        dns_errors: Option<u64> => "dns_errors", count, None, Plain, Netsniff;
        /// Messages of DNS without an answer, at the time that the log `dns` has (`rcode` is unset there).
        dns_unanswered: Option<u64> => "dns_unanswered", count, None, Plain, Netsniff;
        /// Handshakes of TLS that were not completed, at the time that the log `ssl` has.
        tls_failures: Option<u64> => "tls_failures", count, None, Plain, Netsniff;
    }
}

crate::words! {
    /// What a row of the series is about.
    pub enum Kind {
        /// All packets.
        Total => "total",
        /// Those of an interface.
        Interface => "interface",
        /// Those of flows by what their content shows.
        Service => "service",
        /// Those that a host sent or received.
        Host => "host",
    }
}

impl Series {
    /// A row without any figure.
    pub(crate) const fn of(ts: Timestamp, interval: Interval, kind: Kind, is_late: bool) -> Self {
        Self {
            ts,
            interval,
            kind,
            interface: None,
            service: None,
            host: None,
            is_other: false,
            others: None,
            is_late,
            packets: None,
            bytes: None,
            sent_packets: None,
            sent_bytes: None,
            received_packets: None,
            received_bytes: None,
            orig_pkts: None,
            orig_ip_bytes: None,
            resp_pkts: None,
            resp_ip_bytes: None,
            new_flows: None,
            active_flows: None,
            open_flows: None,
            retransmitted: None,
            network_lost: None,
            capture_lost: None,
            unknown_lost: None,
            dropped: None,
            verdict: None,
            rtt_samples: None,
            rtt_min: None,
            rtt_p50: None,
            rtt_p90: None,
            rtt_p99: None,
            rtt_max: None,
            dns_errors: None,
            dns_unanswered: None,
            tls_failures: None,
        }
    }
}
