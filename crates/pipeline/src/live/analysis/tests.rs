//! Tests of the analysis of one ring's packets.

use std::sync::mpsc::{Receiver, channel};

use netsniff_analysis::{Depth, Limits, Options};
use netsniff_output::{
    Bounds, Format, LiveSink, LogSet, LogWriter, Merger, Nowhere, OnFailure, RowSink, SinkBooks,
    WriterOutcome, WriterSettings,
};
use netsniff_packet::{LinkType, PacketRecord};
use netsniff_traffic::dialogue::{Dialogue, Setup, Side};
use netsniff_traffic::probe;

use super::*;

/// An analyser whose rows have so much room on their way to nowhere.
fn start(bytes: usize) -> (Analyser, LogWriter) {
    start_with(Nowhere::default(), bytes)
}

/// One whose rows go there.
fn start_with(sink: impl LiveSink, bytes: usize) -> (Analyser, LogWriter) {
    let (limits, style) = (Limits::default(), Some(Format::Tsv.into()));
    let settings = WriterSettings {
        producers: 1,
        bounds: Bounds { bytes, ..Bounds::default() },
        on_failure: OnFailure::End,
        end_wait: Duration::from_secs(10),
        tell: Box::new(|said| panic!("{said}")),
    };
    let merger = Merger::new(&limits, style, None);
    let (writer, rows) = LogWriter::start(sink, merger, settings).unwrap();
    let settings = Settings {
        limits,
        options: Options::default(),
        workers: 1,
        style,
        logs: LogSet::ALL,
        seed: 1,
        prompt: false,
    };
    let rows = rows.into_iter().next().unwrap();
    (Analyser::new(&settings, Box::new(|_, _| {}), None, rows, true), writer)
}

/// Gives it one packet of each of some flows.
fn give(analyser: &mut Analyser, flows: std::ops::Range<u32>) {
    give_at(analyser, flows, netsniff_console::clock::now());
}

fn give_at(analyser: &mut Analyser, flows: std::ops::Range<u32>, timestamp: Timestamp) {
    let frames: Vec<_> = flows.map(|flow| (timestamp, probe::frame(64, flow).unwrap())).collect();
    lend(analyser, &frames);
}

fn lend(analyser: &mut Analyser, frames: &[(Timestamp, Vec<u8>)]) {
    let (mut data, mut packets) = (Vec::new(), Vec::new());
    for (timestamp, frame) in frames {
        let timestamp = *timestamp;
        packets.push(PacketRecord {
            timestamp,
            offset: data.len() as u32,
            captured_len: frame.len() as u32,
            wire_len: frame.len() as u32,
            interface: 0,
            link_type: LinkType::ETHERNET,
        });
        data.extend_from_slice(frame);
    }
    analyser.group(PacketSlice { data: &data, packets: &packets, loss: None });
}

fn end(mut analyser: Analyser, writer: LogWriter) -> (RingReport, WriterOutcome) {
    analyser.finish();
    let mut report = RingReport::default();
    analyser.fill(&mut report);
    drop(analyser);
    (report, writer.finish())
}

#[test]
fn rows_that_find_no_room_are_in_the_books() {
    let (mut analyser, writer) = start(0);
    give(&mut analyser, 0..20);
    let (report, outcome) = end(analyser, writer);
    assert_eq!((report.analysed, report.refused_rows), (Some(20), 20));
    assert_eq!(outcome.statistics.refused_full.total(), 20);

    let (mut analyser, writer) = start(1 << 20);
    give(&mut analyser, 0..20);
    let (report, outcome) = end(analyser, writer);
    assert_eq!((report.refused_rows, outcome.statistics.written.total()), (0, 20));
    assert_eq!((report.shed, report.shed_nanos), (0, 0), "nothing was shed");
}

/// Takes a row when it may.
#[derive(Debug)]
struct Gated(Receiver<()>, SinkBooks);

impl RowSink for Gated {
    type Error = anyhow::Error;

    fn row(&mut self, log: usize, _: &SortKey, _: &[u8]) -> anyhow::Result<()> {
        let _ = self.0.recv();
        self.1.written.add_row(log);
        Ok(())
    }
}

impl LiveSink for Gated {
    fn books(&self) -> &SinkBooks {
        &self.1
    }
}

