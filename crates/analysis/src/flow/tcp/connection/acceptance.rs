//! Which segments belong to a connection. A segment that neither side can have taken (RFC 9293,
//! 3.10.7) was forged, is of an older connection, or tells of one that begins: it changes no state,
//! no position and no end, and is told as an oddity.
//!
//! The tap does not see what the hosts see. What the capture may have missed is granted to every
//! number: all that a window, its scale and the time allow. A number beyond that is believed once
//! the other side says it, too.

use netsniff_packet::Timestamp;
use netsniff_packet::decode::TcpFlags;

use super::TcpConnection;
use super::contest::Contest;
use super::numbers::sequence_length;
use super::refusal::{Oddness, Refusal, refuse, rival};
use crate::flow::tcp::endpoint::{State, TcpEndpoint};
use crate::flow::tcp::observed::elapsed;
use crate::flow::tcp::segment::{ORIGINATOR, RESPONDER, Segment};
use crate::flow::tcp::sequence::{MAX_WINDOW, delta};

/// Numbers so near each other are those of one flight: the largest window without a scale.
pub(super) const NEAR: u32 = 65_535;

/// The shortest round trip, where the handshake tells none: hosts of one rack; nanoseconds.
const LEAST_RTT: u64 = 20_000;

/// What the fastest connection of today carries: 100 Gbit/s.
const BYTES_PER_MICRO: u64 = 12_500;

/// How late one direction may be captured behind the other, whose interfaces or rings are read in turn;
/// nanoseconds.
const SKEW: u64 = 10_000_000;

/// What one connection can carry in so many nanoseconds.
const fn carried(time: u64) -> u64 {
    time.saturating_mul(BYTES_PER_MICRO) / 1_000
}

/// Whether hosts take a segment with these flags at all. A SYN that ends or resets what it begins
/// is dropped.
pub(super) const fn could_be_taken(flags: TcpFlags) -> bool {
    !flags.any(TcpFlags::SYN) || !flags.any(TcpFlags::FIN.with(TcpFlags::RST))
}

impl TcpConnection {
    /// Why the segment is not one of this connection, whose packet before it came at `last`; `None`
    /// where it is.
    #[inline]
    pub(super) fn refusal(&mut self, segment: &Segment<'_>, last: Timestamp) -> Option<Refusal> {
        let (sender, peer) = (&self.ends[segment.from & 1], &self.ends[1 - (segment.from & 1)]);
        let tcp = segment.tcp;
        let control = TcpFlags::SYN.with(TcpFlags::FIN).with(TcpFlags::RST);
        let is_near = |number, end: &TcpEndpoint| delta(number, end.last.number) <= NEAR as i32;
        let is_plain = !segment.has(control) && segment.has(TcpFlags::ACK);
        let are_established =
            matches!((sender.state, peer.state), (State::Established, State::Established));
        if is_plain
            && are_established
            && !self.is_renumbered()
            && is_near(tcp.sequence, sender)
            && is_near(tcp.acknowledgement, peer)
            && (delta(tcp.acknowledgement, peer.last.number) <= 0 || !self.is_old(segment))
        {
            return None;
        }
        self.refusal_of_rare(segment, last)
    }

    #[cold]
    fn refusal_of_rare(&mut self, segment: &Segment<'_>, last: Timestamp) -> Option<Refusal> {
        if self.unwatched || self.seen == 0 {
            return None;
        }
        let flags = segment.tcp.flags;
        if !could_be_taken(flags) {
            return refuse(Oddness::Christmas);
        }
        if self.is_opening() {
            return self.refusal_while_opening(segment, last);
        }
        if segment.has(TcpFlags::SYN) {
            return self.refusal_of_syn(segment);
        }
        if segment.has(TcpFlags::RST) {
            return self.refusal_of_reset(segment);
        }
        if !segment.has(TcpFlags::ACK) && self.is_confirmed() {
            return refuse(Oddness::WithoutAck);
        }
        if segment.has(TcpFlags::FIN) && self.is_before_acknowledged(segment) {
            return refuse(Oddness::OutsideWindow);
        }
        if segment.has(TcpFlags::FIN) && self.is_behind_fin(segment) {
            let oddness = Oddness::BehindFin;
            return Some(Refusal { oddness, is_rival: false, is_late: true });
        }
        self.refusal_of_numbers(segment, last)
    }

