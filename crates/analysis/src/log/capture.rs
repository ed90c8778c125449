//! The `capture` log: the books, where every packet of a live capture went.

use netsniff_packet::Timestamp;

use crate::record::Interval;

crate::record! {
    /// One row for each interface and each of its rings, and one for the host, at every interval of a
    /// live capture and at its end. Counts are totals since the start; what the platform does not count
    /// is unset, never 0.
    pub struct Capture<'a> => "capture" {
        /// When it was counted.
        ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
        /// Since the rows before.
        interval: Interval => "interval", interval, Seconds, Plain, Netsniff;
        /// Whether it is the last one: traffic has been stopped and every ring is empty.
        is_final: bool => "final", bool, None, Plain, Netsniff;
        /// What the row is about.
        scope: Scope => "scope", enum, None, Plain, Netsniff;
        /// The interface.
        interface: Option<&'a str> => "interface", string, None, Plain, Netsniff;
        /// The ring, counted from 0.
        ring: Option<u64> => "ring", count, None, Plain, Netsniff;
        /// The state of the interface.
        link: Option<Link> => "link", enum, None, Plain, Netsniff;
        /// How often the interface went down.
        downs: Option<u64> => "downs", count, Times, Plain, Netsniff;
        /// Packets that came to the interface, and, where those are captured, that left it, by the
        /// interface's own counters.
        arrived: Option<u64> => "arrived", count, Packets, Plain, Netsniff;
        /// Packets among them for which the interface had no room (rx_missed_errors, rx_fifo_errors,
        /// rx_over_errors).
        lost_interface: Option<u64> => "lost_interface", count, Packets, Plain, Netsniff;
        /// Packets that the kernel dropped between interface and sockets (softnet_stat, second
        /// column): of all interfaces, so only in the host's row.
        lost_backlog: Option<u64> => "lost_backlog", count, Packets, Plain, Netsniff;
        /// Packets that the filter refused in the kernel: counted by an XDP program, or by a packet socket's
        /// filter with `CAP_BPF`; unset where nobody counts.
        filtered: Option<u64> => "filtered", count, Packets, Plain, Netsniff;
        /// Packets for which the ring had no room (tp_drops of PACKET_STATISTICS, rx_dropped and
        /// rx_ring_full of XDP_STATISTICS, or the count of an XDP program that copies).
        ring_dropped: Option<u64> => "ring_dropped", count, Packets, Plain, Netsniff;
        /// Packets that came out of the ring.
        delivered: Option<u64> => "delivered", count, Packets, Plain, Netsniff;
        /// What is left of those that arrived after all of the above; unset while one of them is, and where
        /// other processes may have taken some (`--fanout-group`).
        unexplained: Option<i64> => "unexplained", int, Packets, Plain, Netsniff;
        /// Packets that may have arrived between the readings of two counters: by so many any
        /// difference may be off.
        unexplained_bound: Option<u64> => "unexplained_bound", count, Packets, Plain, Netsniff;
        /// Delivered packets that were analysed.
        analysed: Option<u64> => "analysed", count, Packets, Plain, Netsniff;
        /// Analysed packets whose flows were looked at with all their protocols.
        at_protocols: Option<u64> => "at_protocols", count, Packets, Plain, Netsniff;
        /// Analysed packets of which TCP was followed, but no protocol above it.
        at_tcp: Option<u64> => "at_tcp", count, Packets, Plain, Netsniff;
        /// Analysed packets that were counted for their flows.
        at_flows: Option<u64> => "at_flows", count, Packets, Plain, Netsniff;
        /// Analysed packets that were counted alone.
        at_packets: Option<u64> => "at_packets", count, Packets, Plain, Netsniff;
        /// How often new flows got less depth, since the ring filled up.
        shed: Option<u64> => "shed", count, Times, Plain, Netsniff;
        /// For how long.
        shed_time: Option<Interval> => "shed_time", interval, Seconds, Plain, Netsniff;
        /// Delivered packets that were recorded.
        recorded: Option<u64> => "recorded", count, Packets, Plain, Netsniff;
        /// Delivered packets that the recorder refused, since writing fell behind.
        unrecorded: Option<u64> => "unrecorded", count, Packets, Plain, Netsniff;
        /// Delivered packets that the hand-off to the analysis refused (`--apart`).
        refused: Option<u64> => "refused", count, Packets, Plain, Netsniff;
        /// Delivered packets that the filter refused in user space.
        filtered_late: Option<u64> => "filtered_late", count, Packets, Plain, Netsniff;
        /// Packets behind the last one that was wanted (`--count`).
        beyond_end: Option<u64> => "beyond_end", count, Packets, Plain, Netsniff;
        /// Packets in the ring, those that wait for earlier ones, and those on their way to the analysis.
        in_flight: Option<u64> => "in_flight", count, Packets, Plain, Netsniff;
        /// Share of the packets that arrived and were lost before the socket.
        kernel_loss: Option<f64> => "kernel_loss", double, None, Plain, Netsniff;
        /// Share of the packets that came to the socket and for which the ring had no room, or a
        /// hand-off.
        application_loss: Option<f64> => "application_loss", double, None, Plain, Netsniff;
        /// Whether the capture can be believed.
        verdict: Option<CaptureVerdict> => "verdict", enum, None, Plain, Netsniff;
        /// Bytes on the wire of the delivered packets.
        bytes: Option<u64> => "bytes", count, Bytes, Plain, Netsniff;
        /// Packets that were cut to the snapshot length.
        cut: Option<u64> => "cut", count, Packets, Plain, Netsniff;
        /// Analysed packets whose headers were cut, too, each counted once.
        cut_headers: Option<u64> => "cut_headers", count, Packets, Plain, Netsniff;
        /// Packets larger than the MTU: segments that offloading had merged or not yet cut.
        super_frames: Option<u64> => "super_frames", count, Packets, Plain, Netsniff;
        /// Packets of this machine whose checksums the interface completes.
        partial_checksums: Option<u64> => "partial_checksums", count, Packets, Plain, Netsniff;
        /// Packets whose VLAN tag was put back.
        retagged: Option<u64> => "retagged", count, Packets, Plain, Netsniff;
        /// Packets that came out of the ring behind one with a later stamp.
        inversions: Option<u64> => "inversions", count, Packets, Plain, Netsniff;
        /// By how much at most.
        inversion_max: Option<Interval> => "inversion_max", interval, Seconds, Plain, Netsniff;
        /// Packets that came too late to be put in order, and were analysed all the same.
        late: Option<u64> => "late", count, Packets, Plain, Netsniff;
        /// Bytes of memory that wait behind holes of TCP streams when it is counted: segments that came, until what is
        /// missing before them comes or is given up. Unset where a ring does not answer in time.
        held_bytes: Option<u64> => "held_bytes", count, Bytes, Plain, Netsniff;
        /// The most of them at once since the rows before, looked at behind every segment. Unset where `held_bytes` is, and
        /// for an interface with several rings, whose peaks lie at different times.
        held_bytes_max: Option<u64> => "held_bytes_max", count, Bytes, Plain, Netsniff;
        /// Holes of TCP streams that were given up, since more waited behind them than may.
        holes_given_up: Option<u64> => "holes_given_up", count, None, Plain, Netsniff;
        /// Packets whose stamp was off by more than a second and was replaced.
        wrong_stamps: Option<u64> => "wrong_stamps", count, Packets, Plain, Netsniff;
        /// Packets that the ring described in a way that makes no sense.
        malformed: Option<u64> => "malformed", count, Packets, Plain, Netsniff;
        /// The way packets are captured.
        backend: Option<&'a str> => "backend", string, None, Plain, Netsniff;
        /// Blocks or frames that the ring has.
        ring_units: Option<u64> => "ring_units", count, None, Plain, Netsniff;
        /// Bytes of each of them.
        ring_unit_bytes: Option<u64> => "ring_unit_bytes", count, Bytes, Plain, Netsniff;
        /// How many of them are in use now.
        ring_used: Option<u64> => "ring_used", count, None, Plain, Netsniff;
        /// The most that were in use at a time.
        ring_high_water: Option<u64> => "ring_high_water", count, None, Plain, Netsniff;
        /// How often the ring became full.
        ring_freezes: Option<u64> => "ring_freezes", count, Times, Plain, Netsniff;
        /// Bytes of a packet that are kept.
        snaplen: Option<u64> => "snaplen", count, Bytes, Plain, Netsniff;
        /// One packet of so many flows is taken; 1 for all.
        sampling: Option<u64> => "sampling", count, None, Plain, Netsniff;
        /// Which packets are captured: in, out or both.
        direction: Option<&'a str> => "direction", string, None, Plain, Netsniff;
        /// The fan-out group that the ring is a member of.
        fanout_group: Option<u64> => "fanout_group", count, None, Plain, Netsniff;
        /// Groups of packets that came out of the ring.
        groups: Option<u64> => "groups", count, Times, Plain, Netsniff;
        /// Times that the ring was found empty, after it had not been.
        empty: Option<u64> => "empty", count, Times, Plain, Netsniff;
        /// Calls of poll(2).
        polls: Option<u64> => "polls", count, Times, Plain, Netsniff;
        /// Those that ended since packets came.
        wakeups: Option<u64> => "wakeups", count, Times, Plain, Netsniff;
        /// Times that the thread slept for a time of its own choice.
        naps: Option<u64> => "naps", count, Times, Plain, Netsniff;
        /// Flows that are open.
        flows: Option<u64> => "flows", count, Flows, Plain, Netsniff;
        /// Flows that began on a ring while another ring of the interface had them, or had had them up to a
        /// second before: their packets are told apart. Unset where other processes share the packets, and where
        /// there are too many flows to tell.
        flow_split: Option<u64> => "flow_split", count, Flows, Plain, Netsniff;
        /// Rows of logs for which the queue to the writer had no room. In the host's row those of all rings, with those that
        /// the output did not take, a full disk for one.
        refused_rows: Option<u64> => "refused_rows", count, None, Plain, Netsniff;
        /// Times that the kernel had more packets to receive than it may at once (softnet_stat, third
        /// column): of all interfaces.
        time_squeezes: Option<u64> => "time_squeezes", count, Times, Plain, Netsniff;
    }
}

