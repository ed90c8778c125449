//! Every format has the same rows with the same values: MessagePack and Parquet, read by readers of others, against JSON.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[cfg(feature = "parquet")]
use parquet::record::Field;
use rmpv::Value as Packed;
use serde_json::Value as Json;

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded");

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("netsniff-formats-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn analyze(capture: &Path, output: &Path, format: &str) -> Vec<u8> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    command.arg("analyze").arg(capture).arg("-o").arg(output).args(["-q", "--format", format]);
    let run = command.output().unwrap();
    // Damage of a fixture is meant, and is told by an exit code.
    assert!(matches!(run.status.code(), Some(0 | 3)), "{}", String::from_utf8_lossy(&run.stderr));
    run.stdout
}

/// The MessagePack maps of a file.
fn maps(mut bytes: &[u8]) -> Vec<Packed> {
    let mut maps = Vec::new();
    while !bytes.is_empty() {
        maps.push(rmpv::decode::read_value(&mut bytes).unwrap());
    }
    maps
}

/// The JSON objects of a file.
fn objects(text: &str) -> Vec<Json> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The microseconds of a timestamp of 64 or 96 bits, rounded down.
fn micros(bytes: &[u8]) -> i64 {
    let (seconds, nanos) = match bytes.split_at_checked(4).filter(|_| bytes.len() == 12) {
        Some((nanos, seconds)) => (
            i64::from_be_bytes(seconds.try_into().unwrap()),
            u32::from_be_bytes(nanos.try_into().unwrap()),
        ),
        None => {
            let whole = u64::from_be_bytes(bytes.try_into().unwrap());
            ((whole & ((1 << 34) - 1)) as i64, (whole >> 34) as u32)
        }
    };
    seconds * 1_000_000 + i64::from(nanos / 1000)
}

/// Whether a value is the same in both, but for what is finer than a microsecond, which JSON has not.
fn is_same(packed: &Packed, json: &Json) -> bool {
    match (packed, json) {
        (Packed::Boolean(one), Json::Bool(other)) => one == other,
        (Packed::Integer(one), Json::Number(other)) => one.to_string() == other.to_string(),
        (Packed::F64(one), Json::Number(other)) => other
            .as_f64()
            .is_some_and(|other| (one - other).abs() <= 1e-6_f64.max(one.abs() * 1e-12)),
        (Packed::Ext(-1, bytes), Json::Number(other)) => {
            other.as_f64().is_some_and(|other| (other * 1e6).round() as i64 == micros(bytes))
        }
        (Packed::String(one), Json::String(other)) => one.as_str() == Some(other),
        (Packed::Array(one), Json::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Packed::Map(one), Json::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| {
                    let found = key.as_str().and_then(|key| other.get(key));
                    found.is_some_and(|found| is_same(value, found))
                })
        }
        _ => false,
    }
}

fn compare(name: &str, packed: &[Packed], json: &[Json]) {
    assert_eq!(packed.len(), json.len(), "rows of {name}");
    for (packed, json) in packed.iter().zip(json) {
        assert!(is_same(packed, json), "{name}:\n{packed}\n{json}");
    }
}

/// The files of a folder with this extension, by their names without it.
fn logs(folder: &Path, extension: &str) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|found| found == extension));
    let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    files.map(|path| (stem(&path), fs::read(&path).unwrap())).collect()
}

fn captures() -> Vec<PathBuf> {
    let mut captures: Vec<_> =
        fs::read_dir(RECORDED).unwrap().map(|entry| entry.unwrap().path()).collect();
    captures.retain(|path| path.extension().is_some_and(|it| it == "pcap" || it == "pcapng"));
    captures.sort();
    captures
}

/// Whether a value of a table is that of JSON.
#[cfg(feature = "parquet")]
fn is_field(field: &Field, json: &Json) -> bool {
    match (field, json) {
        (Field::Bool(one), Json::Bool(other)) => one == other,
        (Field::Str(one), Json::String(other)) => one == other,
        (Field::ListInternal(one), Json::Array(other)) => {
            let one = one.elements();
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_field(one, other))
        }
        (Field::TimestampMicros(one), Json::Number(other)) => {
            other.as_f64().is_some_and(|other| (other * 1e6).round() as i64 == *one)
        }
        (Field::Double(one), Json::Number(other)) => {
            other.as_f64().is_some_and(|other| (one - other).abs() <= one.abs() * f64::EPSILON)
        }
        (Field::UShort(one), Json::Number(other)) => other.as_u64() == Some(u64::from(*one)),
        (Field::ULong(one), Json::Number(other)) => other.as_u64() == Some(*one),
        (Field::Long(one), Json::Number(other)) => other.as_i64() == Some(*one),
        _ => false,
    }
}

/// Compares a table with the JSON of the same log; tells how many rows it has.
#[cfg(feature = "parquet")]
fn compare_table(name: &str, table: &Path, json: &[Json]) {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    let reader = SerializedFileReader::new(fs::File::open(table).unwrap()).unwrap();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(|row| row.unwrap()).collect();
    assert_eq!(rows.len(), json.len(), "rows of {name}");
    for (row, json) in rows.iter().zip(json) {
        let set: Vec<_> =
            row.get_column_iter().filter(|(_, field)| **field != Field::Null).collect();
        let json = json.as_object().unwrap();
        assert_eq!(set.len(), json.len(), "{name}: {row} {json:?}");
        for (column, field) in set {
            let other = &json[column.as_str()];
            assert!(is_field(field, other), "{name}, {column}: {field} {other}");
        }
    }
}

