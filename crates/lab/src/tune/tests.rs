//! The search on a host that is arithmetic.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;

/// What captures so many frames a second, and more with changes: a name, and by what factor.
struct Host {
    capacity: f64,
    helps: Vec<(&'static str, f64)>,
    /// Noise: shares that are added in turn.
    noise: Vec<f64>,
    runs: usize,
    fastest: f64,
}

impl Bench for Host {
    fn loss(&mut self, rate: f64, changes: &[&Candidate]) -> anyhow::Result<Loss> {
        self.runs += 1;
        if rate > self.fastest {
            return Ok(Loss::Unknown("the sender was too slow".to_owned()));
        }
        if changes.iter().any(|it| it.name == "impossible") {
            return Ok(Loss::Unable("the kernel has none".to_owned()));
        }
        let factor = |of: &&Candidate| {
            self.helps.iter().find(|(name, _)| *name == of.name).map_or(1.0, |it| it.1)
        };
        let capacity = changes.iter().map(factor).product::<f64>() * self.capacity;
        let lost = (1.0 - capacity / rate).max(0.0);
        let noise = self.noise[self.runs % self.noise.len()];
        Ok(Loss::Share(if lost > 0.0 { (lost + noise).max(0.000_001) } else { 0.0 }))
    }
}

fn candidates(names: &[&str]) -> Vec<Candidate> {
    let one = |name: &&str| Candidate {
        name: (*name).to_owned(),
        what: What::Tool(Vec::new()),
        note: None,
    };
    names.iter().map(one).collect()
}

fn goal(rate: Option<f64>) -> TuneGoal {
    TuneGoal { rate, first: 1000.0, pairs: 4, run: Duration::from_secs(1) }
}

fn search(host: &mut Host, names: &[&str], rate: Option<f64>, budget: Option<Duration>) -> Tuned {
    let signal = Arc::new(AtomicBool::new(false));
    let stop = Stop::new(&signal, budget);
    tune(host, &candidates(names), &goal(rate), &stop, &mut |_| {}).unwrap()
}

fn host() -> Host {
    Host {
        capacity: 10_000.0,
        helps: vec![("ring", 1.5), ("cpu", 2.0), ("bad", 0.5)],
        noise: vec![0.0, 0.01, -0.01, 0.005, -0.004, 0.008, 0.002],
        runs: 0,
        fastest: 1e9,
    }
}

#[test]
fn what_helps_beyond_noise_is_kept_and_nothing_else() {
    let tuned = search(
        &mut host(),
        &["folklore", "bad", "ring", "cpu", "impossible"],
        Some(40_000.0),
        None,
    );
    let verdicts: Vec<_> =
        tuned.outcomes.iter().map(|it| (it.candidate.name.as_str(), &it.verdict)).collect();
    let none = Verdict::Untried("the kernel has none".to_owned());
    assert_eq!(
        verdicts,
        [
            ("folklore", &Verdict::NoEffect),
            ("bad", &Verdict::Worse),
            ("ring", &Verdict::Kept),
            ("cpu", &Verdict::Kept),
            ("impossible", &none),
        ]
    );
    assert!(!tuned.is_lossless && tuned.ended.is_none());
    let [before, after] = [&tuned.before, &tuned.after].map(|of| mean(of).unwrap());
    assert!((before - 0.75).abs() < 0.02 && (after - 0.25).abs() < 0.02, "{before} {after}");
}

#[test]
fn a_rate_that_is_reached_ends_it() {
    let tuned = search(&mut host(), &["ring", "cpu"], Some(14_000.0), None);
    assert_eq!((tuned.outcomes.len(), tuned.is_lossless), (1, true));
    assert_eq!(tuned.kept().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["ring"]);
}

#[test]
fn without_a_rate_it_is_raised_until_something_is_lost() {
    let tuned = search(&mut host(), &["ring", "cpu", "folklore"], None, None);
    assert_eq!(tuned.kept().count(), 2);
    let first = tuned.outcomes[0].rate;
    assert!(first > 10_000.0 && first <= 15_000.0, "{first}");
    assert!(tuned.rate > first, "what was enough is tried at more: {}", tuned.rate);
    // What no sender reaches says nothing, and nothing is kept for it.
    let mut slow = Host { fastest: 5_000.0, ..host() };
    let tuned = search(&mut slow, &["ring"], None, None);
    assert!(matches!(tuned.outcomes[0].verdict, Verdict::Untried(_)));
    assert!(tuned.before.is_empty() && !tuned.is_lossless);
}

#[test]
fn what_there_is_no_time_for_is_not_begun() {
    let tuned =
        search(&mut host(), &["ring", "cpu"], Some(40_000.0), Some(Duration::from_millis(1)));
    assert_eq!((tuned.outcomes.len(), tuned.ended), (0, Some(Why::Budget)));
}

#[test]
fn runs_that_do_not_differ_have_no_noise() {
    let mut still = Host { noise: vec![0.0], ..host() };
    let tuned = search(&mut still, &["folklore", "bad", "ring"], Some(40_000.0), None);
    let verdicts: Vec<_> = tuned.outcomes.iter().map(|it| it.verdict.clone()).collect();
    assert_eq!(verdicts, [Verdict::NoEffect, Verdict::Worse, Verdict::Kept]);
}
