//! What the evidence of a connection amounts to in the end.

use core::time::Duration;

use netsniff_packet::Timestamp;

use super::TcpConnection;
use crate::flow::tcp::endpoint::TcpEndpoint;
use crate::flow::tcp::losses::gap::{Proof, StreamGap};
use crate::flow::tcp::losses::stream::RecoveredHoles;
use crate::flow::tcp::losses::surplus::{Ending, Surplus};
use crate::flow::tcp::metrics::direction::Direction;
use crate::flow::tcp::segment::ORIGINATOR;
use crate::log::gaps::{Cause, Ended, Missing};

/// What is missing of a connection, and whether its packets would show it.
#[derive(Clone, Debug, Default)]
pub struct LossVerdict {
    /// The losses that are listed, with the side that sent what is missing and the payload bytes.
    pub found: Vec<ConnectionLoss>,
    /// Losses of either side that are not listed.
    pub more: [u64; 2],
    /// Whether the begin was seen, or is proven by what was.
    pub is_begun: bool,
    /// Whether both sides were seen, so that each shows what the other sent.
    pub is_answered: bool,
    /// Whether its sides went on with numbers that lie beyond all that they can have sent.
    pub is_renumbered: bool,
    /// Whether its sizes rest on what may be forged or was not taken: something was acknowledged that was never sent, a
    /// FIN alone tells of more bytes than are ever on their way at once, data stands before a begin that nobody acknowledged,
    /// or bytes at the end of a side were seen in damaged segments only, and not acknowledged.
    pub has_doubtful_size: bool,
    /// Losses of the capture that are proven.
    pub captures: u64,
    /// Losses whose cause is unknown.
    pub unknown: u64,
    /// Losses that may have been late packets.
    pub assumed: u64,
    /// Whether more was lost at once than there is room to tell apart: no sum of bytes is sure.
    pub is_doubtful: bool,
    /// Payload bytes that the capture lost.
    capture_bytes: u64,
    /// What the network lost of each side, originator first.
    pub network: [NetworkLosses; 2],
    /// Payload bytes that the network lost; `None` where no acknowledgement would show it.
    network_bytes: Option<u64>,
    /// What came late, but within the wait.
    pub saved: RecoveredHoles,
    /// How many more losses of each side may be listed.
    room: [usize; 2],
}

/// What the network lost of the payload of one side; each lost copy counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkLosses {
    /// Bytes that it lost between the sender and the tap.
    pub before: u64,
    /// Bytes that it lost between the tap and the receiver.
    pub behind: u64,
    /// Whether there may be more: something is missing or was sent again, and nothing tells whether the network lost
    /// it, or there were more losses than are told apart.
    pub is_incomplete: bool,
}

/// One loss of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLoss {
    /// Index of the side that sent what is missing.
    pub from: usize,
    /// What, where and why.
    pub gap: StreamGap,
    /// Payload bytes in it.
    pub bytes: u64,
}

/// When a connection was seen.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Time of its first packet.
    pub start: Timestamp,
    /// Time of its last packet.
    pub last: Timestamp,
    /// For how long the capture had run then, if that is known.
    pub since_begin: Option<Duration>,
    /// The longest that it may take until a SYN is answered, where the connection does not tell.
    pub pick_up: Duration,
    /// Losses of one direction that are listed one by one.
    pub listed: usize,
}

impl Span {
    /// Whether the SYN of `originator`, whose answer was seen first, may have passed before the
    /// capture began: it did so about a round trip to the responder before that.
    fn is_early(&self, originator: &Direction) -> bool {
        let known = (originator.rtt.count > 0).then_some(originator.rtt.max);
        let wait = known.map_or(self.pick_up, |rtt| {
            Duration::from_nanos(rtt).saturating_mul(2).min(self.pick_up)
        });
        self.since_begin.is_none_or(|since| since < wait)
    }
}