#[cfg(feature = "parquet")]
#[test]
fn tables_have_the_rows_of_json() {
    let mut rows = 0;
    for capture in captures() {
        let folder = Folder::new("tables");
        let (tables, json) = (folder.0.join("tables"), folder.0.join("json"));
        analyze(&capture, &tables, "parquet");
        analyze(&capture, &json, "json");
        let (found, json) = (logs(&tables, "parquet"), logs(&json, "log"));
        assert!(found.keys().eq(json.keys()), "{}", capture.display());
        for (name, text) in json {
            let objects = objects(std::str::from_utf8(&text).unwrap());
            let table = tables.join(format!("{name}.parquet"));
            compare_table(&format!("{} {name}", capture.display()), &table, &objects);
            rows += objects.len();
        }
        // The manifest has each of them.
        let listed = fs::read_to_string(tables.join("manifest.jsonl")).unwrap();
        let mut listed: Vec<_> =
            objects(&listed).into_iter().map(|it| it["file"].clone()).collect();
        listed.sort_by_key(ToString::to_string);
        let files: Vec<_> =
            found.keys().map(|name| Json::from(format!("{name}.parquet"))).collect();
        assert_eq!(listed, files);
    }
    assert!(rows > 500, "{rows} rows");
}

#[cfg(feature = "parquet")]
#[test]
fn tables_are_the_same_for_any_number_of_workers() {
    let capture = Path::new(RECORDED).join("office.pcapng");
    let tables = |workers: &str| {
        let folder = Folder::new(&format!("tables-{workers}"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
        command.arg("analyze").arg(&capture).arg("-o").arg(&folder.0);
        command.args(["-q", "--format", "parquet", "--workers", workers]);
        assert!(command.status().unwrap().success());
        logs(&folder.0, "parquet")
    };
    let (one, three) = (tables("1"), tables("3"));
    assert!(one.len() > 10 && one == three);
}

/// What `analyze` writes to standard output with these words.
fn streamed(words: &[&str]) -> Vec<u8> {
    let capture = Path::new(RECORDED).join("office.pcapng");
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    command.arg("analyze").arg(capture).args(["-q", "-o", "-"]).args(words);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[cfg(feature = "arrow")]
#[test]
fn a_stream_of_one_log_is_its_file_for_any_number_of_workers() {
    let capture = Path::new(RECORDED).join("office.pcapng");
    for format in ["arrow", "parquet", "tsv"] {
        let folder = Folder::new(&format!("one-log-{format}"));
        analyze(&capture, &folder.0, format);
        let extension = match format {
            "arrow" => "arrows",
            "tsv" => "log",
            other => other,
        };
        let files = logs(&folder.0, extension);
        for (log, file) in [("conn", files.get("conn")), ("dns", files.get("dns"))] {
            for workers in ["1", "2", "3"] {
                let stream = streamed(&["--format", format, "--log", log, "--workers", workers]);
                // TSV tells when it was opened and closed by the packets' own times.
                assert!(Some(&stream) == file, "{format}, {log}, {workers} workers");
            }
        }
    }
}

#[test]
fn only_the_logs_that_are_named_are_written_and_they_are_the_same() {
    let capture = Path::new(RECORDED).join("office.pcapng");
    let folder = Folder::new("chosen");
    let (all, some) = (folder.0.join("all"), folder.0.join("some"));
    analyze(&capture, &all, "json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    command.arg("analyze").arg(&capture).args(["-q", "--format", "json", "-o"]).arg(&some);
    command.args(["--log", "http,conn", "--log", "files"]);
    assert!(command.status().unwrap().success());
    let (all, some) = (logs(&all, "log"), logs(&some, "log"));
    let expected: BTreeMap<_, _> =
        all.into_iter().filter(|(log, _)| ["conn", "files", "http"].contains(&&**log)).collect();
    assert_eq!(expected.len(), 3);
    assert!(some == expected, "{:?}", some.keys());
}

#[test]
fn messagepack_has_the_rows_of_json() {
    let captures = captures();
    let (mut columns, mut rows) = (BTreeMap::new(), 0);
    for capture in &captures {
        let folder = Folder::new("files");
        analyze(capture, &folder.0.join("packed"), "msgpack");
        analyze(capture, &folder.0.join("json"), "json");
        let (packed, json) =
            (logs(&folder.0.join("packed"), "msgpack"), logs(&folder.0.join("json"), "log"));
        assert!(packed.keys().eq(json.keys()), "{}", capture.display());
        for (name, bytes) in packed {
            let maps = maps(&bytes);
            let text = std::str::from_utf8(&json[&name]).unwrap();
            compare(&format!("{} {name}", capture.display()), &maps, &objects(text));
            rows += maps.len();
            columns.entry(name).or_insert(0_usize);
        }
    }
    assert!(rows > 500 && columns.len() > 10, "{rows} rows of {} logs", columns.len());
}

#[test]
fn a_stream_of_messagepack_names_the_logs() {
    let capture = Path::new(RECORDED).join("office.pcapng");
    let packed = maps(&analyze(&capture, Path::new("-"), "msgpack"));
    let text = String::from_utf8(analyze(&capture, Path::new("-"), "json")).unwrap();
    compare("the stream", &packed, &objects(&text));
    let is_first = |row: &Packed| row.as_map().unwrap()[0].0.as_str() == Some("_path");
    assert!(packed.len() > 100 && packed.iter().all(is_first));
}

#[test]
fn columns_with_tabs_have_no_stream() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    command.arg("analyze").arg(Path::new(RECORDED).join("office.pcapng"));
    let run = command.args(["-o", "-", "--format", "tsv"]).output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(said.contains("only these can: --format json, ecs, eve, msgpack, text"), "{said}");
}
