//! `--extract`: what was transferred, as files in a directory.

use crate::zeek;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::zeek::corpus::{Scratch, captures};
use crate::zeek::log::{self, Row};
use netsniff_packet::{LinkType, Packet, Timestamp};
use netsniff_pcapfile::PcapWriter;
use netsniff_testing::{Need, skip};
use netsniff_traffic::dialogue::{Dialogue, Setup, Side};

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded").join(name)
}

/// The files in a directory: name and bytes.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let Ok(entries) = fs::read_dir(directory) else { return BTreeMap::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    paths.map(|path| (name(&path), fs::read(&path).unwrap())).collect()
}

/// One run of the program.
struct Run {
    scratch: Scratch,
    output: Output,
}

impl Run {
    fn new(capture: &Path, arguments: &[&str]) -> Self {
        let scratch = Scratch::new("extraction");
        let output = analyze(capture, scratch.path(), arguments);
        Self { scratch, output }
    }

    fn code(&self) -> i32 {
        self.output.status.code().unwrap()
    }

    fn errors(&self) -> String {
        String::from_utf8(self.output.stderr.clone()).unwrap()
    }

    /// What the summary tells of extracted files.
    fn counts(&self) -> serde_json::Value {
        serde_json::from_slice::<serde_json::Value>(&self.output.stdout).unwrap()["extracted"]
            .clone()
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        files(&self.scratch.path().join("files"))
    }

    fn rows(&self, log: &str) -> Vec<Row> {
        log::read(&self.scratch.path().join("logs").join(format!("{log}.log"))).unwrap()
    }
}

/// Extracts to `files` and writes the logs to `logs` in a directory.
fn analyze(capture: &Path, directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args(["analyze", "--json"])
        .arg(capture)
        .args(["-o".as_ref(), directory.join("logs").as_os_str()])
        .args(["--extract".as_ref(), directory.join("files").as_os_str()])
        .args(arguments)
        .output()
        .unwrap()
}

/// A capture of HTTP: for each client the names and bodies that a server sends it.
fn served(path: &Path, clients: &[&[(&[u8], &[u8])]]) {
    let mut frames = Vec::new();
    for (number, bodies) in (0..).zip(clients) {
        let mut setup = Setup { seed: number, ..Setup::default() };
        setup.client.port = 20_000 + number as u16;
        let mut dialogue = Dialogue::new(setup);
        dialogue.connect();
        for (name, body) in *bodies {
            dialogue.say(Side::Client, b"GET / HTTP/1.1\r\nHost: www.example.org\r\n\r\n");
            let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n", body.len());
            answer += "Content-Disposition: attachment; filename=\"";
            let answer = [answer.as_bytes(), name, b"\"\r\n\r\n", body].concat();
            dialogue.say(Side::Server, &answer);
        }
        dialogue.close(Side::Client).close(Side::Server);
        frames.extend(dialogue.finish().seen.into_iter().map(|seen| (seen.timestamp, seen.frame)));
    }
    frames.sort_by_key(|(timestamp, _)| *timestamp);
    write_capture(path, frames);
}

fn write_capture(path: &Path, frames: impl IntoIterator<Item = (Timestamp, Vec<u8>)>) {
    let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 65_535).unwrap();
    for (timestamp, data) in frames {
        let (wire_len, link_type) = (data.len() as u32, LinkType::ETHERNET);
        let packet = Packet { timestamp, wire_len, data: &data, link_type, interface: 0 };
        writer.write_packet(&packet).unwrap();
    }
    fs::write(path, writer.finish().unwrap()).unwrap();
}

/// A directory with a capture in it.
fn with_capture(clients: &[&[(&[u8], &[u8])]]) -> (Scratch, PathBuf) {
    let scratch = Scratch::new("extraction-capture");
    fs::create_dir_all(scratch.path()).unwrap();
    let capture = scratch.path().join("capture.pcap");
    served(&capture, clients);
    (scratch, capture)
}

#[test]
fn each_row_tells_the_file_that_has_its_bytes() {
    for (capture, at_least) in [("protocols.pcapng", 49), ("office.pcapng", 50)] {
        let run = Run::new(&recorded(capture), &["--hashes", "md5"]);
        assert_eq!((run.code(), run.errors().as_str()), (0, ""));
        let (files, rows) = (run.files(), run.rows("files"));
        assert!(rows.len() >= at_least, "{capture}: {} rows", rows.len());
        let mut bytes = 0;
        for row in &rows {
            let (seconds, fuid) = (&row["ts"], &row["fuid"]);
            let name = format!("extract-{seconds}-{}-{fuid}", row["source"]);
            let size = row["seen_bytes"].parse::<u64>().unwrap()
                + row["missing_bytes"].parse::<u64>().unwrap();
            assert_eq!(row["extracted"], name);
            assert_eq!(files[&name].len() as u64, size, "{row:?}");
            assert_eq!(row["extracted_size"], size.to_string());
            assert_eq!(row["extracted_cutoff"], "F");
            bytes += size;
        }
        assert_eq!(files.len(), rows.len(), "a file without a row");
        let counts = run.counts();
        assert_eq!((&counts["files"], &counts["bytes"]), (&rows.len().into(), &bytes.into()));
    }
}

