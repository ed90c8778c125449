//! One line of the books, and its arithmetic.

use netsniff_analysis::Depth;
use netsniff_analysis::log::Capture;
use netsniff_analysis::log::capture::{CaptureVerdict, Link, Scope};
use netsniff_analysis::record::Interval;
use netsniff_capture::backend::RingFacts;
use netsniff_packet::Timestamp;

use crate::live::{HeldBehindHoles, LinkState, RingReport};

/// What a line is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BooksScope {
    /// An interface, with the sums over its rings.
    Interface(String),
    /// A ring of an interface.
    Ring(String, usize),
    /// The host dropped packets before the ring.
    Host,
}

/// One line: totals since the start.
#[derive(Clone, Debug)]
pub struct BooksLine {
    /// What it is about.
    pub place: BooksScope,
    /// The state of the interface.
    pub link: Option<LinkState>,
    /// Packets that came to the interface.
    pub arrived: Option<u64>,
    /// Packets among them that the interface had no room for.
    pub lost_interface: Option<u64>,
    /// Packets that the kernel dropped before the sockets; the host's.
    pub lost_backlog: Option<u64>,
    /// Times that the kernel's time to receive was spent; the host's.
    pub time_squeezes: Option<u64>,
    /// Packets that the filter refused in the kernel.
    pub filtered: Option<u64>,
    /// Packets that may have arrived between the readings of two counters.
    pub bound: Option<u64>,
    /// Packets that were recorded.
    pub recorded: Option<u64>,
    /// Packets that the recorder refused.
    pub unrecorded: Option<u64>,
    /// Rows of all logs that were refused, whoever made them and whatever was in the way; the host's.
    pub refused_rows: Option<u64>,
    /// What the rings tell; `None` for the host.
    pub report: Option<RingReport>,
    /// What the rings are; those of an interface have the first one's.
    pub facts: Option<RingFacts>,
    /// Whether other processes may have taken packets that arrived: members of a fan-out group that was asked for by its number.
    pub is_shared: bool,
    /// One packet of so many flows is taken.
    pub sampling: u64,
}

impl BooksLine {
    /// Packets that came out of the rings.
    #[must_use]
    pub fn delivered(&self) -> Option<u64> {
        self.report.as_ref().map(|report| report.counters.delivered)
    }

    /// Packets for which the rings had no room.
    #[must_use]
    pub fn ring_dropped(&self) -> Option<u64> {
        self.report.as_ref().and_then(|report| report.counters.dropped)
    }

    /// Packets that the kernel put into the rings and that did not come out yet.
    #[must_use]
    pub fn in_ring(&self) -> Option<u64> {
        let counters = &self.report.as_ref()?.counters;
        Some(counters.accepted?.saturating_sub(counters.delivered))
    }

    /// Packets that got another stamp, since theirs was wrong.
    #[must_use]
    pub fn wrong_stamps(&self) -> u64 {
        self.report.as_ref().map_or(0, |report| report.counters.wrong_stamps)
    }

    /// Packets that came out of the rings and that a hand-off behind them refused: to the analysis, or to the
    /// recorder.
    #[must_use]
    pub fn refused(&self) -> u64 {
        let by_analysis = self.report.as_ref().map_or(0, |report| report.refused);
        by_analysis.saturating_add(self.unrecorded.unwrap_or(0))
    }

    /// Packets that were analysed, and whose headers the snap length cut.
    #[must_use]
    pub fn cut_headers(&self) -> Option<u64> {
        let report = self.report.as_ref().filter(|report| report.analysed.is_some());
        report.map(|report| report.cut_headers.packets())
    }

    /// What waits behind holes of TCP streams.
    #[must_use]
    pub fn held(&self) -> Option<HeldBehindHoles> {
        self.report.as_ref().and_then(|report| report.held)
    }

    /// Holes of TCP streams that were given up, since more waited behind them than may.
    #[must_use]
    pub fn holes_given_up(&self) -> Option<u64> {
        let report = self.report.as_ref().filter(|report| report.analysed.is_some());
        report.map(|report| report.holes_given_up)
    }

    /// Packets in the rings, and those that wait for earlier ones.
    #[must_use]
    pub fn in_flight(&self) -> Option<u64> {
        Some(self.in_ring()? + self.report.as_ref()?.waiting)
    }

    /// What is left of those that arrived; `None` while any of the others is unknown, and so is what other processes took.
    #[must_use]
    pub fn unexplained(&self) -> Option<i64> {
        if self.is_shared {
            return None;
        }
        let parts = [
            self.lost_interface?,
            self.filtered?,
            self.ring_dropped()?,
            self.delivered()?,
            self.in_ring()?,
        ];
        let sum = parts.iter().copied().fold(0_u64, u64::saturating_add);
        i64::try_from(i128::from(self.arrived?) - i128::from(sum)).ok()
    }

    /// Share of the packets that arrived and were lost before the socket (Skopkó's kernel loss).
    #[must_use]
    pub fn kernel_loss(&self) -> Option<f64> {
        share(self.lost_interface?, self.arrived?)
    }

    /// Share of those that came to the socket and were lost there (Skopkó's dumpcap loss).
    #[must_use]
    pub fn application_loss(&self) -> Option<f64> {
        let lost = self.ring_dropped()?.saturating_add(self.refused());
        let came = self.ring_dropped()?.saturating_add(self.delivered()?);
        share(lost, came)
    }

