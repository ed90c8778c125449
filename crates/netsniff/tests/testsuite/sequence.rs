//! The time-sequence picture: its marks are what the logs count, and lie where TShark has the segments.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use netsniff_desk::sequence::{Class, Direction, Kind, Limits, Sequence, of};
use netsniff_testing::has_program;
use netsniff_testing::log::{self, Row};

use crate::generated::Folder;
use crate::zeek::corpus::captures;

/// Connections of a capture that are looked at.
const MOST: usize = 60;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded").join(name)
}

fn netsniff() -> Command {
    Command::new(env!("CARGO_BIN_EXE_netsniff"))
}

/// The rows of `conn`, and those of `tcp` and `gaps` by uid.
struct Logs {
    conn: Vec<Row>,
    tcp: BTreeMap<String, Row>,
    gaps: BTreeMap<String, Vec<Row>>,
}

fn analyze(capture: &Path, scratch: &Folder) -> Logs {
    let logs = scratch.path("logs");
    let _ = fs::remove_dir_all(&logs);
    netsniff().args(["analyze", "-q"]).arg(capture).arg("-o").arg(&logs).output().unwrap();
    let read = |name: &str| log::read(&logs.join(name)).unwrap();
    let mut gaps: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in read("gaps.log") {
        gaps.entry(row["uid"].clone()).or_default().push(row);
    }
    let tcp = read("tcp.log").into_iter().map(|row| (row["uid"].clone(), row)).collect();
    Logs { conn: read("conn.log"), tcp, gaps }
}