    /// Whether a segment without data stands just behind a FIN: there is no number any more (RFC 9293,
    /// 3.10.7.4).
    fn is_behind_fin(&self, segment: &Segment<'_>) -> bool {
        let sender = &self.ends[segment.from & 1];
        sender.state == State::Closed
            && segment.tcp.payload_len == 0
            && segment.tcp.sequence == sender.last.number
            && sender.last.full() == u64::from(sender.start).saturating_add(sender.fin_position)
    }

    /// Whether a FIN stands before its sender's SYN, or before what the other side has acknowledged: an
    /// old one, at best.
    fn is_before_acknowledged(&self, segment: &Segment<'_>) -> bool {
        let from = segment.from & 1;
        let sender = &self.ends[from];
        if self.seen & (1 << from) == 0 {
            return false;
        }
        let is_first = sender.last.number == sender.start.wrapping_add(1);
        if is_first && delta(segment.tcp.sequence, sender.last.number) < -(NEAR as i32) {
            // More than 2 GiB may lie between a SYN and a FIN.
            return false;
        }
        let end = segment.tcp.sequence.wrapping_add(sequence_length(segment.tcp));
        delta(end, sender.start.wrapping_add(1)) < 0 || delta(end, sender.acknowledged.number) < 0
    }

    /// Whether nothing but a SYN of the originator was seen.
    pub(super) fn is_opening(&self) -> bool {
        let [originator, responder] = &self.ends;
        self.seen == 1 && originator.state == State::SynSent && responder.state == State::Inactive
    }

    /// A host that has sent a SYN takes nothing but an answer to it (RFC 9293, 3.10.7.3).
    fn refusal_while_opening(&mut self, segment: &Segment<'_>, last: Timestamp) -> Option<Refusal> {
        if segment.is_originator() {
            return self.refusal_of_opener(segment, last);
        }
        let (opener, tcp) = (&self.ends[ORIGINATOR], segment.tcp);
        let sent = delta(opener.last.number, opener.start);
        let answers = delta(tcp.acknowledgement, opener.start);
        let is_answer = segment.has(TcpFlags::ACK) && (1..=sent).contains(&answers);
        if segment.has(TcpFlags::SYN) {
            // Two SYNs that cross answer nothing (RFC 9293, 3.5).
            let is_fine = is_answer || !segment.has(TcpFlags::ACK);
            return if is_fine { None } else { refuse(Oddness::BadAnswer) };
        }
        if is_answer {
            return None;
        }
        if segment.has(TcpFlags::RST) {
            return refuse(Oddness::UnacceptableReset);
        }
        // The capture may have missed the answer, and what the originator sent upon it.
        let may_be_later = segment.has(TcpFlags::ACK)
            && tcp.payload_len > 0
            && (1..=NEAR as i32).contains(&answers);
        if may_be_later { None } else { rival(Oddness::UnsentData) }
    }

