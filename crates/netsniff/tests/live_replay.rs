//! `netsniff replay` on a veth pair of this machine. Needs root; says so where it is missing.

mod live_bed;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use live_bed::{Bed, Run};
use netsniff_capture::Interface;
use netsniff_packet::decode;
use netsniff_packet::{Batch, LinkType, Packet, Progress, Source as _, Timestamp};
use netsniff_pcapfile::{PcapWriter, Reader};
use netsniff_traffic::probe;
use serde_json::Value;

/// What a run of `replay` on tx0 came to.
struct Replayed {
    code: Option<i32>,
    output: String,
    errors: String,
}

impl Replayed {
    fn json(&self) -> Value {
        serde_json::from_str(&self.output).unwrap_or_else(|_| panic!("{}", self.errors))
    }
}

fn replay(bed: &Bed, files: &[&Path], arguments: &[&str]) -> Replayed {
    let out = Command::new("ip")
        .args(["netns", "exec", &bed.sender(), env!("CARGO_BIN_EXE_netsniff")])
        .args(["replay", "-i", "tx0"])
        .args(arguments)
        .args(files)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Replayed { code: out.status.code(), output: text(out.stdout), errors: text(out.stderr) }
}

/// Captures of a test, which go with it.
struct Captures(PathBuf);