/// Many flows end with the run, and have more rows than may wait: these are waited for.
#[test]
fn rows_of_the_end_are_waited_for() {
    let (go, may) = channel();
    let (mut analyser, writer) = start_with(Gated(may, SinkBooks::default()), 200_000);
    give(&mut analyser, 0..3000);
    let late = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        drop(go);
    });
    let (report, outcome) = end(analyser, writer);
    late.join().unwrap();
    assert_eq!((report.refused_rows, outcome.statistics.written.total()), (0, 3000));
    assert!(outcome.statistics.most_bytes > 100_000, "there were more than may wait");
}

/// While nothing is written, packets had better stay in the ring, until nothing is captured any more.
#[test]
fn packets_wait_for_rows() {
    let (go, may) = channel();
    let (mut analyser, writer) = start_with(Gated(may, SinkBooks::default()), 100_000);
    assert_eq!(analyser.wait_for_room(), None);
    let begin = netsniff_console::clock::now();
    for hour in 0.. {
        // All flows of an hour ago end with the first packet.
        give_at(&mut analyser, 0..50, begin.offset(hour * 3_600_000_000_000));
        if analyser.wait_for_room().is_some() {
            break;
        }
        assert!(hour < 100, "it never waits");
    }
    assert_eq!(analyser.wait_for_room(), Some(NO_ROOM_FOR_ROWS));
    analyser.stopping();
    assert_eq!(analyser.wait_for_room(), None);
    drop(go);
    let (report, outcome) = end(analyser, writer);
    assert_eq!((report.refused_rows, outcome.statistics.refused.total()), (0, 0));
}

/// The ring fills up, and gets empty again: what comes in between is analysed less deep.
#[test]
fn depth_follows_the_ring() {
    let (mut analyser, writer) = start(1 << 20);
    let ring = |used| Occupancy { used, high_water: used, capacity: 100 };
    let now = netsniff_console::clock::now();
    give(&mut analyser, 0..10);
    analyser.occupied(ring(60), now);
    give(&mut analyser, 10..30);
    analyser.occupied(ring(75), now.offset(1_000_000));
    give(&mut analyser, 30..60);
    analyser.occupied(ring(90), now.offset(2_000_000));
    give(&mut analyser, 60..100);
    for seconds in 1..20 {
        analyser.occupied(ring(0), now.offset(seconds * 1_000_000_000));
    }
    give(&mut analyser, 100..150);
    let (report, _) = end(analyser, writer);
    let by_depth = report.by_depth.unwrap();
    let depths = [Depth::Protocols, Depth::Tcp, Depth::Flows, Depth::Packets];
    assert_eq!(depths.map(|depth| by_depth.of(depth)), [60, 20, 30, 40]);
    // Each depth on the way down and, but for the deepest, on the way up.
    assert_eq!(report.shed, 5);
    assert_eq!(report.shed_nanos / 1_000_000_000, 7, "one second to get calm, and three waits");
}

/// A segment comes late: what came behind it waits, and is told with the most at once since it was told before.
#[test]
fn what_waits_behind_a_hole_is_told_with_its_peak() {
    let mut dialogue = Dialogue::new(Setup::default());
    dialogue.connect().say(Side::Client, b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n";
    dialogue.say(Side::Server, &[&head[..], &[b'x'; 40_000]].concat());
    let seen = dialogue.finish().seen;
    let mut frames: Vec<_> = seen.iter().map(|it| (it.timestamp, it.frame.clone())).collect();
    let missing = frames.iter().position(|(_, frame)| frame.len() > 1_000).unwrap() + 1;
    let (_, late) = frames.remove(missing);
    let at = missing + 3;
    frames.insert(at, (frames[at - 1].0, late));
    let (before, after) = frames.split_at(at);
    let (mut analyser, writer) = start(1 << 20);
    let held = |analyser: &mut Analyser| {
        let mut report = RingReport::default();
        analyser.fill(&mut report);
        analyser.reported();
        report.held.map(|held| (held.bytes, held.most.unwrap())).unwrap()
    };
    assert_eq!(held(&mut analyser), (0, 0));
    lend(&mut analyser, before);
    let (waits, most) = held(&mut analyser);
    assert!(waits > 1_000 && most >= waits, "{waits} {most}");
    lend(&mut analyser, &after[..1]);
    assert_eq!(held(&mut analyser), (0, waits), "they waited when it was told before");
    lend(&mut analyser, &after[1..]);
    assert_eq!(held(&mut analyser), (0, 0));
    let (report, _) = end(analyser, writer);
    assert_eq!(report.holes_given_up, 0);
}
