//! `netsniff index`: by an index the same packets are extracted as without, and less is read.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use netsniff_packet::{LinkType, Packet, Timestamp};
use netsniff_pcapfile::{Counters, Interface, PcapngWriter, Section};
use netsniff_testing::log;
use netsniff_traffic::frame::{Host, udp_frame};

use crate::generated::Folder;
use crate::zeek::corpus::captures;

fn netsniff(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netsniff")).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded");
    fs::read(folder.join(name)).unwrap()
}

/// The uids of connections in captures that are read as one.
fn uids(captures: &[&str], logs: &Path) -> Vec<String> {
    let _ = fs::remove_dir_all(logs);
    let words = ["analyze", "-q", "-o", logs.to_str().unwrap()];
    netsniff(&[&words, captures].concat());
    let rows = log::read(&logs.join("conn.log")).unwrap();
    rows.into_iter().map(|mut row| row.remove("uid").unwrap()).collect()
}

/// Extracts, and returns what was written, what was said, and how many packets were read.
fn extract(captures: &[&str], output: &Path, arguments: &[&str]) -> (Vec<u8>, String, u64) {
    let words = ["extract", "--json", "-w", output.to_str().unwrap()];
    let run = netsniff(&[&words, captures, arguments].concat());
    assert!(matches!(run.status.code(), Some(0 | 3)), "{}", said(&run));
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let read = report["packets_read"].as_u64().unwrap();
    (fs::read(output).unwrap(), String::from_utf8(run.stderr).unwrap(), read)
}

/// Compares what some uids give with an index and without. Returns the packets that were read with it, and without.
fn compare(captures: &[&str], output: &Path, chosen: &str, more: &[&str]) -> (u64, u64) {
    let arguments = [&["-u", chosen], more].concat();
    let (by_index, told, read) = extract(captures, output, &arguments);
    assert!(!told.contains("all of it is read"), "{told}");
    let (whole, _, all) = extract(captures, output, &[&arguments[..], &["--no-index"]].concat());
    assert!(by_index == whole, "{captures:?} -u {chosen} {more:?}: not the same bytes");
    (read, all)
}

#[test]
fn by_indexes_the_same_is_extracted_and_less_is_read() {
    let folder = Folder::new("index-same");
    for name in ["office.pcapng", "protocols.pcapng"] {
        fs::write(folder.path(name), fixture(name)).unwrap();
    }
    let paths = [folder.path("office.pcapng"), folder.path("protocols.pcapng")];
    let both: Vec<&str> = paths.iter().map(|path| path.to_str().unwrap()).collect();
    let run = netsniff(&[&["index"], &both[..]].concat());
    assert!(run.status.success(), "{}", said(&run));
    let uids = uids(&both, &folder.path("logs"));
    let output = folder.path("out.pcapng");
    let mut least = u64::MAX;
    for uid in uids.iter().step_by(uids.len() / 12) {
        let (read, all) = compare(&both, &output, uid, &[]);
        assert!(read <= all);
        least = least.min(read * 100 / all);
    }
    assert!(least < 20, "at least {least} % were read");
    let many: Vec<&str> = uids.iter().step_by(9).map(String::as_str).collect();
    compare(&both, &output, &many.join(","), &[]);
    compare(&both, &output, &many.join(","), &["-f", "greater 200"]);
    let rows = log::read(&folder.path("logs/conn.log")).unwrap();
    for row in rows.iter().step_by(rows.len() / 3) {
        let arguments = ["--community-id", row["community_id"].as_str()];
        let (by_index, told, read) = extract(&both, &output, &arguments);
        let whole = [&arguments[..], &["--no-index"]].concat();
        let (whole, _, all) = extract(&both, &output, &whole);
        assert!(by_index == whole && !told.contains("all of it is read"), "{row:?}: {told}");
        assert!(read < all, "{read} of {all}");
    }
    let size = |path: &Path| path.metadata().unwrap().len();
    assert!(size(&folder.path("office.pcapng.nsi")) * 100 < size(&paths[0]), "1 % and more");
}

