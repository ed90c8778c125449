//! `netsniff replay` on a veth pair of this machine. Needs root; says so where it is missing.

mod live_bed;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use live_bed::commands::{Captures, found, packets, replay};
use live_bed::{Bed, Run};
use netsniff_packet::decode;
use netsniff_packet::{Batch, LinkType, Progress, Source as _};
use netsniff_pcapfile::Reader;
use netsniff_testing::has_program;
use serde_json::Value;

#[test]
fn what_is_replayed_is_recorded_as_it_was() {
    let Some(bed) = Bed::up("same") else { return };
    let captures = Captures::new("same");
    // 0.4 s as recorded.
    let capture = captures.frames("in.pcap", 4_000, 100_000);
    let sent = packets(&capture);
    let ways = ["af-xdp", "tx-ring", "sendmmsg"];
    let timings: [&[&str]; 4] = [
        &[],
        &["--pps", "50000", "--keep-gaps"],
        &["--mbps", "300"],
        &["--pps", "60000", "--poisson"],
    ];
    for (number, timing) in timings.iter().enumerate() {
        let run = Run::record(&bed, &format!("same{number}"), "out.pcapng", &[]);
        let way = ways[number % ways.len()];
        // Little memory: read while it is sent.
        let memory = if number % 2 == 0 { "1G" } else { "4K" };
        let arguments = [&["--json", "--way", way, "--memory", memory], *timing].concat();
        let replayed = replay(&bed, &[&capture], &arguments);
        let done = run.end();
        let said = replayed.json();
        assert_eq!((replayed.code, &said["frames"]), (Some(0), &4_000.into()), "{said}");
        assert_eq!(said["interfaces"][0]["way"], way);
        let bytes: usize = sent.iter().map(Vec::len).sum();
        assert_eq!(said["bytes"], bytes);
        assert_eq!(said["interfaces"][0]["counted"]["tx_packets"], 4_000, "{said}");
        let came = packets(&done.file("out.pcapng"));
        assert!(came == sent, "{} of {} came, or others: {timing:?}", came.len(), sent.len());
    }
}

#[test]
fn rounds_and_limits_are_kept() {
    let Some(bed) = Bed::up("rounds") else { return };
    let captures = Captures::new("rounds");
    let capture = captures.frames("in.pcap", 100, 1_000);
    let count = |arguments: &[&str]| {
        let replayed = replay(&bed, &[&capture], &[arguments, &["--json"]].concat());
        assert_eq!(replayed.code, Some(0), "{}", replayed.errors);
        replayed.json()["frames"].as_u64().unwrap()
    };
    assert_eq!(count(&["--topspeed", "--loop", "7"]), 700);
    assert_eq!(count(&["--topspeed", "--loop", "0", "--limit", "1234"]), 1234);
    assert_eq!(count(&["--topspeed", "--loop", "3", "--memory", "100"]), 300, "read in each round");
    assert_eq!(count(&["--pps", "1", "--duration", "100ms"]), 1);
    let within = count(&["--pps", "2000", "--loop", "0", "--duration", "500ms"]);
    assert!((100..=1001).contains(&within), "{within}");
    // Two files are one, by time.
    let other = captures.frames("other.pcap", 50, 2_000);
    let both = replay(&bed, &[&capture, &other], &["--json"]);
    assert_eq!(both.json()["frames"], 150);
}

/// Clients send on one interface, servers on the other, in one order.
#[test]
fn both_sides_have_an_interface_of_their_own() {
    let Some(bed) = Bed::up("sides") else { return };
    bed.add_pair(1);
    let capture =
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/protocols.pcapng"));
    let run = Run::record(&bed, "sides", "out.pcapng", &["-i", "rx1"]);
    let arguments = ["--server-interface", "tx1", "--pps", "5000", "--json"];
    let replayed = replay(&bed, &[capture], &arguments);
    let done = run.end();
    assert_eq!(replayed.code, Some(0), "{}", replayed.errors);
    let said = replayed.json();
    let sent = packets(capture);
    let frames: Vec<u64> =
        (0..2).map(|side| said["interfaces"][side]["frames"].as_u64().unwrap()).collect();
    assert_eq!(frames.iter().sum::<u64>(), sent.len() as u64, "{said}");
    let mut by_interface = [Vec::new(), Vec::new()];
    let mut reader = Reader::new(fs::File::open(done.file("out.pcapng")).unwrap()).unwrap();
    let mut batch = Batch::default();
    loop {
        let progress = reader.read_batch(&mut batch).unwrap();
        for packet in batch.iter() {
            by_interface[packet.interface as usize].push(packet.data.to_vec());
        }
        if progress == Progress::End {
            break;
        }
    }
    assert_eq!(by_interface.each_ref().map(|side| side.len() as u64)[..], frames[..], "{said}");
    // The one client of this capture, and its servers; some of them also connect, as for FTP in active mode.
    let hosts = by_interface.each_ref().map(|side| {
        let source = |frame: &Vec<u8>| {
            let decoded = decode::packet(LinkType::ETHERNET, frame, frame.len() as u32);
            decoded.ip.map(|ip| ip.source.to_string())
        };
        side.iter().filter_map(source).collect::<BTreeSet<_>>()
    });
    assert!(hosts[0].contains("192.0.2.111") && hosts[0].is_disjoint(&hosts[1]), "{hosts:?}");
    for server in ["192.0.2.25", "192.0.2.53", "192.0.2.80"] {
        assert!(hosts[1].contains(server), "{hosts:?}");
    }
    // Each side has its packets in their order.
    for side in by_interface {
        let mut rest = sent.iter();
        assert!(side.iter().all(|frame| rest.any(|other| other == frame)));
    }
    // Where all are due at once, no answer overtakes its question: recorded by time, the order is that of the capture.
    let run = Run::record(&bed, "order", "out.pcapng", &["-i", "rx1"]);
    let fast = replay(&bed, &[capture], &["--server-interface", "tx1", "--topspeed"]);
    let done = run.end();
    assert_eq!(fast.code, Some(0), "{}", fast.errors);
    assert!(packets(&done.file("out.pcapng")) == sent, "the order of both sides");
    let twice = replay(&bed, &[capture], &["--server-interface", "tx0"]);
    assert_eq!(twice.code, Some(2), "{}", twice.errors);
}

