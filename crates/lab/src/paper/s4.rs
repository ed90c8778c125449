//! S4: the highest rates without loss of ways to capture, for each size of frames, and by what one improves another.

use super::score::Seen;
use super::{Experiment, Kind, Paper, Picture, Results, Scale, Score, setting, tools};
use crate::compare::rates::{self, Group, Improvement, Row};
use crate::compare::{Selection, choose};
use crate::search::lossless::Cell;
use crate::search::{Goal, HighestRate};
use crate::tools::Tool;

const MECHANISMS: &str = "mechanisms";

/// Ways to capture, each with what it is compared with.
const SOCKET: &str = "recvmmsg";
const FRAMES: &str = "af-packet-v2";
const BLOCKS: &str = "af-packet";
const XDP: &str = "af-xdp";
const COPY: &str = "xdp-copy";

/// Ways to wait for the ring of blocks, which adapts by itself.
const BUSY: &str = "busy";
const POLL: &str = "poll";

/// Bytes around a frame on a link.
const AROUND: f64 = 20.0;

pub(super) fn paper(scale: &Scale) -> Paper {
    let backends = scale.either(&[SOCKET, BLOCKS, XDP], &[SOCKET, FRAMES, BLOCKS, COPY, XDP]);
    let waits = scale.either(&[BUSY], &[POLL, BUSY]);
    let ways = backends.iter().map(|name| ("backend", *name));
    let ways = ways.chain(waits.iter().map(|name| ("wait", *name)));
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
        about: "The procedure of the paper: the highest rate at which all that is sent is captured and nothing is dropped \
                (the short form tolerates 0.1 %), for each size of frames; here by bisection. Instead of libpcap and PF_RING the ways that Linux has today \
                are compared: the socket's buffer (recvmmsg), rings shared with the kernel (af-packet, TPACKET_V3; \
                af-packet-v2), XDP programs beside the stack and in place of it (xdp-copy, af-xdp); and ways to wait for \
                the ring (poll, busy; it adapts by itself otherwise).",
        experiments: vec![Experiment {
            name: MECHANISMS,
            title: "Ways to capture",
            tools: ways.filter_map(|(option, name)| by(option, name)).collect(),
            sizes: sizes.to_vec(),
            kind: Kind::Search { goal, tolerated },
        }],
        figures: Vec::new(),
        pictures: vec![Picture::Improvements {
            title: "Figure 4: improvement of the highest rate without loss, by size of frames",
            caption: "The paper: PF_RING over libpcap, 3 to 58 %, 21.47 % on average. Its figures are not in the text that this \
                      was made from, but for these percentages.",
            of: MECHANISMS,
            pairs: vec![[SOCKET, BLOCKS], [BLOCKS, XDP], [BLOCKS, BUSY]],
        }],
        judge,
    }
}

/// A tool that only counts, by a way to capture or to wait.
fn by(option: &str, name: &str) -> Option<Tool> {
    let mut tool = tools(&["count"]).pop()?.with(&[setting(option, name)]).ok()?;
    name.clone_into(&mut tool.name);
    Some(tool)
}

/// The rates of two ways side by side.
fn compared(results: &Results, one: &str, other: &str) -> Option<Group> {
    improved(results.cells(MECHANISMS), [one, other])
}

