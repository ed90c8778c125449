//! What the runs of a file come to: rates of each subject, costs of stages, and what options and workers change.

use serde::Serialize;

use super::subject::{OfflineSubject, Role, Stage};
use super::{OfflineRun, StoredOutcome};
use crate::compare::interval::Estimate;
use crate::search::median::median;

/// The middle of some values, and how far they reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The lowest of the values.
    pub least: f64,
    /// The highest of the values.
    pub most: f64,
}

/// Figures of a subject, over the runs that count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// The name of the subject.
    pub subject: String,
    /// Runs that count.
    pub runs: usize,
    /// Seconds from start to end.
    pub seconds: Spread,
    /// Seconds on processors.
    pub cpu_seconds: Spread,
    /// Packets of the file a second; `None` where the subject does not read it.
    pub packets_per_second: Option<Spread>,
    /// Bits a second that the packets had on the wire; `None` where the subject does not read the file.
    pub bits_per_second: Option<Spread>,
    /// Nanoseconds for a packet of the file, from start to end.
    pub ns_per_packet: Spread,
    /// Nanoseconds on processors for a packet of the file.
    pub cpu_ns_per_packet: Spread,
    /// The most resident memory of any run, in bytes; `None` where a run does not tell.
    pub peak_bytes: Option<u64>,
    /// Bytes that no run exceeded, where the most is not known.
    pub peak_below: Option<u64>,
    /// Packets that it says it has read, the same in every run; `None` where it does not say, or differently.
    pub packets: Option<u64>,
}

/// A mean with its interval of 95 %, which is `None` where the repetitions do not tell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// Both ends.
    pub interval: Option<[f64; 2]>,
    /// Rounds that it is from.
    pub rounds: usize,
}

/// What a stage costs beyond the one before.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageCost {
    /// The stage.
    pub stage: Stage,
    /// Nanoseconds for a packet, from start to end.
    pub ns: Mean,
    /// Nanoseconds on processors for a packet.
    pub cpu_ns: Mean,
}

/// What a subject takes beside netsniff with all stages, one worker and no other option.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The name of the subject.
    pub subject: String,
    /// How many times as long it takes: the geometric mean.
    pub times: Mean,
    /// How many times as long it is on processors: the geometric mean.
    pub cpu_times: Mean,
    /// Nanoseconds on processors for a packet that it takes more.
    pub cpu_ns: Mean,
}

impl Mean {
    fn of(values: &[f64], scale: fn(f64) -> f64) -> Option<Self> {
        let estimate = Estimate::of(values)?;
        Some(Self {
            value: scale(estimate.value),
            interval: estimate.interval(scale).ends(),
            rounds: values.len(),
        })
    }
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let values: Vec<_> = values.collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Self { median: median(values)?, least, most })
    }
}

impl StoredOutcome {
    /// Figures of a subject; `None` where no run counts.
    #[must_use]
    pub fn figures(&self, subject: &OfflineSubject) -> Option<Figures> {
        let runs: Vec<_> = self.counting(&subject.name).collect();
        let of = |value: fn(&OfflineRun) -> u64, scale: f64| {
            Spread::of(runs.iter().map(|run| value(run) as f64 * scale))
        };
        let each = 1.0 / self.capture.packets.max(1) as f64;
        let rate = |of_file: u64| {
            if subject.role == Role::Stage(Stage::Start) {
                return None;
            }
            Spread::of(runs.iter().map(|run| of_file as f64 * 1e9 / run.wall_ns.max(1) as f64))
        };
        let known = runs.iter().all(|run| run.peak_bytes.is_some());
        let bounds: Option<Vec<_>> =
            runs.iter().map(|run| run.peak_bytes.or(run.peak_below)).collect();
        let most = bounds.and_then(|bounds| bounds.into_iter().max());
        let packets = runs.first()?.packets;
        Some(Figures {
            subject: subject.name.clone(),
            runs: runs.len(),
            seconds: of(|run| run.wall_ns, 1e-9)?,
            cpu_seconds: of(OfflineRun::cpu_ns, 1e-9)?,
            packets_per_second: rate(self.capture.packets),
            bits_per_second: rate(self.capture.wire_bytes.saturating_mul(8)),
            ns_per_packet: of(|run| run.wall_ns, each)?,
            cpu_ns_per_packet: of(OfflineRun::cpu_ns, each)?,
            peak_bytes: most.filter(|_| known),
            peak_below: most.filter(|_| !known),
            packets: packets.filter(|_| runs.iter().all(|run| run.packets == packets)),
        })
    }

