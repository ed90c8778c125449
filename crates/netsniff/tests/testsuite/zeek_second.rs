//! All our logs against Zeek's, row by row, over the second corpus, both over the captures for these logs and over those
//! for logs to come: each log has a floor, which only rises. A log without one is Zeek's in every row.
//!
//! A row leaves the comparison only through a line of `docs/differences-from-zeek.md` whose file begins
//! with `captures2/`, or because it is of a protocol that is not built and of which netsniff tells nothing.

use std::collections::BTreeSet;
use std::path::Path;

use crate::zeek::compare::{
    ANY, CONN, Columns, Comparison, DHCP, DNS, FILES, FTP, HTTP, IRC, NTP, OCSP, PE, SMTP, SOCKS,
    SSH, SSL, TUNNEL, WEBSOCKET, X509, compare,
};
use crate::zeek::corpus::{Capture, Scratch, analyze, second_captures};
use crate::zeek::differences::{Listed, leave_out, listed_of_second, whole};
use crate::zeek::log::{self, Row};
use crate::zeek::total::Total;
use crate::zeek::unbuilt;
use crate::zeek::whole::Packets;
use netsniff_analysis::protocol::ProtocolId;
use netsniff_analysis::record::Origin;
use netsniff_analysis::rows::LOGS;
use netsniff_testing::print_uncaptured;

/// A log, the rows that are the same at least, and the files without a difference at least. THE floors: who makes more of
/// them the same raises them. They fall only with a row that goes to the page of differences, since packets show ours right.
const FLOORS: [(&str, Columns, usize, usize); 17] = [
    ("conn", CONN, 763, 198),
    ("dhcp", DHCP, 10, 6),
    ("dns", DNS, 573, 30),
    ("files", FILES, 168, 86),
    ("ftp", FTP, 65, 11),
    ("http", HTTP, 100, 76),
    ("irc", IRC, 6, 4),
    ("ntp", NTP, 2, 1),
    ("ocsp", OCSP, 46, 14),
    ("pe", PE, 4, 4),
    ("smtp", SMTP, 16, 16),
    ("socks", SOCKS, 8, 10),
    ("ssh", SSH, 7, 5),
    ("ssl", SSL, 114, 46),
    ("tunnel", TUNNEL, 40, 25),
    ("websocket", WEBSOCKET, 3, 2),
    ("x509", X509, 118, 32),
];

/// The same over the captures for logs that netsniff does not have yet.
const FLOORS_OF_OTHERS: [(&str, usize, usize); 17] = [
    ("conn", 2441, 219),
    ("dhcp", 9, 4),
    ("dns", 1131, 11),
    ("files", 34, 7),
    ("ftp", 2, 1),
    ("http", 39, 8),
    ("irc", 7, 1),
    ("ntp", 3, 1),
    ("ocsp", 0, 1),
    ("pe", 0, 0),
    ("smtp", 2, 1),
    ("socks", 2, 2),
    ("ssh", 4, 1),
    ("ssl", 18, 10),
    ("tunnel", 31, 7),
    ("websocket", 0, 1),
    ("x509", 11, 7),
];

/// Logs that other tests compare: `zeek_ssl` with the baselines of a Zeek that has QUIC, and `zeek_weird`.
const ELSEWHERE: [&str; 2] = ["quic", "weird"];

/// Services that the Zeek compared with does not name, though it has the logs: it was built without Spicy, and its older
/// analysers do not tell that they are sure.
const NAMELESS: [&str; 1] = ["syslog"];

/// Columns whose names are drawn at random, so that their number is compared.
const COUNTED: [&str; 3] = ["orig_fuids", "resp_fuids", "fuids"];

/// Columns whose elements have no order.
const SETS: [&str; 6] = ["service", "analyzers", "dcc_mime_type", "rcptto", "to", "cc"];

/// A log that is compared.
struct Compared {
    name: &'static str,
    columns: Columns,
    /// For each set of captures the rows that are the same at least, and the files; without it all are.
    floors: [Option<(usize, usize)>; 2],
}

