//! Segments to places in the picture.
//!
//! Sequence numbers wrap, and hosts begin with any. So a side has an *edge*: a number with the position that it stands at, which
//! follows the highest number that the engine accepted. Whatever lies more than the largest window from it has no
//! place.

use netsniff_analysis::flow::tcp::TcpEndpoint;
use netsniff_analysis::flow::tcp::endpoint::State;
use netsniff_analysis::flow::tcp::sequence::{MAX_WINDOW, delta};
use netsniff_analysis::flow::{Flow, TransportState};
use netsniff_analysis::key::Side;
use netsniff_packet::decode::{Tcp, TcpFlags};

use super::marks::{Class, Stairs, Stroke, Strokes};

/// Signs of a side that are kept.
const MOST_SIGNS: usize = 1_000;

/// What stands at one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignKind {
    /// A SYN.
    Syn,
    /// A FIN.
    Fin,
    /// A RST.
    Rst,
    /// The other side has no room: a window of 0.
    ZeroWindow,
}

impl SignKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Syn, Self::Fin, Self::Rst, Self::ZeroWindow];
}

/// A sign in the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign {
    /// Nanoseconds from the first packet.
    pub at: i64,
    /// The sequence number.
    pub position: i64,
    /// What it stands for.
    pub kind: SignKind,
}

/// How often the engine has counted what, for one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    again: u32,
    needless: u32,
    late: u32,
    doubled: u32,
    probes: u32,
    data_segments: u32,
    zero_windows: u32,
}

impl Tally {
    /// Of what the originator (0) or the responder (1) of a flow sent.
    fn of(flow: &Flow, role: usize) -> Self {
        match &flow.exchange {
            TransportState::Connection(tcp) => tcp.metrics.with(|metrics| {
                let side = &metrics.directions[role & 1];
                let counts = &side.counts;
                Self {
                    again: counts.retransmitted_timeout.saturating_add(counts.retransmitted_fast),
                    needless: counts.retransmitted_unnecessarily,
                    late: counts.out_of_order,
                    doubled: counts.duplicates,
                    probes: counts.keep_alives.saturating_add(counts.window_probes),
                    data_segments: side.data_segments,
                    zero_windows: counts.zero_windows,
                }
            }),
            TransportState::Opening(first) if role == 0 => Self {
                again: first.repeats().into(),
                doubled: first.duplicates().into(),
                ..Self::default()
            },
            _ => Self::default(),
        }
    }

    /// What a segment is, with which the counts became these.
    const fn class(&self, before: &Self, has_data: bool) -> Class {
        if self.doubled > before.doubled {
            Class::Doubled
        } else if self.probes > before.probes {
            Class::Probe
        } else if self.needless > before.needless {
            Class::Needless
        } else if self.late > before.late {
            Class::Late
        } else if self.again > before.again {
            Class::Again
        } else if has_data && self.data_segments == before.data_segments {
            Class::Refused
        } else {
            Class::Data
        }
    }
}

/// What one side sent, and how the other answered.
#[derive(Clone, Debug, Default)]
pub struct Track {
    /// A number, and the position that it stands at.
    edge: Option<(u32, i64)>,
    /// The number before the first byte, and the position behind it.
    begin: Option<(u32, i64)>,
    tally: Tally,
    /// Whether its SYN was seen with its options.
    has_options: bool,
    strokes: [Strokes; Class::ALL.len()],
    /// Segments by class, those without data included.
    pub classes: [u64; Class::ALL.len()],
    /// Up to where the other side acknowledged.
    pub acknowledged: Stairs,
    /// The same as the engine has it, which believes no acknowledgement of what was never sent.
    pub accepted: Option<i64>,
    /// Up to where the other side's window lets it send.
    pub window: Stairs,
    /// SYN, FIN, RST, and the other side's windows of 0.
    pub signs: Vec<Sign>,
    /// Signs that are too many.
    pub more_signs: u64,
    /// Segments too far away from the others to be in the picture.
    pub far: u64,
    /// Payload of datagrams.
    pub bytes: Stairs,
}

impl Track {
    /// The strokes of a class.
    #[must_use]
    pub const fn strokes(&self, class: Class) -> &Strokes {
        &self.strokes[class as usize]
    }

    /// The position of a number that is not too far away.
    fn position(&self, number: u32) -> Option<i64> {
        let (edge, position) = self.edge?;
        let distance = delta(number, edge);
        (distance.unsigned_abs() <= MAX_WINDOW.unsigned_abs())
            .then(|| position + i64::from(distance))
    }

    /// Goes on to what the engine has accepted.
    fn follow(&mut self, end: &TcpEndpoint) {
        if end.state == State::Inactive {
            return;
        }
        let number = end.last.number;
        let position =
            self.edge.map_or(0, |(edge, position)| position + i64::from(delta(number, edge)));
        self.edge = Some((number, position));
        if self.begin.is_none_or(|(start, _)| start != end.start) {
            let first = i64::from(delta(end.start.wrapping_add(1), number));
            self.begin = Some((end.start, position + first));
        }
        let acknowledged = self.position(end.acknowledged.number);
        self.accepted = acknowledged.or(self.accepted);
    }

    /// Begins with a segment of which the engine tells no number.
    fn begin_with(&mut self, tcp: &Tcp) {
        if self.edge.is_none() {
            let has_syn = tcp.flags.any(TcpFlags::SYN);
            let start = if has_syn { tcp.sequence } else { tcp.sequence.wrapping_sub(1) };
            self.edge = Some((start.wrapping_add(1), 0));
            self.begin = Some((start, 0));
        }
    }

