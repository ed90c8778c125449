//! A comparison as text.

use std::fmt::Write as _;

use crate::compare::interval::Interval;
use crate::compare::rates::{self, Highest, Improvement};
use crate::compare::runs::{self, Change, Compared, Measure, Row, Shared};
use crate::compare::{LeftOut, Side};
use crate::search::HighestRate;
use crate::tools::Setting;

use netsniff_console::printable::is_active;
use netsniff_console::terminal::table::{Align, Table};

use super::{Changes, Comparison, Named};
use crate::commands::table::whole;

/// By what part the rates of two senders may differ before their losses are of different loads.
pub(super) const MOST_APART: f64 = 0.01;

/// All of it, or the tables alone.
pub(super) fn text(comparison: &Comparison, tables_alone: bool) -> String {
    let text = written(comparison, tables_alone);
    // Names from a file must not steer the terminal.
    text.replace(|letter: char| is_active(letter) && letter != '\n', "\u{fffd}")
}

pub(super) fn written(comparison: &Comparison, tables_alone: bool) -> String {
    let Comparison { a, b, differing, changes } = comparison;
    let tables = match changes {
        Changes::Lossless { groups, .. } => groups.iter().map(improvements).collect::<String>(),
        Changes::Sweep { groups, .. } => groups.iter().map(changes_of).collect(),
    };
    if tables_alone {
        return tables;
    }
    let mut text = format!("A  {}\nB  {}\n", named(a), named(b));
    if !differing.is_empty() {
        text += "\nA and B also differ in this, which may be why:\n";
    }
    for fact in differing {
        let of = |value: &Option<String>| value.clone().unwrap_or_else(|| "unavailable".to_owned());
        // A String takes everything.
        let _ = writeln!(text, "  {}: {}; {}", fact.name, of(&fact.a), of(&fact.b));
    }
    text += &tables;
    let left_out = left_out(changes);
    if !left_out.is_empty() {
        text += "\nLeft out:\n";
    }
    for [side, tool, point, why] in left_out {
        // A String takes everything.
        let _ = writeln!(text, "  {side}: {tool}, {point}: {why}");
    }
    if !tables.is_empty() {
        text += &format!("\n{}\n", notes(changes).join("\n"));
    }
    text
}

/// What has no partner: the side, the tool, the point, and why.
pub(super) fn left_out(changes: &Changes) -> Vec<[String; 4]> {
    fn each<P>(left_out: &[LeftOut<P>], label: impl Fn(&P) -> String) -> Vec<[String; 4]> {
        let row = |LeftOut { side, tool, point, why }: &LeftOut<P>| {
            [side.to_string(), tool.clone(), label(point), why.clone()]
        };
        left_out.iter().map(row).collect()
    }
    match changes {
        Changes::Lossless { left_out, .. } => each(left_out, |size| format!("{size} bytes")),
        Changes::Sweep { left_out, .. } => each(left_out, label),
    }
}

/// What is to be known of the tables, a note to a line or two.
pub(super) fn notes(changes: &Changes) -> Vec<String> {
    match changes {
        Changes::Lossless { groups, .. } => notes_of_rates(groups),
        Changes::Sweep { groups, intervals, significant, .. } => {
            notes_of_runs(groups, *intervals, *significant)
        }
    }
}

pub(super) fn named(side: &Named) -> String {
    let Named { directory, selection, .. } = side;
    let tool = selection.tool.iter().map(|tool| format!(", {tool}"));
    let rest = selection.settings.iter().map(setting);
    format!("{directory}{}", tool.chain(rest).collect::<String>())
}

pub(super) fn setting(Setting { name, value }: &Setting) -> String {
    format!(", {name} {value}")
}

/// The name of a group.
pub(super) fn title([a, b]: &[String; 2]) -> String {
    if a == b { a.clone() } else { format!("from {a} to {b}") }
}

/// The highest rates of two sides, a size to a line.
pub(super) fn improvements(group: &rates::Group) -> String {
    let aligns = [Align::Left, Align::Right, Align::Right, Align::Right, Align::Left];
    let mut table = Table::bare(&aligns);
    table.row(RATES);
    rows_of_rates(group).into_iter().for_each(|row| table.row(row));
    format!("\n{}\n{}", title(&group.tools), table.text())
}

/// Headings of the columns of [`rows_of_rates`].
pub(super) const RATES: [&str; 5] =
    ["bytes", "A frames/s", "B frames/s", "improvement %", "least to most %"];

/// The sizes of a group, and the means where there are several.
pub(super) fn rows_of_rates(group: &rates::Group) -> Vec<[String; 5]> {
    let mut rows = Vec::new();
    for row in &group.rows {
        let (improvement, why) = percent(&row.improvement);
        let mark = if row.is_apart { " *" } else { "" };
        let [a, b] = row.highest.each_ref().map(highest);
        rows.push([row.size.to_string(), a, b, improvement, range(row.range) + mark + why]);
    }
    for (name, mean) in means_of_rates(group) {
        let (improvement, why) = percent(&mean.improvement);
        rows.push([name, String::new(), String::new(), improvement, range(mean.range) + why]);
    }
    rows
}

