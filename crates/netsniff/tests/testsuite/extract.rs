//! `netsniff extract`: what was carved gives the same rows again, and holds what the input told of it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use netsniff_packet::{Batch, LinkType, Packet, Progress, Source as _, Timestamp, decode};
use netsniff_pcapfile::{Counters, Interface, PcapWriter, PcapngWriter, Reader, Section};
use netsniff_testing::has_program;
use netsniff_testing::log::{self, Row};

use crate::generated::Folder;
use crate::zeek::corpus::captures;

fn netsniff(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netsniff")).args(arguments).output().unwrap()
}

fn extract(input: &Path, output: &Path, arguments: &[&str]) -> Output {
    let words = ["extract", input.to_str().unwrap(), "-w", output.to_str().unwrap()];
    netsniff(&[&words, arguments].concat())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded").join(name)
}

/// The rows of a log of an analysis.
fn rows(capture: &Path, logs: &Path, log: &str) -> Vec<Row> {
    let _ = fs::remove_dir_all(logs);
    netsniff(&["analyze", "-q", capture.to_str().unwrap(), "-o", logs.to_str().unwrap()]);
    log::read(&logs.join(format!("{log}.log"))).unwrap()
}

/// Stamps of all packets, in order, and how many of them are fragments.
fn packets(path: &Path) -> (Vec<i64>, usize) {
    let mut reader = Reader::new(File::open(path).unwrap()).unwrap();
    let (mut stamps, mut fragments, mut batch) = (Vec::new(), 0, Batch::default());
    loop {
        let progress = reader.read_batch(&mut batch).unwrap();
        for packet in batch.iter() {
            stamps.push(packet.timestamp.nanos());
            let decoded = decode::packet(packet.link_type, packet.data, packet.wire_len);
            fragments += usize::from(decoded.ip.is_some_and(|ip| ip.fragment.is_some()));
        }
        if progress == Progress::End {
            return (stamps, fragments);
        }
    }
}

fn packets_of(row: &Row) -> usize {
    ["orig_pkts", "resp_pkts"].map(|column| row[column].parse().unwrap_or(0)).iter().sum()
}

/// What came back of the rows of a capture.
#[derive(Debug, Default)]
struct Tally {
    rows: usize,
    same: usize,
    /// Rows without what only another connection tells: that it is one for data.
    without_service: usize,
    /// Rows by another uid: their tunnel begins elsewhere, or their first packet came late or with others.
    renamed: Vec<String>,
    wrong: Vec<String>,
}

impl Tally {
    /// Compares up to `most` rows of a capture with those of their own packets.
    fn add(&mut self, capture: &Path, scratch: &Folder, most: usize) {
        let all = rows(capture, &scratch.path("all"), "conn");
        let (output, logs) = (scratch.path("one.pcapng"), scratch.path("one"));
        for row in all.iter().step_by((all.len() / most).max(1)) {
            let (uid, name) = (row["uid"].as_str(), capture.display());
            let run = extract(capture, &output, &["--uid", uid, "-q"]);
            self.rows += 1;
            if !matches!(run.status.code(), Some(0 | 3)) {
                self.wrong.push(format!("{name} {uid}: {}", said(&run)));
                continue;
            }
            let (stamps, fragments) = packets(&output);
            let is_count_right =
                stamps.len() == packets_of(row) || fragments > 0 && stamps.len() > packets_of(row);
            let again = rows(&output, &logs, "conn");
            match again.iter().find(|other| other["uid"] == uid) {
                _ if !is_count_right => {
                    self.wrong.push(format!("{name} {uid}: {} packets of {row:?}", stamps.len()));
                }
                Some(other) if other == row => self.same += 1,
                Some(other) if is_data(row) && differs_only(other, row, "service") => {
                    self.without_service += 1;
                }
                Some(other) => self.wrong.push(format!("{name}: {other:?} for {row:?}")),
                None if row["tunnel_parents"] != "-" || begins_late(capture, stamps[0]) => {
                    self.renamed.push(format!("{name} {uid} {}", row["tunnel_parents"]));
                }
                None => self.wrong.push(format!("{name} {uid}: another uid without a reason")),
            }
        }
    }
}

