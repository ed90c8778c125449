//! A comparison as CSV: a line for each point and quantity. Shares are from 0 to 1.

use super::Changes;
use crate::commands::csv::{known, line, words};
use crate::compare::rates::{self, Highest, Improvement};
use crate::compare::runs::{self, Change, Compared, Measure, Row};
use crate::search::HighestRate;

const COLUMNS: &str = "tool_a,tool_b,bytes,rate,seconds,settings,quantity,a_is,a,b_is,b,change_is,change,low,high,significant\n";

/// All that was compared.
pub(super) fn csv(changes: &Changes) -> String {
    let lines: Vec<String> = match changes {
        Changes::Lossless { groups, .. } => groups.iter().flat_map(of_rates).collect(),
        Changes::Sweep { groups, .. } => groups.iter().flat_map(of_runs).collect(),
    };
    COLUMNS.to_owned() + &lines.concat()
}

fn of_rates(group: &rates::Group) -> Vec<String> {
    let row = |row: &rates::Row| {
        let [a, b] = row.highest.each_ref().map(found);
        let (is, percent) = match &row.improvement {
            Improvement::Exactly { percent } => ("exactly", Some(*percent)),
            Improvement::AtLeast { percent } => ("at-least", Some(*percent)),
            Improvement::AtMost { percent } => ("at-most", Some(*percent)),
            Improvement::Unavailable { .. } => ("", None),
        };
        let [change, low, high] =
            [percent, row.range[0], row.range[1]].map(|it| finite(it.map(|it| it / 100.0)));
        let of = [row.size.to_string(), String::new(), String::new(), String::new()];
        let change = [is.to_owned(), change, low, high, known(percent.map(|_| row.is_apart))];
        let quantity = ["lossless-rate".to_owned()];
        line([&group.tools[..], &of, &quantity, &a, &b, &change].concat())
    };
    group.rows.iter().map(row).collect()
}

/// What a rate is, and it.
fn found(highest: &Highest) -> [String; 2] {
    let (is, rate) = match highest.found {
        HighestRate::Rate(rate) => ("exactly", Some(rate)),
        HighestRate::AtLeast(rate) => ("at-least", Some(rate)),
        HighestRate::Below(rate) => ("below", Some(rate)),
        HighestRate::Ended => ("", None),
    };
    [is.to_owned(), finite(rate)]
}

fn of_runs(group: &runs::Group) -> Vec<String> {
    let of_row = |row: &Row| {
        let load = &row.point.load;
        let of = [
            load.size.to_string(),
            known(load.rate),
            load.time.as_secs_f64().to_string(),
            words(&row.point.settings),
        ];
        let of_measure = |compared: &Compared| {
            let [a, b] = compared.values.map(exactly);
            let quantity = [quantity(compared.measure).to_owned()];
            let change = changed(compared);
            line([&group.tools[..], &of, &quantity, &a, &b, &change].concat())
        };
        row.compared.iter().map(of_measure).collect::<Vec<_>>()
    };
    group.rows.iter().flat_map(of_row).collect()
}

const fn quantity(measure: Measure) -> &'static str {
    match measure {
        Measure::Loss => "loss",
        Measure::Cpu => "cpu-ns-per-packet",
        Measure::Memory => "peak-memory-bytes",
        Measure::Polls => "polls-per-packet",
    }
}

/// A change and its interval: of losses B - A, of others B / A - 1.
fn changed(compared: &Compared) -> [String; 5] {
    let scale = |value: f64| if compared.measure.is_ratio() { value - 1.0 } else { value };
    let ends = compared.change.as_ref().and_then(|change| change.interval.ends());
    let [low, high] = ends.map_or([None, None], |ends| ends.map(|end| Some(scale(end))));
    let [is, value] = exactly(compared.change.as_ref().map(|Change { value, .. }| scale(*value)));
    let is_significant = compared.change.as_ref().filter(|_| ends.is_some());
    let is_significant = known(is_significant.map(|change| change.is_significant));
    [is, value, finite(low), finite(high), is_significant]
}

fn exactly(value: Option<f64>) -> [String; 2] {
    let is = if value.is_some() { "exactly" } else { "" };
    [is.to_owned(), finite(value)]
}

/// An end that is open is empty.
fn finite(value: Option<f64>) -> String {
    known(value.filter(|value| value.is_finite()))
}
