//! The law of split invariance for whole captures: all rows of all logs are the same, however the streams of TCP
//! are cut into segments. `split` has the same for single conversations at every place.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use netsniff_analysis::protocol::{Protocol, ProtocolId, ProtocolSet};
use netsniff_analysis::{Engine, Limits, Options};
use netsniff_packet::decode::{self, Transport};
use netsniff_packet::{Batch, Packet, Timestamp};
use netsniff_testing::{Need, folder, print_uncaptured};
use netsniff_traffic::Random;
use netsniff_traffic::resegment::{Direction, Gathered, Segment, gather};

use crate::support::{self, Row, Rows};

/// Bytes of a direction that are cut into single ones. What is behind comes in pieces of `BEHIND`.
const SINGLE: u64 = 4_096;
const BEHIND: usize = 100;

/// Columns that tell of segments and not of what they say, with the log.
const OF_SEGMENTS: [(&str, &str); 5] = [
    // Packets, and bytes of their headers.
    ("conn", "orig_pkts"),
    ("conn", "resp_pkts"),
    ("conn", "orig_ip_bytes"),
    ("conn", "resp_ip_bytes"),
    // A letter is repeated at the 10th, 100th … segment of its kind.
    ("conn", "history"),
];

/// Columns of `conn` that tell who lost what. They may be unset: there are more losses of pieces than of segments, and there
/// may be no room to tell all of them apart.
const CAPTURE_BYTES: &str = "capture_missed_bytes";
const NETWORK_BYTES: &str = "network_missed_bytes";

/// Logs that tell of segments: `tcp` has their sizes, their number and times between them, `gaps` a row for each that
/// was lost or came late.
const LOGS_OF_SEGMENTS: [&str; 2] = ["tcp", "gaps"];

/// Oddities that tell of segments: the last 256 of those that were not acknowledged are remembered to be compared with copies.
/// A FIN is spontaneous if nothing was seen of its side before, so that data in front of it in the same segment tell nothing.
const WEIRDS_OF_SEGMENTS: [&str; 2] = ["retransmission_not_compared", "spontaneous_FIN"];

/// Captures of the corpus without streams that could be cut: what stands in `fuzz/` was damaged, and contradicts itself in
/// copies that differ; and the packets of the other were shuffled, so that there are data before the SYN.
const NO_STREAMS: [&str; 2] = ["/fuzz/", "tcpflow-test5-lines-randomized"];

/// Protocols over TCP of which the recorded captures have a session.
const RECORDED: [&str; 12] = [
    "http",
    "websocket",
    "smtp",
    "pop3",
    "imap",
    "ssl",
    "ssh",
    "ftp",
    "ftp-data",
    "irc",
    "dns",
    "telnet",
];

/// Protocols of which only the second corpus has a session.
const ONLY_IN_THE_SECOND: [&str; 2] = ["xmpp", "mysql"];

type Logs = BTreeMap<&'static str, Vec<Row>>;

/// Hands over the packets of one place.
type TakeGathered = fn(&Gathered<'_>, &mut dyn FnMut(&Packet<'_>));

/// How streams are cut.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// Into single bytes at the begin, which is where most is to be understood.
    Singly,
    Into(usize),
    /// Into pieces of up to so many bytes.
    Seeded(u64, u64),
}

const CUTS: [Cut; 6] = [
    Cut::Singly,
    Cut::Into(2),
    Cut::Into(7),
    Cut::Into(100),
    Cut::Seeded(1, 2_000),
    Cut::Seeded(2, 30),
];

/// Up to how many bytes neighbours are joined.
const JOINED: [usize; 3] = [1_400, 8_000, 60_000];

/// What was compared.
#[derive(Default)]
struct Compared {
    captures: usize,
    rows: usize,
    segments: usize,
    pieces: usize,
    services: BTreeSet<String>,
    complaints: Vec<String>,
}