/// Whether a packet came no later, by its stamp, than one before it: its engine time or its number at that time
/// depends on others.
fn begins_late(capture: &Path, stamp: i64) -> bool {
    let (stamps, _) = packets(capture);
    let at = stamps.iter().position(|it| *it == stamp).unwrap();
    stamps[..at].iter().any(|earlier| *earlier > stamp)
        || stamps.iter().filter(|it| **it == stamp).count() > 1
}

/// Whether another connection told what this one is for.
fn is_data(row: &Row) -> bool {
    ["ftp-data", "irc-dcc-data"].iter().any(|service| row["service"].contains(service))
}

fn differs_only(one: &Row, other: &Row, column: &str) -> bool {
    one.iter().filter(|(name, cell)| other[*name] != **cell).all(|(name, _)| name == column)
}

#[test]
fn what_is_extracted_of_a_recording_gives_the_same_row() {
    let scratch = Folder::new("extract-rows");
    let mut tally = Tally::default();
    for name in ["office.pcapng", "protocols.pcapng"] {
        tally.add(&fixture(name), &scratch, 12);
    }
    eprintln!("{tally:?}");
    assert!(tally.wrong.is_empty() && tally.renamed.len() <= 1, "{tally:#?}");
    let same = tally.same + tally.without_service;
    assert!(tally.rows >= 20 && same + tally.renamed.len() == tally.rows, "{tally:#?}");
}

#[test]
fn what_is_extracted_of_the_corpus_gives_the_same_rows() {
    let Some(captures) = captures("rows were not extracted and compared") else { return };
    let scratch = Folder::new("extract-corpus");
    let mut tally = Tally::default();
    for capture in captures.iter().filter(|it| it.path.metadata().unwrap().len() < 3 << 20) {
        tally.add(&capture.path, &scratch, 4);
    }
    let renamed = tally.renamed.len();
    eprintln!(
        "{} rows, {} the same, {renamed} renamed: {:#?}",
        tally.rows, tally.same, tally.renamed
    );
    assert!(tally.wrong.is_empty(), "{:#?}", tally.wrong);
    assert!(tally.rows >= 150 && renamed * 20 <= tally.rows, "{tally:#?}");
}

/// Packets of several connections come in their order, each with the uid of its own.
#[test]
fn comments_tell_the_uid_of_each_packet() {
    if !has_program("tshark", "comments of extracted packets were not read by another program") {
        return;
    }
    let scratch = Folder::new("extract-comments");
    let all = rows(&fixture("office.pcapng"), &scratch.path("all"), "conn");
    // Of datagrams that come in fragments, a row counts each once.
    let whole: Vec<&Row> = all.iter().filter(|row| row["proto"] == "tcp").collect();
    let chosen: Vec<&Row> = whole.iter().step_by(whole.len() / 5).take(5).copied().collect();
    let uids: Vec<_> = chosen.iter().map(|row| row["uid"].as_str()).collect();
    let output = scratch.path("out.pcapng");
    let run = extract(&fixture("office.pcapng"), &output, &["--uid", &uids.join(",")]);
    assert!(run.status.success(), "{}", said(&run));
    let fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "frame.comment"];
    let run = Command::new("tshark").arg("-r").arg(&output).args(fields).output().unwrap();
    let text = String::from_utf8(run.stdout).unwrap();
    let mut counts = BTreeMap::<&str, usize>::new();
    for line in text.lines() {
        let (_, comment) = line.split_once('\t').unwrap();
        *counts.entry(comment.strip_prefix("uid=").unwrap()).or_default() += 1;
    }
    let expected = chosen.iter().map(|row| (row["uid"].as_str(), packets_of(row))).collect();
    assert_eq!(counts, expected);
    assert!(packets(&output).0.is_sorted());
}

