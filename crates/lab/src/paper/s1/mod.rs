//! S1: buffers, load of the application, and ways to wait.

mod paradox;

use std::time::Duration;

use super::score::{Seen, percent, rate};
use super::{
    Across, Experiment, Figure, Kind, Paper, Quantity, Results, Scale, Score, Selection, Sweep,
    TOLERATED, axis, tools,
};
use crate::search::sweep::{Pace, Run};

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
/// What is lost of that in the end, whatever the ring.
const LIMIT: f64 = 1.0 - SERVED / OVERLOADED;

/// Rings of the same server, and their blocks: of the smallest ring one can still be read while others are filled.
const RINGS: [&str; 3] = ["1M", "8M", "64M"];
const BURST_RINGS: [&str; 3] = ["1M", "4M", "16M"];
const BLOCK: &str = "256K";

/// The part of what the sender can do with frames of each size that loads are compared at: a capture that has its hands full
/// makes the sender slower, too.
const SHARE: f64 = 0.5;

/// Differences below this are none.
const POINTS: f64 = 0.02;

/// The paper as data: an entry for each experiment.
pub(super) fn paper(scale: &Scale) -> Paper {
    Paper {
        name: "s1",
        citation: "L. Braun, A. Didebulidze, N. Kammenhuber, G. Carle: Comparing and improving current packet capturing \
                   solutions based on commodity hardware, IMC 2010, sections 4.2 and 4.3",
        about: "How loss depends on what the application does with each packet (compression with zlib), on the buffer, and \
                on how the capture waits. The naive mode is a ring of frames (TPACKET_V2) and poll(2) whenever it is empty.",
        experiments: experiments(scale),
        figures: figures(),
        pictures: Vec::new(),
        judge,
    }
}

