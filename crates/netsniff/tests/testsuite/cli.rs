//! `netsniff analyze` and its kin as a user runs them: exit codes, messages, inputs, outputs.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use netsniff_packet::{Batch, LinkType, Packet, Progress, Source as _, Timestamp};
use netsniff_pcapfile::{Counters, Interface, PcapWriter, PcapngWriter, Reader, Section};
use serde_json::Value;

/// The recorded capture: 4090 packets of Ethernet, 82 TCP connections.
const OFFICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/office.pcapng");
const PACKETS: u64 = 4090;

/// A directory of its own, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let name = format!("netsniff-cli-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file and returns its path.
    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn netsniff(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Exit code, output and errors.
fn run(args: &[&str]) -> (i32, String, String) {
    outcome(netsniff(args).output().unwrap())
}

/// Options may stand before the command that they are for.
#[test]
fn a_command_behind_its_options_is_run_with_them() {
    let (code, usual, _) = run(&["info", "--json", OFFICE]);
    assert_eq!((code, run(&["--json", "info", OFFICE])), (0, (0, usual, String::new())));
    let (code, _, said) = run(&["-q", "info", OFFICE]);
    assert!(code == 2 && said.contains("'-q'") && said.contains("netsniff info"), "{code} {said}");
}

fn outcome(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().expect("ended by a signal"), text(output.stdout), text(output.stderr))
}

/// Runs with `input` on standard input.
fn run_with(args: &[&str], input: &[u8]) -> (i32, String, String) {
    let mut command = netsniff(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    outcome(child.wait_with_output().unwrap())
}

/// The logs that an analysis writes, by name. It must end with exit code 0 and without a word on
/// standard error.
fn logs(args: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let directory = Directory::new(&format!("logs-{:?}", std::thread::current().id()));
    let out = directory.path("logs");
    let (code, _, errors) = run(&[&["analyze", "-o", &out], args].concat());
    assert_eq!((code, errors.as_str()), (0, ""), "{args:?}");
    read_logs(&out)
}

fn read_logs(directory: &str) -> BTreeMap<String, Vec<u8>> {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read(entry.path()).unwrap())
    };
    fs::read_dir(directory).unwrap().map(entry).collect()
}

/// The summary as JSON.
fn summary(args: &[&str]) -> Value {
    let (code, output, errors) = run(&[&["analyze", "--json"], args].concat());
    assert!(code == 0 || code == 3, "{args:?} ended with {code}: {errors}");
    serde_json::from_str(&output).unwrap()
}

fn rows(log: &[u8]) -> usize {
    log.split(|byte| *byte == b'\n').filter(|l| !l.is_empty() && !l.starts_with(b"#")).count()
}

/// The packets of the recorded capture that `wanted` wants, by their number from 0, in classic pcap.
fn part_of_office(wanted: impl Fn(usize) -> bool) -> Vec<u8> {
    edited_office(|number, _| wanted(number))
}

/// As [`part_of_office`], where `edit` may change the bytes before it tells whether it wants them.
fn edited_office(edit: impl Fn(usize, &mut Vec<u8>) -> bool) -> Vec<u8> {
    let mut reader = Reader::new(fs::File::open(OFFICE).unwrap()).unwrap();
    let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 65_535).unwrap();
    let (mut batch, mut number) = (Batch::default(), 0);
    loop {
        let progress = reader.read_batch(&mut batch).unwrap();
        for packet in batch.iter() {
            let mut data = packet.data.to_vec();
            if edit(number, &mut data) {
                writer.write_packet(&Packet { data: &data, ..packet }).unwrap();
            }
            number += 1;
        }
        if progress == Progress::End {
            return writer.finish().unwrap();
        }
    }
}

#[test]
fn logs_do_not_depend_on_the_number_of_workers() {
    let one = logs(&[OFFICE, "-s", "0.1", "--workers", "1"]);
    for name in ["conn", "dhcp", "dns", "files", "gaps", "http", "rtt", "tcp"] {
        assert!(one.contains_key(&format!("{name}.log")), "{name}");
    }
    assert!(rows(&one["conn.log"]) > 150 && rows(&one["tcp.log"]) == 82);
    for workers in ["2", "3", "8"] {
        assert!(logs(&[OFFICE, "-s", "0.1", "--workers", workers]) == one, "{workers} workers");
    }
}

