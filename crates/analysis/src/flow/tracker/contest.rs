//! Connections that turn out to have begun otherwise than it seemed: with another answer to their SYN,
//! or with an answer whose SYN was not seen.

use super::FlowTracker;
use crate::depth::Depth;
use crate::flow::attached::AppLayer;
use crate::flow::history::{History, Letters};
use crate::flow::tcp::connection::SegmentContext;
use crate::flow::tcp::segment::ORIGINATOR;
use crate::flow::tcp::{Claimed, Segment, TcpConnection};
use crate::flow::{Flow, SentTotals, TransportState};
use crate::key::Side;
use crate::limits::Limits;
use crate::weird::Weirds;

impl FlowTracker {
    /// Begins the connection at `place` anew where a segment shows that it began otherwise. Returns
    /// the segment, whose sender may be the other side then.
    #[cold]
    pub(super) fn decide<'a>(&mut self, segment: Segment<'a>, place: u32) -> Segment<'a> {
        let Some(flow) = self.table.flow_mut(place) else { return segment };
        let Some(tcp) = flow.tcp() else { return segment };
        let (start, depth) = (flow.start, flow.depth.now());
        let before;
        let mut segment = segment;
        if let Some(answer) = tcp.answer_chosen_by(&segment) {
            let Some(begun) = tcp.with_answer(&answer, start, depth, &self.limits) else {
                return segment;
            };
            before = flow.heap_bytes();
            flow.exchange = TransportState::connection(begun);
            if answer.first.sender() == ORIGINATOR {
                flow.flip();
                segment.from = 1 - segment.from;
            }
            let held = flow.forget_streams();
            self.talking.give_back(held);
        } else if let Some(begun) = tcp.with_earlier(&segment, depth, &self.limits) {
            before = flow.heap_bytes();
            flow.exchange = TransportState::connection(begun);
            self.weirds.add("SYN_seq_jump");
        } else if tcp.is_answer_first(&segment) {
            let Some(begun) = tcp.with_answer_first(start, depth, &self.limits) else {
                return segment;
            };
            before = flow.heap_bytes();
            flow.exchange = TransportState::connection(begun);
            flow.is_answered_first();
            segment.from = 1 - segment.from;
        } else {
            return segment;
        }
        let change = flow.heap_bytes() as isize - before as isize;
        self.note_change(change);
        segment
    }
}

impl Flow {
    /// Forgets what came of the streams before it was known how the connection began. Returns the
    /// bytes that they held behind holes.
    fn forget_streams(&mut self) -> usize {
        let Some(attached) = &mut self.attached else { return 0 };
        let held = match &attached.talk {
            AppLayer::Streams(streams) if streams.is_untouched() => return 0,
            AppLayer::Streams(streams) => streams.held(),
            _ => 0,
        };
        attached.talk = AppLayer::Silence;
        self.spoken = false;
        self.contradicted = self.depth.now() < Depth::Protocols;
        held
    }

    /// Its first segment, a SYN-ACK, came from the responder.
    fn is_answered_first(&mut self) {
        self.originator = match self.originator {
            Side::Low => Side::High,
            Side::High => Side::Low,
        };
        self.letters = Letters::default();
        // As where the ports tell it before the first letter.
        self.letters.push(b'^');
        self.letters.push(b'h');
        self.kinds <<= 16;
    }

    /// Makes it the flow that began with a SYN, whose answer is at hand.
    pub(super) fn begin_with(&mut self, syn: &Claimed, answered_by: Side, limits: &Limits) {
        self.originator = match answered_by {
            Side::Low => Side::High,
            Side::High => Side::Low,
        };
        (self.start, self.last) = (syn.time, syn.time);
        self.sent = [SentTotals::default(); 2];
        self.sent[self.originator as usize] = syn.sent;
        let mut tcp = TcpConnection::at(self.depth.now());
        let Self { kinds, letters, last, .. } = self;
        let mut context = SegmentContext {
            now: syn.time,
            history: History { seen: kinds, letters, grown: 0 },
            last_time: last,
            weirds: &mut Weirds::default(),
            limits,
            rtt_interval: None,
            rtt: &mut None,
        };
        let replay = syn.first.replay(syn.time);
        tcp.segment(&Segment { from: 0, ..replay.segment() }, &mut context);
        self.exchange = match tcp.as_opening() {
            Some(first) => TransportState::Opening(first),
            None => TransportState::connection(tcp),
        };
    }
}