/// Those with a floor, and all other logs that Zeek has.
fn logs() -> Vec<Compared> {
    let floor = |(name, columns, rows, files): &(&'static str, Columns, usize, usize)| {
        let (_, others, other_files) = FLOORS_OF_OTHERS.iter().find(|it| it.0 == *name).unwrap();
        let floors = [Some((*rows, *files)), Some((*others, *other_files))];
        Compared { name, columns: *columns, floors }
    };
    let mut logs: Vec<_> = FLOORS.iter().map(floor).collect();
    for log in LOGS.iter().filter(|log| log.fields[0].origin == Origin::Zeek) {
        if !ELSEWHERE.contains(&log.path) && !logs.iter().any(|it| it.name == log.path) {
            logs.push(Compared { name: log.path, columns: Columns::of(log), floors: [None; 2] });
        }
    }
    logs
}

#[test]
fn logs_are_zeeks() {
    let Some(sets) = second_captures("no log was compared with Zeek's over it") else { return };
    let logs = logs();
    let mut listed: Vec<_> =
        logs.iter().map(|log| listed_of_second(log.name, log.columns)).collect();
    let totals = sets.map(|captures| compare_all(&captures, &logs, &mut listed));
    for unused in listed {
        assert!(unused.is_empty(), "listed, but not so: {unused:#?}");
    }
    let mut complaints = Vec::new();
    for (set, name) in ["captures2", "captures2, others"].iter().enumerate() {
        for (log, total) in logs.iter().zip(&totals[set]) {
            let figures = figures(name, log.name, total);
            print_uncaptured(&figures);
            if is_below(total, log.floors[set]) {
                complaints.push(format!(
                    "{figures}; at least {:?}, and one of those that there are",
                    log.floors[set].unwrap_or((total.rows, total.files))
                ));
            }
        }
    }
    for (at, log) in logs.iter().enumerate() {
        if totals.iter().all(|totals| totals[at].rows == 0) {
            complaints.push(format!("{} was not compared: no capture has it", log.name));
        }
    }
    assert!(complaints.is_empty(), "below the floor:\n{}", complaints.join("\n"));
}

/// Compares the logs of captures, without what is listed.
fn compare_all(captures: &[Capture], logs: &[Compared], listed: &mut [Vec<Listed>]) -> Vec<Total> {
    let mut totals: Vec<_> = logs.iter().map(|_| Total::default()).collect();
    for capture in captures {
        let scratch = Scratch::new("zeek-second");
        analyze(&capture.path, scratch.path(), &["--workers", "1"]);
        for (log, (total, unused)) in logs.iter().zip(totals.iter_mut().zip(&mut *listed)) {
            let Compared { name, columns, .. } = *log;
            let [theirs, ours] = rows(capture, &scratch, name, columns);
            if theirs.is_empty() && ours.is_empty() {
                continue;
            }
            let reasons = whole(&capture.name, unused);
            let (mut comparison, out) = if reasons.is_empty() {
                (compare(columns, &theirs, &ours, &BTreeSet::new()), 0)
            } else {
                Packets::of(capture).compare(name, columns, &theirs, ours, &reasons)
            };
            let left_out = out + leave_out(&capture.name, &mut comparison, unused);
            total.add(&format!("{} {name}", capture.name), &comparison, left_out);
        }
    }
    totals
}

/// Whether fewer rows or files are the same than there must be. Where none of the rows is, the log is another one, whatever
/// its floor is.
fn is_below(total: &Total, floor: Option<(usize, usize)>) -> bool {
    let (rows, files) = floor.unwrap_or((total.rows, total.files));
    let is_all_different = total.rows > 0 && total.rows_same == 0;
    total.rows_same < rows || total.files_same < files || is_all_different
}

