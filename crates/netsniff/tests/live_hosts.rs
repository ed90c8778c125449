//! `netsniff generate hosts`, into files and on veth pairs of this machine. Needs root; says so where it is missing.

mod live_bed;

use std::fs;
use std::path::Path;
use std::process::Command;

use live_bed::commands::{Ended, Scratch, ended, found, netsniff, packets};
use live_bed::{Bed, Run};
use netsniff_testing::has_program;
use serde_json::Value;

/// Writes sessions of hosts, and returns the path.
fn hosts(scratch: &Scratch, name: &str, arguments: &[&str]) -> (String, Ended) {
    let path = scratch.path(name);
    let made = ended(
        Command::new(env!("CARGO_BIN_EXE_netsniff"))
            .args(["generate", "hosts", "--json", "-w", &path, "--start", "1767225600"])
            .args(arguments),
    );
    assert_eq!(made.code, Some(0), "{}", made.errors);
    (path, made)
}

/// All rows of the logs of a capture.
fn rows(capture: &str) -> Vec<Value> {
    let out = ended(
        Command::new(env!("CARGO_BIN_EXE_netsniff"))
            .args(["analyze", "-q", "--format", "json", "-o", "-", capture]),
    );
    assert_eq!(out.code, Some(0), "{}", out.errors);
    out.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Zeek-style analysis and TShark find nothing wrong with sessions, of either version of IP.
#[test]
fn sessions_of_hosts_are_whole_in_the_eyes_of_others() {
    let scratch = Scratch::new("hosts");
    for version in ["4", "6"] {
        let (path, _) =
            hosts(&scratch, &format!("{version}.pcapng"), &["--sessions", "400", "--ip", version]);
        let rows = rows(&path);
        let of = |log: &str| rows.iter().filter(|row| row["_path"] == log).count();
        assert_eq!((of("weird"), of("gaps")), (0, 0), "IPv{version}");
        for row in rows.iter().filter(|row| row["_path"] == "conn") {
            assert_eq!(row["conn_state"], "SF", "{row}");
            assert!(row["service"].is_string(), "{row}");
        }
        for log in ["http", "smtp", "ftp", "ssh", "ssl", "dns", "files"] {
            assert!(of(log) > 30, "{} of {log}", of(log));
        }
        let established = |row: &&Value| row["_path"] == "ssl" && row["established"] == true;
        assert_eq!(rows.iter().filter(established).count(), of("ssl"));
        if !has_program("tshark", "sessions were not shown to it") {
            continue;
        }
        // Of severity 8388608 are errors. Warnings are more: TShark 4.0 knows no Ed25519 signatures of SSH.
        let wrong = "_ws.malformed || tcp.analysis.flags || _ws.expert.severity >= 8388608 || \
                     ip.checksum.status == 0 || tcp.checksum.status == 0 || udp.checksum.status == 0";
        let capture = Path::new(&path);
        assert_eq!(found(capture, wrong), 0, "IPv{version}");
        assert!(
            found(
                capture,
                "tls.handshake.type == 2 && tls.handshake.extensions.supported_version == 0x0304"
            ) > 30
        );
        assert!(found(capture, "http.response.code == 200") > 50);
    }
}

/// What the network loses is sent again; what is lost behind the tap is not, and missing bytes say so.
#[test]
fn impairments_happen_where_they_are_told_to() {
    let scratch = Scratch::new("impaired");
    let usual = ["--sessions", "200", "--mix", "http,https"];
    let impair = ["--impair", "loss=1%,reorder=1%,dup=1%"];
    let (clean, _) = hosts(&scratch, "clean.pcap", &usual);
    let (network, _) = hosts(&scratch, "network.pcap", &[&usual[..], &impair].concat());
    let behind = [&usual[..], &impair, &["--impair-at", "tap"]].concat();
    let (tap, made) = hosts(&scratch, "tap.pcap", &behind);
    let (again, _) = hosts(&scratch, "again.pcap", &behind);
    assert!(fs::read(&tap).unwrap() == fs::read(&again).unwrap(), "the seed decides every byte");

    let sum = |capture: &str, field: &str| -> u64 {
        rows(capture)
            .iter()
            .filter(|row| row["_path"] == "conn")
            .filter_map(|row| row[field].as_u64())
            .sum()
    };
    assert_eq!(sum(&clean, "capture_missed_bytes") + sum(&clean, "network_missed_bytes"), 0);
    assert_eq!(sum(&network, "capture_missed_bytes"), 0, "everything passed the tap in the end");
    assert!(sum(&tap, "capture_missed_bytes") > 10_000);
    let of = |what: &str| {
        let made = made.json();
        let left = made["left_out"]
            .as_array()
            .unwrap()
            .iter()
            .find(|left| left["what"].as_str().unwrap().starts_with(what));
        left.map_or(0, |left| left["frames"].as_u64().unwrap())
    };
    let whole = packets(Path::new(&clean)).len() as u64;
    for what in ["lost", "doubled", "late"] {
        assert!((whole / 200..whole / 50).contains(&of(what)), "{what}: {} of {whole}", of(what));
    }
    assert_eq!(packets(Path::new(&tap)).len() as u64, whole - of("lost") + of("doubled"));
}

/// On a wire, with clients on one interface and servers on another, or all on one.
#[test]
fn sessions_of_hosts_are_sent_on_one_wire_or_two() {
    let Some(bed) = Bed::up("hosts") else { return };
    bed.add_pair(1);
    let usual = ["--sessions", "60", "--n", "20", "--think", "50ms", "--seed", "3"];
    for sides in [&[][..], &["--server-interface", "tx1"]] {
        let run = Run::record(&bed, "hosts", "out.pcapng", &["-i", "rx1"]);
        let sent = netsniff(
            &bed,
            &[
                &["generate", "hosts", "-i", "tx0", "--json", "--multiplier", "4"],
                &usual[..],
                sides,
            ]
            .concat(),
        );
        let done = run.end();
        assert_eq!(sent.code, Some(0), "{}", sent.errors);
        let sent = sent.json();
        let rows = rows(done.file("out.pcapng").to_str().unwrap());
        let states: Vec<_> = rows
            .iter()
            .filter(|row| row["_path"] == "conn")
            .map(|row| row["conn_state"].as_str().unwrap())
            .collect();
        assert!(states.len() >= 60 && states.iter().all(|state| *state == "SF"), "{states:?}");
        let frames = |side: usize| sent["interfaces"][side]["frames"].as_u64();
        assert_eq!(frames(0).unwrap() + frames(1).unwrap_or(0), sent["frames"], "{sent}");
        assert_eq!(frames(1).is_some_and(|frames| frames > 100), !sides.is_empty(), "{sent}");
    }
}
