//! `netsniff doctor tune` against planted bottlenecks: what takes them away is kept. Needs root; says so where it is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

mod lab_bed;

use lab_bed::{SHARES, alone, has_groups, is_able, make};
use netsniff_lab::load::Load;
use netsniff_lab::testbed::Layout;
use netsniff_lab::tools::{Setting, Tool};
use netsniff_lab::trial::{self, Trial};
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

/// What a tuner wrote and said.
struct Tuned {
    report: Value,
    page: String,
    said: String,
}

impl Tuned {
    /// What became of a candidate.
    fn outcome(&self, name: &str) -> &Value {
        let outcomes = self.report["outcomes"].as_array().unwrap();
        let of = outcomes.iter().find(|outcome| outcome["candidate"]["name"] == name);
        of.unwrap_or_else(|| panic!("{name} is not in {}", self.report))
    }

    #[track_caller]
    fn assert(&self, name: &str, verdict: &str) {
        assert_eq!(self.outcome(name)["verdict"], verdict, "{}", self.report);
    }

    /// How far apart shares are that were lost in runs of the same thing.
    fn spread(&self, name: &str) -> f64 {
        let of = |side: &str| {
            let shares = self.outcome(name)[side].as_array().unwrap().iter();
            let shares = shares.filter_map(Value::as_f64);
            shares.clone().fold(0.0, f64::max) - shares.fold(1.0, f64::min)
        };
        of("without").max(of("with"))
    }

    /// Whether something was lost with a candidate or without it.
    fn has_lost(&self, name: &str) -> bool {
        let shares = |side: &str| self.outcome(name)[side].as_array().unwrap();
        shares("without").iter().chain(shares("with")).any(|share| share.as_f64() != Some(0.0))
    }
}

/// Tunes a host with a bottleneck by runs of a length, and tells what became of the candidates; `None`, said loudly, where no run
/// proved anything.
fn tuned(name: &str, time: &str, arguments: &str) -> Option<Tuned> {
    if !is_able() {
        skip(Need::Root, format_args!("{name} needs namespaces and two processors"));
        return None;
    }
    let output =
        Output(std::env::temp_dir().join(format!("netsniff-tune-{}-{name}", std::process::id())));
    let _ = fs::remove_dir_all(&output.0);
    let common = ["doctor", "tune", "--quiet", "--time", time, "--pairs", "3", "-o"];
    let words = arguments.split_whitespace();
    let out = Command::new(NETSNIFF).args(common).arg(&output.0).args(words).output().unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(matches!(out.status.code(), Some(0 | 1)), "{errors}");
    if errors.contains("another lab measures") {
        skip(Need::Quiet, format_args!("{name}: {errors}"));
        return None;
    }
    let json = fs::read_to_string(output.0.join("tune.json"))
        .unwrap_or_else(|why| panic!("{why}: {errors}"));
    let page = fs::read_to_string(output.0.join("tune.html")).unwrap();
    assert!(page.contains("Effect of each change"));
    let report: Value = serde_json::from_str(&json).unwrap();
    let is_void = |outcome: &Value| {
        outcome["verdict"]["untried"].as_str().is_some_and(|why| why.contains("sender"))
    };
    if report["outcomes"].as_array().unwrap().iter().any(is_void) {
        skip(Need::Quiet, format_args!("{name}: {}", report["outcomes"]));
        return None;
    }
    Some(Tuned { report, page, said: String::from_utf8(out.stdout).unwrap() })
}

/// How often a bottleneck is tuned at most: on a busy machine one run that was held up hides what a change does.
const TRIES: usize = 3;

/// A planted bottleneck is taken away by the one candidate, which is kept.
#[track_caller]
fn assert_kept(name: &str, time: &str, words: &str, candidate: &str) {
    let mut last = None;
    for _ in 0..TRIES {
        let Some(tuned) = tuned(name, time, words) else { return };
        if tuned.outcome(candidate)["verdict"] == "kept" {
            return;
        }
        last = Some(tuned);
    }
    let Some(tuned) = last else { return };
    if tuned.spread(candidate) > NOISE {
        skip(Need::Quiet, format_args!("{name}: runs alike differ: {}", tuned.outcome(candidate)));
        return;
    }
    tuned.assert(candidate, "kept");
}

/// Runs of the same thing that differ by such a share of the packets tell of others on the machine.
const NOISE: f64 = 0.2;

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
    let words = "--goal 5k --only net.core.dev_weight=256";
    if let Some(tuned) = tuned("folklore", "700ms", words) {
        tuned.assert("net.core.dev_weight=256", "no-effect");
    }
}

