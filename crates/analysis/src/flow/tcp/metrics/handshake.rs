//! The round trip of the handshake, in two parts: the tap lies between.

use netsniff_packet::Timestamp;
use netsniff_packet::decode::TcpFlags;

use super::direction::Direction;
use super::rtt::RttStatistics;
use crate::flow::tcp::losses::Repair;
use crate::flow::tcp::observed::{Observed, elapsed};
use crate::flow::tcp::sequence;

/// A hole that is filled within this time was reordering, where no RTT is known; as Wireshark has
/// it, `tcp.analysis.out_of_order`.
pub(super) const REORDER: u64 = 3_000_000;

/// How long after evidence of a loss a retransmission may follow for that reason, besides one RTT;
/// Wireshark's limit for fast retransmissions.
const REACTION: u64 = 20_000_000;

/// The same where no RTT is known: half of the least retransmission time-out in common use.
const REACTION_WITHOUT_RTT: u64 = 100_000_000;

/// No host sends a SYN again as soon as this (RFC 6298, 2.1: after a second); nanoseconds.
const SYN_AGAIN: u64 = 100_000_000;

/// When a segment of the handshake was sent last, which was seen at one time and later at another. The
/// network and the capture double it sooner than its host does; they may also change the order.
pub(super) fn sent_last(sent: Timestamp, seen: Timestamp) -> Timestamp {
    let is_double = elapsed(sent, seen).is_none_or(|age| age < SYN_AGAIN);
    if is_double { sent } else { seen }
}

/// A part of the handshake, or what was faster than that.
#[inline]
fn shortest(part: u64, rtt: &RttStatistics) -> u64 {
    if rtt.count > 0 { part.min(rtt.min) } else { part }
}

/// Whether a segment of the side that opened the connection is surely not what ended the handshake: its
/// sender has sent more than is seen, or got data, which a host sends only once the handshake is over,
/// unless the SYN had data, too (RFC 7413).
const fn is_later(seen: &Observed<'_>, sender: &Direction, peer: &Direction) -> bool {
    seen.segment.tcp.sequence != sender.next()
        || seen.segment.tcp.options.sack_count > 0
        || (peer.data_segments > 0 && sender.data_segments == 0)
}

/// How far the handshake has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum HandshakeStep {
    #[default]
    Nothing,
    Syn,
    SynAck,
    Done,
}

/// From a segment to its answer: from the tap to a host and back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Part {
    /// From when the segment was sent last, which is the least that it can have been; nanoseconds.
    least: u64,
    is_seen: bool,
    /// Whether there was but one copy.
    is_exact: bool,
}

impl Part {
    fn new(least: Option<u64>, is_exact: bool) -> Self {
        Self { least: least.unwrap_or(0), is_seen: least.is_some(), is_exact }
    }

    const fn least(self) -> Option<u64> {
        if self.is_seen { Some(self.least) } else { None }
    }

    const fn exact(self) -> Option<u64> {
        if self.is_exact { self.least() } else { None }
    }
}

/// SYN, SYN-ACK and ACK, and the times between them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Handshake {
    step: HandshakeStep,
    /// Index of the side that sent the SYN.
    opener: u8,
    /// A repeated SYN or SYN-ACK: it is not known which copy is answered.
    ambiguous: bool,
    /// The SYN asked for ECN.
    ecn_asked: bool,
    /// Whether ECN was agreed on, RFC 3168 section 6.1.1; `None` where SYN or SYN-ACK was not seen.
    pub ecn: Option<bool>,
    /// When SYN or SYN-ACK was sent last, whichever came last.
    last: Timestamp,
    /// From SYN-ACK to ACK, and from SYN to SYN-ACK.
    parts: [Part; 2],
    /// The SYN was sent again behind its answer.
    is_missed: bool,
}

