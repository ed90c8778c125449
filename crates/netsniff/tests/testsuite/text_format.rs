//! `--format text` against MessagePack, which rounds nothing either: every cell of every row, in files and in a stream.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use netsniff_console::printable::{Piece, each_piece};
use rmpv::Value as Packed;

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded");

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("netsniff-text-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn analyze(capture: &Path, output: &Path, options: &[&str]) -> Vec<u8> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    command.arg("analyze").arg(capture).arg("-o").arg(output).arg("-q").args(options);
    let run = command.output().unwrap();
    // Damage of a fixture is meant, and is told by an exit code.
    assert!(matches!(run.status.code(), Some(0 | 3)), "{}", String::from_utf8_lossy(&run.stderr));
    run.stdout
}

fn captures() -> Vec<PathBuf> {
    let mut captures: Vec<_> =
        fs::read_dir(RECORDED).unwrap().map(|entry| entry.unwrap().path()).collect();
    captures.retain(|path| path.extension().is_some_and(|it| it == "pcap" || it == "pcapng"));
    captures.sort();
    captures
}

/// A log as its lines have it.
struct Log {
    names: Vec<String>,
    types: Vec<String>,
    rows: Vec<Vec<String>>,
}

fn log(text: &str, path: &str) -> Log {
    let head = |name: &str| -> Vec<String> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().map(str::to_owned).collect()
    };
    assert!(text.starts_with("#separator \\x20\n"), "{text}");
    assert!(text.contains("\n#format netsniff-text-1 "), "{text}");
    assert!(text.lines().last().unwrap().starts_with("#close "));
    assert_eq!(head("#path "), [path]);
    let (names, types) = (head("#fields "), head("#types "));
    assert_eq!(names.len(), types.len());
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let rows: Vec<Vec<_>> =
        rows.map(|line| line.split_whitespace().map(str::to_owned).collect()).collect();
    assert!(rows.iter().all(|row| row.len() == names.len()), "{path}");
    Log { names, types, rows }
}

/// The bytes that a word stands for.
fn unescaped(word: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = word.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, behind) {
            (b'\\', [b'\\', behind @ ..]) => {
                bytes.push(b'\\');
                rest = behind;
            }
            (b'\\', [b'x', high, low, behind @ ..]) => {
                let digits = String::from_utf8(vec![*high, *low]).unwrap();
                bytes.push(u8::from_str_radix(&digits, 16).unwrap());
                rest = behind;
            }
            (byte, _) => bytes.push(byte),
        }
    }
    bytes
}

/// Bytes as JSON and MessagePack have them.
fn as_packed(bytes: &[u8]) -> String {
    let mut text = String::new();
    each_piece(bytes, |piece| match piece {
        Piece::Text(piece) => text += piece,
        Piece::Active(&[sign @ (8 | 9 | 10 | 12 | 13)]) => text.push(char::from(sign)),
        Piece::Active(bytes) => bytes.iter().for_each(|byte| text += &format!("\\x{byte:02x}")),
    });
    text
}

/// The nanoseconds of seconds with decimals.
fn nanos(word: &str) -> i128 {
    let (sign, word) = word.strip_prefix('-').map_or((1, word), |word| (-1, word));
    let (seconds, decimals) = word.split_once('.').unwrap();
    let decimals = format!("{decimals:0<9}");
    sign * (seconds.parse::<i128>().unwrap() * 1_000_000_000 + decimals.parse::<i128>().unwrap())
}

/// The nanoseconds of a timestamp of 32, 64 or 96 bits.
fn packed_nanos(bytes: &[u8]) -> i128 {
    let (seconds, nanos) = match bytes.len() {
        4 => (i64::from(u32::from_be_bytes(bytes.try_into().unwrap())), 0),
        8 => {
            let whole = u64::from_be_bytes(bytes.try_into().unwrap());
            ((whole & ((1 << 34) - 1)) as i64, (whole >> 34) as u32)
        }
        _ => (
            i64::from_be_bytes(bytes[4..].try_into().unwrap()),
            u32::from_be_bytes(bytes[..4].try_into().unwrap()),
        ),
    };
    i128::from(seconds) * 1_000_000_000 + i128::from(nanos)
}

