//! What the messages of one protocol carry: a conversation of its own, whose protocol is found out as that
//! of any other. So a tunnel shows what is in it.

use netsniff_packet::Timestamp;

use super::{Conversation, Event};
use crate::protocol::session::findings::Findings;
use crate::protocol::session::{Role, SessionContext};
use crate::reassembly::stream::{GapCause, Piece};

/// The conversation within messages.
#[derive(Debug, Default)]
pub(super) struct Within {
    conversation: Option<Box<Conversation>>,
    /// It is of no interest any more.
    is_over: bool,
}

impl Within {
    /// Whether what messages carry is read.
    #[inline]
    pub(super) const fn is_wanted(&self) -> bool {
        !self.is_over
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let of = |it: &Conversation| size_of::<Conversation>() + it.heap_bytes();
        self.conversation.as_ref().map_or(0, |it| of(it))
    }
}

impl Conversation {
    /// Hands on what the message carries that was just read.
    #[inline]
    pub(super) fn read_within(
        &mut self,
        time: Timestamp,
        from: Role,
        context: &SessionContext<'_>,
        found: &mut Findings,
    ) {
        if !found.carried.is_empty() {
            self.read_carried(time, from, context, found);
        }
    }

    #[cold]
    fn read_carried(
        &mut self,
        time: Timestamp,
        from: Role,
        context: &SessionContext<'_>,
        found: &mut Findings,
    ) {
        let mut bytes = core::mem::take(&mut found.carried.bytes);
        let missing = core::mem::take(&mut found.carried.missing);
        if self.within.is_wanted() && self.within.conversation.is_none() {
            self.begin_within(context, found);
        }
        if missing > 0 {
            let piece = Piece::Gap(missing, GapCause::Capture);
            self.take_within(&Event { time, from, piece }, context, found);
        }
        if !bytes.is_empty() {
            let piece = Piece::Bytes(&bytes);
            self.take_within(&Event { time, from, piece }, context, found);
        }
        // The memory is used again.
        bytes.clear();
        found.carried.bytes = bytes;
    }

    fn begin_within(&mut self, context: &SessionContext<'_>, found: &mut Findings) {
        let handovers = self.handovers.saturating_add(1);
        if handovers > context.limits.handovers {
            self.within.is_over = true;
            found.weirds.add("too_many_protocol_changes");
            found.attribute("conversation", &mut self.oddities);
            return;
        }
        let counted = self.counted;
        let conversation = Self { handovers, counted, ..Self::new(self.wanted) };
        self.within.conversation = Some(Box::new(conversation));
    }

    fn take_within(
        &mut self,
        event: &Event<'_>,
        context: &SessionContext<'_>,
        found: &mut Findings,
    ) {
        let Some(conversation) = &mut self.within.conversation else { return };
        // The port tells of what carries it.
        let context = SessionContext { port: 0, ..*context };
        let before = conversation.services;
        conversation.take(event, &context, found);
        self.services.follow(before, conversation.services);
        if conversation.is_over() {
            self.within = Within { conversation: None, is_over: true };
        }
    }

    /// Tells what is carried that one side will say nothing more.
    pub(super) fn end_side_within(
        &mut self,
        time: Timestamp,
        from: Role,
        context: &SessionContext<'_>,
        found: &mut Findings,
    ) {
        self.take_within(&Event { time, from, piece: Piece::End }, context, found);
    }

    /// Ends what is carried.
    pub(super) fn finish_within(&mut self, found: &mut Findings) {
        if let Some(mut conversation) = self.within.conversation.take() {
            conversation.finish(found);
        }
    }
}
