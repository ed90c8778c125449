//! S1's paradox: more work for each packet, and less loss, since who is faster than the packets asks the kernel for nearly
//! every one of them, and pays for that (figure 11).
//!
//! It takes packets that come one by one, a kernel that works on the processor of the capture, and a ring so small that it
//! does not bridge the time that asking takes, as rings were in 2010; and a rate near what that capture manages, which a
//! little more work turns from asking to reading. Well below it nothing is lost, and well above it nobody asks.

use super::super::score::{Seen, percent, rate};
use super::super::{
    Across, Experiment, Figure, Kind, Quantity, Results, Scale, Score, Selection, Sweep, axis,
    tools,
};
use super::POINTS;

const NAIVE: &str = "paradox-naive";
const OURS: &str = "paradox";

const SIZE: u32 = 64;

/// Rings: as small as they were, and one that holds less than a tenth of a run.
const SMALL: &str = "64K";
const USUAL: &str = "4M";

/// Questions to the kernel for each packet from which on they cost something.
const MANY: f64 = 0.01;

/// What is run: the ring of frames with poll(2), and netsniff's own way.
pub(super) fn experiments(scale: &Scale) -> [Experiment; 2] {
    let levels = scale.either(&["0", "1", "3"], &["0", "1", "2", "3"]);
    let parts = scale
        .either(&[0.12, 0.15, 0.18, 0.21, 0.24], &[0.12, 0.14, 0.16, 0.18, 0.2, 0.22, 0.24, 0.26]);
    let naive = vec![axis("backend", &["af-packet-v2"]), axis("wait", &["poll"])];
    let experiment = |name, title, ring: &str, way| Experiment {
        name,
        title,
        tools: tools(&["work"]),
        sizes: vec![SIZE],
        kind: Kind::Sweep(Sweep {
            paces: Scale::parts(scale.top(SIZE), parts),
            times: scale.times(),
            // One run of a point may be no more than a disturbance.
            repetitions: scale.repeated(if scale.is_short { 2 } else { 3 }),
            axes: [way, vec![axis("ring", &[ring]), axis("zip", levels)]].concat(),
            send: vec![axis("burst", &["1"])],
            host: vec![axis("placement", &["rps"])],
            ..Sweep::default()
        }),
    };
    [
        experiment(
            NAIVE,
            "The paradox: packets of 64 bytes one by one, a naive capture with a small ring",
            SMALL,
            naive,
        ),
        experiment(OURS, "The same with netsniff's own way to capture and wait", USUAL, vec![]),
    ]
}

pub(super) fn figures() -> [Figure; 2] {
    let figure = |title, caption, quantity| Figure {
        title,
        caption,
        of: vec![NAIVE, OURS],
        across: Across::Option("zip"),
        quantities: vec![quantity],
        limits: Vec::new(),
    };
    [
        figure(
            "The paradox: loss against load, near what a naive capture manages",
            "The paper: on Linux, of 64 bytes, less is lost at a higher load. Each line is a rate.",
            Quantity::Loss,
        ),
        figure(
            "The paradox: questions to the kernel for each packet",
            "The paper's reason: the faster application asks for nearly every packet.",
            Quantity::Polls,
        ),
    ]
}

/// The most that loss falls from one level to a higher one in any case, of pairs of levels that are meant: from the least of
/// the runs of the one to the most of those of the other. A single run that was disturbed makes it less, and none makes it
/// more.
fn fall(runs: &Selection<'_>, is_meant: impl Fn(u32, u32) -> bool) -> Option<Reduction> {
    let ends = |level: u32| runs.set("zip", &level.to_string()).ends(Quantity::Loss);
    let levels: Vec<_> = (0..=9).filter_map(|level| Some((level, ends(level)?))).collect();
    let pairs = levels.iter().enumerate().flat_map(|(number, low)| {
        let to = |high: &(u32, (f64, f64))| Reduction {
            levels: [low.0, high.0],
            by: low.1.0 - high.1.1,
        };
        levels[number + 1..].iter().map(to)
    });
    let meant = pairs.filter(|fall| is_meant(fall.levels[0], fall.levels[1]));
    meant.max_by(|one, other| one.by.total_cmp(&other.by))
}

/// By how much less is lost at the second of two levels than at the first.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    levels: [u32; 2],
    by: f64,
}

/// The largest fall that questions to the kernel are the reason of: the fast application asks again and again, and the
/// slower one at most half as often.
fn caused(runs: &Selection<'_>) -> Option<Reduction> {
    let polls = |level: u32| runs.set("zip", &level.to_string()).median(Quantity::Polls);
    let is_by_polls = |low: u32, high: u32| {
        let both = polls(low).zip(polls(high));
        both.is_some_and(|(before, after)| before >= MANY && after <= before / 2.0)
    };
    fall(runs, is_by_polls).filter(|fall| fall.by > POINTS)
}

