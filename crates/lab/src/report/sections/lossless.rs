//! The highest rates without loss.

use super::unproven::unproven;
use crate::report::number::{exact, whole};
use crate::report::{Axis, Bars, Chart, Dot, Part, Plot, Section, Series, Table, Value};
use crate::search::HighestRate;
use crate::search::lossless::{Cell, Step};
use crate::trial::Limit;

/// Bars in one plot: more are lines.
const MOST_BARS: usize = 42;

/// The sections of a report on searches for the highest rate without loss.
#[must_use]
pub fn lossless(cells: &[Cell]) -> Vec<Section> {
    let mut tools: Vec<_> = cells.iter().map(|cell| cell.tool.as_str()).collect();
    tools.dedup();
    tools.sort_unstable();
    tools.dedup();
    let rates = Section {
        title: "Highest rates without loss".to_owned(),
        parts: vec![Part::Plot(found(cells, &tools)), Part::Table(table(cells))],
    };
    let runs = Section {
        title: "Every run".to_owned(),
        parts: tools.iter().map(|tool| Part::Plot(every(cells, tool))).collect(),
    };
    let steps = cells.iter().flat_map(|cell| cell.steps.iter().map(move |step| (cell, step)));
    let named = steps.map(|(cell, step)| {
        let what = format!("{}, {} bytes, {}", cell.tool, cell.size, step.purpose.words());
        (what, &step.trial, step.is_proof())
    });
    [rates, runs].into_iter().chain(unproven(named)).collect()
}

const fn rate_of(found: HighestRate) -> Option<f64> {
    match found {
        HighestRate::Rate(rate) | HighestRate::AtLeast(rate) => Some(rate),
        HighestRate::Below(_) | HighestRate::Ended => None,
    }
}

fn found(cells: &[Cell], tools: &[&str]) -> Plot {
    const CAPTION: &str = "Each rate was confirmed by long runs that lost nothing, or as little as is tolerated. \u{2265} is \
                           the sender's limit, \u{2264} the lowest rate that was tried, at which something was lost.";
    let mut sizes: Vec<_> = cells.iter().map(|cell| cell.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let y = Axis::new("frames a second");
    let title = "Highest rate without loss, by size of frames";
    if sizes.len() * tools.len() <= MOST_BARS {
        return Plot::new(title, CAPTION, Chart::Bars(bars(y, cells, tools, &sizes)));
    }
    let of = |tool: &str| {
        let of_tool = cells.iter().filter(|cell| cell.tool == tool);
        let mut dots: Vec<_> = of_tool
            .filter_map(|cell| {
                let y = rate_of(cell.found)?;
                Some(Dot { x: f64::from(cell.size), y, range: None })
            })
            .collect();
        dots.sort_by(|one, other| one.x.total_cmp(&other.x));
        Series { name: tool.to_owned(), dots, is_line: true }
    };
    let without = cells.iter().filter(|cell| rate_of(cell.found).is_none()).count();
    let chart = Chart::Curves {
        x: Axis::new("bytes of a frame"),
        y,
        series: tools.iter().map(|tool| of(tool)).collect(),
        marks: Vec::new(),
        has_diagonal: false,
    };
    Plot::new(title, CAPTION, chart).without(without, "searches that found no rate without loss")
}

fn bars(y: Axis, cells: &[Cell], tools: &[&str], sizes: &[u32]) -> Bars {
    let value = |tool: &str, size: u32| {
        let cell = cells.iter().find(|cell| cell.tool == tool && cell.size == size);
        cell.map_or(Value::Unknown, |cell| match cell.found {
            HighestRate::Rate(rate) => Value::Exactly(rate),
            HighestRate::AtLeast(rate) => Value::AtLeast(rate),
            HighestRate::Below(rate) => Value::AtMost(rate),
            HighestRate::Ended => Value::Unknown,
        })
    };
    let series = tools.iter().map(|tool| {
        let values = sizes.iter().map(|size| value(tool, *size)).collect();
        ((*tool).to_owned(), values)
    });
    let names = sizes.iter().map(|size| exact((*size).into())).collect();
    Bars { y, groups: ("bytes of a frame".to_owned(), names), series: series.collect() }
}

/// Bits of preamble, start delimiter and gap around each frame (IEEE 802.3).
const AROUND: f64 = 20.0 * 8.0;

fn table(cells: &[Cell]) -> Table {
    let columns = [
        "tool",
        "bytes",
        "frames/s",
        "Mbit/s",
        "frames, none lost",
        "loss below (95 %)",
        "limited by",
        "runs",
    ];
    let row = |cell: &Cell| {
        let rate = match cell.found {
            HighestRate::Rate(rate) => whole(rate),
            HighestRate::AtLeast(rate) => format!("\u{2265} {}", whole(rate)),
            HighestRate::Below(rate) => format!("< {}", whole(rate)),
            HighestRate::Ended => cell.ended.clone().unwrap_or_else(|| "unavailable".to_owned()),
        };
        let bits =
            rate_of(cell.found).map(|rate| rate * (f64::from(cell.size) * 8.0 + AROUND) / 1e6);
        let below = cell.loss_below.map_or("-".to_owned(), |loss| format!("{loss:.1e}"));
        let limit = cell.limit().map_or("-", Limit::words).to_owned();
        let (size, runs) = (cell.size.to_string(), cell.steps.len().to_string());
        vec![
            cell.tool.clone(),
            size,
            rate,
            super::whole(bits),
            exact(cell.confirmed),
            below,
            limit,
            runs,
        ]
    };
    Table {
        columns: columns
            .iter()
            .map(|name| ((*name).to_owned(), !["tool", "limited by"].contains(name)))
            .collect(),
        rows: cells.iter().map(row).collect(),
        note: Some(
            "Nothing is lost where all that was sent was captured and nobody says that anything was dropped. \u{2265}: the \
             sender's limit. <: at the lowest rate that was tried something was lost. Mbit/s with preamble and gaps. limited by: \
             what was in the way of the slowest run that lost something."
                .to_owned(),
        ),
    }
}

fn every(cells: &[Cell], tool: &str) -> Plot {
    let proves = |step: &&Step| step.is_proof();
    let of = |cell: &Cell| {
        let unknown = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let dots = cell.steps.iter().filter(proves).map(|step| Dot {
            x: unknown(step.trial.reached),
            y: unknown(step.trial.loss()),
            range: None,
        });
        let name = format!("{} bytes", cell.size);
        Series { name, dots: dots.collect(), is_line: false }
    };
    let of_tool = || cells.iter().filter(|cell| cell.tool == tool);
    let steps = of_tool().flat_map(|cell| &cell.steps);
    let without = steps.filter(|step| !proves(step)).count();
    let chart = Chart::Curves {
        x: Axis::new("frames a second"),
        y: Axis::share("lost, of what was sent"),
        series: of_tool().map(of).collect(),
        marks: Vec::new(),
        has_diagonal: false,
    };
    let caption = "One point is one run. Runs at a rate that only some lost something at met a disturbance of the machine.";
    let title = format!("Losses of {tool} in every run that proves something");
    Plot::new(title, caption, chart).without(without, "runs that prove nothing")
}
