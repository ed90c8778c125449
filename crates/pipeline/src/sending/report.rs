//! What was sent, and how well: as text and as JSON.

use std::fmt::Write as _;

use netsniff_console::number::{bytes, duration, exact, things};
use netsniff_console::printable::json_line;
use netsniff_traffic::pace::Late;
use serde::Serialize;

use super::drive::SendOutcome;
use super::gaps::Quantiles;
use super::wire::{Counted, Wire};

/// Everything that is told of one sending. Rates are of the time from the first frame to the last.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    interfaces: Vec<OneWire>,
    /// What all stamps carry, where frames have stamps: see `docs/generate.md`.
    run: Option<u32>,
    frames: u64,
    /// Frames that the kernel did not take before it ended. Where there are some, bytes and rates are `None`: they
    /// would be with them.
    untaken: u64,
    bytes: Option<u64>,
    seconds: Option<f64>,
    frames_per_second: Option<f64>,
    bits_per_second: Option<f64>,
    /// What the plan comes to, and by how much the achieved rate differs from that, in percent; after taking
    /// out what a plan was moved by.
    asked_frames_per_second: Option<f64>,
    off_percent: Option<f64>,
    /// How frames were timed, in a sentence.
    timing: String,
    late: &'static str,
    stalls: u64,
    frames_behind: u64,
    slipped_ns: u64,
    latest_ns: u64,
    /// At the hand-over to the kernel.
    gap_errors: Option<Quantiles>,
    refusals: u64,
    /// Frames that an interface refused when they could not be offered again.
    lost: u64,
    interrupted: bool,
    error: Option<String>,
    /// What was not sent as it is, and why.
    left_out: Vec<UnsentFrames>,
}

/// One interface that was sent on.
#[derive(Clone, Debug, Serialize)]
struct OneWire {
    name: String,
    way: &'static str,
    why: String,
    /// Frames that the kernel took for it.
    frames: u64,
    /// `None` where it is gone.
    counted: Option<Counted>,
}

impl OneWire {
    fn new(wire: &mut Wire, frames: u64) -> Self {
        Self {
            name: wire.interface.name.clone(),
            way: wire.transmitter.way(),
            why: wire.choice.clone(),
            frames,
            counted: wire.counted(frames),
        }
    }
}

/// Frames that were not sent, or not as they are.
#[derive(Clone, Debug, Serialize)]
pub struct UnsentFrames {
    /// Number of frames.
    pub frames: u64,
    /// What became of them, and why.
    pub what: String,
}

impl Report {
    /// Of what was sent on one wire or two, timed so.
    pub fn new(
        sent: &SendOutcome,
        wires: &mut [Wire],
        timing: String,
        late: Late,
        left: Vec<UnsentFrames>,
    ) -> Self {
        let is_whole = sent.untaken == 0;
        let gaps = sent.frames.saturating_sub(1) as f64;
        let rate =
            |nanos: u64| (is_whole && nanos > 0 && gaps > 0.0).then(|| gaps / (nanos as f64 / 1e9));
        let (asked, achieved) =
            (sent.planned.and_then(rate), rate(sent.span.saturating_sub(sent.slipped)));
        let off = asked.zip(achieved).map(|(asked, achieved)| (achieved / asked - 1.0) * 100.0);
        let per_frame = sent.bytes as f64 / sent.frames.max(1) as f64;
        Self {
            interfaces: wires
                .iter_mut()
                .zip(&sent.by_wire)
                .map(|(wire, frames)| OneWire::new(wire, *frames))
                .collect(),
            run: None,
            frames: sent.frames,
            untaken: sent.untaken,
            bytes: is_whole.then_some(sent.bytes),
            seconds: is_whole.then_some(sent.span as f64 / 1e9),
            frames_per_second: rate(sent.span),
            bits_per_second: rate(sent.span).map(|rate| rate * per_frame * 8.0),
            asked_frames_per_second: asked,
            off_percent: off,
            timing,
            late: match late {
                Late::CatchUp => "catch-up",
                Late::Slip => "slip",
            },
            stalls: sent.stalls,
            frames_behind: sent.frames_behind,
            slipped_ns: sent.slipped,
            latest_ns: sent.latest,
            gap_errors: sent.gaps,
            refusals: sent.refusals,
            lost: sent.lost,
            interrupted: sent.is_interrupted,
            error: sent.failure.as_ref().map(|error| format!("{error:#}")),
            left_out: left.into_iter().filter(|left| left.frames > 0).collect(),
        }
    }

    /// The same, of frames with stamps of a run.
    #[must_use]
    pub fn with_run(self, run: u32) -> Self {
        Self { run: Some(run), ..self }
    }

    /// What fell short of what was asked, in a sentence: frames that an interface has not counted as sent, or a rate
    /// that is off by more than so many percent.
    #[must_use]
    pub fn shortfall(&self, tolerance: Option<f64>) -> Option<String> {
        for OneWire { name, frames, counted, .. } in &self.interfaces {
            let uncounted = counted.map_or(0, |counted| frames.saturating_sub(counted.tx_packets));
            if uncounted > 0 {
                let lost = things(uncounted, "frame");
                return Some(format!(
                    "{lost} did not get onto the wire: {name} has not counted them as sent"
                ));
            }
        }
        if self.lost > 0 {
            let lost = things(self.lost, "frame");
            return Some(format!("{lost} did not get onto the wire: the interface refused them"));
        }
        let (off, tolerance) = self.off_percent.zip(tolerance)?;
        (off.abs() > tolerance)
            .then(|| format!("the rate was off by {off:+.3} %, and {tolerance} % are tolerated"))
    }

