//! The highest rates without loss of two sides, for each size of frames: the improvement tables of PAPERS F10.
//!
//! A search tells a range that has the highest rate: from the lowest rate of the runs that confirm it to the lowest one
//! at which a run lost something. Two ranges make one for the improvement, from the least to the most that it can be.
//! That is no confidence interval: nothing is said of how probable what is in it is. Where the sender is the limit, or
//! no rate is low enough, one end is open, and the improvement a bound.

use serde::Serialize;

use super::interval::mean;
use super::{Chosen, LeftOut, Side, distinct, paired, pairs};
use crate::search::HighestRate;
use crate::search::lossless::Cell;

/// The sizes of two tools, or of one on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// The tools of A and B.
    pub tools: [String; 2],
    /// Each size that both have.
    pub rows: Vec<Row>,
    /// The arithmetic mean of the improvements in percent, as the papers have it.
    pub arithmetic: Mean,
    /// The improvement that the geometric mean of the ratios is: the same whichever side is the first.
    pub geometric: Mean,
}

/// The rates of both reports at one frame size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Bytes of a frame.
    pub size: u32,
    /// What was found for A and B.
    pub highest: [Highest; 2],
    /// By what part B is higher.
    pub improvement: Improvement,
    /// The least and the most that it can be, in percent, as far as runs tell; `None` for an open end.
    pub range: [Option<f64>; 2],
    /// Whether the ranges of the two rates have nothing in common.
    pub is_apart: bool,
}

/// What a search tells of the highest rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Highest {
    /// What it came to.
    pub found: HighestRate,
    /// The lowest rate above that at which a run lost something.
    pub lost_at: Option<f64>,
    /// Runs that lost something at no higher rate: something else disturbed them, or the rate is lower than it seems.
    pub lost_below: usize,
    /// Why it ended before.
    pub ended: Option<String>,
}

/// By how many percent B is higher than A.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Improvement {
    /// The change is known to a number.
    Exactly {
        /// By how many percent B is higher.
        percent: f64,
    },
    /// By so many or more.
    AtLeast {
        /// By how many percent B is higher.
        percent: f64,
    },
    /// By so many or fewer.
    AtMost {
        /// By how many percent B is higher.
        percent: f64,
    },
    /// It cannot be told.
    Unavailable {
        /// The reason, as a sentence.
        why: String,
    },
}

/// A mean over sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// How many sizes it is of: those of which anything is known.
    pub sizes: usize,
    /// The change from A to B.
    pub improvement: Improvement,
    /// As [`Row::range`], where all sizes are at their least, and at their most.
    pub range: [Option<f64>; 2],
}