/// One entry for each experiment of the paper.
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
        let top = SIZES.map(|size| scale.top(size)).into_iter().fold(f64::INFINITY, f64::min);
        Sweep { paces: Scale::parts(top, &[SHARE]), axes, ..base.clone() }
    };
    let seconds = scale.either(&[1, 2, 4, 8], &[1, 2, 5, 10, 20, 50]);
    let overload = Sweep {
        paces: vec![Pace::Rate(OVERLOADED)],
        times: seconds.iter().map(|seconds| Duration::from_secs(*seconds)).collect(),
        axes: vec![axis("delay", &[DELAY]), axis("ring", &RINGS), axis("block", &[BLOCK])],
        ..base.clone()
    };
    let bursts = Sweep {
        paces: vec![Pace::Rate(SERVED * 0.5)],
        // Of fifteen seconds the largest ring holds less than a tenth.
        times: vec![Duration::from_secs(15)],
        axes: vec![axis("delay", &[DELAY]), axis("ring", &BURST_RINGS), axis("block", &[BLOCK])],
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
        repetitions: scale.repeated(3),
        ..base.clone()
    };
    let of = |name, title, sizes: &[u32], tools, sweep| Experiment {
        name,
        title,
        tools,
        sizes: sizes.to_vec(),
        kind: Kind::Sweep(sweep),
    };
    let [naive, ours] = paradox::experiments(scale);
    vec![
        of(
            NAIVE,
            "Levels of compression, naive capture, half of the sender's full speed",
            &SIZES,
            work(),
            load(true),
        ),
        of(
            LOAD,
            "Levels of compression, netsniff as it comes, half of the sender's full speed",
            &SIZES,
            work(),
            load(false),
        ),
        naive,
        ours,
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

/// An entry for each figure.
fn figures() -> Vec<Figure> {
    let figure = |title, caption, of: &[&'static str], across, quantities: &[Quantity]| Figure {
        title,
        caption,
        of: of.to_vec(),
        across,
        quantities: quantities.to_vec(),
        limits: Vec::new(),
    };
    let [paradox, questions] = paradox::figures();
    vec![
        figure(
            "Figures 10 and 11: loss against load",
            "The paper: loss grows with the load for 256 and 512 bytes, and falls with it for 64 bytes on Linux, which is \
             looked for below.",
            &[NAIVE, LOAD],
            Across::Option("zip"),
            &[Quantity::Loss],
        ),
        paradox,
        questions,
        Figure {
            limits: vec![(LIMIT, format!("limit: {}", percent(LIMIT)))],
            ..figure(
                "Overload: loss against the length of the run, for three rings",
                "Arithmetic: 1 - 50,000 / 75,000 = 33.3 % in the end, whatever the ring, which only delays it (D3, X5).",
                &[OVERLOAD],
                Across::Time,
                &[Quantity::Loss],
            )
        },
        figure(
            "Bursts: loss against the size of the ring, at a mean rate that can be worked off",
            "Each burst of 10,000 frames takes 6 MB of a ring.",
            &[BURSTS],
            Across::Bytes("ring"),
            &[Quantity::Loss],
        ),
        Figure {
            limits: vec![(LIMIT, format!("overload, in the end: {}", percent(LIMIT)))],
            ..figure(
                "One law: loss against the size of the ring",
                "Bursts that can be worked off on average: a larger ring loses less of them, and one that holds a burst loses \
                 nothing. More than can be worked off: large rings flatter short runs, and in long ones every ring comes to \
                 the same. What is no burst and can be worked off needs no large ring (X5).",
                &[BURSTS, OVERLOAD, HUGE],
                Across::Bytes("ring"),
                &[Quantity::Loss],
            )
        },
        figure(
            "Ways to wait: loss against rate",
            "Placement none: the kernel's work is on another processor; rps: on that of the capture. The paper: waiting \
             actively brings little, and harms where the processor is shared.",
            &[WAITS],
            Across::Rate,
            &[Quantity::Loss],
        ),
        figure(
            "Huge rings: time of the processor against the size of the ring",
            "The paper: excessively large buffers can harm.",
            &[HUGE],
            Across::Bytes("ring"),
            &[Quantity::Cpu],
        ),
    ]
}

/// The loss at a level of compression.
fn at_level(runs: &Selection<'_>, level: u32) -> Option<f64> {
    runs.set("zip", &level.to_string()).median(Quantity::Loss)
}

fn grows(results: &Results) -> Seen {
    let mut seen = Vec::new();
    let mut holds = true;
    for size in [256, 512] {
        let runs = results.of(LOAD).size(size);
        let (least, most) = (at_level(&runs, 0)?, at_level(&runs, 9)?);
        holds &= most > least + POINTS;
        seen.push(format!("{size} bytes: {} at level 0, {} at 9", percent(least), percent(most)));
    }
    Some((Some(holds), seen.join("; ")))
}

/// What a ring lost in the shortest and the longest run, and the share of the longest that it holds.
struct Overload {
    ring: &'static str,
    least: f64,
    most: f64,
    held: f64,
}

fn in_overload(results: &Results) -> Option<Vec<Overload>> {
    let runs = results.of(OVERLOAD);
    let time = |run: &Run| run.point.load.time;
    let (least, most) = (runs.runs().map(time).min()?, runs.runs().map(time).max()?);
    let of = |ring: &'static str| {
        let runs = runs.set("ring", ring);
        let (short, long) = (runs.time(least), runs.time(most));
        let held = long.runs().filter_map(|run| run.trial.ring_share).fold(0.0, f64::max);
        let loss = |of: &Selection<'_>| of.median(Quantity::Loss);
        Some(Overload { ring, least: loss(&short)?, most: loss(&long)?, held })
    };
    RINGS.into_iter().map(of).collect()
}

/// How near the limit a loss is, and what a ring may hold of the run that is to tell so.
const NEAR: f64 = 0.03;

fn rings(results: &Results) -> Seen {
    let all = in_overload(results)?;
    let told: Vec<_> = all.iter().filter(|of| of.held < NEAR).collect();
    let are_near = told.iter().all(|of| (of.most - LIMIT).abs() <= NEAR);
    let words = |of: &Overload| {
        let held = if of.held < NEAR {
            String::new()
        } else {
            format!(" (not judged: it holds {} of the run)", percent(of.held))
        };
        format!("{}: {}{held}", of.ring, percent(of.most))
    };
    let words: Vec<_> = all.iter().map(words).collect();
    let seen = format!("{} in the longest runs; the limit is {}", words.join(", "), percent(LIMIT));
    Some(((told.len() >= 2).then_some(are_near), seen))
}

fn short_runs(results: &Results) -> Seen {
    let all = in_overload(results)?;
    let Overload { ring, least, most, .. } = all.last()?;
    let seen = format!(
        "{ring}: {} lost in the shortest run, {} in the longest",
        percent(*least),
        percent(*most)
    );
    Some((Some(most - least > 0.05), seen))
}