impl Compared {
    fn capture(&mut self, path: &Path) {
        let name = path.file_name().unwrap().to_string_lossy();
        let batches = support::read(path);
        let packets = || batches.iter().flat_map(Batch::iter);
        self.captures += 1;
        let whole = logs(|engine, rows| packets().for_each(|packet| engine.packet(&packet, rows)));
        self.rows += whole.values().map(Vec::len).sum::<usize>();
        let connections = whole.get("conn").into_iter().flatten();
        for row in connections.filter(|row| row["proto"] == "tcp") {
            self.services.extend(row["service"].split(',').map(str::to_owned));
        }
        for cut in CUTS {
            let cut_logs = logs(|engine, rows| {
                let mut pieces = Pieces::new(cut);
                packets().for_each(|packet| pieces.take(&packet, engine, rows));
                self.segments += pieces.segments;
                self.pieces += pieces.pieces;
            });
            self.compare(&whole, &cut_logs, &format!("{name}, cut {cut:?}"));
        }
        for most in JOINED {
            let gathered = gather(packets(), most);
            let each = |take: TakeGathered| {
                logs(|engine, rows| {
                    gathered
                        .iter()
                        .for_each(|it| take(it, &mut |packet| engine.packet(packet, rows)));
                })
            };
            let apart = each(|place, to| place.apart(to));
            let joined = each(|place, to| place.joined(to));
            self.compare(&apart, &joined, &format!("{name}, joined up to {most} bytes"));
        }
    }

    fn compare(&mut self, whole: &Logs, other: &Logs, how: &str) {
        let mut other = without_segments(other);
        let mut whole = without_segments(whole);
        unset_alike(&mut whole, &mut other);
        let paths: BTreeSet<_> = whole.keys().chain(other.keys()).collect();
        for path in paths {
            let rows = |logs: &Logs| logs.get(path).cloned().unwrap_or_default();
            let (whole, other) = (rows(&whole), rows(&other));
            if whole == other {
                continue;
            }
            let (before, after) = (whole.len(), other.len());
            let mut complaint = format!("{how}: {path}: {before} rows, and {after}");
            let pairs = whole.iter().zip(&other).filter(|(one, two)| one != two);
            for (one, two) in pairs.take(if before == after { 3 } else { 0 }) {
                complaint.push_str(&format!("\n  {}:", one.get("uid").map_or("", String::as_str)));
                for (column, value) in one {
                    let now = two.get(column).map_or("", String::as_str);
                    if now != value {
                        complaint.push_str(&format!(" {column}: {value} -> {now}"));
                    }
                }
            }
            let only = |one: &[Row], two: &[Row]| {
                let only = one.iter().filter(|row| !two.contains(row)).take(3);
                only.cloned().collect::<Vec<_>>()
            };
            if before != after {
                let [gone, new] = [only(&whole, &other), only(&other, &whole)];
                complaint.push_str(&format!("\n  gone: {gone:?}\n  new: {new:?}"));
            }
            self.complaints.push(complaint);
        }
    }

    fn of(paths: &[PathBuf]) -> Self {
        let mut compared = Self::default();
        paths.iter().for_each(|path| compared.capture(path));
        print_uncaptured(&format!(
            "{} captures, {} rows; {} segments became {} pieces; sessions over TCP of {:?}",
            compared.captures, compared.rows, compared.segments, compared.pieces, compared.services
        ));
        assert!(compared.complaints.is_empty(), "{}", compared.complaints.join("\n"));
        compared
    }
}

/// The rows of all logs.
fn logs(feed: impl FnOnce(&mut Engine, &mut Rows)) -> Logs {
    let mut rows = Rows::default();
    // Each segment behind a hole takes memory of its own, whose bound must not be met by tiny ones alone.
    let limits = Limits { stream_held_bytes: 32 << 20, ..Limits::default() };
    let mut engine = Engine::new(limits, Options::default(), 7);
    feed(&mut engine, &mut rows);
    engine.finish(&mut rows);
    rows.sort();
    let rows_of =
        |(path, rows): (_, Vec<(_, Row)>)| (path, rows.into_iter().map(|(_, row)| row).collect());
    rows.logs.into_iter().map(rows_of).collect()
}