/// Compares what was found for each tool and size.
#[must_use]
pub fn compare(sides: &[Chosen<'_, Cell>; 2]) -> (Vec<Group>, Vec<LeftOut<u32>>) {
    let (mut groups, mut left_out) = (Vec::new(), Vec::new());
    for tools in pairs(sides) {
        let of = |side: usize| {
            let cells = sides[side].of.iter().copied();
            let is_wanted = |cell: &&Cell| tools[side].as_ref() == Some(&cell.tool);
            cells.filter(is_wanted).collect::<Vec<_>>()
        };
        let of = [of(0), of(1)];
        for (side, cells) in Side::BOTH.into_iter().zip(&of) {
            left_out.extend(again(side, cells));
        }
        let [a, b] = of.each_ref().map(|cells| distinct(cells.iter().map(|cell| cell.size)));
        let (both, alone) = paired(&a, &b);
        left_out.extend(alone.into_iter().map(|(side, point)| LeftOut {
            side,
            tool: tools[side as usize].clone().unwrap_or_default(),
            point,
            why: format!("{} has no search to pair it with", side.other()),
        }));
        let find = |side: usize, size: u32| of[side].iter().copied().find(|it| it.size == size);
        let mut rows = Vec::new();
        for (a, b) in both.iter().filter_map(|size| find(0, *size).zip(find(1, *size))) {
            if a.tolerated == b.tolerated {
                rows.push(row(a, b));
            } else {
                left_out.push(LeftOut {
                    side: Side::B,
                    tool: b.tool.clone(),
                    point: b.size,
                    why: format!("it tolerates another loss than {}", Side::A),
                });
            }
        }
        if let [Some(a), Some(b)] = tools
            && !rows.is_empty()
        {
            groups.push(group([a, b], rows));
        }
    }
    (groups, left_out)
}

/// Searches for what was searched before.
fn again(side: Side, cells: &[&Cell]) -> Vec<LeftOut<u32>> {
    let is_again =
        |(at, cell): &(usize, &&Cell)| cells[..*at].iter().any(|before| before.size == cell.size);
    let again = cells.iter().enumerate().filter(is_again);
    again
        .map(|(_, cell)| LeftOut {
            side,
            tool: cell.tool.clone(),
            point: cell.size,
            why: format!("{side} has it twice, of which the first counts"),
        })
        .collect()
}

fn group(tools: [String; 2], rows: Vec<Row>) -> Group {
    let spans: Vec<_> = rows.iter().filter_map(|row| Some((plain(row)?, ranges(row)?))).collect();
    let over = |mean: fn(&[f64]) -> f64| {
        let [found, range] = [
            spans.iter().map(|(plain, _)| *plain).collect::<Vec<_>>(),
            spans.iter().map(|(_, range)| *range).collect(),
        ]
        .map(|spans| Span::mean(&spans, mean));
        Mean {
            sizes: spans.len(),
            improvement: found.improvement("nothing is known of any size, or bounds of both kinds"),
            range: range.percent(),
        }
    };
    let arithmetic = over(|ratios| mean(ratios).unwrap_or(f64::NAN));
    let geometric = over(|ratios| {
        let logarithms: Vec<_> = ratios.iter().map(|ratio| ratio.ln()).collect();
        mean(&logarithms).map_or(f64::NAN, f64::exp)
    });
    Group { tools, rows, arithmetic, geometric }
}

fn row(a: &Cell, b: &Cell) -> Row {
    let highest = [a, b].map(Highest::of);
    let mut row = Row {
        size: a.size,
        highest,
        improvement: Improvement::Unavailable { why: String::new() },
        range: [None, None],
        is_apart: false,
    };
    row.improvement = match plain(&row) {
        Some(span) => span.improvement(""),
        None => Improvement::Unavailable { why: why_not(&row.highest) },
    };
    if let Some(range) = ranges(&row) {
        row.range = range.percent();
        row.is_apart = range.low > 1.0 || range.high < 1.0;
    }
    row
}

/// The ratio of what was found; `None` where it may be anything.
fn plain(row: &Row) -> Option<Span> {
    let [a, b] = &row.highest;
    let ratio = b.found_span()?.over(a.found_span()?);
    (ratio.low > 0.0 || ratio.high < f64::INFINITY).then_some(ratio)
}

/// The ratio of what the runs tell, where that of what was found is not anything.
fn ranges(row: &Row) -> Option<Span> {
    plain(row)?;
    let [a, b] = &row.highest;
    Some(b.range()?.over(a.range()?))
}

fn why_not(highest: &[Highest; 2]) -> String {
    for (side, highest) in Side::BOTH.into_iter().zip(highest) {
        if highest.found_span().is_none() {
            let why = highest.ended.as_deref().unwrap_or("no rate above 0");
            return format!("{side}: {why}");
        }
    }
    match highest[0].found {
        HighestRate::AtLeast(_) => "both reach what the sender can do",
        _ => "both lose something at any rate that was tried",
    }
    .to_owned()
}

impl Highest {
    fn of(cell: &Cell) -> Self {
        let rate = match cell.found {
            HighestRate::Rate(rate) | HighestRate::AtLeast(rate) => Some(rate),
            HighestRate::Below(_) | HighestRate::Ended => None,
        };
        let trials = cell.steps.iter().map(|step| &step.trial);
        let lost = trials.filter(|trial| trial.is_true_at_reached() && !cell.is_kept(trial));
        let lost: Vec<f64> = lost.filter_map(|trial| trial.reached).collect();
        let above = lost.iter().copied().filter(|lost| rate.is_some_and(|rate| *lost > rate));
        Self {
            found: cell.found,
            lost_at: above.min_by(f64::total_cmp),
            lost_below: lost.iter().filter(|lost| rate.is_some_and(|rate| **lost <= rate)).count(),
            ended: cell.ended.clone(),
        }
    }

    fn found_span(&self) -> Option<Span> {
        let (low, high, rate) = match self.found {
            HighestRate::Rate(rate) => (rate, rate, rate),
            HighestRate::AtLeast(rate) => (rate, f64::INFINITY, rate),
            HighestRate::Below(rate) => (0.0, rate, rate),
            HighestRate::Ended => return None,
        };
        (rate > 0.0 && rate.is_finite()).then_some(Span { low, high })
    }

    /// Where the highest rate is, as far as runs tell.
    fn range(&self) -> Option<Span> {
        let Span { low, high } = self.found_span()?;
        let high = match self.found {
            HighestRate::Rate(_) => self.lost_at.unwrap_or(f64::INFINITY),
            _ => high,
        };
        Some(Span { low, high })
    }
}

/// From 0 to infinity at most: rates, or ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Span {
    low: f64,
    high: f64,
}