/// How often each kind of connection of TCP and UDP stands in `conn`: all that does not depend on addresses and times.
/// Silence divides pings into several, and who asks DHCP for an address has none.
fn connections(capture: &Path) -> BTreeMap<String, usize> {
    let out = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args(["analyze", "-q", "--format", "json", "-o", "-"])
        .arg(capture)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let mut kinds = BTreeMap::new();
    for line in String::from_utf8(out.stdout).unwrap().lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        if row["_path"] == "conn" && row["proto"] != "icmp" && row["id.orig_h"] != "0.0.0.0" {
            let kind =
                ["proto", "conn_state", "history", "orig_ip_bytes", "resp_ip_bytes", "id.orig_p"];
            *kinds.entry(kind.map(|name| row[name].to_string()).join(" ")).or_default() += 1;
        }
    }
    kinds
}

/// Every host has all connections of the capture, with right checksums, and none is mixed with another's.
#[test]
fn hosts_and_rounds_have_connections_of_their_own() {
    const COPIES: usize = 12;
    let Some(bed) = Bed::up("hosts") else { return };
    let capture =
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/protocols.pcapng"));
    let once = connections(capture);
    assert!(once.len() > 50, "{once:?}");
    let expected: BTreeMap<_, _> =
        once.iter().map(|(kind, count)| (kind.clone(), count * COPIES)).collect();
    for (name, copies) in [
        ("hosts", &["--hosts", "12", "--stagger", "20ms"][..]),
        ("rounds", &["--loop", "12", "--unique-ip"]),
        ("both", &["--hosts", "4", "--loop", "3", "--unique-ip", "--memory", "64K"]),
    ] {
        let run = Run::record(&bed, name, "out.pcapng", &["--ring", "64M"]);
        let replayed = replay(&bed, &[capture], &[copies, &["--pps", "12000", "--json"]].concat());
        let done = run.end();
        let recorded = done.file("out.pcapng");
        assert_eq!(replayed.code, Some(0), "{}", replayed.errors);
        let sent = replayed.json()["frames"].as_u64().unwrap() as usize;
        let all = packets(&recorded);
        assert_eq!((all.len(), sent), (packets(capture).len() * COPIES, all.len()), "{name}");
        let came = connections(&recorded);
        for (kind, count) in &expected {
            assert_eq!(came.get(kind), Some(count), "{name}: {kind}");
        }
        assert_eq!(came.len(), expected.len(), "{name}");
    }
}

#[test]
fn what_is_changed_is_right_in_the_eyes_of_tshark() {
    if !has_program("tshark", "changed packets were not shown to it") {
        return;
    }
    let Some(bed) = Bed::up("edit") else { return };
    let capture =
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/protocols.pcapng"));
    let run = Run::record(&bed, "edit", "out.pcapng", &[]);
    let edits = [
        "--map-ip=192.0.2.0/24=172.16.5.0",
        "--map-port=80=8080",
        "--map-port=53=5353",
        "--vlan=77",
        "--src-mac=02:00:00:00:00:77",
        "--hosts=2",
        "--pps=10000",
    ];
    let replayed = replay(&bed, &[capture], &edits);
    let done = run.end();
    assert_eq!(replayed.code, Some(0), "{}", replayed.errors);
    let out = done.file("out.pcapng");
    let twice = 2 * found(capture, "frame");
    assert_eq!(found(&out, "vlan.id == 77 && eth.src == 02:00:00:00:00:77"), twice);
    let wrong = "ip.checksum.status == 0 || tcp.checksum.status == 0 || udp.checksum.status == 0 || \
                 icmp.checksum.status == 0 || icmpv6.checksum.status == 0";
    assert_eq!(found(&out, wrong), 0);
    // TShark has seen checksums, and there were packets of each kind that changes.
    assert!(found(&out, "tcp.checksum.status == 1") > 1000);
    for (before, after) in
        [("tcp.port == 80", "tcp.port == 8080"), ("udp.port == 53", "udp.port == 5353")]
    {
        let count = 2 * found(capture, before);
        assert!(count > 0 && found(&out, before) == 0, "{before}");
        assert_eq!(found(&out, after), count + 2 * found(capture, after), "{after}");
    }
    let inside = found(capture, "ip.src == 192.0.2.0/24");
    assert!(inside > 0);
    assert_eq!(found(&out, "ip.src == 172.16.5.0/24"), inside, "of the first copy");
}
