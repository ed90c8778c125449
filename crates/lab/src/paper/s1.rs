//! S1: buffers, load of the application, and ways to wait.

use std::time::Duration;

use super::score::{percent, rate};
use super::{
    Across, Experiment, Figure, Kind, Paper, Quantity, Results, Scale, Score, Selection, Sweep,
    axis, tools,
};
use crate::sweep::Pace;

const NAIVE: &str = "load-naive";
const LOAD: &str = "load";
const OVERLOAD: &str = "overload";
const BURSTS: &str = "bursts";
const WAITS: &str = "waits";
const HUGE: &str = "huge-rings";

const SIZES: [u32; 3] = [64, 256, 512];

/// The server of the overload: so long for each packet.
const DELAY: &str = "20us";
const SERVED: f64 = 50_000.0;
const OVERLOADED: f64 = 75_000.0;

/// Differences below this are none.
const POINTS: f64 = 0.02;

pub(super) fn paper(scale: &Scale) -> Paper {
    Paper {
        name: "s1",
        citation: "L. Braun, A. Didebulidze, N. Kammenhuber, G. Carle: Comparing and improving current packet capturing \
                   solutions based on commodity hardware, IMC 2010, sections 4.2 and 4.3",
        about: "How loss depends on what the application does with each packet (compression with zlib), on the buffer, and \
                on how the capture waits. The naive mode is a ring of frames (TPACKET_V2) and poll(2) whenever it is empty.",
        experiments: experiments(scale),
        figures: figures(),
        judge,
    }
}

