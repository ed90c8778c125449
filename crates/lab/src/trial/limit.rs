//! What was in the way of a capture that lost something (PAPERS C3).

use std::time::Duration;

use super::Trial;
use crate::host::machine::Busy;

/// What there was too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The kernel lost most of it before any socket had it: its backlog, or the ring of a NAPI, was full.
    Kernel,
    /// The share of a processor that the tool was given.
    Quota,
    /// The memory that the tool may have.
    Memory,
    /// Time of the processors that capture, of which other machines took the most.
    Steal,
    /// Time of the processors that capture, of which receiving took the most.
    Receiving,
    /// Time of the processors that capture, of which the tool took the most.
    Tool,
    /// The planted disk, or another one that netsniff's recorder says that it waits for.
    Disk,
    /// The ring: it was full at times, though there was processor time left.
    Ring,
    /// What the sender can do.
    Sender,
}

/// The share of a processor that is as good as nothing left.
const LEFT: f64 = 0.1;

/// The part of a quota that is as good as all of it.
const USED: f64 = 0.9;

/// What a tool was given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given<'a> {
    /// The processors that it ran on.
    pub(super) processors: &'a [usize],
    /// For how long they were watched.
    pub(super) watched: Duration,
    /// The share of one that it had, where it had not all.
    pub(super) quota: Option<f64>,
    /// Whether it came to the bound of its memory meanwhile.
    pub(super) is_short_of_memory: bool,
}

impl Limit {
    /// What a trial lost something for, whose tool was given that; `None` where nothing was lost, or where that, or what the
    /// processors did, is unknown.
    pub(super) fn of(trial: &Trial, given: &Given<'_>) -> Option<Self> {
        let lost =
            trial.offered()?.checked_sub(trial.counted.captured?).filter(|lost| *lost > 0)?;
        if trial.offered()?.saturating_sub(trial.monitored()) * 2 > lost {
            return Some(Self::Kernel);
        }
        let seconds = trial.sent as f64 / trial.reached?;
        let tool = trial.cpu_ns as f64 / 1e9 / seconds;
        if given.quota.is_some_and(|quota| tool >= quota * USED) {
            return Some(Self::Quota);
        }
        let busy: Vec<_> =
            given.processors.iter().map(|at| trial.processors.get(*at)).collect::<Option<_>>()?;
        // Of the time that frames were sent; the generator needs some before and after that.
        let sum = |of: fn(&Busy) -> f64| {
            busy.iter().map(|it| of(it)).sum::<f64>() * given.watched.as_secs_f64() / seconds
        };
        if sum(|busy| 1.0 - busy.idle) > (1.0 - LEFT) * busy.len() as f64 {
            let receiving = sum(|busy| busy.softirq + busy.irq);
            let all = [
                (sum(|busy| busy.steal), Self::Steal),
                (receiving, Self::Receiving),
                (tool, Self::Tool),
            ];
            return all.into_iter().max_by(|one, other| one.0.total_cmp(&other.0)).map(|it| it.1);
        }
        // Who waits for memory that is taken from others leaves the processor idle.
        let is_behind = trial.counted.refused.is_some_and(|refused| refused * 2 > lost);
        Some(match trial.written {
            _ if given.is_short_of_memory => Self::Memory,
            None if !is_behind => Self::Ring,
            _ => Self::Disk,
        })
    }

