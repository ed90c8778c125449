//! What all flows hold together, and room for more.

use super::closing::Due;
use super::look_ahead::GROUP;
use super::{FlowTracker, packet_key};
use crate::flow::attached::AppLayer;
use crate::flow::report::statistics::Ending;
use crate::flow::table::FlowTable;
use crate::flow::table::wheel::{self, Wheel};
use crate::record::Observer;
use crate::unit::DecodedDatagram;

/// Bytes for one more flow, with all that finds it again.
const BYTES_PER_FLOW: usize = FlowTable::bytes_per_flow() + Wheel::BYTES;

/// The most bytes that sessions keep of a segment, but for a window of a decoder that begins with it.
const SEGMENT_BYTES: usize = 1 << 20;

impl FlowTracker {
    /// Ends the flow that would expire first, as long as so many more (0 or 1) would exceed a bound.
    pub(super) fn make_room<O: Observer>(
        &mut self,
        unit: &DecodedDatagram,
        more: usize,
        observer: &mut O,
    ) {
        let more_bytes = more * BYTES_PER_FLOW;
        while !self.table.is_empty()
            && (self.table.len() + more > self.limits.flows
                || self.bytes() + more_bytes > self.limits.flow_bytes)
        {
            let Some((tick, entry)) = self.wheel.pop_first() else { return };
            if !self.table.is_current(entry) {
                continue;
            }
            let Some(flow) = self.table.flow_mut(entry.place) else { continue };
            let deadline = flow.deadline(&self.limits);
            // What lies beyond the ring comes up at its end, time and again.
            let due = wheel::tick_of(deadline).min(self.wheel.last());
            if due > tick {
                flow.armed = self.wheel.arm(entry.place, due);
                continue;
            }
            if deadline <= unit.now {
                self.expire(entry.place, deadline, observer);
                continue;
            }
            self.release(entry.place);
            let Some(flow) = self.table.flow_mut(entry.place) else { continue };
            flow.letters.push(b'X');
            let key = packet_key(unit, flow);
            let due = Due { place: entry.place, key, ending: Ending::Evicted };
            self.end_together(&[due], observer);
        }
    }

    /// Bytes that flows, index and timers take, what their protocols know, what they await, and what is counted of them.
    pub(super) fn bytes(&self) -> usize {
        self.table.len() * BYTES_PER_FLOW
            + self.heap_bytes
            + self.findings.known_bytes()
            + self.talking.expectations.heap_bytes()
            + self.series.as_ref().map_or(0, |series| series.heap_bytes())
    }

    /// Looks whether streams must be counted at once from here on, since the bound of all flows is near.
    pub(super) fn look_at_room(&mut self) {
        let window =
            usize::try_from(self.limits.http_window_bytes).unwrap_or(usize::MAX / GROUP / 2);
        self.is_tight = self.bytes() + GROUP * (window + SEGMENT_BYTES) > self.limits.flow_bytes;
    }

    /// Counts what the streams hold that were read.
    pub(super) fn recount(&mut self) {
        if self.outdated.is_empty() {
            return;
        }
        let mut outdated = core::mem::take(&mut self.outdated);
        let mut change = 0;
        for place in outdated.drain(..) {
            // Where another flow is there by now, counting it once more changes nothing.
            if let Some(flow) = self.table.flow_mut(place)
                && let Some(attached) = &mut flow.attached
                && let AppLayer::Streams(streams) = &mut attached.talk
            {
                change += streams.recount();
            }
        }
        self.outdated = outdated;
        self.note_change(change);
    }

