//! The logs of NTP, DHCP and DHCPv6 against what the recorded servers and clients told of themselves.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use crate::recorded::{Logs, counted, expected, recorded};
use crate::zeek::corpus::{Scratch, analyze};
use crate::zeek::log::Row;

/// The rows of a log of the recorded protocols.
fn rows(name: &str) -> Vec<Row> {
    Logs::of("protocols.pcapng", &[]).rows(name)
}

/// What chronyd of the desk, which started after the recording did, took of each server's answers:
/// address, stratum and reference.
fn measured() -> BTreeMap<[String; 3], usize> {
    let address = |digits: &str| {
        let bits = u32::from_str_radix(digits, 16).unwrap();
        std::net::Ipv4Addr::from(bits).to_string()
    };
    let text = expected("chrony.txt");
    let lines = text.lines().filter(|line| line.starts_with("desk\t"));
    counted(lines.map(|line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!((cells.len(), &cells[18][..1]), (21, "4"), "{line}");
        [cells[3].to_owned(), cells[5].to_owned(), address(cells[17])]
    }))
}

#[test]
fn every_answer_that_chronyd_took_is_a_row() {
    let rows = rows("ntp");
    let is_desk = |address: &str| address == "192.0.2.111" || address.starts_with("2001:db8:1::1");
    let answers = rows.iter().filter(|row| row["mode"] == "4" && is_desk(&row["id.orig_h"]));
    let answers =
        answers.map(|row| ["id.resp_h", "stratum", "ref_id"].map(|name| row[name].clone()));
    let measured = measured();
    assert!(measured.values().sum::<usize>() >= 50, "{measured:?}");
    assert_eq!(counted(answers), measured);
    // An answer tells the time at which its question says that it left.
    for answer in rows.iter().filter(|row| row["mode"] == "4") {
        let question =
            rows.iter().find(|row| row["mode"] == "3" && row["xmt_time"] == answer["org_time"]);
        assert_eq!(question.map(|row| &row["uid"]), Some(&answer["uid"]), "{answer:?}");
    }
    let modes = counted(rows.iter().map(|row| row["mode"].as_str()));
    assert!(["1", "5"].iter().all(|mode| modes.get(mode).is_some_and(|&n| n >= 5)), "{modes:?}");
}

/// What dnsmasq told of each transaction: the messages, and what it gave.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    mac: String,
    messages: String,
    assigned: String,
    lease: String,
    domain: String,
    refusal: String,
}

fn seconds(span: &str) -> u32 {
    let (number, unit) = span.split_at(span.len() - 1);
    let unit = match unit {
        "h" => 3600,
        "m" => 60,
        _ => panic!("{span}"),
    };
    number.parse::<u32>().unwrap() * unit
}

fn read_dnsmasq_log() -> Vec<Told> {
    let mut told = BTreeMap::<String, Told>::new();
    for line in expected("dhcp.txt").lines() {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let [id, rest @ ..] = cells.as_slice() else { continue };
        if id.parse::<u32>().is_err() {
            continue;
        }
        let told = told.entry((*id).to_owned()).or_default();
        if let Some(kind) =
            rest[0].strip_prefix("DHCP").and_then(|kind| kind.strip_suffix("(eth0)"))
        {
            let separator = if told.messages.is_empty() { "" } else { "," };
            told.messages.push_str(&format!("{separator}{kind}"));
            told.mac = rest.iter().find(|cell| cell.contains(':')).unwrap().to_string();
            if kind == "ACK" {
                told.assigned = rest[1].to_owned();
            }
        }
        match rest {
            ["sent", "size:", .., "lease-time", span] => {
                told.lease = format!("{}.000000", seconds(span));
            }
            ["sent", "size:", .., "domain-name", domain] => told.domain = (*domain).to_owned(),
            ["sent", "size:", .., "message", octets] => {
                let octets = octets.split(':').map(|octet| u8::from_str_radix(octet, 16).unwrap());
                told.refusal = String::from_utf8(octets.collect()).unwrap();
            }
            _ => {}
        }
    }
    told.into_values().collect()
}

