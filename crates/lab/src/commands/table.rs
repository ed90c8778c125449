//! What was measured, as text.

use netsniff_console::number::exact;
use netsniff_console::terminal::table::{Align, Table};

use crate::search::lossless::{Cell, Step};
use crate::search::median::median;
use crate::search::sweep::{Point, Run};
use crate::search::{HighestRate, Purpose};
use crate::tools::{Setting, Tool};
use crate::trial::{Limit, Trial};

/// Bits of preamble, start delimiter and gap around each frame (IEEE 802.3).
const AROUND: f64 = 20.0 * 8.0;

/// THE list of tools.
pub(super) fn tools(tools: &[Tool]) -> String {
    let mut table = Table::bare(&[Align::Left; 2]);
    for tool in tools {
        let missing = if tool.is_here() { "" } else { " (not installed)" };
        table.row([tool.name.to_owned(), format!("{}{missing}", tool.summary)]);
    }
    table.text()
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

/// What a run lost, and why it proves nothing.
pub(super) fn came(trial: &Trial) -> String {
    let lost = lost(trial) + &planted(trial);
    if trial.is_valid() {
        return lost;
    }
    format!("{lost}; {}", trial.reasons())
}

fn lost(trial: &Trial) -> String {
    match trial.loss() {
        Some(_) if trial.is_lossless() => "nothing lost".to_owned(),
        Some(loss) => {
            let limit =
                trial.limit.map_or_else(String::new, |limit| format!(" ({})", limit.words()));
            format!("{:.3} % lost{limit}", loss * 100.0)
        }
        None => "loss unavailable".to_owned(),
    }
}

fn planted(trial: &Trial) -> String {
    trial.planted.map_or_else(String::new, |planted| {
        let of = [planted.before, planted.at, planted.behind].map(|lost| exact(lost.into()));
        let [before, at, behind] = of;
        format!("; planted: {before} before, {at} at, {behind} behind the tap")
    })
}

/// The highest rates, a line for each.
pub(super) fn cells(cells: &[Cell]) -> String {
    let mut table = Table::new(&[
        ("tool", Align::Left),
        ("bytes", Align::Right),
        ("frames/s", Align::Right),
        ("Mbit/s", Align::Right),
        ("limited by", Align::Left),
        ("at 95 % confidence", Align::Left),
    ]);
    for cell in cells {
        let (rate, bits) = match cell.found {
            HighestRate::Rate(rate) => (whole(rate), mbps(rate, cell.size)),
            HighestRate::AtLeast(rate) => (format!(">= {}", whole(rate)), mbps(rate, cell.size)),
            HighestRate::Below(rate) => (format!("< {}", whole(rate)), String::new()),
            HighestRate::Ended => ("unavailable".to_owned(), String::new()),
        };
        let sure = match (&cell.ended, cell.loss_below) {
            (Some(why), _) => why.clone(),
            (None, Some(loss)) => {
                let frames = exact(cell.confirmed.into());
                format!("less than {loss:.1e} lost ({frames} frames, none lost)")
            }
            (None, None) if cell.tolerated > 0.0 && cell.confirmed > 0 => {
                format!("at most {} % lost", cell.tolerated * 100.0)
            }
            (None, None) => String::new(),
        };
        let limit = cell.limit().map_or("-", Limit::words).to_owned();
        table.row([cell.tool.clone(), cell.size.to_string(), rate, bits, limit, sure]);
    }
    let mut text = table.text();
    text += "Rates without loss, or with as little as is tolerated: what was sent was captured. >= is the sender's limit.\n\
             Mbit/s are on a wire, preamble and gaps included.\n";
    text
}

/// Megabits a second on a wire of frames of a size.
pub(super) fn mbps(rate: f64, size: u32) -> String {
    whole(rate * (f64::from(size) * 8.0 + AROUND) / 1e6)
}

/// A number of whole things.
pub(super) fn whole(value: f64) -> String {
    exact(value.round() as i128)
}

/// A run in a line.
pub(super) fn trial(trial: &Trial) -> String {
    let rate = trial.reached.map_or("no rate".to_owned(), |rate| whole(rate) + " frames/s");
    format!("{} bytes: {rate}, {}", trial.load.size, came(trial))
}

/// A run of a sweep in a line.
pub(super) fn run(run: &Run) -> String {
    let Run { point, trial } = run;
    let rate = trial.reached.map_or("no rate".to_owned(), |rate| whole(rate) + " frames/s");
    format!("{}, {} bytes{}: {rate}, {}", point.tool, point.load.size, settings(point), came(trial))
}

fn settings(point: &Point) -> String {
    let all = [&point.settings, &point.load.options, &point.host].into_iter().flatten();
    all.map(|Setting { name, value }| format!(", {name} {value}")).collect()
}

/// The column of what was lost on purpose, which only a tap has.
const PLANTED: &str = "planted %";

/// The columns of a sweep.
const POINTS: [(&str, Align); 10] = [
    ("tool, bytes, options", Align::Left),
    ("frames/s", Align::Right),
    (PLANTED, Align::Right),
    ("loss %", Align::Right),
    ("kernel %", Align::Right),
    ("appl. %", Align::Right),
    ("CPU %", Align::Right),
    ("MB", Align::Right),
    ("runs", Align::Left),
    ("limited by", Align::Left),
];

/// Every combination in a line: medians of its repetitions that prove something.
pub(super) fn points(points: &[Point], runs: &[Run]) -> String {
    // Without a tap nothing is planted anywhere.
    let has_tap = runs.iter().any(|run| run.trial.planted.is_some());
    let wanted = |column: &(&str, Align)| has_tap || column.0 != PLANTED;
    let columns: Vec<_> = POINTS.into_iter().filter(wanted).collect();
    let mut table = Table::new(&columns);
    // Where all runs take as long, that tells nothing.
    let has_times = points.windows(2).any(|pair| pair[0].load.time != pair[1].load.time);
    for point in points.iter().filter(|point| point.repetition == 0) {
        table.row(point_row(point, runs, has_tap, has_times));
    }
    let mut text = table.text();
    text += "Medians of the runs that prove something, of all runs. loss: of what was sent; kernel: before the interface had it, of\n\
             what was sent; appl.: dropped at the socket, of what came there. CPU: of the tool's threads. MB: most resident memory. limited by:\n\
             what was in the way where something was lost.\n";
    text += &bursts(runs);
    if has_tap {
        text += "planted: lost on purpose, of what was sent; no other loss has it in it.\n";
    }
    text
}

/// A combination in a line; what was planted and how long it took only where that tells something.
fn point_row(point: &Point, runs: &[Run], has_tap: bool, has_times: bool) -> Vec<String> {
    let of = |run: &&Run| Point { repetition: 0, ..run.point.clone() } == *point;
    let all: Vec<&Trial> = runs.iter().filter(of).map(|run| &run.trial).collect();
    let valid: Vec<&Trial> = all.iter().copied().filter(|trial| trial.is_valid()).collect();
    let middle = |value: fn(&Trial) -> Option<f64>| {
        median(valid.iter().filter_map(|trial| value(trial)).collect())
    };
    let percent =
        |value: Option<f64>| value.map_or("-".to_owned(), |share| format!("{:.3}", share * 100.0));
    let seconds = point.load.time.as_secs_f64();
    let time = if has_times { format!(", {seconds} s") } else { String::new() };
    let what = format!("{}, {}{}{time}", point.tool, point.load.size, settings(point));
    // Where no run proves anything, the rate is the one that was asked for.
    let rate = middle(|trial| trial.reached).or(point.load.rate);
    let rate = rate.map_or("top".to_owned(), whole);
    let cpu = middle(cpu).map_or("-".to_owned(), |share| format!("{:.0}", share * 100.0));
    let memory = middle(|trial| Some(trial.memory_peak as f64 / 1e6));
    let memory = memory.map_or("-".to_owned(), |mb| format!("{mb:.1}"));
    let [loss, kernel, application] =
        [middle(Trial::loss), middle(Trial::kernel_loss), middle(Trial::application_loss)]
            .map(percent);
    let planted = percent(middle(Trial::planted_loss));
    // Of those that failed it may be known, too.
    let limit = [&valid, &all].into_iter().find_map(|of| Limit::usual(of.iter().copied()));
    let limit = limit.map_or("-", Limit::words).to_owned();
    let runs = format!("{} of {}", valid.len(), all.len());
    let mut row = vec![what, rate];
    row.extend(has_tap.then_some(planted));
    row.extend([loss, kernel, application, cpu, memory, runs, limit]);
    row
}

/// A share of the frames that a ring holds which is worth telling.
const WORTH: f64 = 0.01;

/// What tells of bursts: runs that were short, or of which the ring holds much.
fn bursts(runs: &[Run]) -> String {
    let valid = || runs.iter().map(|run| &run.trial).filter(|trial| trial.is_valid());
    let bursts = valid().filter(|trial| trial.is_burst).count();
    let held = valid().filter_map(|trial| trial.ring_share).fold(0.0, f64::max);
    let mut text = String::new();
    if bursts > 0 {
        text += &format!(
            "{} of {} runs tell of bursts alone: they took less than 10 s, or the ring holds more than a tenth of them.\n",
            exact(bursts as i128),
            exact(valid().count() as i128)
        );
    }
    if held > WORTH {
        text += &format!("Rings hold up to {:.1} % of what was sent in a run.\n", held * 100.0);
    }
    text
}

/// The share of a processor that the tool's threads took while frames were sent.
fn cpu(trial: &Trial) -> Option<f64> {
    let seconds = trial.sent as f64 / trial.reached?;
    Some(trial.cpu_ns as f64 / 1e9 / seconds)
}
