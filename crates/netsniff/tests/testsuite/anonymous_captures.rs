//! Anonymised captures give the flows of their originals: with payload the very rows that `-a` writes,
//! without it the same statistics.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::zeek::corpus::{Scratch, captures};
use serde_json::Value;

/// Tunnels in fragments: the packets inside are not understood without putting them together.
const TUNNEL_IN_FRAGMENTS: &str = "zeek-gtp1_gn_normal_incl_fragmentation.pcap";

/// Columns that tell of an address whether it is local, which its pseudonym does not.
const LOCAL: &[&str] = &["local_orig", "local_resp"];

/// Columns that tell of bytes that the capture lacks, as after a snaplen, and of checksums over them;
/// and the duration, for which the last segments of a stream count where data before them is missing.
const MISSING_TOO: &[&str] =
    &["local_orig", "local_resp", "missed_bytes", "bad_checksums", "duration"];

fn netsniff(arguments: &[&str], paths: &[&Path]) -> Output {
    let run =
        Command::new(env!("CARGO_BIN_EXE_netsniff")).args(arguments).args(paths).output().unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(matches!(run.status.code(), Some(0 | 3)), "{arguments:?} {paths:?}: {said}");
    run
}

fn all() -> Vec<PathBuf> {
    let office =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded/office.pcapng");
    let corpus = captures("only the recorded office was anonymised").unwrap_or_default();
    [office].into_iter().chain(corpus.into_iter().map(|capture| capture.path)).collect()
}

/// The rows of `conn` without some columns, sorted.
fn conns(capture: &Path, scratch: &Path, arguments: &[&str], without: &[&str]) -> Vec<String> {
    let folder = scratch.join("logs");
    let output = ["analyze", "-q", "--format", "json", "-o", folder.to_str().unwrap()];
    netsniff(&[&output[..], arguments].concat(), &[capture]);
    let text = fs::read_to_string(folder.join("conn.log")).unwrap_or_default();
    fs::remove_dir_all(folder).unwrap();
    let mut rows: Vec<_> = text
        .lines()
        .map(|line| {
            let mut row: serde_json::Map<String, Value> = serde_json::from_str(line).unwrap();
            row.retain(|name, _| !without.contains(&name.as_str()));
            // Addresses within payload are not mapped, so nobody knows what they announce.
            if row.get("service").is_some_and(|name| ANNOUNCED.iter().any(|it| name == it)) {
                row.remove("service");
            }
            if without == MISSING_TOO
                && let Some(Value::String(history)) = row.get_mut("history")
            {
                history.retain(|letter| !matches!(letter, 'G' | 'g' | 'C' | 'c'));
            }
            Value::Object(row).to_string()
        })
        .collect();
    rows.sort();
    rows
}

/// Services of connections that another connection announces by address.
const ANNOUNCED: [&str; 2] = ["ftp-data", "irc-dcc-data"];

fn differing(expected: &[String], rows: &[String]) -> Option<String> {
    let missing: Vec<_> = expected.iter().filter(|row| rows.binary_search(row).is_err()).collect();
    let extra: Vec<_> = rows.iter().filter(|row| expected.binary_search(row).is_err()).collect();
    if missing.is_empty() && extra.is_empty() && expected.len() == rows.len() {
        return None;
    }
    Some(format!(
        "{} of {} rows\n- {:?}\n+ {:?}",
        missing.len(),
        expected.len(),
        missing.first(),
        extra.first()
    ))
}

#[test]
fn anonymised_captures_give_the_same_flows() {
    let scratch = Scratch::new("anonymous-captures");
    fs::create_dir_all(scratch.path()).unwrap();
    let key = scratch.path().join("key");
    fs::write(&key, b"another key of 32 bytes, for it.").unwrap();
    let key = key.to_str().unwrap();
    let by_key = ["-m", "cryptopan", "-k", key];
    let changed = scratch.path().join("changed");
    let (mut failures, mut rows, mut files) = (Vec::new(), 0, 0);
    for capture in all() {
        let name = capture.file_name().unwrap().to_string_lossy().into_owned();
        if name == TUNNEL_IN_FRAGMENTS {
            continue;
        }
        // Noise in place of payload may look like anything; without payload there is nothing to see.
        let none = &["--protocols", "none"][..];
        for (payload, options, without) in
            [("keep", &[][..], LOCAL), ("hash", none, LOCAL), ("cut", none, MISSING_TOO)]
        {
            let pseudonyms = [&["-a"], &by_key[..], options].concat();
            let expected = conns(&capture, scratch.path(), &pseudonyms, without);
            netsniff(
                &[&["anonymize", "-q", "--payload", payload], &by_key[..]].concat(),
                &[&capture, &changed],
            );
            let found = conns(&changed, scratch.path(), options, without);
            rows += expected.len();
            files += 1;
            if let Some(difference) = differing(&expected, &found) {
                failures.push(format!("{name}, {payload}: {difference}"));
            }
        }
    }
    eprintln!("{rows} rows of {files} captures were compared");
    let shown = failures.iter().take(12).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} captures:\n{shown}", failures.len());
    assert!(rows > 300);
}