    /// Notes by how many bytes a flow has grown.
    #[inline]
    pub(super) fn note_change(&mut self, change: isize) {
        if change != 0 {
            self.has_grown = true;
            self.heap_bytes = self.heap_bytes.saturating_add_signed(change);
            self.statistics.note_peak(self.table.len(), self.bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use netsniff_traffic::dialogue::{Dialogue, Setup, Side};

    use super::super::testing::{Nobody, Wire};
    use super::*;
    use crate::{Limits, Options};

    /// Whoever counts by groups knows the same behind each call as whoever counts at once.
    #[test]
    fn streams_are_counted_in_groups_as_at_once() {
        let mut dialogue = Dialogue::new(Setup::default());
        let request = b"GET / HTTP/1.1\r\nHost: example.org\r\nUser-Agent: test\r\n\r\n";
        let response =
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nthe body.";
        dialogue.connect().say(Side::Client, request).say(Side::Server, response);
        dialogue.say(Side::Client, request).say(Side::Server, &response[..40]);
        let story = dialogue.finish();
        let free = Limits::default();
        let near = Limits { flow_bytes: 32 << 20, ..free };
        let mut wire = Wire::new();
        let [mut grouped, mut at_once] =
            [free, near].map(|limits| FlowTracker::new(limits, Options::default(), 1));
        let mut most = 0;
        for seen in &story.seen {
            let both = &mut [&mut grouped, &mut at_once];
            wire.frame(seen.timestamp, &seen.frame, both, &mut Nobody);
            assert_eq!(grouped.bytes(), at_once.bytes());
            most = grouped.bytes().max(most);
        }
        assert!(at_once.is_tight && !grouped.is_tight);
        assert!(most > 2_000, "{most}: sessions hold something");
    }

    /// One segment of a stream is missing in the capture, or comes late. What waits for it rises and falls, and
    /// nothing is left.
    #[test]
    fn what_waits_behind_a_hole_is_counted_until_the_hole_ends() {
        let mut dialogue = Dialogue::new(Setup::default());
        dialogue.connect().say(Side::Client, b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
        let body = vec![b'x'; 40_000];
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n";
        dialogue.say(Side::Server, &[&head[..], &body].concat());
        dialogue.pause(core::time::Duration::from_secs(30)).close(Side::Client).close(Side::Server);
        let seen = dialogue.finish().seen;
        let large = |frame: &[u8]| frame.len() > 1_000;
        let missing = seen.iter().position(|it| large(&it.frame)).unwrap() + 1;
        assert!(large(&seen[missing].frame));
        for comes_late in [false, true] {
            let mut frames: Vec<_> = seen.iter().map(|it| (it.timestamp, &it.frame)).collect();
            let (_, frame) = frames.remove(missing);
            if comes_late {
                let at = missing + 3;
                frames.insert(at, (frames[at - 1].0, frame));
            }
            let mut wire = Wire::new();
            let mut tracker = FlowTracker::new(Limits::default(), Options::default(), 1);
            let mut held = vec![0];
            // The most of each interval of three frames, with what waits where it begins.
            let mut peaks = vec![0];
            for (number, (time, frame)) in frames.into_iter().enumerate() {
                if number % 3 == 0 {
                    tracker.begin_held_peak();
                    peaks.push(tracker.held_bytes());
                }
                wire.frame(time, frame, &mut [&mut tracker], &mut Nobody);
                held.push(tracker.held_bytes());
                let peak = peaks.last_mut().unwrap();
                *peak = tracker.held_bytes().max(*peak);
                assert_eq!(tracker.statistics().recent_held_bytes(), *peak, "{held:?}");
            }
            assert!(peaks.last() == Some(&0), "the last intervals have none: {peaks:?}");
            let most = held.iter().copied().max().unwrap();
            assert!(most > 1_000, "{held:?}");
            assert!(!comes_late || most < 20_000, "{held:?}");
            assert!(
                held.windows(2).any(|pair| pair[0] > 0 && pair[1] > pair[0]),
                "it rises: {held:?}"
            );
            let rise = held.iter().position(|&bytes| bytes == most).unwrap();
            assert!(held[rise..].contains(&0) && held.last() == Some(&0), "it falls: {held:?}");
            assert_eq!(tracker.statistics().peak_held_bytes(), most);
            let gaps: u64 = tracker.statistics().holes.gaps.iter().sum();
            assert_eq!(
                (gaps, tracker.statistics().holes.filled),
                if comes_late { (0, 1) } else { (1, 0) }
            );
        }
    }
}
