//! From one protocol to the next within a conversation.

use netsniff_packet::Timestamp;

use super::detection::Detecting;
use super::{Conversation, Event, Speaker, Understanding};
use crate::protocol::list::{ProtocolId, ProtocolSet};
use crate::protocol::session::findings::Findings;
use crate::protocol::session::{Counted, Role, SessionContext, Successor};
use crate::reassembly::stream::Piece;

impl Conversation {
    /// Goes on in another protocol, which is found out anew unless the session knows it: `rest` is
    /// what follows from the side that spoke last.
    pub(super) fn hand_over(
        &mut self,
        time: Timestamp,
        from: Role,
        rest: &[u8],
        context: &SessionContext<'_>,
        found: &mut Findings,
    ) {
        let successor = match &mut self.stage {
            Understanding::Speaking(Speaker { session, .. }) => {
                self.counted = self.counted.max(session.counted());
                session.successor()
            }
            Understanding::Detecting(_) | Understanding::Over => None,
        };
        self.end_session(found);
        self.handovers = self.handovers.saturating_add(1);
        let [mut first, mut second] = core::mem::take(&mut self.unread);
        if self.handovers > context.limits.handovers {
            found.weirds.add("too_many_protocol_changes");
            found.attribute("conversation", &mut self.oddities);
            self.stage = Understanding::Over;
            return;
        }
        let (own, other) = match from {
            Role::Originator => (&mut first, &mut second),
            Role::Responder => (&mut second, &mut first),
        };
        self.stage = match successor {
            Some(successor) => Understanding::succeed(successor, self.wanted),
            None => Understanding::Detecting(Detecting::default()),
        };
        for (role, bytes) in [(from.peer(), other.bytes.as_slice()), (from, rest)] {
            if !bytes.is_empty() {
                self.take_piece(
                    &Event { time, from: role, piece: Piece::Bytes(bytes) },
                    context,
                    found,
                );
            }
        }
        for (role, has_ended) in [(from.peer(), other.has_ended), (from, own.has_ended)] {
            if has_ended {
                self.take_piece(&Event { time, from: role, piece: Piece::End }, context, found);
            }
        }
    }
}

impl Understanding {
    /// Begins a session of the protocol that takes over.
    pub(super) fn begin(id: ProtocolId, counted: Counted, context: &SessionContext<'_>) -> Self {
        let mut session = id.protocol().session(context);
        session.count_on(counted);
        Self::Speaking(Speaker { id, session, is_confirmed: false })
    }

    /// Goes on with a session that another one left, if its protocol is wanted.
    fn succeed(successor: Successor, wanted: ProtocolSet) -> Self {
        match ProtocolId::named(successor.protocol).filter(|&id| wanted.has(id)) {
            Some(id) => {
                Self::Speaking(Speaker { id, session: successor.session, is_confirmed: false })
            }
            None => Self::Over,
        }
    }
}
