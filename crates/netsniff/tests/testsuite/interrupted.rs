//! Ctrl-C: what is not whole does not stay.

use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::generated::Folder;

/// Waits until there is something, or not any more.
fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_signal_that_ends_extract_leaves_no_file() {
    let office = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/office.pcapng");
    let office = fs::read(office).unwrap();
    for (name, number) in [("INT", 2), ("TERM", 15)] {
        let folder = Folder::new(&format!("interrupted-{name}"));
        let output = folder.path("out.pcapng");
        fs::write(&output, "before").unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_netsniff"))
            .args(["extract", "-q", "-", "-w", output.to_str().unwrap()])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        // The pipe stays open, so that there is no end.
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(&office).unwrap();
        wait("no file was begun", || folder.files().len() == 2);
        let signal = [format!("-{name}"), child.id().to_string()];
        assert!(Command::new("kill").args(signal).status().unwrap().success());
        let mut status = None;
        wait("it does not end", || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.unwrap().signal(), Some(number));
        assert_eq!(folder.files(), std::slice::from_ref(&output), "what was begun is left");
        assert_eq!(fs::read(&output).unwrap(), b"before");
    }
}
