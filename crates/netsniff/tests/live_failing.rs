//! Tools and testbeds that fail in the middle of many: the others are measured, and what was is written. Needs root; says so
//! where it is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use netsniff_lab::search::lossless::{Subject, measure};
use netsniff_lab::search::{Goal, HighestRate};
use netsniff_lab::stop::Stop;
use netsniff_lab::testbed::Layout;
use netsniff_lab::tools::Tool;
use netsniff_lab::trial::Fault;
use serde_json::Value;

mod lab_bed;

use lab_bed::{BOUNDS, alone, has_groups, make};
use netsniff_testing::{Need, skip};

const NETSNIFF: &str = env!("CARGO_BIN_EXE_netsniff");

/// A capture that ends before it captures.
const BROKEN: &str = "broken=false IFACE FILE";

/// Where sweeps write to, which goes with this value.
struct Output(PathBuf);

impl Drop for Output {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Output {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("netsniff-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }

    fn runs(&self) -> Vec<Value> {
        let text = self.read("runs.jsonl");
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// A sweep of a tool that does not fail, and others; its exit code, what it prints, and what it says of errors.
    fn sweep(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let count = ["--tools", "count", "--sizes", "128", "--rates", "2k"];
        self.sweep_of(&[&count[..], arguments].concat())
    }

    /// Any other.
    fn sweep_of(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(NETSNIFF);
        command.args(["lab", "sweep"]);
        let out = command.args(arguments).arg("-o").arg(&self.0).output().unwrap();
        let [output, errors] =
            [out.stdout, out.stderr].map(|text| String::from_utf8(text).unwrap());
        (out.status.code(), output, errors)
    }
}

/// What fails stands there with its reason; a tool that does not begin is not tried again, and the others are measured.
#[test]
fn a_tool_that_fails_does_not_end_a_sweep() {
    let _alone = alone();
    let test = "a_tool_that_fails_does_not_end_a_sweep";
    if make(test, &Layout::default()).is_none() {
        return;
    }
    let directory = Output::new("failing");
    // One that goes in the middle.
    fs::create_dir(&directory.0).unwrap();
    let script = directory.0.join("script");
    fs::write(&script, "sleep 2\n").unwrap();
    let short = format!("short=sh {} IFACE FILE", script.display());
    let output = Output(directory.0.join("report"));
    let tools = ["--command", BROKEN, "--command", &short, "--time", "900ms", "--repeat", "2"];
    let (code, text, errors) = output.sweep(&tools);
    assert_eq!(code, Some(1), "{errors}");
    let runs = output.runs();
    let of = |name: &str| -> Vec<&Value> {
        runs.iter().filter(|run| run["point"]["tool"] == name).collect()
    };
    for (name, number, fault, why) in [
        ("broken", 2, "unable", "broken ended at once (exit status: 1)"),
        ("short", 6, "failed", "short ended before the load did"),
    ] {
        let runs = of(name);
        assert_eq!(runs.len(), number, "{name}: {errors}");
        for run in runs {
            assert_eq!(run["trial"]["faults"], serde_json::json!([fault]), "{run}");
            assert!(run["trial"]["failure"].as_str().unwrap().starts_with(why), "{run}");
        }
        assert!(errors.contains(why), "{errors}");
        assert!(output.read("sweep.html").contains(why), "{name}");
        assert_eq!(output.read("sweep.csv").matches(why).count(), number, "{name}");
    }
    // The second round comes after the first one of those that fail.
    let counted = of("count");
    assert!(counted.iter().any(|run| run["point"]["repetition"] == 1), "{errors}");
    assert!(counted.iter().all(|run| run["trial"]["failure"].is_null()), "{errors}");
    assert!(text.contains("broken, 128"), "{text}");
    let (code, _, errors) = output.sweep(&[&tools[..], &["--resume"]].concat());
    assert_eq!((code, output.runs().len()), (Some(1), runs.len()), "{errors}");
    assert!(errors.contains("0 runs, about"), "{errors}");
}

/// A recorder whose file is in memory needs more and more of it: it is killed at its bound, which is said.
#[test]
fn a_tool_that_needs_more_memory_than_it_may_have_is_told() {
    let _alone = alone();
    let test = "a_tool_that_needs_more_memory_than_it_may_have_is_told";
    if !has_groups(BOUNDS) {
        skip(Need::Kernel, format_args!("{test} needs control groups that bound memory"));
        return;
    }
    if make(test, &Layout::default()).is_none() {
        return;
    }
    let output = Output::new("memory");
    // 16 MB a second.
    let words = ["--tools", "record", "--sizes", "1024", "--rates", "16k", "--time", "3s"];
    let host = ["--repeat", "1", "--host", "memory=off,1G,24M"];
    let (code, text, errors) = output.sweep_of(&[&words[..], &host].concat());
    assert_eq!(code, Some(1), "{errors}");
    let why = "killed, since it needs more than 25165824 bytes of memory: record ended before";
    let mut killed = 0;
    for run in output.runs().iter().filter(|run| run["point"]["tool"] == "record") {
        let trial = &run["trial"];
        if run["point"]["host"][0]["value"] == "24M" {
            assert!(trial["failure"].as_str().unwrap().starts_with(why), "{run}");
            assert_eq!(trial["limit"], "memory", "{run}");
            killed += 1;
        } else {
            assert!(trial["failure"].is_null() && trial["limit"] != "memory", "{run}");
            assert!(trial["counted"]["captured"].as_u64().unwrap() > 20_000, "{run}");
        }
    }
    assert!(killed > 0, "{errors}");
    let row = text.lines().find(|line| line.contains("record, 1024, memory 24M")).unwrap();
    assert!(row.ends_with(" memory"), "{row}");
    assert!(errors.contains(why) && output.read("sweep.html").contains(why), "{errors}");
}

/// Where a testbed cannot be made nothing more is measured, but what was is written.
#[test]
fn what_was_measured_is_written_whatever_prevents_the_rest() {
    let _alone = alone();
    let test = "what_was_measured_is_written_whatever_prevents_the_rest";
    if make(test, &Layout::default()).is_none() {
        return;
    }
    let output = Output::new("prevented");
    let host = ["--host", "net.core.netdev_budget=300,many", "--time", "200ms", "--repeat", "1"];
    let (code, text, errors) = output.sweep(&host);
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("the kernel does not take net.core.netdev_budget=many"), "{errors}");
    assert!(text.contains("count, 128, net.core.netdev_budget 300"), "{text}");
    assert_eq!(output.read("sweep.csv").lines().count(), output.runs().len() + 1);
    assert!(!output.runs().is_empty() && output.read("sweep.html").contains("Losses"));
}

/// A search of a tool that does not begin tells why, at once.
#[test]
fn a_tool_that_fails_does_not_end_searches() {
    let _alone = alone();
    let test = "a_tool_that_fails_does_not_end_searches";
    let Some(bed) = make(test, &Layout::default()) else { return };
    let (goal, signal) = (Goal::default(), std::sync::Arc::default());
    let tool = Tool::of_command(BROKEN).unwrap();
    let subject = Subject { tool: &tool, size: 128, options: &[], tolerated: 0.0 };
    let stop = Stop::new(&signal, None);
    let cell = measure(&bed, Path::new(NETSNIFF), subject, &goal, &stop, &mut |_| {}).unwrap();
    assert_eq!((cell.found, cell.steps.len()), (HighestRate::Ended, 1), "{cell:?}");
    assert_eq!(cell.steps[0].trial.faults, [Fault::Unable]);
    let why = cell.ended.unwrap();
    assert!(why.starts_with("broken ended at once (exit status: 1)"), "{why}");
}