#[test]
fn packed_files_and_standard_input_are_the_same_capture() {
    let directory = Directory::new("packed");
    let plain = fs::read(OFFICE).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
    lz4.write_all(&plain).unwrap();
    let expected = logs(&[OFFICE]);
    let packed = [
        ("gzip", gzip.finish().unwrap()),
        ("zstd", zstd::encode_all(&*plain, 1).unwrap()),
        ("lz4", lz4.finish().unwrap()),
    ];
    for (name, bytes) in packed {
        // The name says nothing of the content.
        let file = directory.file("capture.txt", &bytes);
        assert!(logs(&[&file]) == expected, "{name}");
        assert_eq!(summary(&[&file])["input"]["sources"][0]["compression"][0], name);
        let out = directory.path(name);
        let (code, output, errors) = run_with(&["analyze", "-", "-o", &out], &bytes);
        assert_eq!((code, errors.as_str()), (0, ""));
        assert!(output.contains("standard input, pcapng"), "{output}");
        assert!(read_logs(&out) == expected, "{name} on standard input");
    }
}

#[test]
fn several_files_are_one_traffic() {
    let directory = Directory::new("several");
    let whole = directory.file("whole.pcap", &part_of_office(|_| true));
    let first = directory.file("first.pcap", &part_of_office(|number| number % 3 == 0));
    let second = directory.file("second.pcap", &part_of_office(|number| number % 3 != 0));
    let expected = logs(&[&whole]);
    assert!(logs(&[&second, &first]) == expected);
    assert!(logs(&["-r", &first, "-r", &second, "--workers", "2"]) == expected);
    let (_, output, _) = run(&["analyze", &first, &second]);
    assert!(output.contains("2 files,"), "{output}");
    assert!(output.contains("1364 packets") && output.contains("2726 packets"), "{output}");
}

#[test]
fn a_filter_stands_behind_f_or_behind_r() {
    let expected = logs(&[OFFICE, "-f", "tcp port 80 and host 192.0.2.11"]);
    assert!(rows(&expected["conn.log"]) > 0);
    assert!(rows(&expected["conn.log"]) < rows(&logs(&[OFFICE])["conn.log"]));
    let trailing = ["-r", OFFICE, "tcp", "port", "80", "and", "host", "192.0.2.11"];
    assert!(logs(&trailing) == expected);
    let both = ["-r", OFFICE, "-f", "tcp port 80", "host", "192.0.2.11"];
    assert!(logs(&both) == expected);
    let summary = summary(&both);
    let parts = summary["books"]["parts"].as_array().unwrap();
    let of = |name: &str| {
        let part = parts.iter().find(|part| part["name"] == name).unwrap();
        part["packets"].as_u64().unwrap()
    };
    assert!(of("analysed") > 0 && of("refused by the filter") > 0);
    assert_eq!(of("analysed") + of("refused by the filter"), PACKETS);
    assert_eq!(summary["books"]["unexplained"], 0);
    assert_eq!(summary["input"]["packets"], PACKETS);
    assert_eq!(summary["input"]["wanted_packets"], of("analysed"));
    // What was read does not depend on what is wanted.
    let all = self::summary(&[OFFICE]);
    for fact in ["wire_bytes", "captured_bytes", "first", "last"] {
        assert_eq!(summary["input"][fact], all["input"][fact], "{fact}");
    }
    assert_ne!(summary["input"]["wanted_bytes"], all["input"]["wanted_bytes"]);
}

#[test]
fn wrong_usage_ends_with_2_and_says_what_to_do() {
    for (args, expected) in [
        (&["analyze"] as &[&str], "no capture file is named"),
        (
            &["analyze", OFFICE, "-f", "tcp prt 80"],
            "found \"prt\" at column 5\n  tcp prt 80\n      ^",
        ),
        (&["analyze", "-r", OFFICE, "udp", "and", "tpc"], "column 9\n  udp and tpc\n          ^"),
        (&["analyze", "-r", OFFICE, OFFICE], "give each file a -r of its own"),
        (&["analyze", "-", "-"], "standard input (-) can be read only once"),
        (&["analyze", OFFICE, "--workers", "0"], "1 is the least"),
        (&["analyze", OFFICE, "--memory", "many"], "expected a number"),
        (&["analyze", OFFICE, "--memory", "100M", "--workers", "2"], "at least 208M"),
        (&["analyze", OFFICE, "-s", "0"], "no span of time"),
        (&["analyze", OFFICE, "-o", "-", "--json"], "would both write to standard output"),
        (
            &["analyze", OFFICE, "-o", "-", "--format", "tsv"],
            "only these can: --format json, ecs, eve, msgpack, text",
        ),
        (&["analyze", OFFICE, "--format", "json"], "--output"),
        (&["analyze", OFFICE, "--require-quality", "101"], "from 0 to 100"),
        (&["analyse"], "unrecognized subcommand"),
    ] {
        let (code, output, errors) = run(args);
        assert_eq!((code, output.as_str()), (2, ""), "{args:?}");
        assert!(errors.contains(expected), "{args:?} says {errors}");
    }
}