crate::words! {
    /// What a row is about.
    pub enum Scope {
        /// An interface: the sums over its rings, with the interface's own counters.
        Interface => "interface",
        /// One ring.
        Ring => "ring",
        /// The host: what is counted for all interfaces together.
        Host => "host",
    }
}

crate::words! {
    /// The state of an interface.
    pub enum Link {
        /// It is up.
        Up => "up",
        /// It is down.
        Down => "down",
        /// It is gone.
        Gone => "gone",
    }
}

crate::words! {
    /// Whether a capture can be believed.
    pub enum CaptureVerdict {
        /// Hardly anything was lost: at most one packet of 200.
        Good => "good",
        /// Statistics of some flows are wrong: at most one packet of 100 was lost.
        Degraded => "degraded",
        /// More was lost: most statistics of long flows are wrong.
        Bad => "bad",
        /// Nobody can tell.
        Unknown => "unknown",
    }
}

impl CaptureVerdict {
    /// The verdict on a share of packets that were lost. The thresholds are those of CAIA-TR-051004A, which
    /// recommends against analysis where more than 1 % is lost, and finds less than 0.5 % usable.
    #[must_use]
    pub fn of(lost: Option<f64>) -> Self {
        match lost {
            None => Self::Unknown,
            Some(lost) if lost <= 0.005 => Self::Good,
            Some(lost) if lost <= 0.01 => Self::Degraded,
            Some(_) => Self::Bad,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_have_the_thresholds_of_the_report() {
        let of = |percent: f64| CaptureVerdict::of(Some(percent / 100.0));
        assert_eq!([of(0.0), of(0.2), of(0.5)], [CaptureVerdict::Good; 3]);
        assert_eq!([of(0.7), of(1.0)], [CaptureVerdict::Degraded; 2]);
        assert_eq!([of(1.01), of(2.0), of(100.0)], [CaptureVerdict::Bad; 3]);
        assert_eq!(CaptureVerdict::of(None), CaptureVerdict::Unknown);
    }
}