#[test]
fn by_indexes_the_corpus_gives_the_same() {
    let Some(captures) = captures("captures were not indexed and extracted") else { return };
    let folder = Folder::new("index-corpus");
    let (mut compared, mut refused) = (0, 0);
    for capture in captures.iter().filter(|it| it.path.metadata().unwrap().len() < 3 << 20) {
        let copy = folder.path("in.pcap");
        fs::copy(&capture.path, &copy).unwrap();
        let input = copy.to_str().unwrap();
        let run = netsniff(&["index", input]);
        if !run.status.success() {
            let is_told = ["packed with", "damaged", "without a time"];
            assert!(is_told.iter().any(|why| said(&run).contains(why)), "{}", said(&run));
            refused += 1;
            continue;
        }
        let uids = uids(&[input], &folder.path("logs"));
        let output = folder.path("out.pcapng");
        for uid in uids.iter().step_by((uids.len() / 2).max(1)).take(2) {
            compare(&[input], &output, uid, &[]);
            compared += 1;
        }
    }
    eprintln!("{compared} compared, {refused} captures not indexed");
    assert!(compared >= 80 && refused <= 20, "{compared} compared, {refused} refused");
}

/// Interfaces, counters and losses stand far from the packets that are wanted.
fn with_losses(path: &Path) {
    let file = std::io::BufWriter::new(File::create(path).unwrap());
    let mut writer = PcapngWriter::new(file, &Section::default()).unwrap();
    let host = |last| Host::new([192, 0, 2, last].into(), 5000);
    writer.add_interface(&Interface::new(LinkType::ETHERNET, 900)).unwrap();
    for number in 0..5000_u32 {
        // The second host is seen at both ends alone.
        let is_rare = !(10..4990).contains(&number);
        let from = host(if is_rare && number % 2 == 0 { 1 } else { 2 });
        let frame = udp_frame(&from, &host(9), 1, &[7; 300]).unwrap();
        let packet = Packet {
            timestamp: Timestamp::from_nanos(1_700_000_000_000_000_000 + i64::from(number) * 1000),
            data: &frame,
            wire_len: frame.len() as u32,
            link_type: LinkType::ETHERNET,
            interface: 0,
        };
        if number == 2500 {
            writer.write_packet_after_loss(&packet, 33).unwrap();
        } else {
            writer.write_packet(&packet).unwrap();
        }
        if number == 3500 {
            let name = Some("late".to_owned());
            let late = Interface { name, ..Interface::new(LinkType::ETHERNET, 700) };
            writer.add_interface(&late).unwrap();
            let counters = Counters { received: Some(70), ..Counters::NONE };
            writer.write_counters(1, packet.timestamp, &counters).unwrap();
        }
    }
    writer.finish().unwrap().flush().unwrap();
}

#[test]
fn what_is_told_beside_packets_is_read_with_an_index_too() {
    let folder = Folder::new("index-tells");
    let input = folder.path("in.pcapng");
    with_losses(&input);
    let input = input.to_str().unwrap();
    assert!(netsniff(&["index", input]).status.success());
    let mut least = u64::MAX;
    for uid in uids(&[input], &folder.path("logs")) {
        let (read, all) = compare(&[input], &folder.path("out.pcapng"), &uid, &[]);
        assert_eq!(all, 5000);
        least = least.min(read);
    }
    assert!(least < 2500, "at least {least} packets were read");
}

