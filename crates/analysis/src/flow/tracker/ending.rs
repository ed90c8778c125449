//! When flows end: by their deadlines, and with the input.

use netsniff_packet::Timestamp;
use netsniff_packet::decode::{TcpFlags, Transport};

use super::closing::{Due, TOGETHER};
use super::look_ahead::GROUP;
use super::{FINISH_STEPS, FlowTracker};
use crate::flow::Flow;
use crate::flow::report::statistics::Ending;
use crate::flow::table::wheel::{self, Entry};
use crate::record::{Observer, Phase, SortKey};
use crate::unit::{CaptureHole, DecodedDatagram, HoleKind};

impl FlowTracker {
    /// Ends the flows whose deadlines lie before the tick that `now` lies in.
    pub fn advance<O: Observer>(&mut self, now: Timestamp, observer: &mut O) {
        let until = wheel::tick_of(now);
        let mut due = core::mem::take(&mut self.due);
        while let Some((tick, entries)) = self.wheel.pass(until) {
            let is_due = |deadline| wheel::tick_of(deadline) <= tick;
            self.come_up(&entries, is_due, &mut due, observer);
        }
        self.end_due(&mut due, observer);
        self.due = due;
    }

    /// Adds the flows whose timers come up to those that end, where their deadlines are due, and arms
    /// those again that went on.
    fn come_up<O: Observer>(
        &mut self,
        entries: &[Entry],
        is_due: impl Fn(Timestamp) -> bool,
        due: &mut Vec<Due>,
        observer: &mut O,
    ) {
        for (turn, group) in entries.chunks(GROUP).enumerate() {
            self.table.prefetch_ends(entries, turn, |entry| entry.place);
            for &entry in group {
                if !self.table.is_current(entry) {
                    continue;
                }
                let Some(flow) = self.table.flow_mut(entry.place) else { continue };
                let deadline = flow.deadline(&self.limits);
                if is_due(deadline) {
                    flow.armed = entry.armed.never();
                    due.push(Due::by_timer(entry.place, flow, deadline, &self.limits));
                } else {
                    flow.armed = self.wheel.arm(entry.place, wheel::tick_of(deadline));
                }
            }
            if due.len() >= TOGETHER {
                self.end_due(due, observer);
            }
        }
    }

    /// Ends the flows whose deadlines lie at `now` or before, to the nanosecond.
    pub fn settle<O: Observer>(&mut self, now: Timestamp, observer: &mut O) {
        self.advance(now, observer);
        let entries = self.wheel.take_at(wheel::tick_of(now));
        let mut due = core::mem::take(&mut self.due);
        self.come_up(&entries, |deadline| deadline <= now, &mut due, observer);
        self.end_due(&mut due, observer);
        self.due = due;
    }

    /// Notes that the capture lost packets at engine time `now`: the flows alive then are touched
    /// by it. No flow is looked at but those that are over: the others compare when they end.
    pub fn loss<O: Observer>(&mut self, now: Timestamp, observer: &mut O) {
        if self.losses.is_full() {
            self.settle(now, observer);
            self.losses.settle();
        } else {
            self.advance(now, observer);
        }
        self.losses.note(now);
    }

    /// How many losses of the capture there had been when a flow ended. With a packet it ends at once, but its timer comes up
    /// with the tick.
    pub(super) fn losses_until(&self, end: &SortKey) -> u32 {
        if end.phase == Phase::Timer { self.losses.before(end.time) } else { self.losses.count() }
    }

    /// Takes what stands among the datagrams instead of one.
    pub fn hole<O: Observer>(&mut self, hole: &CaptureHole, observer: &mut O) {
        match hole.kind {
            HoleKind::Begin => self.begun = Some(hole.now),
            HoleKind::Loss => self.loss(hole.now, observer),
            HoleKind::IntervalEnd(end) => self.end_interval(&end, observer),
        }
    }

    /// How many losses of the capture there had been when the flow of a datagram, which is its
    /// first, began. One that is picked up in its middle right after a loss began before that.
    pub(super) fn losses_before(&self, unit: &DecodedDatagram) -> u32 {
        let Transport::Tcp(tcp) = &unit.decoded.transport else { return self.losses.count() };
        let is_begin = tcp.flags.any(TcpFlags::SYN) && !tcp.flags.any(TcpFlags::ACK);
        let is_behind = |lost: Timestamp| unit.now <= lost + self.limits.pick_up;
        if !is_begin && self.losses.last().is_some_and(is_behind) {
            return self.losses.count().wrapping_sub(1);
        }
        self.losses.count()
    }

    /// Whether flows that begin at `first` or later are told as they were if nothing had come before.
    #[must_use]
    pub fn is_over_before(&self, first: Timestamp) -> bool {
        self.is_new_to_others(first)
            && self.table.is_empty()
            && self.talking.expectations.are_over(first)
    }

    /// The same, for flows between hosts of which [nothing is remembered](Self::remembers).
    #[must_use]
    pub fn is_new_to_others(&self, first: Timestamp) -> bool {
        let is_past = |lost: Timestamp| lost + self.limits.pick_up < first;
        self.losses.last().is_none_or(is_past) && self.series.is_none()
    }