#[test]
fn flows_are_received_on_more_processors() {
    let _alone = alone();
    // The backlog of one processor is short, and half of the flows go to that of the sender's, which never fills: it is
    // emptied behind each frame.
    let words = "--goal 80k --host net.core.netdev_max_backlog=2 --only receivers=all";
    assert_kept("receivers", "500ms", words, "receivers=all");
}

#[test]
fn a_thread_of_napi_needs_no_backlog() {
    let _alone = alone();
    let words = "--goal 80k --host net.core.netdev_max_backlog=2 --only placement=thread";
    assert_kept("thread", "500ms", words, "placement=thread");
}

/// Packets each of which takes a capture some microseconds: it is full before the sender is, and the sooner the more it receives
/// itself. Its ring holds a moment of them, so that no pause of the machine counts.
const HEAVY: [(&str, &str); 2] = [("zip", "1"), ("ring", "8M")];

/// The first rate at which a heavy capture clearly loses where it receives on its own processor; `None`, said loudly with what was
/// seen, where the sender comes to none.
fn crowded(test: &str) -> Option<f64> {
    let work = Tool::all().into_iter().find(|tool| tool.name == "work").unwrap();
    let options = HEAVY.map(|(name, value)| Setting { name: name.into(), value: value.into() });
    let work = work.with(&options).unwrap();
    let bed = make(test, &Layout::default())?;
    let mut seen = Vec::new();
    let mut rate = 100_000.0;
    while rate < 800_000.0 {
        let load = Load { size: 64, rate: Some(rate), time: LONG, ..Load::default() };
        let run = || trial::run(&bed, Path::new(NETSNIFF), &work, &load).unwrap();
        let proven = (0..TRIES).map(|_| run()).find(Trial::is_valid);
        let loss = proven.and_then(|trial| trial.loss());
        seen.push((rate, loss));
        match loss {
            Some(loss) if loss >= CLEAR => return Some(rate),
            Some(_) => rate *= 1.4,
            // The sender comes to no higher one, either.
            None => break,
        }
    }
    let seen = format_args!("{test}: losses at rates, as far as the sender comes: {seen:?}");
    skip(Need::Quiet, seen);
    None
}

const LONG: Duration = Duration::from_secs(1);

/// A share of packets that is no noise.
const CLEAR: f64 = 0.3;

#[test]
fn a_capture_is_freed_of_receiving() {
    let _alone = alone();
    if !is_able() {
        skip(Need::Root, "placement needs namespaces and two processors");
        return;
    }
    let Some(rate) = crowded("placement") else { return };
    let options = HEAVY.map(|(name, value)| format!("--set {name}={value}")).join(" ");
    let words = format!("--goal {rate:.0} --tool work {options} --only placement=none");
    assert_kept("placement", "1s", &words, "placement=none");
}

/// A small budget makes a processor leave its work and come again. That costs time, and loses nothing while there is some left:
/// the tuner says so, and keeps nothing.
#[test]
fn a_small_budget_alone_loses_nothing() {
    let _alone = alone();
    let more = ["net.core.netdev_budget=1200", "net.core.dev_weight=256"];
    let words = format!(
        "--goal 10k --host net.core.netdev_budget=1 --host net.core.dev_weight=1 --only {} --only {}",
        more[0], more[1]
    );
    let Some(tuned) = tuned("budget", "500ms", &words) else { return };
    if more.iter().any(|name| tuned.has_lost(name)) {
        skip(Need::Quiet, format_args!("budget: others had the processor: {}", tuned.report));
        return;
    }
    more.iter().for_each(|name| tuned.assert(name, "no-effect"));
    assert!(tuned.said.contains("kept: nothing"), "{}", tuned.said);
    let now = fs::read_to_string("/proc/sys/net/core/dev_weight").unwrap();
    assert!(!["1", "256"].contains(&now.trim()), "the machine has {now}");
}

/// No queue helps one flow: the tuner measures that, and says why.
#[test]
fn one_flow_is_not_shared_out() {
    let _alone = alone();
    const ONE: &str = "all frames are of one flow, which one queue and one processor take";
    let words = "--goal 5k --placement thread --send flows=1 --only queues=2";
    let Some(one) = tuned("flow", "300ms", words) else { return };
    one.assert("queues=2", "no-effect");
    assert_eq!(one.outcome("queues=2")["candidate"]["note"], "one-flow", "{}", one.report);
    assert!(one.said.contains(ONE) && one.said.contains("kept: nothing"), "{}", one.said);
    assert!(one.page.contains("What loss does not judge") && one.page.contains(ONE));
}
