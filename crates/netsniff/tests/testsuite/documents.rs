//! Rows in the words of others: every value of Zeek's JSON stands once in the documents of each dialect.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use netsniff_analysis::record::LogType;
use netsniff_analysis::rows::LOGS;
use netsniff_console::calendar::moment;
use netsniff_output::Format;
use serde_json::Value;

use crate::zeek::corpus::second_captures;

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded");

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        // Tests of one process analyse at the same time.
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("netsniff-documents-{name}-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The rows of each log of a capture.
fn analyze(capture: &Path, format: &str, options: &[&str]) -> BTreeMap<String, Vec<Value>> {
    let folder = Folder::new(format);
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    command.arg("analyze").arg(capture).arg("-o").arg(&folder.0).args(["-q", "--format", format]);
    let run = command.args(["--notices", "--hashes", "md5,sha1,sha256"]).args(options).output();
    let run = run.unwrap();
    assert!(matches!(run.status.code(), Some(0 | 3)), "{}", String::from_utf8_lossy(&run.stderr));
    let mut logs = BTreeMap::new();
    for entry in fs::read_dir(&folder.0).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name == "unparsed.pcapng" {
            continue;
        }
        let rows = fs::read_to_string(&path).unwrap();
        let rows = rows.lines().map(|line| serde_json::from_str(line).expect("a line is JSON"));
        logs.insert(name.split('.').next().unwrap().to_owned(), rows.collect());
    }
    logs
}

fn captures() -> Vec<PathBuf> {
    let entries = fs::read_dir(RECORDED).unwrap().map(|entry| entry.unwrap().path());
    let mut captures: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|it| it == "pcapng")).collect();
    captures.sort();
    assert!(captures.len() >= 3);
    captures
}

fn log_of(name: &str) -> &'static LogType {
    LOGS.iter().copied().find(|log| log.path == name).unwrap()
}

/// All values at a path; behind `[]` that of each object.
fn at_path<'a>(document: &'a Value, path: &str) -> Vec<&'a Value> {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let found = document.get(name.trim_end_matches("[]"));
    let Some(rest) = rest else { return found.into_iter().collect() };
    match found {
        Some(Value::Array(items)) => items.iter().flat_map(|item| at_path(item, rest)).collect(),
        Some(inner) => at_path(inner, rest),
        None => Vec::new(),
    }
}

/// A number of seconds as microseconds.
fn micros(value: &Value) -> i64 {
    (value.as_f64().unwrap() * 1e6).round() as i64
}

/// The microseconds of a point in time that is written out.
fn moment_micros(value: &Value) -> i64 {
    moment(&value.as_str().unwrap().replace("+0000", "Z")).unwrap().nanos() / 1000
}

fn text_of(value: &Value) -> Value {
    value.to_string().into()
}

/// Whether a value of a document tells that of a column, by what the dialect says of the place.
fn tells(path: &str, there: &Value, own: &Value, row: &Value) -> bool {
    let other = match (path, own.as_str()) {
        ("event.duration", _) => {
            return (there.as_i64().unwrap() + 500).div_euclid(1000) == micros(own);
        }
        ("flow.end", _) => {
            return moment_micros(there) == moment_micros(&row["ts"]) + micros(own);
        }
        ("dns.answers[].ttl" | "dhcp.lease_time", _) => return there.as_f64() == own.as_f64(),
        ("network.iana_number" | "network.vlan.id" | "network.inner.vlan.id", _)
        | ("file.x509.version_number", _) => text_of(own),
        ("dns.id", _) if there.is_string() => text_of(own),
        ("vlan" | "tls.server_alpns" | "ftp.reply", _) => vec![own.clone()].into(),
        ("ftp.completion_code", _) => vec![text_of(own)].into(),
        ("app_proto", Some("ssl" | "SSL")) => "tls".into(),
        ("app_proto", Some("HTTP")) => "http".into(),
        ("app_proto", Some("SMTP")) => "smtp".into(),
        ("app_proto", Some("FTP_DATA")) => "ftp-data".into(),
        ("tls.version", Some("TLSv10")) => "TLSv1".into(),
        ("tls.version", Some("TLSv11")) => "TLS 1.1".into(),
        ("tls.version", Some("TLSv12")) => "TLS 1.2".into(),
        ("tls.version", Some("TLSv13")) => "TLS 1.3".into(),
        _ => own.clone(),
    };
    let zoned = there.as_str().and_then(|it| it.strip_suffix("+0000")).map(|it| format!("{it}Z"));
    *there == other || zoned.is_some_and(|zoned| own.as_str() == Some(&zoned))
}

