//! Stamped frames on a veth pair of this machine: `netsniff generate` and `netsniff receive`. Needs root; says so where it is missing.

mod live_bed;

use std::fs;
use std::path::Path;
use std::process::Command;

use live_bed::commands::{Ended, Scratch, ended, found, json_of, netsniff};
use live_bed::{Bed, Run};
use netsniff_packet::{Batch, LinkType, Packet, Progress, Source as _};
use netsniff_pcapfile::{PcapWriter, Reader};
use netsniff_testing::has_program;

fn generate(bed: &Bed, arguments: &[&str]) -> Ended {
    netsniff(bed, &[&["generate", "-i", "tx0", "--json"], arguments].concat())
}

/// The packets of a capture, with their times.
fn packets(path: &str) -> Vec<(i64, Vec<u8>)> {
    let mut reader = Reader::new(fs::File::open(path).unwrap()).unwrap();
    let (mut batch, mut all) = (Batch::default(), Vec::new());
    loop {
        let progress = reader.read_batch(&mut batch).unwrap();
        all.extend(batch.iter().map(|packet| (packet.timestamp.nanos(), packet.data.to_vec())));
        if progress == Progress::End {
            return all;
        }
    }
}

fn write(path: &str, packets: &[(i64, Vec<u8>)]) {
    let mut writer =
        PcapWriter::new(fs::File::create(path).unwrap(), LinkType::ETHERNET, 0).unwrap();
    for (nanos, data) in packets {
        let packet = Packet {
            timestamp: netsniff_packet::Timestamp::from_nanos(*nanos),
            data,
            wire_len: data.len() as u32,
            link_type: LinkType::ETHERNET,
            interface: 0,
        };
        writer.write_packet(&packet).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn frames_of_every_shape_arrive_by_every_way() {
    let Some(bed) = Bed::up("shapes") else { return };
    let shapes: [&[&str]; 5] = [
        &["--size", "64", "--proto", "raw"],
        &["--size", "64,1518,700", "--flows", "300"],
        &["--size", "76:1204:8", "--proto", "tcp", "--flows", "5"],
        &["--size", "84", "--ip", "6", "--poisson"],
        &["--size", "96,97", "--ip", "6", "--proto", "tcp", "--burst", "8"],
    ];
    let backends = ["af-packet", "af-packet-v2", "recvmmsg", "xdp-copy", "af-xdp"];
    for (number, shape) in shapes.iter().enumerate() {
        let way = ["af-xdp", "tx-ring", "sendmmsg"][number % 3];
        let backend = ["--backend", backends[number], "--json", "--expect", "3000"];
        let run = Run::receive(&bed, &format!("shape{number}"), &backend);
        let arguments =
            [*shape, &["--count", "3000", "--rate", "30k", "--way", way, "--stream", "7"]].concat();
        let sent = generate(&bed, &arguments);
        let done = run.wait();
        let (sent_code, sent) = (sent.code, sent.json());
        assert_eq!((sent_code, done.code), (Some(0), 0), "{sent}\n{}", done.errors);
        let came = json_of(&done);
        assert_eq!(sent["interfaces"][0]["counted"]["tx_packets"], 3000, "{sent}");
        let stream = &came["streams"][0];
        assert_eq!((&stream["run"], &stream["stream"]), (&sent["run"], &7.into()), "{came}");
        assert_eq!((&stream["received"], &stream["bytes"]), (&3000.into(), &sent["bytes"]));
        for none in ["missing", "duplicates", "out_of_order", "unknown_delays"] {
            assert_eq!(stream[none], 0, "{none}: {came}");
        }
        let delay = stream["one_way_delay"]["median_ns"].as_u64().unwrap();
        assert!((1..1_000_000_000).contains(&delay), "{delay}");
        assert_eq!((&came["other_packets"], &came["capture_lost"]), (&0.into(), &0.into()));
    }
}

/// What is lost, doubled and late between a generator and a receiver is told with its numbers.
#[test]
fn the_receiver_proves_what_is_missing() {
    let Some(bed) = Bed::up("missing") else { return };
    let scratch = Scratch::new("missing");
    let (made, changed) = (scratch.path("made.pcap"), scratch.path("changed.pcap"));
    let arguments = ["generate", "-w", &made, "--rate", "20k", "--count", "1000", "--json"];
    let written = netsniff(&bed, &arguments);
    assert_eq!(written.json()["frames"], 1000, "{}", written.errors);
    let mut frames = packets(&made);
    assert_eq!((frames.len(), frames[999].0 - frames[0].0), (1000, 999 * 50_000));
    // 3, 100 to 149 and all from 990 on are lost, 500 comes twice, 700 behind 705.
    let late = frames[700].1.clone();
    (700..705).for_each(|at| frames[at].1 = frames[at + 1].1.clone());
    frames[705].1 = late;
    frames[501].1 = frames[500].1.clone();
    let lost = |number: &usize| *number == 3 || (100..150).contains(number) || *number >= 990;
    let kept: Vec<_> =
        (0..1000).filter(|number| !lost(number)).map(|number| frames[number].clone()).collect();
    write(&changed, &kept);

    let run = Run::receive(&bed, "missing", &["--json", "--idle", "500ms", "--expect", "1000"]);
    let replayed = netsniff(&bed, &["replay", "-q", "-i", "tx0", &changed]);
    assert_eq!(replayed.code, Some(0), "{}", replayed.errors);
    let done = run.wait();
    assert_eq!(done.code, 4, "{}", done.errors);
    assert!(done.errors.contains("62 frames are missing"), "{}", done.errors);
    let came = json_of(&done);
    let stream = &came["streams"][0];
    let ranges = serde_json::json!([[3, 3], [100, 149], [501, 501], [990, 999]]);
    assert_eq!((&stream["missing"], &stream["missing_ranges"]), (&62.into(), &ranges), "{came}");
    assert_eq!((&stream["duplicates"], &stream["out_of_order"]), (&1.into(), &1.into()));
    assert_eq!(stream["received"], 939);

    // A capture of it tells the same, but for the end, which nobody knows.
    let read = netsniff(&bed, &["receive", &changed]);
    assert_eq!(read.code, Some(4));
    let line = "missing      52 of 990: 3; 100 to 149; 501\n";
    assert!(read.output.contains(line), "{}", read.output);
    fs::write(&changed, &fs::read(&changed).unwrap()[..5000]).unwrap();
    let damaged = netsniff(&bed, &["receive", &changed]);
    assert_eq!(damaged.code, Some(3), "{}", damaged.errors);
    let other = netsniff(&bed, &["receive", &made, "--port", "53"]);
    assert_eq!(other.code, Some(4));
    assert!(other.errors.contains("no stamped frame came"), "{}", other.errors);
    assert_eq!(other.output, "Without a stamp: 1000 packets\n");
}

/// The rate that is asked for, as frames, as bits, and as the gap of a link.
#[test]
fn rates_are_those_that_were_asked_for() {
    let Some(bed) = Bed::up("rates") else { return };
    for (arguments, rate) in [
        (&["--rate", "20k", "--count", "10k"][..], 20_000.0),
        // 996 bytes of each 1000 are in a capture.
        (&["--mbps", "79.68", "--size", "1000", "--count", "5k"], 10_000.0),
        // 1518 and 20 bytes at 10 Mbit/s.
        (&["--ifg", "12", "--link", "10m", "--size", "1518", "--count", "400"], 812.743),
        (&["--rate", "2", "--count", "3"], 2.0),
    ] {
        let sent = generate(&bed, &[arguments, &["--tolerance", "3"]].concat());
        assert_eq!(sent.code, Some(0), "{}", sent.errors);
        let sent = sent.json();
        let asked = sent["asked_frames_per_second"].as_f64().unwrap();
        assert!((asked / rate - 1.0).abs() < 1e-3, "{asked} for {rate}");
        let reached = sent["frames_per_second"].as_f64().unwrap();
        let slipped = sent["slipped_ns"].as_f64().unwrap() / 1e9;
        let seconds = sent["seconds"].as_f64().unwrap();
        assert!((reached / rate - 1.0).abs() < 0.03 + slipped / seconds, "{reached} for {rate}");
    }
    let run = Run::receive(&bed, "rates", &["--json", "--idle", "300ms"]);
    let fast = generate(&bed, &["--topspeed", "--duration", "200ms", "--flows", "1000"]);
    assert_eq!(fast.code, Some(0), "{}", fast.errors);
    let fast = fast.json();
    let came = json_of(&run.wait());
    assert_eq!((&came["streams"][0]["negative_delays"], &fast["stalls"]), (&0.into(), &0.into()));
    assert_eq!(fast["interfaces"][0]["counted"]["tx_packets"], fast["frames"]);
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let Some(bed) = Bed::up("mistakes") else { return };
    let said = |arguments: &[&str], code: i32, words: &str| {
        let sent = netsniff(&bed, &[&["generate"], arguments].concat());
        assert_eq!(sent.code, Some(code), "{}", sent.errors);
        assert!(sent.errors.contains(words), "{}", sent.errors);
    };
    let on = ["-i", "tx0", "--rate", "1k", "--count", "1"];
    let with = |more: &[&'static str]| [&on[..], more].concat();
    said(&with(&["--size", "63"]), 2, "UDP over IPv4 have at least 64 bytes");
    said(&with(&["--size", "75", "--proto", "tcp"]), 2, "TCP over IPv4 have at least 76 bytes");
    said(&with(&["--size", "83", "--ip", "6"]), 2, "UDP over IPv6 have at least 84 bytes");
    said(&with(&["--size", "63", "--proto", "raw"]), 2, "without IP have at least 64 bytes");
    said(&with(&["--size", "1519"]), 1, "longer than the MTU of tx0 allows (1500)");
    said(&with(&["--src-ip", "::1"]), 2, "::1 is no address of IPv4");
    said(&with(&["--mbps", "5"]), 2, "cannot be used with");
    said(&["-i", "tx0", "--ifg", "12"], 2, "--link");
    said(&["-w", "/tmp/x.pcap", "--topspeed", "--count", "1"], 2, "a file needs a rate");
    said(&["-w", "/none/x.pcap", "--rate", "1", "--count", "1"], 1, "cannot write /none/x.pcap");
    // Options without effect are refused.
    let file = ["-w", "/none/x.pcap", "--rate", "1", "--count", "1"];
    for pointless in [["--way", "tx-ring"], ["--queue", "0"], ["--cpu", "0"], ["--tolerance", "1"]]
    {
        said(&[&file[..], &pointless].concat(), 2, "--interface <IFACE>");
    }
    said(&[&file[..], &["-i", "tx0"]].concat(), 2, "to an interface (-i) or to a file (-w)");
    said(&with(&["--start", "5"]), 2, "--write <FILE>");
    for idle in [["--key", "/none"], ["--most-frames", "5"], ["--most-time", "5s"]] {
        said(&with(&idle), 2, "are for --listen");
    }
    let received = netsniff(&bed, &["receive", "/none/x.pcap", "--ring", "4M"]);
    assert_eq!(received.code, Some(2), "{}", received.errors);
    said(&["-i", "none0", "--rate", "1", "--count", "1"], 1, "there is no interface none0");
}

/// Whoever reads a capture from a pipe may have enough before its end.
#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let script = "\"$0\" generate hosts --sessions 5000 -w - 2>/dev/null | head -c 1000 >/dev/null; echo ${PIPESTATUS[0]}";
    let out = ended(Command::new("bash").args(["-c", script, env!("CARGO_BIN_EXE_netsniff")]));
    assert_eq!(out.output, "0\n");
}

#[test]
fn frames_are_right_in_the_eyes_of_tshark() {
    if !has_program("tshark", "stamped frames were not shown to it") {
        return;
    }
    let scratch = Scratch::new("tshark");
    for (name, arguments) in [
        ("udp4.pcap", &[][..]),
        ("udp6.pcapng", &["--ip", "6"]),
        ("tcp4.pcap", &["--proto", "tcp"]),
        ("tcp6.pcap", &["--proto", "tcp", "--ip", "6"]),
    ] {
        let path = scratch.path(name);
        let usual = ["generate", "-q", "-w", &path, "--size", "100,333,1518", "--flows", "9"];
        let made = ended(
            Command::new(env!("CARGO_BIN_EXE_netsniff"))
                .args(usual)
                // What begins at another time has other stamps, which TShark may take for a protocol.
                .args(["--count", "300", "--rate", "1k", "--start", "1767225600"])
                .args(arguments),
        );
        assert_eq!((made.code, made.output.as_str()), (Some(0), ""), "{}", made.errors);
        let capture = Path::new(&path);
        assert_eq!(found(capture, "frame"), 300);
        let good = "udp.checksum.status == 1 || tcp.checksum.status == 1";
        assert_eq!(found(capture, good), 300, "{name}");
        assert_eq!(found(capture, "_ws.malformed || ip.checksum.status == 0"), 0, "{name}");
    }
}