/// Whether a word of a type is a value, to the last digit.
fn is_same(word: &str, kind: &str, packed: &Packed) -> bool {
    if let Packed::Array(elements) = packed {
        let kind = kind.split(['[', ']']).nth(1).unwrap();
        let words: Vec<_> = match word {
            "()" => Vec::new(),
            word => word.split(',').collect(),
        };
        return words.len() == elements.len()
            && words.iter().zip(elements).all(|(word, element)| is_same(word, kind, element));
    }
    match packed {
        Packed::Boolean(value) => word == if *value { "T" } else { "F" },
        Packed::Integer(value) => word == value.to_string(),
        Packed::Nil => matches!(word, "nan" | "inf" | "-inf"),
        Packed::F64(value) if kind == "interval" => nanos(word) as f64 / 1e9 == *value,
        Packed::F64(value) => word.parse() == Ok(*value),
        Packed::Ext(-1, bytes) => nanos(word) == packed_nanos(bytes),
        Packed::String(value) => {
            let bytes = if word == "(empty)" { Vec::new() } else { unescaped(word) };
            value.as_str() == Some(&as_packed(&bytes))
        }
        _ => false,
    }
}

/// Compares a row with the map of the same one.
fn compare(log: &Log, row: &[String], map: &Packed, path: &str) {
    let map: BTreeMap<_, _> =
        map.as_map().unwrap().iter().map(|(key, value)| (key.as_str().unwrap(), value)).collect();
    let mut told = 0;
    for ((name, kind), word) in log.names.iter().zip(&log.types).zip(row) {
        match map.get(name.as_str()) {
            Some(value) => {
                assert!(is_same(word, kind, value), "{path} {name}: {word} is not {value}");
                told += 1;
            }
            None => match name.as_str() {
                "_path" => assert_eq!(word, path),
                "_ip" => assert!(matches!(word.as_str(), "ipv4" | "ipv6" | "-"), "{word}"),
                // The protocol of the connection, where the log has no column for it.
                "proto" => assert!(matches!(word.as_str(), "tcp" | "udp" | "icmp" | "-"), "{word}"),
                name => assert_eq!(word, "-", "{path} {name}"),
            },
        }
    }
    assert_eq!(told, map.len(), "{path}: {row:?}");
}

#[test]
fn text_has_the_rows_of_messagepack_to_the_last_digit() {
    let (mut rows, mut logs) = (0, BTreeMap::<String, Vec<String>>::new());
    for capture in captures() {
        let folder = Folder::new("files");
        let (text, packed) = (folder.0.join("text"), folder.0.join("packed"));
        analyze(&capture, &text, &["--format", "text", "-s", "0.1"]);
        analyze(&capture, &packed, &["--format", "msgpack", "-s", "0.1"]);
        let mut files = 0;
        for file in fs::read_dir(&packed).unwrap().map(|entry| entry.unwrap().path()) {
            let path = file.file_stem().unwrap().to_str().unwrap().to_owned();
            if file.extension().is_none_or(|extension| extension != "msgpack") {
                continue;
            }
            files += 1;
            let log = log(&fs::read_to_string(text.join(format!("{path}.txt"))).unwrap(), &path);
            let bytes = fs::read(&file).unwrap();
            let mut rest = &*bytes;
            for row in &log.rows {
                let map = rmpv::decode::read_value(&mut rest).unwrap();
                compare(&log, row, &map, &path);
                if let Some(at) = log.names.iter().position(|name| name == "proto") {
                    logs.entry(path.clone()).or_default().push(row[at].clone());
                }
                rows += 1;
            }
            assert!(rest.is_empty(), "{}: {path} has more rows", capture.display());
        }
        let texts = fs::read_dir(&text).unwrap().map(|entry| entry.unwrap().path());
        let texts = texts.filter(|path| path.extension().is_some_and(|it| it == "txt")).count();
        assert_eq!(texts, files, "{}", capture.display());
    }
    assert!(rows > 500 && logs.len() > 10, "{rows} rows of {} logs", logs.len());
    for (path, proto) in [("http", "tcp"), ("tcp", "tcp"), ("rtt", "tcp"), ("ntp", "udp")] {
        assert!(logs[path].iter().all(|told| told == proto), "{path}");
    }
    assert!(logs["dns"].iter().any(|proto| proto == "udp"));
}

