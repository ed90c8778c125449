//! An attack on what `-a` writes: original addresses, names and users are searched in every output, and
//! identifiers are tried with the addresses that they could be made of.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::zeek::corpus::{Scratch, captures};
use netsniff_analysis::Uid;
use netsniff_analysis::key::Endpoint;
use netsniff_analysis::key::community_id::CommunityId;
use netsniff_analysis::key::{FlowKey, TCP, UDP};
use netsniff_analysis::record::{FieldInfo, Privacy};
use netsniff_analysis::rows::LOGS;
use netsniff_output::Format;
use netsniff_packet::anonymize::{Anonymizer, Keep, Key, Method};
use serde_json::Value;

const KEY: [u8; 32] = *b"0123456789abcdefghijklmnop, test";

fn anonymizer() -> Anonymizer {
    Anonymizer::new(Method::CryptoPan, &Key::parse(&KEY).unwrap(), &Keep::default())
}

/// The recorded office, and the corpus where there is one.
fn all() -> Vec<PathBuf> {
    let office =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded/office.pcapng");
    let corpus = captures("only the recorded office was attacked").unwrap_or_default();
    [office].into_iter().chain(corpus.into_iter().map(|capture| capture.path)).collect()
}

fn netsniff(arguments: &[&str], paths: &[&Path]) -> Output {
    let run =
        Command::new(env!("CARGO_BIN_EXE_netsniff")).args(arguments).args(paths).output().unwrap();
    let code = run.status.code();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(matches!(code, Some(0 | 3)), "{arguments:?} {paths:?}: {code:?} {said}");
    run
}

/// The key in a file.
fn key_file(scratch: &Scratch) -> PathBuf {
    let path = scratch.path().join("key");
    fs::create_dir_all(scratch.path()).unwrap();
    fs::write(&path, KEY).unwrap();
    path
}

type Row = serde_json::Map<String, Value>;
type Logs = BTreeMap<String, Vec<Row>>;

/// The rows of all logs in a folder, which are in JSON.
fn logs(folder: &Path) -> Logs {
    let mut logs = Logs::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "log") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let rows = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        logs.insert(path.file_stem().unwrap().to_str().unwrap().to_owned(), rows);
    }
    logs
}

fn analyzed(capture: &Path, output: &Path, arguments: &[&str]) -> (Logs, Output) {
    let output_name = output.to_str().unwrap();
    let all = [&["analyze", "--json", "--format", "json", "-s", "1", "-o", output_name], arguments];
    let run = netsniff(&all.concat(), &[capture]);
    (logs(output), run)
}

fn field(log: &str, name: &str) -> &'static FieldInfo {
    let log = LOGS.iter().find(|of| of.path == log).unwrap_or_else(|| panic!("no log {log}"));
    log.fields.iter().find(|field| field.name == name).unwrap_or_else(|| panic!("no field {name}"))
}

/// Whether a column has words or sentences that are no names.
fn is_text(log: &str, name: &str) -> bool {
    matches!(field(log, name).privacy, Privacy::FreeText | Privacy::Word(_))
}