impl Captures {
    fn new(test: &str) -> Self {
        let name = format!("netsniff-replay-{}-{test}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    /// Writes packets: when each was recorded, its bytes, and how many it had on the wire.
    fn write(&self, name: &str, link_type: LinkType, packets: &[(i64, Vec<u8>, usize)]) -> PathBuf {
        let path = self.0.join(name);
        let file = fs::File::create(&path).unwrap();
        let mut writer = PcapWriter::new(file, link_type, 0).unwrap();
        for (nanos, data, wire_len) in packets {
            let timestamp = Timestamp::from_nanos(1_700_000_000_000_000_000 + nanos);
            let wire_len = *wire_len as u32;
            let packet = Packet { timestamp, data, wire_len, link_type, interface: 0 };
            writer.write_packet(&packet).unwrap();
        }
        writer.finish().unwrap();
        path
    }

    /// Whole frames of several sizes, with so many nanoseconds between them.
    fn frames(&self, name: &str, count: u32, gap: i64) -> PathBuf {
        let packets = (0..count).map(|number| {
            let frame = probe::frame([64, 200, 1518, 90][number as usize % 4], number).unwrap();
            let len = frame.len();
            (i64::from(number) * gap, frame, len)
        });
        self.write(name, LinkType::ETHERNET, &packets.collect::<Vec<_>>())
    }
}

impl Drop for Captures {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The packets of a capture.
fn packets(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::new(fs::File::open(path).unwrap()).unwrap();
    let (mut batch, mut all) = (Batch::default(), Vec::new());
    loop {
        let progress = reader.read_batch(&mut batch).unwrap();
        all.extend(batch.iter().map(|packet| packet.data.to_vec()));
        if progress == Progress::End {
            return all;
        }
    }
}

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

#[test]
fn what_cannot_be_sent_as_it_is_is_counted_and_told() {
    let Some(bed) = Bed::up("left") else { return };
    let captures = Captures::new("left");
    let frame = |len: usize| probe::frame(len + 4, 3).unwrap();
    let some = [
        (0, frame(100), 100),
        (10, frame(60), 400),
        (20, frame(1_514), 1_514),
        (30, frame(1_515), 1_515),
        (40, vec![2; 13], 13),
        (15, frame(200), 200),
    ];
    let capture = captures.write("some.pcap", LinkType::ETHERNET, &some);
    let run = Run::record(&bed, "left", "out.pcapng", &[]);
    let padded = replay(&bed, &[&capture], &[]);
    let done = run.end();
    assert_eq!(padded.code, Some(3), "{}", padded.errors);
    for line in [
        "Sent 4 frames (2.21 kB) on tx0",
        "1 frame: left out, longer than the MTU of tx0 allows (1500)",
        "1 frame: left out, shorter than an Ethernet header",
        "1 frame: not captured whole, sent with zeroes for what is missing",
    ] {
        assert!(padded.output.contains(line), "{line}\n{}", padded.output);
    }
    let came = packets(&done.file("out.pcapng"));
    let lens: Vec<usize> = came.iter().map(Vec::len).collect();
    assert_eq!(lens, [100, 400, 1_514, 200]);
    assert_eq!((&came[1][..60], &came[1][60..]), (&some[1].1[..], &[0; 340][..]));
    assert!(padded.output.contains("1 frame: with a time before"), "{}", padded.output);

    let skipped = replay(&bed, &[&capture], &["--cut", "skip", "--json"]);
    assert_eq!((skipped.code, &skipped.json()["frames"]), (Some(3), &3.into()));
    let refused = replay(&bed, &[&capture], &["--cut", "refuse"]);
    assert_eq!((refused.code, refused.output.as_str()), (Some(1), ""));
    assert!(refused.errors.contains("packet 2 was not captured whole"), "{}", refused.errors);
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let Some(bed) = Bed::up("wrong") else { return };
    let captures = Captures::new("wrong");
    let capture = captures.frames("in.pcap", 10, 0);
    let said = |files: &[&Path], arguments: &[&str], code: i32, words: &str| {
        let replayed = replay(&bed, files, arguments);
        assert_eq!(replayed.code, Some(code), "{}", replayed.errors);
        assert!(replayed.errors.contains(words), "{}", replayed.errors);
    };
    let empty = captures.write("empty.pcap", LinkType::ETHERNET, &[]);
    said(&[&empty], &[], 1, "there is no packet to be sent");
    let raw = captures.write("raw.pcap", LinkType::RAW, &[(0, vec![0x45; 40], 40)]);
    said(&[&raw], &[], 1, "no packet could be sent: they have no Ethernet header");
    said(&[&captures.0.join("none")], &[], 1, "none: cannot open");
    said(&[&capture], &["--ignore-gaps"], 2, "the packets have all the same time");
    said(&[&capture], &["--pps", "10", "--mbps", "10"], 2, "cannot be used with");
    said(&[&capture], &["--way", "pigeon"], 2, "there is no way pigeon; there are [\"af-xdp\"");
    // No machine sends so many.
    said(
        &[&capture],
        &["--pps", "1e9", "--loop", "1000", "--tolerance", "5"],
        4,
        "the rate was off by",
    );
    bed.ip(&["link", "set", "rx0", "down"]);
    // The kernel tells the other end some time later.
    let begin = Instant::now();
    while bed.in_sender(|| Interface::find("tx0").unwrap().has_carrier) {
        assert!(begin.elapsed() < Duration::from_secs(5), "there is a carrier");
        thread::sleep(Duration::from_millis(20));
    }
    said(&[&capture], &[], 1, "tx0 has no carrier: its cable is unplugged");
    bed.ip(&["link", "set", "rx0", "up"]);
    bed.in_sender(|| {
        let down = Command::new("ip").args(["link", "set", "tx0", "down"]).status().unwrap();
        assert!(down.success());
    });
    said(&[&capture], &[], 1, "tx0 is down; `ip link set tx0 up` brings it up");
    let out = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args(["replay", "-i", "none0"])
        .arg(&capture)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(errors.contains("there is no interface none0; `ip link` lists them"), "{errors}");
}

#[test]
fn an_interface_without_ethernet_is_refused() {
    let Some(bed) = Bed::up("tun") else { return };
    let captures = Captures::new("tun");
    let capture = captures.frames("in.pcap", 10, 0);
    let made = bed.in_sender(|| {
        Command::new("ip").args(["tuntap", "add", "dev", "tun0", "mode", "tun"]).output().unwrap()
    });
    if !made.status.success() {
        let why = String::from_utf8_lossy(&made.stderr).into_owned();
        eprintln!("SKIPPED: an_interface_without_ethernet_is_refused needs a tun device: {why}");
        return;
    }
    let out = Command::new("ip")
        .args(["netns", "exec", &bed.sender(), env!("CARGO_BIN_EXE_netsniff")])
        .args(["replay", "-i", "tun0"])
        .arg(&capture)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1), "{errors}");
    assert!(errors.contains("frames can be sent on Ethernet alone"), "{errors}");
}

/// What is wrong with a capture is told once, however often it is read.
#[test]
fn damage_is_told_once() {
    let Some(bed) = Bed::up("damage") else { return };
    let captures = Captures::new("damage");
    let capture = captures.frames("in.pcap", 20, 1_000);
    let bytes = fs::read(&capture).unwrap();
    fs::write(&capture, &bytes[..bytes.len() - 7]).unwrap();
    for arguments in [&["--memory", "100", "--loop", "3", "--hosts", "2"][..], &["--loop", "3"]] {
        let replayed = replay(&bed, &[&capture], arguments);
        assert_eq!(replayed.code, Some(3), "{}", replayed.errors);
        assert_eq!(replayed.errors.matches("in.pcap").count(), 1, "{}", replayed.errors);
    }
}

/// What comes through a pipe comes but once, and so must fit.
#[test]
fn a_pipe_is_replayed_where_it_fits() {
    let Some(bed) = Bed::up("pipe") else { return };
    let captures = Captures::new("pipe");
    let capture = captures.frames("in.pcap", 20, 1_000);
    let fifo = captures.0.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let run = |arguments: &[&str]| {
        thread::scope(|scope| {
            let (from, to) = (&capture, &fifo);
            // Whoever reads may have enough before the end.
            scope.spawn(move || fs::write(to, fs::read(from).unwrap()));
            replay(&bed, &[&fifo], arguments)
        })
    };
    let whole = run(&["--json", "--loop", "2"]);
    assert_eq!((whole.code, &whole.json()["frames"]), (Some(0), &40.into()), "{}", whole.errors);
    let refused = run(&["--memory", "100"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.errors.contains("comes through a pipe exceeds --memory"), "{}", refused.errors);
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
    let twice = replay(&bed, &[capture], &["--server-interface", "tx0"]);
    assert_eq!(twice.code, Some(2), "{}", twice.errors);
}

/// The other end of the pair takes no long frames. An XDP socket loses them, and only the interface counts that; by
/// other ways the kernel says so, and they are offered again.
#[test]
fn frames_that_the_interface_loses_are_told() {
    let Some(bed) = Bed::up("lossy") else { return };
    let captures = Captures::new("lossy");
    let capture = captures.frames("in.pcap", 40, 1_000);
    bed.ip(&["link", "set", "rx0", "mtu", "1000"]);
    let run = |way: &str| {
        let replayed = replay(&bed, &[&capture], &["--way", way]);
        (replayed.code, format!("{}{}", replayed.output, replayed.errors))
    };
    let (code, said) = run("af-xdp");
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("counted 10 fewer, dropped 10"), "{said}");
    assert!(said.contains("10 frames did not get onto the wire: tx0 has not counted"), "{said}");
    assert!(said.contains("lost       10 frames, refused by the interface"), "{said}");
    for way in ["tx-ring", "sendmmsg"] {
        let (code, said) = run(way);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("Sent 2 frames") && said.contains("counted every frame"), "{said}");
        assert!(said.contains("the kernel takes no more frames for 2 s"), "{said}");
    }
}

