//! The two streams of a TCP connection, on their way from segments to a conversation. `turns` tells whose piece
//! comes next.

mod turns;

use netsniff_packet::Timestamp;

use self::turns::{Missing, Turns};
use super::tcp::Withdrawn;
use crate::prefetch::prefetch;
use crate::protocol::{
    Conversation, Event, Findings, MAX_ODDITIES, ProtocolSet, Role, SessionContext,
};
use crate::reassembly::stream::{
    ArrivedSegment, Piece, ReassemblyContext, Sink, StreamReassembler,
};

/// Both streams, and what is said in them.
#[derive(Debug)]
pub struct Streams {
    directions: [StreamReassembler; 2],
    /// Which pieces of either come next.
    turns: Turns,
    conversation: Conversation,
    /// Originator and responder changed places after the conversation began.
    is_flipped: bool,
    /// Bytes that they held outside themselves when that was last counted.
    counted: usize,
    /// Whether they were read since.
    is_outdated: bool,
}

/// What a segment amounts to for the streams.
#[derive(Clone, Copy, Debug)]
pub struct StreamSegment<'a> {
    /// Engine time, by which holes are given up.
    pub now: Timestamp,
    /// The segment's own time.
    pub time: Timestamp,
    /// Index of its sender: 0 is the originator.
    pub from: usize,
    /// Its payload, and where that lies in its sender's stream.
    pub payload: Option<SegmentPayload<'a>>,
    /// Up to where it acknowledges the peer's stream.
    pub acknowledged: Option<u64>,
    /// Where its sender's data ends, if it has a FIN.
    pub end: Option<u64>,
    /// Whether it may never reach its receiver: it counts once it is acknowledged.
    pub is_doubtful: bool,
    /// Whether it resets the connection.
    pub is_reset: bool,
}

/// Payload of a segment.
#[derive(Clone, Copy, Debug)]
pub struct SegmentPayload<'a> {
    /// Position of the first byte.
    pub position: u64,
    /// Its bytes as far as they were captured.
    pub data: &'a [u8],
    /// How many were not captured.
    pub missing: u64,
    /// The position of the byte that the segment marks as urgent, where that is no part of the stream.
    pub urgent: Option<u64>,
}

impl SegmentPayload<'_> {
    /// The position behind it.
    const fn reach(&self) -> u64 {
        self.position.saturating_add(self.data.len() as u64).saturating_add(self.missing)
    }
}

/// What streams need besides themselves.
pub struct StreamContext<'a, 'b> {
    /// What all streams of a worker share.
    pub streams: ReassemblyContext<'a>,
    /// What sessions are told.
    pub context: SessionContext<'b>,
    /// Takes the rows and facts of the sessions.
    pub found: &'a mut Findings,
}

/// Hands the pieces of one stream to the conversation, in turn with those of the other.
struct ToConversation<'a, 'b> {
    turns: &'a mut Turns,
    conversation: &'a mut Conversation,
    from: Role,
    /// Whether acknowledged bytes of the other stream are waited for.
    is_peer_due: bool,
    context: &'a SessionContext<'b>,
    found: &'a mut Findings,
}

impl Sink for ToConversation<'_, '_> {
    #[inline]
    fn piece(&mut self, time: Timestamp, reach: u64, piece: Piece<'_>) {
        let event = Event { time, from: self.from, piece };
        let Self { turns, conversation, context, found, .. } = self;
        let is_peer_due = self.is_peer_due;
        turns.take(&event, reach, is_peer_due, |event| conversation.take(event, context, found));
    }

    fn oddity(&mut self, name: &'static str) {
        self.found.weirds.add(name);
        // Each kind is told once in each direction.
        self.found.attribute("TCP", &mut { MAX_ODDITIES });
    }
}

impl Streams {
    /// Streams of which nothing was seen yet.
    #[must_use]
    pub fn new(wanted: ProtocolSet) -> Self {
        Self::with(Conversation::new(wanted))
    }

    /// Streams of a conversation.
    #[must_use]
    pub fn with(conversation: Conversation) -> Self {
        let turns = Turns::default();
        Self {
            directions: Default::default(),
            turns,
            conversation,
            is_flipped: false,
            counted: 0,
            is_outdated: false,
        }
    }

    /// Asks for what each segment needs.
    #[inline]
    pub fn prefetch(&self) {
        self.directions.iter().for_each(prefetch);
        prefetch(&self.turns);
        prefetch(&self.conversation);
        prefetch(&self.counted);
    }

    /// What is said in them.
    #[must_use]
    pub const fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Originator and responder change places.
    pub fn flip(&mut self) {
        self.directions.swap(0, 1);
        self.is_flipped = !self.is_flipped;
    }

    /// Bytes that they held outside themselves when [`Self::recount`] was last called.
    #[must_use]
    pub const fn heap_bytes(&self) -> usize {
        self.counted
    }

