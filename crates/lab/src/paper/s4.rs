//! S4: the highest rates without loss of ways to capture, for each size of frames, and by what one improves another.

use super::{Experiment, Kind, Paper, Results, Scale, Score, setting, tools};
use crate::compare::rates::{self, Group, Improvement};
use crate::compare::{Selection, choose};
use crate::search::{Found, Goal};
use crate::tools::Tool;

const MECHANISMS: &str = "mechanisms";

/// Ways to capture, each with what it is compared with.
const SOCKET: &str = "recvmmsg";
const FRAMES: &str = "af-packet-v2";
const BLOCKS: &str = "af-packet";
const XDP: &str = "af-xdp";
const COPY: &str = "xdp-copy";

pub(super) fn paper(scale: &Scale) -> Paper {
    let backends = scale.either(&[SOCKET, BLOCKS, XDP], &[SOCKET, FRAMES, BLOCKS, COPY, XDP]);
    let sizes = scale.either(&[64, 512, 1518], &[64, 128, 256, 512, 1024, 1518]);
    // Short searches have one long run that confirms, and tolerate what a disturbance costs.
    let (goal, tolerated) = if scale.is_short {
        (Goal { width: 0.1, steps: 5, confirmations: 1, ..Goal::default() }, 0.001)
    } else {
        (Goal::default(), 0.0)
    };
    Paper {
        name: "s4",
        citation: "Lossless packet capture with PF_RING, 2009",
        about: "The procedure of the paper: the highest rate at which all that is sent is captured and nothing is dropped, \
                for each size of frames; here by bisection. Instead of libpcap and PF_RING the ways that Linux has today \
                are compared: the socket's buffer (recvmmsg), rings shared with the kernel (af-packet, TPACKET_V3; \
                af-packet-v2), XDP programs (xdp-copy, af-xdp).",
        experiments: vec![Experiment {
            name: MECHANISMS,
            title: "Ways to capture",
            tools: backends.iter().filter_map(|backend| by(backend)).collect(),
            sizes: sizes.to_vec(),
            kind: Kind::Search { goal, tolerated },
        }],
        figures: Vec::new(),
        judge,
    }
}

/// A tool that only counts, by a way to capture.
fn by(backend: &str) -> Option<Tool> {
    let mut tool = tools(&["count"]).pop()?.with(&[setting("backend", backend)]).ok()?;
    backend.clone_into(&mut tool.name);
    Some(tool)
}

/// The rates of two ways side by side.
fn compared(results: &Results, one: &str, other: &str) -> Option<Group> {
    let cells = results.cells(MECHANISMS);
    let of =
        |tool: &str| (Selection { tool: Some(tool.to_owned()), ..Selection::default() }, cells);
    let sides = choose([of(one), of(other)]).ok()?;
    rates::compare(&sides).0.pop()
}

fn words(improvement: &Improvement) -> String {
    match improvement {
        Improvement::Exactly { percent } => format!("{percent:+.1} %"),
        Improvement::AtLeast { percent } => format!("{percent:+.1} % or more"),
        Improvement::AtMost { percent } => format!("{percent:+.1} % or less"),
        Improvement::Unavailable { .. } => "unavailable".to_owned(),
    }
}

/// Whether one way is better than another at all sizes of which something is known.
fn improves(results: &Results, one: &str, other: &str) -> Option<(bool, String)> {
    let group = compared(results, one, other)?;
    let of: Vec<_> = group
        .rows
        .iter()
        .filter(|row| !matches!(row.improvement, Improvement::Unavailable { .. }))
        .collect();
    let is_better = |improvement: &Improvement| match improvement {
        Improvement::Exactly { percent } | Improvement::AtLeast { percent } => *percent > 0.0,
        Improvement::AtMost { .. } | Improvement::Unavailable { .. } => false,
    };
    let sizes: Vec<_> =
        of.iter().map(|row| format!("{} bytes {}", row.size, words(&row.improvement))).collect();
    let seen = format!(
        "{}; mean {} (arithmetic), {} (geometric)",
        sizes.join(", "),
        words(&group.arithmetic.improvement),
        words(&group.geometric.improvement)
    );
    (!of.is_empty()).then(|| (of.iter().all(|row| is_better(&row.improvement)), seen))
}

/// Bits a second without loss, for each size.
fn smaller_hurts(results: &Results) -> Option<(bool, String)> {
    let mut rates: Vec<(u32, f64)> = results
        .cells(MECHANISMS)
        .iter()
        .filter(|cell| cell.tool == BLOCKS)
        .filter_map(|cell| match cell.found {
            Found::Rate(rate) | Found::AtLeast(rate) => Some((cell.size, rate)),
            Found::Below(_) | Found::Ended => None,
        })
        .collect();
    rates.sort_by_key(|(size, _)| *size);
    let megabits = |(size, rate): &(u32, f64)| rate * (f64::from(*size) + 20.0) * 8.0 / 1e6;
    let words: Vec<_> =
        rates.iter().map(|of| format!("{} bytes {:.0} Mbit/s", of.0, megabits(of))).collect();
    let rises = rates.windows(2).all(|pair| megabits(&pair[0]) < megabits(&pair[1]));
    (rates.len() >= 2).then(|| (rises, words.join(", ")))
}

fn judge(results: &Results, _: &Scale) -> Vec<Score> {
    vec![
        Score::of(
            "A ring shared with the kernel improves the rate without loss over the socket's buffer at all sizes (17, 3, 58, \
             20, 19, 11 %; mean 21.47)",
            "S4 tables 3, 4; F9, F10, D7, D8",
            improves(results, SOCKET, BLOCKS),
        ),
        Score::of(
            "A way that does not pass the kernel's stack improves it further",
            "S4; D6, D7",
            improves(results, BLOCKS, XDP),
        ),
        Score::of(
            "Smaller packets hurt more: fewer bits a second",
            "S4; F16",
            smaller_hurts(results),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lossless::Cell;
    use crate::paper::Verdict;

    fn cell(tool: &str, size: u32, rate: f64) -> Cell {
        Cell {
            tool: tool.to_owned(),
            size,
            found: Found::Rate(rate),
            tolerated: 0.0,
            confirmed: 1,
            loss_below: None,
            ended: None,
            steps: Vec::new(),
        }
    }

    #[test]
    fn improvements_are_judged() {
        let cells = |small: f64| {
            vec![
                cell(SOCKET, 64, 1e5),
                cell(SOCKET, 512, 1e5),
                cell(BLOCKS, 64, small),
                cell(BLOCKS, 512, 1.1e5),
            ]
        };
        let scores = |cells| {
            let cells = [(MECHANISMS.to_owned(), cells)].into();
            let results = Results { cells, ..Results::default() };
            judge(&results, &super::super::tests::scale(true))
        };
        let seen = scores(cells(1.2e5));
        assert_eq!(seen[0].verdict, Verdict::Holds);
        assert!(
            seen[0].seen.contains("64 bytes +20.0 %, 512 bytes +10.0 %; mean +15.0 %"),
            "{seen:#?}"
        );
        assert_eq!((seen[1].verdict, seen[2].verdict), (Verdict::Unavailable, Verdict::Holds));
        assert_eq!(scores(cells(0.9e5))[0].verdict, Verdict::Fails);
        assert_eq!(scores(cells(9e5))[2].verdict, Verdict::Fails);
    }
}
