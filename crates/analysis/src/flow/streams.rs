//! The two streams of a TCP connection, on their way from segments to a conversation.

use netsniff_packet::Timestamp;

use crate::protocol::{Context, Conversation, Event, Findings, MAX_ODDITIES, ProtocolSet, Role};
use crate::reassembly::stream::{Arrival, Piece, Sink, StreamReassembler, Surroundings};

/// Both streams, and what is said in them.
#[derive(Debug)]
pub struct Streams {
    directions: [StreamReassembler; 2],
    conversation: Conversation,
    /// Originator and responder changed places after the conversation began.
    is_flipped: bool,
    /// Bytes that they held outside themselves when that was last counted.
    counted: usize,
}

/// What a segment amounts to for the streams.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// Engine time.
    pub now: Timestamp,
    /// The segment's own time.
    pub time: Timestamp,
    /// Index of its sender: 0 is the originator.
    pub from: usize,
    /// Its payload, and where that lies in its sender's stream.
    pub payload: Option<Payload<'a>>,
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
pub struct Payload<'a> {
    /// Position of the first byte.
    pub position: u64,
    /// Its bytes as far as they were captured.
    pub data: &'a [u8],
    /// How many were not captured.
    pub missing: u64,
    /// The position of the byte that the segment marks as urgent, where that is no part of the stream.
    pub urgent: Option<u64>,
}

/// What streams need besides themselves.
pub struct Around<'a, 'b> {
    /// What all streams of a worker share.
    pub streams: Surroundings<'a>,
    /// What sessions are told.
    pub context: Context<'b>,
    /// What sessions find.
    pub found: &'a mut Findings,
}

/// Hands the pieces of one stream to the conversation.
struct ToConversation<'a, 'b> {
    conversation: &'a mut Conversation,
    from: Role,
    context: &'a Context<'b>,
    found: &'a mut Findings,
}

impl Sink for ToConversation<'_, '_> {
    #[inline]
    fn piece(&mut self, time: Timestamp, piece: Piece<'_>) {
        let event = Event { time, from: self.from, piece };
        self.conversation.take(&event, self.context, self.found);
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
        Self { directions: Default::default(), conversation, is_flipped: false, counted: 0 }
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

    /// Counts what they hold outside themselves, and returns by how many bytes that has grown.
    pub fn recount(&mut self) -> isize {
        let held = self.directions.iter().map(StreamReassembler::heap_bytes).sum::<usize>();
        let before = core::mem::replace(&mut self.counted, held + self.conversation.heap_bytes());
        self.counted as isize - before as isize
    }

    /// Whether nothing of either was seen.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        self.directions.iter().all(StreamReassembler::is_untouched)
    }

    /// Bytes held behind holes.
    #[must_use]
    pub fn held(&self) -> usize {
        self.directions.iter().map(StreamReassembler::held).sum()
    }

    /// Takes a segment.
    #[inline]
    pub fn segment(&mut self, it: &Delivery<'_>, around: &mut Around<'_, '_>) {
        let Delivery { now, time, from, .. } = *it;
        let from = from & 1;
        if it.is_reset {
            self.directions.iter_mut().for_each(StreamReassembler::reset);
        }
        if self.directions.iter().any(StreamReassembler::is_waiting) {
            self.expire(now, around);
        }
        if let Some(position) = it.acknowledged {
            let (direction, mut to) = self.split(1 - from, &around.context, around.found);
            direction.acknowledge(position, now, &mut around.streams, &mut to);
        }
        if let Some(payload) = it.payload {
            let Payload { position, data, missing, urgent } = payload;
            let is_doubtful = it.is_doubtful;
            let arrival = Arrival { time, position, data, missing, is_doubtful, urgent };
            let (direction, mut to) = self.split(from, &around.context, around.found);
            direction.arrive(&arrival, &mut around.streams, &mut to);
        }
        if let Some(end) = it.end {
            let (direction, mut to) = self.split(from, &around.context, around.found);
            direction.finish_at(end, time, &mut around.streams, &mut to);
        }
    }

    #[cold]
    fn expire(&mut self, now: Timestamp, around: &mut Around<'_, '_>) {
        for index in [0, 1] {
            let (direction, mut to) = self.split(index, &around.context, around.found);
            direction.expire(now, &mut around.streams, &mut to);
        }
    }

    /// Ends both, since the connection is over.
    pub fn finish(&mut self, time: Timestamp, around: &mut Around<'_, '_>) {
        for index in [0, 1] {
            let (direction, mut to) = self.split(index, &around.context, around.found);
            direction.finish(time, &mut around.streams, &mut to);
        }
        self.conversation.finish(around.found);
    }

    /// A direction, and where its pieces go.
    #[inline]
    fn split<'a, 'b>(
        &'a mut self,
        index: usize,
        context: &'a Context<'b>,
        found: &'a mut Findings,
    ) -> (&'a mut StreamReassembler, ToConversation<'a, 'b>) {
        let is_originator = (index == 0) != self.is_flipped;
        let from = if is_originator { Role::Originator } else { Role::Responder };
        let conversation = &mut self.conversation;
        (&mut self.directions[index], ToConversation { conversation, from, context, found })
    }
}
