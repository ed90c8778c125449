//! S2: live analysis under programmed rates and numbers of hosts: figures 1 to 8, with tcpdump beside; the order of
//! packets; the cost of anonymisation.

mod anonymisation;
mod order;
mod points;

use std::time::Duration;

use super::results::option;
use super::score::{Seen, megabytes, percent, rate};
use super::{
    Across, Experiment, Figure, Kind, Paper, Quantity, Results, Scale, Score, Sweep, TOLERATED,
    axis, tools,
};
use crate::search::sweep::{Pace, Run};
use crate::trial::Limit;

const RATES: &str = "rates";
const HOSTS: &str = "hosts";
const HOSTS_SLOW: &str = "hosts-1000";
const PARSERS: &str = "parsers";
const SLOWER: &str = "slower";
const MEMORY: &str = "memory";

/// The rate of figures 5 to 8, in packets a second.
const SLOW: f64 = 1000.0;

/// What the paper calls tolerable, and what is far beyond.
const TOLERABLE: f64 = 0.005;
const STEEP: f64 = 0.05;

/// Shares of a processor, in percent.
const QUOTAS: [&str; 3] = [WHOLE, "50", "25"];
const WHOLE: &str = "100";

/// Bounds on memory, of which a recorder whose file is in memory needs more than the least in less than a second.
const BOUNDS: [&str; 3] = ["off", "4G", LITTLE];
const LITTLE: &str = "16M";

/// What is this many times as much is more.
const MORE: f64 = 1.1;

/// The paper as data: an entry for each experiment.
pub(super) fn paper(scale: &Scale) -> Paper {
    let base = Sweep {
        times: scale.times(),
        repetitions: scale.repetitions(),
        is_trace: true,
        ..Sweep::default()
    };
    let paces = |short: &[f64], all: &[f64]| Scale::parts(scale.trace, scale.either(short, all));
    let rates = Sweep {
        paces: paces(
            &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],
            &[
                0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75,
                0.8,
            ],
        ),
        ..base.clone()
    };
    let numbers =
        scale.either(&["1", "10", "30", "60"], &["1", "5", "10", "20", "30", "40", "50", "60"]);
    let hosts = Sweep {
        paces: paces(&[0.2, 0.5], &[0.2, 0.5]),
        send: vec![axis("hosts", numbers)],
        ..base.clone()
    };
    // At this rate flows of many hosts need a while to begin.
    let slow = Sweep {
        paces: vec![Pace::Rate(SLOW)],
        send: vec![axis("hosts", numbers)],
        times: vec![Duration::from_secs(if scale.is_short { 5 } else { 30 })],
        ..base.clone()
    };
    let parsers = Sweep { axes: vec![axis("depth", &["tcp", "protocols"])], ..slow.clone() };
    let slower = Sweep {
        paces: paces(&[0.05, 0.1, 0.2, 0.4], &[0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4]),
        host: vec![axis("quota", &QUOTAS)],
        ..base.clone()
    };
    let memory =
        Sweep { paces: paces(&[0.2], &[0.2]), host: vec![axis("memory", &BOUNDS)], ..base };
    let of = |name, title, names: &[&str], sweep| Experiment {
        name,
        title,
        tools: tools(names),
        sizes: vec![scale.trace_size],
        kind: Kind::Sweep(sweep),
    };
    let analyze = ["analyze"];
    let [in_order, windows] = order::experiments(scale);
    Paper {
        name: "s2",
        citation: "CAIA-TR-051004A: live capture performance of NetSniff, 2005",
        about: "Loss, memory and processor time of live analysis against programmed rates and numbers of hosts, with \
                tcpdump on the same stream. Everything is as a user gets it, without options that make it faster. The frames \
                of the trace have 870 bytes on average, as the paper's (trace_size in scale.json has the frame check sequence, \
                too). Figures 5 to 8 are at the paper's 1,000 packets a second. For the order of \
                packets the kernel also receives on all processors, by RPS, and the sender shares its own. The cost of \
                anonymisation is that of 1,000 sessions in a file, made as the trace is. The nine key points are a point for each figure, of which 7 and \
                8 are one comparison, and what the text concludes beside them of anonymisation and of the order of packets.",
        experiments: vec![
            anonymisation::experiment(scale),
            of(RATES, "Programmed rates", &["analyze", "tcpdump-default"], rates),
            of(HOSTS, "Numbers of hosts at constant rates", &analyze, hosts),
            of(HOSTS_SLOW, "Numbers of hosts at 1,000 packets a second", &analyze, slow),
            of(PARSERS, "With and without application parsers", &analyze, parsers),
            of(SLOWER, "A slower processor: shares of it", &analyze, slower),
            of(MEMORY, "A small memory", &["record"], memory),
            in_order,
            windows,
        ],
        figures: figures().into_iter().chain(order::figures()).collect(),
        pictures: Vec::new(),
        judge,
    }
}

