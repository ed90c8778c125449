//! The `tcp` log against what TShark's TCP analysis says of the same captures.
//!
//! Needs the corpus of captures, to which `NETSNIFF_CORPUS` points, and TShark in the path. Where
//! the definitions differ on purpose, `docs/tcp-metrics.md` says why, and so does the list here.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use netsniff_analysis::record::{FieldInfo, Value, Visitor};
use netsniff_analysis::{Engine, Limits, Observer, Options, Record, SortKey};
use netsniff_packet::{Batch, Progress, Source};
use netsniff_pcapfile::Reader;
use netsniff_testing::{Need, folder, has_program};

/// Both ends of a connection, the lower first.
type Pair = [(IpAddr, u16); 2];

/// What is compared of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    segments: u64,
    payload: u64,
    /// Retransmissions of any class.
    retransmissions: u64,
    /// Packets seen twice, which TShark takes for retransmissions or duplicate acknowledgements.
    duplicates: u64,
    out_of_order: u64,
    keep_alives: u64,
    duplicate_acks: u64,
    zero_windows: u64,
}

/// What is compared of all connections between two ends.
#[derive(Clone, Debug, Default)]
struct Connections {
    /// By the place of the sender in [`Pair`].
    sides: [Counts; 2],
    /// Handshake RTTs in nanoseconds, in order of time.
    rtts: Vec<i64>,
}

type Table = BTreeMap<Pair, Connections>;

/// How two readings of the same connections compare, metric by metric.
#[derive(Debug, Default)]
struct Agreement {
    pairs: usize,
    handshakes: usize,
    /// Handshakes that TShark timed and this project did not, or differently.
    handshakes_apart: usize,
    payload_apart: usize,
    retransmissions_apart: usize,
    out_of_order_apart: usize,
    keep_alives_apart: usize,
    duplicate_acks_apart: usize,
    zero_windows_apart: usize,
}

impl Agreement {
    fn compare(&mut self, ours: &Connections, theirs: &Connections) -> bool {
        self.pairs += 1;
        self.handshakes += theirs.rtts.len();
        let before = self.sum();
        self.handshakes_apart += usize::from(ours.rtts != theirs.rtts);
        for (own, their) in ours.sides.iter().zip(&theirs.sides) {
            let apart = |of: fn(&Counts) -> u64| usize::from(of(own) != of(their));
            self.payload_apart += apart(|c| c.payload) | apart(|c| c.segments);
            // TShark takes doubled packets for retransmissions, and draws the line to reordering
            // elsewhere: the sum of both is what must agree, the parts are told.
            let sent_again = |c: &Counts| c.retransmissions + c.out_of_order;
            let range = sent_again(own)..=sent_again(own) + own.duplicates;
            self.retransmissions_apart += usize::from(!range.contains(&sent_again(their)));
            self.out_of_order_apart += apart(|c| c.out_of_order);
            self.keep_alives_apart += apart(|c| c.keep_alives);
            self.duplicate_acks_apart += apart(|c| c.duplicate_acks);
            self.zero_windows_apart += apart(|c| c.zero_windows);
        }
        self.sum() == before
    }

    const fn sum(&self) -> usize {
        self.handshakes_apart
            + self.payload_apart
            + self.retransmissions_apart
            + self.out_of_order_apart
            + self.keep_alives_apart
            + self.duplicate_acks_apart
            + self.zero_windows_apart
    }
}

#[test]
fn the_tcp_log_agrees_with_tshark() {
    let Some(files) = captures() else { return };
    let mut agreement = Agreement::default();
    let mut missing = 0;
    for path in &files {
        let name = path.file_name().unwrap().to_string_lossy();
        let ours = analyze(path);
        for (pair, theirs) in tshark(path) {
            let Some(own) = ours.get(&pair) else {
                missing += 1;
                continue;
            };
            if !agreement.compare(own, &theirs) {
                let [low, high] = pair;
                eprintln!("{name} {}:{} {}:{}", low.0, low.1, high.0, high.1);
                eprintln!("  ours   {own:?}\n  theirs {theirs:?}");
            }
        }
    }
    eprintln!("{} files, {missing} pairs that are not in the log: {agreement:#?}", files.len());
    assert!(agreement.pairs >= 250 && agreement.handshakes >= 230, "little was compared");
    BOUNDS.iter().for_each(|(what, of, most)| {
        let apart = of(&agreement);
        assert!(apart <= *most, "{what}: {apart} differ, {most} are explained");
    });
}

