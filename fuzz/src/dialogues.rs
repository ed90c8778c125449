//! The conversations in captures, as what each side said in turn.

use std::collections::HashMap;

use netsniff_analysis::ingress::Ingress;
use netsniff_analysis::key::{FlowKey, Side};
use netsniff_analysis::protocol::Role;
use netsniff_analysis::reassembly::fingerprint::Fingerprints;
use netsniff_analysis::reassembly::piece::Overlap;
use netsniff_analysis::reassembly::stream::{
    ArrivedSegment, HoleEndings, Piece, ReassemblyContext, Sink, StreamReassembler,
};
use netsniff_analysis::record::Record;
use netsniff_analysis::{DatagramBatch, Limits, Observer, Options, SortKey};
use netsniff_packet::decode::{Tcp, TcpFlags, Transport};
use netsniff_packet::{Batch, Timestamp};

use crate::conversations::{Flow, Turn, What};

/// Fingerprints have any key here.
const SEED: u64 = 1;

/// A conversation.
pub struct Dialogue {
    /// What is known of its flow.
    pub flow: Flow,
    /// What was said.
    pub turns: Vec<Turn>,
}

/// A connection while its packets are read.
struct Open {
    originator: Side,
    flow: Flow,
    first: [Option<u32>; 2],
    streams: [StreamReassembler; 2],
    turns: Turns,
    reset: bool,
}

#[derive(Default)]
struct Turns(Vec<Turn>);

struct To<'a>(&'a mut Turns, Role);

impl Sink for To<'_> {
    fn piece(&mut self, _: Timestamp, _: u64, piece: Piece<'_>) {
        let Self(Turns(turns), from) = self;
        let what = match piece {
            Piece::Bytes(bytes) => {
                if let Some(Turn { from: last, what: What::Bytes(all) }) = turns.last_mut()
                    && last == from
                {
                    all.extend_from_slice(bytes);
                    return;
                }
                What::Bytes(bytes.to_vec())
            }
            Piece::Gap(len, _) => What::Gap(len),
            Piece::End => What::End,
        };
        turns.push(Turn { from: *from, what });
    }

    fn oddity(&mut self, _: &'static str) {}
}

/// Whoever wants no records.
struct Nobody;

impl Observer for Nobody {
    fn record<R: Record>(&mut self, _: &SortKey, _: &R) {}
}

/// All TCP conversations in the packets of some batches.
#[must_use]
pub fn dialogues(batches: &[Batch]) -> Vec<Dialogue> {
    let limits = Limits::default();
    let mut ingress = Ingress::new(limits, Options::default());
    let mut units = DatagramBatch::default();
    let mut open: HashMap<FlowKey, Open> = HashMap::new();
    let mut done = Vec::new();
    let mut shared = (0, HoleEndings::default());
    let keys = Fingerprints::new(SEED);
    for packet in batches.iter().flat_map(Batch::iter) {
        ingress.packet(&packet, 0..packet.data.len(), &mut units, &mut Nobody);
        for unit in units.as_slice() {
            let Transport::Tcp(tcp) = &unit.decoded.transport else { continue };
            let Some((key, side)) = unit.flow_key() else { continue };
            let is_new = tcp.flags.any(TcpFlags::SYN) && !tcp.flags.any(TcpFlags::ACK);
            if is_new && open.get(&key).is_some_and(|open| open.is_reused(side, tcp)) {
                done.extend(open.remove(&key).map(|open| open.finish(&limits)));
            }
            let open = open.entry(key).or_insert_with(|| Open::new(&key, side, tcp));
            let mut around = ReassemblyContext {
                limits: &limits,
                overlap: Overlap::First,
                keys: &keys,
                held_in_all: &mut shared.0,
                endings: &mut shared.1,
            };
            open.segment(side, tcp, unit.payload(packet.data), unit.now, &mut around);
        }
        units.clear();
    }
    done.extend(open.into_values().map(|open| open.finish(&limits)));
    done.retain(|dialogue| !dialogue.turns.is_empty());
    done
}

