//! Two streams, cut in different ways, through the sessions of every protocol in the list.

use std::fmt::Write as _;

use netsniff_analysis::correlator::Correlator;
use netsniff_analysis::file::Bodies;
use netsniff_analysis::key::Endpoint;
use netsniff_analysis::protocol::{
    Conversation, Datagram, Event, Findings, MAX_ODDITIES, ProtocolSet, Resolution, Role,
    SessionContext,
};
use netsniff_analysis::reassembly::stream::{GapCause, Piece};
use netsniff_analysis::record::{
    Connection, Fact, FieldInfo, Phase, Proto, Record, Value, Visitor,
};
use netsniff_analysis::rows::joins;
use netsniff_analysis::{Limits, Observer, Options, SortKey, Uid};
use netsniff_packet::{Address, Timestamp};
use netsniff_traffic::Random;

/// What one side does in a row.
#[derive(Clone, Debug)]
pub struct Turn {
    pub from: Role,
    pub what: What,
}

#[derive(Clone, Debug)]
pub enum What {
    Bytes(Vec<u8>),
    Gap(u64),
    End,
}

/// How turns are cut into pieces.
pub enum Cuts {
    /// Each turn is one piece.
    None,
    /// Each byte is a piece.
    Everywhere,
    /// One side's stream is cut at one position.
    At(Role, usize),
    /// Pieces of any length.
    Seeded(Random),
}

/// What sessions made of a conversation, as text: rows, oddities, services. Rows and oddities each
/// come in order; how they stand to each other depends on how much is looked at in one go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub lines: Vec<String>,
    /// Oddities stand in a log of their own, so that their place among the rows is of no matter.
    pub oddities: Vec<String>,
    pub services: Option<String>,
}

/// What is told of the flow that the conversation is in.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub port: u16,
    pub is_midstream: bool,
    pub bodies: Bodies,
}

impl Flow {
    /// A flow that was seen from its begin, and whose bodies are decoded as a whole.
    pub const fn at(port: u16) -> Self {
        Self { port, is_midstream: false, bodies: Bodies::Whole }
    }
}

/// Bytes that a conversation may hold: what was kept to find the protocol, what sessions wait with,
/// and what they remember; the windows of compressed bodies on both sides among it.
const MOST: usize = 48 << 20;

/// Plays a conversation in any protocol, cut in one way.
///
/// # Panics
///
/// Where a session fails or holds too much.
pub fn play(turns: &[Turn], flow: Flow, cuts: Cuts) -> Outcome {
    play_in(ProtocolSet::ALL, turns, flow, cuts)
}

/// Plays a conversation in one of the protocols that are wanted, cut in one way. All pieces of a turn
/// have the same time.
///
/// # Panics
///
/// Where a session fails or holds too much.
pub fn play_in(wanted: ProtocolSet, turns: &[Turn], flow: Flow, mut cuts: Cuts) -> Outcome {
    let limits = Limits::default();
    let context = SessionContext {
        limits: &limits,
        name: 1,
        port: flow.port,
        hashes: Options::default().hashes,
        bodies: flow.bodies,
        is_midstream: flow.is_midstream,
        is_multicast: false,
        crossing_port: None,
    };
    let mut conversation = Conversation::new(wanted);
    let mut found = Findings::default();
    let mut outcome = Outcome::default();
    let mut passed = [0; 2];
    for (at, turn) in (1..).zip(turns) {
        let (time, from) = (Timestamp::from_nanos(at * 1_000_000), turn.from);
        let mut take = |piece| {
            conversation.take(&Event { time, from, piece }, &context, &mut found);
            outcome.drain(&mut found, flow.port);
        };
        match &turn.what {
            What::Bytes(bytes) => {
                let begin = passed[from.index()];
                passed[from.index()] += bytes.len();
                let mut rest = bytes.as_slice();
                while !rest.is_empty() {
                    let done = begin + bytes.len() - rest.len();
                    let (piece, behind) = rest.split_at(cuts.len(from, done, rest.len()));
                    take(Piece::Bytes(piece));
                    rest = behind;
                }
            }
            What::Gap(len) => take(Piece::Gap(*len, GapCause::Capture)),
            What::End => take(Piece::End),
        }
        assert!(conversation.heap_bytes() < MOST, "{} bytes", conversation.heap_bytes());
    }
    conversation.finish(&mut found);
    outcome.drain(&mut found, flow.port);
    outcome.services = conversation.services().names().map(Into::into);
    // Each log has an order of its own; which of two logs gets its row first tells nobody anything.
    outcome.lines.sort_by(|a, b| log(a).cmp(log(b)));
    outcome
}