#[test]
fn every_transaction_of_dnsmasq_is_a_row() {
    let cell = |row: &Row, name: &str| row[name].strip_prefix('-').unwrap_or(&row[name]).to_owned();
    let rows = rows("dhcp");
    let mut ours: Vec<Told> = rows
        .iter()
        .map(|row| Told {
            mac: cell(row, "mac"),
            messages: cell(row, "msg_types"),
            assigned: cell(row, "assigned_addr"),
            lease: cell(row, "lease_time"),
            domain: cell(row, "domain"),
            refusal: cell(row, "server_message"),
        })
        .collect();
    let mut theirs = read_dnsmasq_log();
    ours.sort();
    theirs.sort();
    assert_eq!(ours, theirs);
    assert!(theirs.len() >= 4 && theirs.iter().any(|told| told.refusal == "wrong network"));
    // Names and what is asked for stand in the configuration of the clients.
    let granted = rows.iter().filter(|row| row["msg_types"] == "DISCOVER,OFFER,REQUEST,ACK");
    for (host, row) in ["desk", "branch"].into_iter().zip(granted) {
        assert_eq!(row["host_name"], host);
        let fqdn = &row["client_fqdn"];
        if host == "desk" {
            assert_eq!((fqdn.as_str(), row["uids"].split(',').count()), ("desk.example.org.", 2));
        } else {
            assert_eq!(fqdn, "\\x06branch\\x07example\\x03org\\x00", "encoded as in DNS");
            // The server answers to the relay's other address.
            assert_eq!(row["uids"].split(',').count(), 2);
        }
        assert_eq!(row["requested_addr"], row["assigned_addr"]);
    }
}

/// The octets of a string in a file of leases, in hexadecimal digits.
fn octets(text: &str) -> String {
    let mut digits = String::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let octal = |tail: &[u8]| {
            let text = std::str::from_utf8(tail.get(..3)?).ok()?;
            u8::from_str_radix(text, 8).ok()
        };
        let (octet, len) = match (first, octal(tail)) {
            (b'\\', Some(octet)) => (octet, 4),
            (b'\\', None) => (tail[0], 2),
            _ => (*first, 1),
        };
        digits.push_str(&format!("{octet:02x}"));
        rest = &rest[len..];
    }
    digits
}

#[test]
fn every_lease_of_dhcpv6_is_a_row() {
    let rows = rows("dhcpv6");
    let text = expected("dhcpv6.leases");
    let quoted = |line: &str| line.split('"').nth(1).map(octets).unwrap();
    let server = text.lines().find(|line| line.starts_with("server-duid")).map(quoted).unwrap();
    let (mut client, mut lease, mut preferred) = (String::new(), String::new(), String::new());
    let (mut leases, mut prefixes) = (0, 0);
    for line in text.lines() {
        let word = |prefix: &str| {
            line.trim().strip_prefix(prefix).map(|rest| rest.trim_matches([' ', ';', '{']))
        };
        if line.starts_with("ia-") {
            // The identifier of the association comes first.
            client = quoted(line)[8..].to_owned();
        } else if let Some(what) = word("iaaddr").or(word("iaprefix")) {
            what.clone_into(&mut lease);
        } else if let Some(seconds) = word("preferred-life") {
            preferred = format!("{seconds}.000000");
        } else if let Some(seconds) = word("max-life") {
            let kind = if lease.contains('/') { ["prefixes", "prefix"] } else { ["addrs", "addr"] };
            let [what, kind] = [format!("assigned_{}", kind[0]), kind[1].to_owned()];
            let row = rows.iter().find(|row| {
                row["client_duid"] == client
                    && row[&what] == lease
                    && row["msg_types"].ends_with("REPLY")
            });
            let row = row.unwrap_or_else(|| panic!("no row for {lease} of {client}: {rows:#?}"));
            assert_eq!(row["server_duid"], server);
            assert_eq!(row[&format!("{kind}_preferred_lifetimes")], preferred);
            assert_eq!(row[&format!("{kind}_valid_lifetimes")], format!("{seconds}.000000"));
            leases += 1;
            prefixes += usize::from(lease.contains('/'));
        }
    }
    assert!(leases >= 3 && prefixes >= 1);
    let types = counted(rows.iter().map(|row| (row["msg_types"].as_str(), row["relays"].as_str())));
    for (types_and_relays, count) in [
        (("SOLICIT,ADVERTISE", "0"), 2),
        (("REQUEST,REPLY", "0"), 2),
        (("SOLICIT,ADVERTISE", "1"), 1),
        (("REQUEST,REPLY", "1"), 1),
        (("INFORMATION-REQUEST,REPLY", "0"), 1),
        (("RELEASE,REPLY", "0"), 1),
    ] {
        assert_eq!(types.get(&types_and_relays), Some(&count), "{types:?}");
    }
    for row in rows.iter().filter(|row| row["relays"] == "1") {
        assert_eq!(
            (row["client_fqdn"].as_str(), row["mac"].as_str()),
            ("branch.example.org.", "02:00:5e:00:53:71")
        );
        assert!(
            row["client_addr"].starts_with("fe80::"),
            "the client by the word of the relay: {row:?}"
        );
    }
}

