//! Pieces of two streams in the order in which their hosts said them.
//!
//! What a host sends with an acknowledgement, it sends in knowledge of all that this acknowledges. While
//! acknowledged bytes of one side are waited for, since captures are not quite in order, what the other
//! side said upon them waits as well. Without that the next request would come before the response
//! that was lost.

use std::collections::VecDeque;

use netsniff_packet::Timestamp;

use crate::protocol::{Event, Role};
use crate::reassembly::stream::{GapCause, Piece};

/// Acknowledgements of one side that are remembered for what it said with them. What comes with more of
/// them is handed on as it comes.
const MAX_NOTES: usize = 1_024;

/// Bytes that a piece takes besides its own.
const PER_PIECE: usize = size_of::<WaitingPiece>();

/// Whose turn it is.
#[derive(Debug)]
pub(super) struct Turns {
    /// Up to where the stream of each role was handed on.
    read: [u64; 2],
    /// What waits, by role. Most connections never have any.
    waiting: Option<Box<[Waiting; 2]>>,
}

/// What is missing, by role.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missing {
    /// Whether acknowledged bytes are waited for.
    pub(super) is_due: [bool; 2],
    /// Whether anything is waited for: bytes, or that what came counts.
    pub(super) is_held: [bool; 2],
}

/// What waits of one side.
#[derive(Debug, Default)]
struct Waiting {
    /// What the side acknowledged as it said what was not handed on yet, by its positions.
    notes: VecDeque<Note>,
    /// Up to where it had acknowledged when it said what was handed on last.
    behind: u64,
    /// Pieces of the streams that wait for the other side.
    pieces: VecDeque<WaitingPiece>,
    /// Bytes that they take.
    bytes: usize,
}

/// What a side says from a position on up to another, it says having acknowledged so much.
#[derive(Clone, Copy, Debug)]
struct Note {
    position: u64,
    reach: u64,
    acknowledged: u64,
}

/// A piece that waits.
#[derive(Debug)]
struct WaitingPiece {
    time: Timestamp,
    /// The position behind it.
    reach: u64,
    /// Up to where the other side must be handed on before.
    behind: u64,
    what: PieceContent,
}

#[derive(Debug)]
enum PieceContent {
    Bytes(Box<[u8]>),
    Gap(GapCause),
    End,
}

impl Default for Turns {
    fn default() -> Self {
        Self { read: [1; 2], waiting: None }
    }
}

impl Turns {
    /// Bytes of pieces that wait.
    pub(super) fn held(&self) -> usize {
        self.waiting.iter().flat_map(|both| both.iter()).map(|side| side.bytes).sum()
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let Some(both) = &self.waiting else { return 0 };
        let notes = |side: &Waiting| side.notes.capacity() * size_of::<Note>();
        size_of::<[Waiting; 2]>() + both.iter().map(|side| notes(side) + side.bytes).sum::<usize>()
    }

    /// Notes that a side had acknowledged so much of the other as it said what lies between these positions.
    /// It is only asked while something is missing.
    #[cold]
    pub(super) fn note(&mut self, from: Role, [position, reach]: [u64; 2], acknowledged: u64) {
        let read = self.read[from.index()];
        let side = &mut self.waiting.get_or_insert_default()[from.index()];
        let said = side.pieces.back().map_or(read, |last| last.reach);
        let at = side.notes.partition_point(|note| note.position <= position);
        let before = at.checked_sub(1).and_then(|at| side.notes.get_mut(at));
        if position < said {
            // It was said before, or is a copy, which comes with what its sender had by then.
        } else if let Some(before) =
            before.filter(|note| note.position == position || note.acknowledged >= acknowledged)
        {
            before.reach = before.reach.max(reach);
        } else if side.notes.len() < MAX_NOTES {
            side.notes.insert(at, Note { position, reach, acknowledged });
        }
    }