/// An entry for each figure.
fn figures() -> Vec<Figure> {
    let figure = |title, caption, of, across, quantities: &[Quantity]| Figure {
        title,
        caption,
        of: vec![of],
        across,
        quantities: quantities.to_vec(),
        limits: Vec::new(),
    };
    let (hosts, memory) = (Across::Option("hosts"), &[Quantity::MemoryMean, Quantity::MemoryPeak]);
    let cpu = &[Quantity::Cpu, Quantity::CpuPeak];
    vec![
        figure(
            "Figure 1: loss against rate",
            "The paper: none up to 3,000 packets a second, less than 0.5 % up to 5,000, then steeply more; tcpdump less than \
             0.5 % up to 20,000.",
            RATES,
            Across::Rate,
            &[Quantity::Loss],
        ),
        figure(
            "Figure 2: memory against rate",
            "Memory of its own, without the ring. The paper: 5 MB without loss, 65 MB where 60 % is lost: streams wait for \
             what is missing.",
            RATES,
            Across::Rate,
            memory,
        ),
        figure(
            "Figure 3: processor against rate",
            "Mean of the run, and the most in a fifth of a second. The paper: it follows the rate, not the loss.",
            RATES,
            Across::Rate,
            cpu,
        ),
        figure(
            "Figure 4: loss against hosts",
            "The paper: a small effect.",
            HOSTS,
            hosts,
            &[Quantity::Loss],
        ),
        figure(
            "Figure 5: memory against hosts at 1,000 packets a second",
            "The paper: 5 MB for 1 host, 70 MB for 60.",
            HOSTS_SLOW,
            hosts,
            memory,
        ),
        figure(
            "Figure 6: processor against hosts at 1,000 packets a second",
            "The paper: a peak of 18 % for 60 hosts, and a mean of less than 10 %.",
            HOSTS_SLOW,
            hosts,
            cpu,
        ),
        figure(
            "Figure 7: processor against hosts, with and without application parsers",
            "At 1,000 packets a second. The paper: about 2 points less without.",
            PARSERS,
            hosts,
            cpu,
        ),
        figure(
            "Figure 8: memory against hosts, with and without application parsers",
            "At 1,000 packets a second. The paper: slightly less without.",
            PARSERS,
            hosts,
            memory,
        ),
        figure(
            "A slower processor: loss against rate",
            "The paper compares a Pentium 4 with a Celeron; here the analysis gets a share of its processor.",
            SLOWER,
            Across::Rate,
            &[Quantity::Loss],
        ),
    ]
}

fn knee(results: &Results) -> Seen {
    let runs = results.of(RATES).tool("analyze");
    let [strict, tolerable] = [runs.knee(TOLERATED)?, runs.knee(TOLERABLE)?];
    let [none, one] = [runs.knee(0.0)?, runs.knee(0.01)?];
    let (most, highest) = runs.rates().into_iter().next_back()?;
    let worst = highest.median(Quantity::Loss)?;
    let seen = format!(
        "nothing lost up to {}, at most 0.1 % up to {}, 0.5 % up to {}, 1 % up to {}, {} at {}",
        none.words(),
        strict.words(),
        tolerable.words(),
        one.words(),
        percent(worst),
        rate(most)
    );
    // A range that begins or ends before losses do tells nothing of them.
    let is_told = strict.at.is_some() && strict.above.is_some();
    Some((is_told.then_some(worst > STEEP), seen))
}

