//! Zeek's own logs, read into values and printed again: the bytes must be the same.
//!
//! Needs the corpus of captures with expected answers; `NETSNIFF_CORPUS` tells where it is.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use netsniff_analysis::log::Conn;
use netsniff_analysis::log::conn::{ConnState, Quality};
use netsniff_analysis::record::{Interval, Port, Proto};
use netsniff_analysis::rows::Encode as _;
use netsniff_analysis::{Depth, Record, Uid};
use netsniff_output::{Format, RowStyle};
use netsniff_packet::{Address, Timestamp};
use netsniff_testing::{Need, folder};

/// Logs named `name` (all if `None`) that Zeek wrote of the corpus, or `None` without a corpus.
fn zeek_logs(name: Option<&str>) -> Option<Vec<PathBuf>> {
    let corpus = folder(Need::Corpus, "Zeek's logs were not compared")?;
    let mut logs = Vec::new();
    collect(&corpus, name, &mut logs);
    logs.sort();
    assert!(!logs.is_empty(), "no logs under zeek-run folders in {corpus:?}");
    Some(logs)
}

fn collect(folder: &Path, name: Option<&str>, logs: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, name, logs);
        } else if folder.ends_with("zeek-run")
            && path.extension().is_some_and(|extension| extension == "log")
            && name.is_none_or(|name| path.file_name().is_some_and(|file| file == name))
        {
            logs.push(path);
        }
    }
}

/// A log in Zeek's TSV: names, types, rows of cells.
struct ZeekLog {
    names: Vec<String>,
    types: Vec<String>,
    rows: Vec<Vec<String>>,
}

fn read(path: &Path) -> ZeekLog {
    let text = String::from_utf8(fs::read(path).unwrap()).unwrap();
    let cells = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>();
    let header = |name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        cells(line.unwrap_or_else(|| panic!("{} lacks {name}", path.display())))
    };
    let rows = text.lines().filter(|line| !line.starts_with('#')).map(cells).collect();
    ZeekLog { names: header("#fields\t"), types: header("#types\t"), rows }
}

/// Nanoseconds of a decimal number of seconds.
fn nanos(text: &str) -> i64 {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, decimals) = digits.split_once('.').unwrap();
    assert_eq!(decimals.len(), 6, "{text}");
    sign * (whole.parse::<i64>().unwrap() * 1_000_000 + decimals.parse::<i64>().unwrap()) * 1000
}

fn unless_unset<'a, T>(text: &'a str, parse: impl FnOnce(&'a str) -> T) -> Option<T> {
    (text != "-").then(|| parse(text))
}

fn address(text: &str) -> Address {
    text.parse::<IpAddr>().unwrap().into()
}

/// The bytes that a cell or element stands for.
fn unescaped(text: &str) -> Vec<u8> {
    if text == "(empty)" {
        return Vec::new();
    }
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'\\' {
            bytes.push(first);
        } else if let Some(after) = rest.strip_prefix(b"\\") {
            bytes.push(b'\\');
            rest = after;
        } else {
            let hex = std::str::from_utf8(&rest[1..3]).unwrap();
            bytes.push(u8::from_str_radix(hex, 16).unwrap());
            rest = &rest[3..];
        }
    }
    bytes
}

fn rendered<R: Record>(format: Format, record: &R) -> String {
    let mut row = Vec::new();
    RowStyle::of(format).encode(record, None, &mut row);
    String::from_utf8(row).unwrap()
}

#[test]
fn conn_rows_print_as_zeek_printed_them() {
    let Some(logs) = zeek_logs(Some("conn.log")) else { return };
    let mut compared = 0;
    for path in &logs {
        let log = read(path);
        for row in &log.rows {
            let cells: BTreeMap<&str, &str> =
                log.names.iter().zip(row).map(|(name, cell)| (name.as_str(), &**cell)).collect();
            check_conn_row(&cells, &path.display().to_string());
            compared += 1;
        }
    }
    eprintln!("{compared} rows of {} files are byte-identical", logs.len());
    assert!(compared >= 800, "only {compared} rows were compared");
}

/// Zeek's identifiers have other lengths than ours: one of ours stands in for each.
fn stand_in(uid: &str) -> Uid {
    Uid::new(uid.bytes().fold(0u128, |hash, byte| hash.wrapping_mul(257).wrapping_add(byte.into())))
}

