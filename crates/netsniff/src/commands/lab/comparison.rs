//! A comparison as text.

use std::fmt::Write as _;

use netsniff_lab::compare::interval::Interval;
use netsniff_lab::compare::rates::{self, Highest, Improvement};
use netsniff_lab::compare::runs::{self, Change, Compared, Measure, Row, Shared};
use netsniff_lab::compare::{LeftOut, Side};
use netsniff_lab::search::Found;
use netsniff_lab::tools::Setting;

use super::compare::{Changes, Comparison, Named};
use super::table::whole;

/// By what part the rates of two senders may differ before their losses are of different loads.
const MOST_APART: f64 = 0.01;

/// All of it, or the tables alone.
pub(super) fn text(comparison: &Comparison, tables_alone: bool) -> String {
    let text = written(comparison, tables_alone);
    // Names from a file must not steer the terminal.
    text.replace(|letter: char| letter.is_control() && letter != '\n', "\u{fffd}")
}

fn written(comparison: &Comparison, tables_alone: bool) -> String {
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
    let (left_out, notes) = match changes {
        Changes::Lossless { groups, left_out } => {
            let bytes = |size: &u32| format!("{size} bytes");
            (lines(left_out, bytes), notes_of_rates(groups))
        }
        Changes::Sweep { groups, left_out, intervals, significant } => {
            (lines(left_out, label), notes_of_runs(groups, *intervals, *significant))
        }
    };
    if !left_out.is_empty() {
        text += &format!("\nLeft out:\n{left_out}");
    }
    if !tables.is_empty() {
        text += &format!("\n{notes}");
    }
    text
}

fn named(side: &Named) -> String {
    let Named { directory, selection, .. } = side;
    let tool = selection.tool.iter().map(|tool| format!(", {tool}"));
    let rest = selection.settings.iter().map(setting);
    format!("{directory}{}", tool.chain(rest).collect::<String>())
}

fn setting(Setting { name, value }: &Setting) -> String {
    format!(", {name} {value}")
}

fn lines<P>(left_out: &[LeftOut<P>], label: impl Fn(&P) -> String) -> String {
    let line =
        |it: &LeftOut<P>| format!("  {}: {}, {}: {}\n", it.side, it.tool, label(&it.point), it.why);
    left_out.iter().map(line).collect()
}

/// The name of a group.
fn title([a, b]: &[String; 2]) -> String {
    if a == b { format!("\n{a}\n") } else { format!("\nfrom {a} to {b}\n") }
}

/// The highest rates of two sides, a size to a line.
fn improvements(group: &rates::Group) -> String {
    let mut text = title(&group.tools);
    let mut line = |what: &str, [a, b]: [&str; 2], improvement: &str, range: &str| {
        // A String takes everything.
        let _ = writeln!(text, "{what:<26} {a:>14} {b:>14} {improvement:>14}  {range}");
    };
    line("bytes", ["A frames/s", "B frames/s"], "improvement %", "least to most %");
    for row in &group.rows {
        let (improvement, why) = percent(&row.improvement);
        let mark = if row.is_apart { " *" } else { "" };
        let [a, b] = row.highest.each_ref().map(highest);
        line(&row.size.to_string(), [&a, &b], &improvement, &(range(row.range) + mark + why));
    }
    if group.rows.len() < 2 {
        return text;
    }
    for (name, mean) in [("arithmetic", &group.arithmetic), ("geometric", &group.geometric)] {
        let (improvement, why) = percent(&mean.improvement);
        let name = format!("{name} mean of {}", mean.sizes);
        line(&name, ["", ""], &improvement, &(range(mean.range) + why));
    }
    text
}

/// An improvement, and why there is none.
fn percent(improvement: &Improvement) -> (String, &str) {
    match improvement {
        Improvement::Exactly { percent } => (format!("{percent:+.2}"), ""),
        Improvement::AtLeast { percent } => (format!(">= {percent:+.2}"), ""),
        Improvement::AtMost { percent } => (format!("<= {percent:+.2}"), ""),
        Improvement::Unavailable { why } => ("unavailable".to_owned(), why),
    }
}

