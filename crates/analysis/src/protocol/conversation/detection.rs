//! Which protocol two streams are of, by how they begin.

use netsniff_packet::Timestamp;

use crate::protocol::heads::{Detection, Heads};
use crate::protocol::list::{ProtocolId, ProtocolSet};
use crate::protocol::session::{Role, SessionContext};
use crate::reassembly::stream::{GapCause, Piece};

/// How many times as long as it is looked at the begin of one side may be until the other says as much.
const LONG_GREETING: usize = 8;

/// Streams whose protocol is not known yet, with all that was seen of them.
#[derive(Debug, Default)]
pub(super) struct Detecting {
    heads: [Vec<u8>; 2],
    /// How much of a head is the begin of its stream, where that is known: more of that side will
    /// not help, since it ended or bytes are missing.
    closed_at: [Option<usize>; 2],
    turns: Vec<HeldPiece>,
}

/// What happened next while the protocol was not known.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldPiece {
    pub(super) time: Timestamp,
    pub(super) from: Role,
    pub(super) what: HeldContent,
}

/// A piece whose bytes lie in the heads.
#[derive(Clone, Copy, Debug)]
pub(super) enum HeldContent {
    /// So many bytes of that side's head.
    Bytes(usize),
    Gap(u64, GapCause),
    End,
}

/// What a look at the heads gave.
pub(super) enum Guess {
    /// The conversation is of this protocol.
    Protocol(ProtocolId),
    /// None of the list.
    Nothing,
    /// More bytes will tell.
    NotYet,
}

impl Detecting {
    pub(super) fn push(&mut self, time: Timestamp, from: Role, piece: Piece<'_>) {
        let what = match piece {
            Piece::Bytes(bytes) => {
                self.heads[from.index()].extend_from_slice(bytes);
                if let Some(HeldPiece { time: same, from: last, what: HeldContent::Bytes(len) }) =
                    self.turns.last_mut()
                    && (*same, *last) == (time, from)
                {
                    *len += bytes.len();
                    return;
                }
                HeldContent::Bytes(bytes.len())
            }
            Piece::Gap(len, cause) => {
                self.close(from);
                HeldContent::Gap(len, cause)
            }
            Piece::End => {
                self.close(from);
                HeldContent::End
            }
        };
        self.turns.push(HeldPiece { time, from, what });
    }

    /// Originator and responder change places.
    pub(super) fn turn(&mut self) {
        self.heads.swap(0, 1);
        self.closed_at.swap(0, 1);
        self.turns.iter_mut().for_each(|turn| turn.from = turn.from.peer());
    }

    fn close(&mut self, from: Role) {
        let head = &self.heads[from.index()];
        self.closed_at[from.index()].get_or_insert(head.len());
    }

    /// Whether nothing was seen yet.
    pub(super) const fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Looks which protocol of `wanted` it is.
    pub(super) fn look(&self, wanted: ProtocolSet, context: &SessionContext<'_>) -> Guess {
        let head = |role: Role| {
            let head = &self.heads[role.index()];
            &head[..self.closed_at[role.index()].unwrap_or(head.len())]
        };
        let heads = [Role::Originator, Role::Responder].map(head);
        look(heads, self.closed_at.iter().all(Option::is_some), wanted, context)
    }

    /// All that was seen, in order.
    pub(super) fn into_parts(self) -> ([Vec<u8>; 2], Vec<HeldPiece>) {
        (self.heads, self.turns)
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.heads.iter().map(Vec::capacity).sum::<usize>()
            + self.turns.capacity() * size_of::<HeldPiece>()
    }
}

/// Looks which protocol of `wanted` two streams with these heads are of; `is_all` where nothing will
/// follow.
pub(super) fn look(
    heads: [&[u8]; 2],
    is_all: bool,
    wanted: ProtocolSet,
    context: &SessionContext<'_>,
) -> Guess {
    let max = context.limits.detection_bytes;
    let is_full = |head: &&[u8]| head.len() >= max;
    let is_final = is_all || heads.iter().any(is_full);
    // Where the port tells, too, a long greeting may come before the other side says anything.
    let most = max.saturating_mul(LONG_GREETING);
    let is_final_for_port =
        is_all || heads.iter().all(is_full) || heads.iter().any(|head| head.len() >= most);
    let [originator, responder] = heads.map(|head| head.get(..max).unwrap_or(head));
    let SessionContext { port, is_midstream, .. } = *context;
    let heads = Heads { originator, responder, port, is_midstream };
    let hinted = wanted.of_tcp_port(port);
    let others = hinted.map_or(wanted, |id| wanted.without(id)).iter();
    let hinted = hinted.into_iter().map(|id| (id, is_final_for_port));
    for (id, is_final) in hinted.chain(others.map(|id| (id, is_final))) {
        match id.protocol().detect(&heads) {
            Detection::Yes => return Guess::Protocol(id),
            Detection::Undecided if !is_final => return Guess::NotYet,
            Detection::Undecided | Detection::No => {}
        }
    }
    Guess::Nothing
}