    /// What each stage costs, up to the first one that cannot be told. The costs sum up to what all of it takes, where the same
    /// rounds tell all stages.
    #[must_use]
    pub fn stages(&self) -> Vec<StageCost> {
        let mut costs = Vec::new();
        for (at, stage) in Stage::ALL.into_iter().enumerate() {
            let before = at.checked_sub(1).map(|before| Stage::ALL[before].name());
            let cost = |value: fn(&OfflineRun) -> u64| {
                let each = 1.0 / self.capture.packets.max(1) as f64;
                let values: Vec<_> = match before {
                    None => self.counting(stage.name()).map(|run| value(run) as f64).collect(),
                    Some(before) => self
                        .pairs(before, stage.name())
                        .map(|[less, more]| value(more) as f64 - value(less) as f64)
                        .collect(),
                };
                Mean::of(&values.iter().map(|value| value * each).collect::<Vec<_>>(), |end| end)
            };
            let (Some(ns), Some(cpu_ns)) = (cost(|run| run.wall_ns), cost(OfflineRun::cpu_ns))
            else {
                break;
            };
            costs.push(StageCost { stage, ns, cpu_ns });
        }
        costs
    }

    /// What each subject that is netsniff with all stages takes beside the one without other options; those that no round
    /// tells are left out.
    #[must_use]
    pub fn changes(&self) -> Vec<Change> {
        let is_whole =
            |subject: &&OfflineSubject| matches!(subject.role, Role::Variant | Role::Workers(_));
        self.subjects.iter().filter(is_whole).filter_map(|subject| self.change(subject)).collect()
    }

    fn change(&self, subject: &OfflineSubject) -> Option<Change> {
        let pairs: Vec<_> = self.pairs(Stage::Rows.name(), &subject.name).collect();
        let times = |value: fn(&OfflineRun) -> u64| {
            let ratio = |[base, it]: &[&OfflineRun; 2]| {
                (value(it).max(1) as f64 / value(base).max(1) as f64).ln()
            };
            Mean::of(&pairs.iter().map(ratio).collect::<Vec<_>>(), f64::exp)
        };
        let each = 1.0 / self.capture.packets.max(1) as f64;
        let more =
            |[base, it]: &[&OfflineRun; 2]| (it.cpu_ns() as f64 - base.cpu_ns() as f64) * each;
        Some(Change {
            subject: subject.name.clone(),
            times: times(|run| run.wall_ns)?,
            cpu_times: times(OfflineRun::cpu_ns)?,
            cpu_ns: Mean::of(&pairs.iter().map(more).collect::<Vec<_>>(), |end| end)?,
        })
    }

    /// Why a subject has no figures, or fewer than rounds: the first of its failures.
    #[must_use]
    pub fn failure(&self, subject: &OfflineSubject) -> Option<&str> {
        let of = self.runs.iter().filter(|run| run.subject == subject.name);
        of.filter_map(|run| run.failure.as_deref()).next()
    }

    /// Runs of a subject that count.
    fn counting(&self, name: &str) -> impl Iterator<Item = &OfflineRun> {
        self.runs.iter().filter(move |run| run.subject == name && run.counts())
    }