impl TcpConnection {
    /// What is missing of it.
    #[must_use]
    pub fn verdict(&self, span: &Span) -> LossVerdict {
        let mut verdict = LossVerdict { room: [span.listed; 2], ..LossVerdict::default() };
        let Some((directions, handshake, ledger)) = self.metrics.evidence() else { return verdict };
        let [originator, responder] = directions;
        verdict.is_answered = originator.is_seen() && responder.is_seen();
        verdict.is_renumbered = self.is_renumbered();
        let [low, high] = &self.ends;
        verdict.has_doubtful_size = self.has_taken_back()
            || self.is_unlike_begin
            || low.has_damaged_end(high.state)
            || high.has_damaged_end(low.state);
        verdict.is_begun = originator.has_syn() || responder.has_syn();
        let is_known = |one: &Direction| one.data_segments == 0 || one.has_acknowledgements();
        verdict.network_bytes =
            (verdict.is_answered && directions.iter().all(is_known)).then_some(0);
        for from in 0..2 {
            self.missed_handshake(from, directions, span, &mut verdict);
            let Some(stream) = ledger.stream(from) else { continue };
            let (fin, shift) = (self.fin_position(from), stream.shift());
            let [sender, receiver] = [&directions[from], &directions[1 - from]];
            let report = handshake.least_answer(1 - from, &sender.rtt).unwrap_or(0);
            let reports = receiver.reports_duplicates(sender).then_some(report / 2 * 3);
            let acknowledged = acknowledged(&self.ends[from]);
            let ending = Ending { acknowledged, reports, last: span.last };
            stream.finish(&ending, &mut |gap| verdict.add(from, gap, fin, shift));
            verdict.saved.holes += stream.saved.holes;
            verdict.saved.bytes += stream.saved.bytes;
            verdict.add_surplus(from, &stream.surplus(&ending));
        }
        if !verdict.is_answered {
            // Nobody says what of it arrived.
            verdict.captures = 0;
        }
        verdict
    }

    /// A SYN or SYN-ACK that the numbers of the other side prove, and that was never seen.
    fn missed_handshake(
        &self,
        from: usize,
        directions: &[Direction; 2],
        span: &Span,
        verdict: &mut LossVerdict,
    ) {
        let (side, peer) = (&directions[from], &directions[1 - from]);
        let has_syn = side.has_syn() && !side.missed_syn();
        let is_opener = from == ORIGINATOR;
        // A host that sent a SYN acknowledges nothing before its answer.
        let unseen = side.acknowledged_unseen().filter(|_| !is_opener);
        if !(side.has_begun() || unseen.is_some()) || has_syn || !peer.has_syn() {
            return;
        }
        // A SYN-ACK proves a SYN, but that may have passed before there was a capture. An answer
        // to a SYN that is no SYN-ACK need not have had one before (RFC 9293, 3.10.7), unless the
        // connection went on.
        let is_proven = if is_opener {
            !span.is_early(side)
        } else {
            unseen.is_some() || peer.pure_acks > 0 || peer.data_segments > 0
        };
        if !is_proven {
            return;
        }
        let gap = StreamGap {
            what: if is_opener { Missing::Syn } else { Missing::SynAck },
            low: 0,
            high: 1,
            since: span.start,
            until: span.start,
            ended: Ended::Acknowledged,
            cause: Cause::Capture,
            proof: Proof::None,
            is_assumed: false,
        };
        verdict.add(from, gap, None, 0);
        if let Some(numbers) = unseen.filter(|numbers| *numbers > 0) {
            let gap = StreamGap { what: Missing::Data, low: 1, high: 1 + numbers, ..gap };
            verdict.add(from, gap, None, 0);
        }
    }

    /// Where the FIN of a side stands. One that was never seen is known by its acknowledgement,
    /// with nothing after it from a side that has not aborted and whose peer has ended, too.
    fn fin_position(&self, from: usize) -> Option<i64> {
        let (end, peer) = (&self.ends[from], &self.ends[1 - from]);
        if end.fins > 0 {
            return i64::try_from(end.fin_position).ok().map(|position| position - 1);
        }
        let top = acknowledged(end);
        let sent = position(end.last.full(), end);
        (peer.fins > 0 && end.resets == 0 && sent <= top).then_some(top - 1)
    }
}