    /// It in words that stand behind "limited by".
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Kernel => "the kernel, before the socket",
            Self::Quota => "the share of a processor",
            Self::Memory => "memory",
            Self::Steal => "other virtual machines",
            Self::Receiving => "the processor: receiving",
            Self::Tool => "the processor: the tool",
            Self::Disk => "the disk",
            Self::Ring => "the ring: bursts or pauses",
            Self::Sender => "the sender",
        }
    }

    /// What most of some trials are limited by; `None` where none is by anything, and where most of those that prove
    /// something lost nothing: what disturbed the others is no limit.
    pub fn usual<'a>(trials: impl Iterator<Item = &'a Trial> + Clone) -> Option<Self> {
        let valid = trials.clone().filter(|trial| trial.is_valid());
        let losses: Vec<_> = valid.filter_map(Trial::loss).collect();
        let without = losses.iter().filter(|loss| **loss == 0.0).count();
        if without * 2 > losses.len() {
            return None;
        }
        let limits = || trials.clone().filter_map(|trial| trial.limit);
        let number = |limit: &Self| limits().filter(|other| other == limit).count();
        limits().max_by_key(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::Counted;

    const SECOND: Duration = Duration::from_secs(1);

    /// A second of 1000 frames, of which 400 are lost, and a tool that had so much of the processor beside others.
    fn trial(tool: f64, busy: Busy) -> Trial {
        Trial {
            sent: 1000,
            arrived: 1000,
            reached: Some(1000.0),
            counted: Counted { captured: Some(600), ..Counted::default() },
            cpu_ns: (tool * 1e9) as u64,
            processors: vec![Busy { idle: 1.0, ..Busy::default() }, busy],
            ..Trial::default()
        }
    }

    const GIVEN: Given<'_> =
        Given { processors: &[1], watched: SECOND, quota: None, is_short_of_memory: false };

    fn limit(trial: &Trial) -> Option<Limit> {
        Limit::of(trial, &GIVEN)
    }

    #[test]
    fn who_takes_the_processor_is_told() {
        let full = |user, softirq, steal| Busy { user, softirq, steal, ..Busy::default() };
        assert_eq!(limit(&trial(0.7, full(0.7, 0.3, 0.0))), Some(Limit::Tool));
        assert_eq!(limit(&trial(0.3, full(0.3, 0.7, 0.0))), Some(Limit::Receiving));
        assert_eq!(limit(&trial(0.2, full(0.2, 0.2, 0.6))), Some(Limit::Steal));
        // Where a tool has a share, another one may have the rest.
        let busy = Busy { user: 0.25, idle: 0.75, ..Busy::default() };
        let quarter = Given { quota: Some(0.25), ..GIVEN };
        assert_eq!(Limit::of(&trial(0.25, busy), &quarter), Some(Limit::Quota));
        assert_eq!(Limit::of(&trial(0.1, busy), &quarter), Some(Limit::Ring));
        // The generator needed a fifth of a second before it sent.
        let early = trial(0.8, Busy { user: 0.67, softirq: 0.16, idle: 0.17, ..Busy::default() });
        let watched = Duration::from_millis(1200);
        assert_eq!(Limit::of(&early, &Given { watched, ..GIVEN }), Some(Limit::Tool));
        assert_eq!(limit(&early), Some(Limit::Ring));
        // Both processors capture, and one of them had nothing to do.
        let one = trial(0.9, full(0.9, 0.1, 0.0));
        assert_eq!(Limit::of(&one, &Given { processors: &[1, 0], ..GIVEN }), Some(Limit::Ring));
    }

    #[test]
    fn time_that_is_left_tells_of_the_ring_or_the_disk() {
        let busy = Busy { user: 0.3, idle: 0.7, ..Busy::default() };
        let lossy = trial(0.3, busy);
        assert_eq!(limit(&lossy), Some(Limit::Ring));
        let written = Some(crate::disk::Written::default());
        assert_eq!(limit(&Trial { written, ..lossy.clone() }), Some(Limit::Disk));
        // A recorder that refuses most of what is lost has a slow disk.
        let refused = |refused| {
            let counted = Counted { refused: Some(refused), ..lossy.counted.clone() };
            limit(&Trial { counted, ..lossy.clone() })
        };
        assert_eq!((refused(201), refused(200)), (Some(Limit::Disk), Some(Limit::Ring)));
        // Where it was short of memory, that is why; but for a processor that is full in any case.
        let short = Given { is_short_of_memory: true, ..GIVEN };
        assert_eq!(Limit::of(&lossy, &short), Some(Limit::Memory));
        let full = trial(0.9, Busy { user: 0.9, softirq: 0.1, ..Busy::default() });
        assert_eq!(Limit::of(&full, &short), Some(Limit::Tool));
        // Most was lost before the socket, or less than half of it.
        assert_eq!(limit(&Trial { arrived: 750, ..lossy.clone() }), Some(Limit::Kernel));
        assert_eq!(limit(&Trial { arrived: 850, ..lossy.clone() }), Some(Limit::Ring));
        let counted = |captured| Counted { captured, ..Counted::default() };
        for nothing in [counted(Some(1000)), counted(None)] {
            assert_eq!(limit(&Trial { counted: nothing, ..lossy.clone() }), None);
        }
        assert_eq!(limit(&Trial { processors: Vec::new(), ..lossy }), None, "unknown");
    }

    #[test]
    fn the_usual_one_is_that_of_most() {
        let of = |limit| Trial { limit, ..Trial::default() };
        let [ring, tool] = [Limit::Ring, Limit::Tool].map(Some);
        let trials = [of(tool), of(None), of(ring), of(None), of(None), of(ring)];
        assert_eq!(Limit::usual(trials.iter()), ring);
        assert_eq!(Limit::usual(trials[..1].iter()), tool);
        assert_eq!(Limit::usual(trials[1..2].iter()), None);
        // One of three was disturbed.
        let counted = |captured| Counted { captured: Some(captured), ..Counted::default() };
        let run = |captured, limit| Trial { sent: 10, counted: counted(captured), ..of(limit) };
        let [lossless, lossy] = [run(10, None), run(9, ring)];
        let usual = |trials: [&Trial; 3]| Limit::usual(trials.into_iter());
        assert_eq!(usual([&lossless, &lossy, &lossless]), None);
        assert_eq!(usual([&lossy, &lossy, &lossless]), ring);
    }
}