/// The first word of a line: its log, or whose oddity it is.
fn log(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

impl Cuts {
    /// The length of the next piece, where `done` bytes of the side's stream came before it and
    /// `left` are left of the turn.
    fn len(&mut self, from: Role, done: usize, left: usize) -> usize {
        match self {
            Self::None => left,
            Self::Everywhere => 1,
            Self::At(role, at) if *role == from && done < *at => left.min(*at - done),
            Self::At(..) => left,
            Self::Seeded(random) => {
                let most = if random.below(4) == 0 { 8 } else { 700 };
                left.min(1 + random.below(most) as usize)
            }
        }
    }
}

impl Outcome {
    fn drain(&mut self, found: &mut Findings, port: u16) {
        assert_eq!(found.panics, 0, "a session failed");
        for (oddity, analyzer) in found.drain_oddities() {
            let detail =
                oddity.detail.text().map(|text| String::from_utf8_lossy(&text).into_owned());
            let words = [Some(format!("{analyzer}: {}", oddity.name)), detail];
            self.oddities.push(words.into_iter().flatten().collect::<Vec<_>>().join(" "));
        }
        let endpoint = |last, port| Endpoint { address: Address::from_v4([192, 0, 2, last]), port };
        let connection = Connection {
            uid: Uid::new(1),
            originator: endpoint(1, 40_000),
            responder: endpoint(2, port),
            proto: Proto::Tcp,
            start: None,
            local: [false; 2],
        };
        let key = SortKey {
            time: Timestamp::EPOCH,
            phase: Phase::Packet,
            ordinal: 0,
            uid: connection.uid,
            number: 0,
        };
        found.expected.clear();
        for record in found.records.drain(..) {
            record.report(&connection, &key, self);
        }
    }
}

impl Observer for Outcome {
    fn record<R: Record>(&mut self, _: &SortKey, record: &R) {
        let mut line = Line(record.log().path.to_owned());
        record.visit(&mut line);
        self.lines.push(line.0);
    }

    /// What no other flow tells anything of.
    fn fact(&mut self, key: &SortKey, connection: &Connection, fact: Box<dyn Fact>) {
        if let Some(resolution) = fact.downcast_ref::<Resolution>() {
            self.lines.push(format!("resolution {resolution:?}"));
        }
        let mut correlator = Correlator::new(&Limits::default(), joins());
        for joined in correlator.fact(key, connection, &*fact).1 {
            self.record(&joined.key, &joined.whole());
        }
    }
}

struct Line(String);

impl Visitor for Line {
    fn field(&mut self, _: usize, info: &'static FieldInfo, value: Value<'_>) {
        if !matches!(value, Value::Unset) {
            let _ = write!(self.0, " {}=", info.name);
            self.write(value);
        }
    }
}

impl Line {
    fn write(&mut self, value: Value<'_>) {
        let out = &mut self.0;
        let _ = match value {
            Value::Unset => write!(out, "-"),
            Value::Bool(value) => write!(out, "{value}"),
            Value::Count(value) => write!(out, "{value}"),
            Value::Int(value) => write!(out, "{value}"),
            Value::Double(value) => write!(out, "{value}"),
            Value::Time(value) => write!(out, "{}", value.nanos()),
            Value::Seconds(value) => write!(out, "{}", value.0),
            Value::Interval(value) => write!(out, "{}", value.nanos()),
            Value::Addr(value) => write!(out, "{value}"),
            Value::Port(value) => write!(out, "{value}"),
            Value::Str(value) => write!(out, "{value}"),
            Value::Word(value) | Value::Bytes(value) => write!(out, "{}", value.escape_ascii()),
            Value::List(list) => {
                for at in 0..list.count() {
                    self.write(list.element(at));
                    self.0.push(',');
                }
                Ok(())
            }
        };
    }
}

/// Plays the conversation that an input says, whole and cut, and its pieces as datagrams, in the
/// protocols that are wanted. Returns how many lines the sessions made of it.
///
/// # Panics
///
/// Where a session fails, holds too much, or finds something else for another cut.
pub fn check(wanted: ProtocolSet, input: &[u8]) -> usize {
    let [port, flags, rest @ ..] = input else { return 0 };
    let ports = ports();
    let bodies = if flags & 2 != 0 { Bodies::Head } else { Bodies::Whole };
    let is_midstream = flags & 1 != 0;
    let flow = Flow { port: ports[usize::from(*port) % ports.len()], is_midstream, bodies };
    let turns = turns(rest);
    let whole = play_in(wanted, &turns, flow, Cuts::None);
    assert_eq!(play_in(wanted, &turns, flow, Cuts::Everywhere), whole, "byte by byte");
    let seeded = Cuts::Seeded(Random::new(u64::from(*flags)));
    assert_eq!(play_in(wanted, &turns, flow, seeded), whole, "cut at random");
    whole.lines.len() + whole.oddities.len() + datagrams(wanted, &turns)
}

/// The ports that protocols of the list have, and one that none has.
fn ports() -> Vec<u16> {
    let ports = ProtocolSet::ALL.iter().flat_map(|id| id.protocol().tcp_ports());
    ports.copied().chain([49_999]).collect()
}

/// Each turn as a datagram of every protocol over UDP that is wanted.
fn datagrams(wanted: ProtocolSet, turns: &[Turn]) -> usize {
    let limits = Limits::default();
    let mut lines = 0;
    for id in wanted.iter() {
        let ports = match id.protocol().udp_ports() {
            [] => &[443],
            ports => ports,
        };
        for &port in ports {
            let context = SessionContext {
                limits: &limits,
                name: 1,
                port,
                hashes: Options::default().hashes,
                bodies: Options::default().bodies,
                is_midstream: false,
                is_multicast: false,
                crossing_port: None,
            };
            let mut session = id.protocol().session(&context);
            let mut found = Findings::default();
            let mut outcome = Outcome::default();
            for (at, turn) in (1..).zip(turns) {
                let What::Bytes(payload) = &turn.what else { continue };
                let (time, from) = (Timestamp::from_nanos(at * 1_000_000), turn.from);
                let _ = id.protocol().sender(port, payload);
                session.datagram(&Datagram { time, from, port, payload }, &mut found);
                found.attribute(id.protocol().analyzer(), &mut { MAX_ODDITIES });
                outcome.drain(&mut found, port);
                assert!(session.heap_bytes() < MOST, "{} bytes", session.heap_bytes());
            }
            session.end(&mut found);
            outcome.drain(&mut found, port);
            lines += outcome.lines.len() + outcome.oddities.len();
        }
    }
    lines
}

/// Turns as an input says: a byte for side and kind, one or two for the length, and the bytes.
fn turns(mut rest: &[u8]) -> Vec<Turn> {
    let mut turns = Vec::new();
    let mut has_ended = [false; 2];
    while let [kind, len, more @ ..] = rest {
        let from = if kind & 1 == 0 { Role::Originator } else { Role::Responder };
        rest = more;
        let what = match kind >> 1 & 0x1f {
            30 => What::Gap(u64::from(*len) + 1),
            31 => What::End,
            high => {
                let len =
                    usize::from(*len) | if high & 1 == 0 { 0 } else { usize::from(high) << 7 };
                let (bytes, behind) = rest.split_at(len.min(rest.len()));
                rest = behind;
                What::Bytes(bytes.to_vec())
            }
        };
        if has_ended[from.index()] {
            continue;
        }
        has_ended[from.index()] = matches!(what, What::End);
        turns.push(Turn { from, what });
    }
    turns
}

/// An input that says these turns, for seeds.
#[must_use]
pub fn input(port: u16, turns: &[Turn]) -> Vec<u8> {
    let port = ports().iter().position(|&known| known == port);
    let mut input = vec![port.map_or(0xff, |at| at as u8), 0];
    for turn in turns {
        let side = turn.from.index() as u8;
        match &turn.what {
            What::Bytes(bytes) => {
                for chunk in bytes.chunks(255) {
                    input.extend([side, chunk.len() as u8]);
                    input.extend(chunk);
                }
            }
            What::Gap(len) => input.extend([side | 30 << 1, (*len - 1).min(255) as u8]),
            What::End => input.extend([side | 31 << 1, 0]),
        }
    }
    input
}
