//! S3's queues: how threads share one flow, and many (PAPERS E-8, E-9).

use super::super::score::{Seen, percent};
use super::super::{
    Across, Experiment, Figure, Kind, Quantity, Results, Scale, Score, Selection, Sweep, axis,
    tools,
};

const THREADS: &str = "threads";

/// Threads of the capture, each with a ring of its own.
const WORKERS: &str = "4";
const NUMBER: f64 = 4.0;

/// The flows of the sender: one, and many.
const ONE: &str = "1";
const MANY: &str = "1000";

/// The part of what the sender reaches that is sent: it shares its processor with the capture.
const PART: f64 = 0.1;
const SIZE: u32 = 256;

/// By how much the busiest thread may have more than an equal share where they share evenly.
const EVEN: f64 = 1.25;

pub(super) fn experiment(scale: &Scale) -> Experiment {
    let flows = scale.either(&[ONE, MANY], &[ONE, "4", "16", "64", "256", MANY]);
    Experiment {
        name: THREADS,
        title: "One flow and many, shared by four threads on all processors",
        tools: tools(&["record"]),
        sizes: vec![SIZE],
        kind: Kind::Sweep(Sweep {
            paces: Scale::parts(scale.top(SIZE), &[PART]),
            times: scale.times(),
            repetitions: scale.repetitions(),
            axes: vec![axis("workers", &[WORKERS])],
            send: vec![axis("flows", flows)],
            host: vec![axis("processors", &["all"])],
            ..Sweep::default()
        }),
    }
}

pub(super) fn figure() -> Figure {
    Figure {
        title: "Flows and threads: what the busiest of four threads has",
        caption: "The paper: several queues improve a capture only where the traffic has a large number of flows. Flows of the \
                  same two addresses stay together.",
        of: vec![THREADS],
        across: Across::Option("flows"),
        quantities: vec![Quantity::LargestShare],
        limits: vec![(1.0 / NUMBER, "equal shares".to_owned())],
    }
}

/// What the busiest thread has in the middle, and how many there are.
fn busiest(runs: &Selection<'_>) -> Option<(f64, usize)> {
    let threads = runs.runs().find_map(|run| Some(run.trial.counted.threads.as_ref()?.len()))?;
    // Alone it has all in any case.
    (threads > 1).then_some((runs.median(Quantity::LargestShare)?, threads))
}

fn shared(results: &Results, flows: &str, is_so: fn(f64, usize) -> bool) -> Seen {
    let (share, threads) = busiest(&results.of(THREADS).set("flows", flows))?;
    let seen = format!(
        "the busiest of {threads} threads has {}; an equal share is {}",
        percent(share),
        percent(1.0 / threads as f64)
    );
    Some((Some(is_so(share, threads)), seen))
}

pub(super) fn scores(results: &Results) -> [Score; 2] {
    let even = |share: f64, threads: usize| share * threads as f64 <= EVEN;
    [
        results.score(
            "One flow uses one of several threads: its share is all",
            "S3; E-9",
            |results| shared(results, ONE, |share, _| share >= 1.0),
        ),
        results.score(
            "Many flows share threads evenly: none has more than 1.25 times an equal share",
            "S3; E-8, E-9",
            |results| shared(results, MANY, even),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::super::results::tests::run;
    use super::*;
    use crate::load::Load;
    use crate::paper::ClaimVerdict::{self, Fails, Holds, Unavailable};

    fn judged(flows: &str, threads: Option<&[u64]>) -> [ClaimVerdict; 2] {
        let mut run = run(&[("flows", flows)], Load { size: SIZE, ..Load::default() }, 0.0);
        run.trial.counted.threads = threads.map(<[u64]>::to_vec);
        let runs = [(THREADS.to_owned(), vec![run])].into();
        scores(&Results { runs, ..Results::default() }).map(|score| score.verdict)
    }

    #[test]
    fn shares_of_threads_are_judged() {
        assert_eq!(judged(ONE, Some(&[0, 1000, 0, 0])), [Holds, Unavailable]);
        assert_eq!(judged(ONE, Some(&[1, 999, 0, 0])), [Fails, Unavailable]);
        assert_eq!(judged(MANY, Some(&[250, 230, 270, 250])), [Unavailable, Holds]);
        assert_eq!(judged(MANY, Some(&[400, 200, 200, 200])), [Unavailable, Fails]);
        for tells_nothing in [None, Some(&[1000][..])] {
            assert_eq!(judged(ONE, tells_nothing), [Unavailable; 2]);
        }
    }
}
