//! What a certificate says, as sections of its page.

use super::{Certified, Repeated, Statement};
use crate::report::number::{exact, whole};
use crate::report::sections::{NOTE_ON_FAULTS, RUN_COLUMNS, counts_for};
use crate::report::{Axis, Bars, Chart, Part, Plot, Section, Table, Value};
use crate::search::HighestRate;
use crate::trial::reasons;

/// Bars at most: more cannot be told apart.
const MOST_BARS: usize = 42;

/// Bits of preamble, start delimiter and gap around each frame (IEEE 802.3).
const AROUND: f64 = 20.0 * 8.0;

/// Sections about what is certified, what is not, and runs that proved nothing.
#[must_use]
pub(super) fn of(statement: &Statement) -> Vec<Section> {
    let rates = Section {
        title: "Certified rates".to_owned(),
        parts: vec![Part::Plot(rates(statement)), Part::Table(table(&statement.sizes))],
    };
    let without = statement.sizes.iter().filter(|size| size.rate().is_none());
    let without: Vec<_> = without.map(|size| vec![exact(size.size.into()), why(size)]).collect();
    let mut sections = vec![rates];
    if !without.is_empty() {
        let table = columns(&[("bytes", true), ("why not", false)], without, None);
        let title = "Sizes that are not certified".to_owned();
        sections.push(Section { title, parts: vec![Part::Table(table)] });
    }
    let part = repeated(&statement.sizes);
    sections.push(Section { title: "Runs that missed a condition".to_owned(), parts: vec![part] });
    sections
}

fn columns(names: &[(&str, bool)], rows: Vec<Vec<String>>, note: Option<&str>) -> Table {
    let columns = names.iter().map(|(name, is_number)| ((*name).to_owned(), *is_number));
    Table { columns: columns.collect(), rows, note: note.map(str::to_owned) }
}

fn rates(statement: &Statement) -> Plot {
    let value = |certified: &Certified| match (certified.rate(), certified.found) {
        (Some(rate), HighestRate::AtLeast(_)) => Value::AtLeast(rate),
        (Some(rate), _) => Value::Exactly(rate),
        (None, _) => Value::Unknown,
    };
    let sizes = || statement.sizes.iter().take(MOST_BARS);
    let names = sizes().map(|certified| exact(certified.size.into())).collect();
    let tool = statement.configuration.tool.name.clone();
    let bars = Bars {
        y: Axis::new("frames a second"),
        groups: ("bytes of a frame".to_owned(), names),
        series: vec![(tool, sizes().map(value).collect())],
    };
    let caption = "Each rate was confirmed by long runs in which all that was sent was captured. \u{2265} is the sender's \
                   limit: the capture may do more. Where there is a question mark nothing is certified.";
    Plot::new("Certified rates without loss, by size of frames", caption, Chart::Bars(bars))
        .without(statement.sizes.len().saturating_sub(MOST_BARS), "more sizes, which the table has")
}

fn table(sizes: &[Certified]) -> Table {
    const NOTE: &str = "A rate without loss: all that was sent was captured, and nobody says that anything was dropped. Highest \
                        found: above it runs lost something. At least: the sender cannot do more. Mbit/s with preamble and \
                        gaps. If none of n frames was lost, then with 95 % confidence a smaller share than 3/n is (the rule \
                        of three, for frames that are lost independently of each other).";
    let row = |certified: &Certified| {
        let runs = [exact(certified.confirmations as u64), exact(certified.runs as u64)];
        let dash = || "-".to_owned();
        let Some(rate) = certified.rate() else {
            let without = [dash(), "not certified".to_owned(), dash(), dash(), dash(), dash()];
            return [&[exact(certified.size.into())], &without[..], &runs].concat();
        };
        let is = match certified.found {
            HighestRate::AtLeast(_) => "at least",
            _ => "highest found",
        };
        let below = certified.loss_below.map_or_else(dash, |below| {
            format!("{below:.1e} ({:.0} %)", certified.confidence * 100.0)
        });
        let found = [
            exact(certified.size.into()),
            whole(rate),
            is.to_owned(),
            whole(rate * (f64::from(certified.size) * 8.0 + AROUND) / 1e6),
            exact(certified.sent),
            exact(certified.captured),
            below,
        ];
        [&found[..], &runs].concat()
    };
    let names = [
        ("bytes", true),
        ("frames/s", true),
        ("is", false),
        ("Mbit/s", true),
        ("frames sent", true),
        ("captured", true),
        ("loss below", true),
        ("runs that confirm", true),
        ("all runs", true),
    ];
    columns(&names, sizes.iter().map(row).collect(), Some(NOTE))
}

fn why(certified: &Certified) -> String {
    let why = certified.not_certified.as_deref().unwrap_or("no rate was found");
    match certified.found {
        HighestRate::Below(rate) => format!("{why}: {} frames/s", whole(rate)),
        _ => why.to_owned(),
    }
}

fn repeated(sizes: &[Certified]) -> Part {
    let row = |(size, run): (u32, &Repeated)| {
        vec![
            exact(size.into()),
            run.purpose.words().to_owned(),
            run.asked.map_or("full speed".to_owned(), whole),
            run.reached.map_or("-".to_owned(), whole),
            exact(run.sent),
            run.captured.map_or("-".to_owned(), exact),
            reasons(&run.faults, run.failure.as_deref()),
            counts_for(run.counts_at_reached).to_owned(),
        ]
    };
    let runs = sizes.iter().flat_map(|size| size.repeated.iter().map(|run| (size.size, run)));
    let rows: Vec<_> = runs.map(row).collect();
    if rows.is_empty() {
        return Part::Text("There were none.".to_owned());
    }
    let names: Vec<_> = [("bytes", true)].into_iter().chain(RUN_COLUMNS).collect();
    Part::Table(columns(&names, rows, Some(NOTE_ON_FAULTS)))
}
