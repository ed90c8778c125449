//! A comparison as a page: what may have changed, as intervals beside what would be no change.

use super::text::{
    RATES, between, columns, label, left_out, mean_of_runs, means_of_rates, named, notes, percent,
};
use super::text::{range, rows_of_rates, rows_of_runs, title, untold, words};
use super::{Changes, Comparison};
use crate::compare::facts::{Fact, Setup};
use crate::compare::rates::{self, Improvement};
use crate::compare::runs::{self, Change, Measure};
use crate::report::{
    Axis, Chart, Interval, Intervals, Part, Plot, Report, Section, Table, Value, sections,
};

/// Points in a plot: of more the table tells.
const MOST_ROWS: usize = 28;

/// The page; `setups` are of A and B, and `command` made the comparison.
pub(super) fn page(comparison: &Comparison, setups: [&Setup; 2], command: &[String]) -> Report {
    let Comparison { differing, changes, .. } = comparison;
    let mut sections: Vec<_> = match changes {
        Changes::Lossless { groups, .. } => groups.iter().map(of_rates).collect(),
        Changes::Sweep { groups, .. } => groups.iter().map(of_runs).collect(),
    };
    if !sections.is_empty() {
        // What is a line on a terminal is a paragraph here.
        let notes = notes(changes).into_iter().map(|note| Part::Text(note.replace('\n', " ")));
        sections.push(Section { title: "How to read this".to_owned(), parts: notes.collect() });
    }
    if !differing.is_empty() {
        let title = "What A and B also differ in".to_owned();
        sections.push(Section { title, parts: vec![Part::Table(facts_that_differ(differing))] });
    }
    let left_out = left_out(changes);
    let lead = lead(comparison, left_out.len());
    if !left_out.is_empty() {
        let title = format!("Left out ({})", left_out.len());
        let table = table(["side", "tool", "point", "why"], &[], left_out);
        sections.push(Section { title, parts: vec![Part::Table(table)] });
    }
    let title = "What changed from A to B".to_owned();
    Report { title, lead, facts: facts(comparison, setups, command), sections }
}

fn lead(comparison: &Comparison, left_out: usize) -> Vec<String> {
    let points: usize = match &comparison.changes {
        Changes::Lossless { groups, .. } => groups.iter().map(|group| group.rows.len()).sum(),
        Changes::Sweep { groups, .. } => groups.iter().map(|group| group.rows.len()).sum(),
    };
    let reasons = if comparison.differing.is_empty() {
        "The machines and testbeds are the same, as far as they tell."
    } else {
        "A and B also differ in what stands below, which may be why something changed."
    };
    let [a, b] = [&comparison.a, &comparison.b].map(named);
    vec![
        format!("A is {a}; B is {b}. All changes are from A to B."),
        format!(
            "Points that both have, and that are compared: {points}; left out: {left_out}. {reasons}"
        ),
    ]
}

fn facts_that_differ(differing: &[Fact]) -> Table {
    let of = |value: &Option<String>| value.clone().unwrap_or_else(|| "unavailable".to_owned());
    let rows = differing.iter().map(|fact| [fact.name.clone(), of(&fact.a), of(&fact.b)]);
    table(["", "A", "B"], &[], rows.collect())
}

/// Commands, and what A and B have in common; what they have not is in a table of its own.
fn facts(
    comparison: &Comparison,
    setups: [&Setup; 2],
    command: &[String],
) -> Vec<(String, String)> {
    let [of_a, of_b] = setups.map(|setup| {
        let version = ("netsniff".to_owned(), setup.netsniff.clone());
        let facts = sections::facts(&setup.command, &setup.machine, Some(&setup.testbed));
        std::iter::once(version).chain(facts).collect::<Vec<_>>()
    });
    let own = [
        ("command", command.join(" ")),
        ("A", named(&comparison.a)),
        ("command of A", setups[0].command.join(" ")),
        ("B", named(&comparison.b)),
        ("command of B", setups[1].command.join(" ")),
    ];
    let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
    let shared = of_a.into_iter().filter(|fact| fact.0 != "command" && of_b.contains(fact));
    own.chain(shared).collect()
}

/// A table of cells of which some are numbers.
fn table<const N: usize>(names: [&str; N], numbers: &[usize], rows: Vec<[String; N]>) -> Table {
    let columns =
        names.iter().enumerate().map(|(at, name)| ((*name).to_owned(), numbers.contains(&at)));
    Table {
        columns: columns.collect(),
        rows: rows.into_iter().map(Vec::from).collect(),
        note: None,
    }
}

