//! The order of packets and the shares of threads, where any run has something of these to tell.

use super::{Group, MOST_CURVES, curves, faulty};
use crate::paper::Quantity;
use crate::report::{Axis, Chart, Part, Plot, Section};
use crate::search::sweep::Run;
use crate::trial::Trial;

const CAPTION: &str =
    "Medians of runs that prove something; the thin lines reach from the least to the most.";

/// A section with a plot of each quantity that some run has: packets that are out of order, several threads. `None` where all
/// was in order and of one thread, as far as anybody tells.
pub(super) fn order(runs: &[Run], groups: &[Group<'_>]) -> Option<Section> {
    let has = |is_so: fn(&Trial) -> bool| {
        runs.iter().any(|run| run.trial.is_valid() && is_so(&run.trial))
    };
    let is_inverted = has(|trial| trial.counted.order.is_some_and(|order| order.inversions > 0));
    let is_late = has(|trial| trial.counted.late.is_some_and(|late| late > 0));
    let is_shared =
        has(|trial| trial.counted.threads.as_ref().is_some_and(|threads| threads.len() > 1));
    let all = [
        (is_inverted, "Packets out of order against rate", Quantity::OutOfOrder),
        (is_inverted, "How far packets are out of order against rate", Quantity::Deepest),
        (is_late, "Packets too late to be put in order against rate", Quantity::Late),
        (is_shared, "The busiest thread against rate", Quantity::LargestShare),
    ];
    let shown = all.into_iter().filter(|(is_shown, ..)| *is_shown);
    let parts: Vec<_> = shown
        .flat_map(|(_, title, quantity)| plots(title, quantity, groups))
        .map(Part::Plot)
        .collect();
    (!parts.is_empty()).then(|| Section { title: "Order and threads".to_owned(), parts })
}

/// The plots of a quantity: several where there are too many curves for one.
fn plots(title: &str, quantity: Quantity, groups: &[Group<'_>]) -> Vec<Plot> {
    let y = if quantity.is_share() { Axis::share } else { Axis::new };
    let plot = |(number, groups): (usize, &[Group<'_>])| {
        let title = match number {
            0 => title.to_owned(),
            number => format!("{title}, {}", number + 1),
        };
        let chart = Chart::Curves {
            x: Axis::new("frames a second that were sent"),
            y: y(quantity.label().to_owned()),
            series: curves(groups, quantity),
            marks: Vec::new(),
            has_diagonal: false,
        };
        Plot::new(title, CAPTION, chart).without(faulty(groups), "runs that prove nothing")
    };
    groups.chunks(MOST_CURVES).enumerate().map(plot).collect()
}

#[cfg(test)]
mod tests {
    use super::super::groups;
    use super::*;
    use crate::load::Load;
    use crate::packet_order::PacketOrder;
    use crate::search::sweep::Point;
    use crate::tools::Counted;
    use crate::trial::Fault;

    fn run(rate: f64, counted: Counted) -> Run {
        let load = Load { size: 64, rate: Some(rate), ..Load::default() };
        let point = Point {
            host: vec![],
            tool: "record".into(),
            settings: vec![],
            load: load.clone(),
            repetition: 0,
        };
        let trial = Trial { sent: 100, reached: Some(rate), load, counted, ..Trial::default() };
        Run { point, trial }
    }

    fn titles(runs: &[Run]) -> Vec<String> {
        let parts = order(runs, &groups(runs)).map_or(Vec::new(), |section| section.parts);
        let title = |part| match part {
            Part::Plot(plot) => plot.title,
            _ => String::new(),
        };
        parts.into_iter().map(title).collect()
    }

    #[test]
    fn only_what_some_run_has_is_drawn() {
        let counted = |inversions, late, threads: &[u64]| Counted {
            captured: Some(100),
            order: Some(PacketOrder { inversions, deepest_ns: inversions }),
            late: Some(late),
            threads: Some(threads.to_vec()),
            ..Counted::default()
        };
        let plain = run(1e3, counted(0, 0, &[100]));
        assert_eq!(titles(&[plain.clone(), run(2e3, Counted::default())]), [""; 0]);
        let inverted = run(2e3, counted(50, 0, &[100]));
        let both = [plain.clone(), inverted.clone()];
        let seen = titles(&both);
        assert_eq!(seen.len(), 2);
        assert!(seen[0].starts_with("Packets out of order"), "{seen:?}");
        let plots = plots("x", Quantity::OutOfOrder, &groups(&both));
        let Chart::Curves { series, .. } = &plots[0].chart else { panic!("they are curves") };
        let dots: Vec<_> = series[0].dots.iter().map(|dot| (dot.x, dot.y)).collect();
        assert_eq!(dots, [(1e3, 0.0), (2e3, 0.5)]);
        assert_eq!(titles(&[plain.clone(), run(2e3, counted(0, 1, &[99, 1]))]).len(), 2);
        let mut faulty = inverted;
        faulty.trial.faults.push(Fault::Rate);
        assert_eq!(titles(&[plain, faulty]), [""; 0], "what proves nothing has nothing");
    }
}