fn memory(results: &Results) -> Seen {
    let runs = results.of(RATES).tool("analyze");
    let at = |wanted: fn(f64) -> bool| {
        let mut rates = runs.rates().into_iter();
        rates.rfind(|(_, of)| of.median(Quantity::Loss).is_some_and(wanted))
    };
    let (_, without) = at(|loss| loss <= TOLERATED)?;
    let (_, with) = at(|loss| loss > STEEP)?;
    let [before, after] =
        [without.median(Quantity::MemoryPeak)?, with.median(Quantity::MemoryPeak)?];
    let seen = format!(
        "{} without loss, {} where {} is lost: {:.2} times (13 in the paper)",
        megabytes(before * 1e6),
        megabytes(after * 1e6),
        percent(with.median(Quantity::Loss)?),
        after / before
    );
    Some((Some(after > before * MORE), seen))
}

fn follows_rate(results: &Results) -> Seen {
    let runs = results.of(RATES).tool("analyze");
    let knee = runs.knee(TOLERATED)?.at?;
    let below: Vec<_> = runs
        .rates()
        .into_iter()
        .filter(|(rate, _)| *rate <= knee)
        .filter_map(|(rate, of)| Some((rate, of.median(Quantity::Cpu)?)))
        .collect();
    let ([first, ..], [.., last]) = (&below[..], &below[..]) else { return None };
    let rises = below.windows(2).filter(|pair| pair[1].1 > pair[0].1).count();
    let seen = format!(
        "{} of a processor at {}, {} at {}, where nothing is lost yet; it rises in {rises} of {} steps",
        percent(first.1),
        rate(first.0),
        percent(last.1),
        rate(last.0),
        below.len() - 1
    );
    (below.len() >= 2).then_some((Some(rises + 1 == below.len()), seen))
}

/// A quantity for 1 host and for 60, at 1,000 packets a second.
fn hosts(results: &Results, quantity: Quantity) -> Option<[f64; 2]> {
    let runs = results.of(HOSTS_SLOW);
    Some([runs.set("hosts", "1").median(quantity)?, runs.set("hosts", "60").median(quantity)?])
}

fn loss_of_hosts(results: &Results) -> Seen {
    let mut seen = Vec::new();
    let mut is_small = true;
    for (at, runs) in results.of(HOSTS).rates() {
        let of = |hosts: &str| runs.set("hosts", hosts).median(Quantity::Loss);
        let (one, many) = (of("1")?, of("60")?);
        is_small &= (many - one).abs() <= 0.02;
        seen.push(format!("{}: {} for 1 host, {} for 60", rate(at), percent(one), percent(many)));
    }
    (!seen.is_empty()).then(|| (Some(is_small), seen.join("; ")))
}

fn parsers(results: &Results) -> Seen {
    let runs = results.of(PARSERS).set("hosts", "60");
    let of = |depth: &str| runs.set("depth", depth).median(Quantity::Cpu);
    let (without, with) = (of("tcp")?, of("protocols")?);
    let seen = format!("for 60 hosts {} without, {} with", percent(without), percent(with));
    Some((Some(with - without <= 0.02), seen))
}

fn slower(results: &Results) -> Seen {
    let of = |quota: &str| results.of(SLOWER).set("quota", quota).knee(TOLERATED);
    let (whole, half, quarter) = (of("100")?, of("50")?, of("25")?);
    let seen =
        format!("100 %: {}, 50 %: {}, 25 %: {}", whole.words(), half.words(), quarter.words());
    Some((whole.is_over(&quarter), seen))
}

