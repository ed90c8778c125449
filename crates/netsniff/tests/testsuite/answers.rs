//! Which DNS answer a connection followed: our columns against what the rule gives over the logs that
//! Zeek wrote, and over what TShark tells of recordings of our own.
//!
//! The rule is worked out here once more, over the rows of whole logs: of the answers that the client
//! got before the connection began, that tell the address of its server and are not older than their
//! TTL (or a minute), the last one, of those for the server's name if there is one.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::zeek::corpus::{Scratch, analyze, captures};
use crate::zeek::log::{self, Row};
use netsniff_testing::{Need, skip};

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/");

/// An answer, with times in microseconds.
#[derive(Debug)]
struct Answer {
    client: String,
    name: String,
    addresses: Vec<String>,
    at: i64,
    rtt: Option<i64>,
    lifetime: i64,
    /// The client's port, which tells the flow.
    port: String,
}

/// A connection, with its begin in microseconds.
struct Begun<'a> {
    client: &'a str,
    server: &'a str,
    name: &'a str,
    start: i64,
}

fn micros(seconds: &str) -> i64 {
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let digits = format!("{fraction:0<6.6}");
    whole.parse::<i64>().unwrap() * 1_000_000 + digits.parse::<i64>().unwrap()
}

/// The answer that a connection followed: port, time of the look-up, and age.
fn followed(answers: &[Answer], begun: &Begun<'_>) -> Option<(String, Option<i64>, i64)> {
    let good = answers.iter().filter(|answer| {
        answer.client == begun.client
            && answer.addresses.iter().any(|address| address == begun.server)
            && answer.at <= begun.start
            && begun.start < answer.at + answer.lifetime.max(60_000_000)
    });
    let host = begun.name.rsplit_once(':').map_or(begun.name, |(host, _)| host);
    let last = good.max_by_key(|answer| (answer.name == host.to_lowercase(), answer.at))?;
    Some((last.port.clone(), last.rtt, begun.start - last.at))
}

/// What our row says of it.
fn logged_answer(row: &Row, dns: &[Row]) -> Option<(String, Option<i64>, i64)> {
    let known = |column: &str| Some(&row[column]).filter(|cell| *cell != "-");
    let Some(uid) = known("dns_uid") else {
        assert_eq!((known("dns_rtt"), known("dns_age")), (None, None));
        return None;
    };
    let query = dns.iter().find(|query| query["uid"] == *uid).expect("a row of dns with that uid");
    let rtt = known("dns_rtt").map(|rtt| micros(rtt));
    Some((query["id.orig_p"].clone(), rtt, micros(&row["dns_age"])))
}

/// The answers that Zeek's log tells.
fn zeeks_answers(dns: &[Row]) -> Vec<Answer> {
    let answer = |row: &Row| {
        let ttls = row["TTLs"].split(',').map(|ttl| ttl.parse::<f64>().unwrap());
        let rtt = Some(&row["rtt"]).filter(|rtt| *rtt != "-").map(|rtt| micros(rtt));
        Answer {
            client: row["id.orig_h"].clone(),
            name: row["query"].clone(),
            addresses: row["answers"].split(',').map(str::to_owned).collect(),
            at: micros(&row["ts"]) + rtt.unwrap_or(0),
            rtt,
            lifetime: (ttls.fold(f64::INFINITY, f64::min) * 1e6) as i64,
            port: row["id.orig_p"].clone(),
        }
    };
    dns.iter().filter(|row| row["answers"] != "-").map(answer).collect()
}

/// The columns that name a row of `http` or `ssl` in both logs.
fn name_of(row: &Row) -> Vec<&str> {
    let columns = ["ts", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "trans_depth"];
    columns.iter().filter_map(|column| row.get(*column)).map(String::as_str).collect()
}

#[test]
fn zeeks_logs_joined_give_the_same() {
    let Some(captures) = captures("no DNS answer was joined over Zeek's logs") else { return };
    let (mut rows, mut joined) = (0, 0);
    for capture in captures.iter().filter(|capture| !capture.is_fuzzed()) {
        let read =
            |name: &str| log::read(&capture.oracle().join(format!("zeek-run/{name}.log"))).unwrap();
        let (dns, conn) = (read("dns"), read("conn"));
        let answers = zeeks_answers(&dns);
        let starts: BTreeMap<_, _> =
            conn.iter().map(|row| (&row["uid"], micros(&row["ts"]))).collect();
        let scratch = Scratch::new("answers");
        analyze(&capture.path, scratch.path(), &[]);
        let ours = |name: &str| log::read(&scratch.path().join(format!("{name}.log"))).unwrap();
        let our_dns = ours("dns");
        for (name, host) in [("http", "host"), ("ssl", "server_name")] {
            let theirs = read(name);
            for row in ours(name) {
                let same = |their: &&Row| name_of(their) == name_of(&row);
                let Some(their) = theirs.iter().find(same) else { continue };
                let begun = Begun {
                    client: &their["id.orig_h"],
                    server: &their["id.resp_h"],
                    name: &their[host],
                    start: starts[&their["uid"]],
                };
                let expected = followed(&answers, &begun);
                assert_eq!(logged_answer(&row, &our_dns), expected, "{}: {row:?}", capture.name);
                rows += 1;
                joined += usize::from(expected.is_some());
            }
        }
    }
    eprintln!("{rows} rows of http and ssl, of which {joined} followed an answer");
    assert!(rows > 400 && joined > 100, "{joined} of {rows}");
}