/// An index that does not fit is not used, which is said, and all is found by reading.
#[test]
fn an_index_that_does_not_fit_is_not_used() {
    let folder = Folder::new("index-unfit");
    let (capture, index) = (folder.path("in.pcapng"), folder.path("in.pcapng.nsi"));
    fs::write(&capture, fixture("office.pcapng")).unwrap();
    let input = capture.to_str().unwrap();
    let uids = uids(&[input], &folder.path("logs"));
    let output = folder.path("out.pcapng");
    let expected = extract(&[input], &output, &["-u", &uids[3]]).0;
    let check = |why: &str, arguments: &[&str]| {
        let (found, told, _) = extract(&[input], &output, &[&["-u", &uids[3]], arguments].concat());
        assert!(told.contains(why) && told.contains("; all of it is read"), "{why}: {told}");
        assert!(found == expected, "{why}: not the same");
    };
    assert!(netsniff(&["index", input]).status.success());
    check("with another --timeout", &["--timeout", "udp=77s"]);
    let whole = fs::read(&index).unwrap();
    fs::write(&index, &whole[..whole.len() / 2]).unwrap();
    check("the index is damaged", &[]);
    fs::write(&index, b"text").unwrap();
    check("the index is damaged", &[]);
    fs::write(&index, &whole).unwrap();
    fs::write(&capture, fixture("office.pcapng")).unwrap();
    check("the capture was changed since", &[]);
    // Whoever can write it and not the capture could hide packets.
    assert!(netsniff(&["index", input]).status.success());
    fs::set_permissions(&index, fs::Permissions::from_mode(0o602)).unwrap();
    check("it can be written by everybody, who cannot write the capture", &[]);
    // Made together with another one, it does not serve for both at once.
    let other = folder.path("other.pcapng");
    fs::write(&other, fixture("protocols.pcapng")).unwrap();
    assert!(netsniff(&["index", input]).status.success());
    assert!(netsniff(&["index", other.to_str().unwrap()]).status.success());
    let both = [input, other.to_str().unwrap()];
    let (_, told, _) = extract(&both, &output, &["-u", &uids[3]]);
    assert!(told.contains("was made of other captures together"), "{told}");
    // Nor does one of both together serve for one of them: connections go on from one to the other.
    assert!(netsniff(&["index", both[0], both[1]]).status.success());
    check("was made of other captures together", &[]);
    let turned = [both[1], both[0]];
    let (_, told, _) = extract(&turned, &output, &["-u", &uids[3]]);
    assert!(told.contains("was made of other captures together"), "{told}");
}

/// Whoever opens a pipe waits for its writer, and takes what is to be read.
#[test]
fn a_pipe_is_read_once_though_it_has_an_index() {
    let folder = Folder::new("index-pipe");
    let (capture, pipe) = (folder.path("in.pcapng"), folder.path("pipe.pcapng"));
    fs::write(&capture, fixture("office.pcapng")).unwrap();
    let uids = uids(&[capture.to_str().unwrap()], &folder.path("logs"));
    let output = folder.path("out.pcapng");
    let expected = extract(&[capture.to_str().unwrap()], &output, &["-u", &uids[3]]).0;
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    let run = netsniff(&["index", pipe.to_str().unwrap()]);
    assert!(!run.status.success() && said(&run).contains("no regular file"), "{}", said(&run));
    fs::write(folder.path("pipe.pcapng.nsi"), "index").unwrap();
    let written = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::write(pipe, fixture("office.pcapng")).is_ok()
    });
    let (found, told, _) = extract(&[pipe.to_str().unwrap()], &output, &["-u", &uids[3]]);
    assert!(told.contains("no regular file; all of it is read"), "{told}");
    assert!(found == expected && written.join().unwrap());
}