    /// Share of all packets that were lost, as far as anybody knows.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        let at_ring = self.ring_dropped()?.saturating_add(self.refused());
        let lost = at_ring.saturating_add(self.lost_interface.unwrap_or(0));
        let came = self.delivered()?.saturating_add(self.ring_dropped()?);
        // Of nothing, nothing is lost.
        share(lost, came.saturating_add(self.lost_interface.unwrap_or(0)).max(1))
    }

    /// Whether the capture can be believed.
    #[must_use]
    pub fn verdict(&self) -> Option<CaptureVerdict> {
        self.report.as_ref().map(|_| CaptureVerdict::of(self.loss()))
    }

    /// The row of the log `capture`: a line for each column.
    #[must_use]
    pub fn record(&self, ts: Timestamp, since: Timestamp, is_final: bool) -> Capture<'_> {
        let (scope, interface, ring) = match &self.place {
            BooksScope::Interface(name) => (Scope::Interface, Some(name.as_str()), None),
            BooksScope::Ring(name, ring) => (Scope::Ring, Some(name.as_str()), Some(*ring as u64)),
            BooksScope::Host => (Scope::Host, None, None),
        };
        let report = self.report.as_ref();
        let counters = report.map(|report| &report.counters);
        let of_ring = ring.and(counters);
        let facts = self.facts.as_ref();
        let by_depth = report.and_then(|report| report.by_depth);
        let at = |depth| by_depth.map(|packets| packets.of(depth));
        Capture {
            ts,
            interval: Interval::between(since, ts),
            is_final,
            scope,
            interface,
            ring,
            link: self.link.map(|link| match link {
                LinkState::Up => Link::Up,
                LinkState::Down => Link::Down,
                LinkState::Gone => Link::Gone,
            }),
            downs: report.map(|report| report.downs),
            arrived: self.arrived,
            lost_interface: self.lost_interface,
            lost_backlog: self.lost_backlog,
            filtered: self.filtered,
            ring_dropped: self.ring_dropped(),
            delivered: self.delivered(),
            unexplained: self.unexplained(),
            unexplained_bound: self.bound,
            analysed: report.and_then(|report| report.analysed),
            at_protocols: at(Depth::Protocols),
            at_tcp: at(Depth::Tcp),
            at_flows: at(Depth::Flows),
            at_packets: at(Depth::Packets),
            shed: by_depth.and(report).map(|report| report.shed),
            shed_time: by_depth
                .and(report)
                .map(|report| Interval::from_nanos(report.shed_nanos as i64)),
            recorded: self.recorded,
            refused: report.filter(|report| report.analysed.is_some()).map(|report| report.refused),
            unrecorded: self.unrecorded,
            filtered_late: report.map(|report| report.filtered),
            beyond_end: report.map(|report| report.beyond_end),
            in_flight: self.in_flight(),
            kernel_loss: self.kernel_loss(),
            application_loss: self.application_loss(),
            verdict: self.verdict(),
            bytes: counters.map(|counters| counters.delivered_bytes),
            cut: counters.map(|counters| counters.cut),
            super_frames: counters.map(|counters| counters.super_frames),
            partial_checksums: counters.map(|counters| counters.partial_checksums),
            retagged: counters.map(|counters| counters.retagged),
            inversions: counters.map(|counters| counters.inversions),
            inversion_max: counters
                .filter(|counters| counters.inversions > 0)
                .map(|counters| Interval::from_nanos(counters.deepest_inversion as i64)),
            late: report.map(|report| report.late),
            cut_headers: self.cut_headers(),
            held_bytes: self.held().map(|held| held.bytes),
            held_bytes_max: self.held().and_then(|held| held.most),
            holes_given_up: self.holes_given_up(),
            wrong_stamps: counters.map(|counters| counters.wrong_stamps),
            malformed: counters.map(|counters| counters.malformed),
            backend: facts.map(|facts| facts.backend),
            ring_units: of_ring.map(|counters| counters.occupancy.capacity.into()),
            ring_unit_bytes: of_ring.and(facts).map(|facts| facts.unit_bytes as u64),
            ring_used: of_ring.map(|counters| counters.occupancy.used.into()),
            ring_high_water: of_ring.map(|counters| counters.occupancy.high_water.into()),
            ring_freezes: counters.and_then(|counters| counters.freezes),
            snaplen: facts.map(|facts| facts.snaplen.into()),
            sampling: facts.map(|_| self.sampling),
            direction: facts.map(|facts| facts.direction.name()),
            fanout_group: facts.and_then(|facts| facts.fanout_group).map(u64::from),
            groups: counters.map(|counters| counters.waiting.groups),
            empty: counters.map(|counters| counters.waiting.empty),
            polls: counters.map(|counters| counters.waiting.polls),
            wakeups: counters.map(|counters| counters.waiting.wakeups),
            naps: counters.map(|counters| counters.waiting.naps),
            flows: report.and_then(|report| report.flows),
            flow_split: report.and_then(|report| report.flow_split),
            refused_rows: report
                .filter(|report| report.analysed.is_some())
                .map(|report| report.refused_rows)
                .or(self.refused_rows),
            time_squeezes: self.time_squeezes,
        }
    }
}

fn share(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

#[cfg(test)]
mod tests;
