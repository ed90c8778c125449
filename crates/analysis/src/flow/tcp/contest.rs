//! What segments said that a connection did not take: other numbers of its sides. They are believed
//! once the other side says the same.

use netsniff_packet::Timestamp;
use netsniff_packet::decode::{Tcp, TcpFlags};

use super::machine::{ORIGINATOR, RESPONDER, Segment, TcpConnection};
use super::metrics::Observed;
use super::metrics::first::First;
use crate::depth::Depth;
use crate::flow::Sent;
use crate::limits::Limits;

/// Answers to a SYN that differ, of which the originator takes one. Whoever sends more of them
/// wants to be believed in none.
const MAX_ANSWERS: usize = 4;

/// What is claimed of a connection besides what it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Contest {
    /// Answers to the originator's SYN with other numbers than the first.
    answers: Vec<Claimed>,
    /// A SYN of the originator with another number, in the midst of the connection.
    challenger: Option<Claimed>,
    /// Numbers far from what was seen of a side, by that side and by the one that says so.
    pub(super) claims: [[Option<u32>; 2]; 2],
    /// Whether such numbers were believed, since both sides said them. What was seen before them
    /// and what came behind need not be of the same hosts.
    pub(super) is_believed: bool,
}

/// A SYN or its answer.
#[derive(Clone, Copy, Debug)]
pub struct Claimed {
    /// The segment.
    pub first: First,
    /// When it was seen.
    pub time: Timestamp,
    /// How often, and the bytes of its packets.
    pub sent: Sent,
}

impl Contest {
    /// Bytes that it holds outside itself.
    pub(super) const fn heap_bytes(&self) -> usize {
        self.answers.capacity() * size_of::<Claimed>()
    }

    pub(super) fn note_syn(&mut self, segment: &Segment<'_>) {
        let first = First::of(&Observed::new(segment, segment.from, 0, None));
        let sent = Sent { packets: 1, ip_bytes: segment.ip_bytes.into() };
        let claimed = Claimed { first, time: segment.time, sent };
        if !segment.has(TcpFlags::ACK) {
            let known = self.challenger.as_mut();
            match known.filter(|known| known.first.has_number(segment.tcp)) {
                Some(known) => {
                    known.sent.packets += 1;
                    known.sent.ip_bytes += u64::from(segment.ip_bytes);
                }
                None => self.challenger = Some(claimed),
            }
            return;
        }
        if self.answers.iter().any(|known| known.first.has_number(segment.tcp)) {
            return;
        }
        if self.answers.len() >= MAX_ANSWERS {
            self.answers.remove(0);
        }
        self.answers.push(claimed);
    }
}

impl TcpConnection {
    /// Whether both sides were believed other numbers than those that they had.
    pub(super) fn is_renumbered(&self) -> bool {
        self.contest.as_ref().is_some_and(|contest| contest.is_believed)
    }

    /// Whether the segment answers a SYN that was not taken for one of this connection: it is over,
    /// and another one has begun with that SYN.
    #[must_use]
    pub fn challenger_answered_by(&self, tcp: &Tcp, from: usize) -> Option<Claimed> {
        let challenger = self.contest.as_ref()?.challenger?;
        let is_answer = tcp.flags.any(TcpFlags::SYN) && tcp.flags.any(TcpFlags::ACK);
        let is_it = tcp.acknowledgement == challenger.first.next_number();
        (is_answer && is_it && from != challenger.first.sender()).then_some(challenger)
    }

    /// Whether the segment of the originator acknowledges an answer to its SYN that was not taken,
    /// and which.
    #[must_use]
    pub fn answer_chosen_by(&self, segment: &Segment<'_>) -> Option<Claimed> {
        let contest = self.contest.as_ref()?;
        let can_tell = segment.is_originator()
            && segment.has(TcpFlags::ACK)
            && !segment.has(TcpFlags::SYN.with(TcpFlags::RST))
            && !self.is_confirmed();
        if !can_tell || segment.tcp.acknowledgement == self.ends[RESPONDER].start.wrapping_add(1) {
            return None;
        }
        let number = segment.tcp.acknowledgement;
        contest.answers.iter().copied().find(|answer| answer.first.next_number() == number)
    }

    /// The connection that begins with the SYN of this one and an answer that the originator took.
    /// What else was seen until then belongs to nothing. `None` where its begin was not seen.
    #[must_use]
    pub fn with_answer(
        &self,
        answer: &Claimed,
        begun: Timestamp,
        depth: Depth,
        limits: &Limits,
    ) -> Option<Self> {
        // A SYN with data is remembered by its number alone.
        let originator = &self.ends[ORIGINATOR];
        let has_syn = self.metrics.evidence().is_some_and(|(sides, _)| sides[ORIGINATOR].has_syn());
        let by_number = has_syn.then(|| First::syn(originator.start, originator.window_scale));
        let opening = self.metrics.opening().filter(First::is_plain_syn).or(by_number)?;
        let mut tcp = Self::reopened(&opening, begun, depth, limits);
        tcp.replay(&answer.first, answer.time, limits);
        Some(tcp)
    }

    /// Whether the segment shows that the first one, a SYN-ACK, was an answer whose SYN was not
    /// seen: a scan with SYN-ACKs gets a RST or nothing, never acknowledgements or data.
    #[must_use]
    pub fn is_answer_first(&self, segment: &Segment<'_>) -> bool {
        let control = TcpFlags::SYN.with(TcpFlags::RST);
        let goes_on =
            segment.tcp.payload_len > 0 || (segment.has(TcpFlags::ACK) && !segment.is_originator());
        goes_on
            && !segment.has(control)
            && self.seen == 1
            && self.ends[ORIGINATOR].is_answering()
            && self.metrics.only_first().is_some()
            && (segment.is_originator()
                || segment.tcp.acknowledgement == self.ends[ORIGINATOR].last.number)
    }

    /// The connection whose responder sent the SYN-ACK that this one began with.
    #[must_use]
    pub fn with_answer_first(
        &self,
        begun: Timestamp,
        depth: Depth,
        limits: &Limits,
    ) -> Option<Self> {
        let mut first = self.metrics.only_first()?;
        first.flip();
        let mut tcp = Self::at(depth);
        tcp.replay(&first, begun, limits);
        tcp.metrics.resume(&first);
        Some(tcp)
    }
}