fn beside_tcpdump(results: &Results) -> Seen {
    let of = |tool: &str| results.of(RATES).tool(tool).knee(TOLERABLE);
    let (ours, theirs) = (of("analyze")?, of("tcpdump-default")?);
    let seen =
        format!("analyze: {}, tcpdump: {}; 4 times in the paper", ours.words(), theirs.words());
    Some((theirs.is_over(&ours), seen))
}

/// What is said to be in the way of captures that lose something, by their share of a processor.
fn named(results: &Results) -> Seen {
    let loses = |run: &Run| run.trial.loss().is_some_and(|loss| loss > TOLERATED);
    let lossy = results.of(SLOWER).filter(loses);
    let of = |quota: &str| {
        let runs = lossy.set("quota", quota);
        let trials: Vec<_> = runs.runs().map(|run| &run.trial).collect();
        Limit::usual(trials.iter().copied())
    };
    let all = QUOTAS.map(|quota| (quota, of(quota)));
    let is_named = |(quota, limit): &(&str, Option<Limit>)| {
        limit.is_none_or(|limit| (limit == Limit::Quota) == (*quota != WHOLE))
    };
    let words = all.map(|(quota, limit)| {
        format!("{quota} %: {}", limit.map_or("nothing lost, or unavailable", Limit::words))
    });
    let is_told = all.iter().any(|(quota, limit)| *quota != WHOLE && limit.is_some());
    Some((is_told.then(|| all.iter().all(is_named)), words.join(", ")))
}

/// What is said to be in the way of captures by the memory that they may have.
fn starved(results: &Results) -> Seen {
    let of = |bound: &str| {
        // Those that failed tell, too.
        let runs = results.all(MEMORY).iter();
        let trials: Vec<_> =
            runs.filter(|run| option(run, "memory") == Some(bound)).map(|run| &run.trial).collect();
        (!trials.is_empty()).then(|| Limit::usual(trials.iter().copied()))
    };
    let all = BOUNDS.map(|bound| (bound, of(bound)));
    let words = all.map(|(bound, limit)| {
        let limit = limit.map_or("unavailable", |limit| limit.map_or("nothing lost", Limit::words));
        format!("{bound}: {limit}")
    });
    let is_named = |(bound, limit): &(&str, Option<Option<Limit>>)| {
        limit.map(|limit| (limit == Some(Limit::Memory)) == (*bound == LITTLE))
    };
    let named: Option<Vec<_>> = all.iter().map(is_named).collect();
    Some((named.map(|named| named.into_iter().all(|it| it)), words.join(", ")))
}

