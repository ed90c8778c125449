//! Statistics of TCP of packets that come out of order, with a window of order and without (PAPERS C16).

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use netsniff_analysis::record::{FieldInfo, Value, Visitor};
use netsniff_analysis::{Engine, Limits, Observer, Options, Record, SortKey};
use netsniff_packet::{Progress, Source as _};
use netsniff_pcapfile::Reader;
use netsniff_traffic::Random;

use super::*;

/// Columns of the log `tcp` that depend on the order of packets.
const COLUMNS: [&str; 5] =
    ["handshake_rtt", "rtt_samples", "out_of_order", "retx_fast", "retx_rto"];

/// Packets that come late do so by this much at most, beside a window of 5 ms.
const MOST_LATE: u64 = 2_000_000;

/// What is said of connections, each value as text, by connection and column.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said(BTreeMap<(String, String), String>);

impl Observer for Said {
    fn record<R: Record>(&mut self, _: &SortKey, record: &R) {
        if record.log().path != "tcp" {
            return;
        }
        let mut row = Row::default();
        record.visit(&mut row);
        let columns = row.0.iter().filter(|(name, _)| {
            let name = name.trim_start_matches("orig_").trim_start_matches("resp_");
            COLUMNS.contains(&name)
        });
        let flow = row.0["uid"].clone();
        self.0.extend(columns.map(|(name, value)| ((flow.clone(), name.clone()), value.clone())));
    }
}

#[derive(Default)]
struct Row(BTreeMap<String, String>);

impl Visitor for Row {
    fn field(&mut self, _: usize, info: &'static FieldInfo, value: Value<'_>) {
        let text = match value {
            Value::Str(text) => text.to_owned(),
            Value::Word(text) | Value::Bytes(text) => text.escape_ascii().to_string(),
            Value::Count(count) => count.to_string(),
            Value::Interval(interval) => interval.nanos().to_string(),
            // Nothing else is looked at.
            _ => "-".to_owned(),
        };
        self.0.insert(info.name.to_owned(), text);
    }
}

/// Packets of a capture, in the order in which they came.
fn recorded() -> Batch {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded");
    let mut reader = Reader::new(File::open(root.join("office.pcapng")).unwrap()).unwrap();
    let mut all = Batch::default();
    loop {
        let mut batch = Batch::default();
        let progress = reader.read_batch(&mut batch).unwrap();
        let moved = all.data.len() as u32;
        all.packets.extend(
            batch.packets.iter().map(|it| PacketRecord { offset: it.offset + moved, ..*it }),
        );
        all.data.extend_from_slice(&batch.data);
        if !matches!(progress, Progress::More) {
            return all;
        }
    }
}

/// What the analysis says of packets that come in this order, each by itself, through a window; and how many came to it late.
fn analysed(data: &[u8], packets: &[PacketRecord], window: Duration) -> (Said, usize) {
    let mut said = Said::default();
    let mut engine = Engine::new(Limits::default(), Options::default(), 7);
    let mut order = ReorderBuffer::new(window);
    let (mut latest, mut late) = (Timestamp::MIN, 0);
    let mut take = |group: PacketSlice<'_>| {
        for (_, packet) in group.iter() {
            late += usize::from(packet.timestamp < latest);
            latest = latest.max(packet.timestamp);
            engine.packet(&packet, &mut said);
        }
    };
    for packet in packets {
        let group = PacketSlice { data, packets: core::slice::from_ref(packet), loss: None };
        order.push(RingPackets { group, goes_on: false }, &mut take);
    }
    order.flush(&mut take);
    engine.finish(&mut said);
    (said, late)
}

#[test]
fn a_window_keeps_what_disorder_spoils() {
    let Batch { data, packets, .. } = recorded();
    let (none, window) = (Duration::ZERO, Duration::from_millis(5));
    let mut in_order = packets.clone();
    in_order.sort_by_key(|packet| packet.timestamp);
    let (truth, late) = analysed(&data, &in_order, none);
    assert_eq!(late, 0);
    assert!(truth.0.len() > 500, "{} values", truth.0.len());
    // One of four comes late, as where another processor has it.
    let mut random = Random::new(1);
    let mut coming: Vec<_> = in_order
        .iter()
        .map(|packet| {
            let late = if random.below(4) == 0 { random.below(MOST_LATE) } else { 0 };
            (packet.timestamp.offset(late as i64), *packet)
        })
        .collect();
    coming.sort_by_key(|(at, _)| *at);
    let disordered: Vec<_> = coming.into_iter().map(|(_, packet)| packet).collect();
    let (spoilt, late) = analysed(&data, &disordered, none);
    assert!(late > packets.len() / 20, "{late} of {} come late", packets.len());
    let apart = truth.0.iter().filter(|(key, value)| spoilt.0.get(*key) != Some(*value));
    let apart: Vec<_> = apart.map(|((_, column), _)| column.as_str()).collect();
    let has = |name: &str| apart.iter().any(|column| column.ends_with(name));
    assert!(has("handshake_rtt") && has("rtt_samples"), "{apart:?}");
    assert!(has("out_of_order") || has("retx_rto"), "{apart:?}");
    let (kept, late) = analysed(&data, &disordered, window);
    assert_eq!(late, 0);
    assert_eq!(kept, truth);
}
