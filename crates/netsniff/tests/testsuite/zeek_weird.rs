//! The oddities that we tell of each connection against those that Zeek tells, over the corpus: the
//! set of names, without those that only one of both programs knows.
//!
//! By default Zeek tells some of them once for each originator, and some of headers that it could
//! not read without addresses. netsniff tells them of every connection, or pair of addresses. What
//! Zeek told elsewhere in this way, and so not here, is taken out of our sets.

use std::collections::{BTreeMap, BTreeSet};

use crate::zeek::corpus::{Capture, Scratch, analyze, captures};
use crate::zeek::log::{self, Row};

/// Names that Zeek tells once for each originator (`Weird::actions`, `ACTION_LOG_PER_ORIG`).
const PER_ORIGINATOR: [&str; 7] = [
    "DNS_label_forward_compress_offset",
    "DNS_label_len_gt_pkt",
    "SYN_with_data",
    "UDP_datagram_length_mismatch",
    "connection_originator_SYN_ack",
    "excessively_small_fragment",
    "fragment_inconsistency",
];

/// Names that Zeek tells in the corpus and netsniff does not, and why.
const ONLY_IN_ZEEK: [(&str, &str); 5] = [
    ("active_connection_reuse", "the connection is one of a packet whose header is cut off"),
    ("dnp3_header_lacks_magic", "DNP3 is not built"),
    ("fragment_protocol_inconsistency", "fuzz/: fragments of one identification, minutes apart"),
    ("sip_junk_before_request", "SIP is not built"),
    ("unknown_SIP_method", "SIP is not built"),
];

type Names = BTreeSet<String>;

/// What both tell of a connection, or of a pair of addresses without one: Zeek's, ours.
type Connections = BTreeMap<String, [Names; 2]>;

#[test]
fn oddities_of_connections_are_zeeks() {
    let Some(captures) = captures("no oddities were compared with Zeek's") else { return };
    let mut told: Vec<(&Capture, [Vec<Row>; 2])> = Vec::new();
    for capture in &captures {
        let run = capture.oracle().join("zeek-run");
        if !run.is_dir() {
            continue;
        }
        let scratch = Scratch::new("zeek-weird");
        analyze(&capture.path, scratch.path(), &["--workers", "1"]);
        let theirs = log::read(&run.join("weird.log")).unwrap();
        let ours = log::read(&scratch.path().join("weird.log")).unwrap();
        told.push((capture, [theirs, ours]));
    }
    let names = |side: usize| -> Names {
        told.iter().flat_map(|(_, rows)| &rows[side]).map(|row| row["name"].clone()).collect()
    };
    let (theirs, ours) = (names(0), names(1));
    let only_theirs: Vec<&str> = theirs.difference(&ours).map(String::as_str).collect();
    let only_ours: Vec<&String> = ours.difference(&theirs).collect();
    eprintln!(
        "names that only Zeek tells: {only_theirs:?}\nnames that only we tell: {only_ours:?}"
    );
    let both: Names = theirs.intersection(&ours).cloned().collect();
    let (mut sound, mut all) = ([0, 0], [0, 0]);
    for (capture, rows) in &told {
        for (connection, [theirs, ours]) in connections(rows, &both) {
            let is_same = usize::from(theirs == ours);
            if is_same == 0 {
                eprintln!("{}: {connection}: Zeek {theirs:?}, netsniff {ours:?}", capture.name);
            }
            let counts =
                if capture.is_fuzzed() { vec![&mut all] } else { vec![&mut sound, &mut all] };
            for count in counts {
                count[0] += 1;
                count[1] += is_same;
            }
        }
    }
    eprintln!("{} names that both tell: {both:?}", both.len());
    compare_details(&told, &both);
    for (what, [connections, same]) in [("outside fuzz/", sound), ("all", all)] {
        eprintln!("{what}: {same} of {connections} connections with oddities have the same names");
        assert!(same * 100 >= connections * 95, "{what}: less than 95 % are the same");
    }
    assert!(sound[0] >= 20 && all[0] >= 85, "too few were compared");
    assert_eq!(only_theirs, ONLY_IN_ZEEK.map(|(name, _)| name), "other names are only Zeek's");
}

/// Holds what more is known of an oddity (`addl`) against Zeek's, where both tell something of the
/// same name of the same connection.
fn compare_details(told: &[(&Capture, [Vec<Row>; 2])], both: &Names) {
    let (mut compared, mut only_theirs) = (Names::new(), 0);
    for (capture, [theirs, ours]) in told {
        for row in theirs.iter().filter(|row| both.contains(&row["name"]) && row["addl"] != "-") {
            let is_same_oddity =
                |it: &&Row| it["name"] == row["name"] && connection(it) == connection(row);
            let details: Vec<&str> =
                ours.iter().filter(is_same_oddity).map(|it| it["addl"].as_str()).collect();
            if details.iter().all(|detail| *detail == "-") {
                eprintln!("{}: only Zeek tells {} of {}", capture.name, row["addl"], row["name"]);
                only_theirs += 1;
                continue;
            }
            assert!(
                details.contains(&row["addl"].as_str()),
                "{}: {row:?} {details:?}",
                capture.name
            );
            compared.insert(format!("{} {} {}", capture.name, connection(row), row["name"]));
        }
    }
    eprintln!("addl: {} oddities are told alike, {only_theirs} by Zeek alone", compared.len());
    assert!(compared.len() >= 15, "too few were compared");
    assert_eq!(only_theirs, 0, "netsniff tells less than Zeek");
}

/// What a row belongs to: the ends of the connection; without ports for a pair of addresses.
fn connection(row: &Row) -> String {
    ["id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"].map(|end| row[end].as_str()).join(" ")
}

/// The connections of a capture with names out of `both`, as far as both tell them of each.
fn connections(rows: &[Vec<Row>; 2], both: &Names) -> Connections {
    let mut connections = Connections::new();
    for (side, rows) in rows.iter().enumerate() {
        for row in rows.iter().filter(|row| both.contains(&row["name"])) {
            let names = connections.entry(connection(row)).or_default();
            names[side].insert(row["name"].clone());
        }
    }
    let [theirs, ours] = rows;
    for row in ours {
        let Some(names) = connections.get(&connection(row)) else { continue };
        if names[0].contains(&row["name"]) {
            continue;
        }
        let told_of = |other: &&Row| other["name"] == row["name"];
        let is_of_originator = PER_ORIGINATOR.contains(&row["name"].as_str())
            && theirs.iter().filter(told_of).any(|it| it["id.orig_h"] == row["id.orig_h"]);
        let nowhere = theirs.iter().filter(told_of).find(|it| it["id.orig_h"] == "-");
        let is_of_nowhere = row["uid"] == "-" && nowhere.is_some();
        if is_of_originator || is_of_nowhere {
            connections.entry(connection(row)).and_modify(|names| {
                names[1].remove(&row["name"]);
            });
        }
        if let Some(nowhere) = nowhere.filter(|_| is_of_nowhere) {
            connections.entry(connection(nowhere)).or_default()[1].insert(row["name"].clone());
        }
    }
    connections.retain(|_, names| names.iter().any(|names| !names.is_empty()));
    connections
}
