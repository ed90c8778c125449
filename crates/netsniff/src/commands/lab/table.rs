//! What was measured, as text and as CSV.

use std::fmt::Write as _;

use netsniff_lab::lossless::{Cell, Step};
use netsniff_lab::search::{Found, Purpose};
use netsniff_lab::tools::Tool;
use netsniff_lab::trial::Trial;

use crate::summary::number::exact;

/// Bits of preamble, start delimiter and gap around each frame (IEEE 802.3).
const AROUND: f64 = 20.0 * 8.0;

/// THE list of tools.
pub(super) fn tools(tools: &[Tool]) -> String {
    let mut text = String::new();
    for tool in tools {
        let missing = if tool.is_here() { "" } else { " (not installed)" };
        // A String takes everything.
        let _ = writeln!(text, "{:<16} {}{missing}", tool.name, tool.summary);
    }
    text
}

/// One run in a line.
pub(super) fn step(step: &Step) -> String {
    let Step { purpose, trial } = step;
    let what = match purpose {
        Purpose::Top => "full speed",
        Purpose::Steer => "steering",
        Purpose::Confirm => "confirming",
    };
    let rate = trial.reached.map_or("no rate".to_owned(), |rate| whole(rate) + " frames/s");
    let (tool, size) = (&trial.tool, trial.load.size);
    format!("{tool}, {size} bytes, {what}: {rate}, {}", came(trial))
}

fn came(trial: &Trial) -> String {
    let lost = lost(trial);
    if trial.is_valid() {
        return lost;
    }
    let faults: Vec<_> = trial.faults.iter().map(|fault| fault.words()).collect();
    format!("{lost}; {}", faults.join(", "))
}

fn lost(trial: &Trial) -> String {
    match trial.loss() {
        Some(_) if trial.is_lossless() => "nothing lost".to_owned(),
        Some(loss) => format!("{:.3} % lost", loss * 100.0),
        None => "loss unavailable".to_owned(),
    }
}

/// The highest rates, a line for each.
pub(super) fn cells(cells: &[Cell]) -> String {
    let mut text = format!(
        "{:<16} {:>5}  {:>14} {:>10}  {}\n",
        "tool", "bytes", "frames/s", "Mbit/s", "at 95 % confidence"
    );
    for cell in cells {
        let (rate, bits) = match cell.found {
            Found::Rate(rate) => (whole(rate), mbps(rate, cell.size)),
            Found::AtLeast(rate) => (format!(">= {}", whole(rate)), mbps(rate, cell.size)),
            Found::Below(rate) => (format!("< {}", whole(rate)), String::new()),
            Found::Ended => ("unavailable".to_owned(), String::new()),
        };
        let sure = match (&cell.ended, cell.loss_below) {
            (Some(why), _) => why.clone(),
            (None, Some(loss)) => {
                let frames = exact(cell.confirmed.into());
                format!("less than {loss:.1e} lost ({frames} frames, none lost)")
            }
            (None, None) => String::new(),
        };
        // A String takes everything.
        let _ = writeln!(text, "{:<16} {:>5}  {rate:>14} {bits:>10}  {sure}", cell.tool, cell.size);
    }
    text += "Rates without loss: all that was sent was captured. >= is the sender's limit. Mbit/s are on a wire,\n\
             preamble and gaps included.\n";
    text
}

fn mbps(rate: f64, size: u32) -> String {
    whole(rate * (f64::from(size) * 8.0 + AROUND) / 1e6)
}

fn whole(value: f64) -> String {
    exact(value.round() as i128)
}

/// Every run, a line for each; what is not known is empty.
pub(super) fn csv(cells: &[Cell]) -> String {
    let mut text = "tool,bytes,purpose,asked,seconds,reached,sent,arrived,captured,dropped,backlog_dropped,loss,stalls,\
                    slipped_ns,cpu_ns,memory_peak,memory_mean,ring_share,is_burst,faults\n"
        .to_owned();
    for Step { purpose, trial } in cells.iter().flat_map(|cell| &cell.steps) {
        let faults: Vec<_> = trial.faults.iter().map(|fault| format!("{fault:?}")).collect();
        let purpose = format!("{purpose:?}").to_lowercase();
        let columns = [
            trial.tool.clone(),
            trial.load.size.to_string(),
            purpose,
            known(trial.load.rate),
            trial.load.time.as_secs_f64().to_string(),
            known(trial.reached),
            trial.sent.to_string(),
            trial.arrived.to_string(),
            known(trial.counted.captured),
            known(trial.counted.dropped),
            trial.backlog_dropped.to_string(),
            known(trial.loss()),
            trial.stalls.to_string(),
            trial.slipped_ns.to_string(),
            trial.cpu_ns.to_string(),
            trial.memory_peak.to_string(),
            trial.memory_mean.to_string(),
            known(trial.ring_share),
            trial.is_burst.to_string(),
            faults.join(" "),
        ];
        text += &columns.join(",");
        text.push('\n');
    }
    text
}

fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