    /// Takes back that more of a side was sent than lies below `next`, or acknowledged than `acknowledged`, where
    /// nothing of it was told but a gap.
    #[cold]
    pub(super) fn withdraw(&mut self, of: Role, next: u64, acknowledged: u64) {
        let [own, peer] = [of.index(), of.peer().index()];
        let Some(both) = &mut self.waiting else {
            self.read[own] = self.read[own].min(next);
            return;
        };
        let pieces = &both[own].pieces;
        let before = pieces.len().checked_sub(2).and_then(|at| pieces.get(at));
        let before = before.map_or(self.read[own], |late| late.reach);
        if let Some(gap) = both[own].pieces.back_mut().filter(|late| late.reach > next) {
            gap.reach = next;
            if before >= next {
                both[own].pop_last();
            }
        }
        self.read[own] = self.read[own].min(next);
        both[peer].know_less(acknowledged);
    }

    /// Takes the next piece of a side, up to `reach`, and hands on what may be told then. `is_peer_due` tells
    /// whether acknowledged bytes of the other side are waited for.
    #[inline]
    pub(super) fn take(
        &mut self,
        event: &Event<'_>,
        reach: u64,
        is_peer_due: bool,
        mut to: impl FnMut(&Event<'_>),
    ) {
        if self.waiting.is_none() {
            self.read[event.from.index()] = reach;
            return to(event);
        }
        self.take_among_others(event, reach, is_peer_due, &mut to);
    }

    #[cold]
    fn take_among_others(
        &mut self,
        event: &Event<'_>,
        reach: u64,
        is_peer_due: bool,
        to: &mut impl FnMut(&Event<'_>),
    ) {
        let Event { time, from, piece } = *event;
        let [own, peer] = [from.index(), from.peer().index()];
        let Some(both) = &mut self.waiting else { return };
        let is_peer_empty = both[peer].pieces.is_empty();
        let side = &mut both[own];
        side.say(reach, piece == Piece::End);
        let behind = side.behind;
        let is_next =
            side.pieces.is_empty() && (behind <= self.read[peer] || is_peer_empty && !is_peer_due);
        // What follows from this side is told in the same way, so that it is its turn still.
        let mut missing = Missing { is_due: [true; 2], is_held: [true; 2] };
        missing.is_due[peer] = is_peer_due;
        if is_next && !matches!(piece, Piece::Gap(..)) {
            self.read[own] = reach;
            to(event);
        } else {
            let what = match piece {
                Piece::Bytes(bytes) => PieceContent::Bytes(bytes.into()),
                Piece::Gap(_, cause) => PieceContent::Gap(cause),
                Piece::End => PieceContent::End,
            };
            side.push(WaitingPiece { time, reach, behind, what });
        }
        self.settle(missing, to);
    }

    /// Hands on what may be told while so much is missing.
    pub(super) fn settle(&mut self, missing: Missing, to: &mut impl FnMut(&Event<'_>)) {
        let Some(both) = &mut self.waiting else { return };
        while let Some(from) = next(both, self.read, missing) {
            let [own, peer] = [from.index(), from.peer().index()];
            let Some(late) = both[own].pieces.front() else { return };
            // What the other side said within a gap parts it.
            let parted = both[peer].behind().unwrap_or(u64::MAX);
            let read = self.read[own];
            let time = late.time;
            if let PieceContent::Gap(cause) = late.what
                && (read + 1..late.reach).contains(&parted)
            {
                self.read[own] = parted;
                to(&Event { time, from, piece: Piece::Gap(parted - read, cause) });
                continue;
            }
            let Some(late) = both[own].pop() else { return };
            self.read[own] = late.reach;
            let piece = match &late.what {
                PieceContent::Bytes(bytes) => Piece::Bytes(bytes),
                PieceContent::Gap(cause) => Piece::Gap(late.reach - read, *cause),
                PieceContent::End => Piece::End,
            };
            to(&Event { time, from, piece });
        }
    }

    /// Whether something waits, or may have to.
    #[inline]
    pub(super) const fn is_disturbed(&self) -> bool {
        self.waiting.is_some()
    }

    /// Forgets what was acknowledged, once nothing waits and nothing is missing.
    #[inline]
    pub(super) fn rest(&mut self) {
        if self.waiting.as_ref().is_some_and(|both| both.iter().all(|side| side.pieces.is_empty()))
        {
            self.waiting = None;
        }
    }
}

impl Waiting {
    /// Up to where the side had acknowledged when it said what comes next of it.
    fn behind(&self) -> Option<u64> {
        let first = self.pieces.front().map(|late| late.behind);
        first.or_else(|| self.notes.front().map(|note| note.acknowledged))
    }

    /// The next piece of the side is at hand, up to `reach`.
    fn say(&mut self, reach: u64, is_end: bool) {
        while let Some(note) = self.notes.front().filter(|note| note.position < reach || is_end) {
            self.behind = self.behind.max(note.acknowledged);
            if note.reach > reach && !is_end {
                return;
            }
            self.notes.pop_front();
        }
    }

    /// No more was acknowledged at any time.
    fn know_less(&mut self, acknowledged: u64) {
        self.behind = self.behind.min(acknowledged);
        let notes = self.notes.iter_mut().map(|note| &mut note.acknowledged);
        for known in notes.chain(self.pieces.iter_mut().map(|late| &mut late.behind)) {
            *known = (*known).min(acknowledged);
        }
    }

    fn pop_last(&mut self) {
        if let Some(late) = self.pieces.pop_back() {
            self.bytes = self.bytes.saturating_sub(late.bytes());
        }
    }

    fn push(&mut self, late: WaitingPiece) {
        self.bytes += late.bytes();
        self.pieces.push_back(late);
    }

    fn pop(&mut self) -> Option<WaitingPiece> {
        let late = self.pieces.pop_front()?;
        self.bytes = self.bytes.saturating_sub(late.bytes());
        Some(late)
    }
}

impl WaitingPiece {
    fn bytes(&self) -> usize {
        PER_PIECE + if let PieceContent::Bytes(bytes) = &self.what { bytes.len() } else { 0 }
    }
}

/// The side whose first piece comes next, if any may be told.
fn next(both: &[Waiting; 2], read: [u64; 2], missing: Missing) -> Option<Role> {
    let Missing { is_due, is_held } = missing;
    let roles = [Role::Originator, Role::Responder];
    let fronts = roles.map(|role| both[role.index()].pieces.front());
    let is_gap = |role: &Role| {
        fronts[role.index()].is_some_and(|late| matches!(late.what, PieceContent::Gap(_)))
    };
    let is_next = |role: &Role| {
        let [own, peer] = [role.index(), role.peer().index()];
        // What was said within a gap comes before the rest of that.
        let is_rest = is_gap(role)
            && (is_held[peer] || fronts[peer].is_some())
            && both[peer].behind().is_some_and(|behind| behind <= read[own]);
        let is_free = !is_due[peer] && fronts[peer].is_none();
        !is_rest && fronts[own].is_some_and(|late| late.behind <= read[peer] || is_free)
    };
    roles.into_iter().find(is_next).or_else(|| {
        // Each waits for the other, as only what was sent again can: the older one comes first.
        let [Some(originator), Some(responder)] = fronts else { return None };
        let is_older = originator.time <= responder.time;
        let first = if is_older { Role::Originator } else { Role::Responder };
        (is_due == [false; 2]).then_some(first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_acknowledged_is_remembered_up_to_a_bound() {
        let mut turns = Turns::default();
        for number in 0..2 * MAX_NOTES as u64 {
            let said = [1 + number * 100, 101 + number * 100];
            turns.note(Role::Originator, said, 1 + number);
        }
        let noted = turns.waiting.as_ref().map(|both| both[0].notes.len());
        assert_eq!(noted, Some(MAX_NOTES));
    }
}