impl Span {
    fn over(self, other: Self) -> Self {
        Self { low: self.low / other.high, high: self.high / other.low }
    }

    fn mean(of: &[Self], mean: fn(&[f64]) -> f64) -> Self {
        let lows: Vec<_> = of.iter().map(|span| span.low).collect();
        let highs: Vec<_> = of.iter().map(|span| span.high).collect();
        // A mean of what is open is open.
        let is_open = of.is_empty() || lows.contains(&0.0);
        let low = if is_open { 0.0 } else { mean(&lows) };
        let high = if of.is_empty() { f64::INFINITY } else { mean(&highs) };
        Self { low, high }
    }

    fn percent(self) -> [Option<f64>; 2] {
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        let low = (self.low > 0.0).then(|| percent(self.low));
        [low, (self.high < f64::INFINITY).then(|| percent(self.high))]
    }

    fn improvement(self, why: &str) -> Improvement {
        match self.percent() {
            [Some(percent), Some(_)] => Improvement::Exactly { percent },
            [Some(percent), None] => Improvement::AtLeast { percent },
            [None, Some(percent)] => Improvement::AtMost { percent },
            [None, None] => Improvement::Unavailable { why: why.to_owned() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Selection, choose};
    use crate::search::Purpose;
    use crate::search::lossless::Step;
    use crate::tools::Counted;
    use crate::trial::{Fault, Trial};

    /// A search for a size; it lost something at these rates.
    fn cell(tool: &str, size: u32, found: HighestRate, lost: &[f64]) -> Cell {
        let step = |rate: &f64| Step {
            purpose: Purpose::Steer,
            trial: Trial {
                sent: 1000,
                reached: Some(*rate),
                counted: Counted { captured: Some(999), ..Counted::default() },
                ..Trial::default()
            },
        };
        let (tool, steps) = (tool.to_owned(), lost.iter().map(step).collect());
        Cell {
            tool,
            size,
            found,
            tolerated: 0.0,
            confirmed: 0,
            loss_below: None,
            ended: None,
            steps,
        }
    }

    fn compared(a: &[Cell], b: &[Cell]) -> (Vec<Group>, Vec<LeftOut<u32>>) {
        compare(&choose([(Selection::default(), a), (Selection::default(), b)]).unwrap())
    }

    fn one(a: (HighestRate, &[f64]), b: (HighestRate, &[f64])) -> Row {
        let [a, b] = [a, b].map(|(found, lost)| [cell("x", 64, found, lost)]);
        compared(&a, &b).0.remove(0).rows.remove(0)
    }

    fn is_near(value: f64, expected: f64) -> bool {
        (value - expected).abs() <= 1e-9 * expected.abs()
    }

    const PUBLISHED: [(u32, f64); 6] =
        [(64, 17.01), (128, 3.49), (256, 57.82), (512, 20.14), (1024, 19.19), (1518, 11.15)];

    /// The improvements of PAPERS F10, and their mean; `numpy.exp(numpy.mean(numpy.log(1 + x / 100)))` of them.
    #[test]
    fn the_improvements_of_the_papers_come_out() {
        let rates = |part: fn(f64) -> f64| {
            PUBLISHED.map(|(size, percent)| {
                let rate = 250_000.0 * part(percent);
                cell("x", size, HighestRate::Rate(rate), &[rate * 1.02])
            })
        };
        let (a, b) = (rates(|_| 1.0), rates(|percent| 1.0 + percent / 100.0));
        let (groups, left_out) = compared(&a, &b);
        assert_eq!((groups.len(), left_out.len()), (1, 0));
        let Group { rows, arithmetic, geometric, .. } = &groups[0];
        for (row, (size, published)) in rows.iter().zip(PUBLISHED) {
            let Improvement::Exactly { percent } = row.improvement else { panic!("{row:?}") };
            assert_eq!(row.size, size);
            assert!((percent - published).abs() < 1e-9, "{percent}");
            let [low, high] = row.range.map(Option::unwrap);
            assert!(is_near(1.0 + low / 100.0, (1.0 + published / 100.0) / 1.02));
            assert!(is_near(1.0 + high / 100.0, (1.0 + published / 100.0) * 1.02));
            assert!(row.is_apart == (published > 2.1));
        }
        let of = |mean: &Mean| match mean.improvement {
            Improvement::Exactly { percent } => (mean.sizes, (percent * 100.0).round() / 100.0),
            ref other => panic!("{other:?}"),
        };
        assert_eq!((of(arithmetic), of(geometric)), ((6, 21.47), (6, 20.37)));
        let [low, high] = geometric.range.map(Option::unwrap);
        assert!(low < 20.37 && 20.37 < high);
    }

    #[test]
    fn bounds_stay_bounds() {
        let (rate, least, below) = (HighestRate::Rate, HighestRate::AtLeast, HighestRate::Below);
        let improvement =
            |a: HighestRate, b: HighestRate| one((a, &[110.0]), (b, &[220.0])).improvement;
        let percent = 100.0;
        assert_eq!(improvement(rate(100.0), rate(200.0)), Improvement::Exactly { percent });
        assert_eq!(improvement(rate(100.0), least(200.0)), Improvement::AtLeast { percent });
        assert_eq!(improvement(below(100.0), rate(200.0)), Improvement::AtLeast { percent });
        assert_eq!(improvement(below(100.0), least(200.0)), Improvement::AtLeast { percent });
        assert_eq!(improvement(least(100.0), rate(200.0)), Improvement::AtMost { percent });
        assert_eq!(improvement(rate(100.0), below(200.0)), Improvement::AtMost { percent });
        assert_eq!(improvement(least(100.0), below(200.0)), Improvement::AtMost { percent });
        for (a, b, said) in [
            (least(100.0), least(200.0), "both reach what the sender can do"),
            (below(100.0), below(200.0), "both lose something at any rate that was tried"),
            (rate(0.0), rate(200.0), "A: no rate above 0"),
        ] {
            let row = one((a, &[110.0]), (b, &[]));
            assert_eq!(row.improvement, Improvement::Unavailable { why: said.to_owned() });
            assert_eq!((row.range, row.is_apart), ([None, None], false));
        }
        let mut ended = cell("x", 64, HighestRate::Ended, &[]);
        ended.ended = Some("the budget is used up".to_owned());
        let why = "B: the budget is used up".to_owned();
        let rows = compared(&[cell("x", 64, rate(1.0), &[])], &[ended]).0.remove(0).rows;
        assert_eq!(rows[0].improvement, Improvement::Unavailable { why });
    }

    #[test]
    fn ranges_go_from_what_was_confirmed_to_what_lost() {
        let row = one(
            (HighestRate::Rate(100.0), &[130.0, 110.0, 90.0]),
            (HighestRate::Rate(150.0), &[165.0]),
        );
        assert_eq!((row.highest[0].lost_at, row.highest[0].lost_below), (Some(110.0), 1));
        let [low, high] = row.range.map(Option::unwrap);
        assert!(is_near(low, 100.0 * (150.0 / 110.0 - 1.0)) && is_near(high, 65.0));
        assert!(row.is_apart);
        assert!(
            one((HighestRate::Rate(150.0), &[165.0]), (HighestRate::Rate(100.0), &[110.0]))
                .is_apart
        );
        let row = one((HighestRate::Rate(100.0), &[130.0]), (HighestRate::Rate(120.0), &[130.0]));
        assert!(!row.is_apart, "{row:?}");
        let row = one((HighestRate::Rate(100.0), &[110.0]), (HighestRate::AtLeast(120.0), &[]));
        assert!(
            row.range[1].is_none() && is_near(row.range[0].unwrap(), 100.0 * (12.0 / 11.0 - 1.0))
        );
        // Nothing is known of a run that proves nothing, or of one that lost nothing.
        let mut cell = cell("x", 64, HighestRate::Rate(100.0), &[110.0, 120.0, 130.0]);
        cell.steps[0].trial.faults.push(Fault::Wire);
        cell.steps[1].trial.counted.captured = Some(1000);
        assert_eq!(Highest::of(&cell).lost_at, Some(130.0));
    }

    #[test]
    fn a_mean_with_bounds_is_a_bound_or_nothing() {
        let mean = |found: &[(HighestRate, HighestRate)]| {
            let cells = |side: fn(&(HighestRate, HighestRate)) -> HighestRate| {
                let sizes = (64..).zip(found);
                sizes.map(|(size, pair)| cell("x", size, side(pair), &[])).collect::<Vec<_>>()
            };
            let group = compared(&cells(|pair| pair.0), &cells(|pair| pair.1)).0.remove(0);
            (group.arithmetic.sizes, group.arithmetic.improvement, group.geometric.improvement)
        };
        let (plain, floor) = (HighestRate::Rate(100.0), HighestRate::AtLeast(300.0));
        let (sizes, arithmetic, geometric) = mean(&[(plain, plain), (plain, floor)]);
        assert_eq!((sizes, arithmetic), (2, Improvement::AtLeast { percent: 100.0 }));
        let Improvement::AtLeast { percent } = geometric else { panic!("{geometric:?}") };
        assert!(is_near(percent, 100.0 * (3.0_f64.sqrt() - 1.0)), "{percent}");
        let (sizes, arithmetic, _) = mean(&[(plain, plain), (floor, plain)]);
        assert!(sizes == 2 && matches!(arithmetic, Improvement::AtMost { .. }), "{arithmetic:?}");
        let (sizes, arithmetic, _) = mean(&[(plain, floor), (floor, plain)]);
        assert!(sizes == 2 && matches!(arithmetic, Improvement::Unavailable { .. }));
        let (sizes, arithmetic, _) =
            mean(&[(plain, HighestRate::Rate(150.0)), (plain, HighestRate::Ended)]);
        assert_eq!((sizes, arithmetic), (1, Improvement::Exactly { percent: 50.0 }));
    }

    #[test]
    fn turned_around_ratios_are_inverted() {
        let (a, b) =
            ((HighestRate::Rate(312.0), &[323.0][..]), (HighestRate::Rate(377.0), &[391.0][..]));
        let (there, back) = (one(a, b), one(b, a));
        let ratio = |percent: f64| 1.0 + percent / 100.0;
        let [there, back] = [there, back].map(|row| match row.improvement {
            Improvement::Exactly { percent } => (percent, row.range.map(Option::unwrap)),
            other => panic!("{other:?}"),
        });
        assert!(is_near(ratio(there.0) * ratio(back.0), 1.0));
        assert!(is_near(ratio(there.1[0]) * ratio(back.1[1]), 1.0));
        assert!(is_near(ratio(there.1[1]) * ratio(back.1[0]), 1.0));
    }

    #[test]
    fn sizes_without_a_partner_are_left_out() {
        let rate = HighestRate::Rate(100.0);
        let cells = |all: &[(&str, u32)]| -> Vec<Cell> {
            all.iter().map(|(tool, size)| cell(tool, *size, rate, &[])).collect()
        };
        let (groups, left_out) = compared(
            &cells(&[("x", 64), ("x", 512), ("y", 64), ("x", 64)]),
            &cells(&[("x", 64), ("x", 1518), ("z", 64)]),
        );
        assert_eq!((groups.len(), groups[0].rows.len()), (1, 1));
        let left_out: Vec<_> = left_out
            .iter()
            .map(|it| format!("{} {} {}: {}", it.side, it.tool, it.point, it.why))
            .collect();
        assert_eq!(
            left_out,
            [
                "A x 64: A has it twice, of which the first counts",
                "A x 512: B has no search to pair it with",
                "B x 1518: A has no search to pair it with",
                "A y 64: B has no search to pair it with",
                "B z 64: A has no search to pair it with",
            ]
        );
    }
}