/// Each text in a value.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// Whether a text is the name of a flow or a file.
fn is_uid(text: &str) -> bool {
    text.len() == Uid::LEN && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// What of a row depends neither on addresses nor on names.
fn plain(log: &str, row: &Row) -> String {
    let mut plain = Row::new();
    for (name, value) in row {
        let class = field(log, name).privacy;
        let texts = texts(value);
        let is_plain = |text: &&str| class.of_text(text.as_bytes()) == Privacy::Plain;
        let is_all_plain =
            class == Privacy::Plain || !texts.is_empty() && texts.iter().all(is_plain);
        if is_all_plain && !texts.iter().any(|text| is_uid(text)) {
            plain.insert(name.clone(), value.clone());
        }
    }
    Value::Object(plain).to_string()
}

/// The values of all fields of some class, log by log and column by column.
fn of_class(
    logs: &Logs,
    wanted: impl Fn(Privacy) -> bool,
) -> BTreeMap<(String, String), Vec<String>> {
    let mut found = BTreeMap::<_, Vec<String>>::new();
    for (log, row) in logs.iter().flat_map(|(log, rows)| rows.iter().map(move |row| (log, row))) {
        for (name, value) in row {
            let class = field(log, name).privacy;
            let texts = texts(value).into_iter();
            let of_class: Vec<_> = texts
                .filter(|text| wanted(class.of_text(text.as_bytes())))
                .map(str::to_owned)
                .collect();
            // A column without values is one all the same.
            if !of_class.is_empty() || wanted(class) {
                found.entry((log.clone(), name.clone())).or_default().extend(of_class);
            }
        }
    }
    found
}

/// Words in names that are also words of the logs themselves, or say nothing of anybody.
const VOCABULARY: &[&str] = &[
    "localhost",
    "in-addr",
    "arpa",
    "local",
    "workgroup",
    "default",
    "anonymous",
    "unknown",
    "closed",
    "query",
    "failed",
    "dnskey",
    "header",
    "offset",
    "timeout",
    "netsniff",
    "(empty)",
    "sha256",
    "partial",
    "emailaddress",
    "postalcode",
    "street",
    "serialnumber",
    "businesscategory",
    "jurisdictionc",
    "jurisdictionl",
    "jurisdictionst",
];

/// Words that the program itself uses for its logs: as names they tell nobody.
fn own_words() -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for log in LOGS.iter() {
        let fields = log.fields.iter().flat_map(|field| {
            field.words.iter().flat_map(|word| [word.name, word.doc]).chain([field.name, field.doc])
        });
        for text in fields.chain([log.path, log.doc]) {
            let parts = text.split(|c: char| !c.is_ascii_alphanumeric());
            words.extend(parts.map(str::to_ascii_lowercase));
        }
    }
    words.extend(VOCABULARY.iter().map(|word| (*word).to_owned()));
    words
}

/// What must not be found: addresses, names with their labels, users, texts, hashes and identifiers.
fn secrets(logs: &Logs, anonymizer: &Anonymizer) -> BTreeSet<String> {
    let mut secrets = BTreeSet::new();
    let mut pseudonyms = BTreeSet::new();
    let plain = of_class(logs, |class| class == Privacy::Plain).into_values().flatten();
    let plain: BTreeSet<String> = plain.collect();
    for ((log, name), values) in of_class(logs, |class| class != Privacy::Plain) {
        // Words of sentences are everybody's; the sentences are not.
        let has_names = !is_text(&log, &name);
        for value in values {
            if let Ok(address) = value.parse::<IpAddr>() {
                let mapped = anonymizer.address(address.into()).to_string();
                if mapped != value {
                    secrets.insert(value);
                }
                pseudonyms.insert(mapped);
                continue;
            }
            let labels = value.split(['.', '/', '@', ' ', '=', ',', ':', '<', '>', '"', '?', '&']);
            let words = labels.filter(|word| word.len() >= 6).map(str::to_owned);
            if has_names {
                secrets.extend(words);
            }
            // A registered method that Zeek does not know is a text of `weird` and a word of `http`.
            let is_told = !has_names && plain.contains(&value);
            if (value.len() >= 6 && !is_told) || name == "community_id" {
                secrets.insert(value);
            }
        }
    }
    let uids = of_class(logs, |class| class == Privacy::Plain).into_values().flatten();
    secrets.extend(uids.filter(|text| is_uid(text)));
    // What is between special addresses alone is named as before, and so are names that stay.
    for row in logs.get("conn").into_iter().flatten() {
        let stays = |name: &str| {
            let address: IpAddr = row[name].as_str().unwrap().parse().unwrap();
            anonymizer.address(address.into()) == address.into()
        };
        if stays("id.orig_h") && stays("id.resp_h") {
            let id = row["community_id"].as_str().unwrap();
            let parts = [id, id.trim_start_matches("1:").trim_end_matches('=')];
            let gone = parts.iter().flat_map(|part| part.split(['/', '=', ':'])).chain(parts);
            gone.chain(row["uid"].as_str()).for_each(|it| {
                secrets.remove(it);
            });
            let files = logs.get("files").into_iter().flatten();
            for file in files.filter(|file| file.get("uid") == row.get("uid")) {
                file["fuid"].as_str().map(|fuid| secrets.remove(fuid));
            }
        }
    }
    secrets.retain(|secret| {
        let mut mapped = Vec::new();
        anonymizer.name(secret.as_bytes(), &mut mapped);
        mapped != secret.as_bytes()
    });
    // The pseudonym of one address may be another's address: nobody can tell.
    secrets.retain(|secret| !pseudonyms.contains(secret));
    let own = own_words();
    secrets.retain(|secret| !own.contains(&secret.to_ascii_lowercase()));
    // Numbers may be anything: times, for one.
    secrets.retain(|secret| !secret.bytes().all(|byte| byte.is_ascii_digit()));
    // What the decoder says in its own words.
    secrets.retain(|secret| !secret.contains(" header at offset "));
    secrets.retain(|secret| secret.bytes().any(|byte| byte.is_ascii_alphanumeric()));
    secrets
}