#[test]
fn all_logs_are_the_same_for_any_number_of_workers() {
    let capture = recorded("protocols.pcapng");
    let logs = |workers| {
        let scratch = Scratch::new("recorded-workers");
        analyze(&capture, scratch.path(), &["--workers", workers, "--format", "json"]);
        let entries = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().path());
        let logs: BTreeMap<_, _> = entries
            .map(|path| (path.file_name().unwrap().to_owned(), fs::read_to_string(&path).unwrap()))
            .collect();
        assert!(logs.len() >= 6, "{:?}", logs.keys());
        logs
    };
    let one = logs("1");
    for workers in ["2", "3", "8"] {
        assert!(logs(workers) == one, "{workers} workers");
    }
}

#[test]
fn an_exchange_stands_in_the_stream_where_it_was_found_to_be_over() {
    let run = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args(["analyze", "--workers", "3", "-o", "-"])
        .arg(recorded("protocols.pcapng"))
        .output()
        .unwrap();
    let stream = String::from_utf8(run.stdout).unwrap();
    let rows: Vec<serde_json::Value> =
        stream.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let time = |row: &serde_json::Value| row["ts"].as_f64().unwrap();
    // A message of NTP is told when it comes, so that these rows are a clock.
    let clock: Vec<_> = rows.iter().enumerate().filter(|(_, row)| row["_path"] == "ntp").collect();
    let pauses = clock.windows(2).map(|pair| time(pair[1].1) - time(pair[0].1));
    let pause = pauses.fold(0.0, f64::max);
    let (mut looked_at, mut at_the_end) = (0, 0);
    for (at, row) in rows.iter().enumerate() {
        if !["dhcp", "dhcpv6"].iter().any(|path| row["_path"] == *path) {
            continue;
        }
        // None of the recorded ones takes as long as a look waits for the one before it, and the look that finds it
        // over waits for a packet.
        let over = time(row) + 10.0;
        assert!(row["duration"].as_f64().unwrap() < 5.0);
        for (tick, ntp) in &clock {
            assert!(*tick < at || time(ntp) >= over, "{row} before {ntp}");
            assert!(*tick > at || time(ntp) <= over + 10.0 + pause, "{row} behind {ntp}");
        }
        if clock.iter().any(|(tick, _)| *tick > at) {
            looked_at += 1;
        } else {
            at_the_end += 1;
        }
    }
    assert!(looked_at >= 5 && at_the_end >= 3, "{looked_at} and {at_the_end}");
}