/// A metric's name, its place, and how many differences are explained in `docs/tcp-metrics.md`.
type Bound = (&'static str, fn(&Agreement) -> usize, usize);

const BOUNDS: &[Bound] = &[
    ("handshake RTT", |a| a.handshakes_apart, 17),
    ("payload", |a| a.payload_apart, 0),
    ("retransmissions", |a| a.retransmissions_apart, 5),
    ("out of order", |a| a.out_of_order_apart, 5),
    ("keep-alives", |a| a.keep_alives_apart, 1),
    ("duplicate acknowledgements", |a| a.duplicate_acks_apart, 26),
    ("zero windows", |a| a.zero_windows_apart, 0),
];

/// The captures of the corpus, fuzzed ones apart.
fn captures() -> Option<Vec<PathBuf>> {
    let corpus = folder(Need::Corpus, "TShark's analysis was not compared")?;
    if !has_program("tshark", "its analysis was not compared") {
        return None;
    }
    let mut files = Vec::new();
    for folder in fs::read_dir(&corpus).unwrap().map(|entry| entry.unwrap().path()) {
        if folder.is_dir() && !folder.ends_with("fuzz") {
            files.extend(fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    files.retain(|path| path.is_file() && Reader::new(File::open(path).unwrap()).is_ok());
    files.sort();
    assert!(!files.is_empty(), "no captures in {corpus:?}");
    Some(files)
}

/// Takes the rows of the `tcp` log.
#[derive(Default)]
struct Rows(Vec<BTreeMap<&'static str, Cell>>);

/// A value that is compared.
#[derive(Clone, Copy, Debug)]
enum Cell {
    Number(u64),
    Nanos(i64),
    Address(IpAddr),
}

impl Observer for Rows {
    fn record<R: Record>(&mut self, _: &SortKey, record: &R) {
        if record.log().path == "tcp" {
            self.0.push(BTreeMap::new());
            record.visit(self);
        }
    }
}

impl Visitor for Rows {
    fn field(&mut self, _: usize, info: &'static FieldInfo, value: Value<'_>) {
        let cell = match value {
            Value::Count(value) => Cell::Number(value),
            Value::Port(value) => Cell::Number(value.into()),
            Value::Interval(value) => Cell::Nanos(value.nanos()),
            Value::Time(value) => Cell::Nanos(value.nanos()),
            Value::Addr(value) => Cell::Address(value.to_string().parse().unwrap()),
            _ => return,
        };
        self.0.last_mut().unwrap().insert(info.name, cell);
    }
}

fn analyze(path: &Path) -> Table {
    let mut reader = Reader::new(File::open(path).unwrap()).unwrap();
    let mut engine = Engine::new(Limits::default(), Options::default(), 1);
    let mut rows = Rows::default();
    let mut batch = Batch::default();
    let mut progress = Progress::More;
    while progress == Progress::More {
        progress = reader.read_batch(&mut batch).unwrap();
        engine.batch(&batch, &mut rows);
    }
    engine.finish(&mut rows);
    let start = |row: &BTreeMap<_, _>| match row["ts"] {
        Cell::Nanos(nanos) => nanos,
        _ => panic!("ts is a time"),
    };
    rows.0.sort_by_key(start);
    let mut table = Table::new();
    for row in &rows.0 {
        add_row(&mut table, row);
    }
    table
}

fn add_row(table: &mut Table, row: &BTreeMap<&'static str, Cell>) {
    let end = |host, port| match (row[host], row[port]) {
        (Cell::Address(address), Cell::Number(port)) => (address, port as u16),
        _ => panic!("{host} is an address"),
    };
    let (orig, resp) = (end("id.orig_h", "id.orig_p"), end("id.resp_h", "id.resp_p"));
    let number = |side: &str, name: &str| match row.get(format!("{side}_{name}").as_str()) {
        Some(Cell::Number(number)) => *number,
        _ => 0,
    };
    let connections = table.entry([orig.min(resp), orig.max(resp)]).or_default();
    for (side, at) in [("orig", usize::from(orig > resp)), ("resp", usize::from(orig <= resp))] {
        let counts = &mut connections.sides[at];
        counts.segments += number(side, "data_segments");
        counts.payload += number(side, "payload_bytes");
        for class in ["retx_rto", "retx_fast", "retx_spurious"] {
            counts.retransmissions += number(side, class);
        }
        counts.duplicates += number(side, "duplicates");
        counts.out_of_order += number(side, "out_of_order");
        counts.keep_alives += number(side, "keep_alives") + number(side, "window_probes");
        counts.duplicate_acks += number(side, "dup_acks");
        counts.zero_windows += number(side, "zero_windows");
    }
    if let (Some(Cell::Nanos(a)), Some(Cell::Nanos(b))) =
        (row.get("orig_handshake_rtt"), row.get("resp_handshake_rtt"))
    {
        connections.rtts.push(a + b);
    }
}

const FIELDS: [&str; 16] = [
    "tcp.stream",
    "ip.src",
    "ipv6.src",
    "tcp.srcport",
    "ip.dst",
    "ipv6.dst",
    "tcp.dstport",
    "tcp.len",
    "tcp.analysis.retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.keep_alive",
    "tcp.analysis.zero_window_probe",
    "tcp.analysis.duplicate_ack_num",
    "tcp.analysis.zero_window",
    "tcp.analysis.initial_rtt",
    "tcp.flags.reset",
];

fn tshark(path: &Path) -> Table {
    let mut command = Command::new("tshark");
    command.args(["-n", "-Y", "tcp && !icmp && !icmpv6", "-T", "fields", "-E", "occurrence=l"]);
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let output = command.arg("-r").arg(path).output().unwrap();
    let mut table = Table::new();
    let mut timed = std::collections::BTreeSet::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let cell = |name| cells[FIELDS.iter().position(|field| *field == name).unwrap()];
        let end = |four, six, port| {
            let address = if cell(four).is_empty() { cell(six) } else { cell(four) };
            Some((address.parse::<IpAddr>().ok()?, cell(port).parse::<u16>().ok()?))
        };
        let (Some(from), Some(to)) =
            (end("ip.src", "ipv6.src", "tcp.srcport"), end("ip.dst", "ipv6.dst", "tcp.dstport"))
        else {
            continue;
        };
        let connections = table.entry([from.min(to), from.max(to)]).or_default();
        let counts = &mut connections.sides[usize::from(from > to)];
        let has = |name| u64::from(!cell(name).is_empty());
        let len: u64 = cell("tcp.len").parse().unwrap_or(0);
        if cell("tcp.flags.reset") != "1" && cell("tcp.flags.reset") != "True" {
            counts.segments += u64::from(len > 0);
            counts.payload += len;
        }
        counts.retransmissions += has("tcp.analysis.retransmission");
        counts.out_of_order += has("tcp.analysis.out_of_order");
        counts.keep_alives +=
            has("tcp.analysis.keep_alive") + has("tcp.analysis.zero_window_probe");
        counts.duplicate_acks += has("tcp.analysis.duplicate_ack_num");
        counts.zero_windows += has("tcp.analysis.zero_window");
        let rtt = cell("tcp.analysis.initial_rtt");
        if !rtt.is_empty() && timed.insert(cell("tcp.stream").to_owned()) {
            let (seconds, fraction) = rtt.split_once('.').unwrap_or((rtt, "0"));
            let nanos: i64 = format!("{fraction:0<9}").parse().unwrap();
            connections.rtts.push(seconds.parse::<i64>().unwrap() * 1_000_000_000 + nanos);
        }
    }
    table
}