/// More captures than a process may have files open at first.
#[test]
fn many_captures_are_indexed_and_read_at_once() {
    const CAPTURES: u8 = 200;
    let folder = Folder::new("index-many");
    let end = |last: u8| Host::new([192, 0, 2, last].into(), 7000);
    for number in 0..CAPTURES {
        let name = folder.path(&format!("{number:03}.pcapng"));
        let mut writer =
            PcapngWriter::new(File::create(name).unwrap(), &Section::default()).unwrap();
        writer.add_interface(&Interface::new(LinkType::ETHERNET, 0)).unwrap();
        let data = &udp_frame(&end(1), &end(2), 1, &[number; 20]).unwrap()[..];
        let (timestamp, link_type) =
            (Timestamp::from_secs_nanos(number.into(), 0), LinkType::ETHERNET);
        let wire_len = data.len() as u32;
        writer
            .write_packet(&Packet { timestamp, data, wire_len, link_type, interface: 0 })
            .unwrap();
        writer.finish().unwrap();
    }
    let all = folder.path("");
    let files = folder.files();
    let files: Vec<_> = files.iter().map(|file| file.to_str().unwrap()).collect();
    let uids = uids(&files, &folder.path("logs"));
    let few = |arguments: &[&str]| {
        let program = ["-c", "ulimit -Sn 64; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_netsniff")];
        let run = Command::new("sh").args(program).args(arguments).output().unwrap();
        assert!(run.status.success(), "{}", said(&run));
        said(&run)
    };
    few(&["index", "-q", all.to_str().unwrap()]);
    let output = folder.path("out.pcapng.zst");
    let output = output.to_str().unwrap();
    let told = few(&["extract", all.to_str().unwrap(), "-w", output, "-u", &uids.join(",")]);
    assert!(told.contains("packets written: 200 of 200") && !told.contains("is read"), "{told}");
}

/// An analysis writes the same index, if it sees all packets.
#[test]
fn an_analysis_writes_the_index_if_it_is_told_to() {
    let folder = Folder::new("index-analyze");
    let (capture, index) = (folder.path("in.pcapng"), folder.path("in.pcapng.nsi"));
    fs::write(&capture, fixture("office.pcapng")).unwrap();
    let input = capture.to_str().unwrap();
    let run = netsniff(&["analyze", input, "-q", "--index", "--timeout", "udp=77s"]);
    assert!(run.status.success(), "{}", said(&run));
    let by_analysis = fs::read(&index).unwrap();
    assert!(netsniff(&["index", input, "--timeout", "udp=77s"]).status.success());
    assert!(fs::read(&index).unwrap() == by_analysis);
    fs::remove_file(&index).unwrap();
    for more in [&["-f", "tcp"][..], &["-i", "lo"], &["-a"]] {
        let run = netsniff(&[&["analyze", "-q", "--index", input], more].concat());
        assert_eq!(run.status.code(), Some(2), "{more:?}: {}", said(&run));
    }
    let run = netsniff(&["analyze", "-q", "--index", "-r", input, "tcp"]);
    assert_eq!(run.status.code(), Some(2), "{}", said(&run));
    assert!(said(&run).contains("--index needs all packets") && !index.exists());
}

#[test]
fn what_cannot_be_indexed_is_refused_with_the_reason() {
    let folder = Folder::new("index-refused");
    let (capture, index) = (folder.path("in.pcapng"), folder.path("in.pcapng.nsi"));
    let office = fixture("office.pcapng");
    fs::write(&capture, &office[..office.len() - 3]).unwrap();
    let run = netsniff(&["index", capture.to_str().unwrap()]);
    assert_eq!(run.status.code(), Some(1));
    assert!(said(&run).contains("it is damaged: "), "{}", said(&run));
    let packed = folder.path("in.pcapng.gz");
    fs::write(&capture, &office).unwrap();
    netsniff(&["sort", "-q", capture.to_str().unwrap(), packed.to_str().unwrap()]);
    let run = netsniff(&["index", packed.to_str().unwrap()]);
    assert_eq!(run.status.code(), Some(1));
    assert!(said(&run).contains("packed with gzip"), "{}", said(&run));
    assert_eq!(netsniff(&["index", "-"]).status.code(), Some(2));
    assert!(!index.exists() && folder.files().len() == 2, "{:?}", folder.files());
}
