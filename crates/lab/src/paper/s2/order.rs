//! S2's packets out of the order of time: where several processors receive, in tcpdump's file and in ours, and what a window
//! of order leaves of them (PAPERS C15, C16).

use super::super::score::{Seen, percent};
use super::super::{
    Across, Experiment, Figure, Kind, Quantity, Results, Scale, Score, Sweep, axis, tools,
};

const ORDER: &str = "order";
const WINDOW: &str = "window";

/// Who receives: the processor of the capture, or all that there are, the sender's among them.
const ONE: &str = "1";
const ALL: &str = "all";

/// How long packets wait for earlier ones: no longer than in their block, which is put in order in any case; as long as
/// netsniff has it; and long.
const WINDOWS: [&str; 3] = [NONE, USUAL, LONG];
const NONE: &str = "0";
const USUAL: &str = "200us";
const LONG: &str = "5ms";

/// What may be left of what comes out of order.
const LEFT: f64 = 0.1;

/// What is run. The sender shares its processor with the capture, so that rates are low.
pub(super) fn experiments(scale: &Scale) -> [Experiment; 2] {
    let base = Sweep {
        paces: Scale::parts(scale.trace, scale.either(&[0.1], &[0.02, 0.05, 0.1, 0.2])),
        times: scale.times(),
        repetitions: scale.repetitions(),
        is_trace: true,
        ..Sweep::default()
    };
    let order = Sweep { host: vec![axis("processors", &[ONE, ALL])], ..base.clone() };
    let window = Sweep {
        host: vec![axis("processors", &[ALL])],
        axes: vec![axis("reorder", &WINDOWS)],
        ..base
    };
    let of = |name, title, names: &[&str], sweep| Experiment {
        name,
        title,
        tools: tools(names),
        sizes: vec![scale.trace_size],
        kind: Kind::Sweep(sweep),
    };
    [
        of(
            ORDER,
            "The order of packets on one processor and on all",
            &["tcpdump", "record"],
            order,
        ),
        of(WINDOW, "Windows of order before the analysis, on all processors", &["analyze"], window),
    ]
}

pub(super) fn figures() -> [Figure; 2] {
    let figure = |title, caption, of, quantities: &[Quantity]| Figure {
        title,
        caption,
        of: vec![of],
        across: Across::Rate,
        quantities: quantities.to_vec(),
        limits: Vec::new(),
    };
    [
        figure(
            "Packets out of order where one processor receives, and where all do",
            "Packets that are earlier than one before: of tcpdump in its file, whose stamps are of microseconds, of netsniff in \
             its ring. The paper: Linux hands packets over out of order, though their stamps are right, to tcpdump as well.",
            ORDER,
            &[Quantity::OutOfOrder],
        ),
        figure(
            "Packets that a window of order leaves",
            "All processors receive. Packets in one block of the ring are put in order without a window, too. The paper: what is \
             not in order breaks statistics of TCP.",
            WINDOW,
            &[Quantity::OutOfOrder, Quantity::Late],
        ),
    ]
}

/// A share that may be much less than a hundredth.
fn share(of: f64) -> String {
    if of > 0.0 && of < 1e-4 { format!("{:.1} of a million", of * 1e6) } else { percent(of) }
}

fn microseconds(of: f64) -> String {
    match of {
        _ if of >= 1000.0 => format!("{:.1} ms", of / 1000.0),
        _ if of >= 1.0 => format!("{of:.0} us"),
        _ => format!("{:.0} ns", of * 1000.0),
    }
}

/// Whether more comes out of order where several processors receive.
fn several_processors(results: &Results) -> Seen {
    let runs = results.of(ORDER);
    let (mut seen, mut holds) = (Vec::new(), false);
    for tool in ["tcpdump", "record"] {
        let of = |processors: &str| runs.tool(tool).set("processors", processors);
        let (one, all) = (of(ONE), of(ALL));
        let both = all.median(Quantity::OutOfOrder).zip(one.median(Quantity::OutOfOrder));
        let Some((many, few)) = both else { continue };
        // Stamps of microseconds show less than those of the ring: one tool that sees it is enough.
        holds |= many > few;
        seen.push(format!(
            "{tool}: {} on all, by {} at most, {} on one",
            share(many),
            all.ends(Quantity::Deepest)
                .map_or("unavailable".to_owned(), |(_, most)| microseconds(most)),
            share(few)
        ));
    }
    (!seen.is_empty()).then(|| (Some(holds), seen.join("; ")))
}

/// What is late of what a tool made, with what the kernel handed to another one; not told where that was in order.
fn left_of(before: Option<f64>, after: Option<f64>, words: [&str; 2]) -> Seen {
    let (before, after) = (before?, after?);
    let seen = format!("{} {}, {} {}", share(before), words[0], share(after), words[1]);
    Some(((before > 0.0).then_some(after <= before * LEFT), seen))
}

fn our_file(results: &Results) -> Seen {
    let runs = results.of(ORDER).set("processors", ALL);
    let theirs = runs.tool("tcpdump").median(Quantity::OutOfOrder);
    let ours = runs.tool("record").median(Quantity::Late);
    left_of(theirs, ours, ["in tcpdump's file", "in netsniff's"])
}