/// What the handshake says of how long the repair of a loss takes.
#[derive(Clone, Copy, Debug)]
pub struct Recovery {
    /// A hole that is filled within these nanoseconds may be reordering.
    pub reorder: u64,
    /// The same, where nothing else speaks for a loss.
    pub reorder_without_evidence: u64,
    /// Evidence of a loss counts for these nanoseconds.
    pub reaction: u64,
}

impl Handshake {
    /// Whether nothing more can come.
    #[inline]
    pub(super) const fn is_done(&self) -> bool {
        matches!(self.step, HandshakeStep::Done)
    }

    /// From SYN-ACK to ACK: from the tap to the originator and back. Nanoseconds.
    #[must_use]
    pub const fn originator(&self) -> Option<u64> {
        self.parts[0].exact()
    }

    /// From SYN to SYN-ACK: from the tap to the responder and back. Nanoseconds.
    #[must_use]
    pub const fn responder(&self) -> Option<u64> {
        self.parts[1].exact()
    }

    /// The whole round trip, from one end to the other; nanoseconds.
    #[must_use]
    pub fn rtt(&self) -> Option<u64> {
        Some(self.originator()?.saturating_add(self.responder()?))
    }

    /// The least time in which a side answers what passes the tap: half of what its part of the
    /// handshake took, since hosts and queues may have been slow then.
    /// `peer` tells how soon the side acknowledged what the other sent, which may be sooner: the segment
    /// that ended its part of the handshake may have been lost.
    pub(in crate::flow::tcp) fn least_answer(
        &self,
        from: usize,
        peer: &RttStatistics,
    ) -> Option<u64> {
        let part = self.part(from)?;
        Some(shortest(part, peer) / 2)
    }

    /// The same where data was acknowledged, too.
    pub(in crate::flow::tcp) fn least_measured(
        &self,
        from: usize,
        peer: &RttStatistics,
    ) -> Option<u64> {
        self.least_answer(from, peer).filter(|_| peer.count > 0)
    }

    /// The part of a side, or the shortest that it can have been where it is not known which copy of a
    /// segment was answered.
    const fn part(&self, from: usize) -> Option<u64> {
        self.parts[(from as u8 != self.opener) as usize].least()
    }

    /// How soon what `from` sends can be sent again; `own` tells of what it sent, `peer` of what the other
    /// side did.
    #[inline]
    pub(in crate::flow::tcp) fn repair(
        &self,
        from: usize,
        own: &RttStatistics,
        peer: &RttStatistics,
    ) -> Repair {
        let near = self.part(from).map_or(0, |part| shortest(part, peer));
        let far = self.part(1 - from).map_or(0, |part| shortest(part, own));
        let rtt = near.saturating_add(far);
        let most = rtt / 4 * 3;
        Repair {
            asked_for: rtt / 2,
            by_timer: most.max(REORDER),
            behind_a_hole: most,
            hardly_shown: rtt.saturating_add(rtt / 4),
        }
    }

    #[inline]
    pub(in crate::flow::tcp) fn recovery(&self) -> Recovery {
        let rtt = self.rtt();
        let [near, far] = self.parts;
        let least = near.least.saturating_add(far.least).max(REORDER);
        Recovery {
            reorder: rtt.unwrap_or(least),
            reorder_without_evidence: rtt.unwrap_or(0).max(least),
            reaction: rtt.map_or(REACTION_WITHOUT_RTT, |rtt| rtt.saturating_add(REACTION)),
        }
    }

    /// The opening segment was repeated.
    pub(super) const fn opening_repeated(&mut self) {
        self.ambiguous = true;
    }

    pub(super) const fn flip(&mut self) {
        self.opener ^= 1;
    }