/// What stands in documents and follows from columns, or is always the same.
const FOLLOWS: [&str; 34] = [
    "ecs.version",
    "event.module",
    "event.dataset",
    "event.kind",
    "event.category",
    "event.type",
    "event.outcome",
    "network.protocol",
    "network.transport",
    "network.direction",
    "network.bytes",
    "network.packets",
    "dns.type",
    "dns.version",
    "dns.question.class",
    "dns.header_flags",
    "dns.resolved_ip",
    "tls.version",
    "tls.version_protocol",
    "timestamp",
    "event_type",
    "flow_id",
    "proto",
    "ip_v",
    "flow.state",
    "http.protocol",
    "ssh.client.proto_version",
    "ssh.client.software_version",
    "ssh.server.proto_version",
    "ssh.server.software_version",
    "icmp_type",
    "zeek.icmp_answer_or_code",
    "zeek.connection.icmp.type",
    "zeek.connection.icmp.code",
];

/// The paths of all values of a document.
fn leaves(document: &Value, before: &str, all: &mut Vec<String>) {
    match document {
        Value::Object(members) => {
            for (name, value) in members {
                leaves(value, &format!("{before}{name}."), all);
            }
        }
        Value::Array(items) if items.first().is_some_and(Value::is_object) => {
            let before = format!("{}[].", before.trim_end_matches('.'));
            items.iter().for_each(|item| leaves(item, &before, all));
        }
        _ => all.push(before.trim_end_matches('.').to_owned()),
    }
}

/// Where the ports of a connection of ICMP stand.
fn icmp_place(format: Format, column: &str) -> &'static str {
    match (format, column) {
        (Format::Ecs, "id.orig_p") => "zeek.connection.icmp.type",
        (Format::Ecs, _) => "zeek.connection.icmp.code",
        (_, "id.orig_p") => "icmp_type",
        _ => "zeek.icmp_answer_or_code",
    }
}

/// Compares a row with its document; tells how many values stand in both.
fn compare(format: Format, log: &'static LogType, row: &Value, document: &Value) -> usize {
    let paths = format.paths(log).unwrap();
    let said = || format!("{}: {row}\n{document}", log.path);
    let mut places = BTreeSet::new();
    let mut found = 0;
    for (field, path) in log.fields.iter().zip(&paths) {
        let (Some(own), Some(path)) = (row.get(field.name), path) else { continue };
        let mut path = path.as_str();
        let mut there = at_path(document, path);
        if ["id.orig_p", "id.resp_p"].contains(&field.name) && there.is_empty() {
            path = icmp_place(format, field.name);
            there = at_path(document, path);
        }
        assert!(places.insert(path), "{path} stands for two columns: {}", said());
        if let Some(list) = own.as_array().filter(|_| path.contains("[]")) {
            assert_eq!(there.len(), list.len(), "{path}: {}", said());
            let same = there.iter().zip(list).all(|(there, own)| tells(path, there, own, row));
            assert!(same, "{path}: {}", said());
        } else {
            assert_eq!(there.len(), 1, "{path}: {}", said());
            assert!(tells(path, there[0], own, row), "{path}: {}", said());
        }
        found += 1;
    }
    let mut all = Vec::new();
    leaves(document, "", &mut all);
    for leaf in all {
        let is_told = places.contains(&*leaf) || FOLLOWS.contains(&&*leaf);
        // An empty list of objects stands for its columns.
        let is_empty = places.iter().any(|place| place.starts_with(&format!("{leaf}[]")));
        assert!(is_told || is_empty, "{leaf} is of no column: {}", said());
    }
    found
}

