//! What segments said that a connection did not take: other numbers of its sides. They are believed
//! once the other side says the same.

use netsniff_packet::Timestamp;
use netsniff_packet::decode::{Tcp, TcpFlags};

use super::acceptance::could_be_taken;
use super::refusal::Refusal;
use super::{SegmentContext, SegmentOutcome, TcpConnection};
use crate::depth::Depth;
use crate::flow::SentTotals;
use crate::flow::tcp::metrics::first::First;
use crate::flow::tcp::observed::Observed;
use crate::flow::tcp::segment::{ORIGINATOR, RESPONDER, Segment};
use crate::limits::Limits;

/// Answers to a SYN that differ, of which the originator takes one. Whoever sends more of them
/// wants to be believed in none.
const MAX_ANSWERS: usize = 4;

/// What is claimed of a connection besides what it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Contest {
    /// Answers to a SYN with other numbers than the first.
    answers: Vec<Claimed>,
    /// SYNs with other numbers that came before the one of this connection, and were not answered yet.
    earlier: Vec<Unanswered>,
    /// A SYN of the originator with another number, in the midst of the connection.
    challenger: Option<Claimed>,
    /// Numbers far from what was seen of a side, by that side and by the one that says so.
    pub(super) claims: [[Option<u32>; 2]; 2],
    /// Whether such numbers were believed, since both sides said them. What was seen before them
    /// and what came behind need not be of the same hosts.
    pub(super) is_believed: bool,
}

/// A SYN that nothing has answered yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unanswered {
    /// The segment, with its repetitions.
    pub first: First,
    /// When it was seen first.
    pub time: Timestamp,
}

/// A SYN or its answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claimed {
    /// The segment that may begin another connection.
    pub first: First,
    /// When it was seen.
    pub time: Timestamp,
    /// How often, and the bytes of its packets.
    pub sent: SentTotals,
}

impl Contest {
    /// Bytes that it holds outside itself.
    pub(super) const fn heap_bytes(&self) -> usize {
        self.answers.capacity() * size_of::<Claimed>()
            + self.earlier.capacity() * size_of::<Unanswered>()
    }

    /// Originator and responder change places.
    pub(super) fn flip(&mut self) {
        let claimed = self.answers.iter_mut().chain(&mut self.challenger);
        let syns = claimed.map(|claimed| &mut claimed.first);
        syns.chain(self.earlier.iter_mut().map(|it| &mut it.first)).for_each(First::flip);
        self.claims.swap(0, 1);
        self.claims.iter_mut().for_each(|by| by.swap(0, 1));
    }

