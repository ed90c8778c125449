//! How a conversation begins: its first pieces tell the protocol, whose session gets them then.

use super::detection::{self, Detecting, Guess, HeldContent};
use super::{Conversation, Event, Understanding};
use crate::protocol::session::SessionContext;
use crate::protocol::session::findings::Findings;
use crate::reassembly::stream::Piece;

/// A port of which nothing is known.
const NO_PORT: u16 = 0;

impl Conversation {
    /// What is known before the first piece. The port tells of the first protocol alone, and nothing of what it
    /// hands over to.
    const fn without_hint<'a>(&self, context: &SessionContext<'a>) -> SessionContext<'a> {
        let port = if self.handovers > 0 { NO_PORT } else { context.port };
        SessionContext { port, ..*context }
    }

    /// Takes the first piece, which mostly tells the protocol by itself: then nothing has to be kept.
    pub(super) fn begin(
        &mut self,
        event: &Event<'_>,
        context: &SessionContext<'_>,
        found: &mut Findings,
    ) {
        let Piece::Bytes(bytes) = event.piece else {
            return self.detect(event, context, found);
        };
        if context.crossing_port.is_some() {
            return self.detect(event, context, found);
        }
        let mut heads = [&[][..]; 2];
        heads[event.from.index()] = bytes;
        match detection::look(heads, false, self.wanted, &self.without_hint(context)) {
            Guess::NotYet => self.detect(event, context, found),
            Guess::Nothing => {
                self.stage = Understanding::Over;
                self.look_beside(None, context);
                self.take_piece(event, context, found);
            }
            Guess::Protocol(id) => {
                self.stage = Understanding::begin(id, self.counted, context);
                self.look_beside(Some(id), context);
                self.take_piece(event, context, found);
            }
        }
    }

    /// Looks for the protocol in all pieces so far, and hands over what was kept once it is found.
    pub(super) fn detect(
        &mut self,
        event: &Event<'_>,
        context: &SessionContext<'_>,
        found: &mut Findings,
    ) {
        let heading = self.without_hint(context);
        let Understanding::Detecting(detecting) = &mut self.stage else { return };
        detecting.push(event.time, event.from, event.piece);
        let mut is_turned = false;
        let mut seen = detecting.look(self.wanted, &heading);
        if matches!(seen, Guess::Nothing) && heading.crossing_port.is_some() && self.handovers == 0
        {
            detecting.turn();
            seen = detecting.look(self.wanted, &heading.turned());
            is_turned = matches!(seen, Guess::Protocol(_));
            if !is_turned {
                detecting.turn();
            }
        }
        let id = match seen {
            Guess::NotYet => return,
            Guess::Nothing => None,
            Guess::Protocol(id) => Some(id),
        };
        let detecting = core::mem::take(detecting);
        self.is_turned |= is_turned;
        let turned = context.turned();
        let context = if is_turned { &turned } else { context };
        self.stage =
            id.map_or(Understanding::Over, |id| Understanding::begin(id, self.counted, context));
        self.look_beside(id, context);
        self.take_again(detecting, context, found);
    }

    /// Takes what was kept until the protocol was known.
    fn take_again(
        &mut self,
        detecting: Detecting,
        context: &SessionContext<'_>,
        found: &mut Findings,
    ) {
        let (heads, turns) = detecting.into_parts();
        let mut read = [0; 2];
        for turn in turns {
            if self.is_over() {
                return;
            }
            let at = &mut read[turn.from.index()];
            let piece = match turn.what {
                HeldContent::Bytes(len) => {
                    let from = *at;
                    *at += len;
                    Piece::Bytes(&heads[turn.from.index()][from..*at])
                }
                HeldContent::Gap(len, cause) => Piece::Gap(len, cause),
                HeldContent::End => Piece::End,
            };
            self.take_piece(&Event { time: turn.time, from: turn.from, piece }, context, found);
        }
    }
}