#[test]
fn conditions_are_combined() {
    let scratch = Folder::new("extract-conditions");
    let (office, output) = (fixture("office.pcapng"), scratch.path("out.pcapng"));
    let all = rows(&office, &scratch.path("all"), "conn");
    let row = all.iter().max_by_key(|row| packets_of(row)).unwrap();
    let count = |arguments: &[&str]| {
        let run = extract(&office, &output, arguments);
        assert!(run.status.success(), "{}", said(&run));
        packets(&output).0
    };
    let uid = row["uid"].as_str();
    let stamps = count(&["-u", uid]);
    let like = all.iter().filter(|it| it["community_id"] == row["community_id"]);
    let packets_of_like: usize = like.map(packets_of).sum();
    assert_eq!(count(&["--community-id", &row["community_id"]]).len(), packets_of_like);
    let middle = stamps[stamps.len() / 2];
    let time = format!("{}.{:09}", middle / 1_000_000_000, middle % 1_000_000_000);
    let before = count(&["-u", uid, "--to", &time]);
    let behind = count(&["-u", uid, "--from", &time]);
    assert_eq!([before, behind].concat(), stamps);
    let source = row["id.orig_h"].as_str();
    let sent = count(&["-u", uid, "-f", &format!("src host {source}")]);
    assert_eq!(sent.len().to_string(), row["orig_pkts"]);
    let other = all.iter().find(|it| it["community_id"] != row["community_id"]).unwrap();
    let none = extract(&office, &output, &["-u", uid, "--community-id", &other["community_id"]]);
    assert_eq!(none.status.code(), Some(1), "{}", said(&none));
    assert_eq!(packets(&output).0.len(), 0, "the file is there, without packets");
}

#[test]
fn a_file_brings_the_connections_that_carried_it() {
    let scratch = Folder::new("extract-files");
    let (office, output) = (fixture("office.pcapng"), scratch.path("out.pcapng"));
    let files = rows(&office, &scratch.path("all"), "files");
    let file = files.iter().find(|row| row["source"] == "HTTP").unwrap();
    let run = extract(&office, &output, &["--fuid", &file["fuid"], "--json"]);
    assert!(run.status.success(), "{}", said(&run));
    let again = rows(&output, &scratch.path("again"), "files");
    assert!(again.iter().any(|row| row == file), "{again:#?}");
    let conn = rows(&output, &scratch.path("again"), "conn");
    assert!(conn.iter().all(|row| row["uid"] == file["uid"]), "{conn:#?}");
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(report["packets_written"], packets_of(&conn[0]));
    let run = extract(&office, &output, &["--fuid", "F00000000000000001"]);
    assert_eq!(run.status.code(), Some(1));
    assert!(said(&run).contains("F00000000000000001: it is not in the input"), "{}", said(&run));
}

/// The packets of all rows that meet a condition, and of no others.
#[test]
fn a_condition_on_rows_chooses_connections() {
    let scratch = Folder::new("extract-where");
    let (office, output) = (fixture("office.pcapng"), scratch.path("out.pcapng"));
    let all = rows(&office, &scratch.path("all"), "conn");
    let number = |row: &Row, column: &str| row[column].parse::<f64>().unwrap_or(f64::NAN);
    let is_meant = |row: &&Row| {
        row["proto"] == "tcp"
            && number(row, "id.resp_p") < 1000.0
            && number(row, "orig_bytes") > 100.0
    };
    let expected: usize = all.iter().filter(is_meant).map(packets_of).sum();
    let condition = "proto = 'tcp' AND id.resp_p < 1000 AND orig_bytes > 100";
    let run = extract(&office, &output, &["--where", condition]);
    assert!(run.status.success(), "{}", said(&run));
    assert!(expected > 0 && all.iter().map(packets_of).sum::<usize>() > expected);
    assert_eq!(packets(&output).0.len(), expected);
    let again = rows(&output, &scratch.path("again"), "conn");
    assert_eq!(again.len(), all.iter().filter(is_meant).count());
    let run = extract(&office, &output, &["--where", "id.resp_port = 443"]);
    assert_eq!(run.status.code(), Some(2));
    assert!(said(&run).contains("--where: conn has no column \"id.resp_port\""), "{}", said(&run));
}

