//! S0: the buffer that packets wait in, for the traffic of one host and of thirty.

use super::results::Knee;
use super::score::rate;
use super::{
    Across, Experiment, Figure, Kind, Paper, Quantity, Results, Scale, Score, Sweep, TOLERATED,
    axis, tools,
};

const BUFFERS: &str = "buffers";

/// What the paper compares, and the most that it recommends nothing about.
const SMALL: &str = "32K";
const LARGE: &str = "512K";
const LARGEST: &str = "64M";

pub(super) fn paper(scale: &Scale) -> Paper {
    let parts = scale.either(
        &[0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65],
        &[0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],
    );
    let rings = scale.either(
        &[SMALL, LARGE, LARGEST],
        &[SMALL, "64K", "128K", "256K", LARGE, "1M", "4M", "16M", LARGEST],
    );
    let sweep = Sweep {
        paces: Scale::parts(scale.trace, parts),
        times: scale.times(),
        repetitions: scale.repetitions(),
        is_trace: true,
        axes: vec![axis("ring", rings)],
        send: vec![axis("hosts", &["1", "30"])],
        host: Vec::new(),
    };
    let experiment = Experiment {
        name: BUFFERS,
        title: "Buffers of 32 kB to 64 MB under the traffic of 1 and of 30 hosts",
        tools: tools(&["analyze"]),
        sizes: vec![scale.trace_size],
        kind: Kind::Sweep(sweep),
    };
    Paper {
        name: "s0",
        citation: "CAIA-TR-051027A: the size of the capture buffer of NetSniff, 2005",
        about: "How much a larger buffer raises the rate that is analysed without loss. A recorded trace is sent again and \
                again at programmed rates; `hosts` makes the connections of that many hosts of it. The threshold is the \
                highest rate up to which at most 0.1 % is lost.",
        experiments: vec![experiment],
        figures: vec![Figure {
            title: "Loss against rate, for each buffer and number of hosts",
            caption: "The paper: nothing is lost up to 3,000 packets a second with 32 kB; with 512 kB, 12,600 (1 host) and \
                      10,000 (30 hosts).",
            of: vec![BUFFERS],
            across: Across::Rate,
            quantities: vec![Quantity::Loss],
        }],
        judge,
    }
}

fn threshold(results: &Results, ring: &str, hosts: &str) -> Option<Knee> {
    results.of(BUFFERS).set("ring", ring).set("hosts", hosts).knee(TOLERATED)
}

fn raised(results: &Results, hosts: &str) -> Option<(bool, String)> {
    let (small, large) = (threshold(results, SMALL, hosts)?, threshold(results, LARGE, hosts)?);
    let over = large.over(&small);
    let times = over.map_or_else(String::new, |(least, times)| {
        format!(", {times:.1} times ({least:.1} or more)")
    });
    let seen = format!("{SMALL}: {}, {LARGE}: {}{times}", small.words(), large.words());
    Some((over.is_some_and(|(least, times)| least >= 1.0 && times > 1.0), seen))
}

fn judge(results: &Results, scale: &Scale) -> Vec<Score> {
    let hosts = || {
        let (one, many) = (threshold(results, LARGE, "1")?, threshold(results, LARGE, "30")?);
        let is_lower = many.at.unwrap_or(0.0) < one.at?;
        Some((is_lower, format!("1 host: {}, 30 hosts: {}", one.words(), many.words())))
    };
    let still = || {
        let (large, largest) = (threshold(results, LARGE, "1")?, threshold(results, LARGEST, "1")?);
        let is_higher =
            largest.over(&large).is_some_and(|(least, times)| least >= 1.0 && times > 1.0);
        Some((is_higher, format!("{LARGE}: {}, {LARGEST}: {}", large.words(), largest.words())))
    };
    let live = || {
        let (live, offline) = (threshold(results, LARGEST, "1")?, scale.offline?);
        let at = live.at?;
        let seen = format!(
            "live without loss {}, offline {}: {:.2}",
            live.words(),
            rate(offline),
            at / offline
        );
        Some((at >= 0.9 * offline, seen))
    };
    vec![
        Score::of(
            "A larger buffer, not a faster processor, raises the rate without loss: 512 kB instead of 32 kB 4.2 times for \
             1 host",
            "S0; B1, B10",
            raised(results, "1"),
        ),
        Score::of("and 3.3 times for 30 hosts", "S0; B10", raised(results, "30")),
        Score::of(
            "30 hosts have a lower threshold than 1 with the larger buffer",
            "S0; B10",
            hosts(),
        ),
        Score::of(
            "More buffer than 512 kB raises the threshold further where the mean rate can be worked off",
            "S0; B8, C19",
            still(),
        ),
        Score::of(
            "Live analysis should reach the rate of analysing a file (0.9 of it or more)",
            "S0; B11, C22",
            live(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::run;
    use super::*;
    use crate::load::Load;
    use crate::paper::Verdict;

    #[test]
    fn a_threshold_that_rises_holds_and_one_that_does_not_fails() {
        let at = |ring, hosts, rate, loss| {
            let load = Load { size: 315, rate: Some(rate), ..Load::default() };
            run(&[("ring", ring), ("hosts", hosts)], load, loss)
        };
        let runs = vec![
            at(SMALL, "1", 1e4, 0.0),
            at(SMALL, "1", 2e4, 0.1),
            at(LARGE, "1", 2e4, 0.0),
            at(LARGE, "1", 4e4, 0.0),
            at(LARGE, "1", 8e4, 0.3),
            at(SMALL, "30", 1e4, 0.0),
            at(SMALL, "30", 2e4, 0.1),
            at(LARGE, "30", 1e4, 0.0),
            at(LARGE, "30", 2e4, 0.1),
            at(LARGEST, "1", 8e4, 0.0),
            at(LARGEST, "1", 9e4, 0.2),
        ];
        let results = Results { runs: [(BUFFERS.to_owned(), runs)].into(), ..Results::default() };
        let scale = Scale {
            is_short: true,
            frames: vec![],
            trace: 1e5,
            trace_size: 315,
            offline: Some(1e5),
        };
        let scores = judge(&results, &scale);
        let verdicts: Vec<_> = scores.iter().map(|score| score.verdict).collect();
        use Verdict::{Fails, Holds};
        assert_eq!(verdicts, [Holds, Fails, Holds, Holds, Fails], "{scores:#?}");
        assert!(scores[0].seen.ends_with("4.0 times (2.0 or more)"), "{scores:#?}");
        assert!(scores[4].seen.ends_with(": 0.80"), "{scores:#?}");
    }
}