fn check_conn_row(cells: &BTreeMap<&str, &str>, path: &str) {
    let cell = |name: &str| *cells.get(name).unwrap_or_else(|| panic!("{path} lacks {name}"));
    let count = |name| unless_unset(cell(name), |text| text.parse::<u64>().unwrap());
    let boolean = |name| unless_unset(cell(name), |text| text == "T");
    let vlan = |name| unless_unset(cell(name), |text| text.parse::<i32>().unwrap());
    let parents = unless_unset(cell("tunnel_parents"), |text| {
        text.split(',').map(stand_in).collect::<Vec<_>>()
    });
    let proto = Proto::ALL.iter().find(|proto| proto.name() == cell("proto"));
    let state = ConnState::ALL.iter().find(|state| state.name() == cell("conn_state"));
    let conn = Conn {
        ts: Timestamp::from_nanos(nanos(cell("ts"))),
        uid: stand_in(cell("uid")),
        id_orig_h: address(cell("id.orig_h")),
        id_orig_p: Port(cell("id.orig_p").parse().unwrap()),
        id_resp_h: address(cell("id.resp_h")),
        id_resp_p: Port(cell("id.resp_p").parse().unwrap()),
        proto: *proto.unwrap(),
        service: unless_unset(cell("service"), |text| text),
        duration: unless_unset(cell("duration"), |text| Interval::from_nanos(nanos(text))),
        orig_bytes: count("orig_bytes"),
        resp_bytes: count("resp_bytes"),
        conn_state: Some(*state.unwrap()),
        local_orig: boolean("local_orig"),
        local_resp: boolean("local_resp"),
        missed_bytes: count("missed_bytes"),
        history: unless_unset(cell("history"), |text| text),
        orig_pkts: count("orig_pkts"),
        orig_ip_bytes: count("orig_ip_bytes"),
        resp_pkts: count("resp_pkts"),
        resp_ip_bytes: count("resp_ip_bytes"),
        tunnel_parents: parents.as_deref(),
        ip_proto: unless_unset(cell("ip_proto"), |text| text.parse().unwrap()),
        community_id: unless_unset(cell("community_id"), |text| {
            netsniff_analysis::key::community_id::CommunityId::from_text(text).unwrap()
        }),
        vlan: vlan("vlan"),
        inner_vlan: vlan("inner_vlan"),
        quality: Quality::Unknown,
        capture_missed_bytes: None,
        network_missed_bytes: Some(0),
        depth: Depth::Protocols,
        bad_checksums: None,
        depth_begin: Depth::Protocols,
        sampling: None,
    };
    let expected: Vec<String> = Conn::LOG
        .fields
        .iter()
        .map(|field| match field.name {
            "uid" => stand_in(cell("uid")).to_string(),
            "tunnel_parents" => match &parents {
                Some(uids) => uids.iter().map(Uid::to_string).collect::<Vec<_>>().join(","),
                None => "-".to_owned(),
            },
            "quality" => "unknown".to_owned(),
            "capture_missed_bytes" | "bad_checksums" | "sampling" => "-".to_owned(),
            "network_missed_bytes" => "0".to_owned(),
            "depth" | "depth_begin" => "protocols".to_owned(),
            name => cell(name).to_owned(),
        })
        .collect();
    assert_eq!(rendered(Format::Tsv, &conn), format!("{}\n", expected.join("\t")), "{path}");
    check_json(&rendered(Format::Json, &conn), &expected);
}

/// Each member of the object says what the cell of the row says, and unset cells have no member.
fn check_json(json: &str, cells: &[String]) {
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(json).unwrap();
    let mut set = 0;
    for (field, cell) in Conn::LOG.fields.iter().zip(cells) {
        let Some(member) = object.get(field.name) else {
            assert_eq!(cell, "-", "{} in {json}", field.name);
            continue;
        };
        set += 1;
        let text = match member {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Bool(value) => if *value { "T" } else { "F" }.to_owned(),
            serde_json::Value::Array(items) => {
                items.iter().map(|item| item.as_str().unwrap()).collect::<Vec<_>>().join(",")
            }
            number if number.is_f64() => format!("{:.6}", number.as_f64().unwrap()),
            number => number.to_string(),
        };
        assert_eq!(&text, cell, "{} in {json}", field.name);
    }
    assert_eq!(object.len(), set);
}

#[test]
fn the_columns_of_conn_stand_where_zeek_has_them() {
    let Some(logs) = zeek_logs(Some("conn.log")) else { return };
    for path in &logs {
        let log = read(path);
        // The addresses of the link layer come from a script whose columns we do not have.
        let theirs = log.names.iter().zip(&log.types).filter(|(name, _)| !name.contains("l2_addr"));
        let ours = Conn::LOG.fields.iter().map(|field| (field.name, field.zeek_type.to_string()));
        let count = theirs.clone().count();
        for ((name, zeek_type), (our_name, our_type)) in theirs.zip(ours) {
            assert_eq!((our_name, our_type), (name.as_str(), zeek_type.clone()));
        }
        assert!(Conn::LOG.fields.len() > count);
    }
}

/// A log with one column, for one type of Zeek.
macro_rules! cell {
    ($name:ident, $rust:ty, $($zeek:tt)+) => {
        netsniff_analysis::record! {
            /// One value.
            pub struct $name<'a> => "cell" {
                /// Nothing; it makes every cell borrow, and keeps the value from the start of the row,
                /// where `#` is escaped.
                nothing: Option<&'a str> => "nothing", string, None, Plain, Zeek;
                /// The value.
                value: $rust => "value", $($zeek)+, None, FreeText, Zeek;
            }
        }
    };
}

