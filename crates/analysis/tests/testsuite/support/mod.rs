//! Captures of the corpus, rows that the engine gives for them, and rows that Zeek gave.

pub(crate) mod script;
pub(crate) mod scripted;
pub(crate) mod web;
pub(crate) mod wire;

use core::convert::Infallible;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use netsniff_analysis::record::{
    Connection, Fact, FieldInfo, Record, Row as OwnedRow, Value, Visitor,
};
use netsniff_analysis::rows::{Encode, LOGS, Output, RowSink};
use netsniff_analysis::{Engine, Limits, Observer, Options, SortKey};
use netsniff_packet::{Batch, LinkType, Packet, Progress, Source, Timestamp};
use netsniff_pcapfile::Reader;
use netsniff_testing::{Need, folder};

/// What is compared of a connection: all that does not depend on configuration or protocols.
pub(crate) const CONN: [&str; 17] = [
    "ts",
    "id.orig_h",
    "id.orig_p",
    "id.resp_h",
    "id.resp_p",
    "proto",
    "duration",
    "orig_bytes",
    "resp_bytes",
    "conn_state",
    "missed_bytes",
    "history",
    "orig_pkts",
    "orig_ip_bytes",
    "resp_pkts",
    "resp_ip_bytes",
    "ip_proto",
];

/// A row as text, by column.
pub(crate) type Row = BTreeMap<String, String>;

/// The rows of each log with their keys, once they are sorted.
pub(crate) struct Rows {
    output: Output<Table, Columns>,
    /// Engine time at the end.
    now: Timestamp,
    pub(crate) logs: BTreeMap<&'static str, Vec<(SortKey, Row)>>,
}

impl Default for Rows {
    fn default() -> Self {
        Self::new(&Limits::default())
    }
}

impl Rows {
    /// Nothing yet; what flows tell together is bounded by `limits`.
    pub(crate) fn new(limits: &Limits) -> Self {
        let output = Output::encoded(limits, Columns, Table::default());
        Self { output, now: Timestamp::MIN, logs: BTreeMap::new() }
    }

    /// The rows of one log in their order.
    pub(crate) fn log(&self, path: &str) -> Vec<&Row> {
        self.logs.get(path).into_iter().flatten().map(|(_, row)| row).collect()
    }

    /// The rows of one log that were written so far, as they came.
    pub(crate) fn written(&self, path: &str) -> &[(SortKey, Row)] {
        self.output.sink().0.get(path).map_or(&[], Vec::as_slice)
    }

    /// Ends the output, and brings the rows of each log into their order.
    pub(crate) fn sort(&mut self) {
        self.output.complete(SortKey::END);
        let Ok(()) = self.output.finish(self.now);
        self.logs.clone_from(&self.output.sink().0);
        for (path, rows) in &mut self.logs {
            rows.sort_by_key(|(key, _)| *key);
            for pair in rows.windows(2) {
                assert!(pair[0].0 < pair[1].0, "two rows of {path} have one key: {:?}", pair[0]);
            }
        }
    }
}

impl Observer for Rows {
    fn record<R: Record>(&mut self, key: &SortKey, record: &R) {
        self.output.record(key, record);
    }

    fn fact(&mut self, key: &SortKey, connection: &Connection, fact: Box<dyn Fact>) {
        self.output.fact(key, connection, fact);
    }

    fn begun_row(
        &mut self,
        key: &SortKey,
        connection: &Connection,
        row: &dyn OwnedRow,
        fact: Box<dyn Fact>,
    ) {
        self.output.begun_row(key, connection, row, fact);
    }

    fn look(&mut self, key: &SortKey) {
        self.output.look(key);
    }

    fn complete(&mut self, watermark: SortKey) {
        if watermark != SortKey::END {
            self.now = watermark.time;
        }
        self.output.complete(watermark);
    }
}

/// Rows as they come.
#[derive(Default)]
struct Table(BTreeMap<&'static str, Vec<(SortKey, Row)>>);

impl RowSink for Table {
    type Error = Infallible;

    fn row(&mut self, log: usize, key: &SortKey, bytes: &[u8]) -> Result<(), Infallible> {
        let columns: Vec<_> = bytes.split(|&byte| byte == 0).map(String::from_utf8_lossy).collect();
        let (pairs, []) = columns[..columns.len() - 1].as_chunks::<2>() else {
            panic!("{columns:?}")
        };
        let row = pairs.iter().map(|[name, value]| (name.to_string(), value.to_string())).collect();
        self.0.entry(LOGS[log].path).or_default().push((*key, row));
        Ok(())
    }
}

/// Names and values, each with a zero behind it.
#[derive(Clone, Copy, Debug)]
struct Columns;

impl Encode for Columns {
    fn columns<R: Record>(&self, record: &R, out: &mut Vec<u8>) {
        record.visit(&mut Text(out));
    }
}

struct Text<'a>(&'a mut Vec<u8>);