#[test]
fn without_the_option_nothing_is_told_of_extraction() {
    let scratch = Scratch::new("no-extraction");
    zeek::corpus::analyze(&recorded("protocols.pcapng"), scratch.path(), &[]);
    let rows = log::read(&scratch.path().join("files.log")).unwrap();
    let columns = ["extracted", "extracted_cutoff", "extracted_size"];
    assert!(rows.iter().all(|row| columns.iter().all(|column| row[*column] == "-")));
    assert!(rows.len() >= 49);
}

#[test]
fn files_and_rows_are_the_same_for_any_number_of_workers() {
    let mut all = vec![recorded("protocols.pcapng"), recorded("office.pcapng")];
    let corpus = captures("extracted files were compared over the project's captures only");
    all.extend(corpus.into_iter().flatten().map(|capture| capture.path));
    let (mut compared, mut refused) = (0, 0);
    for capture in &all {
        let arguments: &[&[&str]] = if capture.starts_with(env!("CARGO_MANIFEST_DIR")) {
            &[
                &[],
                &["--extract-total", "50k"],
                &["--extract-files", "9"],
                &["--extract-limit", "1k"],
            ]
        } else {
            &[&[], &["--extract-total", "100k", "--extract-limit", "20k"]]
        };
        for arguments in arguments {
            let of = |workers: &str| {
                let run = Run::new(capture, &[*arguments, &["--workers", workers]].concat());
                let log = run.scratch.path().join("logs/files.log");
                (run.counts(), run.files(), fs::read(log).ok())
            };
            let one = of("1");
            assert_eq!(one.0["files"], one.1.len());
            compared += one.1.len();
            refused += one.0["refused"].as_u64().unwrap();
            for workers in ["2", "3", "8"] {
                let name = capture.display();
                assert!(of(workers) == one, "{name} {arguments:?}, {workers} workers");
            }
        }
    }
    eprintln!("{} captures, {compared} files compared, {refused} were refused", all.len());
    assert!(compared >= 200 && refused >= 100);
}

#[test]
fn of_long_files_the_begin_is_written() {
    let capture = recorded("office.pcapng");
    let whole = Run::new(&capture, &[]).files();
    let run = Run::new(&capture, &["--extract-limit", "2000"]);
    let (files, mut cut) = (run.files(), 0);
    assert_eq!(files.len(), whole.len());
    for row in run.rows("files") {
        let (part, all) = (&files[&row["extracted"]], &whole[&row["extracted"]]);
        let is_cut = all.len() > 2000;
        cut += usize::from(is_cut);
        assert_eq!(part[..], all[..all.len().min(2000)]);
        assert_eq!(row["extracted_cutoff"], if is_cut { "T" } else { "F" });
        assert_eq!(row["extracted_size"], part.len().to_string());
    }
    assert!(cut >= 10 && cut < files.len(), "{cut} of {}", files.len());
    assert_eq!((run.code(), &run.counts()["cut_off"]), (0, &cut.into()));
    let unlimited = Run::new(&capture, &["--extract-limit", "0"]);
    assert_eq!(unlimited.files(), whole);
}