/// Secrets that stand in an output as words of their own.
fn found(output: &[u8], secrets: &BTreeSet<String>) -> Vec<String> {
    let text = String::from_utf8_lossy(output).to_ascii_lowercase();
    let is_word =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let stands = |secret: &&String| {
        let secret = secret.to_ascii_lowercase();
        text.match_indices(&secret).any(|(at, _)| {
            let bytes = text.as_bytes();
            let before = at.checked_sub(1).and_then(|at| bytes.get(at));
            !is_word(before) && !is_word(bytes.get(at + secret.len()))
        })
    };
    secrets.iter().filter(stands).cloned().collect()
}

/// The logs in each format beside those of Zeek that text can be read from, by their paths.
fn in_other_formats(capture: &Path, scratch: &Path, arguments: &[&str]) -> Vec<(String, Vec<u8>)> {
    let names = Format::ALL.iter().map(|format| format.name());
    let others = names.filter(|name| ["ecs", "eve", "text", "arrow"].contains(name));
    let mut outputs = Vec::new();
    for format in others {
        let folder = scratch.join(format);
        let begun = ["analyze", "-s", "1", "--format", format, "-o", folder.to_str().unwrap()];
        netsniff(&[&begun, arguments].concat(), &[capture]);
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let is_stream = path.extension().is_some_and(|extension| extension == "arrows");
            let bytes = fs::read(&path).unwrap();
            let text = if is_stream { texts_of_stream(&bytes) } else { bytes };
            outputs.push((path.display().to_string(), text));
        }
        fs::remove_dir_all(&folder).unwrap();
    }
    assert!(outputs.len() >= 3);
    outputs
}

/// All texts of a stream of Arrow, a line each.
fn texts_of_stream(stream: &[u8]) -> Vec<u8> {
    let mut lines = Vec::new();
    for batch in arrow_ipc::reader::StreamReader::try_new(stream, None).unwrap() {
        let mut columns: Vec<_> = batch.unwrap().columns().iter().map(|it| it.to_data()).collect();
        while let Some(column) = columns.pop() {
            columns.extend(column.child_data().iter().cloned());
            if column.data_type().to_string() == "Utf8" {
                let (ends, bytes) = (column.buffers()[0].typed_data::<i32>(), &column.buffers()[1]);
                for text in ends.windows(2) {
                    lines.extend_from_slice(&bytes[text[0] as usize..text[1] as usize]);
                    lines.push(b'\n');
                }
            }
        }
    }
    lines
}