/// Two interfaces of two link types, with a loss and counters; frames of two hosts in turn.
fn two_interfaces(path: &Path) {
    let mut writer = PcapngWriter::new(File::create(path).unwrap(), &Section::default()).unwrap();
    for (name, link_type) in [("eth7", LinkType::ETHERNET), ("raw", LinkType::RAW)] {
        let interface = Interface { name: Some(name.to_owned()), ..Interface::new(link_type, 900) };
        writer.add_interface(&interface).unwrap();
    }
    let host = |last| netsniff_traffic::frame::Host::new([192, 0, 2, last].into(), 5000);
    for number in 0..20_u32 {
        let interface = number % 2;
        let from = host(1 + interface as u8);
        let frame = netsniff_traffic::frame::udp_frame(&from, &host(9), 1, b"text").unwrap();
        let data = if interface == 0 { &frame[..] } else { &frame[14..] };
        let packet = Packet {
            timestamp: Timestamp::from_nanos(1_700_000_000_000_000_000 + i64::from(number) * 1000),
            data,
            wire_len: data.len() as u32,
            link_type: if interface == 0 { LinkType::ETHERNET } else { LinkType::RAW },
            interface,
        };
        if number == 10 {
            writer.write_packet_after_loss(&packet, 33).unwrap();
        } else {
            writer.write_packet(&packet).unwrap();
        }
    }
    let counters = Counters { received: Some(70), dropped_by_os: Some(33), ..Counters::NONE };
    writer.write_counters(0, Timestamp::from_nanos(1_700_000_001_000_000_000), &counters).unwrap();
    writer.finish().unwrap().flush().unwrap();
}

fn info(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&netsniff(&["info", "--json", path.to_str().unwrap()]).stdout).unwrap()
}

#[test]
fn interfaces_counters_and_losses_are_carried_over() {
    let scratch = Folder::new("extract-interfaces");
    let (input, output) = (scratch.path("in.pcapng"), scratch.path("out.pcapng"));
    two_interfaces(&input);
    let run = extract(&input, &output, &["-f", "host 192.0.2.2"]);
    assert!(run.status.success(), "{}", said(&run));
    let (before, after) = (info(&input), info(&output));
    assert_eq!((&before["packets"], &after["packets"]), (&20.into(), &10.into()));
    for number in 0..2 {
        let (before, after) = (&before["interfaces"][number], &after["interfaces"][number]);
        for fact in ["name", "link_type", "snaplen", "received", "dropped_by_os"] {
            assert_eq!(before[fact], after[fact], "{fact}");
        }
    }
    let mut reader = Reader::new(File::open(&output).unwrap()).unwrap();
    let mut batch = Batch::default();
    reader.read_batch(&mut batch).unwrap();
    let lost: Vec<_> = batch.losses.iter().map(|(at, loss)| (*at, loss.packets)).collect();
    assert_eq!(lost.first(), Some(&(5, 33)), "before the packet behind the hole");
    // One interface alone fits pcap, both do not.
    let pcap = scratch.path("out.pcap");
    let run = extract(&input, &pcap, &["-f", "host 192.0.2.2"]);
    assert!(run.status.success() && said(&run).contains("without uids"), "{}", said(&run));
    assert_eq!((info(&pcap)["packets"].as_u64(), packets(&pcap).0), (Some(10), packets(&output).0));
    let run = extract(&input, &scratch.path("both.pcap"), &[]);
    assert_eq!(run.status.code(), Some(1));
    assert!(said(&run).contains("one link type; write pcapng, which can"), "{}", said(&run));
    assert!(!scratch.path("both.pcap").exists(), "half a file was left");
}

#[test]
fn several_files_and_folders_are_one_input() {
    let scratch = Folder::new("extract-folder");
    let office = fs::read(fixture("office.pcapng")).unwrap();
    let row = rows(&fixture("office.pcapng"), &scratch.path("all"), "conn").swap_remove(3);
    let captures = scratch.path("captures");
    fs::create_dir(&captures).unwrap();
    fs::write(captures.join("b.pcapng"), &office).unwrap();
    fs::write(captures.join("notes.txt"), "no capture").unwrap();
    two_interfaces(&captures.join("a.pcapng"));
    let output = scratch.path("out.pcapng");
    let run = extract(&captures, &output, &["-u", &row["uid"]]);
    assert!(run.status.success(), "{}", said(&run));
    assert_eq!(packets(&output).0.len(), packets_of(&row));
    let empty = scratch.path("empty");
    fs::create_dir(&empty).unwrap();
    let run = extract(&empty, &output, &[]);
    assert_eq!(run.status.code(), Some(2));
    assert!(said(&run).contains("no capture in it: names end in"), "{}", said(&run));
}