    /// One line of JSON.
    ///
    /// # Errors
    ///
    /// None that a report can cause.
    pub fn json(&self) -> serde_json::Result<String> {
        json_line(self)
    }

    /// The report as lines of text.
    #[must_use]
    pub fn text(&self) -> String {
        let (frames, names) = (things(self.frames, "frame"), self.names());
        let mut text = match self.bytes.zip(self.seconds) {
            Some((sum, seconds)) => {
                let (sum, time) = (bytes(sum), duration((seconds * 1e9) as u64));
                format!("Sent {frames} ({sum}) on {names} in {time}\n")
            }
            None => {
                format!("Sent {frames} on {names}, and {} not taken\n", exact(self.untaken.into()))
            }
        };
        let mut line = |name: &str, what: String| {
            // A String takes everything.
            let _ = writeln!(text, "  {name:<10} {what}");
        };
        for wire in &self.interfaces {
            line("way", self.of_wire(wire, format!("{}, {}", wire.way, wire.why)));
        }
        line("timing", self.timing.clone());
        if let Some(rate) = self.rates() {
            line("rate", rate);
        }
        if let Some(gaps) = &self.gap_errors {
            line("gaps", gap_line(gaps));
            line("late", self.lateness());
        }
        for wire in &self.interfaces {
            line("interface", self.of_wire(wire, counted(wire)));
        }
        if self.refusals > 0 {
            let refusals = times(self.refusals);
            line("kernel", format!("had no room {refusals}, and was asked again"));
        }
        if self.lost > 0 {
            let frames = things(self.lost, "frame");
            line(
                "lost",
                format!("{frames}, refused by the interface; other ways offer them again"),
            );
        }
        if let Some(run) = self.run.filter(|_| self.frames > 0) {
            let last = exact(i128::from(self.frames) - 1);
            line("stamps", format!("run {run}, numbers 0 to {last}"));
        }
        for left in &self.left_out {
            line("not as is", format!("{}: {}", things(left.frames, "frame"), left.what));
        }
        if self.interrupted {
            line("ended", "by a signal".to_owned());
        }
        text
    }

    fn rates(&self) -> Option<String> {
        let (frames, bits) = self.frames_per_second.zip(self.bits_per_second)?;
        let mut text = format!("{} frames/s, {} Mbit/s", fixed(frames), fixed(bits / 1e6));
        if let Some((asked, off)) = self.asked_frames_per_second.zip(self.off_percent) {
            let moved = if self.slipped_ns > 0 { ", slips taken out" } else { "" };
            // A String takes everything.
            let _ = write!(text, "; asked for {} frames/s: {off:+.3} %{moved}", fixed(asked));
        }
        Some(text)
    }

    fn lateness(&self) -> String {
        if self.stalls == 0 {
            return format!("never by more than {}", duration(self.latest_ns));
        }
        let what = if self.late == "slip" {
            let moved = format!("the plan was moved by {} in all", duration(self.slipped_ns));
            // More than a thousandth, of the frames or of the time: then the machine is too slow, too.
            let is_much = self.stalls.saturating_mul(1000) > self.frames
                || self.seconds.is_some_and(|seconds| self.slipped_ns as f64 > seconds * 1e6);
            if is_much { moved + ", too much for a run that measures" } else { moved }
        } else {
            format!("{} followed in bursts", things(self.frames_behind, "frame"))
        };
        let (stalls, latest) = (things(self.stalls, "stall"), duration(self.latest_ns));
        format!("{stalls} of more than 500 µs, up to {latest}; {what}")
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.interfaces.iter().map(|wire| wire.name.as_str()).collect();
        names.join(" and ")
    }

    /// What is said of one wire, with its name where there are several.
    fn of_wire(&self, wire: &OneWire, said: String) -> String {
        if self.interfaces.len() > 1 { format!("{}: {said}", wire.name) } else { said }
    }
}

/// What the interface counted, held against what was sent.
fn counted(wire: &OneWire) -> String {
    let Some(counted) = &wire.counted else {
        return "gone: what it counted is not known".to_owned();
    };
    let others = i128::from(counted.tx_packets) - i128::from(wire.frames);
    let what = match others {
        0 => "counted every frame".to_owned(),
        1.. => format!("counted {} more, of other senders", exact(others)),
        _ => format!("counted {} fewer", exact(-others)),
    };
    format!("{what}, refused or dropped {}", exact(counted.tx_dropped.into()))
}

fn gap_line(gaps: &Quantiles) -> String {
    let Quantiles { median_ns, p99_ns, max_ns } = *gaps;
    format!(
        "off by {} (median), {} (99 of 100), {} (most), as handed to the kernel",
        duration(median_ns),
        duration(p99_ns),
        duration(max_ns)
    )
}

fn times(number: u64) -> String {
    if number == 1 { "once".to_owned() } else { format!("{} times", exact(number.into())) }
}

/// A number of frames or bits with as many decimals as tell something.
fn fixed(value: f64) -> String {
    if value < 1000.0 { format!("{value:.3}") } else { exact(value.round() as i128) }
}