#[test]
fn a_bound_of_all_keeps_those_that_ended_first() {
    let capture = recorded("office.pcapng");
    let whole = Run::new(&capture, &[]);
    let order: Vec<String> =
        whole.rows("files").iter().map(|row| row["extracted"].clone()).collect();
    let of_number = Run::new(&capture, &["--extract-files", "10"]);
    assert_eq!(of_number.files().into_keys().collect::<Vec<_>>(), sorted(&order[..10]));
    let whole = whole.files();
    let (mut room, mut fitting) = (100_000, 0);
    while whole[&order[fitting]].len() <= room {
        room -= whole[&order[fitting]].len();
        fitting += 1;
    }
    let of_bytes = Run::new(&capture, &["--extract-total", "100kB"]);
    assert_eq!(of_bytes.files().into_keys().collect::<Vec<_>>(), sorted(&order[..fitting]));
    assert!(fitting > 3 && fitting + 10 < order.len());
    for (run, kept) in [(of_number, 10), (of_bytes, fitting)] {
        let (counts, refused) = (run.counts(), order.len() - kept);
        assert_eq!((&counts["files"], &counts["refused"]), (&kept.into(), &refused.into()));
        let told = run.rows("files").iter().filter(|row| row["extracted"] != "-").count();
        assert_eq!((run.code(), told), (0, kept));
    }
    // It is said to people, too, and where there is no summary.
    for quiet in [true, false] {
        let directory = Scratch::new("extraction-said");
        let output = Command::new(env!("CARGO_BIN_EXE_netsniff"))
            .arg("analyze")
            .arg(&capture)
            .args(["--extract-files", "10", "--extract"])
            .arg(directory.path())
            .args(quiet.then_some("-q"))
            .output()
            .unwrap();
        let said = if quiet { output.stderr } else { output.stdout };
        let said =
            String::from_utf8(said).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = "files not kept: the bound of 10 files or 10,737,418,240 bytes for all was";
        assert!(said.contains(expected) && said.contains("reached: 42"), "{said}");
        assert_eq!(files(directory.path()).len(), 10, "extraction needs no logs");
    }
}

fn sorted(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    names.sort();
    names
}

#[test]
fn no_name_of_the_wire_is_a_name_on_the_disk() {
    let names: [&[u8]; 7] = [
        b"../../../../../../tmp/netsniff-escaped",
        b"/tmp/netsniff-escaped",
        b"..\\..\\escaped",
        b"C:\\escaped.exe",
        b"..",
        b"\x01\x1b[2J\xff\xfe",
        b"extract-1.000000-HTTP-F00000000000000000",
    ];
    let bodies: Vec<(&[u8], &[u8])> = names.iter().map(|name| (*name, *name)).collect();
    let (home, capture) = with_capture(&[&bodies]);
    let output = analyze(&capture, home.path(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let found = files(&home.path().join("files"));
    let mut contents: Vec<_> = found.values().map(Vec::as_slice).collect();
    contents.sort();
    let mut expected = names.to_vec();
    expected.sort();
    assert_eq!(contents, expected);
    for name in found.keys() {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        assert!(name.starts_with("extract-") && name.chars().all(is_plain), "{name}");
    }
    let mut beside: Vec<_> =
        fs::read_dir(home.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    beside.sort();
    assert_eq!(beside, ["capture.pcap", "files", "logs"]);
    assert!(!Path::new("/tmp/netsniff-escaped").exists());
}

#[test]
fn what_is_missing_stands_as_zeros() {
    let body: Vec<u8> = (0..60_000_u32).map(|at| (at % 251) as u8 + 1).collect();
    let (home, capture) = with_capture(&[&[(b"whole", &body)]]);
    // One segment in the middle and, in another run, the last ones.
    let all = fs::read(&capture).unwrap();
    for (lost, ends_with_hole) in [(20..22, false), (0..0, true)] {
        let mut at = 24;
        let mut kept = all[..24].to_vec();
        let mut records = Vec::new();
        while at < all.len() {
            let len = u32::from_le_bytes(all[at + 8..at + 12].try_into().unwrap()) as usize;
            records.push(&all[at..at + 16 + len]);
            at += 16 + len;
        }
        let data: Vec<usize> =
            (0..records.len()).filter(|&number| records[number].len() > 100).collect();
        let lost: Vec<usize> =
            if ends_with_hole { data[data.len() - 2..].to_vec() } else { data[lost].to_vec() };
        assert!(data.len() > 30);
        for (number, record) in records.iter().enumerate() {
            if !lost.contains(&number) {
                kept.extend_from_slice(record);
            }
        }
        fs::write(&capture, kept).unwrap();
        let output = analyze(&capture, home.path(), &["--hashes", "sha256"]);
        assert_eq!(output.status.code(), Some(0));
        let found = files(&home.path().join("files"));
        let content = found.values().next().unwrap();
        let rows = log::read(&home.path().join("logs/files.log")).unwrap();
        let missing: usize = rows[0]["missing_bytes"].parse().unwrap();
        assert!((1_000..3_000).contains(&missing), "{missing}");
        assert_eq!((content.len(), rows[0]["sha256"].as_str()), (body.len(), "-"));
        let zeros = content.iter().filter(|byte| **byte == 0).count();
        assert_eq!(zeros, missing);
        let begin = content.iter().position(|byte| *byte == 0).unwrap();
        let expected = [&body[..begin], &vec![0; missing][..], &body[begin + missing..]].concat();
        assert!(*content == expected, "the bytes around the hole are not those that were sent");
        assert_eq!(ends_with_hole, begin + missing == body.len());
    }
}

/// The most memory that a process had, in bytes, which is looked at until it ends.
#[cfg(target_os = "linux")]
fn watched(mut command: Command) -> (Output, u64) {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let watcher = std::thread::spawn(move || {
        let mut most = 0;
        while let Some(peak) = fs::read_to_string(&status).ok().and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
            line.trim_end_matches("kB").trim().parse::<u64>().ok()
        }) {
            most = most.max(peak << 10);
            std::thread::sleep(Duration::from_millis(2));
        }
        most
    });
    (child.wait_with_output().unwrap(), watcher.join().unwrap())
}

#[test]
#[cfg(target_os = "linux")]
fn what_unpacks_to_much_goes_through_little_memory() {
    const LEN: usize = 150 << 20;
    let block: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 7) as u8).collect();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    (0..LEN >> 20).for_each(|_| encoder.write_all(&block).unwrap());
    let packed = encoder.finish().unwrap();
    assert!(packed.len() < LEN / 50, "{}", packed.len());
    let home = Scratch::new("extraction-packed");
    fs::create_dir_all(home.path()).unwrap();
    let capture = home.path().join("capture.pcap");
    let mut answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n".to_vec();
    answer.extend_from_slice(format!("Content-Length: {}\r\n\r\n", packed.len()).as_bytes());
    answer.extend_from_slice(&packed);
    let request = b"GET / HTTP/1.1\r\nHost: www.example.org\r\n\r\n";
    let mut dialogue = Dialogue::new(Setup::default());
    dialogue.connect().say(Side::Client, request).say(Side::Server, &answer);
    dialogue.close(Side::Client).close(Side::Server);
    write_capture(&capture, dialogue.finish().seen.into_iter().map(|s| (s.timestamp, s.frame)));
    for (limit, len) in [("1G", LEN), ("5M", 5 << 20)] {
        let directory = home.path().join("files");
        let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
        command.args(["analyze", "-q", "--workers", "2", "--extract-limit", limit]);
        command.arg(&capture).arg("--extract").arg(&directory);
        let (output, peak) = watched(command);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found = files(&directory);
        let content = found.values().next().unwrap();
        assert_eq!((found.len(), content.len()), (1, len));
        assert!(content.chunks(block.len()).all(|part| *part == block[..part.len()]));
        eprintln!("{limit}: {peak} bytes of memory");
        assert!((1 << 20..LEN as u64 / 2).contains(&peak), "{peak} bytes of memory");
    }
}