#[test]
fn what_is_no_capture_is_named_and_the_others_are_analysed() {
    let directory = Directory::new("refused");
    let missing = directory.path("missing.pcap");
    let folder = directory.path("");
    let empty = directory.file("empty", b"");
    let text = directory.file("notes.txt", b"Dear diary, today I captured nothing at all.");
    let xz =
        directory.file("capture.xz", b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4F\0\0\0\0\0\0\0\0\0\0\0\0\0");
    let binary = directory.file("binary", &[0xfe; 100]);
    for (path, expected) in [
        (&missing, "missing.pcap: cannot open: No such file"),
        (&folder, "a directory, not a capture file; name the files in it"),
        (&empty, "empty: the file is empty"),
        (&text, "notes.txt: a text file, not a capture"),
        (&xz, "unpack it: xz -dc"),
        (&binary, "it begins with the bytes fe fe"),
    ] {
        let (code, output, errors) = run(&["analyze", path]);
        assert_eq!((code, output.as_str()), (1, ""), "{path}");
        assert!(errors.starts_with("netsniff: ") && errors.contains(expected), "{errors}");
        let (code, output, errors) = run(&["analyze", path, OFFICE]);
        assert_eq!(code, 3, "{path} beside a good file");
        assert!(output.contains("4090 packets") && errors.contains(expected), "{errors}");
    }
    let (_, _, errors) = run(&["analyze", OFFICE, "tcp", "port", "80"]);
    assert!(errors.contains("if that is a filter, say: -f 'tcp port 80'"), "{errors}");
}

#[test]
fn damage_is_told_and_the_rest_is_analysed() {
    let directory = Directory::new("damage");
    let office = fs::read(OFFICE).unwrap();
    let cut = directory.file("cut.pcapng", &office[..office.len() / 2]);
    let mut broken = office.clone();
    let middle = broken.len() / 2;
    broken[middle..middle + 2000].fill(0xaa);
    let broken = directory.file("broken.pcapng", &broken);
    for (path, least) in [(&cut, 1500), (&broken, PACKETS - 30)] {
        let out = directory.path("logs");
        let (code, output, errors) = run(&["analyze", path, "-o", &out]);
        assert_eq!(code, 3, "{path}");
        let place = errors.strip_prefix(&format!("netsniff: {path}: packet ")).unwrap();
        assert!(place.contains(" at byte "), "{errors}");
        assert!(output.contains("  ! "), "{output}");
        assert!(rows(&read_logs(&out)["conn.log"]) > 50);
        let summary = summary(&[path]);
        let packets = summary["input"]["packets"].as_u64().unwrap();
        assert!(packets >= least && packets < PACKETS, "{packets}");
        assert_eq!(summary["books"]["unexplained"], 0);
        assert!(summary["input"]["sources"][0]["damage_count"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    for workers in ["1", "3"] {
        let mut command =
            netsniff(&["analyze", OFFICE, "-s", "1ms", "-o", "-", "--workers", workers]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut reader = BufReader::with_capacity(512, child.stdout.take().unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        drop(reader);
        let row: Value = serde_json::from_str(&line).unwrap();
        assert!(row["_path"].is_string());
        let (code, _, errors) = outcome(child.wait_with_output().unwrap());
        assert_eq!((code, errors.as_str()), (0, ""), "{workers} workers");
    }
}

#[test]
fn a_stream_has_every_row_of_every_log() {
    let (code, output, errors) = run(&["analyze", OFFICE, "-d", "-"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    let mut by_log = BTreeMap::<String, usize>::new();
    for line in output.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        *by_log.entry(format!("{}.log", row["_path"].as_str().unwrap())).or_default() += 1;
    }
    let files = logs(&[OFFICE, "--format", "json"]);
    let expected: BTreeMap<_, _> = files.iter().map(|(n, log)| (n.clone(), rows(log))).collect();
    assert_eq!(by_log, expected);
    for line in files["conn.log"].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        serde_json::from_slice::<Value>(line).unwrap();
    }
}

#[test]
fn a_gateway_has_hop_counts_one_lower() {
    let directory = Directory::new("gateway");
    // The recording is one hop away from nobody, so its IPv4 packets get three.
    let far = directory.file(
        "far.pcap",
        &edited_office(|_, frame| {
            if frame[12..14] == [8, 0] {
                frame[22] -= 3;
                let checksum = u16::from_be_bytes([frame[24], frame[25]]);
                let (sum, carry) = checksum.overflowing_add(0x0300);
                frame[24..26].copy_from_slice(&(sum + u16::from(carry)).to_be_bytes());
            }
            true
        }),
    );
    let hops = |args: &[&str]| -> BTreeMap<u64, usize> {
        let args = [args, &[&far, "--format", "json"]].concat();
        let log = logs(&args).remove("tcp.log").unwrap();
        let mut hops = BTreeMap::new();
        for line in std::str::from_utf8(&log).unwrap().lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            if row["id.resp_h"].as_str().unwrap().contains('.') {
                *hops.entry(row["orig_hops"].as_u64().unwrap()).or_default() += 1;
            }
        }
        hops
    };
    let (plain, gateway) = (hops(&[]), hops(&["-g"]));
    assert!(plain[&3] > 20, "{plain:?}");
    assert_eq!((plain.len(), gateway.len(), plain[&3]), (1, 1, gateway[&2]));
}

/// One small packet of an interface.
fn packet(number: i64, interface: u32, link_type: LinkType, data: &[u8]) -> Packet<'_> {
    let timestamp = Timestamp::from_secs_nanos(1_700_000_000 + number, 0);
    Packet { timestamp, data, wire_len: data.len() as u32, link_type, interface }
}

/// An Ethernet frame with IPv4 and UDP, without payload.
fn udp_frame() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    frame.extend([0x13, 0x88, 0, 53, 0, 8, 0, 0]);
    frame
}

#[test]
fn a_link_type_that_is_not_supported_is_told_and_the_rest_goes_on() {
    let directory = Directory::new("usb");
    let mut writer = PcapngWriter::new(Vec::new(), &Section::default()).unwrap();
    let mut usb = Interface::new(LinkType::USB_LINUX, 0);
    usb.name = Some("usb\x1b[2Jmon\n1".to_owned());
    writer.add_interface(&usb).unwrap();
    writer.add_interface(&Interface::new(LinkType::ETHERNET, 0)).unwrap();
    let frame = udp_frame();
    for number in 0..3 {
        writer.write_packet(&packet(number, 0, LinkType::USB_LINUX, &[0; 64])).unwrap();
        writer.write_packet(&packet(number, 1, LinkType::ETHERNET, &frame)).unwrap();
    }
    let file = directory.file("usb.pcapng", &writer.finish().unwrap());
    let (code, output, _) = run(&["analyze", &file]);
    assert_eq!(code, 0);
    // The sentence is wrapped at 80 columns.
    let words = output.split_whitespace().collect::<Vec<_>>().join(" ");
    let name = r"usb\x1b[2Jmon\x0a1";
    let expected = format!("link type 189 (USB_LINUX) not supported: interface {name} of {file}");
    assert!(words.contains(&expected) && words.contains("3 packets not analysed"), "{output}");
    let summary = summary(&[&file]);
    assert_eq!(summary["books"]["parts"][0]["packets"], 3);
    assert_eq!(summary["books"]["parts"][2]["packets"], 3);
    assert_eq!(summary["books"]["unexplained"], 0);
    assert_eq!(summary["flows"]["total"], 1);
    let (code, _, errors) = run(&["analyze", &file, "-q"]);
    assert_eq!((code, errors), (0, format!("netsniff: {expected}, 3 packets not analysed\n")));
}

#[test]
fn quality_below_what_is_required_ends_with_4() {
    let directory = Directory::new("quality");
    let capture = |counters: Option<Counters>| {
        let mut writer = PcapngWriter::new(Vec::new(), &Section::default()).unwrap();
        writer.add_interface(&Interface::new(LinkType::ETHERNET, 0)).unwrap();
        let frame = udp_frame();
        for number in 0..9 {
            writer.write_packet(&packet(number, 0, LinkType::ETHERNET, &frame)).unwrap();
        }
        if let Some(counters) = counters {
            let end = Timestamp::from_secs_nanos(1_700_000_100, 0);
            writer.write_counters(0, end, &counters).unwrap();
        }
        writer.finish().unwrap()
    };
    let dropped = Counters { dropped_by_os: Some(1), ..Counters::NONE };
    let lossy = directory.file("lossy.pcapng", &capture(Some(dropped)));
    let (code, _, errors) = run(&["analyze", "-q", &lossy, "--require-quality", "91"]);
    assert_eq!(code, 4);
    assert!(errors.contains("the capture lost 1 of 10 packets"), "{errors}");
    assert_eq!(run(&["analyze", "-q", &lossy, "--require-quality", "90"]).0, 0);
    let (_, output, _) = run(&["analyze", &lossy]);
    let line = |name: &str| output.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(line("lost by the capturing system").ends_with(" 1"), "{output}");
    assert!(line("lost by the interface").ends_with(" unavailable"), "{output}");

    let silent = directory.file("silent.pcapng", &capture(None));
    let (code, _, errors) = run(&["analyze", "-q", &silent, "--require-quality", "1"]);
    assert!(code == 4 && errors.contains("no drop counter tells"), "{errors}");

    assert_eq!(run(&["analyze", "-q", OFFICE, "--require-quality", "100"]).0, 0);
    // Every fifth packet is missing, as if the capture had dropped it.
    let holes = directory.file("holes.pcap", &part_of_office(|number| number % 5 != 0));
    let (code, _, errors) = run(&["analyze", "-q", &holes, "--require-quality", "99"]);
    assert!(code == 4 && errors.contains("TCP connections that would show a loss"), "{errors}");
    // What the snaplen cut off was seen; a SYN-ACK that was not is missing, though it has no bytes.
    let cut = directory.file(
        "cut.pcap",
        &edited_office(|_, data| {
            data.truncate(90);
            true
        }),
    );
    assert_eq!(run(&["analyze", "-q", &cut, "--require-quality", "100"]).0, 0);
    let is_syn_ack = |data: &[u8]| data.get(23) == Some(&6) && data.get(47) == Some(&0x12);
    let unanswered = directory.file("unanswered.pcap", &edited_office(|_, data| !is_syn_ack(data)));
    let (code, _, errors) = run(&["analyze", "-q", &unanswered, "--require-quality", "90"]);
    assert!(code == 4 && errors.contains("are touched and 0 suspect"), "{errors}");
}

#[test]
fn a_bound_that_is_reached_is_told() {
    let args = ["--max-flows", "10", "--workers", "1"];
    let summary = summary(&[&[OFFICE], &args[..]].concat());
    let ends = summary["flows"]["by_end"].as_array().unwrap();
    let evicted = ends.iter().find(|end| end["name"] == "evicted").unwrap();
    assert!(evicted["count"].as_u64().unwrap() > 50, "{evicted}");
    let note = summary["notes"][0].as_str().unwrap();
    assert!(note.starts_with("the bound of 10 flows or"), "{note}");
    let conn = logs(&[&[OFFICE], &args[..]].concat()).remove("conn.log").unwrap();
    assert_eq!(rows(&conn) as u64, summary["flows"]["total"].as_u64().unwrap());
}

#[test]
fn the_summary_agrees_with_the_logs_and_fits_80_columns() {
    let (code, output, errors) = run(&["analyze", OFFICE]);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(output.lines().all(|line| line.chars().count() <= 80), "{output}");
    assert!(!output.contains('\x1b'), "colours only on a terminal");
    let summary = summary(&[OFFICE]);
    assert_eq!(summary["input"]["packets"], PACKETS);
    assert_eq!(summary["books"]["read"], PACKETS);
    assert_eq!(summary["books"]["unexplained"], 0);
    let conn = logs(&[OFFICE]).remove("conn.log").unwrap();
    assert_eq!(summary["flows"]["total"], rows(&conn));
    assert_eq!(summary["tcp"]["connections"], 82);
    assert_eq!(summary["input"]["sources"][0]["interfaces"][0]["dropped_by_interface"], 0);
    assert_eq!(summary["input"]["sources"][0]["interfaces"][0]["dropped_by_os"], Value::Null);
}

#[test]
fn the_summary_does_not_depend_on_the_number_of_workers() {
    let of = |workers: &str| {
        let mut summary = summary(&[OFFICE, "--workers", workers]);
        // Time passes, and the peaks of several workers are bounds.
        summary["input"]["elapsed_seconds"].take();
        summary["flows"]["peak"].take();
        summary["flows"]["peak_bytes"].take();
        summary
    };
    let one = of("1");
    for workers in ["2", "3", "8"] {
        assert_eq!(of(workers), one, "{workers} workers");
    }
}

#[test]
fn talkers_and_connections_are_those_of_the_conn_log() {
    let conn = logs(&[OFFICE, "--format", "json"]).remove("conn.log").unwrap();
    let mut talkers = BTreeMap::<String, [u64; 2]>::new();
    let mut largest = 0;
    for line in std::str::from_utf8(&conn).unwrap().lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let bytes = |name: &str| row[name].as_u64().unwrap();
        let (forth, back) = (bytes("orig_ip_bytes"), bytes("resp_ip_bytes"));
        for (end, sent, received) in [("id.orig_h", forth, back), ("id.resp_h", back, forth)] {
            let talker = talkers.entry(row[end].as_str().unwrap().to_owned()).or_default();
            talker[0] += sent;
            talker[1] += received;
        }
        largest = largest.max(forth + back);
    }
    let summary = summary(&[OFFICE]);
    let told = summary["talkers"].as_array().unwrap();
    assert!(told.len() >= 5, "{told:?}");
    for talker in told {
        let bytes = [&talker["sent_bytes"], &talker["received_bytes"]];
        assert_eq!(
            talkers[talker["address"].as_str().unwrap()].map(Value::from),
            bytes.map(Value::clone)
        );
    }
    let most = talkers.values().map(|[sent, received]| sent + received).max().unwrap();
    let first = &told[0];
    assert_eq!(
        first["sent_bytes"].as_u64().unwrap() + first["received_bytes"].as_u64().unwrap(),
        most
    );
    assert_eq!(summary["connections"][0]["bytes"], largest);
}

#[test]
fn an_output_that_cannot_be_written_is_our_failure() {
    let directory = Directory::new("blocked");
    let file = directory.file("file", b"");
    let (code, _, errors) = run(&["analyze", OFFICE, "-o", &file]);
    assert!(code == 1 && errors.contains("cannot make the directory"), "{errors}");
    if Path::new("/dev/full").exists() {
        for workers in ["1", "2"] {
            let mut command = netsniff(&["analyze", OFFICE, "-o", "-", "--workers", workers]);
            let full = fs::File::options().write(true).open("/dev/full").unwrap();
            let (code, _, errors) = outcome(command.stdout(full).output().unwrap());
            assert_eq!(code, 1);
            assert!(errors.contains("cannot write standard output: No space left"), "{errors}");
        }
    }
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, output, errors) = run(&["completions", shell]);
        assert_eq!((code, errors.as_str()), (0, ""), "{shell}");
        assert!(output.contains("require-quality"), "{shell}");
    }
}

#[test]
fn every_command_has_a_page() {
    let pages = crate::generated::Folder::new("man");
    let directory = pages.path("man1");
    let (code, _, errors) = run(&["man", "-o", directory.to_str().unwrap()]);
    assert_eq!((code, errors.as_str()), (0, ""));
    let mut names: Vec<_> =
        fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert!(names.len() > 25, "{names:?}");
    for path in &names {
        let page = fs::read_to_string(path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(page.contains(&format!(".TH {name} 1 ")), "{name}");
        let words: Vec<_> = name.split('-').skip(1).collect();
        let (code, printed, _) = run(&[&["man"][..], &words].concat());
        assert_eq!((code, printed), (0, page), "{name}");
        let arguments = ["-Kutf8", "-man", "-ww", "-z", path.to_str().unwrap()];
        if let Some(groff) = crate::generated::run("groff", &arguments) {
            let said = String::from_utf8_lossy(&groff.stderr).into_owned();
            assert_eq!(said, "", "{name}");
        }
    }
    let (code, _, errors) = run(&["man", "doctor", "tun"]);
    assert_eq!((code, errors.as_str()), (2, "netsniff: netsniff-doctor has no command tun\n"));
}