#[test]
fn nothing_original_is_in_any_output_and_all_joins_survive() {
    let scratch = Scratch::new("anonymity");
    let key = key_file(&scratch);
    let arguments = ["-a", "-m", "cryptopan", "-k", key.to_str().unwrap()];
    let anonymizer = anonymizer();
    let (mut failures, mut searched, mut bytes) = (Vec::new(), 0, 0);
    for capture in all() {
        let name = capture.file_name().unwrap().to_string_lossy().into_owned();
        let [plain_folder, folder, tsv] =
            ["plain", "json", "tsv"].map(|name| scratch.path().join(name));
        let (original, summary) = analyzed(&capture, &plain_folder, &[]);
        let secrets = secrets(&original, &anonymizer);
        // The attack itself works: it finds them where nothing is hidden.
        let everything: Vec<u8> = fs::read_dir(&plain_folder)
            .unwrap()
            .flat_map(|entry| fs::read(entry.unwrap().path()).unwrap())
            .chain(summary.stdout)
            .collect();
        let told = found(&everything, &secrets).len();
        assert!(
            told * 10 >= secrets.len() * 9,
            "{name}: only {told} of {} are told",
            secrets.len()
        );

        let (hidden, run) = analyzed(&capture, &folder, &arguments);
        let tsv_name = tsv.to_str().unwrap();
        let text = netsniff(
            &[&["analyze", "-s", "1", "-o", tsv_name], &arguments[..]].concat(),
            &[&capture],
        );
        let stream = netsniff(&[&["analyze", "-o", "-"], &arguments[..]].concat(), &[&capture]);
        let others = in_other_formats(&capture, scratch.path(), &arguments);
        let path = capture.to_str().unwrap();
        let mut outputs = vec![
            ("the summary in JSON".to_owned(), run.stdout),
            ("the summary".to_owned(), text.stdout),
            ("the stream".to_owned(), stream.stdout),
        ];
        outputs.extend(others);
        for entry in [&folder, &tsv].into_iter().flat_map(|folder| fs::read_dir(folder).unwrap()) {
            let entry = entry.unwrap().path();
            outputs.push((entry.display().to_string(), fs::read(&entry).unwrap()));
        }
        for (place, output) in &outputs {
            // The name of the file is the user's own.
            let output = String::from_utf8_lossy(output).replace(path, "").into_bytes();
            for secret in found(&output, &secrets) {
                failures.push(format!("{name}: {secret:?} is in {place}"));
            }
            bytes += output.len();
        }
        searched += secrets.len();
        failures.extend(
            differences(&original, &hidden, &anonymizer)
                .into_iter()
                .map(|it| format!("{name}: {it}")),
        );
        for folder in [plain_folder, folder, tsv] {
            fs::remove_dir_all(folder).unwrap();
        }
    }
    eprintln!("{searched} secrets were searched in {bytes} bytes of outputs");
    let shown = failures.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} failures:\n{shown}", failures.len());
    assert!(searched > 200);
}

/// What is not the same in both but for pseudonyms.
fn differences(original: &Logs, hidden: &Logs, anonymizer: &Anonymizer) -> Vec<String> {
    let mut differences = Vec::new();
    if original.keys().ne(hidden.keys()) {
        return vec![format!("the logs {:?} became {:?}", original.keys(), hidden.keys())];
    }
    for (log, rows) in original {
        let parts = |rows: &[Row]| {
            let mut parts: Vec<_> = rows.iter().map(|row| plain(log, row)).collect();
            parts.sort();
            parts
        };
        if parts(rows) != parts(&hidden[log]) {
            differences.push(format!("{log}: rows differ in what is plain"));
        }
    }
    // Addresses are those that the mapping gives.
    let addresses = |logs: &Logs, map: &dyn Fn(IpAddr) -> String| {
        let mut all: Vec<_> = of_class(logs, |class| class == Privacy::Address)
            .into_iter()
            .flat_map(|(column, values)| {
                values.into_iter().map(move |value| (column.clone(), value))
            })
            .filter_map(|(column, value)| Some((column, map(value.parse().ok()?))))
            .collect();
        all.sort();
        all
    };
    let mapped = addresses(original, &|address| anonymizer.address(address.into()).to_string());
    if mapped != addresses(hidden, &|address| address.to_string()) {
        differences.push("addresses are not those that the key gives".to_owned());
    }
    // As many different values in each column, and in all of a class together.
    let distinct = |logs: &Logs, wanted: fn(Privacy) -> bool| {
        let columns = of_class(logs, wanted).into_iter();
        columns
            .map(|(column, values)| {
                // The case of names is of no matter, that of texts is.
                let is_text = is_text(&column.0, &column.1);
                let values = values
                    .into_iter()
                    .map(|value| if is_text { value } else { value.to_ascii_lowercase() });
                let count = values.collect::<BTreeSet<_>>().len();
                (column, count)
            })
            .collect::<BTreeMap<_, _>>()
    };
    for wanted in
        [(|class| class != Privacy::Plain) as fn(Privacy) -> bool, |class| class == Privacy::Plain]
    {
        let (before, after) = (distinct(original, wanted), distinct(hidden, wanted));
        for (column, count) in &before {
            if after.get(column) != Some(count) {
                differences
                    .push(format!("{column:?}: {count} values became {:?}", after.get(column)));
            }
        }
    }
    if joined(original) != joined(hidden) {
        differences.push(format!("joins {:?} became {:?}", joined(original), joined(hidden)));
    }
    differences
}