/// The rows without what tells of segments.
fn without_segments(logs: &Logs) -> Logs {
    let mut logs = logs.clone();
    logs.retain(|path, _| !LOGS_OF_SEGMENTS.contains(path));
    for (path, rows) in &mut logs {
        rows.retain(|row| *path != "weird" || !WEIRDS_OF_SEGMENTS.contains(&row["name"].as_str()));
        for row in rows {
            let columns = OF_SEGMENTS.iter().filter(|(log, _)| log == path);
            columns.for_each(|(_, column)| drop(row.remove(*column).unwrap()));
        }
    }
    logs.retain(|_, rows| !rows.is_empty());
    logs
}

/// Takes verdicts out of both where one of them says that it is not sure: the numbers are unset, and `quality` is no better.
fn unset_alike(whole: &mut Logs, other: &mut Logs) {
    let rows = |logs: &Logs| logs.get("conn").map_or(0, Vec::len);
    if rows(whole) != rows(other) {
        return;
    }
    let pairs = whole.get_mut("conn").into_iter().flatten();
    for (one, two) in pairs.zip(other.get_mut("conn").into_iter().flatten()) {
        let is_unset = |row: &Row| {
            row["quality"] == "suspect"
                && [CAPTURE_BYTES, NETWORK_BYTES].iter().all(|column| row[*column] == "-")
        };
        if is_unset(one) || is_unset(two) {
            for column in ["quality", CAPTURE_BYTES, NETWORK_BYTES] {
                one.remove(column);
                two.remove(column);
            }
        }
    }
}

/// Cuts the packets of a capture.
struct Pieces {
    cut: Cut,
    random: Random,
    /// Bytes of each direction so far.
    seen: HashMap<Direction, u64>,
    segments: usize,
    pieces: usize,
}

impl Pieces {
    fn new(cut: Cut) -> Self {
        let seed = if let Cut::Seeded(seed, _) = cut { seed } else { 0 };
        let random = Random::new(seed);
        Self { cut, random, seen: HashMap::new(), segments: 0, pieces: 0 }
    }

    fn take(&mut self, packet: &Packet<'_>, engine: &mut Engine, rows: &mut Rows) {
        let Some(segment) = Segment::of(packet) else { return engine.packet(packet, rows) };
        let seen = self.seen.entry(segment.direction()).or_default();
        let is_begin = *seen < SINGLE;
        *seen += segment.data_len() as u64;
        let random = &mut self.random;
        let size = || match self.cut {
            Cut::Singly if is_begin => 1,
            Cut::Singly => BEHIND,
            Cut::Into(size) => size,
            Cut::Seeded(_, most) => 1 + random.below(most) as usize,
        };
        self.segments += 1;
        segment.cut(size, |piece| {
            self.pieces += 1;
            engine.packet(piece, rows);
        });
    }
}

#[test]
fn other_segments_change_no_row_of_what_was_recorded() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded");
    let compared =
        Compared::of(&["office", "protocols"].map(|it| recorded.join(it).with_extension("pcapng")));
    assert!(
        compared.rows > 500 && compared.pieces > 10 * compared.segments,
        "too little to be sure"
    );
    let missing = RECORDED.iter().filter(|name| !compared.services.contains(**name));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0].iter().collect::<Vec<_>>());
}

#[test]
fn other_segments_change_no_row_of_the_corpus() {
    let Some(root) = support::corpus() else { return };
    let mut captures = support::captures(&root);
    captures.retain(|path| !NO_STREAMS.iter().any(|part| path.to_string_lossy().contains(part)));
    let compared = Compared::of(&captures);
    assert!(compared.captures > 80 && compared.rows > 2_000, "too little to be sure");
    let over_tcp =
        ProtocolSet::ALL.iter().map(ProtocolId::protocol).filter(|it| !it.tcp_ports().is_empty());
    let silent = over_tcp.filter(|it| !compared.services.contains(it.name()));
    let silent: Vec<_> = silent.map(Protocol::name).collect();
    assert_eq!(silent, ONLY_IN_THE_SECOND, "no session of the corpus is in these");
}