/// All UDP conversations in the packets of some batches: each datagram is a turn.
#[must_use]
pub fn datagrams(batches: &[Batch]) -> Vec<Dialogue> {
    let mut ingress = Ingress::new(Limits::default(), Options::default());
    let mut units = DatagramBatch::default();
    let mut all: HashMap<FlowKey, (Side, Dialogue)> = HashMap::new();
    for packet in batches.iter().flat_map(Batch::iter) {
        ingress.packet(&packet, 0..packet.data.len(), &mut units, &mut Nobody);
        for unit in units.as_slice() {
            let Transport::Udp(_) = &unit.decoded.transport else { continue };
            let Some((key, side)) = unit.flow_key() else { continue };
            let (originator, dialogue) = all.entry(key).or_insert_with(|| {
                let port = key.ends_from(side).1.port;
                let flow = Flow::at(port);
                (side, Dialogue { flow, turns: Vec::new() })
            });
            let from = role(usize::from(side != *originator));
            let what = What::Bytes(unit.payload(packet.data).to_vec());
            dialogue.turns.push(Turn { from, what });
        }
        units.clear();
    }
    all.into_values().map(|(_, dialogue)| dialogue).collect()
}

impl Open {
    fn new(key: &FlowKey, side: Side, tcp: &Tcp) -> Self {
        let is_answer = tcp.flags.any(TcpFlags::SYN) && tcp.flags.any(TcpFlags::ACK);
        let other = if side == Side::Low { Side::High } else { Side::Low };
        let originator = if is_answer { other } else { side };
        let port = key.ends_from(originator).1.port;
        let is_midstream = !tcp.flags.any(TcpFlags::SYN);
        Self {
            originator,
            flow: Flow { is_midstream, ..Flow::at(port) },
            first: [None; 2],
            streams: Default::default(),
            turns: Turns::default(),
            reset: false,
        }
    }

    fn is_reused(&self, side: Side, tcp: &Tcp) -> bool {
        let index = usize::from(side != self.originator);
        self.first[index].is_some_and(|first| first != tcp.sequence)
    }

    fn segment(
        &mut self,
        side: Side,
        tcp: &Tcp,
        payload: &[u8],
        now: Timestamp,
        around: &mut ReassemblyContext<'_>,
    ) {
        let from = usize::from(side != self.originator);
        let syn = tcp.flags.any(TcpFlags::SYN);
        let begin = tcp.sequence.wrapping_sub(u32::from(!syn));
        let first = *self.first[from].get_or_insert(begin);
        for index in [0, 1] {
            self.streams[index].expire(now, around, &mut To(&mut self.turns, role(index)));
        }
        if tcp.flags.any(TcpFlags::ACK) {
            let acknowledged = tcp.acknowledgement;
            let peer = *self.first[1 - from].get_or_insert(acknowledged.wrapping_sub(1));
            let position = u64::from(acknowledged.wrapping_sub(peer));
            let mut to = To(&mut self.turns, role(1 - from));
            self.streams[1 - from].acknowledge(position, now, around, &mut to);
        }
        self.reset |= tcp.flags.any(TcpFlags::RST);
        let distance = tcp.sequence.wrapping_sub(first);
        if self.reset || distance > 1 << 30 {
            return;
        }
        let position = u64::from(distance) + u64::from(syn);
        let data = payload.get(..tcp.payload_len as usize).unwrap_or(payload);
        let missing = u64::from(tcp.payload_len) - data.len() as u64;
        let mut to = To(&mut self.turns, role(from));
        if tcp.payload_len > 0 {
            let (time, is_doubtful, urgent) = (now, false, None);
            let arrival = ArrivedSegment { time, position, data, missing, is_doubtful, urgent };
            self.streams[from].arrive(&arrival, around, &mut to);
        }
        if tcp.flags.any(TcpFlags::FIN) {
            let end = position + u64::from(tcp.payload_len);
            self.streams[from].finish_at(end, now, around, &mut to);
        }
    }

    fn finish(mut self, limits: &Limits) -> Dialogue {
        let mut around = ReassemblyContext {
            limits,
            overlap: Overlap::First,
            keys: &Fingerprints::new(SEED),
            held_in_all: &mut 0,
            endings: &mut HoleEndings::default(),
        };
        for index in [0, 1] {
            let mut to = To(&mut self.turns, role(index));
            self.streams[index].finish(Timestamp::MAX, &mut around, &mut to);
        }
        let has_bytes = |turn: &Turn| matches!(turn.what, What::Bytes(_));
        let turns = if self.turns.0.iter().any(has_bytes) { self.turns.0 } else { Vec::new() };
        Dialogue { flow: self.flow, turns }
    }
}

const fn role(index: usize) -> Role {
    if index == 0 { Role::Originator } else { Role::Responder }
}
