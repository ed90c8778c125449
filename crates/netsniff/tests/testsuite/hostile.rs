//! Captures that somebody made to do harm or to mislead: bounds of memory and time hold, and the logs tell what is so.
//!
//! `NETSNIFF_HOSTILE` names the folder, whose page HOSTILE.md says of each file what is right and why.

use std::fs;

use crate::expected::{Expected, Outcome, check};
use crate::zeek::corpus::{Bounds, Scratch, run};
use netsniff_testing::{Need, folder, print_uncaptured};

/// What none of them may exceed: the 96 MB that the page allows, of memory of its own, and twice as much of addresses, since
/// the program itself and what is reserved and never touched count there. Time is that of a build without optimisation.
const BOUNDS: Bounds =
    Bounds { data_kb: 96 * 1024, address_space_kb: 192 * 1024, processor_seconds: 20 };

/// One worker, and the least that `--memory` takes with it.
const ONE_WORKER: &[&str] = &["--workers", "1", "--memory", "176M"];

/// What is right today and must stay so. Nothing leaves this table.
const RIGHT: &[Expected] = &[
    (
        "c1-parts-br.pcap",
        &["files.# <= 10000", "exit = 0", "http.# = 1", "weird[name=HTTP_too_many_parts].# = 1"],
    ),
    (
        "c1-parts-gzip.pcap",
        &["files.# <= 10000", "exit = 0", "http.# = 1", "weird[name=HTTP_too_many_parts].# = 1"],
    ),
    (
        "c2-brotli-8-bodies.pcap",
        &["weird[name=HTTP_body_too_large_to_decode].# <= 8", "exit = 0", "http.# = 8"],
    ),
    ("h1-radiotap.pcap", &["exit = 0", "conn.# = 1"]),
    ("h2-holes-descending.pcap.gz", &["exit = 0", "conn.# = 1", "gaps.# <= 256"]),
    (
        "h3-decoys.pcap",
        &[
            "exit = 0",
            "conn.# = 4",
            "http.# = 4",
            "conn[id.orig_p=40001,quality=clean].# = 0 | weird[id.orig_p=40001].# >= 1",
            "conn[id.orig_p=40002,quality=clean].# = 0 | weird[id.orig_p=40002].# >= 1",
            "conn[id.orig_p=40003,quality=clean].# = 0 | weird[id.orig_p=40003].# >= 1",
            "conn[id.orig_p=40004,quality=clean].# = 0 | weird[id.orig_p=40004].# >= 1",
        ],
    ),
    (
        "l1-blank-lines.pcap",
        &[
            "exit = 0",
            "http[id.orig_p=40001].uri = /evil",
            "http[id.orig_p=40002].uri ~ /aaaaaaaaaa",
        ],
    ),
    ("l2-leaps.pcap.gz", &["exit = 0", "conn.# = 4000"]),
    ("m1-folded-header.pcap.gz", &["exit = 0", "http.# = 1"]),
    (
        "m2-tls-records.pcap",
        &[
            "exit = 0",
            "ssl.# = 8",
            "ssl[id.orig_p=40001].server_name = evil.example",
            "ssl[id.orig_p=40002].server_name = evil.example",
            "ssl[id.orig_p=40003].server_name = evil.example",
            "ssl[id.orig_p=40004].server_name = evil.example",
            "ssl[id.orig_p=40005].server_name = evil.example",
            "ssl[id.orig_p=40006].server_name = evil.example",
            "ssl[id.orig_p=40007].server_name = evil.example",
            "ssl[id.orig_p=40008].server_name = evil.example",
        ],
    ),
    (
        "m3-blinded.pcap",
        &[
            "exit = 0",
            "http[id.orig_p=40001].status_code = 200",
            "conn[id.orig_p=40001].orig_bytes = 42",
            "conn[id.orig_p=40001].resp_bytes = 69",
            "http[id.orig_p=40003].uri = /evil",
            "conn[id.orig_p=40003].orig_bytes = 42",
            "conn.# = 3",
            "http[id.orig_p=40001].uri = /evil",
            "http[id.orig_p=40002].uri = /evil",
            "http[id.orig_p=40002].status_code = 200",
            "conn[id.orig_p=40002].orig_bytes = 42",
            "conn[id.orig_p=40002].resp_bytes = 69",
            "http[id.orig_p=40003].status_code = 200",
            "conn[id.orig_p=40003].resp_bytes = 69",
        ],
    ),
    (
        "m4-ambiguous.pcap",
        &[
            "exit = 0",
            "weird[name=HTTP_repeated_content_length].# = 1",
            "weird[name=HTTP_repeated_host].# = 1",
            "weird[name=HTTP_unknown_transfer_encoding].# = 1",
            "weird[name=HTTP_bad_chunk_size].# = 1",
            "weird[name=HTTP_bare_CR].# = 1",
        ],
    ),
    (
        "m5-controls.pcap",
        &[
            "exit = 0",
            r"http.uri = /a\xc2\x9b31mRED\xc2\x90b\xc2\x85c\xe2\x80\xaed\xe2\x81\xa6e\xe2\x80\xa8f\x7fg",
            r"http.user_agent = a\xc2\x9b31mRED\xc2\x90b\xc2\x85c\xe2\x80\xaed\xe2\x81\xa6e\xe2\x80\xa8f\x7fg",
            r"smtp.subject = a\xc2\x9b31mRED\xc2\x90b\xc2\x85c\xe2\x80\xaed\xe2\x81\xa6e\xe2\x80\xa8f\x7fg",
            r"dns.query ~ \xc2\x9b31m",
            r"dns.query ~ d\xe2\x81\xa6e\xe2\x80\xa8f\x7fg",
            r"ssl.server_name = a\xc2\x9b31mRED\xc2\x90b\xc2\x85c\xe2\x80\xaed\xe2\x81\xa6e\xe2\x80\xa8f\x7fg",
        ],
    ),
    ("m5-names.pcapng", &["exit = 0", "conn.# = 1"]),
    (
        "t1-held-3ms.pcap.gz",
        &[
            "exit = 0",
            "tcp.resp_duplicates = 0",
            "conn.missed_bytes = 0",
            "tcp.resp_out_of_order = 29",
            "tcp.resp_retx_rto = 0",
            "gaps.# = 0",
        ],
    ),
    (
        "t1-held-4ms-doubled.pcap.gz",
        &[
            "exit = 0",
            "tcp.resp_duplicates = 4",
            "conn.missed_bytes = 0",
            "tcp.resp_out_of_order = 11",
            "tcp.resp_retx_rto = 0",
            "gaps.# = 0",
        ],
    ),
    (
        "t3-challenge-ack.pcap",
        &[
            "exit = 0",
            "conn.missed_bytes = 0",
            "http[uri=/good].status_code = 200",
            "conn[service=http].orig_bytes = 42",
            "conn[service=http].resp_bytes = 69",
            "gaps.# = 0",
            "conn[quality=touched].# = 0",
        ],
    ),
    ("t4-login.pcap", &["exit = 0", "ssh.auth_success = T", "ssh.auth_attempts = 1"]),
    ("t4-login-bytes.pcap.gz", &["exit = 0", "ssh.auth_success = T", "ssh.auth_attempts = 1"]),
    (
        "t5-numbers.pcap",
        &[
            "exit = 0",
            "conn[id.orig_p=40001].orig_bytes = 42",
            "http[id.orig_p=40001].uri = /good",
            "conn[id.orig_p=40002].orig_bytes = 42",
            "conn[id.orig_p=40002].resp_bytes = 69",
            "http[id.orig_p=40002].uri = /good",
            "http[id.orig_p=40002].status_code = 200",
            "conn[id.orig_p=40003].resp_bytes = 69",
            "http[id.orig_p=40003].uri = /good",
            "http[id.orig_p=40003].status_code = 200",
            "conn[id.orig_p=40004].orig_bytes = 42",
            "conn[id.orig_p=40005].orig_bytes = 42",
            "conn[id.orig_p=40005].resp_bytes = 69",
            "conn.missed_bytes = 0",
            "conn[id.orig_p=40001].resp_bytes = 69",
            "http[id.orig_p=40001].status_code = 200",
            "conn[id.orig_p=40003].orig_bytes = 42",
            "conn[id.orig_p=40004].resp_bytes = 69",
            "http[id.orig_p=40004].uri = /good",
            "http[id.orig_p=40004].status_code = 200",
            "http[id.orig_p=40005].uri = /good",
            "http[id.orig_p=40005].status_code = 200",
            "gaps.# = 0",
        ],
    ),
    (
        "c2-brotli.pcap",
        &["http.status_code = 200", "exit = 0", "weird[name=HTTP_body_too_large_to_decode].# = 1"],
    ),
];

/// THE list of what is not right yet: what becomes right moves into the table above.
const OPEN: &[Expected] = &[];

/// How many lines of `OPEN` there may be. It only falls.
const MOST_OPEN: usize = 0;

#[test]
fn nobody_is_harmed_or_misled() {
    let Some(folder) = folder(Need::Hostile, "no hostile capture was tried") else { return };
    let figures = check(RIGHT, OPEN, MOST_OPEN, |file| {
        let scratch = Scratch::new("hostile");
        let output = run(&folder.join(file), scratch.path(), ONE_WORKER, Some(BOUNDS));
        Outcome::read(output.status.code(), scratch.path())
    });
    print_uncaptured(&format!("hostile: {figures}"));
}

/// Each file is run, and ends in time and within memory, or is known not to.
#[test]
fn every_hostile_file_is_named() {
    let Some(folder) = folder(Need::Hostile, "no hostile capture was looked for") else { return };
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_capture = [".pcap", ".pcapng", ".gz"].iter().any(|end| name.ends_with(end));
        let mut tables = RIGHT.iter().chain(OPEN);
        let is_named = tables.any(|(file, lines)| *file == name && lines.contains(&"exit = 0"));
        assert!(!is_capture || is_named, "{name} has no line");
    }
}