fn of_rates(group: &rates::Group) -> Section {
    let interval = |label: String, improvement: &Improvement, ends: [Option<f64>; 2], is_apart| {
        let value = match improvement {
            Improvement::Exactly { percent } => Value::Exactly(*percent),
            Improvement::AtLeast { percent } => Value::AtLeast(*percent),
            Improvement::AtMost { percent } => Value::AtMost(*percent),
            Improvement::Unavailable { .. } => Value::Unknown,
        };
        let (told, why) = percent(improvement);
        let ends = ends.map(|end| end.filter(|end| end.is_finite()));
        let words = match (ends, why) {
            ([None, None], "") => told,
            ([None, None], why) => format!("{told}: {why}"),
            (ends, _) => format!("{told} ({})", range(ends)),
        };
        Interval { label, value, ends, words, is_apart }
    };
    let sizes = group.rows.iter().take(MOST_ROWS).map(|row| {
        interval(format!("{} bytes", row.size), &row.improvement, row.range, row.is_apart)
    });
    let means = means_of_rates(group).into_iter().map(|(name, mean)| {
        let [low, high] = mean.range;
        let is_apart = low.is_some_and(|low| low > 0.0) || high.is_some_and(|high| high < 0.0);
        interval(name, &mean.improvement, mean.range, is_apart)
    });
    let name = title(&group.tools);
    let caption = "The circle is the improvement; the line is where it can be, as far as runs tell: that is no confidence \
                   interval. An arrow is an end that is open, since a rate is the sender's limit, or no run lost anything \
                   above it. Full circles of another colour: the ranges of A and B have nothing in common, or that of a mean \
               does not have 0.";
    let intervals = Intervals {
        x: Axis::new("improvement of the highest rate without loss, %"),
        none: 0.0,
        rows: sizes.chain(means).collect(),
    };
    let title = format!("Improvement of the highest rate without loss, {name}");
    let plot = Plot::new(title, caption, Chart::Intervals(intervals)).without(
        group.rows.len().saturating_sub(MOST_ROWS),
        "sizes behind the first ones, which the table has",
    );
    let table = table(RATES, &[1, 2, 3], rows_of_rates(group));
    Section { title: name, parts: vec![Part::Plot(plot), Part::Table(table)] }
}

fn of_runs(group: &runs::Group) -> Section {
    let mut parts = Vec::new();
    for (at, measure) in Measure::ALL.into_iter().enumerate() {
        match untold(group, at, measure) {
            Some(why) => parts.push(Part::Text(why)),
            None => {
                let columns = columns(measure);
                let names = columns.each_ref().map(String::as_str);
                let table = table(names, &[1, 2, 3, 4], rows_of_runs(group, at, measure));
                parts.extend([Part::Plot(plot(group, at, measure)), Part::Table(table)]);
            }
        }
    }
    Section { title: title(&group.tools), parts }
}

fn plot(group: &runs::Group, at: usize, measure: Measure) -> Plot {
    // Differences of shares in percentage points, ratios as changes in percent: as in the table.
    let scale = |value: f64| 100.0 * if measure.is_ratio() { value - 1.0 } else { value };
    let interval = |label: String, change: Option<&Change>| {
        let ends = change.and_then(|change| change.interval.ends());
        let words = match (super::text::changed(measure, change), ends) {
            ((told, _), Some(ends)) => format!("{told} ({})", between(measure, ends)),
            ((told, why), None) if why.is_empty() => told,
            ((told, why), None) => format!("{told}; {why}"),
        };
        let ends = ends.map_or([None, None], |ends| {
            ends.map(|end| Some(scale(end)).filter(|end| end.is_finite()))
        });
        Interval {
            label,
            value: change.map_or(Value::Unknown, |change| Value::Exactly(scale(change.value))),
            ends,
            words,
            is_apart: change.is_some_and(|change| change.is_significant),
        }
    };
    let points = group.rows.iter().take(MOST_ROWS);
    let points = points.map(|row| interval(label(&row.point), row.compared[at].change.as_ref()));
    let mean =
        mean_of_runs(group, at, measure).map(|(name, mean)| interval(name, mean.change.as_ref()));
    let (what, _) = words(measure);
    let x = if measure.is_ratio() {
        format!("change of {what}, in %")
    } else {
        "difference of losses, in percentage points".to_owned()
    };
    let caption = "The circle is the change from A to B, the line its interval of 95 % confidence, and an arrow an end that is \
                   open. Full circles of another colour: the interval does not have what would be no change. Of 20 intervals \
                   where nothing changed about one is so by chance.";
    let intervals = Intervals { x: Axis::new(x), none: 0.0, rows: points.chain(mean).collect() };
    let title = format!("Change of {what}, {}", title(&group.tools));
    Plot::new(title, caption, Chart::Intervals(intervals)).without(
        group.rows.len().saturating_sub(MOST_ROWS),
        "points behind the first ones, which the table has",
    )
}