/// How many rows of other logs have a row in `conn`, how many connections go to an address that an
/// answer of DNS told before, and how many rows tell of one that is in `dns`.
fn joined(logs: &Logs) -> (usize, usize, usize) {
    let column = |log: &str, name: &str| -> Vec<&str> {
        let rows = logs.get(log).into_iter().flatten();
        rows.filter_map(|row| row.get(name)).flat_map(texts).collect()
    };
    let conns: BTreeSet<_> = column("conn", "uid").into_iter().collect();
    let others = logs.keys().filter(|log| *log != "conn");
    let by_uid =
        others.flat_map(|log| column(log, "uid")).filter(|uid| conns.contains(uid)).count();
    let answers: BTreeSet<_> = column("dns", "answers").into_iter().collect();
    let by_answer =
        column("conn", "id.resp_h").into_iter().filter(|it| answers.contains(it)).count();
    let lookups: BTreeSet<_> = column("dns", "uid").into_iter().collect();
    let followed = ["http", "ssl"].into_iter().flat_map(|log| column(log, "dns_uid"));
    (by_uid, by_answer, followed.filter(|uid| lookups.contains(uid)).count())
}

fn endpoint(address: &str, port: &Value) -> Endpoint {
    let address: IpAddr = address.parse().unwrap();
    Endpoint { address: address.into(), port: port.as_u64().unwrap() as u16 }
}

/// The flow of a row of `conn`, with another originator.
fn flow(row: &Row, originator: &str, responder: &str) -> FlowKey {
    let protocol = row["ip_proto"].as_u64().unwrap() as u8;
    FlowKey::new(
        endpoint(originator, &row["id.orig_p"]),
        endpoint(responder, &row["id.resp_p"]),
        protocol,
        false,
    )
    .0
}

/// The rows of `conn` of TCP and UDP over IPv4, by what both outputs have in common.
fn conns(logs: &Logs) -> BTreeMap<String, &Row> {
    let rows = logs.get("conn").into_iter().flatten().filter(|row| {
        let is_v4 = row["id.orig_h"].as_str().unwrap().contains('.');
        is_v4 && matches!(row["ip_proto"].as_u64(), Some(number) if number == u64::from(TCP) || number == u64::from(UDP))
    });
    rows.map(|row| (plain("conn", row), row)).collect()
}

/// Nanoseconds of a time in a log. The recorded office is stamped in nanoseconds, of which logs tell
/// microseconds; attackers try them all.
fn micros(row: &Row) -> i64 {
    (row["ts"].as_f64().unwrap() * 1e6).round() as i64
}

