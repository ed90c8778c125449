//! S0: the buffer that packets wait in, for the traffic of one host and of thirty.

use std::time::Duration;

use super::results::LossOnset;
use super::score::{Seen, rate};
use super::{
    Across, Experiment, Figure, Kind, Paper, Quantity, Results, Scale, Score, Sweep, TOLERATED,
    axis, tools,
};

const BUFFERS: &str = "buffers";

/// What the paper compares, and more than that.
const SMALL: &str = "32K";
const LARGE: &str = "512K";
const LARGEST: &str = "16M";

/// A ring has two blocks at least: the smallest one decides.
const BLOCK: &str = "16K";

pub(super) fn paper(scale: &Scale) -> Paper {
    let parts = scale.either(
        &[0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65],
        &[0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],
    );
    let rings = scale.either(
        &[SMALL, LARGE, LARGEST],
        &[SMALL, "64K", "128K", "256K", LARGE, "1M", "4M", LARGEST, "64M"],
    );
    let sweep = Sweep {
        paces: Scale::parts(scale.trace, parts),
        // The largest ring is to hold a small part of what is sent.
        times: scale.either(&[4], &[10]).iter().copied().map(Duration::from_secs).collect(),
        repetitions: scale.repetitions(),
        is_trace: true,
        axes: vec![axis("ring", rings), axis("block", &[BLOCK])],
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
                highest rate up to which at most 0.1 % is lost, by runs of which the ring holds at most a tenth. Sessions are \
                of the kinds of the paper; their frames are smaller than its 870 bytes on average (trace_size in \
                scale.json).",
        experiments: vec![experiment],
        figures: vec![Figure {
            title: "Loss against rate, for each buffer and number of hosts",
            caption: "The paper: nothing is lost up to 3,000 packets a second with 32 kB; with 512 kB, 12,600 (1 host) and \
                      10,000 (30 hosts).",
            of: vec![BUFFERS],
            across: Across::Rate,
            quantities: vec![Quantity::Loss],
            limits: Vec::new(),
        }],
        pictures: Vec::new(),
        judge,
    }
}

/// The part of the offline rate that live analysis should reach.
const REACHED: f64 = 0.9;

fn threshold(results: &Results, ring: &str, hosts: &str) -> Option<LossOnset> {
    results.of(BUFFERS).steady().set("ring", ring).set("hosts", hosts).knee(TOLERATED)
}

fn raised(results: &Results, hosts: &str, before: &str) -> Seen {
    let (small, large) = (threshold(results, SMALL, hosts)?, threshold(results, LARGE, hosts)?);
    let over = large.over(&small);
    let times = over.map_or_else(String::new, |(least, times)| {
        format!(", {times:.1} times ({least:.1} or more)")
    });
    let seen = format!(
        "{SMALL}: {}, {LARGE}: {}{times}; {before} in the paper",
        small.words(),
        large.words()
    );
    Some((large.is_over(&small), seen))
}

fn judge(results: &Results, scale: &Scale) -> Vec<Score> {
    let hosts = || {
        let (one, many) = (threshold(results, LARGE, "1")?, threshold(results, LARGE, "30")?);
        Some((one.is_over(&many), format!("1 host: {}, 30 hosts: {}", one.words(), many.words())))
    };
    let still = || {
        let (large, largest) = (threshold(results, LARGE, "1")?, threshold(results, LARGEST, "1")?);
        let seen = format!("{LARGE}: {}, {LARGEST}: {}", large.words(), largest.words());
        Some((largest.is_over(&large), seen))
    };
    let live = || {
        let (live, offline) = (threshold(results, LARGEST, "1")?, scale.offline?);
        let wanted = LossOnset { at: Some(REACHED * offline), above: Some(REACHED * offline) };
        let seen = format!(
            "live without loss {}, offline {}: {:.2}",
            live.words(),
            rate(offline),
            live.at? / offline
        );
        Some((live.is_over(&wanted), seen))
    };
    vec![
        results.score(
            "A buffer of 512 kB instead of 32 kB raises the rate without loss for 1 host",
            "S0; B1, B10", |results| raised(results, "1", "4.2 times")),
        results.score(
            "A buffer of 512 kB instead of 32 kB raises the rate without loss for 30 hosts",
            "S0; B1, B10", |results| raised(results, "30", "3.3 times")),
        results.score(
            "30 hosts have a lower threshold than 1 with the larger buffer",
            "S0; B10", |_| hosts()),
        results.score(
            "More buffer than 512 kB raises the threshold further where the mean rate can be worked off",
            "S0; B8, C19", |_| still()),
        results.score(
            "Live analysis should reach the rate of analysing a file (0.9 of it or more)",
            "S0; B11, C22", |_| live()),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::run;
    use super::*;
    use crate::load::Load;
    use crate::paper::ClaimVerdict;

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
            at(LARGEST, "1", 8.9e4, 0.2),
        ];
        let results = Results { runs: [(BUFFERS.to_owned(), runs)].into(), ..Results::default() };
        let scale = Scale {
            is_short: true,
            frames: vec![],
            trace: 1e5,
            trace_size: 315,
            offline: Some(1e5),
            repeat: None,
        };
        let scores = judge(&results, &scale);
        let verdicts: Vec<_> = scores.iter().map(|score| score.verdict).collect();
        use ClaimVerdict::{Fails, Holds, Unavailable};
        assert_eq!(verdicts, [Holds, Unavailable, Holds, Holds, Fails], "{scores:#?}");
        assert!(scores[0].seen.contains(", 4.0 times (2.0 or more); 4.2"), "{scores:#?}");
        assert!(scores[4].seen.ends_with(": 0.80"), "{scores:#?}");
    }
}
