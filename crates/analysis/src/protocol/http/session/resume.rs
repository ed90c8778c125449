//! Where a side goes on that was lost: behind a hole in a header, or where whole messages are missing.
//! Nobody knows what the hole held. But what a side says first once the other has spoken begins a message,
//! if it looks like one: a client that has its answer asks anew, and a server answers what was asked.

use super::{HttpSession, StreamStage};
use crate::protocol::Findings;
use crate::protocol::http::body::Sink;
use crate::protocol::http::detect;
use crate::protocol::http::line::Next;
use crate::protocol::http::message::Consumed;
use crate::protocol::session::{Bytes, MissingBytes, Progress, Role};

impl HttpSession {
    /// Notes that a side speaks, be it seen or not.
    #[inline]
    pub(super) fn note_turn(&mut self, from: Role) {
        self.has_answered |= from == Role::Responder;
        if let StreamStage::Lost { is_turn } = &mut self.sides[from.peer().index()].stage {
            *is_turn = true;
        }
    }

    /// Takes what a side says that was lost: all of it, unless it begins a message.
    #[cold]
    pub(super) fn resume(
        &mut self,
        input: &Bytes<'_>,
        next: Next,
        found: &mut Findings,
    ) -> Progress {
        let Bytes { from, data, .. } = *input;
        let stage = &mut self.sides[from.index()].stage;
        let begins = match stage {
            StreamStage::Lost { is_turn: true } => detect::begins_message(from, data),
            _ => Some(false),
        };
        match begins {
            Some(true) => {}
            None if next == Next::Open => return Progress::Need(data.len() + 1),
            Some(false) | None => {
                *stage = StreamStage::Lost { is_turn: false };
                return Progress::Consumed(data.len());
            }
        }
        *stage = StreamStage::StartLine;
        if from == Role::Originator {
            self.exchanges.ask_behind_loss();
            return self.request_line(input, next, found);
        }
        let open = self.exchanges.answer_behind_loss(self.turn, found);
        let surplus = self.unanswered.len().saturating_sub(open);
        self.unanswered.drain(..surplus);
        self.status_line(input, next, found)
    }

    /// Takes a hole. One in a body whose length is known is a part of it; behind any other the side is lost.
    pub(super) fn take_gap(&mut self, gap: &MissingBytes<'_>, found: &mut Findings) {
        let MissingBytes { time, from, len, .. } = *gap;
        self.note_turn(from);
        let Self { sides, exchanges, files, .. } = self;
        if let StreamStage::Message(message) = &mut sides[from.index()].stage {
            match message.gap(len, &mut Sink { time, from, exchanges, files, found }) {
                Some(Consumed::Last(_)) => return self.end_message(from, time, found),
                Some(_) => return,
                None => {}
            }
        }
        self.interrupt(from, time, found);
        // What follows a CONNECT may be for the tunnel.
        let is_tunnel =
            self.wants_tunnel || matches!(self.sides[from.index()].stage, StreamStage::Bare);
        let lost =
            if is_tunnel { StreamStage::Nothing } else { StreamStage::Lost { is_turn: false } };
        self.sides[from.index()].stage = lost;
    }
}
