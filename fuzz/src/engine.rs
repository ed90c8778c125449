//! The whole engine over made packets, and what must hold whatever they are.
//!
//! Needs nothing of libFuzzer: an ordinary test replays findings with it.

use core::convert::Infallible;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use netsniff_analysis::protocol::ProtocolSet;
use netsniff_analysis::reassembly::piece::Overlap;
use netsniff_analysis::record::{FieldInfo, Record, Value, Visitor};
use netsniff_analysis::rows::{Encode, LOGS, Output, RowSink};
use netsniff_analysis::series::SeriesOptions;
use netsniff_analysis::{ChecksumMode, Depth, Engine, Limits, Options, SortKey};
use netsniff_packet::anonymize::{Keep, Key, Method};
use netsniff_packet::decode::TunnelPorts;
use netsniff_packet::{Anonymizer, Batch, Loss, Stage, Timestamp};

use crate::packets::{Event, events};

/// Analyses the packets that an input says, one by one and in batches. Returns the connections.
///
/// # Panics
///
/// Where the two differ, a bound does not hold, or the records contradict each other.
pub fn check(input: &[u8]) -> usize {
    let [bounds, batch_len, rest @ ..] = input else { return 0 };
    let events = events(rest);
    let limits = limits(*bounds);
    let (depth, changes): (_, &[Depth]) = match batch_len >> 6 {
        0 => (Depth::Protocols, &[]),
        1 => (Depth::Tcp, &[]),
        2 => (Depth::Flows, &[]),
        _ => (Depth::Protocols, CHANGES),
    };
    let options = Options {
        depth,
        rtt_interval: (bounds & 0x80 != 0).then_some(core::time::Duration::from_millis(100)),
        series: (bounds & 0x80 != 0).then_some(SeriesOptions {
            interval: core::time::Duration::from_millis(100),
            hosts: 2,
            connections: 1 + usize::from(bounds & 3),
            interface: None,
            is_of_ring: false,
        }),
        gateway: bounds & 0x40 != 0,
        checksums: match bounds >> 2 & 3 {
            0 => ChecksumMode::Count,
            1 => ChecksumMode::Ignore,
            _ => ChecksumMode::Discard,
        },
        overlap: if bounds & 0x20 == 0 { Overlap::First } else { Overlap::Last },
        protocols: ProtocolSet::ALL,
        anonymizer: (bounds & 0x10 != 0).then(|| {
            let key = Key::new([*bounds; Key::LEN]);
            Arc::new(Anonymizer::new(Method::CryptoPan, &key, &Keep::default()))
        }),
        ..Options::default()
    };
    let one_by_one = analyse(&events, 1, limits, options.clone(), changes, 1);
    let group = usize::from(batch_len & 0x3f).max(2);
    // Another seed, since it must show nowhere.
    let in_batches = analyse(&events, group, limits, options, changes, 2);
    one_by_one.check_same(&in_batches);
    in_batches.check_same(&one_by_one);
    if changes.is_empty() {
        // A tunnel is told where no connection is, at the depth of packets.
        one_by_one.check_uids();
    }
    one_by_one.0.get("conn").map_or(0, BTreeMap::len)
}

/// Ample, or so small that every bound is reached.
fn limits(bounds: u8) -> Limits {
    let ample = Limits::default();
    let small = Limits {
        fragmented_datagrams: 4,
        fragments_per_datagram: 4,
        fragment_bytes: 4_000,
        tunnels: 3,
        tcp_ranges: 4,
        tunnel_changes: 1,
        pending_messages: 2,
        pending_bytes: 100,
        series_hosts: 4,
        series_interfaces: 1,
        series_services: 1,
        series_intervals: 2,
        ..ample
    };
    match bounds % 4 {
        0 => ample,
        1 => Limits { flows: 16, ..small },
        2 => Limits { flow_bytes: FLOW_BYTES, ..small },
        _ => Limits { flows: 1, tunnels: 0, tunnel_depth: 1, ..small },
    }
}

/// The depths that losses bring, one after the other.
const CHANGES: &[Depth] =
    &[Depth::Flows, Depth::Protocols, Depth::Packets, Depth::Tcp, Depth::Protocols];