    /// What the originator sends before an answer to its SYN was seen, which the capture may have missed.
    fn refusal_of_opener(&mut self, segment: &Segment<'_>, last: Timestamp) -> Option<Refusal> {
        let (opener, tcp) = (&self.ends[ORIGINATOR], segment.tcp);
        if segment.has(TcpFlags::SYN) {
            return if tcp.sequence == opener.start { None } else { refuse(Oddness::SynJump) };
        }
        let beyond = delta(tcp.sequence, opener.last.number);
        if segment.has(TcpFlags::RST) {
            // The RST that answers a segment of an older connection has that one's number.
            let is_own = beyond.unsigned_abs() <= NEAR;
            return if is_own { None } else { refuse(Oddness::ResetOutsideWindow) };
        }
        if segment.has(TcpFlags::FIN) {
            let most = carried(elapsed(last, segment.time).unwrap_or(0)).max(NEAR.into());
            let is_taken = !self.is_before_acknowledged(segment)
                && self.beyond(segment) <= most
                && !self.is_contradicted(segment);
            return if is_taken { None } else { refuse(Oddness::OutsideWindow) };
        }
        let is_first = opener.last.number == opener.start.wrapping_add(1);
        if is_first && beyond < -1 {
            return rival(Oddness::OutsideWindow);
        }
        let is_far = is_first && beyond > NEAR as i32;
        if is_far && !self.is_claimed(ORIGINATOR, tcp.sequence, RESPONDER) {
            return rival(Oddness::OutsideWindow);
        }
        self.refusal_of_numbers(segment, last)
    }

    /// A SYN with another number than that of its side. What it says counts only if the other side
    /// answers it (RFC 5961, 4).
    fn refusal_of_syn(&self, segment: &Segment<'_>) -> Option<Refusal> {
        let (sender, peer) = (&self.ends[segment.from & 1], &self.ends[1 - (segment.from & 1)]);
        let tcp = segment.tcp;
        // Some hosts acknowledge a SYN before they answer it.
        let has_begun = self.seen & (1 << segment.from) != 0 && sender.state != State::Inactive;
        if !has_begun {
            return None;
        }
        if tcp.sequence == sender.start {
            // A copy may come late, but it answers nothing that is far from what was sent, and nothing new once it is
            // answered itself.
            let most = if self.is_begun(segment.from & 1) { 0 } else { NEAR as i32 };
            let is_far = segment.has(TcpFlags::ACK)
                && self.seen & (2 >> (segment.from & 1)) != 0
                && delta(tcp.acknowledgement, peer.last.number) > most;
            if is_far {
                return refuse(Oddness::UnsentData);
            }
            return self.refusal_of_copy(segment);
        }
        let has_ended = matches!(sender.state, State::Closed | State::Reset) && self.is_confirmed();
        if !segment.has(TcpFlags::ACK) {
            // What comes behind an end that was not reached yet is told there.
            let is_behind = has_ended && !self.is_closed() && !self.missed_syn(tcp, segment.from);
            return if is_behind { None } else { rival(Oddness::ActiveReuse) };
        }
        if segment.is_originator() && sender.is_answering() {
            // A scan with SYN-ACKs, whose numbers nobody answers.
            return None;
        }
        let answers = delta(tcp.acknowledgement, peer.start);
        let is_answer = (1..=delta(peer.last.number, peer.start)).contains(&answers);
        let oddness = match sender.state {
            State::Closed => Oddness::SynAfterClose,
            State::Reset => Oddness::SynAfterReset,
            _ => Oddness::SynJump,
        };
        // Of two SYNs that crossed, the first may have been forged.
        let may_count = is_answer && !self.is_begun(segment.from & 1);
        Some(Refusal { oddness, is_rival: may_count, is_late: has_ended })
    }

    /// A copy of a SYN behind the end of its connection. It begins another one only if it is answered:
    /// the numbers of that one are far from those of this one (RFC 9293, 3.4.1).
    fn refusal_of_copy(&self, segment: &Segment<'_>) -> Option<Refusal> {
        let [originator, responder] = &self.ends;
        let is_over = |end: &TcpEndpoint| matches!(end.state, State::Closed | State::Reset);
        let has_reset = [originator, responder].iter().any(|end| end.state == State::Reset);
        let may_begin = segment.is_originator() && !segment.has(TcpFlags::ACK);
        if !may_begin || !self.is_confirmed() {
            return None;
        }
        let oddness = if has_reset { Oddness::SynAfterReset } else { Oddness::SynAfterClose };
        let is_rival = has_reset || is_over(originator) && is_over(responder);
        is_rival.then_some(Refusal { oddness, is_rival, is_late: true })
    }

    /// Whether the originator has acknowledged a number of the responder.
    pub(super) const fn is_confirmed(&self) -> bool {
        self.is_begun(RESPONDER)
    }

