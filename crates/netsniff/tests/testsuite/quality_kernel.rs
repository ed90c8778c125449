//! Verdicts about lost frames, held against connections of this machine's own TCP stack, with losses that filters of
//! the kernel make and interfaces record. Needs root and a few programs; says so where they are missing.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::zeek::corpus::{Scratch, analyze};
use crate::zeek::log;
use netsniff_testing::quality::Place;
use netsniff_testing::quality::recording::Recording;
use netsniff_testing::quality::score::{Score, Share};
use netsniff_testing::{Need, skip};

/// A hundred thousand connections are the business of `benches/quality.sh`; these end within half a minute.
const CONNECTIONS: &str = "60";

/// Percent of frames that are lost at each place.
const LOSS: &str = "1.5";

/// Of a thousand: with so few connections two wrong verdicts are more than one of a hundred.
const FEW: u64 = 950;

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/quality/record.sh");

/// The exit code of `record.sh` where a machine cannot do it.
const UNABLE: i32 = 3;

/// Records to a folder; `false` where this machine cannot.
fn record(folder: &Path) -> bool {
    for program in ["bash", "ip", "tc", "ethtool", "tcpdump", "python3", "timeout"] {
        let found = Command::new("sh")
            .args(["-c", &format!("PATH=$PATH:/usr/sbin:/sbin command -v {program}")])
            .output();
        if !found.is_ok_and(|found| found.status.success()) {
            skip(
                Need::Program(program),
                format_args!(
                    "there is no {program}, so no losses of the kernel were held against the verdicts"
                ),
            );
            return false;
        }
    }
    // The script removes its namespaces however it ends; `timeout` gives it the chance.
    let run = Command::new("timeout")
        .args(["-k", "5", "28", "bash", RECORD])
        .arg(folder)
        .args([LOSS, LOSS, LOSS, "1", "8", CONNECTIONS, "1", "python"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    if run.status.code() == Some(UNABLE) {
        skip(
            Need::Root,
            format_args!("no losses of the kernel were held against the verdicts: {errors}"),
        );
        return false;
    }
    assert!(run.status.success(), "{}: {errors}", run.status);
    true
}

#[test]
fn losses_of_the_kernel_are_found_and_told_apart() {
    let scratch = Scratch::new("kernel");
    fs::create_dir_all(scratch.path()).unwrap();
    if !record(scratch.path()) {
        return;
    }
    let recording = Recording::read(scratch.path());
    let logs = scratch.path().join("logs");
    analyze(&scratch.path().join("capture.pcap"), &logs, &[]);
    let rows = |name: &str| log::read(&logs.join(name)).unwrap();
    let score = Score::new(&recording, rows("conn.log"), rows("gaps.log"));
    for (name, value) in score.figures() {
        println!("{name}: {value}");
    }
    for wrong in &score.wrong {
        println!("{}", wrong.text());
    }
    assert!(score.flows + score.not_captured >= 60);
    assert_eq!((score.without_row, score.invented_rows), (0, 0));
    for place in Place::ALL {
        let lost: u64 =
            score.frames.iter().filter(|((at, _), _)| *at == place).map(|(_, lost)| lost).sum();
        assert!(lost > 5, "{place:?}: {lost} frames were lost");
    }
    // Each run draws its losses anew; one connection that is hard to tell is no fault.
    let reached =
        |share: Share| share.of > 0 && (share.of - share.right <= 1 || share.reaches(FEW));
    assert!(reached(score.precision) && reached(score.recall));
    assert!(reached(score.causes) && reached(score.no_cause_invented));
}
