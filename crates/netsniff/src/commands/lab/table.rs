//! What was measured, as text and as CSV.

use std::fmt::Write as _;

use netsniff_lab::bed::{CAPTURE_CPU, SENDER_CPU};
use netsniff_lab::lossless::{Cell, Step};
use netsniff_lab::machine::Busy;
use netsniff_lab::search::{Found, Purpose};
use netsniff_lab::sweep::{Point, Run};
use netsniff_lab::tools::{Setting, Tool};
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

/// What a run lost, and why it proves nothing.
pub(super) fn came(trial: &Trial) -> String {
    let lost = lost(trial) + &planted(trial);
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

fn planted(trial: &Trial) -> String {
    trial.planted.map_or_else(String::new, |planted| {
        let of = [planted.before, planted.at, planted.behind].map(|lost| exact(lost.into()));
        let [before, at, behind] = of;
        format!("; planted: {before} before, {at} at, {behind} behind the tap")
    })
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
            (None, None) if cell.tolerated > 0.0 && cell.confirmed > 0 => {
                format!("at most {} % lost", cell.tolerated * 100.0)
            }
            (None, None) => String::new(),
        };
        // A String takes everything.
        let _ = writeln!(text, "{:<16} {:>5}  {rate:>14} {bits:>10}  {sure}", cell.tool, cell.size);
    }
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

/// Every combination in a line: medians of its repetitions that prove something.
pub(super) fn points(points: &[Point], runs: &[Run]) -> String {
    // Without a tap nothing is planted anywhere.
    let has_tap = runs.iter().any(|run| run.trial.planted.is_some());
    let of_tap = |text: &str| if has_tap { format!(" {text:>9}") } else { String::new() };
    let mut text = format!(
        "{:<40} {:>10}{} {:>9} {:>9} {:>9} {:>6} {:>9}  {}\n",
        "tool, bytes, options",
        "frames/s",
        of_tap("planted %"),
        "loss %",
        "kernel %",
        "appl. %",
        "CPU %",
        "MB",
        "runs"
    );
    // Where all runs take as long, that tells nothing.
    let has_times = points.windows(2).any(|pair| pair[0].load.time != pair[1].load.time);
    for point in points.iter().filter(|point| point.repetition == 0) {
        let of = |run: &&Run| Point { repetition: 0, ..run.point.clone() } == *point;
        let all: Vec<&Trial> = runs.iter().filter(of).map(|run| &run.trial).collect();
        let valid: Vec<&Trial> = all.iter().copied().filter(|trial| trial.is_valid()).collect();
        let middle = |value: fn(&Trial) -> Option<f64>| {
            let mut values: Vec<_> = valid.iter().filter_map(|trial| value(trial)).collect();
            values.sort_by(f64::total_cmp);
            (!values.is_empty())
                .then(|| f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]))
        };
        let percent = |value: Option<f64>| {
            value.map_or("-".to_owned(), |share| format!("{:.3}", share * 100.0))
        };
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
        let planted = of_tap(&percent(middle(Trial::planted_loss)));
        // A String takes everything.
        let _ = writeln!(
            text,
            "{what:<40} {rate:>10}{planted} {loss:>9} {kernel:>9} {application:>9} {cpu:>6} {memory:>9}  {} of {}",
            valid.len(),
            all.len()
        );
    }
    text += "Medians of the runs that prove something, of all runs. loss: of what was sent; kernel: before the interface had it, of\n\
             what was sent; appl.: dropped at the socket, of what came there. CPU: of the tool's threads. MB: most resident memory.\n";
    text += &bursts(runs);
    if has_tap {
        text += "planted: lost on purpose, of what was sent; no other loss has it in it.\n";
    }
    text
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

/// Every run of searches, a line for each; what is not known is empty.
pub(super) fn steps_csv(cells: &[Cell]) -> String {
    let mut text = format!("purpose,{COLUMNS}");
    for Step { purpose, trial } in cells.iter().flat_map(|cell| &cell.steps) {
        let purpose = format!("{purpose:?}").to_lowercase();
        text += &format!("{purpose},{}\n", columns(trial));
    }
    text
}

