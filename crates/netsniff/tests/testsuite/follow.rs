//! Captures that grow while they are read: rows come along, and in the end they are those of the whole.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::generated::Folder;

const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of a capture whose rows fill no buffer, and which end within a packet.
const PIECE: usize = 300_001;

fn fixture(name: &str) -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/");
    fs::read(format!("{path}{name}.pcapng")).unwrap()
}

/// A program that reads along, with the lines that it writes as they come.
struct Following {
    child: Child,
    lines: Receiver<String>,
}

impl Following {
    fn start(arguments: &[&str], stdin: Stdio) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_netsniff"))
            .arg("analyze")
            .args(arguments)
            .args(["-o", "-", "--format", "json"])
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        thread::spawn(move || {
            out.lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
        });
        Self { child, lines }
    }

    /// The rows up to the first one with these words.
    fn until(&self, words: &str) -> Vec<String> {
        let mut rows = Vec::new();
        while !rows.last().is_some_and(|row: &String| row.contains(words)) {
            rows.push(self.lines.recv_timeout(PATIENCE).expect("no row comes"));
        }
        rows
    }

    /// Waits until it has ended.
    fn ended(&mut self) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begin.elapsed() < PATIENCE, "it does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends it as Ctrl-C does: the rest of its rows, its exit code and what it said.
    fn end(mut self) -> (Vec<String>, Option<i32>, String) {
        let signal = ["-INT", &self.child.id().to_string()].map(str::to_owned);
        assert!(Command::new("kill").args(signal).status().unwrap().success());
        let rows = self.lines.iter().collect();
        let status = self.ended();
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (rows, status.code(), said)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        // Where a test fails before the end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn rows_of(paths: &[PathBuf]) -> Vec<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    let command = command.arg("analyze").args(paths).args(["-o", "-", "--format", "json"]);
    let output = command.output().unwrap();
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// A row of which packets that come later show that it is complete.
fn late(rows: &[String]) -> &str {
    &rows[rows.len() / 2]
}

fn append(path: &Path, bytes: &[u8]) {
    OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn a_file_that_grows_gives_its_rows_as_they_come_and_those_of_the_whole() {
    let (folder, office) = (Folder::new("follow-file"), fixture("office"));
    let (path, whole) = (folder.path("grows.pcapng"), folder.path("whole.pcapng"));
    fs::write(&whole, &office).unwrap();
    let expected = rows_of(std::slice::from_ref(&whole));
    for workers in ["1", "2"] {
        let (first, rest) = office.split_at(PIECE);
        fs::write(&path, first).unwrap();
        let arguments = ["--follow", path.to_str().unwrap(), "--workers", workers];
        let following = Following::start(&arguments, Stdio::null());
        // They come though the file ends within a packet.
        let mut rows = following.until("\"http\"");
        append(&path, rest);
        rows.extend(following.until(late(&expected)));
        let (last, code, said) = following.end();
        rows.extend(last);
        assert_eq!(code, Some(0), "{said}");
        assert!(rows == expected, "{workers} workers: other rows than of the whole");
    }
}

#[test]
fn files_of_a_directory_are_read_as_they_come() {
    let folder = Folder::new("follow-directory");
    let (office, protocols) = (fixture("office"), fixture("protocols"));
    let directory = folder.path("captures");
    fs::create_dir(&directory).unwrap();
    let following = Following::start(&["--follow", directory.to_str().unwrap()], Stdio::null());
    let [first, second] = ["z.pcapng", "later.pcapng"].map(|name| directory.join(name));
    append(&first, &office);
    let mut rows = following.until("\"http\"");
    append(&directory.join("notes.txt"), b"no capture, and not looked at");
    append(&directory.join("junk.pcap"), b"no capture, and said so\n");
    append(&second, &protocols);
    let expected = rows_of(&[first, second]);
    rows.extend(following.until(late(&expected)));
    let (last, code, said) = following.end();
    rows.extend(last);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("junk.pcap: a text file"), "{said}");
    assert!(rows == expected, "other rows than of both files");
}

#[test]
fn a_file_that_gets_another_name_is_read_on() {
    let (folder, office) = (Folder::new("follow-renamed"), fixture("office"));
    let (path, renamed) = (folder.path("grows.pcapng"), folder.path("renamed.pcapng"));
    fs::write(&path, &office[..PIECE]).unwrap();
    let following = Following::start(&["--follow", path.to_str().unwrap()], Stdio::null());
    let mut rows = following.until("\"http\"");
    fs::rename(&path, &renamed).unwrap();
    thread::sleep(Duration::from_millis(300));
    append(&renamed, &office[PIECE..]);
    let expected = rows_of(&[renamed]);
    rows.extend(following.until(late(&expected)));
    let (last, code, said) = following.end();
    rows.extend(last);
    assert_eq!(code, Some(0), "{said}");
    assert!(rows == expected, "other rows than of the whole");
}

#[test]
fn names_of_a_ring_are_read_again() {
    let folder = Folder::new("follow-ring");
    let made = folder.path("made.pcapng");
    let words = "generate hosts --mix http --sessions 60 --seed 1 --start 1795400000 -q -w";
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    assert!(command.args(words.split(' ')).arg(&made).status().unwrap().success());
    let all = ["office", "protocols"].map(fixture).into_iter().chain([fs::read(&made).unwrap()]);
    let all: Vec<_> = all.collect();
    let parts: Vec<_> = (0..3).map(|at| folder.path(&format!("part{at}.pcapng"))).collect();
    parts.iter().zip(&all).for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    let expected = rows_of(&parts);
    let ring = folder.path("ring");
    fs::create_dir(&ring).unwrap();
    let following = Following::start(&["--follow", ring.to_str().unwrap()], Stdio::null());
    let mut rows = Vec::new();
    let begins = ["17952989", "17953256", "17954000"];
    for (at, (bytes, begin)) in all.iter().zip(begins).enumerate() {
        // In place, as tcpdump -W does, and once the one before was left.
        fs::write(ring.join(format!("r.pcap{}", at % 2)), bytes).unwrap();
        rows.extend(following.until(&format!("\"ts\":{begin}")));
    }
    let (last, code, said) = following.end();
    rows.extend(last);
    assert_eq!(code, Some(0), "{said}");
    assert!(rows == expected, "other rows than of all three");
}

#[test]
fn what_is_not_read_to_its_end_is_told() {
    let (folder, office) = (Folder::new("follow-cut"), fixture("office"));
    let path = folder.path("grows.pcapng");
    fs::write(&path, &office[..office.len() - 1]).unwrap();
    let following = Following::start(&["--follow", path.to_str().unwrap()], Stdio::null());
    following.until("\"http\"");
    let (_, code, said) = following.end();
    assert_eq!(code, Some(3));
    assert!(said.contains("the file ends within it"), "{said}");
}

#[test]
fn rows_come_out_of_a_pipe_that_stays_open() {
    let mut following = Following::start(&["-"], Stdio::piped());
    let mut pipe = following.child.stdin.take().unwrap();
    pipe.write_all(&fixture("office")[..PIECE]).unwrap();
    assert!(!following.until("\"http\"").is_empty());
    drop(pipe);
    assert_eq!(following.ended().code(), Some(3), "the last packet is cut");
}

#[test]
fn only_one_file_or_directory_is_followed() {
    for arguments in [&["--follow", "a.pcap", "b.pcap"][..], &["--follow", "-"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_netsniff"))
            .arg("analyze")
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("--follow takes one file, or one directory"), "{said}");
    }
}