fn judge(results: &Results, _: &Scale) -> Vec<Score> {
    let hosts = |quantity, words: fn(f64) -> String, before: &str| {
        let [one, many] = hosts(results, quantity)?;
        let times = many / one;
        let seen =
            format!("{} for 1 host, {} for 60: {times:.2} times{before}", words(one), words(many));
        Some((Some(many > one * MORE), seen))
    };
    let mut scores = vec![
        results.score("Nothing is lost up to a rate, then steeply more", "S2 fig. 1; C6", knee),
        results.score("Memory grows where packets are lost", "S2 fig. 2; A6, C7", memory),
        results.score(
            "Processor time rises with the rate of packets while nothing is lost",
            "S2 fig. 3; C8",
            follows_rate,
        ),
        results.score(
            "The number of hosts has a small effect on loss",
            "S2 fig. 4; C9",
            loss_of_hosts,
        ),
        results.score("Memory grows with the number of hosts", "S2 fig. 5; C10", |_| {
            hosts(Quantity::MemoryPeak, |mb| megabytes(mb * 1e6), ", 14 in the paper")
        }),
        results.score("Processor time grows with the number of hosts", "S2 fig. 6; C11", |_| {
            hosts(Quantity::Cpu, percent, "")
        }),
        results.score(
            "Application parsers take 2 points of the processor at most",
            "S2 fig. 7; C12",
            parsers,
        ),
        results.score("A slower processor loses earlier", "S2; C3", slower),
        results.score(
            "tcpdump writes more to a file than is analysed, with at most 0.5 % lost",
            "S2; C14, A19",
            beside_tcpdump,
        ),
    ];
    scores.push(results.score(
        "What is in the way is named: the share of a processor, where a capture has less than one (our claim)",
        "C3", named));
    scores.push(results.score(
        "What is in the way is named: memory, where a capture has too little of it, and nowhere else (our claim)",
        "C3, memory", starved));
    scores.extend(order::scores(results));
    scores.push(anonymisation::score(results));
    points::number(&mut scores);
    scores
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::run;
    use super::*;
    use crate::load::Load;
    use crate::paper::ClaimVerdict;

    fn at(tool: &str, rate: f64, loss: f64, (cpu, memory): (f64, u64)) -> Run {
        let load = Load { size: 315, rate: Some(rate), ..Load::default() };
        let mut run = run(&[], load, loss);
        run.point.tool = tool.to_owned();
        run.trial.cpu_ns = (cpu * 1e9 * 1e6 / rate) as u64;
        run.trial.own_peak = Some(memory * 1_000_000);
        run
    }

    #[test]
    fn curves_are_judged() {
        let runs = |memory| {
            vec![
                at("analyze", 1e5, 0.0, (0.1, 10)),
                at("analyze", 2e5, 0.0, (0.2, 10)),
                at("analyze", 3e5, 0.6, (0.2, memory)),
                at("tcpdump-default", 2e5, 0.0, (0.1, 1)),
                at("tcpdump-default", 3e5, 0.001, (0.1, 1)),
            ]
        };
        let verdicts = |runs| {
            let results = Results { runs: [(RATES.to_owned(), runs)].into(), ..Results::default() };
            let scores = judge(&results, &super::super::tests::scale(true));
            scores.iter().map(|score| score.verdict).collect::<Vec<_>>()
        };
        use ClaimVerdict::{Fails, Holds};
        let seen = verdicts(runs(12));
        assert_eq!((&seen[..3], seen[8]), (&[Holds, Holds, Holds][..], Holds));
        let mut flat = runs(10);
        flat[1].trial.cpu_ns /= 3;
        flat[4] = at("tcpdump-default", 2e5, 0.2, (0.1, 1));
        flat.remove(3);
        let seen = verdicts(flat);
        assert_eq!((&seen[..3], seen[8]), (&[Holds, Fails, Fails][..], Fails));
        // Where nothing is lost there is no knee.
        assert_eq!(verdicts(runs(12)[..2].to_vec())[..2], [ClaimVerdict::Unavailable; 2]);
    }

    #[test]
    fn the_share_of_a_processor_is_to_be_named() {
        let of = |quota, loss, limit| {
            let mut run = at("analyze", 1e5, loss, (0.5, 10));
            run.point.host = vec![crate::paper::setting("quota", quota)];
            run.trial.limit = limit;
            run
        };
        let verdict = |runs: [Run; 3]| {
            let runs = [(SLOWER.to_owned(), runs.to_vec())].into();
            let results = Results { runs, ..Results::default() };
            let scores = judge(&results, &super::super::tests::scale(true));
            scores.iter().find(|score| score.source == "C3").unwrap().verdict
        };
        let (quota, tool) = (Some(Limit::Quota), Some(Limit::Tool));
        let whole = of("100", 0.5, tool);
        let [half, quarter] = ["50", "25"].map(|share| of(share, 0.5, quota));
        let none = of("50", 0.0, None);
        use ClaimVerdict::{Fails, Holds, Unavailable};
        assert_eq!(verdict([whole.clone(), half.clone(), quarter.clone()]), Holds);
        assert_eq!(verdict([whole.clone(), none.clone(), quarter.clone()]), Holds);
        assert_eq!(verdict([whole.clone(), half, of("25", 0.5, tool)]), Fails);
        assert_eq!(verdict([of("100", 0.5, quota), none.clone(), quarter]), Fails);
        assert_eq!(verdict([whole, none.clone(), none]), Unavailable);
    }

    #[test]
    fn a_small_memory_is_to_be_named() {
        let of = |memory, limit: Option<Limit>| {
            let loss = if limit.is_none() { 0.0 } else { 0.1 };
            let mut run = at("record", 1e5, loss, (0.5, 10));
            run.point.host = vec![crate::paper::setting("memory", memory)];
            run.trial.limit = limit;
            run
        };
        let score = |runs: &[Run]| {
            let runs = [(MEMORY.to_owned(), runs.to_vec())].into();
            let results = Results { runs, ..Results::default() };
            let scores = judge(&results, &super::super::tests::scale(true));
            let score = scores.into_iter().find(|score| score.source == "C3, memory").unwrap();
            (score.verdict, score.seen)
        };
        let all = |[off, much, little]: [Option<Limit>; 3]| {
            score(&[of("off", off), of("4G", much), of("16M", little)])
        };
        let (memory, ring) = (Some(Limit::Memory), Some(Limit::Ring));
        use ClaimVerdict::{Fails, Holds, Unavailable};
        let said = "off: the ring: bursts or pauses, 4G: nothing lost, 16M: memory";
        assert_eq!(all([ring, None, memory]), (Holds, said.to_owned()));
        for fails in [[memory, None, memory], [None, memory, memory], [None, None, ring], [None; 3]]
        {
            assert_eq!(all(fails).0, Fails, "{fails:?}");
        }
        let said = "off: unavailable, 4G: unavailable, 16M: memory";
        assert_eq!(score(&[of("16M", memory)]), (Unavailable, said.to_owned()));
    }

    #[test]
    fn hosts_parsers_and_processors_are_compared() {
        let of = |settings: &[(&str, &str)], rate: f64, loss: f64, (cpu, memory)| {
            let mut run = at("analyze", rate, loss, (cpu, memory));
            let setting = |(name, value): &(&str, &str)| crate::paper::setting(name, value);
            run.point.settings = settings.iter().map(setting).collect();
            run
        };
        let verdicts = |name: &str, runs| {
            let names = [name, if name == HOSTS { HOSTS_SLOW } else { name }];
            let runs = names.map(|name| (name.to_owned(), Vec::clone(&runs)));
            let results = Results { runs: runs.into(), ..Results::default() };
            let scores = judge(&results, &super::super::tests::scale(true));
            scores.iter().map(|score| score.verdict).collect::<Vec<_>>()
        };
        use ClaimVerdict::{Fails, Holds, Unavailable};
        let hosts = |loss, cpu, memory| {
            let one = of(&[("hosts", "1")], 1e5, 0.0, (0.5, 10));
            verdicts(HOSTS, vec![one, of(&[("hosts", "60")], 1e5, loss, (cpu, memory))])
        };
        assert_eq!(hosts(0.01, 0.6, 12)[3..6], [Holds; 3]);
        assert_eq!(hosts(0.1, 0.5, 10)[3..6], [Fails; 3]);
        let parsers = |cpu| {
            let hosts = ("hosts", "60");
            let without = of(&[("depth", "tcp"), hosts], 1e5, 0.0, (0.5, 10));
            verdicts(
                PARSERS,
                vec![without, of(&[("depth", "protocols"), hosts], 1e5, 0.0, (cpu, 10))],
            )[6]
        };
        assert_eq!((parsers(0.51), parsers(0.6)), (Holds, Fails));
        let slower = |quarter: f64| {
            let quota = |quota, rate, loss| of(&[("quota", quota)], rate, loss, (0.5, 10));
            verdicts(
                SLOWER,
                vec![
                    quota("100", 3e5, 0.0),
                    quota("50", 2e5, 0.0),
                    quota("25", 1e5, 0.0),
                    quota("25", 3e5, quarter),
                ],
            )[7]
        };
        assert_eq!((slower(0.5), slower(0.0)), (Holds, Unavailable));
    }
}