    pub(super) fn note_syn(&mut self, segment: &Segment<'_>) {
        let first = First::of(&Observed::new(segment, segment.from, 0, None));
        let sent = SentTotals { packets: 1, ip_bytes: segment.ip_bytes.into() };
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
    /// Leaves out a segment that neither side can have taken; its letter tells that it came.
    #[cold]
    pub(super) fn leave_out(
        &mut self,
        segment: &Segment<'_>,
        refusal: &Refusal,
        context: &mut SegmentContext<'_>,
    ) -> SegmentOutcome {
        context.weirds.add(refusal.oddness.name());
        // The letter of a SYN is one of the connection that it may begin.
        if segment.has(TcpFlags::ACK) || !segment.has(TcpFlags::SYN) {
            let sender = &self.ends[segment.from];
            let (position, _) = sender.last.relative(segment.tcp.sequence, sender.start);
            self.note_history(segment, position, &mut context.history);
        }
        if refusal.is_rival {
            self.note_rival(segment);
        }
        if refusal.is_late && !(self.ends[0].did_close && self.ends[1].did_close) {
            *context.last_time = segment.time;
        }
        SegmentOutcome {
            is_flipped: false,
            from: segment.from,
            position: None,
            acknowledged: None,
            is_reset: false,
            is_renumbering: false,
        }
    }

    /// Whether both sides were believed other numbers than those that they had.
    pub(super) fn is_renumbered(&self) -> bool {
        self.contest.as_ref().is_some_and(|contest| contest.is_believed)
    }

    /// Whether the segment is a SYN that was not taken for one of this connection, and may begin another.
    #[must_use]
    pub fn is_challenged_by(&self, tcp: &Tcp) -> bool {
        let challenger = self.contest.as_ref().and_then(|contest| contest.challenger.as_ref());
        !tcp.flags.any(TcpFlags::ACK) && challenger.is_some_and(|it| it.first.has_number(tcp))
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

    /// Whether the segment acknowledges an answer to a SYN of its sender that was not taken, and which.
    #[must_use]
    pub fn answer_chosen_by(&self, segment: &Segment<'_>) -> Option<Claimed> {
        let contest = self.contest.as_ref()?;
        let answering = 1 - (segment.from & 1);
        let can_tell = segment.has(TcpFlags::ACK)
            && !segment.has(TcpFlags::SYN.with(TcpFlags::RST))
            && !self.is_begun(answering);
        let number = segment.tcp.acknowledgement;
        if !can_tell || number == self.ends[answering].start.wrapping_add(1) {
            return None;
        }
        let is_it = |answer: &&Claimed| {
            answer.first.next_number() == number && answer.first.sender() == answering
        };
        contest.answers.iter().find(is_it).copied()
    }

    /// The connection that begins with the SYN of this one and an answer that its sender took.
    /// What else was seen until then belongs to nothing. `None` where its begin was not seen.
    #[must_use]
    pub fn with_answer(
        &self,
        answer: &Claimed,
        begun: Timestamp,
        depth: Depth,
        limits: &Limits,
    ) -> Option<Self> {
        let opener = 1 - answer.first.sender();
        // A SYN with data, or behind another one, is remembered by its number alone.
        let end = &self.ends[opener];
        let has_syn = self.metrics.evidence().is_some_and(|(sides, ..)| sides[opener].has_syn());
        let by_number = has_syn.then(|| First::syn(end.start, end.window_scale));
        let plain = self.metrics.opening().filter(First::is_plain_syn);
        let opening = plain.filter(|_| opener == ORIGINATOR).or(by_number)?;
        let mut tcp = Self::reopened(&opening, [begun, answer.time], depth, limits);
        let mut answered = answer.first;
        if opener == RESPONDER {
            answered.flip();
        }
        tcp.replay(&answered, answer.time, limits);
        Some(tcp)
    }

    /// A connection of which nothing was seen yet, behind one of which nothing but a SYN was seen: its
    /// answer may come still.
    #[must_use]
    pub fn behind(earlier: Vec<Unanswered>, depth: Depth) -> Self {
        let mut tcp = Self::at(depth);
        tcp.contest = Some(Box::new(Contest { earlier, ..Contest::default() }));
        tcp
    }

    /// The SYNs of the originator that may be answered still, where nothing else was seen since `begun`.
    #[must_use]
    pub fn unanswered(&self, begun: Timestamp) -> Vec<Unanswered> {
        if !self.is_opening() {
            return Vec::new();
        }
        let last = self.as_opening();
        let is_earlier = |known: &Unanswered| last.is_none_or(|last| !last.is_same(&known.first));
        let earlier = self.contest.iter().flat_map(|contest| &contest.earlier).copied();
        let last = last.map(|first| Unanswered { first, time: begun });
        let mut all: Vec<Unanswered> = earlier.filter(is_earlier).chain(last).collect();
        all.drain(..all.len().saturating_sub(MAX_ANSWERS));
        all
    }

    /// The connection that began with an earlier SYN than this one's, where the segment answers that.
    #[must_use]
    pub fn with_earlier(
        &self,
        segment: &Segment<'_>,
        depth: Depth,
        limits: &Limits,
    ) -> Option<Self> {
        let contest = self.contest.as_ref()?;
        let is_answer = segment.has(TcpFlags::SYN)
            && segment.has(TcpFlags::ACK)
            && !segment.is_originator()
            && could_be_taken(segment.tcp.flags);
        if !is_answer || !self.is_opening() {
            return None;
        }
        let number = segment.tcp.acknowledgement;
        let answered = contest.earlier.iter().find(|it| it.first.next_number() == number)?;
        Some(Self::reopened(&answered.first, [answered.time; 2], depth, limits))
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
        tcp.metrics.resume(&first, begun);
        Some(tcp)
    }
}
