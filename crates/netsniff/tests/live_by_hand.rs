//! What the lab says of tcpdump and dumpcap, against counting by hand: their own counters, and the numbers in the frames that
//! they wrote. Needs root; says so where it is missing.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use netsniff_lab::load::Load;
use netsniff_lab::testbed::Layout;
use netsniff_lab::tools::Tool;
use netsniff_lab::trial::{self, Trial};

mod lab_bed;

use lab_bed::{alone, make};
use netsniff_testing::{Need, skip};

const NETSNIFF: &str = env!("CARGO_BIN_EXE_netsniff");

/// What is read in a file of stamped frames: how many numbers there are, how many of them come again, and how many are
/// missing up to the last one.
fn numbers(file: &Path) -> [u64; 3] {
    let out = Command::new(NETSNIFF).args(["receive", "--json"]).arg(file).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let stream = &report["streams"][0];
    ["received", "duplicates", "missing"].map(|name| stream[name].as_u64().unwrap())
}

/// A run on a small part of a processor, and what is in the file.
fn starved(test: &str, tool: &Tool) -> Option<(Trial, [u64; 3])> {
    let bed = make(test, &Layout { quota: Some(0.04), ..Layout::default() })?;
    let load =
        Load { size: 512, rate: Some(300_000.0), time: Duration::from_secs(3), ..Load::default() };
    let mut seen = None;
    let mut look = |file: &Path| {
        seen = Some(numbers(file));
        Ok(())
    };
    let trial = trial::run_and(&bed, Path::new(NETSNIFF), tool, &load, &mut look).unwrap();
    Some((trial, seen.unwrap()))
}

#[test]
fn tools_lose_what_counting_by_hand_says() {
    let _alone = alone();
    for name in ["tcpdump-default", "dumpcap-default"] {
        let tool = Tool::all().into_iter().find(|tool| tool.name == name).unwrap();
        if !tool.is_here() {
            skip(
                Need::Program(name),
                format_args!("{name} is not installed, so that nothing was counted by hand"),
            );
            continue;
        }
        let Some((trial, [received, doubled, missing])) = starved(name, &tool) else { return };
        let (captured, dropped) = (trial.counted.captured.unwrap(), trial.counted.dropped.unwrap());
        // Each frame in the file is one that was sent, and there once.
        assert_eq!((captured, doubled), (received, 0), "{name}: {trial:?}");
        // What is neither in the file nor dropped on the wire is what the tool itself says.
        assert_eq!(trial.arrived - captured, dropped, "{name}: {trial:?}");
        assert!(dropped > trial.sent / 20, "{name} was to be starved: {trial:?}");
        // The numbers tell the same, but for those behind the last one that was written.
        let lost = trial.sent - captured;
        assert!(missing <= lost && missing > lost / 2, "{name}: {missing} of {lost}");
        let [loss, kernel, application] =
            [trial.loss(), trial.kernel_loss(), trial.application_loss()].map(Option::unwrap);
        assert_eq!(loss, lost as f64 / trial.sent as f64);
        let on_the_wire = (trial.sent - trial.arrived) as f64 / trial.sent as f64;
        assert_eq!((kernel, application), (on_the_wire, dropped as f64 / trial.arrived as f64));
    }
}