fn bursts(results: &Results) -> Seen {
    let runs = results.of(BURSTS).steady();
    let of = |ring: &'static str| Some((ring, runs.set("ring", ring).median(Quantity::Loss)?));
    let losses: Vec<_> = BURST_RINGS.into_iter().map(of).collect::<Option<_>>()?;
    let falls = losses.windows(2).all(|pair| pair[1].1 <= pair[0].1 + TOLERATED);
    let words: Vec<_> =
        losses.iter().map(|(ring, loss)| format!("{ring}: {}", percent(*loss))).collect();
    let (small, large) = (losses.first()?.1, losses.last()?.1);
    Some((Some(falls && small > POINTS && large <= TOLERATED), words.join(", ")))
}

/// What the largest ring costs at the highest rate that it and the usual one have runs of.
fn huge(results: &Results) -> Seen {
    let runs = results.of(HUGE);
    let (usual, most) = (runs.set("ring", "64M"), runs.set("ring", "1G"));
    let at = |runs: &Selection<'_>, rate: f64| {
        let runs = runs.filter(|run| run.point.load.rate == Some(rate));
        Some((runs.median(Quantity::Cpu)?, runs.median(Quantity::Loss)?))
    };
    let both = |(rate, _): (f64, _)| Some((rate, at(&usual, rate)?, at(&most, rate)?));
    let (at, usual, most) = runs.rates().into_iter().rev().find_map(both)?;
    let seen = format!(
        "at {} 1G takes {:+.0} % processor time against 64M, and loses {} instead of {}",
        rate(at),
        (most.0 / usual.0 - 1.0) * 100.0,
        percent(most.1),
        percent(usual.1)
    );
    Some((Some(most.0 > usual.0 * 1.1 || most.1 > usual.1 + POINTS), seen))
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

/// How much more the usual way to wait loses than the best of the others, at most, over all rates and placements.
fn adaptive(results: &Results) -> Seen {
    let mut worst: Option<(f64, String)> = None;
    for placement in ["none", "rps"] {
        let rates = results.of(WAITS).set("placement", placement).rates();
        if rates.is_empty() {
            return None;
        }
        for (at, runs) in rates {
            let of = |wait: &str| runs.set("wait", wait).median(Quantity::Loss);
            let more = of("adaptive")? - of("poll")?.min(of("busy")?);
            if worst.as_ref().is_none_or(|(most, _)| more > *most) {
                worst = Some((more, format!("placement {placement}, {}", rate(at))));
            }
        }
    }
    let (more, at) = worst?;
    let seen =
        format!("{:+.2} points against the better of the others at worst ({at})", more * 100.0);
    Some((Some(more <= NEAR), seen))
}