fn highest(highest: &Highest) -> String {
    match highest.found {
        Found::Rate(rate) => whole(rate),
        Found::AtLeast(rate) => format!(">= {}", whole(rate)),
        Found::Below(rate) => format!("< {}", whole(rate)),
        Found::Ended => "unavailable".to_owned(),
    }
}

fn range(ends: [Option<f64>; 2]) -> String {
    match ends {
        [Some(low), Some(high)] => format!("{low:+.2} to {high:+.2}"),
        [Some(low), None] => format!("{low:+.2} or more"),
        [None, Some(high)] => format!("{high:+.2} or less"),
        [None, None] => String::new(),
    }
}

fn notes_of_rates(groups: &[rates::Group]) -> String {
    let mut text = String::new();
    for row in groups.iter().flat_map(|group| &group.rows) {
        for (side, highest) in [Side::A, Side::B].into_iter().zip(&row.highest) {
            if highest.lost_below > 0 {
                // A String takes everything.
                let _ = writeln!(
                    text,
                    "{} bytes, {side}: runs that lost something at no higher rate: {}",
                    row.size, highest.lost_below
                );
            }
        }
    }
    text + "Improvements are 100 (B / A - 1) %. A highest rate is between the lowest one that was confirmed and the lowest\n\
            above it at which a run lost something; least and most follow from both ends, and are no confidence interval.\n\
            * marks where these ranges of A and B have nothing in common.\n"
}

/// All measures of a group.
fn changes_of(group: &runs::Group) -> String {
    let measures = Measure::ALL.into_iter().enumerate();
    title(&group.tools)
        + &measures.map(|(at, measure)| table(group, at, measure)).collect::<String>()
}

/// One measure of a group, a point to a line.
fn table(group: &runs::Group, at: usize, measure: Measure) -> String {
    let (what, unit) = words(measure);
    if group.rows.iter().all(|row| row.compared[at].change.is_none()) {
        let why = group.rows.first().map_or("", |row| not_told(&row.compared[at]));
        return format!("{what}: unavailable, {why}\n");
    }
    let mut text = String::new();
    let mut line = |what: &str, values: [&str; 2], runs: &str, change: &str, interval: &str| {
        let [a, b] = values;
        // A String takes everything.
        let _ = writeln!(text, "{what:<44} {a:>12} {b:>12} {change:>11}  {runs:<4}  {interval}");
    };
    line(what, ["A", "B"], "runs", unit, "at 95 % confidence");
    for row in &group.rows {
        let Compared { repetitions: [a, b], values, change, .. } = &row.compared[at];
        let [first, second] = values.map(|value| number(measure, value));
        let (change, interval) = changed(measure, change.as_ref());
        line(&label(&row.point), [&first, &second], &format!("{a}, {b}"), &change, &interval);
    }
    if group.rows.len() > 1 {
        let mean = &group.means[at];
        let (change, interval) = changed(measure, mean.change.as_ref());
        let kind = if measure.is_ratio() { "geometric mean" } else { "mean" };
        line(&format!("{kind} of {}", mean.points), ["", ""], "", &change, &interval);
    }
    text
}

const fn words(measure: Measure) -> (&'static str, &'static str) {
    match measure {
        Measure::Loss => ("loss %", "points"),
        Measure::Cpu => ("CPU ns/packet", "change %"),
        Measure::Memory => ("peak memory MB", "change %"),
        Measure::Polls => ("polls/packet", "change %"),
    }
}

const fn not_told(compared: &Compared) -> &'static str {
    match compared.repetitions {
        [0, 0] => "neither A nor B tells",
        [0, _] => "A does not tell",
        _ => "B does not tell",
    }
}