cell!(TextCell, &'a [u8], string);
cell!(TextsCell, &'a [&'a [u8]], vector[string]);
cell!(CountCell, u64, count);
cell!(IntCell, i64, int);
cell!(TimeCell, Timestamp, time);
cell!(IntervalCell, Interval, interval);
cell!(IntervalsCell, &'a [Interval], vector[interval]);
cell!(AddrCell, Address, addr);
cell!(AddrsCell, &'a [Address], vector[addr]);
cell!(BoolCell, bool, bool);

/// Prints `cell` again after reading it as `zeek_type`; `None` for a type that we do not have.
fn again(zeek_type: &str, cell: &str) -> Option<String> {
    macro_rules! one {
        ($name:ident, $value:expr) => {
            rendered(Format::Tsv, &$name { value: $value, nothing: None })
        };
    }
    let elements = || if cell == "(empty)" { Vec::new() } else { cell.split(',').collect() };
    let text = match zeek_type {
        "string" | "enum" => one!(TextCell, &unescaped(cell)),
        "set[string]" | "vector[string]" | "set[enum]" => {
            let bytes: Vec<_> = elements().into_iter().map(unescaped).collect();
            let slices: Vec<_> = bytes.iter().map(Vec::as_slice).collect();
            one!(TextsCell, &slices)
        }
        "count" | "port" => one!(CountCell, cell.parse().unwrap()),
        "int" => one!(IntCell, cell.parse().unwrap()),
        "time" => one!(TimeCell, Timestamp::from_nanos(nanos(cell))),
        "interval" => one!(IntervalCell, Interval::from_nanos(nanos(cell))),
        "vector[interval]" => {
            let spans: Vec<_> =
                elements().into_iter().map(|text| Interval::from_nanos(nanos(text))).collect();
            one!(IntervalsCell, &spans)
        }
        "addr" => one!(AddrCell, address(cell)),
        "vector[addr]" => {
            let addresses: Vec<_> = elements().into_iter().map(address).collect();
            one!(AddrsCell, &addresses)
        }
        "bool" => one!(BoolCell, cell == "T"),
        _ => return None,
    };
    Some(text)
}

#[test]
fn every_cell_of_every_log_prints_as_zeek_printed_it() {
    let Some(logs) = zeek_logs(None) else { return };
    let mut compared = BTreeMap::<String, u64>::new();
    let mut escaped = 0;
    for path in &logs {
        let log = read(path);
        for row in &log.rows {
            for (zeek_type, cell) in log.types.iter().zip(row) {
                if cell == "-" {
                    continue;
                }
                let printed = again(zeek_type, cell);
                let printed = printed.unwrap_or_else(|| panic!("{zeek_type}: {cell}"));
                assert_eq!(printed, format!("-\t{cell}\n"), "{} {zeek_type}", path.display());
                *compared.entry(zeek_type.clone()).or_default() += 1;
                escaped += u64::from(cell.contains('\\'));
            }
        }
    }
    eprintln!("{} logs, cells by type: {compared:?}, {escaped} with escapes", logs.len());
    assert!(compared.len() >= 10 && escaped >= 20);
}

#[test]
fn json_is_as_the_documentation_of_zeek_shows_it() {
    let conn = Conn {
        ts: Timestamp::from_secs_nanos(1_547_188_415, 857_497_000),
        uid: Uid::NONE,
        id_orig_h: address("192.168.86.167"),
        id_orig_p: Port(38339),
        id_resp_h: address("192.168.86.1"),
        id_resp_p: Port(53),
        proto: Proto::Udp,
        service: Some("dns"),
        duration: Some(Interval::from_nanos(76_967_000)),
        orig_bytes: Some(75),
        resp_bytes: Some(178),
        conn_state: Some(ConnState::Sf),
        local_orig: Some(true),
        local_resp: Some(true),
        missed_bytes: Some(0),
        history: Some("Dd"),
        orig_pkts: Some(1),
        orig_ip_bytes: Some(103),
        resp_pkts: Some(1),
        resp_ip_bytes: Some(206),
        tunnel_parents: Some(&[]),
        ip_proto: None,
        community_id: None,
        vlan: None,
        inner_vlan: None,
        quality: Quality::Clean,
        capture_missed_bytes: None,
        network_missed_bytes: None,
        depth: Depth::Tcp,
        bad_checksums: None,
        depth_begin: Depth::Protocols,
        sampling: None,
    };
    let expected = concat!(
        r#"{"ts":1547188415.857497,"uid":"C00000000000000000","id.orig_h":"192.168.86.167","#,
        r#""id.orig_p":38339,"id.resp_h":"192.168.86.1","id.resp_p":53,"proto":"udp","#,
        r#""service":"dns","duration":0.076967,"orig_bytes":75,"resp_bytes":178,"#,
        r#""conn_state":"SF","local_orig":true,"local_resp":true,"missed_bytes":0,"#,
        r#""history":"Dd","orig_pkts":1,"orig_ip_bytes":103,"resp_pkts":1,"resp_ip_bytes":206,"#,
        r#""tunnel_parents":[],"quality":"clean","depth":"tcp","depth_begin":"protocols"}"#,
        "\n"
    );
    assert_eq!(rendered(Format::Json, &conn), expected);
}
