//! How a conversation begins: its first pieces tell the protocol, whose session gets them then.

use super::{Conversation, Event, Stage};
use crate::protocol::detection::{self, Found, What};
use crate::protocol::findings::Findings;
use crate::protocol::session::Context;
use crate::reassembly::stream::Piece;

/// A port of which nothing is known.
const NO_PORT: u16 = 0;

impl Conversation {
    /// What is known before the first piece. The port tells of the first protocol alone, and nothing of what it
    /// hands over to.
    const fn without_hint<'a>(&self, context: &Context<'a>) -> Context<'a> {
        let port = if self.handovers > 0 { NO_PORT } else { context.port };
        Context { port, ..*context }
    }

    /// Takes the first piece, which mostly tells the protocol by itself: then nothing has to be kept.
    pub(super) fn begin(&mut self, event: &Event<'_>, context: &Context<'_>, found: &mut Findings) {
        let Piece::Bytes(bytes) = event.piece else {
            return self.detect(event, context, found);
        };
        let mut heads = [&[][..]; 2];
        heads[event.from.index()] = bytes;
        match detection::look(heads, false, self.wanted, &self.without_hint(context)) {
            Found::NotYet => self.detect(event, context, found),
            Found::Nothing => self.stage = Stage::Over,
            Found::Protocol(id) => {
                self.stage = Stage::begin(id, context);
                self.speak(event, context, found);
            }
        }
    }

    /// Looks for the protocol in all pieces so far, and hands over what was kept once it is found.
    pub(super) fn detect(
        &mut self,
        event: &Event<'_>,
        context: &Context<'_>,
        found: &mut Findings,
    ) {
        let heading = self.without_hint(context);
        let Stage::Detecting(detecting) = &mut self.stage else { return };
        detecting.push(event.time, event.from, event.piece);
        match detecting.look(self.wanted, &heading) {
            Found::NotYet => {}
            Found::Nothing => self.stage = Stage::Over,
            Found::Protocol(id) => {
                let (heads, turns) = core::mem::take(detecting).into_parts();
                self.stage = Stage::begin(id, context);
                let mut read = [0; 2];
                for turn in turns {
                    let at = &mut read[turn.from.index()];
                    let piece = match turn.what {
                        What::Bytes(len) => {
                            let from = *at;
                            *at += len;
                            Piece::Bytes(&heads[turn.from.index()][from..*at])
                        }
                        What::Gap(len, cause) => Piece::Gap(len, cause),
                        What::End => Piece::End,
                    };
                    let event = Event { time: turn.time, from: turn.from, piece };
                    self.take(&event, context, found);
                }
            }
        }
    }
}