/// A point without its tool.
fn label(point: &Shared) -> String {
    let Shared { load, settings } = point;
    let rate = load.rate.map_or("top".to_owned(), |rate| format!("{}/s", whole(rate)));
    let rest: String = settings.iter().map(setting).collect();
    format!("{} bytes, {rate}, {} s{rest}", load.size, load.time.as_secs_f64())
}

fn number(measure: Measure, value: Option<f64>) -> String {
    let Some(value) = value else { return "unavailable".to_owned() };
    match measure {
        Measure::Loss => format!("{:.3}", value * 100.0),
        Measure::Cpu => format!("{value:.1}"),
        Measure::Memory => format!("{:.1}", value / 1e6),
        Measure::Polls => format!("{value:.2e}"),
    }
}

/// A change, and its interval.
fn changed(measure: Measure, change: Option<&Change>) -> (String, String) {
    let Some(change) = change else { return ("unavailable".to_owned(), String::new()) };
    let show = |value: f64| {
        if measure.is_ratio() {
            return format!("{:+.2}", (value - 1.0) * 100.0);
        }
        let points = value * 100.0;
        // What is next to nothing is not shown as nothing.
        let is_small = points != 0.0 && points.abs() < 0.001;
        if is_small { format!("{points:+.1e}") } else { format!("{points:+.3}") }
    };
    let interval = match (&change.interval, change.interval.ends()) {
        (Interval::Unavailable { why }, _) => format!("unavailable: {why}"),
        (_, None) => String::new(),
        (interval, Some([low, high])) => {
            let mark = if change.is_significant { " *" } else { "" };
            let how = if interval.is_of_spread() { "" } else { " (rule of three)" };
            format!("{} to {}{mark}{how}", show(low), show(high))
        }
    };
    (show(change.value), interval)
}

fn notes_of_runs(groups: &[runs::Group], intervals: usize, significant: usize) -> String {
    let mut text = String::new();
    let rows = || groups.iter().flat_map(|group| &group.rows);
    for Row { point, reached, .. } in rows() {
        if let [Some(a), Some(b)] = *reached
            && (a - b).abs() > MOST_APART * a.max(b)
        {
            let (a, b) = (whole(a), whole(b));
            // A String takes everything.
            let _ = writeln!(text, "{}: {a} frames/s were sent in A, {b} in B", label(point));
        }
    }
    let sum = |of: fn(&Row) -> [usize; 2]| {
        rows().map(of).fold([0; 2], |[a, b], [more_a, more_b]| [a + more_a, b + more_b])
    };
    let [[used_a, used_b], [faulty_a, faulty_b], [bursts_a, bursts_b]] =
        [sum(|row| row.runs), sum(|row| row.faulty), sum(|row| row.bursts)];
    if faulty_a + faulty_b > 0 {
        text +=
            &format!("Not used since they prove nothing: {faulty_a} runs of A, {faulty_b} of B\n");
    }
    if bursts_a + bursts_b > 0 {
        text += &format!("Of bursts, which rings hold much of: {bursts_a} of {used_a} runs of A, ");
        text += &format!("{bursts_b} of {used_b} of B\n");
    }
    text += &chance(intervals, significant);
    text + "points: B - A; change %: 100 (B / A - 1), of geometric means. Intervals are Welch's, or where nothing was lost\n\
            the rule of three; those of means are for these very points.\n"
}

/// How many changes would seem to be some where there are none.
fn chance(intervals: usize, significant: usize) -> String {
    if intervals == 0 {
        return "No point has an interval from its spread: that needs two repetitions of each side or more, that differ.\n"
            .to_owned();
    }
    let by_chance = intervals as f64 * 0.05;
    format!(
        "Of {intervals} intervals of points from their spread, {significant} do not have what is no change (*); where \
         nothing changed at all,\nabout {by_chance:.1} would not, by chance.\n"
    )
}
