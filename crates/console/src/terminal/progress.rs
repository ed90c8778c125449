//! A line on the terminal that tells how far long work is.

use std::fmt;
use std::io::{self, IsTerminal as _, stdout};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, TermLike};

use crate::number;

/// Between two looks at how far the work is; faster than people read.
const INTERVAL: Duration = Duration::from_millis(200);
/// Work that is done by then shows nothing.
const PATIENCE: Duration = Duration::from_millis(600);
/// What would take longer is a guess from too little.
const LONGEST_LEFT: Duration = Duration::from_secs(360_000);
/// Signs of a bar: what is done, and what is not.
const BAR: &str = "#-";
/// Signs of a line without a bar, one after the other; the last one is that of the end.
const SPINNER: &str = "|/-\\ ";

/// The bar that is on the terminal, if there is one.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

fn shown() -> MutexGuard<'static, Option<ProgressBar>> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints something while no progress is on the terminal.
pub fn aside<R>(print: impl FnOnce() -> R) -> R {
    // Whoever prints may wait for a terminal that was stopped: nobody waits for that with it.
    let bar = shown().clone();
    match bar {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

/// Takes progress from the terminal, where the process is about to end: none is shown any more.
pub fn remove() {
    let bar = shown();
    if let Some(bar) = &*bar {
        bar.finish_and_clear();
    }
    std::mem::forget(bar);
}

/// Whether what goes to standard output may come to the terminal at once, by itself or by whoever reads it.
#[must_use]
pub fn is_output_seen() -> bool {
    #[cfg(unix)]
    if let Ok(of) = rustix::fs::fstat(stdout()) {
        use rustix::fs::FileType::{CharacterDevice, RegularFile};
        let kind = rustix::fs::FileType::from_raw_mode(of.st_mode);
        return stdout().is_terminal() || !matches!(kind, RegularFile | CharacterDevice);
    }
    stdout().is_terminal()
}

/// Shows bytes, rate, things and time left on standard error, if that is a terminal.
///
/// The line is removed when this is dropped.
#[derive(Debug)]
pub struct ProgressLine {
    /// `None` where nothing is shown at all.
    work: Option<Work>,
}

#[derive(Debug)]
struct Work {
    bar: ProgressBar,
    /// Packets or rows so far.
    things: Arc<AtomicU64>,
    start: Instant,
    next: Instant,
}

impl ProgressLine {
    /// For work on `total` bytes that begins now, if that number is known.
    #[must_use]
    pub fn new(total: Option<u64>, is_quiet: bool) -> Self {
        Self::of(total, is_quiet, "packets")
    }

    /// As [`Self::new`], where bytes are of `things`.
    #[must_use]
    pub fn of(total: Option<u64>, is_quiet: bool, things: &'static str) -> Self {
        let is_shown = !is_quiet && !ProgressDrawTarget::stderr().is_hidden();
        Self { work: is_shown.then(|| Work::new(total, things)) }
    }

    /// Whether it comes to the terminal, should the work last.
    #[must_use]
    pub const fn is_wanted(&self) -> bool {
        self.work.is_some()
    }

    /// Tells how many bytes and things were done so far.
    pub fn update(&mut self, done: impl FnOnce() -> (u64, u64)) {
        let Some(work) = &mut self.work else { return };
        let now = Instant::now();
        if now >= work.next {
            work.next = now + INTERVAL;
            work.show(now, done());
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Some(work) = &self.work {
            work.bar.finish_and_clear();
            shown().take_if(|_| !work.bar.is_hidden());
        }
    }
}

impl Work {
    fn new(total: Option<u64>, name: &'static str) -> Self {
        // Of nothing there is no share.
        let total = total.filter(|total| *total > 0);
        let things = Arc::new(AtomicU64::new(0));
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        bar.set_style(style(total.is_some(), name, &things));
        let start = Instant::now();
        Self { bar, things, start, next: start + INTERVAL }
    }

    fn show(&self, now: Instant, (bytes, things): (u64, u64)) {
        self.things.store(things, Ordering::Relaxed);
        if self.bar.is_hidden() && now - self.start >= PATIENCE {
            let terminal = Box::new(Terminal(Term::buffered_stderr()));
            self.bar.set_draw_target(ProgressDrawTarget::term_like(terminal));
            *shown() = Some(self.bar.clone());
        }
        self.bar.set_position(bytes);
    }
}

/// Columns of a terminal that every line fits, with those that stay free.
const COLUMNS: u16 = 80;

/// How a line looks.
fn style(has_size: bool, name: &'static str, things: &Arc<AtomicU64>) -> ProgressStyle {
    let template = if has_size {
        "{bar:16} {done} of {size}, {speed}, {things}{left}"
    } else {
        "{spinner} {done}, {speed}, {things}"
    };
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let things = Arc::clone(things);
    style
        .progress_chars(BAR)
        .tick_chars(SPINNER)
        .with_key("done", |it: &ProgressState, to: &mut dyn fmt::Write| {
            let _ = to.write_str(&number::bytes(it.pos()));
        })
        .with_key("size", |it: &ProgressState, to: &mut dyn fmt::Write| {
            let _ = to.write_str(&number::bytes(it.len().unwrap_or(0)));
        })
        .with_key("speed", |it: &ProgressState, to: &mut dyn fmt::Write| {
            let _ = write!(to, "{}/s", number::bytes(it.per_sec() as u64));
        })
        .with_key("things", move |_: &ProgressState, to: &mut dyn fmt::Write| {
            let _ = write!(to, "{} {name}", number::count(things.load(Ordering::Relaxed)));
        })
        .with_key("left", |it: &ProgressState, to: &mut dyn fmt::Write| {
            // It is zero where nothing can be told yet.
            let left = it.eta();
            if !left.is_zero() && left < LONGEST_LEFT {
                let _ = write!(to, ", {} left", clock(left));
            }
        })
}

/// The columns of a terminal that a line leaves free where it can: a terminal shows `^C` there, which would begin another
/// line behind a full one, and nobody would know where the cursor is.
const FREE: u16 = 2;

/// The terminal, without the columns that stay free.
#[derive(Debug)]
struct Terminal(Term);

impl TermLike for Terminal {
    fn width(&self) -> u16 {
        match self.0.size().1 {
            columns @ COLUMNS.. => columns - FREE,
            columns => columns,
        }
    }

    fn height(&self) -> u16 {
        self.0.size().0
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_up(n)
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_down(n)
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_right(n)
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_left(n)
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.0.write_line(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.0.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.0.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }
}

/// `0:07`, `12:05`, `3:00:00`.
fn clock(left: Duration) -> String {
    let seconds = left.as_secs_f64().round() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

#[cfg(test)]
mod tests {
    use indicatif::InMemoryTerm;

    use super::*;

    /// The line of a terminal after some work.
    fn line(total: Option<u64>, bytes: u64, things: u64) -> (InMemoryTerm, Work) {
        let terminal = InMemoryTerm::new(3, COLUMNS - FREE);
        let work = Work::new(total, "packets");
        work.bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(terminal.clone())));
        work.show(work.start, (bytes, things));
        (terminal, work)
    }

    #[test]
    fn the_line_tells_bytes_of_all_rate_packets_and_time_left() {
        let (terminal, _work) = line(Some(1_000_000_000), 250_000_000, 4_000_000);
        let found = terminal.contents();
        assert!(found.starts_with("####------------ 250 MB of 1.00 GB, "), "{found}");
        assert!(found.contains("B/s, 4.00 M packets, 0:0") && found.ends_with(" left"), "{found}");
    }

    #[test]
    fn without_a_size_there_is_no_share() {
        for total in [None, Some(0)] {
            let (terminal, _work) = line(total, 250_000_000, 1);
            let found = terminal.contents();
            assert!(found.contains(" 250 MB, ") && found.ends_with("B/s, 1 packets"), "{found}");
        }
    }

    #[test]
    fn the_line_fits_a_terminal() {
        for (bytes, total) in [(u64::MAX, 1), (1, u64::MAX), (u64::MAX, u64::MAX)] {
            let (terminal, _work) = line(Some(total), bytes, u64::MAX);
            assert_eq!(terminal.contents().lines().count(), 1, "{}", terminal.contents());
        }
        assert_eq!(clock(Duration::from_secs_f64(10_800.4)), "3:00:00");
        assert_eq!(clock(Duration::from_secs(67)), "1:07");
    }

    #[test]
    fn what_is_printed_aside_stands_where_the_line_was() {
        let (terminal, work) = line(Some(100), 50, 1);
        *shown() = Some(work.bar.clone());
        aside(|| terminal.write_line("a message")).unwrap();
        let during = terminal.contents();
        drop(ProgressLine { work: Some(work) });
        assert!(during.starts_with("a message\n########-------- 50 B of 100 B"), "{during}");
        assert_eq!(terminal.contents(), "a message");
        assert!(shown().is_none());
    }
}