    /// Takes a segment of `sender`, before it changes any sequence number.
    pub(super) fn segment(&mut self, seen: &Observed<'_>, sender: &Direction, peer: &Direction) {
        let tcp = seen.segment.tcp;
        let ece = tcp.flags.any(TcpFlags::ECE);
        let cwr = tcp.flags.any(TcpFlags::CWR);
        match (tcp.flags.any(TcpFlags::SYN), tcp.flags.any(TcpFlags::ACK)) {
            _ if tcp.flags.any(TcpFlags::RST) => {}
            (true, false) => self.syn(seen, ece && cwr),
            (true, true) => self.syn_ack(seen, peer, ece && !cwr),
            (false, true) => self.ack(seen, sender, peer),
            (false, false) => {}
        }
    }

    fn syn(&mut self, seen: &Observed<'_>, ecn_asked: bool) {
        match self.step {
            HandshakeStep::Nothing => {
                self.step = HandshakeStep::Syn;
                self.opener = seen.from as u8;
                self.ecn_asked = ecn_asked;
                self.last = seen.segment.time;
            }
            // Both sides open at once: nothing is answered.
            HandshakeStep::Syn if seen.from as u8 != self.opener => self.step = HandshakeStep::Done,
            HandshakeStep::Syn => self.repeated(seen),
            // Its answer was not seen or did not arrive, so that another one is acknowledged.
            HandshakeStep::SynAck if seen.from as u8 == self.opener => {
                self.is_missed |= sent_last(self.last, seen.segment.time) == seen.segment.time;
            }
            HandshakeStep::SynAck | HandshakeStep::Done => {}
        }
    }

    /// A SYN or SYN-ACK came again.
    fn repeated(&mut self, seen: &Observed<'_>) {
        self.ambiguous = true;
        self.last = sent_last(self.last, seen.segment.time);
    }

    fn syn_ack(&mut self, seen: &Observed<'_>, peer: &Direction, ecn_granted: bool) {
        match self.step {
            HandshakeStep::Syn if seen.from as u8 != self.opener => {
                if seen.segment.tcp.acknowledgement != peer.next() {
                    // Data in the SYN need not be acknowledged (RFC 7413); anything else is odd.
                    let data = sequence::delta(peer.next(), seen.segment.tcp.acknowledgement);
                    if data < 0 || seen.segment.tcp.acknowledgement != peer.start() {
                        return;
                    }
                }
                self.parts[1] = Part::new(elapsed(self.last, seen.segment.time), !self.ambiguous);
                self.ecn = Some(self.ecn_asked && ecn_granted);
                self.step = HandshakeStep::SynAck;
                self.ambiguous = false;
                self.last = seen.segment.time;
            }
            // The SYN was missed, which makes the other side the opener.
            HandshakeStep::Nothing => {
                self.step = HandshakeStep::SynAck;
                self.opener = seen.from as u8 ^ 1;
                self.last = seen.segment.time;
            }
            HandshakeStep::SynAck if seen.from as u8 != self.opener => self.repeated(seen),
            HandshakeStep::SynAck => self.ambiguous = true,
            HandshakeStep::Syn | HandshakeStep::Done => {}
        }
    }

    fn ack(&mut self, seen: &Observed<'_>, sender: &Direction, peer: &Direction) {
        match self.step {
            // The answer to the SYN-ACK was missed.
            HandshakeStep::SynAck
                if seen.from as u8 == self.opener && is_later(seen, sender, peer) =>
            {
                self.step = HandshakeStep::Done;
            }
            HandshakeStep::SynAck if seen.from as u8 == self.opener => {
                let is_answer = seen.segment.tcp.acknowledgement == peer.start();
                let is_known = is_answer && !self.is_missed;
                let least = elapsed(self.last, seen.segment.time).filter(|_| is_known);
                self.parts[0] = Part::new(least, !self.ambiguous);
                self.step = HandshakeStep::Done;
            }
            // No handshake is to be seen any more in the middle of a connection.
            HandshakeStep::Nothing => self.step = HandshakeStep::Done,
            // The SYN-ACK was missed, unless this is an odd answer to the SYN.
            HandshakeStep::Syn if seen.from as u8 == self.opener && sender.has_begun() => {
                self.step = HandshakeStep::Done;
            }
            _ => {}
        }
    }
}