/// Captures whose clock goes back are left out: names and waits of flows then hang on the number of packets.
#[test]
fn other_segments_change_no_row_of_the_second_corpus() {
    let Some(root) = folder(Need::Corpus2, "no capture of it was cut") else { return };
    let mut captures = support::captures(&root);
    let all = captures.len();
    captures.retain(|path| is_in_order(path));
    println!("{} captures of the second corpus, {all} with those left out", captures.len());
    let compared = Compared::of(&captures);
    assert!(captures.len() + 20 > all && compared.rows > 1_000, "too little to be sure");
    assert!(ONLY_IN_THE_SECOND.iter().all(|name| compared.services.contains(*name)));
}

fn is_in_order(path: &Path) -> bool {
    let batches = support::read(path);
    let times = batches.iter().flat_map(Batch::iter).map(|packet| packet.timestamp);
    times.is_sorted()
}

/// Where single bytes come with pauses, whoever sends SSH tells nothing by pauses. What then cannot be known is unset.
#[test]
fn bytes_of_ssh_with_pauses_tell_what_is_so_or_nothing() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded");
    let mut captures = vec![recorded.join("office.pcapng")];
    if let Some(root) = support::corpus() {
        captures.extend(
            support::captures(&root)
                .into_iter()
                .filter(|it| it.to_string_lossy().contains("/ssh/")),
        );
    }
    let (mut rows, mut known) = (0, 0);
    for path in &captures {
        let batches = support::read(path);
        let packets = || batches.iter().flat_map(Batch::iter).filter(is_ssh);
        let whole = logs(|engine, rows| packets().for_each(|packet| engine.packet(&packet, rows)));
        for (size, pause) in
            [(1, 300_000), (1, 3_000_000), (3, 1_000_000), (16, 300_000), (20, 300_000)]
        {
            let mut now = Timestamp::MIN;
            let slow = logs(|engine, rows| {
                for packet in packets() {
                    let mut take = |packet: &Packet<'_>| {
                        now = packet.timestamp.max(now.offset(pause));
                        engine.packet(&Packet { timestamp: now, ..*packet }, rows);
                    };
                    match Segment::of(&packet) {
                        Some(segment) => segment.cut(|| size, take),
                        None => take(&packet),
                    }
                }
            });
            let none = Vec::new();
            let [whole, slow] = [&whole, &slow].map(|logs| logs.get("ssh").unwrap_or(&none));
            assert_eq!(whole.len(), slow.len(), "{}", path.display());
            for row in whole {
                let same = ["id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"];
                let slow = slow
                    .iter()
                    .find(|it| same.iter().all(|column| it[*column] == row[*column]))
                    .unwrap();
                let told =
                    |row: &Row| ["auth_success", "auth_attempts"].map(|column| row[column].clone());
                let is_unset = told(slow) == ["-", "-"];
                assert!(
                    is_unset || told(slow) == told(row),
                    "{}: {size} {pause} {row:?} {slow:?}",
                    path.display()
                );
                for (column, value) in row {
                    let may_differ =
                        ["ts", "uid", "auth_success", "auth_attempts"].contains(&column.as_str());
                    assert!(may_differ || slow[column] == *value, "{column}: {row:?} {slow:?}");
                }
                rows += 1;
                known += usize::from(!is_unset);
            }
        }
    }
    print_uncaptured(&format!(
        "{rows} rows of SSH cut with pauses, {known} with the result of the login"
    ));
    assert!(rows >= 10 && known > 0, "{rows} rows, {known} with a result");
}

fn is_ssh(packet: &Packet<'_>) -> bool {
    let decoded = decode::packet(packet.link_type, packet.data, packet.wire_len);
    matches!(&decoded.transport, Transport::Tcp(tcp) if [tcp.source_port, tcp.destination_port].contains(&22))
}
