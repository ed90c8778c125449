//! `netsniff collect`: exports of softflowd as nfdump reads them, losses that sequence numbers tell, and sockets.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use netsniff_packet::decode::{self, Transport};
use netsniff_packet::{Batch, LinkType, Packet, Progress, Source as _, Timestamp};
use netsniff_pcapfile::{PcapWriter, Reader};
use serde_json::Value;

use crate::generated::Folder;

/// Names of captures, and whether each has records of both directions.
const CAPTURES: [(&str, bool); 5] = [
    ("netflow5", false),
    ("netflow9", false),
    ("ipfix", false),
    ("biflow", true),
    ("sampled", false),
];

fn fixture(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/flows")).join(name)
}

fn collect(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    command.arg("collect").args(arguments).output().unwrap()
}

/// The rows of each log, out of a stream of JSON.
fn rows(json: &[u8]) -> BTreeMap<String, Vec<Value>> {
    let mut rows: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in String::from_utf8_lossy(json).lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        rows.entry(row["_path"].as_str().unwrap().to_owned()).or_default().push(row);
    }
    rows
}

fn collected(path: &Path, more: &[&str]) -> BTreeMap<String, Vec<Value>> {
    let output = collect(&[&["-q", "-o", "-", path.to_str().unwrap()], more].concat());
    assert!(output.status.success(), "{output:?}");
    rows(&output.stdout)
}

/// What one direction sent: source, destination, protocol, packets and bytes. Of ICMP there are no ports.
type Sent = (String, String, String, u64, u64);

fn of_nfdump(name: &str) -> Vec<Sent> {
    let text = std::fs::read_to_string(fixture(&format!("{name}.csv"))).unwrap();
    let mut all = Vec::new();
    for line in text.lines() {
        let columns: Vec<_> = line.split(',').collect();
        let [from, from_port, to, to_port, proto, packets, bytes] = columns[..] else {
            panic!("{line}")
        };
        let proto = proto.to_lowercase();
        let has_ports = matches!(&*proto, "tcp" | "udp");
        let end = |host: &str, port: &str| format!("{host} {}", if has_ports { port } else { "" });
        let count = |text: &str| text.parse().unwrap();
        let proto = if proto.starts_with("icmp") { "icmp".to_owned() } else { proto };
        all.push((end(from, from_port), end(to, to_port), proto, count(packets), count(bytes)));
    }
    all.sort();
    all
}

/// The same of our rows: each is one or two of them.
fn of_rows(rows: &BTreeMap<String, Vec<Value>>) -> Vec<Sent> {
    let mut all = Vec::new();
    assert_eq!(rows["conn"].len(), rows["exported"].len());
    for (conn, exported) in rows["conn"].iter().zip(&rows["exported"]) {
        assert_eq!(conn["uid"], exported["uid"]);
        let proto = conn["proto"].as_str().unwrap();
        let end = |side: &str| {
            let host = conn[&format!("id.{side}_h")].as_str().unwrap();
            let port = conn[&format!("id.{side}_p")].to_string();
            format!("{host} {}", if matches!(proto, "tcp" | "udp") { &port } else { "" })
        };
        for (from, to) in [("orig", "resp"), ("resp", "orig")] {
            let count = |name: &str| exported[&format!("{from}_{name}")].as_u64();
            if let (Some(packets), Some(octets)) = (count("pkts"), count("octets"))
                && packets > 0
            {
                all.push((end(from), end(to), proto.to_owned(), packets, octets));
            }
        }
    }
    all.sort();
    all
}

#[test]
fn flows_are_those_that_nfdump_reads() {
    for (name, has_both) in CAPTURES {
        let capture = fixture(&format!("{name}.pcap"));
        let rows = collected(&capture, &[]);
        let (ours, mut theirs) = (of_rows(&rows), of_nfdump(name));
        if has_both {
            // nfdump tells both directions in one line, of which the format of the list has the first.
            let forward = |sent: &Sent| sent.3 == 0 || ours.contains(sent);
            assert!(theirs.iter().all(forward), "{name}");
            assert_eq!(rows["conn"].len(), theirs.len(), "{name}");
            continue;
        }
        theirs.retain(|sent| sent.3 > 0);
        assert_eq!(ours, theirs, "{name}");
        let apart = collected(&capture, &["--pair", "0"]);
        assert_eq!(of_rows(&apart), theirs, "{name}");
        assert_eq!(apart["conn"].len(), theirs.len());
        assert!(rows["conn"].len() < theirs.len() * 3 / 4, "{name}: records were put together");
    }
}