#[test]
fn no_address_that_is_tried_gives_an_identifier() {
    let scratch = Scratch::new("anonymity-identifiers");
    let key = key_file(&scratch);
    let arguments = ["-a", "-m", "cryptopan", "-k", key.to_str().unwrap()];
    let anonymizer = anonymizer();
    let (mut tried, mut broken, mut flows) = (0_u64, 0, 0);
    for capture in all() {
        let (plain_folder, folder) = (scratch.path().join("plain"), scratch.path().join("hidden"));
        let (original, _) = analyzed(&capture, &plain_folder, &[]);
        let (hidden, _) = analyzed(&capture, &folder, &arguments);
        let addresses: BTreeSet<&str> = original
            .get("conn")
            .into_iter()
            .flatten()
            .flat_map(|row| [&row["id.orig_h"], &row["id.resp_h"]])
            .filter_map(Value::as_str)
            .filter(|address| address.contains('.'))
            .filter(|address| {
                let ip: IpAddr = address.parse().unwrap();
                anonymizer.address(ip.into()) != ip.into()
            })
            .take(60)
            .collect();
        let hidden_ids: BTreeSet<&str> = ["uid", "community_id"]
            .iter()
            .flat_map(|name| {
                hidden.get("conn").into_iter().flatten().filter_map(|row| row.get(*name)?.as_str())
            })
            .collect();
        let hidden_addresses: BTreeSet<&str> = ["id.orig_h", "id.resp_h"]
            .iter()
            .flat_map(|name| {
                hidden.get("conn").into_iter().flatten().filter_map(|row| row.get(*name)?.as_str())
            })
            .collect();
        for row in conns(&original).into_values().take(40) {
            flows += 1;
            let true_id = row["community_id"].as_str().unwrap();
            for (a, b) in addresses.iter().flat_map(|a| addresses.iter().map(move |b| (*a, *b))) {
                let id = CommunityId::of(&flow(row, a, b));
                tried += 1;
                broken += u64::from(id.as_str() == true_id);
                let stays = |text: &str| {
                    let ip: IpAddr = text.parse().unwrap();
                    hidden_addresses.contains(ip.to_string().as_str())
                };
                // Where both are pseudonyms of others, their identifier is one of pseudonyms.
                let is_hit = hidden_ids.contains(id.as_str()) && !(stays(a) && stays(b));
                assert!(!is_hit, "{}: {a} {b}", capture.display());
            }
        }
        fs::remove_dir_all(&plain_folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }
    eprintln!("{tried} pairs of addresses were tried on {flows} flows");
    // The attack works where nothing is hidden.
    assert!(
        broken * 2 > flows,
        "{broken} of {flows} flows were recognised by their true identifiers"
    );
}

/// A whole /16 around the originator of one flow, with all else known that goes into an identifier.
/// `examples/unmask.rs` tries all addresses there are.
#[test]
fn no_address_of_a_whole_network_gives_an_identifier() {
    let scratch = Scratch::new("anonymity-network");
    let key = key_file(&scratch);
    let arguments = ["-a", "-m", "cryptopan", "-k", key.to_str().unwrap()];
    let capture = scratch.path().join("one.pcap");
    fs::write(&capture, one_packet()).unwrap();
    let (original, _) = analyzed(&capture, &scratch.path().join("plain"), &[]);
    let (hidden, _) = analyzed(&capture, &scratch.path().join("hidden"), &arguments);
    let (original, hidden) = (&original["conn"][0], &hidden["conn"][0]);
    let responder = original["id.resp_h"].as_str().unwrap();
    let hits = |row: &Row, responder: &str| {
        let mut hits = [0, 0];
        for last in 0..=u16::MAX {
            let [c, d] = last.to_be_bytes();
            let key = flow(row, &format!("198.51.{c}.{d}"), responder);
            let uid = Uid::new(key.name(0, micros(original) * 1000, 0));
            hits[0] += u32::from(uid.as_str() == row["uid"]);
            hits[1] += u32::from(CommunityId::of(&key).as_str() == row["community_id"]);
        }
        hits
    };
    assert_eq!(hits(original, responder), [1, 1], "the attack works where nothing is hidden");
    assert_eq!(hits(hidden, responder), [0, 0]);
    // Nor does the pseudonym of the responder help.
    assert_eq!(hits(hidden, hidden["id.resp_h"].as_str().unwrap()), [0, 0]);
    assert_ne!(original["id.orig_h"], hidden["id.orig_h"]);
}

/// Words of protocols stay, and a text in the place of one is hidden.
#[test]
fn what_stands_in_the_place_of_a_word_is_a_text() {
    let scratch = Scratch::new("anonymity-words");
    let key = key_file(&scratch);
    let arguments = ["-a", "-m", "cryptopan", "-k", key.to_str().unwrap()];
    let web: &[&[u8]] =
        &[b"GET / HTTP/1.1\r\nHost: a\r\n\r\nMUELLER / HTTP/1.1\r\nHost: a\r\n\r\n"];
    let mail: &[&[u8]] = &[
        b"EHLO a\r\nMAIL FROM:<a@b.test>\r\nRCPT TO:<c@d.test>\r\nDATA\r\n",
        b"MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n",
        b"--x\r\nContent-Type: text/html\r\n\r\na\r\n",
        b"--x\r\nContent-Type: application/mueller\r\n\r\na\r\n--x--\r\n.\r\nQUIT\r\n",
    ];
    for (port, said, log, column, word) in
        [(80, web, "http", "method", "GET"), (25, mail, "smtp", "part_types", "text/html")]
    {
        let capture = scratch.path().join(format!("{port}.pcap"));
        fs::write(&capture, said_to(port, said)).unwrap();
        let (original, _) = analyzed(&capture, &scratch.path().join(format!("plain-{port}")), &[]);
        let hidden = scratch.path().join(format!("hidden-{port}"));
        let (hidden, _) = analyzed(&capture, &hidden, &arguments);
        let values = |logs: &Logs| -> Vec<String> {
            let rows = logs[log].iter().map(|row| texts(&row[column]));
            rows.flatten().map(str::to_lowercase).collect()
        };
        let (original, hidden) = (values(&original), values(&hidden));
        let (word, text) = (word.to_lowercase(), |value: &String| value.contains("mueller"));
        assert!(original.contains(&word) && original.iter().any(text), "{original:?}");
        assert!(hidden.contains(&word) && !hidden.iter().any(text), "{hidden:?}");
        assert_eq!(original.len(), hidden.len());
    }
}

/// A capture of what a client says to a port.
fn said_to(port: u16, said: &[&[u8]]) -> Vec<u8> {
    use netsniff_packet::wire::tcp::TcpHeader;
    use netsniff_packet::{LinkType, Packet, Timestamp};
    use netsniff_traffic::frame::{Host, tcp_frame};
    let host = |last, port| Host::new(IpAddr::from([198, 51, 100, last]), port);
    let (client, server) = (host(1, 40_000), host(2, port));
    let link_type = LinkType::ETHERNET;
    let mut writer = netsniff_pcapfile::PcapWriter::new(Vec::new(), link_type, 0).unwrap();
    let mut sequence = 100;
    let opening = [(true, 0x02, &b""[..]), (false, 0x12, b""), (true, 0x10, b"")];
    let segments = opening.into_iter().chain(said.iter().map(|said| (true, 0x18, *said)));
    for (at, (from_client, flags, data)) in (0..).zip(segments) {
        let (from, to) = if from_client { (&client, &server) } else { (&server, &client) };
        let (own, peer) = if from_client { (sequence, 501) } else { (500, sequence) };
        let header = TcpHeader {
            source_port: 0,
            destination_port: 0,
            sequence: own,
            acknowledgement: if flags == 0x02 { 0 } else { peer },
            flags,
            window: 60_000,
            checksum: 0,
            urgent_pointer: 0,
            options: &[],
        };
        let data = tcp_frame(from, to, 1, &header, data).unwrap();
        sequence += if flags == 0x02 { 1 } else { 0 };
        let timestamp = Timestamp::from_secs_nanos(1_700_000_000, at * 1_000);
        let wire_len = data.len() as u32;
        let packet = Packet { timestamp, data: &data, wire_len, link_type, interface: 0 };
        writer.write_packet(&packet).unwrap();
        sequence += if flags == 0x18 { wire_len - 54 } else { 0 };
    }
    writer.finish().unwrap()
}

/// A capture of one UDP datagram from 198.51.100.7 to 203.0.113.9.
fn one_packet() -> Vec<u8> {
    use netsniff_packet::wire::ipv4::{Ipv4Header, protocol};
    use netsniff_packet::wire::udp::UdpHeader;
    use netsniff_packet::{LinkType, Packet, Timestamp};
    let mut data = [0; 28];
    let ip = Ipv4Header {
        traffic_class: 0,
        total_len: 28,
        identification: 1,
        reserved_flag: false,
        dont_fragment: false,
        more_fragments: false,
        fragment_offset: 0,
        ttl: 64,
        protocol: protocol::UDP,
        checksum: 0,
        source: [198, 51, 100, 7],
        destination: [203, 0, 113, 9],
        options: &[],
    };
    ip.emit(&mut data).unwrap();
    let udp = UdpHeader { source_port: 40_000, destination_port: 9, datagram_len: 8, checksum: 0 };
    udp.emit(&mut data[20..]).unwrap();
    let mut writer = netsniff_pcapfile::PcapWriter::new(Vec::new(), LinkType::RAW, 0).unwrap();
    let timestamp = Timestamp::from_secs_nanos(1_700_000_000, 0);
    let packet =
        Packet { timestamp, data: &data, wire_len: 28, link_type: LinkType::RAW, interface: 0 };
    writer.write_packet(&packet).unwrap();
    writer.finish().unwrap()
}