/// Every run of a sweep, a line for each; what is not known is empty.
pub(super) fn runs_csv(runs: &[Run]) -> String {
    let mut text = format!("settings,send,host,repetition,{COLUMNS}");
    let words = |settings: &[Setting]| {
        let words = settings.iter().map(|Setting { name, value }| format!("{name}={value}"));
        words.collect::<Vec<_>>().join(" ")
    };
    for Run { point, trial } in runs {
        let [settings, send, host] =
            [&point.settings, &point.load.options, &point.host].map(|of| words(of));
        text += &format!("{settings},{send},{host},{},{}\n", point.repetition, columns(trial));
    }
    text
}

const COLUMNS: &str = "tool,bytes,asked,seconds,reached,sent,arrived,captured,dropped,backlog_dropped,wire_dropped,planted_before,\
                       planted_at,planted_behind,monitored,loss,kernel_loss,\
                       application_loss,stalls,slipped_ns,cpu_ns,capture_cpu_user,capture_cpu_system,\
                       capture_cpu_softirq,capture_cpu_irq,capture_cpu_steal,capture_cpu_idle,sender_cpu_user,\
                       sender_cpu_system,sender_cpu_softirq,sender_cpu_irq,sender_cpu_steal,sender_cpu_idle,\
                       memory_peak,memory_mean,own_peak,own_mean,polls,wakeups,groups,ring_occupancy,ring_share,\
                       drift,is_burst,faults\n";

fn columns(trial: &Trial) -> String {
    let faults: Vec<_> = trial.faults.iter().map(|fault| format!("{fault:?}")).collect();
    let books = trial.counted.books.as_ref();
    let book = |name: &str| known(books.and_then(|books| books[name].as_u64()));
    let shares = [CAPTURE_CPU, SENDER_CPU].map(|processor| {
        let of = |share: fn(&Busy) -> f64| known(trial.processors.get(processor).map(share));
        let shares: [fn(&Busy) -> f64; 6] = [
            |it| it.user,
            |it| it.system,
            |it| it.softirq,
            |it| it.irq,
            |it| it.steal,
            |it| it.idle,
        ];
        shares.map(of).join(",")
    });
    [
        trial.tool.clone(),
        trial.load.size.to_string(),
        known(trial.load.rate),
        trial.load.time.as_secs_f64().to_string(),
        known(trial.reached),
        trial.sent.to_string(),
        trial.arrived.to_string(),
        known(trial.counted.captured),
        known(trial.counted.dropped),
        trial.backlog_dropped.to_string(),
        trial.wire_dropped.to_string(),
        known(trial.planted.map(|planted| planted.before)),
        known(trial.planted.map(|planted| planted.at)),
        known(trial.planted.map(|planted| planted.behind)),
        trial.monitored().to_string(),
        known(trial.loss()),
        known(trial.kernel_loss()),
        known(trial.application_loss()),
        trial.stalls.to_string(),
        trial.slipped_ns.to_string(),
        trial.cpu_ns.to_string(),
        shares.join(","),
        trial.memory_peak.to_string(),
        trial.memory_mean.to_string(),
        known(trial.own_peak),
        known(trial.own_mean),
        book("polls"),
        book("wakeups"),
        book("groups"),
        known(occupancy(books)),
        known(trial.ring_share),
        known(trial.drift),
        trial.is_burst.to_string(),
        faults.join(" "),
    ]
    .join(",")
}

/// The most of its ring that was in use, as a share.
fn occupancy(books: Option<&serde_json::Value>) -> Option<f64> {
    let most = &books?["ring_high_water"];
    let (used, all) = (most[0].as_f64()?, most[1].as_f64()?);
    (all > 0.0).then(|| used / all)
}

fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