fn experiments(scale: &Scale) -> Vec<Experiment> {
    let (times, repetitions) = (scale.times(), scale.repetitions());
    let levels = scale
        .either(&["0", "1", "3", "6", "9"], &["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    let base = Sweep { times, repetitions, ..Sweep::default() };
    let work = || tools(&["work"]);
    let load = |naive: bool| {
        let mut axes = vec![axis("zip", levels)];
        if naive {
            axes.extend([axis("backend", &["af-packet-v2"]), axis("wait", &["poll"])]);
        }
        Sweep { paces: vec![Pace::Top], axes, ..base.clone() }
    };
    let seconds = scale.either(&[1, 2, 4, 8], &[1, 2, 5, 10, 20, 50]);
    let overload = Sweep {
        paces: vec![Pace::Rate(OVERLOADED)],
        times: seconds.iter().map(|seconds| Duration::from_secs(*seconds)).collect(),
        axes: vec![axis("delay", &[DELAY]), axis("ring", &["1M", "8M", "64M"])],
        ..base.clone()
    };
    let bursts = Sweep {
        paces: vec![Pace::Rate(SERVED * 0.5)],
        axes: vec![axis("delay", &[DELAY]), axis("ring", &["1M", "4M", "16M", "64M"])],
        send: vec![axis("burst", &["10000"])],
        ..base.clone()
    };
    let waits = Sweep {
        paces: Scale::parts(
            scale.top(64),
            scale.either(&[0.2, 0.5], &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]),
        ),
        axes: vec![axis("wait", &["poll", "busy", "adaptive"])],
        host: vec![axis("placement", &["none", "rps"])],
        ..base.clone()
    };
    let huge = Sweep {
        paces: Scale::parts(scale.top(512), scale.either(&[0.4], &[0.3, 0.4, 0.5])),
        axes: vec![axis("ring", &["16M", "64M", "256M", "1G"])],
        repetitions: 3,
        ..base.clone()
    };
    let of = |name, title, sizes: &[u32], tools, sweep| Experiment {
        name,
        title,
        tools,
        sizes: sizes.to_vec(),
        kind: Kind::Sweep(sweep),
    };
    vec![
        of(NAIVE, "Levels of compression, naive capture, full speed", &SIZES, work(), load(true)),
        of(
            LOAD,
            "Levels of compression, netsniff as it comes, full speed",
            &SIZES,
            work(),
            load(false),
        ),
        of(
            OVERLOAD,
            "A server of 20 us under 75,000 packets a second, by length of the run",
            &[512],
            work(),
            overload,
        ),
        of(
            BURSTS,
            "The same server under bursts of 10,000, at half of what it can do",
            &[512],
            work(),
            bursts,
        ),
        of(
            WAITS,
            "Ways to wait, with the kernel's work on the same and on another processor",
            &[64],
            tools(&["count"]),
            waits,
        ),
        of(HUGE, "Rings of up to 1 GB", &[512], tools(&["record"]), huge),
    ]
}

fn figures() -> Vec<Figure> {
    let figure = |title, caption, of: &[&'static str], across, quantities: &[Quantity]| Figure {
        title,
        caption,
        of: of.to_vec(),
        across,
        quantities: quantities.to_vec(),
    };
    let levels = Across::Option("zip");
    vec![
        figure(
            "Figures 10 and 11: loss against load",
            "The paper: loss grows with the load for 256 and 512 bytes, and falls with it for 64 bytes on Linux.",
            &[NAIVE, LOAD],
            levels,
            &[Quantity::Loss],
        ),
        figure(
            "Questions to the kernel for each packet, against load",
            "The paper's reason for that paradox: who is faster than the packets asks the kernel for nearly every one.",
            &[NAIVE, LOAD],
            levels,
            &[Quantity::Polls],
        ),
        figure(
            "Overload: loss against the length of the run, for three rings",
            "Arithmetic: 1 - 50,000 / 75,000 = 33.3 % in the end, whatever the ring, which only delays it.",
            &[OVERLOAD],
            Across::Time,
            &[Quantity::Loss],
        ),
        figure(
            "Bursts: loss against the size of the ring, at a mean rate that can be worked off",
            "Each burst of 10,000 frames takes 6 MB of a ring.",
            &[BURSTS],
            Across::Option("ring"),
            &[Quantity::Loss],
        ),
        figure(
            "Huge rings: time of the processor against the size of the ring",
            "The paper: excessively large buffers can harm.",
            &[HUGE],
            Across::Option("ring"),
            &[Quantity::Cpu],
        ),
    ]
}

/// The loss at a level of compression.
fn at_level(runs: &Selection<'_>, level: u32) -> Option<f64> {
    runs.set("zip", &level.to_string()).median(Quantity::Loss)
}

/// The most that loss falls from one level to a higher one.
fn fall(runs: &Selection<'_>) -> Option<(u32, u32, f64, f64)> {
    let levels: Vec<_> =
        (0..=9).filter_map(|level| Some((level, at_level(runs, level)?))).collect();
    let pairs = levels.iter().enumerate().flat_map(|(number, low)| {
        levels[number + 1..].iter().map(move |high| (low.0, high.0, low.1, high.1))
    });
    pairs.max_by(|one, other| (one.2 - one.3).total_cmp(&(other.2 - other.3)))
}

fn paradox(results: &Results, experiment: &str) -> Option<(bool, String)> {
    let runs = results.of(experiment).size(64);
    let (low, high, before, after) = fall(&runs)?;
    let polls = |level: u32| {
        let polls = runs.set("zip", &level.to_string()).median(Quantity::Polls);
        polls.map_or("unavailable".to_owned(), |polls| format!("{polls:.4}"))
    };
    let seen = format!(
        "64 bytes: {} lost at level {low}, {} at level {high}; questions for each packet {} and {}",
        percent(before),
        percent(after),
        polls(low),
        polls(high)
    );
    Some((before - after > POINTS, seen))
}

fn grows(results: &Results) -> Option<(bool, String)> {
    let mut seen = Vec::new();
    let mut holds = true;
    for size in [256, 512] {
        let runs = results.of(LOAD).size(size);
        let (least, most) = (at_level(&runs, 0)?, at_level(&runs, 9)?);
        holds &= most > least + POINTS;
        seen.push(format!("{size} bytes: {} at level 0, {} at 9", percent(least), percent(most)));
    }
    Some((holds, seen.join("; ")))
}

const RINGS: [&str; 3] = ["1M", "8M", "64M"];

/// What each ring lost in the shortest and the longest run.
fn in_overload(results: &Results) -> Option<Vec<(f64, f64)>> {
    let runs = results.of(OVERLOAD);
    let time = |run: &crate::sweep::Run| run.point.load.time;
    let (least, most) = (runs.runs().map(time).min()?, runs.runs().map(time).max()?);
    let of = |ring: &str, time| runs.set("ring", ring).time(time).median(Quantity::Loss);
    RINGS.iter().map(|ring| Some((of(ring, least)?, of(ring, most)?))).collect()
}

fn rings(results: &Results) -> Option<(bool, String)> {
    let losses = in_overload(results)?;
    let limit = 1.0 - SERVED / OVERLOADED;
    // What a ring of 64 MB holds is still a part of the longest run.
    let are_near = losses[..2].iter().all(|(_, most)| (most - limit).abs() <= 0.03);
    let words: Vec<_> = RINGS
        .iter()
        .zip(&losses)
        .map(|(ring, (_, most))| format!("{ring}: {}", percent(*most)))
        .collect();
    Some((
        are_near,
        format!("{} in the longest runs; the limit is {}", words.join(", "), percent(limit)),
    ))
}

fn short_runs(results: &Results) -> Option<(bool, String)> {
    let (least, most) = *in_overload(results)?.last()?;
    let seen = format!(
        "64M: {} lost in the shortest run, {} in the longest",
        percent(least),
        percent(most)
    );
    Some((most - least > 0.05, seen))
}

fn bursts(results: &Results) -> Option<(bool, String)> {
    let runs = results.of(BURSTS);
    let of = |ring: &'static str| Some((ring, runs.set("ring", ring).median(Quantity::Loss)?));
    let losses: Vec<_> = ["1M", "4M", "16M", "64M"].into_iter().map(of).collect::<Option<_>>()?;
    let falls = losses.windows(2).all(|pair| pair[1].1 <= pair[0].1 + 0.001);
    let words: Vec<_> =
        losses.iter().map(|(ring, loss)| format!("{ring}: {}", percent(*loss))).collect();
    Some((falls && losses[0].1 > POINTS && losses[3].1 < 0.001, words.join(", ")))
}

/// The size from which on rings cost more, and by what part.
fn huge(results: &Results) -> Option<(bool, String)> {
    let runs = results.of(HUGE);
    let cost = |ring: &str| runs.set("ring", ring).median(Quantity::Cpu);
    let (usual, most) = (cost("64M")?, cost("1G")?);
    let loss = |ring: &str| runs.set("ring", ring).median(Quantity::Loss);
    let (lost, lost_most) = (loss("64M")?, loss("1G")?);
    let seen = format!(
        "1G takes {:+.0} % processor time against 64M, and loses {} instead of {}",
        (most / usual - 1.0) * 100.0,
        percent(lost_most),
        percent(lost)
    );
    Some((most > usual * 1.1 || lost_most > lost + 0.001, seen))
}

fn waits(results: &Results, placement: &str) -> Option<(f64, f64, String)> {
    let runs = results.of(WAITS).set("placement", placement);
    let (at, highest) = runs.rates().into_iter().next_back()?;
    let of = |wait: &str| highest.set("wait", wait).median(Quantity::Loss);
    let (poll, busy, adaptive) = (of("poll")?, of("busy")?, of("adaptive")?);
    let seen = format!(
        "placement {placement}, {}: poll loses {}, busy {}, adaptive {}",
        rate(at),
        percent(poll),
        percent(busy),
        percent(adaptive)
    );
    Some((poll, busy, seen))
}

fn judge(results: &Results, _: &Scale) -> Vec<Score> {
    let ours = paradox(results, LOAD).map(|(is_there, seen)| (!is_there, seen));
    let minor = waits(results, "none").map(|(poll, busy, seen)| (poll - busy < 0.1, seen));
    let harmful = waits(results, "rps").map(|(poll, busy, seen)| (busy > poll + 0.001, seen));
    vec![
        Score::of(
            "Loss rises with the load of the application for 256 and 512 bytes",
            "S1 fig. 10; D11",
            grows(results),
        ),
        Score::of(
            "At 64 bytes more load gives less loss, since a fast application polls for nearly every packet (naive mode)",
            "S1 fig. 11; D12",
            paradox(results, NAIVE),
        ),
        Score::of("Netsniff as it comes does not have that paradox (our claim)", "D12, D15", ours),
        Score::of(
            "In overload loss tends to 1 - N/rate, whatever the buffer",
            "S1 4.2; D2, D3, X5b",
            rings(results),
        ),
        Score::of("A run that a buffer holds much of misleads", "S1 4.2; D4", short_runs(results)),
        Score::of(
            "Bursts above the service rate are lost by small buffers, and not by one that holds them",
            "S1 4.2; D5, X5a",
            bursts(results),
        ),
        Score::of("Excessively large buffers harm", "S1 4.2; D2, X5c", huge(results)),
        Score::of("Waiting actively brings minor improvements only", "S1 4.3; D14", minor),
        Score::of(
            "and harms where kernel and capture share a processor",
            "S1 4.3; D14, D16",
            harmful,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::run;
    use super::*;
    use crate::load::Load;
    use crate::paper::Verdict;

    fn verdicts(runs: Vec<(&str, Vec<crate::sweep::Run>)>) -> Vec<Verdict> {
        let runs = runs.into_iter().map(|(name, runs)| (name.to_owned(), runs)).collect();
        let results = Results { runs, ..Results::default() };
        let scale = super::super::tests::scale(true);
        judge(&results, &scale).iter().map(|score| score.verdict).collect()
    }

    #[test]
    fn a_paradox_is_seen_where_there_is_one() {
        let at = |size, level, loss| {
            let load = Load { size, rate: None, ..Load::default() };
            run(&[("zip", level)], load, loss)
        };
        let naive = vec![at(64, "0", 0.5), at(64, "1", 0.3), at(64, "9", 0.9)];
        let ours = vec![at(64, "0", 0.2), at(64, "1", 0.19), at(64, "9", 0.9)];
        let seen = verdicts(vec![(NAIVE, naive.clone()), (LOAD, ours)]);
        assert_eq!(seen[..3], [Verdict::Unavailable, Verdict::Holds, Verdict::Holds]);
        let seen = verdicts(vec![(LOAD, naive)]);
        assert_eq!(seen[1..3], [Verdict::Unavailable, Verdict::Fails]);
        let loads = |most| {
            vec![at(256, "0", 0.2), at(256, "9", 0.6), at(512, "0", 0.2), at(512, "9", most)]
        };
        assert_eq!(verdicts(vec![(LOAD, loads(0.3))])[0], Verdict::Holds);
        assert_eq!(verdicts(vec![(LOAD, loads(0.2))])[0], Verdict::Fails);
    }

    #[test]
    fn overload_ends_where_arithmetic_says() {
        let at = |ring, seconds, loss| {
            let time = Duration::from_secs(seconds);
            run(
                &[("ring", ring)],
                Load { size: 512, rate: Some(OVERLOADED), time, ..Load::default() },
                loss,
            )
        };
        let runs = |end: f64| {
            vec![
                at("1M", 1, 0.3),
                at("8M", 1, 0.2),
                at("64M", 1, 0.0),
                at("1M", 8, 0.33),
                at("8M", 8, end),
                at("64M", 8, 0.15),
            ]
        };
        assert_eq!(verdicts(vec![(OVERLOAD, runs(0.31))])[3..5], [Verdict::Holds, Verdict::Holds]);
        assert_eq!(verdicts(vec![(OVERLOAD, runs(0.25))])[3], Verdict::Fails);
        let bursts = |last| {
            let all = [("1M", 0.7), ("4M", 0.3), ("16M", 0.0), ("64M", last)];
            let runs = all.map(|(ring, loss)| at(ring, 1, loss));
            verdicts(vec![(BURSTS, runs.to_vec())])[5]
        };
        assert_eq!((bursts(0.0), bursts(0.1)), (Verdict::Holds, Verdict::Fails));
    }
}