/// What TShark tells of the packets that a filter lets through.
fn tshark(capture: &Path, filter: &str, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(capture).args(["-Y", filter, "-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let Ok(run) = command.output() else {
        skip(Need::Program("tshark"), "answers in our recordings were not looked at");
        return None;
    };
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let text = String::from_utf8(run.stdout).unwrap();
    let line = |line: &str| line.split('\t').map(str::to_owned).collect();
    Some(text.lines().map(line).collect())
}

/// The answers of a recording.
fn tsharks_answers(capture: &Path) -> Option<Vec<Answer>> {
    let fields = [
        "frame.time_epoch",
        "ip.dst",
        "ipv6.dst",
        "dns.qry.name",
        "dns.a",
        "dns.aaaa",
        "dns.resp.ttl",
        "dns.time",
        "udp.dstport",
    ];
    // What answers to other questions bring along for later is in another section.
    let filter = "udp.port == 53 and dns.flags.response == 1 and (dns.a or dns.aaaa) and \
                  dns.qry.type in {1, 28}";
    let answer = |row: Vec<String>| Answer {
        client: format!("{}{}", row[1], row[2]),
        name: row[3].clone(),
        addresses: row[4].split(',').chain(row[5].split(',')).map(str::to_owned).collect(),
        at: micros(&row[0]),
        rtt: Some(micros(&row[7])),
        lifetime: row[6].split(',').map(|ttl| ttl.parse::<i64>().unwrap()).min().unwrap()
            * 1_000_000,
        port: row[8].clone(),
    };
    Some(tshark(capture, filter, &fields)?.into_iter().map(answer).collect())
}

#[test]
fn recorded_clients_followed_the_answers_that_tshark_sees() {
    for (name, least) in [("office.pcapng", 18), ("protocols.pcapng", 30)] {
        let capture = Path::new(RECORDED).join(name);
        let Some(answers) = tsharks_answers(&capture) else { return };
        let fields = ["ip.src", "ipv6.src", "tcp.srcport", "frame.time_epoch"];
        let opened =
            tshark(&capture, "tcp.flags.syn == 1 and tcp.flags.ack == 0", &fields).unwrap();
        let scratch = Scratch::new("answers-recorded");
        analyze(&capture, scratch.path(), &[]);
        let ours = |name: &str| log::read(&scratch.path().join(format!("{name}.log"))).unwrap();
        let (dns, mut joined) = (ours("dns"), 0);
        for (log, host) in [("http", "host"), ("ssl", "server_name")] {
            for row in ours(log) {
                let is_own = |syn: &&Vec<String>| {
                    format!("{}{}", syn[0], syn[1]) == row["id.orig_h"]
                        && syn[2] == row["id.orig_p"]
                };
                // Of QUIC there is none.
                let Some(syn) = opened.iter().find(is_own) else { continue };
                let begun = Begun {
                    client: &row["id.orig_h"],
                    server: &row["id.resp_h"],
                    name: &row[host],
                    start: micros(&syn[3]),
                };
                let (expected, told) = (followed(&answers, &begun), logged_answer(&row, &dns));
                let near = |a: Option<i64>, b: Option<i64>| match (a, b) {
                    (Some(a), Some(b)) => (a - b).abs() <= 1,
                    (a, b) => a == b,
                };
                // TShark's times have nanoseconds, which are cut at different places.
                let is_same = match (&expected, &told) {
                    (Some(a), Some(b)) => {
                        a.0 == b.0 && near(a.1, b.1) && near(Some(a.2), Some(b.2))
                    }
                    (a, b) => a == b,
                };
                assert!(is_same, "{name}: {expected:?}, but {told:?}: {row:?}");
                joined += usize::from(told.is_some());
            }
        }
        eprintln!("{name}: {joined} rows followed an answer");
        assert!(joined >= least, "{name}: {joined}");
    }
}