/// Whose interface goes away gets a report of what was sent until then.
#[test]
fn an_interface_that_goes_away_ends_the_run_with_its_report() {
    let Some(bed) = Bed::up("away") else { return };
    let captures = Captures::new("away");
    let capture = captures.frames("in.pcap", 100, 1_000_000);
    thread::scope(|scope| {
        let replayed =
            scope.spawn(|| replay(&bed, &[&capture], &["--loop", "0", "--duration", "20s"]));
        thread::sleep(Duration::from_secs(1));
        bed.ip(&["link", "del", "rx0"]);
        let replayed = replayed.join().unwrap();
        assert_eq!(replayed.code, Some(1), "{}", replayed.errors);
        assert!(replayed.errors.contains("cannot send"), "{}", replayed.errors);
        assert!(replayed.output.contains("Sent "), "{}", replayed.output);
        assert!(
            replayed.output.contains("gone: what it counted is not known"),
            "{}",
            replayed.output
        );
    });
}

#[test]
fn without_the_right_to_it_the_way_to_get_it_is_told() {
    let Some(bed) = Bed::up("right") else { return };
    if Command::new("setpriv").arg("--version").output().is_err() {
        eprintln!(
            "SKIPPED: without_the_right_to_it_the_way_to_get_it_is_told needs setpriv of util-linux"
        );
        return;
    }
    let captures = Captures::new("right");
    let capture = captures.frames("in.pcap", 10, 1_000);
    let run = |capabilities: &str| {
        let out = Command::new("ip")
            .args(["netns", "exec", &bed.sender(), "setpriv", "--inh-caps", capabilities])
            .args(["--bounding-set", capabilities, env!("CARGO_BIN_EXE_netsniff")])
            .args(["replay", "-i", "tx0"])
            .arg(&capture)
            .output()
            .unwrap();
        (
            out.status.code(),
            String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned(),
        )
    };
    let (code, said) = run("-all");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("CAP_NET_RAW") && said.contains("setcap cap_net_raw+ep"), "{said}");
    let (code, said) = run("-all,+net_raw");
    assert_eq!(code, Some(0), "one right is enough: {said}");
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

/// How many packets of a capture TShark finds by a filter.
fn found(capture: &Path, filter: &str) -> usize {
    let checks = ["ip", "tcp", "udp"].map(|protocol| format!("{protocol}.check_checksum:TRUE"));
    let out = Command::new("tshark")
        .args(checks.iter().flat_map(|check| ["-o", check.as_str()]))
        .args(["-Y", filter, "-T", "fields", "-e", "frame.number", "-r"])
        .arg(capture)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).lines().count()
}

#[test]
fn what_is_changed_is_right_in_the_eyes_of_tshark() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("SKIPPED: tshark is not installed, so changed packets were not shown to it");
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