    fn sign(&mut self, at: i64, position: i64, kind: SignKind) {
        if self.signs.len() < MOST_SIGNS {
            self.signs.push(Sign { at, position, kind });
        } else {
            self.more_signs += 1;
        }
    }

    /// Draws a segment that this side sent.
    fn sent(&mut self, at: i64, tcp: &Tcp, class: Class) {
        self.classes[class as usize] += 1;
        let has_syn = tcp.flags.any(TcpFlags::SYN);
        self.has_options |= has_syn && !tcp.options.cut;
        let Some(low) = self.position(tcp.sequence) else {
            self.far += 1;
            return;
        };
        if has_syn {
            self.sign(at, low, SignKind::Syn);
        }
        let low = low + i64::from(has_syn);
        let high = low + i64::from(tcp.payload_len);
        if tcp.payload_len > 0 {
            let stroke = Stroke { at, until: at, low, high, segments: 1 };
            self.strokes[class as usize].push(stroke);
        }
        for (flag, kind) in [(TcpFlags::FIN, SignKind::Fin), (TcpFlags::RST, SignKind::Rst)] {
            if tcp.flags.any(flag) {
                self.sign(at, high, kind);
            }
        }
    }

    /// What was thought to be needed was not, as the other side told.
    fn was_needless(&mut self) {
        let [again, needless] = [Class::Again as usize, Class::Needless as usize];
        self.classes[again] = self.classes[again].saturating_sub(1);
        self.classes[needless] += 1;
        if let Some(stroke) = self.strokes[again].take_last() {
            self.strokes[needless].push(stroke);
        }
    }

    /// Draws what the other side's segment says of what this one sent; `window` is what it offers, where that is known.
    fn answered(&mut self, at: i64, tcp: &Tcp, window: Option<u32>, is_closed: bool) {
        if !tcp.flags.any(TcpFlags::ACK) {
            return;
        }
        if self.edge.is_none() {
            self.edge = Some((tcp.acknowledgement, 0));
        }
        let blocks = tcp.options.sack.iter().take(tcp.options.sack_count.into());
        for &(low, high) in blocks {
            if let (Some(low), Some(high)) = (self.position(low), self.position(high))
                && low < high
            {
                let stroke = Stroke { at, until: at, low, high, segments: 1 };
                self.strokes[Class::Sack as usize].push(stroke);
            }
        }
        let has_reset = tcp.flags.any(TcpFlags::RST);
        let Some(position) = self.position(tcp.acknowledgement).filter(|_| !has_reset) else {
            return;
        };
        self.acknowledged.push(at, Some(position));
        if !tcp.flags.any(TcpFlags::SYN) {
            self.window.push(at, window.map(|window| position + i64::from(window)));
        }
        if is_closed {
            self.sign(at, position, SignKind::ZeroWindow);
        }
    }

    /// Counts positions from the first byte of data, which is at 0.
    pub(super) fn finish(&mut self) {
        let by = self.begin.map_or(0, |(_, position)| position);
        for stroke in self.strokes.iter_mut().flat_map(|strokes| &mut strokes.list) {
            stroke.low = stroke.low.saturating_sub(by);
            stroke.high = stroke.high.saturating_sub(by);
        }
        for stairs in [&mut self.acknowledged, &mut self.window] {
            stairs.finish();
            stairs.lower(by);
        }
        self.accepted = self.accepted.map(|position| position.saturating_sub(by));
        self.bytes.finish();
        for sign in &mut self.signs {
            sign.position = sign.position.saturating_sub(by);
        }
    }
}

/// Draws a segment that came `at` nanoseconds behind the first; `flow` is what the engine made of it.
pub(super) fn segment(
    tracks: &mut [Track; 2],
    flow: Option<&Flow>,
    side: Side,
    at: i64,
    tcp: &Tcp,
) {
    let [low, high] = tracks;
    let (own, peer) = if side == Side::Low { (low, high) } else { (high, low) };
    let (mut class, mut window, mut is_closed) = (Class::Data, None, false);
    if let Some(flow) = flow {
        let role = usize::from(flow.originator != side);
        let tallies = [Tally::of(flow, role), Tally::of(flow, 1 - role)];
        class = tallies[0].class(&own.tally, tcp.payload_len > 0);
        is_closed = tallies[0].zero_windows > own.tally.zero_windows;
        if tallies[1].again < peer.tally.again {
            peer.was_needless();
        }
        [own.tally, peer.tally] = tallies;
        if let Some(connection) = flow.tcp() {
            let ends = &connection.ends;
            own.follow(&ends[role & 1]);
            peer.follow(&ends[(1 - role) & 1]);
            let scale = ends[role & 1].window_scale.min(14);
            window = own.has_options.then(|| u32::from(tcp.window) << scale);
        }
    }
    own.begin_with(tcp);
    own.sent(at, tcp, class);
    peer.answered(at, tcp, window, is_closed);
}

/// Draws a datagram of a flow that is no TCP connection.
pub(super) fn datagram(track: &mut Track, flow: Option<&Flow>, side: Side, at: i64) {
    if let Some(TransportState::Datagrams(sent)) = flow.map(|flow| &flow.exchange) {
        track.bytes.push(at, sent[side as usize].bytes());
    }
}