#[test]
fn text_is_the_same_for_any_number_of_workers() {
    let capture = Path::new(RECORDED).join("office.pcapng");
    let lines = |workers| {
        let options = ["--format", "text", "-s", "0.1", "--workers", workers];
        String::from_utf8(analyze(&capture, Path::new("-"), &options)).unwrap()
    };
    let one = lines("1");
    assert!(one.lines().count() > 500);
    assert!(lines("2") == one && lines("3") == one);
}

#[test]
fn a_stream_of_text_names_the_columns_of_each_log_once_before_its_rows() {
    let capture = Path::new(RECORDED).join("office.pcapng");
    let stream =
        String::from_utf8(analyze(&capture, Path::new("-"), &["--format", "text"])).unwrap();
    let (mut columns, mut rows) = (BTreeMap::<String, Vec<String>>::new(), BTreeMap::new());
    let mut path = String::new();
    for line in stream.lines() {
        if let Some(name) = line.strip_prefix("#path ") {
            name.clone_into(&mut path);
        } else if let Some(names) = line.strip_prefix("#fields ") {
            let names = names.split(' ').map(str::to_owned).collect();
            assert_eq!(columns.insert(path.clone(), names), None, "{path}");
        } else {
            let words: Vec<_> = line.split_whitespace().collect();
            let is_of = |(log, names): &(&String, &Vec<String>)| {
                let at = names.iter().position(|name| name == "_path").unwrap();
                words.len() == names.len() && words[at] == log.as_str()
            };
            let (log, _) = columns.iter().find(is_of).expect(line);
            *rows.entry(log.clone()).or_insert(0) += 1;
        }
    }
    let folder = Folder::new("stream");
    analyze(&capture, &folder.0, &["--format", "text"]);
    let files = fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().path());
    let count = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let rows = text.lines().filter(|line| !line.starts_with('#')).count();
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), rows)
    };
    let files = files.filter(|path| path.extension().is_some_and(|it| it == "txt"));
    let expected: BTreeMap<_, _> = files.map(count).collect();
    assert_eq!(rows, expected);
    assert!(columns.keys().eq(rows.keys()));
}

/// The example of the documentation, by a program that knows nothing of the format.
#[test]
fn awk_finds_columns_by_their_names() {
    if Command::new("awk").arg("1").stdin(Stdio::null()).status().is_err() {
        netsniff_testing::skip(netsniff_testing::Need::Program("awk"), "no example was run");
        return;
    }
    let page = include_str!("../../../../docs/text-format.md");
    let script = page.split("awk '").nth(1).and_then(|rest| rest.split('\'').next()).unwrap();
    let folder = Folder::new("awk");
    analyze(&Path::new(RECORDED).join("office.pcapng"), &folder.0, &["--format", "text"]);
    let run = Command::new("awk").arg(script).arg(folder.0.join("http.txt")).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let text = fs::read_to_string(folder.0.join("http.txt")).unwrap();
    let log = log(&text, "http");
    let at = |name: &str| log.names.iter().position(|known| known == name).unwrap();
    let expected: String = log
        .rows
        .iter()
        .filter(|row| row[at("status_code")] == "200")
        .map(|row| format!("{} {} {}\n", row[at("id.orig_h")], row[at("method")], row[at("uri")]))
        .collect();
    assert!(expected.lines().count() > 3);
    assert_eq!(String::from_utf8(run.stdout).unwrap(), expected);
}