/// Compares all rows of a capture; tells how many values were found.
fn compare_capture(capture: &Path) -> usize {
    let own = analyze(capture, "json", &["--json-time", "iso8601"]);
    let mut found = 0;
    for format in [Format::Ecs, Format::Eve] {
        let documents = analyze(capture, format.name(), &[]);
        assert_eq!(own.keys().collect::<Vec<_>>(), documents.keys().collect::<Vec<_>>());
        for (name, rows) in &own {
            let documents = &documents[name];
            assert_eq!(rows.len(), documents.len(), "rows of {name} of {}", capture.display());
            let both = rows.iter().zip(documents);
            found += both.map(|(row, it)| compare(format, log_of(name), row, it)).sum::<usize>();
        }
    }
    found
}

#[test]
fn every_value_stands_once_in_the_documents() {
    let found: usize = captures().iter().map(|capture| compare_capture(capture)).sum();
    assert!(found > 30_000, "{found}");
}

/// Captures beyond it take long in a build for tests.
const LARGEST: u64 = 200_000;

#[test]
fn every_value_stands_once_in_the_documents_of_the_second_corpus() {
    let Some(captures) = second_captures("documents") else { return };
    let paths = captures.into_iter().flatten().map(|capture| capture.path);
    let small = paths.filter(|path| fs::metadata(path).is_ok_and(|it| it.len() < LARGEST));
    let found: usize = small.map(|path| compare_capture(&path)).sum();
    assert!(found > 100_000, "{found}");
}

fn rows_of(stream: &str) -> impl Iterator<Item = Value> {
    stream.lines().map(|line| serde_json::from_str(line).unwrap())
}

/// What an event is about: its type, both ends in one order, and what tells it from others of a connection.
fn subject(event: &Value) -> String {
    let end = |side: &str| {
        let ip: std::net::IpAddr = event[format!("{side}_ip")].as_str()?.parse().ok()?;
        Some(format!("{ip} {}", event[format!("{side}_port")]))
    };
    let mut ends = [end("src"), end("dest")];
    ends.sort();
    let kind = event["event_type"].as_str().unwrap_or_default();
    let (of, own) = (&event[kind], ["url", "http_method", "id", "type"]);
    let own = own.map(|member| of[member].to_string());
    format!("{kind} {ends:?} {own:?}")
}

/// Members of an event that mean the same to Suricata, and how many of them at least are the same.
const SHARED: [(&str, &[&str], usize); 4] = [
    ("flow", &["flow.start", "flow.pkts_toserver", "flow.pkts_toclient", "proto", "ip_v"], 1100),
    ("http", &["http.url", "http.http_method", "http.status", "http.length"], 12),
    ("tls", &["tls.sni", "tls.version"], 15),
    ("dns", &["dns.version", "dns.type", "dns.id", "dns.rcode", "dns.queries", "timestamp"], 29),
];

/// In `flow` of three captures Suricata has one packet more or less, at the border of a flow.
const DIFFERENT: usize = 3;

