//! `netsniff generate` and `netsniff receive` on a veth pair of this machine. Needs root; says so where it is missing.

mod live_bed;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use live_bed::{Bed, Done, Run};
use netsniff_packet::{Batch, LinkType, Packet, Progress, Source as _};
use netsniff_pcapfile::{PcapWriter, Reader};
use serde_json::Value;

/// What a command that has ended came to.
struct Ended {
    code: Option<i32>,
    output: String,
    errors: String,
}

impl Ended {
    fn json(&self) -> Value {
        serde_json::from_str(&self.output).unwrap_or_else(|_| panic!("{}", self.errors))
    }
}

fn ended(command: &mut Command) -> Ended {
    let out = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: out.status.code(), output: text(out.stdout), errors: text(out.stderr) }
}

/// netsniff at the sender's end.
fn netsniff(bed: &Bed, arguments: &[&str]) -> Ended {
    let binary = env!("CARGO_BIN_EXE_netsniff");
    ended(Command::new("ip").args(["netns", "exec", &bed.sender(), binary]).args(arguments))
}

fn generate(bed: &Bed, arguments: &[&str]) -> Ended {
    netsniff(bed, &[&["generate", "-i", "tx0", "--json"], arguments].concat())
}

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.output).unwrap_or_else(|_| panic!("{}", done.errors))
}

/// A directory of a test, which goes with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let directory =
            std::env::temp_dir().join(format!("netsniff-generate-{}-{test}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
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
        let came = json(&done);
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
    let came = json(&done);
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
    let came = json(&run.wait());
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
    said(&["-i", "none0", "--rate", "1", "--count", "1"], 1, "there is no interface none0");
}

/// Whoever reads a capture from a pipe may have enough before its end.
#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let script = "\"$0\" generate hosts --sessions 5000 -w - 2>/dev/null | head -c 1000 >/dev/null; echo ${PIPESTATUS[0]}";
    let out = ended(Command::new("bash").args(["-c", script, env!("CARGO_BIN_EXE_netsniff")]));
    assert_eq!(out.output, "0\n");
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
fn frames_are_right_in_the_eyes_of_tshark() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("SKIPPED: tshark is not installed, so stamped frames were not shown to it");
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
        if Command::new("tshark").arg("--version").output().is_err() {
            eprintln!("SKIPPED: tshark is not installed, so sessions were not shown to it");
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
    let whole = packets(&clean).len() as u64;
    for what in ["lost", "doubled", "late"] {
        assert!((whole / 200..whole / 50).contains(&of(what)), "{what}: {} of {whole}", of(what));
    }
    assert_eq!(packets(&tap).len() as u64, whole - of("lost") + of("doubled"));
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

/// A generator that waits for orders, which ends with it.
struct Listener(Child);

impl Listener {
    fn start(bed: &Bed, arguments: &[&str]) -> Self {
        let mut child = Command::new("ip")
            .args(["netns", "exec", &bed.sender(), env!("CARGO_BIN_EXE_netsniff")])
            .args(["generate", "-i", "tx0", "--listen", "127.0.0.1:7000"])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let listener = Self(child);
        let first = lines.next().unwrap().unwrap();
        assert!(first.contains("listening at 127.0.0.1:7000"), "{first}");
        std::thread::spawn(move || lines.for_each(drop));
        listener
    }

    fn end(mut self) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        assert_eq!(self.0.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ask(bed: &Bed, arguments: &[&str]) -> Ended {
    netsniff(bed, &[&["generate", "ask", "127.0.0.1:7000"], arguments].concat())
}

#[test]
fn frames_are_sent_to_the_order_of_who_has_the_key() {
    let Some(bed) = Bed::up("order") else { return };
    let scratch = Scratch::new("order");
    let keys = ["mine", "other"].map(|name| scratch.path(name));
    for key in &keys {
        fs::write(key, format!("{key} which nobody knows")).unwrap();
        fs::set_permissions(key, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let listener = Listener::start(&bed, &["--key", &keys[0], "--most-frames", "5000"]);
    let order = ["--size", "76:1204:8", "--count", "1000", "--ifg", "12", "--link", "100m"];
    let run = Run::receive(&bed, "order", &["--json", "--expect", "1000"]);
    let sent = ask(&bed, &[&["--key", keys[0].as_str()], &order[..]].concat());
    let done = run.wait();
    assert_eq!((sent.code, done.code), (Some(0), 0), "{}{}", sent.errors, done.errors);
    assert_eq!(sent.json()["frames"], 1000);
    assert_eq!(json(&done)["streams"][0]["run"], sent.json()["run"]);
    let with = |arguments: &[&str]| ask(&bed, &[&["--key", keys[0].as_str()], arguments].concat());
    for (arguments, words) in [
        (&["--size", "64", "--rate", "1k", "--count", "5001"][..], "may ask for 5,000 frames"),
        (&["--rate", "1k", "--duration", "2min"], "an order may take 60 s"),
        (&["--rate", "1k"], "an order needs --count or --duration"),
        (&["--size", "10", "--rate", "1k", "--count", "1"], "have at least 64 bytes"),
        (&["--write", "/tmp/stolen", "--count", "1"], "unexpected argument '--write'"),
    ] {
        let refused = with(arguments);
        assert_eq!(refused.code, Some(2), "{}", refused.errors);
        assert!(refused.errors.contains(words), "{}", refused.errors);
    }
    // Nobody is answered who has another key, or none.
    for key in [&["--key", keys[1].as_str()][..], &[]] {
        let nothing = ask(&bed, &[&["--wait", "300ms"], key, &order].concat());
        assert_eq!(nothing.code, Some(1), "{}", nothing.errors);
        assert!(nothing.errors.contains("no answer came"), "{}", nothing.errors);
    }
    listener.end();
    let nobody = ask(&bed, &order);
    assert!(nobody.errors.contains("nobody listens at 127.0.0.1:7000"), "{}", nobody.errors);
}

/// An order that was recorded and sent again is refused, and so are addresses that others reach where there is no key.
#[test]
fn orders_count_once() {
    let Some(bed) = Bed::up("once") else { return };
    let listener = Listener::start(&bed, &[]);
    let counter = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() + 1;
    let options = r#"{"options":["--rate","1k","--count","3"]}"#;
    let order = format!("netsniff-order/1 {counter} - {options}");
    let answers = bed.in_sender(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut room = [0; 8192];
        [order.as_str(), order.as_str(), "", "netsniff-order/1 x - {}", &order].map(|datagram| {
            socket.send_to(datagram.as_bytes(), "127.0.0.1:7000").unwrap();
            if !datagram.starts_with("netsniff-order/1 1") {
                return String::new();
            }
            let len = socket.recv(&mut room).unwrap();
            String::from_utf8_lossy(&room[..len]).into_owned()
        })
    });
    let head = format!("netsniff-answer/1 {counter} - {{");
    assert!(answers[0].starts_with(&head) && answers[0].contains("\"frames\":3"), "{answers:?}");
    for again in [&answers[1], &answers[4]] {
        assert!(again.contains("an order with this counter or a later one came before"), "{again}");
    }
    listener.end();
    let open = netsniff(&bed, &["generate", "-i", "tx0", "--listen", "0.0.0.0:7000"]);
    assert_eq!(open.code, Some(2));
    assert!(open.errors.contains("give a --key"), "{}", open.errors);
}