    /// Notes that they may hold more or less than was counted. Returns whether that is news.
    #[inline]
    pub const fn outdate(&mut self) -> bool {
        !core::mem::replace(&mut self.is_outdated, true)
    }

    /// Counts what they hold outside themselves, and returns by how many bytes that has grown.
    pub fn recount(&mut self) -> isize {
        self.is_outdated = false;
        let held = self.directions.iter().map(StreamReassembler::heap_bytes).sum::<usize>();
        let held = held + self.turns.heap_bytes() + self.conversation.heap_bytes();
        let before = core::mem::replace(&mut self.counted, held);
        self.counted as isize - before as isize
    }

    /// Whether nothing of either was seen.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        self.directions.iter().all(StreamReassembler::is_untouched)
    }

    /// Bytes held behind holes, of either stream.
    #[must_use]
    pub fn held(&self) -> usize {
        self.directions.iter().map(StreamReassembler::held).sum::<usize>() + self.turns.held()
    }

    /// Whether payload of one side is a copy of what was handed on, which changes nothing but what is reported of copies.
    #[must_use]
    pub fn has_had(&self, from: usize, payload: &SegmentPayload<'_>) -> bool {
        self.directions[from & 1].has_handed_on(payload.reach())
    }

    /// Whether what one side sent was handed on up to a position, and nothing of either waits.
    #[must_use]
    pub const fn is_read_to(&self, from: usize, reach: u64) -> bool {
        let is_at_rest = !self.is_waiting() && !self.turns.is_disturbed();
        is_at_rest && self.directions[from & 1].has_handed_on(reach)
    }

    /// Takes a segment: its payload, and what it acknowledges of the other stream.
    #[inline]
    pub fn segment(&mut self, it: &StreamSegment<'_>, around: &mut StreamContext<'_, '_>) {
        let StreamSegment { now, time, from, .. } = *it;
        let from = from & 1;
        if it.is_reset {
            self.directions.iter_mut().for_each(StreamReassembler::reset);
        }
        if self.is_waiting() {
            // What comes at last is no gap.
            let is_continued = it.payload.is_some_and(|payload| {
                self.directions[from].is_continued_by(payload.position, payload.reach())
            });
            self.expire(now, is_continued.then_some(from), around);
        }
        let before = self.turns.held();
        if let Some(position) = it.acknowledged {
            let (direction, mut to) = self.split(1 - from, &around.context, around.found);
            direction.acknowledge(position, now, &mut around.streams, &mut to);
        }
        if self.is_waiting() {
            self.note_turn(it, from);
        }
        if let Some(payload) = it.payload {
            let SegmentPayload { position, data, missing, urgent } = payload;
            let is_doubtful = it.is_doubtful;
            let arrival = ArrivedSegment { time, position, data, missing, is_doubtful, urgent };
            let (direction, mut to) = self.split(from, &around.context, around.found);
            direction.arrive(&arrival, &mut around.streams, &mut to);
        }
        if let Some(end) = it.end {
            let (direction, mut to) = self.split(from, &around.context, around.found);
            direction.finish_at(end, time, &mut around.streams, &mut to);
        }
        if self.turns.is_disturbed() {
            self.settle(before, around);
        }
    }

    /// Notes what the sender of a segment knew of the other side, where not all of that was seen.
    #[cold]
    fn note_turn(&mut self, it: &StreamSegment<'_>, from: usize) {
        let of_payload = it.payload.map(|payload| [payload.position, payload.reach()]);
        let said = of_payload.or(it.end.map(|end| [end; 2]));
        if let Some((said, acknowledged)) = said.zip(it.acknowledged) {
            self.turns.note(self.role(from), said, acknowledged);
        }
    }

    /// Hands on what waited for the other side, and counts what still does; before there were so many bytes
    /// of it.
    #[cold]
    fn settle(&mut self, before: usize, around: &mut StreamContext<'_, '_>) {
        let StreamContext { streams, context, found } = around;
        let ReassemblyContext { limits, held_in_all, .. } = streams;
        let held = self.turns.held();
        let in_all = (**held_in_all + held).saturating_sub(before);
        let is_too_much = held > limits.stream_held_bytes || in_all > limits.streams_held_bytes;
        let mut missing = Missing { is_due: [false; 2], is_held: [false; 2] };
        for (index, direction) in self.directions.iter().enumerate() {
            let role = self.role(index).index();
            missing.is_due[role] = direction.is_due() && !is_too_much;
            missing.is_held[role] = direction.is_waiting() && !is_too_much;
        }
        let conversation = &mut self.conversation;
        self.turns.settle(missing, &mut |event| conversation.take(event, context, found));
        **held_in_all = (**held_in_all + self.turns.held()).saturating_sub(before);
        if !self.is_waiting() {
            self.turns.rest();
        }
    }

    /// Takes back that anything of either was sent that nobody saw.
    #[cold]
    pub fn withdraw(&mut self, withdrawn: [Option<Withdrawn>; 2]) {
        for (index, it) in withdrawn.into_iter().enumerate() {
            let Some(Withdrawn { low, acknowledged }) = it else { continue };
            let next = self.directions[index].withdraw(low, acknowledged);
            self.turns.withdraw(self.role(index), next, acknowledged);
        }
    }

    /// Gives up what was waited for long enough, but of no direction that goes on.
    #[cold]
    fn expire(
        &mut self,
        now: Timestamp,
        continued: Option<usize>,
        around: &mut StreamContext<'_, '_>,
    ) {
        let before = self.turns.held();
        for index in [0, 1].into_iter().filter(|index| Some(*index) != continued) {
            let (direction, mut to) = self.split(index, &around.context, around.found);
            direction.expire(now, &mut around.streams, &mut to);
        }
        self.settle(before, around);
    }

    /// Ends both, since the connection is over.
    pub fn finish(&mut self, time: Timestamp, around: &mut StreamContext<'_, '_>) {
        let before = self.turns.held();
        for index in [0, 1] {
            let (direction, mut to) = self.split(index, &around.context, around.found);
            direction.finish(time, &mut around.streams, &mut to);
        }
        self.settle(before, around);
        self.conversation.finish(around.found);
    }

    /// Whether anything of either is waited for.
    #[inline]
    const fn is_waiting(&self) -> bool {
        self.directions[0].is_waiting() || self.directions[1].is_waiting()
    }

    /// Whose stream this direction is.
    #[inline]
    const fn role(&self, index: usize) -> Role {
        if (index == 0) != self.is_flipped { Role::Originator } else { Role::Responder }
    }

    /// A direction, and where its pieces go.
    #[inline]
    fn split<'a, 'b>(
        &'a mut self,
        index: usize,
        context: &'a SessionContext<'b>,
        found: &'a mut Findings,
    ) -> (&'a mut StreamReassembler, ToConversation<'a, 'b>) {
        let from = self.role(index);
        // Nobody else asks, and most connections never have anything that waits.
        let is_peer_due = self.turns.is_disturbed() && self.directions[1 - index].is_due();
        let Self { directions, turns, conversation, .. } = self;
        let to = ToConversation { turns, conversation, from, is_peer_due, context, found };
        (&mut directions[index], to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Bodies;
    use crate::file::HashKinds;
    use crate::limits::Limits;
    use crate::reassembly::fingerprint::Fingerprints;
    use crate::reassembly::piece::Overlap;
    use crate::reassembly::stream::HoleEndings;

    /// What the client says, a millisecond from one segment to the next, when it has acknowledged what nobody saw of the
    /// server; with the bytes that other streams hold. Returns the most that waited for the server's turn.
    fn most_held(limits: &Limits, others: usize) -> usize {
        let (keys, mut endings) = (Fingerprints::new(1), HoleEndings::default());
        let (mut held_in_all, mut found) = (others, Findings::default());
        let mut streams = Streams::new(ProtocolSet::NONE);
        let mut most = 0;
        for number in 0..100_u64 {
            let now = Timestamp::from_nanos(number as i64 * 1_000);
            let context = SessionContext {
                limits,
                name: 0,
                port: 80,
                hashes: HashKinds::default(),
                bodies: Bodies::default(),
                is_midstream: false,
                is_multicast: false,
                crossing_port: None,
            };
            let surroundings = ReassemblyContext {
                limits,
                overlap: Overlap::First,
                keys: &keys,
                held_in_all: &mut held_in_all,
                endings: &mut endings,
            };
            let mut around = StreamContext { streams: surroundings, context, found: &mut found };
            let payload = SegmentPayload {
                position: 1 + number * 100,
                data: &[b'x'; 100],
                missing: 0,
                urgent: None,
            };
            let delivery = StreamSegment {
                now,
                time: now,
                from: 0,
                payload: Some(payload),
                acknowledged: Some(5_000),
                end: None,
                is_doubtful: false,
                is_reset: false,
            };
            streams.segment(&delivery, &mut around);
            assert_eq!(held_in_all, others + streams.held(), "all that is held is counted");
            most = most.max(streams.turns.held());
        }
        most
    }

    #[test]
    fn what_waits_for_the_other_side_is_bounded() {
        let free = Limits::default();
        assert!(most_held(&free, 0) > 100 * 100, "all of it waits");
        let few = Limits { stream_held_bytes: 1_000, ..free };
        assert!((500..=1_000).contains(&most_held(&few, 0)));
        let few_in_all = Limits { streams_held_bytes: 1_000, ..free };
        assert!((500..=1_000).contains(&most_held(&few_in_all, 0)));
        assert!((100..=500).contains(&most_held(&few_in_all, 500)));
    }
}