#[test]
fn logs_are_chosen_and_written_as_those_of_an_analysis() {
    let capture = fixture("netflow9.pcap");
    let capture = capture.to_str().unwrap();
    let all = collected(Path::new(capture), &[]);

    let one = collect(&["-q", capture, "-o", "-", "--log", "conn", "--format", "tsv"]);
    assert!(one.status.success(), "{one:?}");
    let one = String::from_utf8(one.stdout).unwrap();
    assert!(one.lines().any(|line| line == "#path\tconn"));
    assert_eq!(one.lines().filter(|line| !line.starts_with('#')).count(), all["conn"].len());

    let iso =
        collected(Path::new(capture), &["--log", "exported,exporters", "--json-time", "iso8601"]);
    assert_eq!(iso.keys().collect::<Vec<_>>(), ["exported", "exporters"]);
    assert_eq!(iso["exported"].len(), all["exported"].len());
    assert!(iso["exported"].iter().all(|row| row["ts"].as_str().unwrap().ends_with('Z')));

    let folder = Folder::new("collect-tables");
    let tables = folder.path("tables");
    let done = collect(&["-q", capture, "-o", tables.to_str().unwrap(), "--format", "parquet"]);
    assert!(done.status.success(), "{done:?}");
    let listed = std::fs::read_to_string(tables.join("manifest.jsonl")).unwrap();
    let of = |log: &str| format!("\"rows\":{}", all[log].len());
    let listed_of =
        |log: &str| listed.lines().find(|line| line.contains(&format!("{log}.parquet")));
    for log in ["conn", "exported", "exporters"] {
        assert!(listed_of(log).unwrap().contains(&of(log)), "{log} in {listed}");
    }

    let refused = collect(&["-q", capture, "-o", "-", "--format", "parquet"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("name one log"), "{said}");
}

#[test]
fn whoever_asks_the_wrong_command_is_told_the_right_one() {
    for source in ["ipfix://:4739", "netflow://127.0.0.1"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
        let output = command.args(["analyze", source]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(&format!("netsniff collect {source}")), "{said}");
        assert_eq!(output.status.code(), Some(1), "{said}");
    }
}

#[test]
fn nothing_is_believed_that_only_an_exporter_saw() {
    for (name, _) in CAPTURES {
        let rows = collected(&fixture(&format!("{name}.pcap")), &[]);
        for row in &rows["conn"] {
            assert_eq!((&row["quality"], &row["depth"]), (&"unknown".into(), &"flows".into()));
            let is_counted = row.get("orig_pkts").is_some() || row.get("resp_pkts").is_some();
            assert_eq!(is_counted, name != "sampled", "{name}: {row}");
            assert!(row.get("history").is_none() && row.get("missed_bytes").is_none());
        }
        let books = rows["exporters"].last().unwrap();
        let lost =
            if matches!(name, "netflow9" | "sampled") { "lost_messages" } else { "lost_records" };
        assert_eq!((&books[lost], &books["restarts"]), (&0.into(), &0.into()), "{name}: {books}");
        let sampling = rows["exported"][0].get("sampling").and_then(Value::as_u64);
        assert_eq!(sampling, (name == "sampled").then_some(4), "{name}");
    }
}

/// The packets of a capture.
fn packets(path: &Path) -> Vec<(Timestamp, LinkType, Vec<u8>)> {
    let mut reader = Reader::new(std::fs::File::open(path).unwrap()).unwrap();
    let (mut batch, mut all) = (Batch::default(), Vec::new());
    loop {
        let progress = reader.read_batch(&mut batch).unwrap();
        all.extend(batch.iter().map(|it| (it.timestamp, it.link_type, it.data.to_vec())));
        if progress == Progress::End {
            return all;
        }
    }
}

fn write(path: &Path, packets: &[(Timestamp, LinkType, Vec<u8>)]) {
    let mut writer = PcapWriter::new(Vec::new(), packets[0].1, 0).unwrap();
    for (timestamp, link_type, data) in packets {
        let (timestamp, link_type, wire_len) = (*timestamp, *link_type, data.len() as u32);
        writer
            .write_packet(&Packet { timestamp, data, wire_len, link_type, interface: 0 })
            .unwrap();
    }
    std::fs::write(path, writer.finish().unwrap()).unwrap();
}

/// The message in a packet.
fn message(packet: &(Timestamp, LinkType, Vec<u8>)) -> &[u8] {
    let (_, link_type, data) = packet;
    let decoded = decode::packet(*link_type, data, data.len() as u32);
    let Transport::Udp(udp) = decoded.transport else { panic!("no datagram") };
    &data[udp.payload_offset as usize..][..udp.payload_captured as usize]
}

#[test]
fn what_is_lost_on_the_way_is_told_and_touches_what_lived_then() {
    let folder = Folder::new("collect-lost");
    for name in ["netflow5", "netflow9", "ipfix", "biflow"] {
        let capture = fixture(&format!("{name}.pcap"));
        let whole = packets(&capture);
        let all = collected(&capture, &["--pair", "0"])["conn"].len() as u64;
        for left_out in [whole.len() / 2, whole.len() - 3] {
            let mut less = whole.clone();
            less.remove(left_out);
            let path = folder.path("less.pcap");
            write(&path, &less);
            let rows = collected(&path, &["--pair", "0"]);
            let missing = all - rows["conn"].len() as u64;
            let books = rows["exporters"].last().unwrap();
            let (name_of_count, expected) =
                if name == "netflow9" { ("lost_messages", 1) } else { ("lost_records", missing) };
            assert_eq!(books[name_of_count], expected, "{name} without {left_out}: {books}");
            let touched = rows["conn"].iter().filter(|row| row["quality"] == "touched").count();
            assert!(touched > 0 && touched < rows["conn"].len(), "{name}: {touched}");
        }
    }
}

#[test]
fn messages_twice_or_in_disorder_change_no_row() {
    let folder = Folder::new("collect-disorder");
    for name in ["netflow5", "netflow9", "ipfix"] {
        let capture = fixture(&format!("{name}.pcap"));
        let expected = collected(&capture, &["--pair", "0"]);
        let mut changed = packets(&capture);
        let (at, to) = (changed.len() / 2, changed.len() / 2 + 1);
        // Stamps stay in order.
        let stamps = (changed[at].0, changed[to].0);
        changed.swap(at, to);
        (changed[at].0, changed[to].0) = stamps;
        let again = changed[at].clone();
        changed.insert(to, again);
        let path = folder.path("changed.pcap");
        write(&path, &changed);
        let rows = collected(&path, &["--pair", "0"]);
        assert_eq!(of_rows(&rows), of_rows(&expected), "{name}");
        let books = rows["exporters"].last().unwrap();
        assert_eq!(books["duplicates"], 1, "{name}: {books}");
        if name != "ipfix" {
            assert_eq!(books["late"], 1, "{name}: {books}");
        }
    }
}

#[test]
fn what_is_no_message_is_counted_and_told() {
    let folder = Folder::new("collect-noise");
    let mut noisy = packets(&fixture("netflow9.pcap"));
    let payload = noisy[3].2.len() - message(&noisy[3]).len();
    noisy[3].2[payload + 1] = 7;
    let path = folder.path("noisy.pcap");
    write(&path, &noisy);
    let output = collect(&["-o", folder.path("logs").to_str().unwrap(), path.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("1 not of version 5, 9 or 10"), "{text}");
    assert!(text.contains("1 message\n"), "{text}");
    let office = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/office.pcapng");
    let nothing = collect(&[office]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("--port"), "{nothing:?}");
}

/// Ports of this machine that nobody has.
fn free_ports() -> [u16; 2] {
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    sockets.map(|socket| socket.local_addr().unwrap().port())
}

#[test]
fn sockets_give_the_same_rows_as_captures() {
    let folder = Folder::new("collect-live");
    let [netflow, ipfix] = free_ports();
    let child = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args(["collect", "-o", folder.path("logs").to_str().unwrap(), "--format", "json"])
        .args([format!("netflow://127.0.0.1:{netflow}"), format!("ipfix://127.0.0.1:{ipfix}")])
        .args(["--duration", "30s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let mut stream = loop {
        match TcpStream::connect(("127.0.0.1", ipfix)) {
            Ok(stream) => break stream,
            Err(error) => assert!(begin.elapsed() < Duration::from_secs(20), "{error}"),
        }
        thread::sleep(Duration::from_millis(20));
    };
    for name in ["netflow5", "netflow9"] {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for packet in packets(&fixture(&format!("{name}.pcap"))) {
            socket.send_to(message(&packet), ("127.0.0.1", netflow)).unwrap();
        }
    }
    let bytes: Vec<u8> =
        packets(&fixture("ipfix.pcap")).iter().flat_map(|it| message(it).to_vec()).collect();
    for part in bytes.chunks(701) {
        stream.write_all(part).unwrap();
    }
    drop(stream);
    thread::sleep(Duration::from_millis(700));
    let signal = ["-TERM".to_owned(), child.id().to_string()];
    assert!(Command::new("kill").args(signal).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let read = |log: &str| std::fs::read_to_string(folder.path("logs").join(log)).unwrap();
    let parse = |text: String| -> Vec<Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let live: BTreeMap<_, _> = ["conn", "exported", "exporters"]
        .map(|log| (log.to_owned(), parse(read(&format!("{log}.log")))))
        .into();
    let mut expected = Vec::new();
    for name in ["netflow5", "netflow9", "ipfix"] {
        expected.extend(of_rows(&collected(&fixture(&format!("{name}.pcap")), &[])));
    }
    expected.sort();
    assert_eq!(of_rows(&live), expected);
    let last: Vec<_> = live["exporters"].iter().filter(|row| row["final"] == true).collect();
    let transports: Vec<_> = last.iter().map(|row| row["transport"].as_str().unwrap()).collect();
    assert_eq!(transports.iter().filter(|it| **it == "tcp").count(), 1, "{transports:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("dropped by sockets   0"));
}

#[test]
fn an_exporter_that_never_falls_silent_does_not_keep_a_run_from_its_end() {
    let [port, _] = free_ports();
    let begin = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args(["collect", "-q", "--duration", "1s", &format!("ipfix://127.0.0.1:{port}")])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut empty = [0; 16];
    (empty[1], empty[3]) = (10, 16);
    let mut stream = None;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("it does not end");
        }
        match &mut stream {
            None => stream = TcpStream::connect(("127.0.0.1", port)).ok(),
            Some(stream) => _ = stream.write_all(&empty),
        }
        thread::sleep(Duration::from_millis(10));
    };
    assert!(stream.is_some() && status.success(), "{status:?}");
}

#[test]
fn a_full_disk_is_said_once_and_rows_that_are_missing_are_counted() {
    let [port, _] = free_ports();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args(["collect", "-o", "-", "--pair", "0", "--duration", "3s"])
        .arg(format!("netflow://127.0.0.1:{port}"))
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let begin = Instant::now();
    for packet in packets(&fixture("netflow5.pcap")).iter().cycle() {
        if begin.elapsed() > Duration::from_millis(2500) {
            break;
        }
        let _ = socket.send_to(message(packet), ("127.0.0.1", port));
        thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.matches("No space left").count(), 1, "{said}");
    let refused = said.lines().find_map(|line| line.strip_prefix("rows not written")).unwrap();
    assert!(refused.trim().replace(',', "").parse::<u64>().unwrap() > 0, "{said}");
}