fn judge(results: &Results, _: &Scale) -> Vec<Score> {
    let [naive, ours] = paradox::judge(results);
    let minor = |results: &Results| {
        let (poll, busy, seen) = waits(results, "none")?;
        Some((Some((-POINTS..0.1).contains(&(poll - busy))), seen))
    };
    let harmful = |results: &Results| {
        let (poll, busy, seen) = waits(results, "rps")?;
        Some((Some(busy > poll + POINTS), seen))
    };
    vec![
        results.score(
            "Loss rises with the load of the application for 256 and 512 bytes",
            "S1 fig. 10; D11", grows),
        naive,
        ours,
        results.score(
            "In overload loss tends to 1 - N/rate, whatever the buffer, once that holds a small part of the run",
            "S1 4.2; D2, D3, X5b", rings),
        results.score("A run that a buffer holds much of misleads", "S1 4.2; D4", short_runs),
        results.score(
            "Bursts above the service rate are lost by small buffers, and not by one that holds them",
            "S1 4.2; D5, X5a", bursts),
        results.score("Excessively large buffers harm", "S1 4.2; D2, X5c", huge),
        results.score(
            "Waiting actively brings less than 10 points where the capture has a processor for itself, and does no harm there",
            "S1 4.3; D14", minor),
        results.score(
            "Waiting actively loses more where kernel and capture share a processor",
            "S1 4.3; D14, D16", harmful),
        results.score(
            "Waiting adaptively loses no more than 3 points more than the better of the others at any load (our claim)",
            "D15, N14", adaptive),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::run;
    use super::*;
    use crate::load::Load;
    use crate::paper::ClaimVerdict;

    fn verdicts(runs: Vec<(&str, Vec<Run>)>) -> Vec<ClaimVerdict> {
        let runs = runs.into_iter().map(|(name, runs)| (name.to_owned(), runs)).collect();
        let results = Results { runs, ..Results::default() };
        let scale = super::super::tests::scale(true);
        judge(&results, &scale).iter().map(|score| score.verdict).collect()
    }

    #[test]
    fn loss_that_rises_with_the_load_is_seen() {
        let at = |size, level, loss| {
            let load = Load { size, rate: None, ..Load::default() };
            run(&[("zip", level)], load, loss)
        };
        let loads = |most| {
            vec![at(256, "0", 0.2), at(256, "9", 0.6), at(512, "0", 0.2), at(512, "9", most)]
        };
        assert_eq!(verdicts(vec![(LOAD, loads(0.3))])[0], ClaimVerdict::Holds);
        assert_eq!(verdicts(vec![(LOAD, loads(0.2))])[0], ClaimVerdict::Fails);
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
                at("64M", 8, 0.32),
            ]
        };
        assert_eq!(
            verdicts(vec![(OVERLOAD, runs(0.31))])[3..5],
            [ClaimVerdict::Holds, ClaimVerdict::Holds]
        );
        assert_eq!(verdicts(vec![(OVERLOAD, runs(0.25))])[3], ClaimVerdict::Fails);
        let mut held = runs(0.31);
        held[4].trial.ring_share = Some(0.5);
        assert_eq!(
            verdicts(vec![(OVERLOAD, held.clone())])[3],
            ClaimVerdict::Holds,
            "two others tell"
        );
        held[3].trial.ring_share = Some(0.5);
        assert_eq!(verdicts(vec![(OVERLOAD, held)])[3], ClaimVerdict::Unavailable);
        let bursts = |last| {
            let all = [("1M", 0.7), ("4M", 0.3), ("16M", last)];
            let runs = all.map(|(ring, loss)| at(ring, 1, loss));
            verdicts(vec![(BURSTS, runs.to_vec())])[5]
        };
        assert_eq!((bursts(0.0), bursts(0.1)), (ClaimVerdict::Holds, ClaimVerdict::Fails));
    }

    #[test]
    fn waits_and_rings_are_compared_at_the_same_rate() {
        let of = |settings: &[(&str, &str)], rate: f64, loss: f64, cpu: f64| {
            let mut run =
                run(settings, Load { size: 64, rate: Some(rate), ..Load::default() }, loss);
            run.trial.cpu_ns = (cpu * 1e9 * 1e6 / rate) as u64;
            run
        };
        let waits = |placement, busy: f64| {
            let of =
                |wait, rate, loss| of(&[("wait", wait), ("placement", placement)], rate, loss, 0.5);
            let low = ["poll", "busy", "adaptive"].map(|wait| of(wait, 1e5, 0.9));
            let high = [of("poll", 2e5, 0.3), of("busy", 2e5, busy), of("adaptive", 2e5, 0.3)];
            let seen = verdicts(vec![(WAITS, [low, high].concat())]);
            assert_eq!(seen[9], Unavailable, "of one placement alone");
            (seen[7], seen[8])
        };
        let adaptive = |loss| {
            let of = |placement: &'static str| {
                [("poll", 0.3), ("busy", 0.2), ("adaptive", loss)].map(|(wait, loss)| {
                    of(&[("wait", wait), ("placement", placement)], 1e5, loss, 0.5)
                })
            };
            verdicts(vec![(WAITS, [of("none"), of("rps")].concat())])[9]
        };
        assert_eq!((adaptive(0.22), adaptive(0.24)), (Holds, Fails));
        use ClaimVerdict::{Fails, Holds, Unavailable};
        assert_eq!(waits("none", 0.25), (Holds, Unavailable));
        assert_eq!((waits("none", 0.1).0, waits("none", 0.8).0), (Fails, Fails));
        assert_eq!((waits("rps", 0.8), waits("rps", 0.31).1), ((Unavailable, Holds), Fails));
        let huge = |cpu| {
            // What has no partner at its rate does not count.
            let runs = vec![
                of(&[("ring", "64M")], 1e5, 0.0, 0.5),
                of(&[("ring", "1G")], 1e5, 0.0, cpu),
                of(&[("ring", "1G")], 2e5, 0.0, 0.9),
            ];
            verdicts(vec![(HUGE, runs)])[6]
        };
        assert_eq!((huge(0.6), huge(0.52)), (Holds, Fails));
    }
}