#[test]
fn a_second_run_leaves_only_its_own_files() {
    let (home, capture) = with_capture(&[&[(b"a", b"of the first run")]]);
    let output = analyze(&capture, home.path(), &[]);
    assert_eq!(output.status.code(), Some(0));
    let first = files(&home.path().join("files"));
    fs::write(home.path().join("files/notes"), b"mine").unwrap();
    let other: Vec<(&[u8], &[u8])> = vec![(b"b", b"one"), (b"b", b"two")];
    served(&capture, &[&[], &other]);
    for _ in 0..2 {
        let output = analyze(&capture, home.path(), &[]);
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
        let second = files(&home.path().join("files"));
        assert_eq!((second.len(), second["notes"].as_slice()), (3, &b"mine"[..]));
        assert!(first.keys().all(|name| !second.contains_key(name)), "{second:?}");
    }
}

#[test]
#[cfg(unix)]
fn a_link_in_its_place_is_not_followed_and_the_rest_is_written() {
    let bodies: [(&[u8], &[u8]); 2] = [(b"a", b"first"), (b"a", b"second")];
    let (home, capture) = with_capture(&[&bodies]);
    analyze(&capture, home.path(), &[]);
    let directory = home.path().join("files");
    let name = files(&directory).into_iter().find(|(_, bytes)| bytes == b"first").unwrap().0;
    let target = home.path().join("precious");
    fs::write(&target, b"precious").unwrap();
    fs::remove_file(directory.join(&name)).unwrap();
    std::os::unix::fs::symlink(&target, directory.join(&name)).unwrap();
    let output = analyze(&capture, home.path(), &[]);
    let errors = String::from_utf8(output.stderr).unwrap();
    let expected = format!("netsniff: cannot write {}", directory.join(&name).display());
    assert!(errors.starts_with(&expected) && errors.contains("exists"), "{errors}");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read(&target).unwrap(), b"precious");
    let rows = log::read(&home.path().join("logs/files.log")).unwrap();
    let extracted: Vec<_> = rows.iter().map(|row| row["extracted"] != "-").collect();
    assert_eq!(extracted, [false, true], "the analysis went on");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&summary["extracted"]["files"], &summary["extracted"]["failed"]),
        (&1.into(), &1.into())
    );
}