#[test]
fn standard_input_is_read_once() {
    let scratch = Folder::new("extract-stdin");
    let office = fixture("office.pcapng");
    let row = rows(&office, &scratch.path("all"), "conn").swap_remove(3);
    let run = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args(["extract", "-", "-w", "-", "-u", &row["uid"]])
        .stdin(Stdio::from(File::open(&office).unwrap()))
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", said(&run));
    let output = scratch.path("out.pcapng");
    fs::write(&output, run.stdout).unwrap();
    assert_eq!(packets(&output).0.len(), packets_of(&row));
    let run = netsniff(&["extract", "-", "-w", "-", "--fuid", "F00000000000000001"]);
    assert_eq!(run.status.code(), Some(2));
    assert!(said(&run).contains("write it to a file first"), "{}", said(&run));
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    let scratch = Folder::new("extract-refused");
    let office = fixture("office.pcapng");
    let output = scratch.path("out.pcapng");
    for (arguments, why) in [
        (&["-u", "CHhAvVGS1DHFjwGM9"][..], "not an identifier of netsniff"),
        (&["-u", "F00000000000000001"], "it names a file: use --fuid"),
        (&["--fuid", "C00000000000000001"], "it names a connection: use --uid"),
        (&["--community-id", "2:abc"], "no Community ID of version 1"),
        (&["--from", "yesterday"], "is no point in time"),
        (&["--from", "2", "--to", "1"], "--from is not before --to"),
        (&["-f", "prot 80"], "filter:"),
    ] {
        let run = extract(&office, &output, arguments);
        assert_eq!(run.status.code(), Some(2), "{arguments:?}");
        assert!(said(&run).contains(why), "{arguments:?}: {}", said(&run));
        assert!(!output.exists());
    }
    let run = extract(&office, &office, &[]);
    assert_eq!(run.status.code(), Some(2));
    assert!(said(&run).contains("is both read and written"), "{}", said(&run));
}

/// A damaged input is searched as far as it can be read, and the exit code says so.
#[test]
fn damage_is_told() {
    let scratch = Folder::new("extract-damaged");
    let office = fs::read(fixture("office.pcapng")).unwrap();
    let row = rows(&fixture("office.pcapng"), &scratch.path("all"), "conn").swap_remove(0);
    let (input, output) = (scratch.path("in.pcapng"), scratch.path("out.pcapng"));
    fs::write(&input, &office[..office.len() - 5]).unwrap();
    let run = extract(&input, &output, &["-u", &row["uid"]]);
    assert_eq!(run.status.code(), Some(3), "{}", said(&run));
    assert_eq!(packets(&output).0.len(), packets_of(&row));
}

/// Whatever writes packets writes them for the owner alone, as `record` does.
#[test]
fn packets_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = Folder::new("extract-owner");
    let input = fixture("office.pcapng");
    let input = input.to_str().unwrap();
    let (key, out) = (folder.path("key"), folder.path("out.pcapng"));
    let (key, to) = (key.to_str().unwrap(), out.to_str().unwrap());
    fs::write(key, (0..32).collect::<Vec<u8>>()).unwrap();
    fs::set_permissions(key, fs::Permissions::from_mode(0o600)).unwrap();
    let unknown = folder.path("unknown.pcap");
    let mut writer = PcapWriter::new(File::create(&unknown).unwrap(), LinkType(147), 0).unwrap();
    let (timestamp, data, link_type) = (Timestamp::EPOCH, &[1, 2, 3][..], LinkType(147));
    writer.write_packet(&Packet { timestamp, data, wire_len: 3, link_type, interface: 0 }).unwrap();
    writer.finish().unwrap();
    for arguments in [
        vec!["extract", input, "-w", to],
        vec!["sort", input, to],
        vec!["anonymize", input, to, "-k", key],
        vec!["generate", "-q", "--rate", "1000", "-w", to, "--count", "3"],
        vec!["analyze", "-q", "-o", folder.path("").to_str().unwrap(), unknown.to_str().unwrap()],
    ] {
        let run = netsniff(&arguments);
        let written =
            if arguments[0] == "analyze" { folder.path("unparsed.pcapng") } else { out.clone() };
        assert!(written.is_file(), "{arguments:?}: {}", said(&run));
        let mode = written.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{arguments:?}: {mode:o}");
        fs::remove_file(written).unwrap();
    }
}