impl Visitor for Text<'_> {
    fn field(&mut self, _: usize, info: &'static FieldInfo, value: Value<'_>) {
        for part in [info.name.to_owned(), text(value).replace('\0', "\\0")] {
            self.0.extend_from_slice(part.as_bytes());
            self.0.push(0);
        }
    }
}

fn text(value: Value<'_>) -> String {
    let seconds = |nanos: i64| {
        let micros = nanos.div_euclid(1000);
        format!("{}.{:06}", micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000))
    };
    match value {
        Value::Unset => "-".to_owned(),
        Value::Bool(value) => if value { "T" } else { "F" }.to_owned(),
        Value::Count(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Time(value) => seconds(value.nanos()),
        Value::Seconds(value) => format!("{}.000000", value.0),
        Value::Interval(value) => seconds(value.nanos()),
        Value::Addr(value) => value.to_string(),
        Value::Port(value) => value.to_string(),
        Value::Str(value) => value.to_owned(),
        Value::Word(value) | Value::Bytes(value) => String::from_utf8_lossy(value).into_owned(),
        Value::List(list) if list.count() == 0 => "(empty)".to_owned(),
        Value::List(list) => {
            let elements: Vec<_> = (0..list.count()).map(|at| text(list.element(at))).collect();
            elements.join(",")
        }
    }
}

/// A frame of Ethernet that was captured as a whole.
pub(crate) const fn packet(timestamp: Timestamp, data: &[u8]) -> Packet<'_> {
    let (wire_len, link_type) = (data.len() as u32, LinkType::ETHERNET);
    Packet { timestamp, data, wire_len, link_type, interface: 0 }
}

/// What the engine makes of packets.
pub(crate) fn analyse<'a>(packets: impl IntoIterator<Item = Packet<'a>>, limits: Limits) -> Rows {
    analyse_with(packets, limits, Options::default()).0
}

/// What the engine makes of packets as somebody wants it, with the engine behind the last of them.
pub(crate) fn analyse_with<'a>(
    packets: impl IntoIterator<Item = Packet<'a>>,
    limits: Limits,
    options: Options,
) -> (Rows, Engine) {
    let mut rows = Rows::new(&limits);
    let mut engine = Engine::new(limits, options, 7);
    for packet in packets {
        engine.packet(&packet, &mut rows);
    }
    engine.finish(&mut rows);
    rows.sort();
    (rows, engine)
}

/// What the engine makes of a capture file.
pub(crate) fn analyse_file(path: &Path) -> Rows {
    let batches = read(path);
    analyse(batches.iter().flat_map(Batch::iter), Limits::default())
}

/// The packets of a capture file, as far as it can be read.
pub(crate) fn read(path: &Path) -> Vec<Batch> {
    let mut batches = Vec::new();
    let Ok(mut reader) = Reader::new(File::open(path).unwrap()) else { return batches };
    loop {
        let mut batch = Batch::default();
        let progress = reader.read_batch(&mut batch);
        batches.push(batch);
        if !matches!(progress, Ok(Progress::More)) {
            return batches;
        }
    }
}

/// The folder of the corpus; where there is none, says so loudly.
pub(crate) fn corpus() -> Option<PathBuf> {
    folder(Need::Corpus, "nothing was compared with Zeek")
}

/// All captures of the corpus.
pub(crate) fn captures(root: &Path) -> Vec<PathBuf> {
    let entries = |folder: PathBuf| {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let folders = entries(root.to_owned()).into_iter().filter(|path| path.is_dir());
    let mut files: Vec<_> = folders.flat_map(entries).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// Zeek's rows of a log for a capture.
pub(crate) fn zeek_log(capture: &Path, log: &str) -> Vec<Row> {
    let mut folder = capture.as_os_str().to_owned();
    folder.push(".oracle");
    let path = PathBuf::from(folder).join("zeek-run").join(log).with_extension("log");
    let Ok(bytes) = fs::read(path) else { return Vec::new() };
    let content = String::from_utf8_lossy(&bytes).into_owned();
    let mut names = Vec::new();
    let mut rows = Vec::new();
    for line in content.lines() {
        if let Some(fields) = line.strip_prefix("#fields\t") {
            names = fields.split('\t').map(str::to_owned).collect();
        } else if !line.starts_with('#') {
            rows.push(names.iter().cloned().zip(line.split('\t').map(str::to_owned)).collect());
        }
    }
    rows
}

/// Some columns of rows, sorted, so that two lists can be compared as multisets.
pub(crate) fn columns(rows: &[&Row], names: &[&str]) -> Vec<String> {
    let pick = |row: &&Row| {
        let values = names.iter().map(|name| row.get(*name).map_or("?", String::as_str));
        values.collect::<Vec<_>>().join(" ")
    };
    let mut lines: Vec<_> = rows.iter().map(pick).collect();
    lines.sort();
    lines
}