    /// Runs of two subjects in the same rounds.
    fn pairs(&self, first: &str, second: &str) -> impl Iterator<Item = [&OfflineRun; 2]> {
        let second: Vec<_> = self.counting(second).collect();
        self.counting(first).filter_map(move |run| {
            let other = second.iter().find(|other| other.round == run.round)?;
            Some([run, *other])
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::StoredCapture;
    use super::super::peers::PEERS;
    use super::super::subject::Variant;
    use super::*;

    pub(crate) fn run(round: u32, subject: &str, wall_ns: u64, cpu_ns: u64) -> OfflineRun {
        OfflineRun {
            round,
            subject: subject.to_owned(),
            wall_ns,
            user_ns: cpu_ns - cpu_ns / 4,
            system_ns: cpu_ns / 4,
            peak_bytes: Some(1_000_000 * u64::from(round)),
            peak_below: None,
            packets: Some(100),
            failure: None,
        }
    }

    /// Stages that take 1, 2, 4 … thousands of nanoseconds, in three rounds of which each takes ten more for every stage.
    pub(crate) fn outcome() -> StoredOutcome {
        let variant = Variant::parse("full=-a").unwrap();
        let mut subjects: Vec<_> =
            Stage::ALL.map(|stage| OfflineSubject::stage(stage, "netsniff")).to_vec();
        subjects.push(OfflineSubject::workers(2, "netsniff"));
        subjects.push(OfflineSubject::variant(&variant, "netsniff"));
        subjects.push(OfflineSubject::peer(&PEERS[0]));
        let mut runs = Vec::new();
        for round in 0..=3 {
            let mut wall = 0;
            for (at, stage) in Stage::ALL.into_iter().enumerate() {
                wall += (1000 << at) + u64::from(round) * 10;
                runs.push(run(round, stage.name(), wall, wall / 2));
            }
            runs.push(run(round, "rows, 2 workers", wall / 2, wall));
            runs.push(run(round, "full", wall + 1000, wall / 2 + 1000 + u64::from(round) * 100));
            runs.push(run(round, "tcpdump", 5000, 4000));
        }
        // The round that only fills caches.
        runs[0].wall_ns = 1_000_000;
        StoredOutcome {
            capture: StoredCapture {
                path: "a.pcap".into(),
                file_bytes: 3000,
                packets: 100,
                wire_bytes: 2000,
                captured_bytes: 1000,
                damage: Vec::new(),
            },
            rounds: 3,
            subjects,
            runs,
            ended: None,
        }
    }

    #[test]
    fn stages_cost_what_they_add_and_sum_up_to_all() {
        let outcome = outcome();
        let stages = outcome.stages();
        assert_eq!(stages.len(), Stage::ALL.len());
        // In 100 packets, and with the 20 nanoseconds that the second of three rounds takes more.
        let costs: Vec<_> = stages.iter().map(|cost| (cost.ns.value * 100.0).round()).collect();
        assert_eq!(costs, [1020.0, 2020.0, 4020.0, 8020.0, 16020.0, 32020.0, 64020.0]);
        let all = outcome.figures(&outcome.subjects[6]).unwrap();
        let sum: f64 = stages.iter().map(|cost| cost.ns.value).sum();
        assert!((sum - all.ns_per_packet.median).abs() < 1e-6, "{sum} {all:?}");
        let [low, high] = stages[1].ns.interval.unwrap();
        // Ten nanoseconds of deviation: t of two degrees of freedom, over the root of three rounds.
        let half = 4.302_652_729_749_462 * 10.0 / 3.0_f64.sqrt() / 100.0;
        assert!((high - 20.20 - half).abs() < 1e-9 && (low - 20.20 + half).abs() < 1e-9);
        assert_eq!(stages[1].ns.rounds, 3);
    }

    #[test]
    fn the_first_round_and_failures_count_for_nothing() {
        let mut outcome = outcome();
        let start = outcome.subjects[0].clone();
        assert!((outcome.figures(&start).unwrap().seconds.most - 1030e-9).abs() < 1e-15);
        for run in outcome.runs.iter_mut().filter(|run| run.subject == "flows") {
            run.failure = (run.round != 2).then(|| "killed".to_owned());
        }
        let flows = outcome.subjects[3].clone();
        assert_eq!(outcome.figures(&flows).unwrap().runs, 1);
        assert_eq!(outcome.failure(&flows), Some("killed"));
        let stages = outcome.stages();
        assert_eq!((stages[3].ns.rounds, stages[3].ns.interval, stages[5].ns.rounds), (1, None, 3));
        outcome.runs.retain(|run| run.subject != "flows");
        assert_eq!(outcome.figures(&flows), None);
        assert_eq!(outcome.stages().len(), 3, "what comes behind cannot be told from it");
    }

    #[test]
    fn rates_are_of_the_file() {
        let outcome = outcome();
        let of = |at: usize| outcome.figures(&outcome.subjects[at]).unwrap();
        let peer = of(9);
        let rate = peer.packets_per_second.unwrap();
        assert!((rate.median - 100.0 / 5e-6).abs() < 1e-3 && rate.least == rate.most, "{rate:?}");
        assert!((peer.bits_per_second.unwrap().median - 16_000.0 / 5e-6).abs() < 1.0);
        assert_eq!((peer.ns_per_packet.median, peer.cpu_ns_per_packet.median), (50.0, 40.0));
        assert_eq!((peer.peak_bytes, peer.packets), (Some(3_000_000), Some(100)));
        assert_eq!(of(0).packets_per_second, None, "nothing is read of the file");
        let mut mute = outcome.clone();
        let last = mute.runs.last_mut().unwrap();
        (last.peak_bytes, last.packets) = (None, Some(99));
        let peer = |of: &StoredOutcome| of.figures(&of.subjects[9]).unwrap();
        assert_eq!((peer(&mute).peak_bytes, peer(&mute).packets), (None, None));
        assert_eq!(peer(&mute).peak_below, None, "one run tells nothing");
        mute.runs.last_mut().unwrap().peak_below = Some(2_500_000);
        assert_eq!((peer(&mute).peak_bytes, peer(&mute).peak_below), (None, Some(2_500_000)));
    }

    #[test]
    fn options_and_workers_are_compared_in_pairs() {
        let changes = outcome().changes();
        let names: Vec<_> = changes.iter().map(|change| change.subject.as_str()).collect();
        assert_eq!(names, ["rows, 2 workers", "full"]);
        let (workers, full) = (&changes[0], &changes[1]);
        assert!((workers.times.value - 0.5).abs() < 1e-4, "{workers:?}");
        assert!((workers.cpu_times.value - 2.0).abs() < 1e-3);
        // 1,100, 1,200 and 1,300 more, for 100 packets.
        assert!((full.cpu_ns.value - 12.0).abs() < 1e-9, "{full:?}");
        let [low, high] = full.cpu_ns.interval.unwrap();
        let half = 4.302_652_729_749_462 / 3.0_f64.sqrt();
        assert!((low - 12.0 + half).abs() < 1e-9 && (high - 12.0 - half).abs() < 1e-9);
        assert!(full.cpu_times.interval.unwrap()[0] > 1.0);
    }
}