fn window(results: &Results) -> Seen {
    let runs = results.of(WINDOW);
    let of = |window: &str, quantity| runs.set("reorder", window).median(quantity);
    let (before, after) = (of(USUAL, Quantity::OutOfOrder), of(USUAL, Quantity::Late));
    let (holds, seen) = left_of(before, after, ["in the ring", "too late for 200 us"])?;
    let late = |window| of(window, Quantity::Late).map_or("unavailable".to_owned(), share);
    let (none, long) = (late(NONE), late(LONG));
    Some((holds, format!("{seen}, {long} for 5 ms, {none} for blocks alone")))
}

pub(super) fn scores(results: &Results) -> [Score; 3] {
    [
        results.score(
            "Linux hands packets over out of order where several processors receive",
            "S2; C15", several_processors),
        results.score(
            "Netsniff's recording has at most a tenth of what is out of order in tcpdump's (our claim)",
            "C15, C16", our_file),
        results.score(
            "Netsniff puts in order what comes out of order, before it is analysed: at most a tenth is too late (our claim)",
            "S2; C16", window),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::super::results::tests::run;
    use super::*;
    use crate::load::Load;
    use crate::packet_order::PacketOrder;
    use crate::paper::ClaimVerdict::{self, Fails, Holds, Unavailable};
    use crate::search::sweep::Run;

    /// A run of a million with so many out of order and so many late.
    fn at(tool: &str, (name, value): (&str, &str), inversions: u64, late: Option<u64>) -> Run {
        let load = Load { size: 315, rate: Some(6e4), ..Load::default() };
        let mut run = run(&[(name, value)], load, 0.0);
        run.point.tool = tool.to_owned();
        run.trial.counted.order = Some(PacketOrder { inversions, deepest_ns: inversions * 10 });
        run.trial.counted.late = late;
        run
    }

    fn judged(name: &str, runs: Vec<Run>) -> ([ClaimVerdict; 3], String) {
        let results = Results { runs: [(name.to_owned(), runs)].into(), ..Results::default() };
        let scores = scores(&results);
        let seen = scores.iter().map(|score| score.seen.clone()).collect::<Vec<_>>().join("\n");
        (scores.map(|score| score.verdict), seen)
    }

    #[test]
    fn order_is_judged_by_what_several_processors_add() {
        let runs = |few: u64, many: u64, ours: u64| {
            vec![
                at("tcpdump", ("processors", ONE), few, None),
                at("tcpdump", ("processors", ALL), many, None),
                at("record", ("processors", ONE), 400_000, Some(0)),
                at("record", ("processors", ALL), 400_000, Some(ours)),
            ]
        };
        let (verdicts, seen) = judged(ORDER, runs(0, 300_000, 30_000));
        assert_eq!(verdicts, [Holds, Holds, Unavailable], "{seen}");
        assert!(
            seen.starts_with("tcpdump: 30.00 % on all, by 3.0 ms at most, 0.00 % on one; record")
        );
        assert_eq!(judged(ORDER, runs(300_000, 300_000, 30_001)).0, [Fails, Fails, Unavailable]);
        // Where nothing is out of order nothing can be mended.
        let (verdicts, seen) = judged(ORDER, runs(0, 0, 0));
        assert_eq!(verdicts, [Fails, Unavailable, Unavailable], "{seen}");
        // One tool may see what the stamps of the other one do not show.
        let mut fine = runs(0, 0, 0);
        fine[3].trial.counted.order = Some(PacketOrder { inversions: 400_001, deepest_ns: 900 });
        assert_eq!(judged(ORDER, fine).0[0], Holds);
        let mut mute = runs(0, 1, 0);
        mute.iter_mut().for_each(|run| run.trial.counted.order = None);
        assert_eq!(judged(ORDER, mute).0, [Unavailable; 3]);
        // Nobody knows what one processor would have done.
        assert_eq!(judged(ORDER, runs(0, 1, 0)[3..].to_vec()).0[0], Unavailable);
    }

    #[test]
    fn windows_are_judged_by_what_they_leave() {
        let runs = |inverted: u64, late: u64| {
            let of = |window, late| at("analyze", ("reorder", window), inverted, Some(late));
            vec![of(NONE, 150_000), of(USUAL, late), of(LONG, 20)]
        };
        let (verdicts, seen) = judged(WINDOW, runs(200_000, 20_000));
        assert_eq!(verdicts, [Unavailable, Unavailable, Holds]);
        let expected = "20.00 % in the ring, 2.00 % too late for 200 us, 20.0 of a million for 5 ms, 15.00 % for blocks alone";
        assert!(seen.ends_with(expected), "{seen}");
        assert_eq!(judged(WINDOW, runs(200_000, 20_001)).0[2], Fails);
        assert_eq!(judged(WINDOW, runs(0, 0)).0[2], Unavailable);
        assert_eq!(judged(WINDOW, runs(9, 0)[..1].to_vec()).0[2], Unavailable);
    }
}
