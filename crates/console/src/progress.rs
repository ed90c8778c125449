//! A line on the terminal that tells how far long work is.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::time::{Duration, Instant};

use crate::number;

/// Between two prints; faster than people read.
const INTERVAL: Duration = Duration::from_millis(200);
/// Work that is done by then shows nothing.
const PATIENCE: Duration = Duration::from_millis(600);
/// Columns of the bar.
const BAR: usize = 16;

/// Shows bytes, packets, rate and time left on standard error, if that is a terminal.
///
/// The line is removed when this is dropped.
#[derive(Debug)]
pub struct ProgressLine {
    /// Bytes in all, if that is known.
    total: Option<u64>,
    start: Instant,
    /// When to print next; `None` where nothing is shown at all.
    next: Option<Instant>,
    shown: bool,
}

impl ProgressLine {
    /// For work on `total` bytes that begins now.
    #[must_use]
    pub fn new(total: Option<u64>, quiet: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let start = Instant::now();
        let next = (!quiet && !dumb && stderr().is_terminal()).then(|| start + PATIENCE);
        Self { total, start, next, shown: false }
    }

    /// Tells how much was done so far.
    pub fn update(&mut self, done: impl FnOnce() -> (u64, u64)) {
        let Some(next) = self.next else { return };
        let now = Instant::now();
        if now < next {
            return;
        }
        self.next = Some(now + INTERVAL);
        let (bytes, packets) = done();
        let line = line(bytes, self.total, packets, now - self.start);
        // A terminal that is gone must not end the work.
        let _ = write!(stderr(), "\r{line}\x1b[K");
        self.shown = true;
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

/// At most 79 columns: a terminal of 80 would wrap a full line.
fn line(bytes: u64, total: Option<u64>, packets: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    let rate = number::rate(packets as f64 / seconds.max(1e-9), "/s").replace(" /s", "/s");
    let packets = format!("{} packets, {rate}", number::count(packets));
    let Some(total) = total.filter(|total| *total > 0) else {
        return format!("{}, {packets}", number::bytes(bytes));
    };
    let share = (bytes as f64 / total as f64).min(1.0);
    let full = (share * BAR as f64) as usize;
    let mut line = format!(
        "{}{} {:.0} % of {}, {packets}",
        "#".repeat(full),
        "-".repeat(BAR - full),
        share * 100.0,
        number::bytes(total)
    );
    if share > 0.0 && seconds > 1.0 {
        let left = seconds / share - seconds;
        // What would take weeks is a guess from too little.
        if left < 360_000.0 {
            line += &format!(", {} left", clock(left));
        }
    }
    line
}

/// `0:07`, `12:05`, `3:00:00`.
fn clock(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_bytes_packets_rate_and_time_left() {
        let found = line(250_000_000, Some(1_000_000_000), 4_000_000, Duration::from_secs(2));
        let expected = "####------------ 25 % of 1.00 GB, 4.00 M packets, 2.00 M/s, 0:06 left";
        assert_eq!(found, expected);
    }

    #[test]
    fn without_a_size_there_is_no_share() {
        let found = line(250_000_000, None, 4_000_000, Duration::from_secs(2));
        assert_eq!(found, "250 MB, 4.00 M packets, 2.00 M/s");
        assert!(!line(5, Some(0), 1, Duration::ZERO).contains('%'));
    }

    #[test]
    fn the_line_fits_a_terminal() {
        for (bytes, total) in [(u64::MAX, 1), (1, u64::MAX), (u64::MAX, u64::MAX)] {
            let found = line(bytes, Some(total), u64::MAX, Duration::from_secs(359_999));
            assert!(found.chars().count() < 80, "{found}");
        }
        assert_eq!(clock(10_800.4), "3:00:00");
    }
}