#[test]
fn events_are_those_of_suricata() {
    let Some(captures) = second_captures("EVE beside Suricata's") else { return };
    let (mut same, mut different) = (BTreeMap::<&str, usize>::new(), Vec::new());
    for capture in captures.iter().flatten() {
        let oracle = capture.oracle().join("suricata-run/eve.json");
        let Ok(oracle) = fs::read_to_string(oracle) else { continue };
        if fs::metadata(&capture.path).unwrap().len() > 10 * LARGEST {
            continue;
        }
        let ours = stream(&capture.path, &["--format", "eve"]);
        let (mut theirs, mut events) = (BTreeMap::new(), BTreeMap::new());
        for (from, all) in [(oracle, &mut theirs), (ours, &mut events)] {
            for event in rows_of(&from) {
                all.entry(subject(&event)).or_insert_with(Vec::new).push(event);
            }
        }
        for (subject, theirs) in &theirs {
            let Some(ours) = events.get(subject).filter(|it| it.len() == theirs.len()) else {
                continue;
            };
            let kind = SHARED.iter().find(|(kind, ..)| subject.starts_with(&format!("{kind} ")));
            let Some((kind, members, _)) = kind else { continue };
            for ((theirs, ours), member) in
                theirs.iter().zip(ours).flat_map(|both| members.iter().map(move |it| (both, it)))
            {
                let (theirs, ours) = (at_path(theirs, member), at_path(ours, member));
                if theirs.is_empty() || ours.is_empty() {
                    continue;
                }
                if theirs == ours {
                    *same.entry(kind).or_default() += 1;
                } else {
                    different
                        .push(format!("{} {subject} {member}: {theirs:?} {ours:?}", capture.name));
                }
            }
        }
    }
    for (kind, _, floor) in SHARED {
        assert!(same.get(kind).is_some_and(|same| *same >= floor), "{same:?}");
    }
    assert!(different.len() <= DIFFERENT, "{different:#?}");
}

fn run(arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_netsniff")).args(arguments).output().unwrap()
}

/// The rows of all logs of a capture.
fn stream(capture: &Path, options: &[&str]) -> String {
    let begun = ["analyze", capture.to_str().unwrap(), "-q", "-o", "-"];
    let run = run(&[&begun[..], options].concat());
    assert!(matches!(run.status.code(), Some(0 | 3)), "{}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap()
}

#[test]
fn documents_are_the_same_for_any_number_of_workers() {
    let capture = &captures()[1];
    for format in ["ecs", "eve", "json"] {
        let written = |workers| {
            let mut options = vec!["--format", format, "--workers", workers];
            options.extend(
                ["--json-ext", "--json-time", "iso8601"].iter().filter(|_| format == "json"),
            );
            stream(capture, &options)
        };
        let one = written("1");
        assert!(one.lines().count() > 100);
        assert!(one == written("2") && one == written("3"), "{format}");
    }
}

#[test]
fn rows_name_their_log_and_the_time_at_which_they_were_written() {
    let capture = &captures()[1];
    let files = analyze(capture, "json", &["--json-ext"]);
    let written = analyze(capture, "json", &["--json-ext", "--json-time", "iso8601"]);
    for (log, rows) in &files {
        let mut before = 0;
        for (row, other) in rows.iter().zip(&written[log]) {
            let names: Vec<_> = row.as_object().unwrap().keys().take(2).collect();
            assert_eq!(row["_path"], **log, "{names:?}");
            let time = micros(&row["_write_ts"]);
            assert_eq!(time, moment_micros(&other["_write_ts"]));
            assert_eq!(micros(&row["ts"]), moment_micros(&other["ts"]));
            // Rows stand in the order in which they were written.
            assert!(time >= before && time >= micros(&row["ts"]), "{row}");
            before = time;
        }
    }
    let stream = stream(capture, &["--json-ext"]);
    assert!(stream.lines().all(|row| row.starts_with("{\"_path\":\"")), "{stream}");
    assert!(
        stream
            .lines()
            .all(|row| row.contains("\",\"_write_ts\":1") && row.matches("_path").count() == 1)
    );
}

#[test]
fn options_of_json_are_refused_for_other_formats() {
    let capture = captures()[1].to_str().unwrap().to_owned();
    for (options, said) in [
        (&["--json-ext"][..], "--json-ext is about --format json; logs are written as tsv"),
        (&["--json-time", "epoch", "--format", "ecs"], "--json-time is about --format json"),
        (&["--json-ext", "--format", "eve"], "logs are written as eve"),
    ] {
        let run = run(&[&["analyze", &capture, "-o", "/nonexistent/logs"][..], options].concat());
        let error = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(run.status.code(), Some(2), "{error}");
        assert!(error.contains(said), "{error}");
    }
}