#[test]
fn what_cannot_be_is_said_before_anything_is_read() {
    for (arguments, said) in [
        (&["--extract", "out", "-a"][..], "which -a cannot make anonymous"),
        (&["--extract", "out", "-a", "-m", "nullip"], "which -a cannot make anonymous"),
        (&["--extract", "-"], "--extract-files needs a directory"),
        (&["--extract-limit", "5M"], "--extract-files <DIR>"),
        (&["--extract-total", "5M"], "--extract-files <DIR>"),
        (&["--extract-files", "5"], "write ./5"),
        (&["--extract", "out", "--extract-files", "0"], "1 is the least"),
        (&["--extract", "out", "--extract-limit", "many"], "expected a number"),
    ] {
        let scratch = Scratch::new("extraction-usage");
        fs::create_dir_all(scratch.path()).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_netsniff"))
            .args(["analyze", "missing.pcap"])
            .args(arguments)
            .current_dir(scratch.path())
            .output()
            .unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        let errors = errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            errors.contains(said) && !errors.contains("missing.pcap"),
            "{arguments:?}: {errors}"
        );
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_directory_that_cannot_be_made_ends_the_run() {
    let (home, capture) = with_capture(&[&[(b"a", b"body")]]);
    fs::write(home.path().join("files"), b"").unwrap();
    let output = analyze(&capture, home.path(), &[]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.starts_with("netsniff: cannot make the directory"), "{errors}");
}

/// Extracts into a file system of its own, which only this run sees. `None` where this machine does
/// not let it be mounted.
#[cfg(target_os = "linux")]
fn extract_into(options: &str, capture: &Path, home: &Path) -> Option<(Output, String)> {
    let directory = home.join("files");
    fs::create_dir_all(&directory).unwrap();
    let script = "mount -t tmpfs -o \"$1\" none \"$2\" || exit 99; \"$3\" analyze \"$4\" --json \
        --workers 2 -o \"$5\" --extract \"$2\"; code=$?; wc -c \"$2\"/* >\"$6\" 2>&1; exit $code";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh", options])
        .args([&directory, Path::new(env!("CARGO_BIN_EXE_netsniff")), capture])
        .args([home.join("logs"), home.join("listing")])
        .output();
    let unable = |why: &str| {
        skip(Need::Root, format_args!("no directory was without room or right: {why}"));
        None
    };
    match output {
        Err(error) => unable(&error.to_string()),
        Ok(output) if !output.status.success() && !home.join("listing").exists() => {
            unable(&String::from_utf8_lossy(&output.stderr))
        }
        Ok(output) => Some((output, fs::read_to_string(home.join("listing")).unwrap())),
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_loses_files_and_nothing_else() {
    let large = vec![b'x'; 200_000];
    let bodies: [(&[u8], &[u8]); 3] = [(b"a", b"first"), (b"b", &large), (b"c", b"third")];
    let (home, capture) = with_capture(&[&bodies]);
    let Some((output, listing)) = extract_into("size=64k", &capture, home.path()) else { return };
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("cannot write ") && errors.contains("No space left"), "{errors}");
    let rows = log::read(&home.path().join("logs/files.log")).unwrap();
    let sizes: Vec<_> = rows.iter().map(|row| row["extracted_size"].as_str()).collect();
    assert_eq!(sizes, ["5", "-", "5"], "what fits is there, and nothing in parts: {listing}");
    assert!(listing.trim_end().ends_with("10 total"), "{listing}");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["extracted"]["failed"], 1);
    let notes = summary["notes"].to_string();
    assert!(notes.contains("files not kept, since they could not be written: 1"), "{notes}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_directory_without_the_right_to_write_loses_all_files_and_nothing_else() {
    let bodies: [(&[u8], &[u8]); 2] = [(b"a", b"first"), (b"b", b"second")];
    let (home, capture) = with_capture(&[&bodies, &bodies]);
    let Some((output, _)) = extract_into("ro", &capture, home.path()) else { return };
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert_eq!(errors.matches("cannot write ").count(), 1, "{errors}");
    assert!(errors.contains("Read-only file system"), "{errors}");
    let rows = log::read(&home.path().join("logs/files.log")).unwrap();
    assert_eq!(rows.len(), 4);
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let counts = &summary["extracted"];
    assert_eq!((&counts["files"], &counts["failed"]), (&0.into(), &4.into()));
}