    /// Whether the other side has acknowledged a number of `side`.
    pub(super) const fn is_begun(&self, side: usize) -> bool {
        let end = &self.ends[side & 1];
        end.acknowledged.full() > end.start as u64
    }

    /// A RST outside of what its receiver awaits resets nothing (RFC 9293, 3.10.7.4).
    fn refusal_of_reset(&self, segment: &Segment<'_>) -> Option<Refusal> {
        let from = segment.from & 1;
        let sender = &self.ends[from];
        if self.seen & (1 << from) == 0 {
            return None;
        }
        // What was acknowledged is not awaited any more, give or take a FIN.
        let acknowledged = sender.acknowledged.full().max(sender.start.into());
        let awaited = sender.last.full().saturating_sub(acknowledged).saturating_add(1);
        let beyond = delta(segment.tcp.sequence, sender.last.number);
        let distance = u64::from(beyond.unsigned_abs());
        let most = if beyond < 0 { awaited } else { self.window_of(1 - from) };
        if distance <= most { None } else { refuse(Oddness::ResetOutsideWindow) }
    }

    /// Numbers beyond all that can have been sent since the last packet.
    fn refusal_of_numbers(&mut self, segment: &Segment<'_>, last: Timestamp) -> Option<Refusal> {
        let from = segment.from & 1;
        let tcp = segment.tcp;
        let time = elapsed(last, segment.time).unwrap_or(0);
        let is_far = |side: usize, number: u32| {
            self.seen & (1 << side) != 0 && self.exceeds(side, number, time)
        };
        let is_far_end = self.beyond(segment) > self.most_sent(from, time);
        if segment.has(TcpFlags::FIN) && self.is_contradicted(segment) {
            return refuse(Oddness::OutsideWindow);
        }
        let own = is_far(from, tcp.sequence) || segment.has(TcpFlags::FIN) && is_far_end;
        if own && !self.is_claimed(from, tcp.sequence, 1 - from) {
            return rival(Oddness::OutsideWindow);
        }
        // Whoever stands so far off is taken at its word by the other side, for each number apart.
        let is_doubtful = own || self.is_old(segment);
        let other = segment.has(TcpFlags::ACK)
            && (is_far(1 - from, tcp.acknowledgement)
                || is_doubtful && self.is_unseen(1 - from, tcp.acknowledgement));
        if other && !self.is_claimed(1 - from, tcp.acknowledgement, 1 - from) {
            return rival(Oddness::UnsentData);
        }
        if own {
            self.renumber(from, tcp.sequence, segment.time);
        }
        if other {
            self.renumber(1 - from, tcp.acknowledgement, segment.time);
        }
        None
    }

    /// Goes on with a number that lies beyond all that `side` can have sent, since both sides say so. How much
    /// lies between is not known: it counts neither as carried nor as lost.
    fn renumber(&mut self, side: usize, number: u32, time: Timestamp) {
        let end = &mut self.ends[side & 1];
        let top = end.top();
        let beyond = u64::from(delta(number, top as u32).max(0).unsigned_abs());
        let position = top.saturating_add(beyond).saturating_sub(end.start.into());
        end.unproven = end.unproven.saturating_add(beyond);
        end.assembler.acknowledge(position, true);
        self.metrics.renumber(side, number, position.cast_signed(), time);
        self.contest.get_or_insert_default().is_believed = true;
        self.renumbered = true;
    }

    /// Whether a segment without SYN stands where its sender's SYN did, which was acknowledged. Its host takes no
    /// acknowledgement from it (RFC 9293, 3.10.7.4), which may be a forged or a broken one.
    fn is_old(&self, segment: &Segment<'_>) -> bool {
        let from = segment.from & 1;
        self.is_begun(from)
            && segment.tcp.sequence == self.ends[from].start
            && sequence_length(segment.tcp) <= 1
    }