impl LossVerdict {
    /// Payload bytes that the capture lost; `None` where that is not known.
    #[must_use]
    pub fn capture_bytes(&self) -> Option<u64> {
        (self.is_answered && !self.is_doubtful).then_some(self.capture_bytes)
    }

    /// Payload bytes that the network lost; `None` where that is not known.
    #[must_use]
    pub fn network_bytes(&self) -> Option<u64> {
        self.network_bytes.filter(|_| !self.is_doubtful)
    }

    /// Adds losses that are not listed.
    fn add_surplus(&mut self, from: usize, surplus: &Surplus) {
        self.more[from] += surplus.gaps;
        self.captures += surplus.captures;
        self.unknown += surplus.unknown;
        self.assumed += surplus.assumed;
        self.is_doubtful |= surplus.is_doubtful;
        self.capture_bytes = self.capture_bytes.saturating_add(surplus.capture);
        let network = &mut self.network[from];
        network.before = network.before.saturating_add(surplus.before);
        network.behind = network.behind.saturating_add(surplus.behind);
        network.is_incomplete |=
            surplus.is_incomplete || surplus.is_doubtful || surplus.unknown > 0;
        self.add_network(surplus.before.saturating_add(surplus.behind));
    }

    /// Adds a loss; the FIN, which is no payload, stands apart.
    fn add(&mut self, from: usize, gap: StreamGap, fin: Option<i64>, shift: i64) {
        let is_data = gap.what == Missing::Data;
        if let Some(fin) = fin.filter(|&fin| is_data && gap.overlaps(fin, fin + 1)) {
            let parts = [(gap.low, fin, Missing::Data), (fin, fin + 1, Missing::Fin)];
            for (low, high, what) in parts.into_iter().filter(|&(low, high, _)| low < high) {
                self.note(from, StreamGap { low, high, what, ..gap }, shift);
            }
            return;
        }
        self.note(from, gap, shift);
    }

    fn note(&mut self, from: usize, gap: StreamGap, shift: i64) {
        let bytes = if gap.what == Missing::Data { gap.bytes(shift) } else { 0 };
        if gap.what == Missing::Data && bytes == 0 && gap.is_second_copy() {
            // Copies of what stands before the begin.
            return;
        }
        let gap = StreamGap { low: gap.low - shift, high: gap.high - shift, ..gap };
        self.assumed += u64::from(gap.is_assumed);
        match gap.cause {
            Cause::Capture => {
                self.captures += u64::from(!gap.is_assumed);
                self.capture_bytes = self.capture_bytes.saturating_add(bytes);
            }
            Cause::NetworkBefore | Cause::NetworkBehind => {
                let NetworkLosses { before, behind, .. } = &mut self.network[from];
                let lost = if gap.cause == Cause::NetworkBefore { before } else { behind };
                *lost = lost.saturating_add(bytes);
                self.add_network(bytes);
            }
            Cause::Unknown => {
                self.network[from].is_incomplete = true;
                // What came twice was seen, whoever lost the first copy, or its acknowledgement.
                self.unknown += u64::from(!gap.is_second_copy());
            }
        }
        match self.room[from].checked_sub(1) {
            Some(room) => {
                self.room[from] = room;
                self.found.push(ConnectionLoss { from, gap, bytes });
            }
            None => self.more[from] += 1,
        }
    }

    const fn add_network(&mut self, bytes: u64) {
        if let Some(network) = &mut self.network_bytes {
            *network = network.saturating_add(bytes);
        }
    }
}

/// Up to where the receiver has everything.
fn acknowledged(end: &TcpEndpoint) -> i64 {
    position(end.acknowledged.full(), end)
}

fn position(number: u64, end: &TcpEndpoint) -> i64 {
    number.wrapping_sub(end.start.into()).cast_signed()
}