fn text(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// How many bytes strokes cover together from the first byte of data on.
fn covered(direction: &Direction) -> u64 {
    let mut ranges: Vec<_> = drawn(direction).collect();
    ranges.sort_unstable();
    let (mut covered, mut end) = (0, 0);
    for (low, high) in ranges {
        covered += (high - low.max(end)).max(0);
        end = end.max(high);
    }
    covered.unsigned_abs()
}

/// Ranges of segments with data that hosts accept.
fn drawn(direction: &Direction) -> impl Iterator<Item = (i64, i64)> {
    let data = Class::ALL.iter().filter(|class| !matches!(class, Class::Sack | Class::Refused));
    data.flat_map(|class| &direction.strokes(*class).list).map(|stroke| (stroke.low, stroke.high))
}

/// What was compared.
#[derive(Debug, Default)]
struct Tally {
    connections: usize,
    with_classes: usize,
    gaps: usize,
    covered: usize,
    windows: usize,
    /// Whether packets have stamps that grow.
    is_plain: bool,
    wrong: Vec<String>,
}

impl Tally {
    fn capture(&mut self, capture: &Path, scratch: &Folder) {
        let logs = analyze(capture, scratch);
        let step = (logs.conn.len() / MOST).max(1);
        for (at, row) in logs.conn.iter().enumerate() {
            let uid = row["uid"].as_str();
            if at % step != 0 && !logs.gaps.contains_key(uid) {
                continue;
            }
            let sequence = match of(File::open(capture).unwrap(), uid, Limits::default()) {
                Ok(sequence) => sequence,
                Err(wrong) => {
                    self.wrong.push(format!("{} {uid}: {wrong}", capture.display()));
                    continue;
                }
            };
            let before = self.wrong.len();
            self.connection(&sequence, row, &logs);
            let name = capture.display();
            for wrong in self.wrong.iter_mut().skip(before) {
                *wrong = format!("{name} {uid}: {wrong}");
            }
        }
    }

    fn same(&mut self, what: &str, ours: &str, theirs: &str) {
        if ours != theirs {
            self.wrong.push(format!("{what} is {ours}, and {theirs} in the log"));
        }
    }

    fn connection(&mut self, sequence: &Sequence, row: &Row, logs: &Logs) {
        self.connections += 1;
        self.same("uid", &sequence.uid, &row["uid"]);
        for (column, value) in &sequence.whole {
            self.same(column, &text(*value), &row[*column]);
        }
        for (column, value) in &sequence.words {
            self.same(column, value, &row[*column]);
        }
        let gaps = logs.gaps.get(&sequence.uid).map_or(&[][..], Vec::as_slice);
        for (side, direction) in ["orig", "resp"].into_iter().zip(&sequence.directions) {
            let end =
                format!("{} port {}", row[&format!("id.{side}_h")], row[&format!("id.{side}_p")]);
            self.same("end", &direction.from, &end);
            for column in ["pkts", "ip_bytes", "bytes"] {
                let theirs = &row[&format!("{side}_{column}")];
                self.same(column, &text(direction.figure(column)), theirs);
            }
            match logs.tcp.get(&sequence.uid) {
                Some(tcp) => {
                    self.tcp(side, direction, tcp);
                    self.window(direction, if side == "orig" { "resp" } else { "orig" }, tcp);
                }
                None if sequence.kind == Kind::Datagrams => {
                    let ours =
                        direction.track.bytes.highest().and_then(|it| u64::try_from(it).ok());
                    let theirs = &row[&format!("{side}_bytes")];
                    if ours.is_some() && theirs != "-" {
                        self.same("payload drawn", &text(ours), theirs);
                    }
                }
                None => {}
            }
            let is_orig = if side == "orig" { "T" } else { "F" };
            let own: Vec<_> = gaps.iter().filter(|gap| gap["is_orig"] == is_orig).collect();
            self.gaps(direction, &own);
        }
    }

    /// The columns of `tcp`, and what is drawn.
    fn tcp(&mut self, side: &str, direction: &Direction, tcp: &Row) {
        for figure in &direction.figures {
            if let Some(theirs) = tcp.get(&format!("{side}_{}", figure.column)) {
                self.same(figure.column, &text(figure.value), theirs);
            }
        }
        let figure = |column: &str| direction.figure(column);
        let sum = |columns: &[&str]| {
            columns.iter().try_fold(0, |sum, column| Some(sum + figure(column)?))
        };
        let classes = [
            (Class::Again, &["retx_rto", "retx_fast"][..]),
            (Class::Needless, &["retx_spurious"]),
            (Class::Late, &["out_of_order"]),
            (Class::Doubled, &["duplicates"]),
            (Class::Probe, &["keep_alives", "window_probes"]),
        ];
        for (class, columns) in classes {
            if let Some(theirs) = sum(columns) {
                self.with_classes += usize::from(theirs > 0);
                let ours = direction.track.classes[class as usize];
                self.same(&format!("{class:?}"), &ours.to_string(), &theirs.to_string());
            }
        }
        if direction.track.far == 0
            && let Some(unique) = figure("unique_bytes")
        {
            self.covered += usize::from(unique > 0);
            self.same("drawn bytes", &covered(direction).to_string(), &unique.to_string());
        }
    }

    /// The limit of the window is its width above the acknowledgement of the same segment, and at least once the widest.
    fn window(&mut self, direction: &Direction, side: &str, tcp: &Row) {
        let widest = tcp[&format!("{side}_window_max")].as_str();
        let mut acknowledged = 0;
        let mut acks = direction.track.acknowledged.points.iter().peekable();
        let width = |(at, limit): &(i64, Option<i64>)| {
            while let Some((_, ack)) = acks.next_if(|(then, _)| then <= at) {
                acknowledged = ack.unwrap();
            }
            limit.map(|limit| limit - acknowledged)
        };
        let ours = direction.track.window.points.iter().filter_map(width).max();
        // Where an acknowledgement goes back, or several segments have one stamp, no width is to be had.
        if self.is_plain && (ours.is_some() || widest != "-") {
            self.windows += 1;
            let ours = ours.map_or_else(|| "-".to_owned(), |it| it.to_string());
            self.same("widest window", &ours, widest);
        }
    }

    fn gaps(&mut self, direction: &Direction, theirs: &[&Row]) {
        self.same("gaps", &direction.gaps.len().to_string(), &theirs.len().to_string());
        for (ours, theirs) in direction.gaps.iter().zip(theirs) {
            self.gaps += 1;
            self.same("gap", &ours.start.to_string(), &theirs["start"]);
            self.same("gap", &ours.end.to_string(), &theirs["end"]);
            self.same("gap", &ours.cause, &theirs["cause"]);
            if ours.what != "data" {
                continue;
            }
            let overlaps = drawn(direction).any(|(low, high)| low < ours.end && ours.start < high);
            let is_seen = ours.ended == "filled";
            if overlaps != is_seen && (ours.ended == "acknowledged" || is_seen) {
                self.wrong.push(format!("{ours:?} has strokes: {overlaps}"));
            }
        }
    }
}

#[test]
fn marks_and_numbers_are_those_of_the_logs() {
    let scratch = Folder::new("sequence");
    let mut tally = Tally { is_plain: true, ..Tally::default() };
    for name in ["office.pcapng", "protocols.pcapng"] {
        tally.capture(&fixture(name), &scratch);
    }
    assert!(tally.wrong.is_empty(), "{:#?}", tally.wrong);
    assert!(tally.connections > 100 && tally.gaps >= 13 && tally.with_classes >= 5, "{tally:?}");
    assert!(tally.covered > 90 && tally.windows > 60, "{tally:?}");
}

#[test]
fn marks_and_numbers_are_those_of_the_logs_in_captures_of_others() {
    let Some(corpus) = captures("marks of pictures were not compared") else { return };
    let scratch = Folder::new("sequence_corpus");
    let mut tally = Tally::default();
    for capture in &corpus {
        tally.capture(&capture.path, &scratch);
    }
    let Tally { connections, gaps, with_classes, .. } = tally;
    eprintln!(
        "{} files: {connections} connections, {gaps} gaps, {with_classes} classes",
        corpus.len()
    );
    assert!(tally.wrong.is_empty(), "{} {:#?}", tally.wrong.len(), tally.wrong);
    assert!(connections > 300, "{tally:?}");
}

/// What was extracted, read through a pipe.
fn extracted(capture: &Path, uid: &str) -> Sequence {
    let words = ["extract", "-q", "--no-index", "--uid", uid, "-w", "-", "--"];
    let mut child = netsniff().args(words).arg(capture).stdout(Stdio::piped()).spawn().unwrap();
    let sequence = of(child.stdout.take().unwrap(), uid, Limits::default()).unwrap();
    // Damage of the capture is said by 3.
    assert!(matches!(child.wait().unwrap().code(), Some(0 | 3)));
    sequence
}

#[test]
fn connections_in_tunnels_are_found_among_their_packets() {
    let Some(corpus) = captures("pictures of connections in tunnels were not made") else { return };
    let scratch = Folder::new("sequence_tunnels");
    let (mut pictures, mut renamed) = (0, 0);
    for capture in corpus.iter().filter(|capture| capture.name.starts_with("tunnel/")) {
        let logs = analyze(&capture.path, &scratch);
        let inner = logs.conn.iter().filter(|row| row["tunnel_parents"] != "-");
        for row in inner.step_by(3).take(6) {
            let picture = extracted(&capture.path, &row["uid"]);
            let end = |side| {
                format!("{} port {}", row[&format!("id.{side}_h")], row[&format!("id.{side}_p")])
            };
            let froms = [0, 1].map(|role| picture.directions[role].from.as_str());
            let name = format!("{} {}", capture.name, row["uid"]);
            assert_eq!(froms, [end("orig"), end("resp")], "{name}");
            let packets = |side| row[&format!("{side}_pkts")].parse::<u64>().unwrap();
            assert_eq!(picture.datagrams, packets("orig") + packets("resp"), "{name}");
            assert_eq!(picture.others, 0, "{name}");
            pictures += 1;
            renamed += usize::from(picture.is_named_otherwise);
        }
    }
    eprintln!("{pictures} connections in tunnels, {renamed} by another name");
    assert!(pictures >= 4 && renamed >= 2, "{pictures} {renamed}");
}

/// TShark's relative sequence numbers and lengths of segments with data, by the port of their sender, and how many it takes
/// for sent again, fast or not, or out of order.
fn tshark(capture: &Path, filter: &str) -> BTreeMap<u16, (Vec<(i64, i64)>, u64)> {
    let again = "tcp.analysis.retransmission || tcp.analysis.out_of_order";
    let mut sides: BTreeMap<u16, (Vec<(i64, i64)>, u64)> = BTreeMap::new();
    for (filter, is_again) in [(filter.to_owned(), false), (format!("{filter} && ({again})"), true)]
    {
        let fields = ["tcp.srcport", "tcp.seq", "tcp.len"].map(|field| ["-e", field]).concat();
        let run = Command::new("tshark")
            .args(["-r", capture.to_str().unwrap(), "-Y", &filter, "-T", "fields"])
            .args(fields)
            .output()
            .unwrap();
        for line in String::from_utf8(run.stdout).unwrap().lines() {
            let values: Vec<i64> = line.split('\t').map(|value| value.parse().unwrap()).collect();
            let side = sides.entry(values[0].try_into().unwrap()).or_default();
            if is_again {
                side.1 += 1;
            } else if values[2] > 0 {
                // The SYN has 0, the first byte 1.
                side.0.push((values[1] - 1, values[1] - 1 + values[2]));
            }
        }
    }
    sides
}

#[test]
fn segments_lie_where_tshark_has_them() {
    if !has_program("tshark", "places of segments were not compared") {
        return;
    }
    let (scratch, capture) = (Folder::new("sequence_tshark"), fixture("office.pcapng"));
    let logs = analyze(&capture, &scratch);
    let mut segments = 0;
    for uid in logs.gaps.keys().chain(logs.tcp.keys().step_by(12)) {
        let sequence = extracted(&capture, uid);
        assert!(!sequence.is_named_otherwise && sequence.others == 0, "{uid}");
        let row = &logs.tcp[uid];
        let ports = ["id.orig_p", "id.resp_p"].map(|column| row[column].parse::<u16>().unwrap());
        let filter = format!("tcp.port == {} && tcp.port == {}", ports[0], ports[1]);
        let theirs = tshark(&capture, &filter);
        for (port, direction) in ports.iter().zip(&sequence.directions) {
            let mut ours: Vec<_> = drawn(direction).collect();
            let (mut places, again) = theirs.get(port).cloned().unwrap_or_default();
            ours.sort_unstable();
            places.sort_unstable();
            assert_eq!(ours, places, "{uid} {port}");
            let classes = [Class::Again, Class::Needless, Class::Late];
            let own: u64 = classes.iter().map(|it| direction.track.classes[*it as usize]).sum();
            assert_eq!(own, again, "{uid} {port}");
            segments += ours.len();
        }
    }
    assert!(segments > 500, "{segments}");
}