    /// Whether `side` was neither seen to send what stands before a number, nor has the other side said so.
    fn is_unseen(&self, side: usize, number: u32) -> bool {
        let known = self.ends[side & 1].top();
        self.seen & (1 << side) != 0 && delta(number, known as u32) > 0
    }

    /// Whether a number lies further beyond what `side` has sent than it can have sent in `time`
    /// nanoseconds: a window in each round trip.
    fn exceeds(&self, side: usize, number: u32, time: u64) -> bool {
        let beyond = delta(number, self.ends[side].top() as u32);
        if beyond <= NEAR as i32 {
            return false;
        }
        // What was too far before is so whenever it comes again.
        let is_refused = [0, 1].iter().any(|&by| self.has_claim(side, number, by));
        is_refused || u64::from(beyond.unsigned_abs()) > self.most_sent(side, time)
    }

    /// Whether a FIN far behind a SYN, with nothing between, has the numbers of an older connection: some of
    /// that one came behind the SYN.
    fn is_contradicted(&self, segment: &Segment<'_>) -> bool {
        let from = segment.from & 1;
        let is_first = self.ends[from].last.number == self.ends[from].start.wrapping_add(1);
        let has_claims = |contest: &Contest| contest.claims[from].iter().any(Option::is_some);
        is_first
            && self.beyond(segment) > NEAR.into()
            && self.contest.as_deref().is_some_and(has_claims)
    }

    /// How far a segment lies beyond what its sender was seen to send. More than 2 GiB can lie between
    /// a SYN and a FIN.
    fn beyond(&self, segment: &Segment<'_>) -> u64 {
        let sender = &self.ends[segment.from & 1];
        let (number, last) = (segment.tcp.sequence, sender.last.number);
        let is_end = segment.has(TcpFlags::FIN) && last == sender.start.wrapping_add(1);
        let distance = delta(number, last);
        match u64::try_from(distance) {
            Ok(distance) => distance,
            Err(_) if is_end && distance < -(NEAR as i32) => number.wrapping_sub(last).into(),
            Err(_) => 0,
        }
    }

    /// The most that `side` can have sent in `time` nanoseconds without its being seen.
    fn most_sent(&self, side: usize, time: u64) -> u64 {
        let carried = carried(time.saturating_add(SKEW));
        let window = self.window_of(1 - side);
        let rtt = self.metrics.handshake_nanos().unwrap_or(LEAST_RTT).max(LEAST_RTT);
        let flights = (time / rtt).saturating_add(2);
        window.saturating_mul(flights).min(carried)
    }

    /// The most that `side` lets the other send at once. Without its SYN nobody knows its scale.
    fn window_of(&self, side: usize) -> u64 {
        if self.partial || self.ends[side].state == State::Inactive {
            return MAX_WINDOW.unsigned_abs().into();
        }
        u64::from(self.ends[side].window.max(NEAR))
    }

    /// Whether `by` said before that `side` has sent about what stands at a number. A side that was
    /// not seen cannot say it, so that the other's word counts.
    fn is_claimed(&self, side: usize, number: u32, by: usize) -> bool {
        let by = if self.seen & (1 << by) == 0 { 1 - by } else { by };
        self.has_claim(side, number, by)
    }

    /// The same of one side, whether it was seen or not.
    fn has_claim(&self, side: usize, number: u32, by: usize) -> bool {
        let Some(contest) = &self.contest else { return false };
        let claim = contest.claims[side & 1][by & 1];
        claim.is_some_and(|claim| delta(claim, number).unsigned_abs() <= NEAR)
    }

    /// Notes what a segment that is not taken says.
    #[cold]
    pub(super) fn note_rival(&mut self, segment: &Segment<'_>) {
        let contest = self.contest.get_or_insert_default();
        if segment.has(TcpFlags::SYN) {
            contest.note_syn(segment);
            return;
        }
        let from = segment.from & 1;
        contest.claims[from][from] = Some(segment.tcp.sequence);
        if segment.has(TcpFlags::ACK) {
            contest.claims[1 - from][from] = Some(segment.tcp.acknowledgement);
        }
    }
}