/// By how much the highest rates of a tool are above those of another one.
pub(super) fn improved(cells: &[Cell], [one, other]: [&str; 2]) -> Option<Group> {
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

/// Whether one way is better than another at all sizes: by the ranges that searches leave, since these end at some width.
fn improves(results: &Results, one: &str, other: &str) -> Seen {
    let group = compared(results, one, other)?;
    let of: Vec<_> = group
        .rows
        .iter()
        .filter(|row| !matches!(row.improvement, Improvement::Unavailable { .. }))
        .collect();
    let is_better = |row: &Row| match row.range {
        [Some(least), _] if least > 0.0 => Some(true),
        [_, Some(most)] if most <= 0.0 => Some(false),
        _ => None,
    };
    let verdicts: Vec<_> = group.rows.iter().map(is_better).collect();
    let known = verdicts.iter().flatten().count();
    // One size at which it is no better is enough; that it is, all must tell.
    let holds = match () {
        () if verdicts.contains(&Some(false)) => Some(false),
        () if known == verdicts.len() => Some(true),
        () => None,
    };
    let sizes: Vec<_> =
        of.iter().map(|row| format!("{} bytes {}", row.size, words(&row.improvement))).collect();
    let seen = format!(
        "{}; {known} of {} sizes tell; mean {} (arithmetic), {} (geometric)",
        sizes.join(", "),
        verdicts.len(),
        words(&group.arithmetic.improvement),
        words(&group.geometric.improvement)
    );
    (!of.is_empty()).then_some((holds, seen))
}

/// Bits a second without loss, for each size: told by sizes whose limit is the capture's, and not the sender's.
fn smaller_hurts(results: &Results) -> Seen {
    let of = |cell: &Cell| {
        let megabits = |rate| rate * (f64::from(cell.size) + AROUND) * 8.0 / 1e6;
        match cell.found {
            HighestRate::Rate(rate) => Some((cell.size, megabits(rate), true)),
            HighestRate::AtLeast(rate) => Some((cell.size, megabits(rate), false)),
            HighestRate::Below(_) | HighestRate::Ended => None,
        }
    };
    let cells = results.cells(MECHANISMS).iter().filter(|cell| cell.tool == BLOCKS);
    let mut rates: Vec<_> = cells.filter_map(of).collect();
    rates.sort_by_key(|(size, ..)| *size);
    let words: Vec<_> = rates
        .iter()
        .map(|(size, rate, is_exact)| {
            let least = if *is_exact { "" } else { ">= " };
            format!("{size} bytes {least}{rate:.0} Mbit/s")
        })
        .collect();
    let rises = |pair: &[(u32, f64, bool)]| {
        // What the sender ends at is more in truth.
        pair[0].2.then(|| pair[0].1 < pair[1].1).filter(|rises| *rises || pair[1].2)
    };
    let told: Option<Vec<_>> = rates.windows(2).map(rises).collect();
    let holds = told.map(|told| told.into_iter().all(|rises| rises));
    (rates.len() >= 2).then(|| (holds, words.join(", ")))
}

fn judge(results: &Results, _: &Scale) -> Vec<Score> {
    vec![
        results.score(
            "A ring shared with the kernel improves the rate without loss over the socket's buffer at all sizes (in the \
             paper, PF_RING over libpcap: 17, 3, 58, 20, 19, 11 %; mean 21.47)",
            "S4 tables 3, 4; F9, F10, D7, D8", |results| improves(results, SOCKET, BLOCKS)),
        results.score(
            "A way that does not pass the kernel's stack improves it further at all sizes",
            "S4; D6, D7", |results| improves(results, BLOCKS, XDP)),
        results.score(
            "Waiting actively improves it at all sizes where the processor is shared with the kernel (our question)",
            "S4; D14, D16", |results| improves(results, BLOCKS, BUSY)),
        results.score(
            "Smaller packets hurt more: fewer bits a second",
            "S4; F16", smaller_hurts),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::run;
    use super::*;
    use crate::load::Load;
    use crate::paper::ClaimVerdict;
    use crate::search::Purpose;
    use crate::search::lossless::Step;

    /// A rate that was found, with a run two percent above that lost something.
    fn cell(tool: &str, size: u32, rate: f64) -> Cell {
        let above = Load { size, rate: Some(rate * 1.02), ..Load::default() };
        let lost = Step { purpose: Purpose::Steer, trial: run(&[], above, 0.1).trial };
        Cell {
            tool: tool.to_owned(),
            size,
            found: HighestRate::Rate(rate),
            tolerated: 0.0,
            confirmed: 1,
            loss_below: None,
            ended: None,
            steps: vec![lost],
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
        assert_eq!(seen[0].verdict, ClaimVerdict::Holds);
        let words = "64 bytes +20.0 %, 512 bytes +10.0 %; 2 of 2 sizes tell; mean +15.0 %";
        assert!(seen[0].seen.contains(words), "{seen:#?}");
        assert_eq!(
            (seen[1].verdict, seen[3].verdict),
            (ClaimVerdict::Unavailable, ClaimVerdict::Holds)
        );
        assert_eq!(scores(cells(0.9e5))[0].verdict, ClaimVerdict::Fails);
        assert_eq!(scores(cells(9e5))[3].verdict, ClaimVerdict::Fails);
        // Two rates that are nearer to each other than a search is exact tell nothing.
        assert_eq!(scores(cells(1.01e5))[0].verdict, ClaimVerdict::Unavailable);
    }

    #[test]
    fn what_the_sender_ends_is_no_limit_of_a_capture() {
        let at_least = |mut cell: Cell| {
            let HighestRate::Rate(rate) = cell.found else { panic!("it is a rate") };
            (cell.found, cell.steps) = (HighestRate::AtLeast(rate), Vec::new());
            cell
        };
        let scores = |cells| {
            let results =
                Results { cells: [(MECHANISMS.to_owned(), cells)].into(), ..Results::default() };
            judge(&results, &super::super::tests::scale(true))
        };
        let limit = |size| at_least(cell(BLOCKS, size, 5e5));
        // No less than 5 % below, since the sender ended it.
        let seen = scores(vec![cell(SOCKET, 64, 5.25e5), limit(64)]);
        assert_eq!(seen[0].verdict, ClaimVerdict::Unavailable);
        assert_eq!(scores(vec![cell(SOCKET, 64, 4e5), limit(64)])[0].verdict, ClaimVerdict::Holds);
        // Bits a second rise with the size, but nothing was ever lost.
        assert_eq!(scores(vec![limit(64), limit(512)])[3].verdict, ClaimVerdict::Unavailable);
        assert_eq!(scores(vec![cell(BLOCKS, 64, 5e5), limit(512)])[3].verdict, ClaimVerdict::Holds);
    }
}
