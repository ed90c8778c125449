//! S3's capture buffers before a disk that stalls, and on memory: its reason for them, and for its memory disk.

use std::time::Duration;

use super::super::score::{Seen, percent};
use super::super::{
    Across, Experiment, Figure, Kind, Quantity, Results, Scale, Score, Selection, Sweep, TOLERATED,
    axis, tools,
};
use crate::disk::{PIPE, Stream};
use crate::load::{FCS_LEN, Load};
use crate::search::sweep::{Pace, Run};
use crate::testbed::Layout;

const DISK: &str = "disk";
const OURS: &str = "disk-netsniff";

/// The paper's rings before and after.
const SMALL: &str = "2M";
const LARGE: &str = "32M";

/// How long the disk takes nothing, in periods of the length of a short run, from the shortest. Without a stall files are in
/// memory. Of 20,000 frames a second the small ring holds a seventh of a second, and the large one two and a half.
const STALLS: [&str; 6] = [MEMORY, "200ms/4s", "500ms/4s", "1s/4s", "2s/4s", "3s/4s"];
const MEMORY: &str = "off";
const RATE: f64 = 20_000.0;
const SIZE: u32 = 584;

/// Bytes before each packet in a pcap file.
const HEADER: u32 = 16;

/// By how much what is lost may be off what arithmetic says.
const OFF: f64 = 0.03;

/// What is run: with dumpcap, or tcpdump where that is missing, and with netsniff as it comes.
pub(super) fn experiments(scale: &Scale) -> [Experiment; 2] {
    let stalls = scale.either(&[MEMORY, "200ms/4s", "1s/4s", "3s/4s"], &STALLS);
    let others = tools(&["dumpcap-default", "tcpdump-default"]);
    let first = others.iter().find(|tool| tool.is_here()).or(others.first()).cloned();
    let experiment = |name, title, tools, axes| Experiment {
        name,
        title,
        tools,
        sizes: vec![SIZE],
        kind: Kind::Sweep(Sweep {
            paces: vec![Pace::Rate(RATE.min((scale.top(SIZE) / 2.0).round()))],
            times: vec![Duration::from_secs(if scale.is_short { 4 } else { 8 })],
            repetitions: scale.repetitions(),
            axes,
            host: vec![axis("disk-stall", stalls)],
            ..Sweep::default()
        }),
    };
    [
        experiment(
            DISK,
            "Rings of 2 and of 32 MB before a disk that stalls, and on memory",
            first.into_iter().collect(),
            vec![axis("ring", &[SMALL, LARGE])],
        ),
        experiment(OURS, "The same with netsniff record as it comes", tools(&["record"]), vec![]),
    ]
}

pub(super) fn figure() -> Figure {
    Figure {
        title: "Before a disk that stalls",
        caption: "Every 4 s the disk takes nothing for so long; at 0 files are in memory. The paper: the capture buffer \
                  compensates for latency of disk I/O.",
        of: vec![DISK, OURS],
        across: Across::Stall,
        quantities: vec![Quantity::Loss],
        limits: Vec::new(),
    }
}

