//! `netsniff doctor tune` against planted bottlenecks: what takes them away is kept. Needs root; says so where it is missing.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

mod lab_bed;

use lab_bed::{SHARES, alone, has_groups, is_able};
use netsniff_testing::{Need, skip};
use serde_json::Value;

const NETSNIFF: &str = env!("CARGO_BIN_EXE_netsniff");

/// A directory for a report, which goes with this value.
struct Output(PathBuf);

impl Drop for Output {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Tunes a host with a bottleneck by runs of a length, and tells what became of the candidates; `None`, said loudly, where no run
/// proved anything.
fn tuned(name: &str, time: &str, arguments: &[&str]) -> Option<Value> {
    if !is_able() {
        skip(Need::Root, format_args!("{name} needs namespaces and two processors"));
        return None;
    }
    let output =
        Output(std::env::temp_dir().join(format!("netsniff-tune-{}-{name}", std::process::id())));
    let _ = fs::remove_dir_all(&output.0);
    let common = ["doctor", "tune", "--quiet", "--time", time, "--pairs", "3", "-o"];
    let out = Command::new(NETSNIFF).args(common).arg(&output.0).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(matches!(out.status.code(), Some(0 | 1)), "{errors}");
    if errors.contains("another lab measures") {
        skip(Need::Quiet, format_args!("{name}: {errors}"));
        return None;
    }
    let json = fs::read_to_string(output.0.join("tune.json"))
        .unwrap_or_else(|why| panic!("{why}: {errors}"));
    assert!(
        fs::read_to_string(output.0.join("tune.html")).unwrap().contains("Effect of each change")
    );
    let report: Value = serde_json::from_str(&json).unwrap();
    let is_void = |outcome: &Value| {
        outcome["verdict"]["untried"].as_str().is_some_and(|why| why.contains("sender"))
    };
    if report["outcomes"].as_array().unwrap().iter().any(is_void) {
        skip(Need::Quiet, format_args!("{name}: {}", report["outcomes"]));
        return None;
    }
    Some(report)
}

/// What became of a candidate.
fn verdict<'a>(report: &'a Value, name: &str) -> &'a Value {
    let outcomes = report["outcomes"].as_array().unwrap();
    let of = outcomes.iter().find(|outcome| outcome["candidate"]["name"] == name);
    &of.unwrap_or_else(|| panic!("{name} is not in {report}"))["verdict"]
}

/// A planted bottleneck is taken away by the one candidate, which is kept.
#[track_caller]
fn assert_kept(name: &str, time: &str, words: &str, candidate: &str) {
    let words: Vec<_> = words.split_whitespace().collect();
    let Some(report) = tuned(name, time, &words) else { return };
    assert_eq!(verdict(&report, candidate), "kept", "{report}");
}

/// Whether a processor can be shared out here; said loudly where it cannot.
fn has_shares() -> bool {
    let has = has_groups(SHARES);
    if !has {
        skip(Need::Kernel, "no control groups that share processors out");
    }
    has
}

#[test]
fn a_share_of_a_processor_is_given_back() {
    let _alone = alone();
    if has_shares() {
        // A ring that holds less than what comes.
        let words = "--goal 80k --set ring=2M --host quota=2 --only quota=100";
        assert_kept("quota", "700ms", words, "quota=100");
    }
}

#[test]
fn a_short_backlog_is_made_longer() {
    let _alone = alone();
    let longer = "net.core.netdev_max_backlog=16000";
    let words = format!("--goal 100k --host net.core.netdev_max_backlog=2 --only {longer}");
    assert_kept("backlog", "700ms", &words, longer);
    let now = fs::read_to_string("/proc/sys/net/core/netdev_max_backlog").unwrap();
    assert!(!["2", "16000"].contains(&now.trim()), "the machine has {now}");
}

#[test]
fn a_small_ring_is_made_larger() {
    let _alone = alone();
    if has_shares() {
        // A capture that stands still for some 50 ms at a time, with a ring for 15 ms.
        let words = "--goal 30k --set ring=64K --set block=32K --host quota=2 --only ring=64M";
        assert_kept("ring", "500ms", words, "--ring=64M");
    }
}

#[test]
fn busy_neighbours_are_sent_away() {
    let _alone = alone();
    // They leave the capture a turn now and then, and its ring is full before.
    let words = "--goal 30k --set ring=64K --set block=32K --host neighbours=6 --only neighbours=0";
    assert_kept("neighbours", "500ms", words, "neighbours=0");
}

#[test]
fn folklore_is_taken_back() {
    let _alone = alone();
    // Nothing is lost without it, so that it cannot help.
    let Some(report) =
        tuned("folklore", "700ms", &["--goal", "5k", "--only", "net.core.dev_weight=256"])
    else {
        return;
    };
    assert_eq!(verdict(&report, "net.core.dev_weight=256"), "no-effect", "{report}");
}