#[test]
fn a_log_of_which_no_row_is_the_same_is_below_any_floor() {
    let total = |rows, same| {
        let mut total = Total::default();
        total.add("capture log", &Comparison { rows, same, differences: Vec::new() }, 0);
        total
    };
    assert!(is_below(&total(3, 0), Some((0, 0))), "every row differs");
    assert!(!is_below(&total(3, 1), Some((1, 0))) && !is_below(&total(3, 3), Some((3, 1))));
    assert!(is_below(&total(3, 1), Some((2, 0))) && is_below(&total(3, 2), Some((2, 1))));
    // A log without rows is told by its floor alone.
    assert!(!is_below(&Total::default(), Some((0, 0))));
    assert!(is_below(&Total::default(), Some((1, 0))));
    // And one without a floor by its rows.
    assert!(is_below(&total(3, 2), None) && !is_below(&total(3, 3), None));
}

fn figures(set: &str, name: &str, total: &Total) -> String {
    let Total { rows, rows_same, files, files_same, rows_left_out, .. } = total;
    let percent = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
    format!(
        "{set} {name:9} rows {rows_same}/{rows} {:.1} %, files whole {files_same}/{files} {:.1} %, left out {rows_left_out}",
        percent(*rows_same, *rows),
        percent(*files_same, *files),
    )
}

/// Zeek's rows of a log and ours, with what is not to be compared put alike.
fn rows(capture: &Capture, scratch: &Scratch, name: &str, columns: Columns) -> [Vec<Row>; 2] {
    let run = capture.oracle().join("zeek-run");
    let file = format!("{name}.log");
    let mut theirs = log::read(&run.join(&file)).unwrap();
    let mut ours = log::read(&scratch.path().join(&file)).unwrap();
    if name == "ssl" {
        // The other Zeek was built without QUIC.
        let quic = log::read(&scratch.path().join("quic.log")).unwrap();
        ours.retain(|row| !quic.iter().any(|other| other["uid"] == row["uid"]));
    }
    for rows in [&mut theirs, &mut ours] {
        rows.iter_mut().for_each(put_alike);
    }
    let conn = log::read(&run.join("conn.log")).unwrap();
    if name == "conn" {
        let nameless = nameless(&run);
        for row in &mut theirs {
            let is_known = |name: &str| name == "-" || ProtocolId::named(name).is_some();
            if !row["service"].split(',').all(is_known) || nameless.contains(&row["uid"]) {
                row.insert("service".to_owned(), ANY.to_owned());
            }
        }
    } else if name != "tunnel" {
        // Tunnels are known, though not by a name in `service`.
        let files = log::read(&run.join("files.log")).unwrap();
        let key = |row: &Row| columns.key.iter().map(|name| row[*name].clone()).collect::<Vec<_>>();
        let told: BTreeSet<_> = ours.iter().map(key).collect();
        theirs.retain(|row| {
            // The row of a program has the name of its file instead.
            let file = row.get("id").and_then(|id| files.iter().find(|file| file["fuid"] == *id));
            let uid = row.get("uid").or(file.map(|file| &file["uid"]));
            let is_other = uid.is_some_and(|uid| unbuilt::is_in(uid, &conn));
            !is_other || told.contains(&key(row))
        });
    }
    [theirs, ours]
}

/// The connections of services that Zeek has a log of and does not name.
fn nameless(run: &Path) -> BTreeSet<String> {
    let logs = NAMELESS.map(|name| log::read(&run.join(format!("{name}.log"))).unwrap());
    logs.into_iter().flatten().map(|row| row["uid"].clone()).collect()
}

fn put_alike(row: &mut Row) {
    for (name, cell) in row {
        if COUNTED.contains(&name.as_str()) && !["-", "(empty)"].contains(&cell.as_str()) {
            *cell = cell.split(',').count().to_string();
        } else if SETS.contains(&name.as_str()) {
            let mut elements: Vec<&str> = cell.split(',').collect();
            elements.sort_unstable();
            *cell = elements.join(",");
        }
    }
}