/// Both means with their names; none of a single size.
pub(super) fn means_of_rates(group: &rates::Group) -> Vec<(String, &rates::Mean)> {
    if group.rows.len() < 2 {
        return Vec::new();
    }
    let named = |name: &str, mean: &rates::Mean| format!("{name} mean of {}", mean.sizes);
    let (first, second) = (&group.arithmetic, &group.geometric);
    vec![(named("arithmetic", first), first), (named("geometric", second), second)]
}

/// An improvement, and why there is none.
pub(super) fn percent(improvement: &Improvement) -> (String, &str) {
    match improvement {
        Improvement::Exactly { percent } => (format!("{percent:+.2}"), ""),
        Improvement::AtLeast { percent } => (format!(">= {percent:+.2}"), ""),
        Improvement::AtMost { percent } => (format!("<= {percent:+.2}"), ""),
        Improvement::Unavailable { why } => ("unavailable".to_owned(), why),
    }
}

pub(super) fn highest(highest: &Highest) -> String {
    match highest.found {
        HighestRate::Rate(rate) => whole(rate),
        HighestRate::AtLeast(rate) => format!(">= {}", whole(rate)),
        HighestRate::Below(rate) => format!("< {}", whole(rate)),
        HighestRate::Ended => "unavailable".to_owned(),
    }
}

pub(super) fn range(ends: [Option<f64>; 2]) -> String {
    match ends {
        [Some(low), Some(high)] => format!("{low:+.2} to {high:+.2}"),
        [Some(low), None] => format!("{low:+.2} or more"),
        [None, Some(high)] => format!("{high:+.2} or less"),
        [None, None] => String::new(),
    }
}

pub(super) fn notes_of_rates(groups: &[rates::Group]) -> Vec<String> {
    let mut notes = Vec::new();
    for row in groups.iter().flat_map(|group| &group.rows) {
        for (side, highest) in [Side::A, Side::B].into_iter().zip(&row.highest) {
            if highest.lost_below > 0 {
                notes.push(format!(
                    "{} bytes, {side}: runs that lost something at no higher rate: {}",
                    row.size, highest.lost_below
                ));
            }
        }
    }
    let how = "Improvements are 100 (B / A - 1) %. A highest rate is between the lowest one that was confirmed and the lowest\n\
               above it at which a run lost something; least and most follow from both ends, and are no confidence interval.\n\
               * marks where these ranges of A and B have nothing in common.";
    notes.push(how.to_owned());
    notes
}

/// All measures of a group.
pub(super) fn changes_of(group: &runs::Group) -> String {
    let measures = Measure::ALL.into_iter().enumerate();
    let tables = measures.map(|(at, measure)| table(group, at, measure));
    format!("\n{}\n{}", title(&group.tools), tables.collect::<String>())
}

/// One measure of a group, a point to a line.
pub(super) fn table(group: &runs::Group, at: usize, measure: Measure) -> String {
    if let Some(why) = untold(group, at, measure) {
        return why + "\n";
    }
    // Runs stand behind what they tell.
    let in_order =
        |[what, a, b, runs, change, interval]: [String; 6]| [what, a, b, change, runs, interval];
    let mut table = Table::bare(&[
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Left,
        Align::Left,
    ]);
    table.row(in_order(columns(measure)));
    rows_of_runs(group, at, measure).into_iter().for_each(|row| table.row(in_order(row)));
    table.text()
}

/// Why nothing can be told of a measure, if that is so.
pub(super) fn untold(group: &runs::Group, at: usize, measure: Measure) -> Option<String> {
    let is_untold = group.rows.iter().all(|row| row.compared[at].change.is_none());
    let why = group.rows.first().map_or("", |row| not_told(&row.compared[at]));
    is_untold.then(|| format!("{}: unavailable, {why}", words(measure).0))
}

/// Headings of the columns of [`rows_of_runs`].
pub(super) fn columns(measure: Measure) -> [String; 6] {
    let (what, unit) = words(measure);
    [what, "A", "B", "runs", unit, "at 95 % confidence"].map(str::to_owned)
}

/// The points of a group, and their mean where there are several.
pub(super) fn rows_of_runs(group: &runs::Group, at: usize, measure: Measure) -> Vec<[String; 6]> {
    let mut rows = Vec::new();
    for row in &group.rows {
        let Compared { repetitions: [a, b], values, change, .. } = &row.compared[at];
        let runs = format!("{a}, {b}");
        let [a, b] = values.map(|value| number(measure, value));
        let (change, interval) = changed(measure, change.as_ref());
        rows.push([label(&row.point), a, b, runs, change, interval]);
    }
    if let Some((name, mean)) = mean_of_runs(group, at, measure) {
        let (change, interval) = changed(measure, mean.change.as_ref());
        let none = String::new;
        rows.push([name, none(), none(), none(), change, interval]);
    }
    rows
}