/// Room for about a dozen connections.
const FLOW_BYTES: usize = 24_000;
/// What one packet may add to a flow before another one ends for it.
const ONE_PACKET: usize = 16_384;

/// Whatever was lost, its place alone changes records.
const LOSS: Loss =
    Loss { before: None, after: Timestamp::EPOCH, packets: 1, stage: Stage::Unknown };

fn analyse(
    events: &[Event],
    group: usize,
    limits: Limits,
    options: Options,
    changes: &[Depth],
    seed: u64,
) -> Rows {
    let mut changes = changes.iter().cycle();
    let mut output = Output::encoded(&limits, Text, Rows::default());
    let rows = &mut output;
    let mut engine = Engine::new(limits, options, seed);
    let mut batch = Batch::default();
    let mut packets = 0;
    for event in events {
        match event {
            Event::Packet(made) => {
                packets += 1;
                if group == 1 {
                    engine.packet(&made.packet(), rows);
                    continue;
                }
                assert!(batch.push(&made.packet()));
            }
            Event::Loss => {
                engine.batch(&batch, rows);
                batch.clear();
                engine.loss(&LOSS, rows);
                if let Some(&depth) = changes.next() {
                    engine.set_depth(depth);
                }
            }
        }
        if batch.packets.len() >= group {
            engine.batch(&batch, rows);
            batch.clear();
        }
    }
    engine.batch(&batch, rows);
    within_limits(&engine, &limits);
    engine.finish(rows);
    within_limits(&engine, &limits);
    assert_eq!(engine.ingress().statistics().total.packets, packets);
    assert_eq!(engine.packets_by_depth().total(), engine.ingress().statistics().decoded);
    let Ok(()) = output.finish(engine.ingress().now());
    let rows = output.into_sink();
    books_close(&engine, &rows);
    rows
}

fn within_limits(engine: &Engine, limits: &Limits) {
    let flows = engine.tracker().statistics();
    assert!(flows.peak_flows <= limits.flows, "{} flows", flows.peak_flows);
    let bytes = flows.peak_bytes;
    assert!(bytes <= limits.flow_bytes.saturating_add(ONE_PACKET), "{bytes} bytes of flows");
    let fragments = engine.ingress().fragments();
    assert!(fragments.statistics().peak_bytes <= limits.fragment_bytes);
    assert!(fragments.pending().datagrams <= limits.fragmented_datagrams as u64);
    assert!(engine.ingress().tunnels().statistics().peak <= limits.tunnels);
}

/// What begins ends, each flow is a row, and each fragment is in one of the counts.
fn books_close(engine: &Engine, rows: &Rows) {
    let flows = engine.tracker().statistics();
    let begun: u64 = flows.flows_begun().map(|(_, count)| count).sum();
    let ended: u64 = flows.endings().map(|(_, count)| count).sum();
    assert_eq!(begun, ended, "flows begun and ended");
    assert_eq!(begun, rows.0.get("conn").map_or(0, |rows| rows.len() as u64), "flows and rows");
    let fragments = engine.ingress().fragments();
    let all = fragments.statistics();
    let told = [all.joined, all.timed_out, all.evicted, all.discarded, fragments.pending()];
    let told: u64 = told.iter().map(|count| count.fragments).sum();
    assert_eq!(all.fragments, told + all.cut, "{all:?}");
}

/// The rows of each log by their keys.
#[derive(Default)]
struct Rows(BTreeMap<&'static str, BTreeMap<SortKey, Row>>);

/// A row as text, and the names of flows in it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    text: String,
    uids: Vec<String>,
}

impl RowSink for Rows {
    type Error = Infallible;

    fn row(&mut self, log: usize, key: &SortKey, bytes: &[u8]) -> Result<(), Infallible> {
        let mut row = Row::default();
        for line in core::str::from_utf8(bytes).expect("text").lines() {
            match line.strip_prefix(UID) {
                Some(uid) => row.uids.push(uid.to_owned()),
                None => row.text.push_str(line),
            }
        }
        let path = LOGS[log].path;
        if let Some(other) = self.0.entry(path).or_default().insert(*key, row) {
            panic!("two rows of {path} have the key {key:?}: {other:?}");
        }
        Ok(())
    }
}

