//! `ipfix://`: rows of `conn` as records of flows, read by `netsniff collect` and by a reader of this file's own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use netsniff_analysis::rows::LOGS;
use netsniff_ipfix::exporter::{ELEMENTS, END, END_TEMPLATE, FIRST_TEMPLATE, Group, Number};
use serde_json::Value;

use super::{OFFICE, balanced, deliver, deliver_rest, netsniff, number, written};
use crate::generated::Folder;

const PROTOCOLS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/protocols.pcapng");
/// What IPFIX and `netsniff collect` have of a connection.
const COLUMNS: [&str; 18] = [
    "ts",
    "id.orig_h",
    "id.orig_p",
    "id.resp_h",
    "id.resp_p",
    "proto",
    "duration",
    "orig_bytes",
    "resp_bytes",
    "local_orig",
    "local_resp",
    "orig_pkts",
    "orig_ip_bytes",
    "resp_pkts",
    "resp_ip_bytes",
    "ip_proto",
    "community_id",
    "vlan",
];

fn rows(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The columns of [`COLUMNS`], in the order of their text.
fn told(rows: &[Value]) -> Vec<String> {
    let columns = |row: &Value| {
        let mut line = String::new();
        COLUMNS.iter().for_each(|name| write!(line, "{name}={} ", row[*name]).unwrap());
        line
    };
    let mut all: Vec<_> = rows.iter().map(columns).collect();
    all.sort();
    all
}

/// `netsniff collect`, which listens at a port of its own for both transports.
struct Collecting {
    child: Child,
    port: u16,
}

impl Collecting {
    fn start(logs: &Path) -> Self {
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(env!("CARGO_BIN_EXE_netsniff"))
            .args(["collect", "-o", logs.to_str().unwrap(), "--format", "json"])
            .args(["--duration", "60s", &format!("ipfix://127.0.0.1:{port}")])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let begin = Instant::now();
        while let Err(error) = TcpStream::connect(("127.0.0.1", port)) {
            assert!(begin.elapsed() < Duration::from_secs(20), "{error}");
            thread::sleep(Duration::from_millis(20));
        }
        Self { child, port }
    }

    fn end(mut self) {
        thread::sleep(Duration::from_millis(700));
        let signal = ["-TERM".to_owned(), self.child.id().to_string()];
        assert!(Command::new("kill").args(signal).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn our_own_collector_has_the_rows_of_the_log() {
    for (name, capture) in [("office", OFFICE), ("protocols", PROTOCOLS)] {
        for scheme in ["ipfix", "ipfix+udp"] {
            let folder = Folder::new(&format!("deliver-{scheme}-{name}"));
            let (spool, logs) = (folder.path("spool"), folder.path("logs"));
            let collecting = Collecting::start(&folder.path("collected"));
            let url = format!("{scheme}://127.0.0.1:{}?time=ns", collecting.port);
            let out = netsniff(
                &[
                    &["analyze", capture, "--json", "--deliver", &url, "--spool"],
                    &[spool.to_str().unwrap(), "-o", logs.to_str().unwrap()][..],
                ]
                .concat(),
            );
            assert!(out.status.success(), "{out:?}");
            let summary: Value = serde_json::from_slice(&out.stdout).unwrap();
            balanced(&summary["delivery"][0]);
            collecting.end();
            let of_log = rows(&logs.join("conn.log"));
            let collected = rows(&folder.path("collected").join("conn.log"));
            assert_eq!(number(&summary["delivery"][0], "delivered"), of_log.len() as u64 + 1);
            assert_eq!(told(&collected), told(&of_log), "{name} by {scheme}");
            is_state_told(&of_log, &collected);
            let exporters = rows(&folder.path("collected").join("exporters.log"));
            let books = exporters.iter().rfind(|row| row["records"] != 0).unwrap();
            let of = |name: &str| books[name].as_u64().unwrap();
            assert_eq!((of("flows"), of("told_exported")), (of_log.len() as u64, of("flows")));
            assert_eq!((of("options"), of("lost_records"), of("undecoded_sets")), (1, 0, 0));
        }
    }
}

/// States that the collector makes of flags are those of the log.
fn is_state_told(of_log: &[Value], collected: &[Value]) {
    let key =
        |row: &Value| COLUMNS[..6].iter().map(|name| row[*name].to_string()).collect::<Vec<_>>();
    let states: BTreeMap<_, _> = of_log.iter().map(|row| (key(row), &row["conn_state"])).collect();
    let mut number = 0;
    for row in collected.iter().filter(|row| !row["conn_state"].is_null()) {
        assert_eq!(&&row["conn_state"], &states[&key(row)], "{row}");
        number += 1;
    }
    assert!(number > 20, "{number}");
}

/// A field of a template: the enterprise, the number, and the length.
type Field = (u32, u16, usize);
/// What a record has: values by the enterprise and number of their elements.
type Record = BTreeMap<(u32, u16), Vec<u8>>;

/// A reader of IPFIX that knows nothing of ours: of one session, by RFC 7011 alone.
#[derive(Default)]
struct Session {
    templates: BTreeMap<u16, Vec<Field>>,
    /// Records by their templates.
    records: Vec<(u16, Record)>,
    messages: usize,
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    fn number(&mut self, length: usize) -> u64 {
        self.take(length).iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

impl Session {
    /// Reads whole messages; what is behind the last one was cut.
    fn read(&mut self, bytes: &[u8]) {
        let mut bytes = Bytes(bytes);
        while bytes.0.len() >= 16 {
            let length = usize::from(u16::from_be_bytes([bytes.0[2], bytes.0[3]]));
            if bytes.0.len() < length {
                return;
            }
            self.message(bytes.take(length));
        }
    }

    fn message(&mut self, message: &[u8]) {
        let mut bytes = Bytes(message);
        assert_eq!((bytes.number(2), bytes.number(2)), (10, message.len() as u64));
        let _sent = bytes.number(4);
        assert_eq!(bytes.number(4), self.records.len() as u64, "the number of records before");
        assert_ne!(bytes.number(4), 0, "the domain");
        while !bytes.0.is_empty() {
            let (id, length) = (bytes.number(2) as u16, bytes.number(2) as usize);
            let mut set = Bytes(bytes.take(length - 4));
            while !set.0.is_empty() {
                match id {
                    2 | 3 => self.template(&mut set, id == 3),
                    id => self.record(&mut set, id),
                }
            }
        }
        self.messages += 1;
    }

    fn template(&mut self, set: &mut Bytes<'_>, is_options: bool) {
        let (id, count) = (set.number(2) as u16, set.number(2));
        if is_options {
            assert!((1..=count).contains(&set.number(2)), "scopes");
        }
        let fields = (0..count).map(|_| {
            let (number, length) = (set.number(2) as u16, set.number(2) as usize);
            let enterprise = if number >= 0x8000 { set.number(4) as u32 } else { 0 };
            (enterprise, number & 0x7fff, length)
        });
        let fields: Vec<_> = fields.collect();
        let before = self.templates.insert(id, fields.clone());
        assert!(before.is_none_or(|before| before == fields), "a template changed its meaning");
    }

    fn record(&mut self, set: &mut Bytes<'_>, id: u16) {
        let fields = self.templates.get(&id).expect("a record stands before its template");
        let values = fields.iter().map(|&(enterprise, number, length)| {
            let length = match length {
                65_535 => match set.number(1) {
                    255 => set.number(2) as usize,
                    short => short as usize,
                },
                length => length,
            };
            ((enterprise, number), set.take(length).to_vec())
        });
        let record = values.collect();
        self.records.push((id, record));
    }
}

const PEN: u32 = 32473;

fn count(record: &Record, number: u16) -> u64 {
    Bytes(&record[&(PEN, number)]).number(8)
}

/// Which numbers of rows came in some sessions, and how many rows the end of the run tells of.
fn came(sessions: &[Session]) -> (BTreeSet<u64>, Option<u64>) {
    let (mut rows, mut end) = (BTreeSet::new(), None);
    for (id, record) in sessions.iter().flat_map(|session| &session.records) {
        assert_eq!((&record[&(PEN, 1)][..], &record[&(PEN, 2)][..]), (&b"s"[..], &b"r"[..]));
        if *id == END_TEMPLATE {
            end = Some(count(record, 14));
        } else {
            rows.insert(count(record, 3));
        }
    }
    (rows, end)
}

/// Takes connections one after the other, until it is told that no more come. It ends the first ones after so many bytes, of
/// which it has not understood the last.
struct Receiving {
    is_over: Arc<AtomicBool>,
    thread: thread::JoinHandle<Vec<Session>>,
}

impl Receiving {
    fn start(listener: TcpListener, cuts: &'static [usize]) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        listener.set_nonblocking(true).unwrap();
        let thread = thread::spawn(move || {
            let mut cuts = cuts.iter().copied();
            let mut sessions = Vec::new();
            loop {
                let was_over = over.load(Ordering::Relaxed);
                match listener.accept() {
                    Ok((stream, _)) => sessions.push(take(stream, cuts.next())),
                    Err(_) if was_over => return sessions,
                    Err(_) => thread::sleep(Duration::from_millis(5)),
                }
            }
        });
        Self { is_over, thread }
    }

    fn end(self) -> Vec<Session> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn take(mut stream: TcpStream, cut: Option<usize>) -> Session {
    stream.set_nonblocking(false).unwrap();
    let (mut bytes, mut piece) = (Vec::new(), [0; 512]);
    while cut.is_none_or(|cut| bytes.len() < cut) {
        let length = stream.read(&mut piece).unwrap();
        if length == 0 {
            break;
        }
        bytes.extend_from_slice(&piece[..length]);
    }
    if cut.is_some() {
        bytes.pop();
    }
    let mut session = Session::default();
    session.read(&bytes);
    session
}

#[test]
fn a_receiver_proves_what_a_cut_connection_lost() {
    let folder = Folder::new("deliver-ipfix-cut");
    let logs = folder.path("logs");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ipfix://{}?batch=20", listener.local_addr().unwrap());
    let again = listener.try_clone().unwrap();
    let receiving = Receiving::start(listener, &[10_000, 10_000]);
    let beside = ["-o", logs.to_str().unwrap()];
    let (code, books) = deliver(&folder, std::slice::from_ref(&url), &beside);
    assert_eq!((code, number(&books[0], "spooled")), (0, 0), "{books:?}");
    let sessions = receiving.end();
    let all: BTreeSet<_> = written(&logs)["conn"].keys().copied().collect();
    let (rows, end) = came(&sessions);
    assert!(sessions[0].messages > 0, "{}", sessions.len());
    assert!(rows.is_subset(&all) && rows.len() < all.len(), "what was on its way is missing");
    assert!(end.is_none_or(|end| end == all.len() as u64));
    // The same rows have the same names again.
    let receiving = Receiving::start(again, &[]);
    let (code, _) = deliver(&folder, &[url], &[]);
    assert_eq!(code, 0);
    assert_eq!(came(&receiving.end()), (all.clone(), Some(all.len() as u64)));
}

#[test]
fn a_sender_that_was_killed_has_lost_no_row_of_its_spool() {
    let folder = Folder::new("deliver-ipfix-killed");
    let (spool, logs) = (folder.path("spool"), folder.path("logs"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let url = format!("ipfix://{at}");
    drop(listener);
    let mut child = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args(["analyze", OFFICE, "-q", "--sensor", "s", "--run-id", "r", "--deliver", &url])
        .args(["--spool", spool.to_str().unwrap(), "-o", logs.to_str().unwrap()])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Logs are complete once the analysis is, and the spool then is as well.
    let begin = Instant::now();
    while !fs::read_dir(&logs)
        .is_ok_and(|all| all.flatten().any(|entry| entry.file_name() == "conn.log"))
    {
        assert!(begin.elapsed() < Duration::from_secs(20));
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(Duration::from_millis(300));
    child.kill().unwrap();
    child.wait().unwrap();
    let receiving = Receiving::start(TcpListener::bind(at).unwrap(), &[]);
    let (code, books) = deliver_rest(&folder);
    assert_eq!((code, number(&books[0], "spooled")), (0, 0));
    let all: BTreeSet<_> = written(&logs)["conn"].keys().copied().collect();
    assert_eq!(came(&receiving.end()), (all.clone(), Some(all.len() as u64)));
}

#[test]
fn a_row_of_another_log_is_no_flow() {
    let out =
        netsniff(&["analyze", OFFICE, "--spool", "s", "--deliver", "ipfix://127.0.0.1?log=dns"]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("log=dns has no form there; conn has"), "{said}");
}

/// The part of docs/ipfix.md that tells of elements.
fn page() -> String {
    let origin = |number: Number| match number {
        Number::Iana(id) => id.to_string(),
        Number::Reverse(id) => format!("29305/{id}"),
        Number::Own(id) => format!("PEN/{id}"),
    };
    let mut out = String::from("| weight | records have it where |\n|---|---|\n");
    for (group, doc) in Group::ALL {
        writeln!(out, "| {} | {doc} |", group.weight()).unwrap();
    }
    out.push_str(
        "\n| element | number | type | columns | in records | note |\n|---|---|---|---|---|---|\n",
    );
    for element in ELEMENTS {
        let columns: Vec<_> = element.columns.iter().map(|name| format!("`{name}`")).collect();
        let weights = |groups: &[Group], word: &str| {
            let told = groups.iter().map(|group| format!("{word} {}", group.weight()));
            told.collect::<Vec<_>>()
        };
        let mut when = weights(element.with, "with");
        when.extend(weights(element.without, "without"));
        let when = if when.is_empty() { "all".to_owned() } else { when.join(", ") };
        let (number, kind) = (origin(element.number), element.kind.name());
        let name = match element.number {
            Number::Reverse(_) => format!("{} (reverse)", element.name),
            Number::Iana(_) | Number::Own(_) => element.name.to_owned(),
        };
        let columns = columns.join(", ");
        writeln!(out, "| {name} | {number} | {kind} | {columns} | {when} | {} |", element.note)
            .unwrap();
    }
    writeln!(out, "\nTemplate {END_TEMPLATE}, the end of a run:\n").unwrap();
    out.push_str("| element | number | type | scope | meaning |\n|---|---|---|---|---|\n");
    for element in END {
        let (number, kind) = (origin(element.number), element.kind.name());
        let scope = if element.is_scope { "yes" } else { "" };
        writeln!(out, "| {} | {number} | {kind} | {scope} | {} |", element.name, element.doc)
            .unwrap();
    }
    let conn = LOGS.iter().find(|log| log.path == "conn").unwrap();
    let has = |name: &str| ELEMENTS.iter().any(|element| element.columns.contains(&name));
    let rest = conn.fields.iter().map(|field| field.name).filter(|name| !has(name));
    let rest: Vec<_> = rest.map(|name| format!("`{name}`")).collect();
    writeln!(out, "\nColumns of `conn` that are not told: {}.", rest.join(", ")).unwrap();
    out
}

#[test]
fn the_page_of_ipfix_is_up_to_date() {
    const BEGIN: &str = "<!-- Made from crates/ipfix/src/exporter/element.rs; don't edit. -->\n\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ipfix.md");
    let found = fs::read_to_string(&path).unwrap();
    let (before, made) = found.split_once(BEGIN).unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&path, format!("{before}{BEGIN}{}", page())).unwrap();
    } else {
        assert!(
            made == page(),
            "docs/ipfix.md does not say what the list of elements says; write it anew with: \
             UPDATE_GOLDEN=1 cargo test -p netsniff up_to_date"
        );
    }
    assert_eq!(FIRST_TEMPLATE, 256, "as the page says");
}

#[test]
fn columns_of_elements_are_those_of_the_log() {
    let conn = LOGS.iter().find(|log| log.path == "conn").unwrap();
    for element in ELEMENTS {
        for column in element.columns {
            let is_name = ["sensor", "run", "seq"].contains(column);
            let field = conn.fields.iter().any(|field| field.name == *column);
            assert!(is_name || field, "{}: {column}", element.name);
        }
    }
}