/// The mean with its name; none of a single point.
pub(super) fn mean_of_runs(
    group: &runs::Group,
    at: usize,
    measure: Measure,
) -> Option<(String, &runs::Mean)> {
    let mean = &group.means[at];
    let kind = if measure.is_ratio() { "geometric mean" } else { "mean" };
    (group.rows.len() > 1).then(|| (format!("{kind} of {}", mean.points), mean))
}

pub(super) const fn words(measure: Measure) -> (&'static str, &'static str) {
    match measure {
        Measure::Loss => ("loss %", "points"),
        Measure::Cpu => ("CPU ns/packet", "change %"),
        Measure::Memory => ("peak memory MB", "change %"),
        Measure::Polls => ("polls/packet", "change %"),
    }
}

pub(super) const fn not_told(compared: &Compared) -> &'static str {
    match compared.repetitions {
        [0, 0] => "neither A nor B tells",
        [0, _] => "A does not tell",
        _ => "B does not tell",
    }
}

/// A point without its tool.
pub(super) fn label(point: &Shared) -> String {
    let Shared { load, settings } = point;
    let rate = load.rate.map_or("top".to_owned(), |rate| format!("{}/s", whole(rate)));
    let rest: String = settings.iter().map(setting).collect();
    format!("{} bytes, {rate}, {} s{rest}", load.size, load.time.as_secs_f64())
}

pub(super) fn number(measure: Measure, value: Option<f64>) -> String {
    let Some(value) = value else { return "unavailable".to_owned() };
    match measure {
        Measure::Loss => format!("{:.3}", value * 100.0),
        Measure::Cpu => format!("{value:.1}"),
        Measure::Memory => format!("{:.1}", value / 1e6),
        Measure::Polls => format!("{value:.2e}"),
    }
}

/// A change, and its interval.
pub(super) fn changed(measure: Measure, change: Option<&Change>) -> (String, String) {
    let Some(change) = change else { return ("unavailable".to_owned(), String::new()) };
    let interval = match (&change.interval, change.interval.ends()) {
        (Interval::Unavailable { why }, _) => format!("unavailable: {why}"),
        (_, None) => String::new(),
        (interval, Some(ends)) => {
            let mark = if change.is_significant { " *" } else { "" };
            let how = if interval.is_of_spread() { "" } else { " (rule of three)" };
            format!("{}{mark}{how}", between(measure, ends))
        }
    };
    (shown(measure, change.value), interval)
}

pub(super) fn between(measure: Measure, ends: [f64; 2]) -> String {
    ends.map(|end| shown(measure, end)).join(" to ")
}

/// A change in percent, or in percentage points.
pub(super) fn shown(measure: Measure, value: f64) -> String {
    if measure.is_ratio() {
        return format!("{:+.2}", (value - 1.0) * 100.0);
    }
    let points = value * 100.0;
    // What is next to nothing is not shown as nothing.
    let is_small = points != 0.0 && points.abs() < 0.001;
    if is_small { format!("{points:+.1e}") } else { format!("{points:+.3}") }
}

pub(super) fn notes_of_runs(
    groups: &[runs::Group],
    intervals: usize,
    significant: usize,
) -> Vec<String> {
    let mut notes = Vec::new();
    let rows = || groups.iter().flat_map(|group| &group.rows);
    for Row { point, reached, .. } in rows() {
        if let [Some(a), Some(b)] = *reached
            && (a - b).abs() > MOST_APART * a.max(b)
        {
            let (a, b) = (whole(a), whole(b));
            notes.push(format!("{}: {a} frames/s were sent in A, {b} in B", label(point)));
        }
    }
    let sum = |of: fn(&Row) -> [usize; 2]| {
        rows().map(of).fold([0; 2], |[a, b], [more_a, more_b]| [a + more_a, b + more_b])
    };
    let [[used_a, used_b], [faulty_a, faulty_b], [bursts_a, bursts_b]] =
        [sum(|row| row.runs), sum(|row| row.faulty), sum(|row| row.bursts)];
    if faulty_a + faulty_b > 0 {
        let said =
            format!("Not used since they prove nothing: {faulty_a} runs of A, {faulty_b} of B");
        notes.push(said);
    }
    if bursts_a + bursts_b > 0 {
        notes.push(format!(
            "Of bursts, which rings hold much of: {bursts_a} of {used_a} runs of A, {bursts_b} of {used_b} of B"
        ));
    }
    notes.push(chance(intervals, significant));
    let how = "points: B - A; change %: 100 (B / A - 1), of geometric means. Intervals are Welch's, or where nothing was lost\n\
               the rule of three; those of means are for these very points.";
    notes.push(how.to_owned());
    notes
}

/// How many changes would seem to be some where there are none.
pub(super) fn chance(intervals: usize, significant: usize) -> String {
    if intervals == 0 {
        return "No point has an interval from its spread: that needs two repetitions of each side or more, that differ."
            .to_owned();
    }
    let by_chance = intervals as f64 * 0.05;
    format!(
        "Of {intervals} intervals of points from their spread, {significant} do not have what is no change (*); where \
         nothing changed at all,\nabout {by_chance:.1} would not, by chance."
    )
}