/// What a line begins with that is the name of a flow.
const UID: &str = "\t";

/// The text of a row or of its last columns, and a line for each name of a flow.
#[derive(Clone, Copy, Debug)]
struct Text;

impl Encode for Text {
    fn columns<R: Record>(&self, record: &R, out: &mut Vec<u8>) {
        let mut row = Row::default();
        record.visit(&mut row);
        out.extend_from_slice(row.text.replace('\n', "\\n").as_bytes());
        out.push(b'\n');
        for uid in row.uids {
            out.extend_from_slice(format!("{UID}{uid}\n").as_bytes());
        }
    }
}

impl Visitor for Row {
    fn field(&mut self, _: usize, info: &'static FieldInfo, value: Value<'_>) {
        let is_uid = matches!(info.name, "uid" | "tunnel_parents");
        self.text.push_str(info.name);
        self.text.push('=');
        self.value(value, is_uid);
        self.text.push(' ');
    }
}

impl Row {
    fn value(&mut self, value: Value<'_>, is_uid: bool) {
        let text = &mut self.text;
        let written = match value {
            Value::Unset => write!(text, "-"),
            Value::Bool(value) => write!(text, "{value}"),
            Value::Count(value) => write!(text, "{value}"),
            Value::Int(value) => write!(text, "{value}"),
            Value::Double(value) => write!(text, "{value}"),
            Value::Time(value) => write!(text, "{value}"),
            Value::Seconds(value) => write!(text, "{}s", value.0),
            Value::Interval(value) => write!(text, "{}ns", value.nanos()),
            Value::Addr(value) => write!(text, "{value}"),
            Value::Port(value) => write!(text, "{value}"),
            Value::Str(value) => write!(text, "{value:?}"),
            Value::Bytes(value) => write!(text, "{}", value.escape_ascii()),
            Value::Word(value) => {
                let word = core::str::from_utf8(value).expect("words are ASCII");
                if is_uid {
                    self.uids.push(word.to_owned());
                }
                write!(text, "{word}")
            }
            Value::List(list) => {
                for at in 0..list.count() {
                    self.value(list.element(at), is_uid);
                    self.text.push(',');
                }
                Ok(())
            }
        };
        written.expect("text takes everything");
    }
}

impl Rows {
    /// The other has every row of this one.
    fn check_same(&self, other: &Self) {
        for (log, rows) in &self.0 {
            for (key, row) in rows {
                let same = other.0.get(log).and_then(|rows| rows.get(key));
                assert_eq!(Some(row), same, "the other way of giving packets changes {log}");
            }
        }
    }

    /// Every name that a row has is that of a connection, or of a tunnel that no connection carries.
    fn check_uids(&self) {
        let mut known = BTreeSet::new();
        let all =
            || self.0.iter().flat_map(|(log, rows)| rows.values().map(move |row| (*log, row)));
        for (log, row) in all() {
            let names_itself = log == "conn"
                || log == "tunnel" && (row.is_tunnel("IP") || row.is_tunnel("GRE"))
                // Packets before the first one inside are a part of the connection alone.
                || log == "tunnel" && row.is_tunnel("TEREDO") && !row.has_tunnel_port();
            if names_itself {
                known.extend(row.uids.first());
            }
        }
        for (log, row) in all() {
            for uid in &row.uids {
                assert!(known.contains(uid), "{uid} of {log} is no flow: {}", row.text);
            }
        }
    }
}

impl Row {
    fn is_tunnel(&self, kind: &str) -> bool {
        self.text.contains(&format!("tunnel_type=Tunnel::{kind} "))
    }

    fn has_tunnel_port(&self) -> bool {
        let ports = self.text.split(' ').filter_map(|field| field.split_once("_p="));
        ports.filter_map(|(_, port)| port.parse().ok()).any(|port| TunnelPorts::KNOWN.has(port))
    }
}
