//! How deep flows are analysed, and how one gets shallower.

use super::FlowTracker;
use crate::depth::Depth;
use crate::flow::attached::AppLayer;
use crate::unit::DecodedDatagram;

impl FlowTracker {
    /// How deep flows are analysed that begin from now on; never deeper than the options want. Flows in progress go on as they began, but for one case: while new flows begin at
    /// [`Depth::Flows`] or less, one at [`Depth::Protocols`] gets [`Depth::Tcp`] with its next packet. What
    /// was said in it costs most and may go on for long, and can be ended at any packet. The state of TCP
    /// is kept to the end, since counts that stopped in between would say nothing.
    ///
    /// No flow is looked at here.
    pub fn set_depth(&mut self, depth: Depth) {
        self.depth = depth.min(self.deepest);
    }

    /// How many bytes may be decoded of compressed bodies until this is called again, where somebody waits:
    /// what is beyond it counts as too large to decode.
    pub const fn allow_decoding(&mut self, bytes: u64) {
        self.findings.decodable = Some(bytes);
    }

    /// The depth in force for new flows.
    #[must_use]
    pub const fn depth(&self) -> Depth {
        self.depth
    }

    /// Counts a datagram that belongs to no flow and begins none.
    #[inline]
    pub(super) const fn count_only(&mut self, unit: &DecodedDatagram) {
        self.statistics.packets.add(Depth::Packets, unit.is_packet as u64);
        self.note_unchecked(unit);
    }

    /// Ends what is said in the flow at `place`, which goes on as a flow whose protocols nobody looks at.
    /// What was found so far is told with the packet at hand. Returns the depth that it has now.
    #[cold]
    pub(super) fn cut(&mut self, place: u32) -> Depth {
        self.release(place);
        self.hush(place);
        if let Some(flow) = self.table.flow_mut(place) {
            flow.depth.cut(Depth::Tcp);
        }
        Depth::Tcp
    }

    /// Ends what is said in the flow at `place` for good.
    #[cold]
    pub(super) fn hush(&mut self, place: u32) {
        let Some(flow) = self.table.flow(place) else { return };
        let before = flow.attached_bytes() as isize;
        self.end_talk(place);
        let Some(flow) = self.table.flow_mut(place) else { return };
        let services = flow.services();
        if let Some(attached) = &mut flow.attached {
            attached.services = services;
            attached.talk = AppLayer::Over;
        }
        flow.contradicted = true;
        flow.protocol = None;
        let change = flow.attached_bytes() as isize - before;
        self.note_change(change);
    }
}

#[cfg(test)]
mod tests {
    use netsniff_traffic::dialogue::{Dialogue, Setup, Side};

    use super::super::testing::{Nobody, Wire};
    use super::*;
    use crate::flow::tracker::FINISH_STEPS;
    use crate::{Limits, Options};

    /// Plays a conversation of HTTP to a tracker whose depth changes behind the first `at` packets.
    /// Returns the most bytes before and behind that, and what is left in the end.
    fn bytes(at: usize, depth: Depth) -> [usize; 3] {
        let mut dialogue = Dialogue::new(Setup::default());
        let request = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n";
        let response =
            [&b"HTTP/1.1 200 OK\r\nContent-Length: 30000\r\n\r\n"[..], &[7; 30_000]].concat();
        dialogue.connect().say(Side::Client, request).say(Side::Server, &response);
        dialogue.close(Side::Client).close(Side::Server);
        let story = dialogue.finish();
        let mut wire = Wire::new();
        let mut tracker = FlowTracker::new(Limits::default(), Options::default(), 1);
        let mut most = [0, 0];
        for (number, seen) in story.seen.iter().enumerate() {
            if number == at {
                tracker.set_depth(depth);
            }
            wire.frame(seen.timestamp, &seen.frame, &mut [&mut tracker], &mut Nobody);
            let most = &mut most[usize::from(number >= at)];
            *most = tracker.bytes().max(*most);
        }
        let now = wire.ingress.now();
        tracker.begin_finish(now, &mut Nobody);
        (0..FINISH_STEPS).for_each(|step| tracker.finish_step(step, now, &mut Nobody));
        [most[0], most[1], tracker.heap_bytes]
    }

    /// What a flow gives up is given back, and not twice.
    #[test]
    fn a_flow_that_is_cut_needs_less_and_leaves_nothing() {
        let [before, whole, left] = bytes(10, Depth::Tcp);
        assert_eq!(left, 0);
        let [same, cut, left] = bytes(10, Depth::Flows);
        assert_eq!((same, left), (before, 0));
        assert!(cut < whole, "{cut} {whole}");
    }
}