/// The shortest stall that loses something, of those that were tried.
fn first_that_loses(runs: &Selection<'_>) -> Option<&'static str> {
    let loses = |stall: &&'static str| loss(runs, stall).is_some_and(|loss| loss > TOLERATED);
    STALLS.into_iter().skip(1).find(loses)
}

fn loss(runs: &Selection<'_>, stall: &str) -> Option<f64> {
    runs.set("disk-stall", stall).median(Quantity::Loss)
}

fn from(stall: Option<&str>) -> String {
    stall.map_or("at no stall".to_owned(), |stall| format!("from {stall} on"))
}

/// Whether the larger ring survives stalls that the smaller one does not; not told where the smaller one loses on memory,
/// too, or before no stall.
fn compensates(results: &Results) -> Seen {
    let runs = results.of(DISK);
    let (small, large) = (runs.set("ring", SMALL), runs.set("ring", LARGE));
    let memory = loss(&small, MEMORY)?;
    let (before, after) = (first_that_loses(&small), first_that_loses(&large));
    let at = before.map(|stall| loss(&large, stall));
    let seen = format!(
        "2 MB lose {}, 32 MB {}; on memory 2 MB lose {}",
        from(before),
        from(after),
        percent(memory)
    );
    let is_told = memory <= TOLERATED && at.flatten().is_some();
    Some((is_told.then_some(at.flatten() <= Some(TOLERATED)), seen))
}

/// What arithmetic says that a run loses: a ring, but for half a block of libpcap, and the pipe hold what comes meanwhile.
fn expected(run: &Run) -> Option<f64> {
    const BLOCK: f64 = 262_144.0;
    let trial = &run.trial;
    let disk = Layout::default().with(&run.point.host).ok()?.disk?;
    let bytes = f64::from(SIZE - FCS_LEN + HEADER);
    let held = Load::share_of_ring(SIZE, (BLOCK / 2.0) as u64, trial.sent);
    let ring = (trial.ring_share? - held).max(0.0) * trial.sent as f64;
    let packets = trial.load.rate?;
    let time = Duration::try_from_secs_f64(trial.sent as f64 / packets).ok()?;
    Some(disk.loses(&Stream { packets, bytes, room: ring + PIPE as f64 / bytes, time }))
}

fn arithmetic(results: &Results) -> Seen {
    let runs = results.of(DISK);
    let pairs: Vec<_> =
        runs.runs().filter_map(|run| Some((run.trial.loss()?, expected(run)?))).collect();
    let off = pairs.iter().map(|(lost, expected)| (lost - expected).abs()).reduce(f64::max)?;
    let most = pairs.iter().map(|(_, expected)| *expected).reduce(f64::max)?;
    let seen = format!(
        "{} runs lose up to {}, off by {} at most",
        pairs.len(),
        percent(most),
        percent(off)
    );
    Some(((most > OFF).then_some(off <= OFF), seen))
}

/// Whether nothing is lost where there is no disk; not told where no disk loses anything, either.
fn memory(results: &Results) -> Seen {
    let runs = results.of(DISK);
    let (small, large) = (runs.set("ring", SMALL), runs.set("ring", LARGE));
    let (with_small, with_large) = (loss(&small, MEMORY)?, loss(&large, MEMORY)?);
    let most = STALLS.iter().skip(1).filter_map(|stall| loss(&small, stall)).reduce(f64::max)?;
    let seen = format!(
        "on memory 2 MB lose {}, 32 MB {}; before the disk 2 MB lose up to {}",
        percent(with_small),
        percent(with_large),
        percent(most)
    );
    let is_clean = with_small.max(with_large) <= TOLERATED;
    Some(((most > TOLERATED).then_some(is_clean), seen))
}

fn ours(results: &Results) -> Seen {
    let runs = results.of(OURS);
    let losses = STALLS.iter().skip(1).filter_map(|stall| Some((loss(&runs, stall)?, *stall)));
    let (most, at) = losses.reduce(|one, other| if other.0 > one.0 { other } else { one })?;
    let theirs = first_that_loses(&results.of(DISK).set("ring", SMALL));
    let seen =
        format!("{} at most, at {at}; 2 MB of the other lose {}", percent(most), from(theirs));
    Some((theirs.map(|_| most <= TOLERATED), seen))
}

pub(super) fn judge(results: &Results) -> [Score; 4] {
    [
        results.score(
            "A capture buffer of 32 MB instead of 2 compensates for latency of disk I/O",
            "S3 session 3; E-18", compensates),
        results.score(
            "It does as long as it has room for what comes meanwhile: the rest is lost, as arithmetic says (our claim)",
            "E-18, X5, B8", arithmetic),
        results.score(
            "A disk in memory takes storage out of what is measured",
            "S3; E-19", memory),
        results.score(
            "Netsniff record as it comes loses nothing before that disk, since it has a queue of its own (our claim)",
            "E-18, A19", ours),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::super::results::tests::run;
    use super::super::super::setting;
    use super::*;
    use crate::paper::ClaimVerdict;

    /// Runs of 4 s with a ring, of which the losses by stalls are known.
    fn runs(ring: &str, losses: &[(&str, f64)]) -> Vec<Run> {
        let load =
            Load { size: SIZE, rate: Some(RATE), time: Duration::from_secs(4), ..Load::default() };
        let one = |(stall, loss): &(&str, f64)| {
            let mut run = run(&[("ring", ring)], load.clone(), *loss);
            run.point.host = vec![setting("disk-stall", stall)];
            let packets = 80_000;
            run.trial.sent = packets;
            run.trial.counted.captured = Some((80_000.0 * (1.0 - loss)) as u64);
            let bytes = crate::search::sweep::number(ring).unwrap() as u64;
            run.trial.ring_share = Some(Load::share_of_ring(SIZE, bytes, packets));
            run
        };
        losses.iter().map(one).collect()
    }

    fn judged(small: &[(&str, f64)], large: &[(&str, f64)], ours: &[(&str, f64)]) -> Vec<Score> {
        let disk = [runs(SMALL, small), runs(LARGE, large)].concat();
        let all = [(DISK.to_owned(), disk), (OURS.to_owned(), runs("64M", ours))];
        judge(&Results { runs: all.into(), ..Results::default() }).into()
    }

    fn verdicts(scores: &[Score]) -> Vec<ClaimVerdict> {
        scores.iter().map(|score| score.verdict).collect()
    }

    /// What arithmetic says of the two rings.
    const FEW: [(&str, f64); 4] =
        [(MEMORY, 0.0), ("200ms/4s", 0.012), ("1s/4s", 0.212), ("3s/4s", 0.712)];
    const MANY: [(&str, f64); 4] =
        [(MEMORY, 0.0), ("200ms/4s", 0.0), ("1s/4s", 0.0), ("3s/4s", 0.127)];
    const NONE: [(&str, f64); 4] =
        [(MEMORY, 0.0), ("200ms/4s", 0.0), ("1s/4s", 0.0), ("3s/4s", 0.0)];

    use ClaimVerdict::{Fails, Holds, Unavailable};

    #[test]
    fn a_ring_compensates_as_far_as_it_reaches() {
        let scores = judged(&FEW, &MANY, &NONE);
        assert_eq!(verdicts(&scores), [Holds; 4], "{scores:#?}");
        assert_eq!(
            scores[0].seen,
            "2 MB lose from 200ms/4s on, 32 MB from 3s/4s on; on memory 2 MB lose 0.00 %"
        );
        assert_eq!(
            scores[3].seen,
            "0.00 % at most, at 200ms/4s; 2 MB of the other lose from 200ms/4s on"
        );
    }

    #[test]
    fn what_is_no_merit_of_the_ring_is_not_said_to_be() {
        // The larger ring loses as the smaller one does, and netsniff, too.
        let scores = judged(&FEW, &FEW, &MANY);
        assert_eq!(verdicts(&scores), [Fails, Fails, Holds, Fails], "{scores:#?}");
        // No disk loses anything.
        let scores = judged(&NONE, &NONE, &NONE);
        assert_eq!(
            verdicts(&scores),
            [Unavailable, Fails, Unavailable, Unavailable],
            "{scores:#?}"
        );
        // Memory loses, too.
        let slow = FEW.map(|(stall, loss)| (stall, loss + 0.01));
        let scores = judged(&slow, &MANY, &NONE);
        assert_eq!(verdicts(&scores), [Unavailable, Holds, Fails, Holds], "{scores:#?}");
        // The larger ring was not tried.
        let scores = judged(&FEW, &[], &[]);
        assert_eq!(
            verdicts(&scores),
            [Unavailable, Holds, Unavailable, Unavailable],
            "{scores:#?}"
        );
    }
}
