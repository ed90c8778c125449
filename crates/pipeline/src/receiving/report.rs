//! What is told of stamped frames that arrived: as text and as JSON.

use std::fmt::Write as _;

use netsniff_console::number::{bytes, duration, exact, rate, things};
use netsniff_console::printable::json_line;
use serde::Serialize;

use super::Reception;
use super::stream::{Spread, StreamOutcome};

/// Ranges of missing numbers that are shown to people.
const SHOWN: usize = 8;

/// Everything that is told.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// One for each stream, by run and number.
    pub streams: Vec<StreamOutcome>,
    /// Packets without a stamp.
    other_packets: u64,
    /// Stamped frames of more streams than are followed.
    beyond_streams: u64,
    /// Packets that the capture itself lost, any of which may have been a stamped one; `None` where that is not known.
    capture_lost: Option<u64>,
}

impl Report {
    /// Of what arrived, if each stream had so many frames, and the capture itself lost so many packets.
    #[must_use]
    pub fn new(reception: Reception, expected: Option<u64>, capture_lost: Option<u64>) -> Self {
        let (other_packets, beyond_streams) = (reception.others, reception.beyond);
        let streams = reception.streams.into_iter();
        let streams = streams.map(|(key, stream)| stream.close(key, expected)).collect();
        Self { streams, other_packets, beyond_streams, capture_lost }
    }

    /// What is not as it was sent, in a sentence.
    #[must_use]
    pub fn shortfall(&self) -> Option<String> {
        if self.streams.is_empty() {
            return Some(
                "no stamped frame came; --port is the one that they are sent to".to_owned(),
            );
        }
        if self.beyond_streams > 0 {
            return Some("there were more streams than are followed".to_owned());
        }
        let mut missing = 0;
        for stream in &self.streams {
            let Some(of_stream) = stream.missing else {
                return Some(format!(
                    "run {} sent more than {} frames, so that it is not known what is missing",
                    stream.run,
                    exact(stream.expected.into())
                ));
            };
            missing += of_stream;
        }
        let verb = if missing == 1 { "is" } else { "are" };
        (missing > 0).then(|| format!("{} {verb} missing", things(missing, "frame")))
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
        let mut text: String = self.streams.iter().map(of_stream).collect();
        let mut line = |what: String| {
            // A String takes everything.
            let _ = writeln!(text, "{what}");
        };
        if self.other_packets > 0 {
            line(format!("Without a stamp: {}", things(self.other_packets, "packet")));
        }
        if self.beyond_streams > 0 {
            line(format!("Of more streams: {}", things(self.beyond_streams, "frame")));
        }
        if let Some(lost) = self.capture_lost.filter(|lost| *lost > 0) {
            line(format!("Lost by the capture itself: {}", things(lost, "packet")));
        }
        text
    }
}

fn of_stream(outcome: &StreamOutcome) -> String {
    let mut text = format!(
        "Run {}, stream {}: {} ({}) in {}\n",
        outcome.run,
        outcome.stream,
        things(outcome.received, "frame"),
        bytes(outcome.bytes),
        duration((outcome.seconds * 1e9) as u64)
    );
    let mut line = |name: &str, what: String| {
        // A String takes everything.
        let _ = writeln!(text, "  {name:<12} {what}");
    };
    if let Some((frames, bits)) = outcome.frames_per_second.zip(outcome.bits_per_second) {
        line("rate", format!("{}, {}", rate(frames, "frames/s"), rate(bits, "bit/s")));
    }
    line("missing", missing(outcome));
    line("duplicates", exact(outcome.duplicates.into()));
    line("out of order", exact(outcome.out_of_order.into()));
    if outcome.too_late > 0 {
        let frames = things(outcome.too_late, "frame");
        line("too late", format!("{frames}, any of which may be one that counts as missing"));
    }
    if outcome.unexpected > 0 {
        line("unexpected", format!("{} beyond the last", things(outcome.unexpected, "frame")));
    }
    let unknown = || "unavailable: the clocks of stamps and capture do not fit".to_owned();
    line("delay", outcome.one_way_delay.as_ref().map_or_else(unknown, spread));
    if outcome.negative_delays > 0 {
        let frames = things(outcome.negative_delays, "frame");
        line("", format!("{frames} came before they were sent: the clocks differ"));
    }
    if let Some(errors) = &outcome.gap_errors {
        line("gaps off by", spread(errors));
    }
    text
}

fn missing(outcome: &StreamOutcome) -> String {
    let Some((missing, holes)) = outcome.missing.zip(outcome.holes) else {
        return "unavailable: more were sent than was expected".to_owned();
    };
    let of = format!("of {}", exact(outcome.expected.into()));
    if missing == 0 {
        return format!("0 {of}");
    }
    let range = |(begin, end): &(u64, u64)| match end - begin {
        0 => exact(i128::from(*begin)),
        _ => format!("{} to {}", exact(i128::from(*begin)), exact(i128::from(*end))),
    };
    let shown: Vec<_> = outcome.missing_ranges.iter().take(SHOWN).map(range).collect();
    let more = match holes.saturating_sub(shown.len() as u64) {
        0 => String::new(),
        more => format!("; {} more", things(more, "range")),
    };
    format!("{} {of}: {}{more}", exact(missing.into()), shown.join("; "))
}

fn spread(spread: &Spread) -> String {
    let Spread { min_ns, median_ns, p99_ns, max_ns } = *spread;
    let [min, median, p99, max] = [min_ns, median_ns, p99_ns, max_ns].map(duration);
    format!("{min} (least), {median} (median), {p99} (99 of 100), {max} (most)")
}