    /// Whether `is_it` says so of a pair of hosts of which something is remembered up to a time, if nothing more comes.
    pub fn remembers(&self, is_it: &mut impl FnMut(u64, Timestamp) -> bool) -> bool {
        let mut flows = self.table.iter();
        flows.any(|(_, flow)| is_it(flow.key.own_pair(), self.over_at(flow)))
            || self.talking.expectations.remembers(is_it)
    }

    /// From when on a flow is over if nothing more comes: from its deadline, but not before its timer comes up. Where stamps
    /// run back, a deadline may have come forward from there.
    fn over_at(&self, flow: &Flow) -> Timestamp {
        let armed = wheel::begin_of(self.wheel.tick_of(flow.armed));
        armed.max(flow.deadline(&self.limits))
    }

    /// Goes on with the flows of `other`, between other hosts: it took their packets up to here, of the same input. What it
    /// counted stays there.
    pub fn go_on_for(&mut self, other: Self) {
        // Both were told of the losses in the part of the input that they shared.
        let before = self.losses.count().wrapping_sub(other.losses.count());
        if !other.table.is_empty() {
            self.wheel.start(other.wheel.current());
        }
        for mut flow in other.table.into_flows() {
            flow.losses = flow.losses.wrapping_add(before);
            let deadline = wheel::tick_of(flow.deadline(&self.limits));
            let tick = deadline.max(other.wheel.tick_of(flow.armed));
            self.heap_bytes += flow.heap_bytes();
            let hash = flow.key.hash(self.seed);
            if let Some(place) = self.table.insert(hash, flow)
                && let Some(flow) = self.table.flow_mut(place)
            {
                flow.armed = self.wheel.arm(place, tick);
            }
        }
        self.talking.go_on_for(other.talking);
        self.has_grown = true;
        self.statistics.note_peak(self.table.len(), self.bytes());
    }

    /// Whether a flow is open that does not end before `first`, unless a packet ends it.
    #[must_use]
    pub fn has_flows_at(&self, first: Timestamp) -> bool {
        self.table.iter().any(|(_, flow)| self.over_at(flow) > first)
    }

    /// When the capture began, as far as that is known.
    #[must_use]
    pub const fn begun(&self) -> Option<Timestamp> {
        self.begun
    }

    /// Begins the end: flows whose deadlines have passed at `now` end by their timers, the others
    /// wait for [`Self::finish_step`].
    pub fn begin_finish<O: Observer>(&mut self, now: Timestamp, observer: &mut O) {
        self.advance(now, observer);
        let limits = self.limits;
        let by_timer = |(place, flow): (u32, &Flow)| {
            let deadline = flow.deadline(&limits);
            (deadline <= now).then(|| Due::by_timer(place, flow, deadline, &limits))
        };
        let due: Vec<Due> = self.table.iter().filter_map(by_timer).collect();
        for together in due.chunks(TOGETHER) {
            self.end_together(together, observer);
        }
        self.table.forget_keys();
        self.remaining = vec![Vec::new(); FINISH_STEPS as usize];
        for (place, flow) in self.table.iter() {
            let upper = (flow.name_bits() >> 32) as u64;
            self.remaining[(upper >> (64 - FINISH_STEPS.ilog2())) as usize].push((upper, place));
        }
    }

    /// Ends the flows that are left in the `step`th of [`FINISH_STEPS`] equal parts of all names.
    pub fn finish_step<O: Observer>(&mut self, step: u32, now: Timestamp, observer: &mut O) {
        let Some(due) = self.remaining.get_mut(step as usize) else { return };
        let mut due = core::mem::take(due);
        // Equal halves are all but impossible; rows of equal rank are sorted by the writer.
        due.sort_unstable_by_key(|&(upper, _)| upper);
        let mut together = core::mem::take(&mut self.due);
        for (turn, group) in due.chunks(GROUP).enumerate() {
            self.table.prefetch_ends(&due, turn, |&(_, place)| place);
            for &(_, place) in group {
                let Some(flow) = self.table.flow(place) else { continue };
                let uid = flow.uid();
                let key = SortKey { time: now, phase: Phase::End, ordinal: 0, uid, number: 0 };
                together.push(Due { place, key, ending: Ending::Finished });
            }
            if together.len() >= TOGETHER {
                self.end_due(&mut together, observer);
            }
        }
        self.end_due(&mut together, observer);
        self.due = together;
        if step + 1 == FINISH_STEPS
            && let Some(series) = &mut self.series
        {
            series.finish(now, observer);
        }
    }

    /// Ends the flow whose timer came up at its deadline.
    pub(super) fn expire<O: Observer>(
        &mut self,
        place: u32,
        deadline: Timestamp,
        observer: &mut O,
    ) {
        let Some(flow) = self.table.flow(place) else { return };
        let due = Due::by_timer(place, flow, deadline, &self.limits);
        self.end_together(&[due], observer);
    }
}
