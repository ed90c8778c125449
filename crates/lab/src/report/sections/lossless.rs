//! The highest rates without loss.

use crate::lossless::Cell;
use crate::report::{Axis, Chart, Dot, Part, Plot, Section, Series, Table};
use crate::search::{Found, Purpose};

/// Sections about searches.
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
    vec![rates, runs]
}

const fn rate_of(found: Found) -> Option<f64> {
    match found {
        Found::Rate(rate) | Found::AtLeast(rate) => Some(rate),
        Found::Below(_) | Found::Ended => None,
    }
}

fn found(cells: &[Cell], tools: &[&str]) -> Plot {
    let of = |tool: &str| {
        let mut dots: Vec<_> = cells
            .iter()
            .filter(|cell| cell.tool == tool)
            .filter_map(|cell| {
                let y = rate_of(cell.found)?;
                Some(Dot { x: f64::from(cell.size), y, range: None })
            })
            .collect();
        dots.sort_by(|one, other| one.x.total_cmp(&other.x));
        Series { name: tool.to_owned(), dots, is_line: true }
    };
    Plot {
        title: "Highest rate without loss, by size of frames".to_owned(),
        caption: "Each point was confirmed by three long runs that lost nothing. Where the sender can do no more, the \
                  table says at least."
            .to_owned(),
        chart: Chart::Curves {
            x: Axis { label: "bytes of a frame".to_owned(), is_share: false },
            y: Axis { label: "frames a second".to_owned(), is_share: false },
            series: tools.iter().map(|tool| of(tool)).collect(),
            marks: Vec::new(),
            has_diagonal: false,
        },
    }
}

/// Bits of preamble, start delimiter and gap around each frame (IEEE 802.3).
const AROUND: f64 = 20.0 * 8.0;

fn table(cells: &[Cell]) -> Table {
    let columns =
        ["tool", "bytes", "frames/s", "Mbit/s", "frames, none lost", "loss below (95 %)", "runs"];
    let row = |cell: &Cell| {
        let rate = match cell.found {
            Found::Rate(rate) => format!("{rate:.0}"),
            Found::AtLeast(rate) => format!("\u{2265} {rate:.0}"),
            Found::Below(rate) => format!("< {rate:.0}"),
            Found::Ended => cell.ended.clone().unwrap_or_else(|| "unavailable".to_owned()),
        };
        let bits =
            rate_of(cell.found).map(|rate| rate * (f64::from(cell.size) * 8.0 + AROUND) / 1e6);
        let below = cell.loss_below.map_or("-".to_owned(), |loss| format!("{loss:.1e}"));
        let (size, runs) = (cell.size.to_string(), cell.steps.len().to_string());
        vec![
            cell.tool.clone(),
            size,
            rate,
            super::whole(bits),
            cell.confirmed.to_string(),
            below,
            runs,
        ]
    };
    Table {
        columns: columns.iter().map(|name| ((*name).to_owned(), *name != "tool")).collect(),
        rows: cells.iter().map(row).collect(),
        note: Some(
            "Nothing is lost where all that was sent was captured and nobody says that anything was dropped. \u{2265}: the \
             sender's limit. <: at the lowest rate that was tried something was lost. Mbit/s with preamble and gaps."
                .to_owned(),
        ),
    }
}

fn every(cells: &[Cell], tool: &str) -> Plot {
    let of = |cell: &Cell| {
        let dots = cell.steps.iter().filter(|step| {
            step.trial.is_valid()
                || (step.purpose != Purpose::Confirm && step.trial.is_true_at_reached())
        });
        let dot = |x: Option<f64>, y: Option<f64>| Some(Dot { x: x?, y: y?, range: None });
        let dots = dots.filter_map(|step| dot(step.trial.reached, step.trial.loss())).collect();
        Series { name: format!("{} bytes", cell.size), dots, is_line: false }
    };
    let of_tool = cells.iter().filter(|cell| cell.tool == tool);
    Plot {
        title: format!("Losses of {tool} in every run that proves something"),
        caption: "One point is one run. Runs at a rate that only some lost something at met a disturbance of the machine."
            .to_owned(),
        chart: Chart::Curves {
            x: Axis { label: "frames a second".to_owned(), is_share: false },
            y: Axis { label: "lost, of what was sent".to_owned(), is_share: true },
            series: of_tool.map(of).collect(),
            marks: Vec::new(),
            has_diagonal: false,
        },
    }
}
