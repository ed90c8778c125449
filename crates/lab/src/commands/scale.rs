//! What the experiments of papers are scaled by: a trace of sessions, and what the sender reaches here.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use netsniff_console::number::exact;
use netsniff_console::{UsageError, say};

use super::common;
use crate::content::TrafficContent;
use crate::load::{FCS_LEN, Load};
use crate::paper::Scale;
use crate::stop::Stop;
use crate::testbed::{CAPTURE_CPU, Layout, Testbed};
use crate::tools::Tool;
use crate::trial;

/// The trace, and where what was measured is.
pub(super) const TRACE: &str = "trace.pcapng";
pub(super) const FILE: &str = "scale.json";

/// Sessions of the trace.
const SESSIONS: &str = "300";

/// What makes a file of so many sessions, of one host of the papers' laboratory.
pub(super) const fn generation(sessions: &str) -> [&str; 11] {
    let of = ["generate", "hosts", "-q", "--profile", "papers", "--sessions", sessions];
    let [command, kind, quiet, profile, papers, number, sessions] = of;
    [command, kind, quiet, profile, papers, number, sessions, "--seed", "1", "--start", "0"]
}

/// How long the sender is measured with each size.
const TIME: Duration = Duration::from_secs(2);

/// What a run takes beside that.
const AROUND: Duration = Duration::from_secs(3);

/// Runs that may prove nothing, in all.
const TRIED: usize = 3;

/// How often a file is read, of which the middle counts.
const READ: usize = 5;

/// What was measured into a directory, or is measured now; `None` where it ended before.
///
/// # Errors
///
/// Whatever prevents a testbed or a run; a directory that has the other form.
pub(super) fn of(
    directory: &Path,
    is_short: bool,
    layout: &Layout,
    stop: &Stop<'_>,
    is_quiet: bool,
) -> anyhow::Result<Option<Scale>> {
    let path = directory.join(FILE);
    if path.is_file() {
        let text = std::fs::read_to_string(&path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        let scale: Scale = serde_json::from_str(&text)
            .with_context(|| format!("{} is not of this version", path.display()))?;
        if scale.is_short != is_short {
            let form =
                if scale.is_short { "the short form" } else { "all values, without --short" };
            let said = format!("what is in {} is of {form}", directory.display());
            return Err(UsageError(said).into());
        }
        return Ok(Some(scale));
    }
    let Some(scale) = measured(&directory.join(TRACE), is_short, layout, stop, is_quiet)? else {
        return Ok(None);
    };
    common::write(directory, FILE, &(serde_json::to_string_pretty(&scale)? + "\n"))?;
    Ok(Some(scale))
}

fn measured(
    trace: &Path,
    is_short: bool,
    layout: &Layout,
    stop: &Stop<'_>,
    is_quiet: bool,
) -> anyhow::Result<Option<Scale>> {
    let (program, warden) = super::programs()?;
    if !is_quiet {
        let runs = u32::try_from(Scale::SIZES.len() + 1)?;
        let time = common::in_words((TIME + AROUND) * runs);
        say(&format!("what the sender reaches is measured first, about {time}"));
    }
    // What makes the trace, and what reads it, are of the testbed, too: they do not outlive it.
    let bed = Testbed::make(&warden, layout)?.until(stop);
    let Some(TrafficContent { packets: frames, bytes, .. }) =
        make_trace(&bed, &program, trace, stop)?
    else {
        return Ok(None);
    };
    let trace_size = u32::try_from(bytes / frames)?.saturating_add(FCS_LEN);
    let counting = Tool::all().into_iter().find(|tool| tool.name == "count");
    let counting = counting.context("there is no tool that counts")?;
    let sender = HighestRate { bed: &bed, program: &program, counting: &counting, stop, is_quiet };
    let mut frames_of_sizes = Vec::new();
    for size in Scale::SIZES {
        let load = Load { size, time: TIME, ..Load::default() };
        let Some(rate) = sender.find(&load, &format!("{size} bytes"))? else { return Ok(None) };
        frames_of_sizes.push((size, rate));
    }
    let capture = Some(trace.to_owned());
    let load = Load { size: trace_size, time: TIME, capture, ..Load::default() };
    let Some(rate) = sender.find(&load, "the trace")? else { return Ok(None) };
    // Where live analysis writes its logs, too.
    let offline = offline(&bed, &program, trace, frames);
    drop(bed);
    // A signal of the terminal reaches the analysis, too.
    if stop.is_set() {
        return Ok(None);
    }
    let frames = frames_of_sizes;
    Ok(Some(Scale { is_short, frames, trace: rate, trace_size, offline, repeat: None }))
}

/// What is asked how fast the sender sends.
struct HighestRate<'a> {
    bed: &'a Testbed,
    program: &'a Path,
    counting: &'a Tool,
    stop: &'a Stop<'a>,
    is_quiet: bool,
}

impl HighestRate<'_> {
    /// The highest rate of a load, in frames a second; `None` where a signal or the end of the time came before.
    fn find(&self, load: &Load, what: &str) -> anyhow::Result<Option<f64>> {
        if self.stop.before(TIME).is_some() {
            return Ok(None);
        }
        for _ in 0..TRIED {
            let trial = match trial::run(self.bed, self.program, self.counting, load) {
                // A signal of the terminal reaches tool and generator, too.
                _ if self.stop.is_set() => return Ok(None),
                result => result?,
            };
            if let Some(rate) = trial.reached.filter(|_| trial.is_true_at_reached()) {
                if !self.is_quiet {
                    let rate = exact(rate.round() as i128);
                    say(&format!("the sender reaches {rate} frames a second of {what}"));
                }
                return Ok(Some(rate));
            }
        }
        bail!("no run tells how fast the sender sends {what}")
    }
}

/// Makes a trace of sessions, and says what is in it; `None` where a signal came before.
fn make_trace(
    bed: &Testbed,
    program: &Path,
    trace: &Path,
    stop: &Stop<'_>,
) -> anyhow::Result<Option<TrafficContent>> {
    let mut make = Command::new(program);
    bed.mark(&mut make).args(generation(SESSIONS)).arg("-w").arg(trace);
    let made = make.stdin(Stdio::null()).output().context("cannot make the trace")?;
    // A signal of the terminal reaches the generator, too.
    if stop.is_set() {
        return Ok(None);
    }
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    ensure!(made.status.success(), "cannot make the trace: {}", said.trim());
    let content = TrafficContent::of(trace)?;
    ensure!(content.packets > 0, "the trace is empty");
    Ok(Some(content))
}

/// Packets a second that the analysis of a file reaches on the processor that captures, with logs as a live one writes
/// them; `None` where it fails.
fn offline(bed: &Testbed, program: &Path, trace: &Path, packets: u64) -> Option<f64> {
    let logs = bed.scratch().join("logs");
    let mut times = Vec::new();
    for _ in 0..READ {
        let mut command = Command::new("taskset");
        bed.mark(&mut command)
            .args(["-c", &CAPTURE_CPU.to_string()])
            .arg(program)
            .args(["analyze", "-q", "-o"]);
        command.arg(&logs).arg(trace);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let begin = Instant::now();
        if !command.status().ok()?.success() {
            return None;
        }
        times.push(begin.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let middle = *times.get(READ / 2)?;
    (middle > 0.0).then(|| packets as f64 / middle)
}
