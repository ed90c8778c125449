//! SYNs with data, kept until there is an answer or the flow ends.

use super::{Arrival, FlowTracker};
use crate::flow::TransportState;
use crate::flow::tcp::{HeldSyn, Segment};

impl FlowTracker {
    /// Keeps a segment as it came, if it is a SYN with data that nobody has answered yet.
    #[cold]
    pub(super) fn hold(
        &mut self,
        arrival: &Arrival<'_>,
        segment: &Segment<'_>,
        place: u32,
    ) -> bool {
        let Some(flow) = self.table.flow_mut(place) else { return false };
        if arrival.now != segment.time || flow.spoken {
            return false;
        }
        let before = flow.exchange.heap_bytes();
        let is_held = match &mut flow.exchange {
            TransportState::Held(held) => {
                let is_repeated = held.repeat(segment, arrival.payload);
                if is_repeated {
                    self.statistics.weird(HeldSyn::WEIRD);
                }
                if is_repeated && held.copies() == 1 {
                    self.weirds.add(HeldSyn::WEIRD_OF_COPY);
                } else if is_repeated {
                    self.statistics.weird(HeldSyn::WEIRD_OF_COPY);
                }
                is_repeated
            }
            exchange => match HeldSyn::of(segment, arrival.payload) {
                Some(held) => {
                    *exchange = TransportState::Held(Box::new(held));
                    self.weirds.add(HeldSyn::WEIRD);
                    true
                }
                None => false,
            },
        };
        if is_held {
            flow.last = segment.time;
            let after = flow.exchange.heap_bytes();
            self.note_change(after as isize - before as isize);
        }
        is_held
    }

    /// Takes the segments that are kept of the flow at `place`: there is an answer, or none will come.
    #[inline]
    pub(super) fn release(&mut self, place: u32) {
        if let Some(flow) = self.table.flow(place)
            && matches!(flow.exchange, TransportState::Held(_))
        {
            self.take_held(place);
        }
    }

    #[cold]
    fn take_held(&mut self, place: u32) {
        let Some(flow) = self.table.flow_mut(place) else { return };
        let before = flow.exchange.heap_bytes();
        let exchange = core::mem::replace(&mut flow.exchange, TransportState::Unopened);
        let TransportState::Held(held) = exchange else { return };
        flow.last = flow.start;
        self.note_change(-(before as isize));
        self.note_told(&held, place);
        // What is odd about them was told when they came.
        let weirds = core::mem::take(&mut self.weirds);
        for (number, replay) in held.replays().enumerate() {
            let segment = replay.segment();
            let (now, payload) = (segment.time, held.data());
            let arrival = Arrival { now, payload, is_same: number > 0 };
            self.connection(&arrival, segment, place);
        }
        self.weirds = weirds;
    }

    /// Notes which oddities were told of segments that were kept, of the flow at `place`.
    fn note_told(&mut self, held: &HeldSyn, place: u32) {
        let Some(flow) = self.table.flow_mut(place) else { return };
        let before = flow.attached_bytes();
        let side = flow.originator as usize;
        let reported = &mut flow.attached.get_or_insert_default().reported[side];
        reported.note(HeldSyn::WEIRD);
        if held.copies() > 0 {
            reported.note(HeldSyn::WEIRD_OF_COPY);
        }
        let grown = flow.attached_bytes() - before;
        self.note_change(grown as isize);
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use netsniff_packet::decode::TcpFlags;
    use netsniff_traffic::dialogue::{Dialogue, Segment, Setup, Side};

    use super::super::testing::{Nobody, Wire};
    use super::*;
    use crate::{Limits, Options};

    #[test]
    fn a_syn_with_data_takes_little_before_it_is_answered() {
        let mut dialogue = Dialogue::new(Setup::default());
        let template = dialogue.template(Side::Client);
        let syn = Segment { flags: TcpFlags::SYN, payload: b"GET /\r\n".to_vec(), ..template };
        dialogue.segment(syn);
        let story = dialogue.finish();
        let [syn, answer, ..] = &story.seen[..] else { unreachable!("{story:?}") };
        let mut wire = Wire::new();
        let mut tracker = FlowTracker::new(Limits::default(), Options::default(), 1);
        let mut held = Vec::new();
        for (seconds, seen) in [(0, syn), (1, syn), (3, syn), (4, answer)] {
            let time = syn.timestamp + Duration::from_secs(seconds);
            wire.frame(time, &seen.frame, &mut [&mut tracker], &mut Nobody);
            held.push(tracker.bytes());
        }
        let [first, second, third, answered] = held[..] else { unreachable!("{held:?}") };
        assert!(first <= second && second <= third && third < 512, "{held:?}");
        assert!(answered > 1_024, "{held:?}");
    }
}