/// Whether there is a rate at which more work loses less for that reason.
fn paradox(results: &Results, experiment: &str) -> Seen {
    let rates = results.of(experiment).rates();
    let all = |of: fn(&Selection<'_>) -> Option<Reduction>| {
        let falls = rates.iter().filter_map(|(at, runs)| Some((*at, runs, of(runs)?)));
        falls.max_by(|one, other| one.2.by.total_cmp(&other.2.by))
    };
    let is_there = all(caused);
    let is_caused = is_there.is_some();
    let (at, runs, Reduction { levels: [low, high], .. }) =
        is_there.or_else(|| all(|runs| fall(runs, |_, _| true)))?;
    let words = |level: u32| {
        let of = runs.set("zip", &level.to_string());
        let (loss, number) = (of.median(Quantity::Loss)?, of.runs().count());
        let polls = of.median(Quantity::Polls);
        let polls = polls.map_or("unavailable".to_owned(), |polls| format!("{polls:.4}"));
        let loss = percent(loss);
        Some(format!("{loss} lost at level {level} ({polls} questions a packet, {number} runs)"))
    };
    let seen = format!("{}: {}, {}", rate(at), words(low)?, words(high)?);
    Some((Some(is_caused), seen))
}

pub(super) fn judge(results: &Results) -> [Score; 2] {
    let ours = |results: &Results| {
        let (is_there, seen) = paradox(results, OURS)?;
        Some((is_there.map(|is_there| !is_there), seen))
    };
    [
        results.score(
            "At 64 bytes more load gives less loss, since a fast application polls for nearly every packet (naive mode)",
            "S1 fig. 11; D12", |results| paradox(results, NAIVE)),
        results.score("Netsniff's own way does not have that paradox (our claim)", "D12, D15", ours),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::super::results::tests::run;
    use super::*;
    use crate::load::Load;
    use crate::paper::ClaimVerdict;
    use crate::search::sweep::Run;

    fn verdicts(runs: &[(&str, &[Run])]) -> [ClaimVerdict; 2] {
        let runs = runs.iter().map(|(name, runs)| ((*name).to_owned(), runs.to_vec())).collect();
        judge(&Results { runs, ..Results::default() }).map(|score| score.verdict)
    }

    fn at(rate: f64, level: &str, loss: f64, polls: u64) -> Run {
        let load = Load { size: SIZE, rate: Some(rate), ..Load::default() };
        let mut run = run(&[("zip", level)], load, loss);
        run.trial.counted.books = Some(serde_json::json!({ "polls": polls }));
        run
    }

    #[test]
    fn a_paradox_is_one_of_questions_to_the_kernel() {
        use ClaimVerdict::{Fails, Holds, Unavailable};
        let runs = |polls: [u64; 3]| {
            let [first, second, third] = polls;
            [at(2e5, "0", 0.5, first), at(2e5, "1", 0.3, second), at(2e5, "9", 0.9, third)]
        };
        let (nearly_each, never) = (runs([400_000, 10_000, 0]), runs([9, 1, 0]));
        assert_eq!(verdicts(&[(NAIVE, &nearly_each), (OURS, &never)]), [Holds, Holds]);
        // A loss that falls, and not since the kernel is asked less often, is another matter.
        assert_eq!(verdicts(&[(NAIVE, &never), (OURS, &nearly_each)]), [Fails, Fails]);
        let as_often = runs([400_000, 300_000, 0]);
        assert_eq!(verdicts(&[(NAIVE, &as_often)]), [Fails, Unavailable]);
        // One run of a level that loses as little as another one, and runs are not told from noise.
        let disturbed = [&nearly_each[..], &[at(2e5, "0", 0.31, 400_000)]].concat();
        assert_eq!(verdicts(&[(NAIVE, &disturbed)])[0], Fails);
    }

    #[test]
    fn loads_are_compared_at_one_rate() {
        use ClaimVerdict::{Fails, Holds};
        let apart = [
            at(1e5, "1", 0.0, 0),
            at(1e5, "0", 0.0, 400_000),
            at(2e5, "0", 0.5, 400_000),
            at(2e5, "1", 0.6, 0),
        ];
        assert_eq!(verdicts(&[(NAIVE, &apart)])[0], Fails);
        let one_of_two = [&apart[..], &[at(3e5, "0", 0.5, 400_000), at(3e5, "1", 0.1, 0)]].concat();
        assert_eq!(verdicts(&[(NAIVE, &one_of_two)])[0], Holds);
    }
}
