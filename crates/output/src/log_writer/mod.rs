//! The thread that writes the logs of live traffic, and its handle.

mod hand_off;
mod writing;

pub use hand_off::{Bounds, HandedOver, QUEUE_BYTES, RowProducer, SIDE_BYTES};

use std::io::ErrorKind;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use netsniff_analysis::correlator::JoinStatistics;

use self::hand_off::HandOff;
use self::writing::Writing;
use super::watch::{Stalls, Watch};
use super::{Keep, LiveSink, Merger, RemovedFiles, RowBuffer, RowTally};

/// How long the end may take while nothing is written; where something is, a minute in all.
pub const END_WAIT: Duration = Duration::from_secs(5);
/// How long the thread may then take to count what is left, before it is given up: it hangs in a call of
/// the system.
const GRACE: Duration = Duration::from_secs(1);

/// What becomes of the run when its logs cannot be written: the disk is full, or a reader has gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// It is to end: [`LogWriter::failure`] and [`RowProducer::failure`] tell why.
    #[default]
    End,
    /// It goes on. Rows are refused and counted until the output works again.
    GoOn,
}

/// How a [`LogWriter`] works.
pub struct WriterSettings {
    /// Those who hand over rows: one for each ring.
    pub producers: usize,
    /// What may wait to be written.
    pub bounds: Bounds,
    /// What becomes of the run when its logs cannot be written.
    pub on_failure: OnFailure,
    /// How long the end may take while nothing is written; [`END_WAIT`] unless there is a reason.
    pub end_wait: Duration,
    /// Gets the first error of each kind, in a sentence.
    pub tell: Box<dyn FnMut(&str) + Send>,
}

/// Where the rows of a live run went so far. At the end, each row that was handed over, or that its
/// facts made, was written or refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriterStatistics {
    /// Rows that the system took.
    pub written: RowTally,
    /// Rows, and facts, that were not written: the sum of the three below.
    pub refused: RowTally,
    /// Those that found no room in the queue.
    pub refused_full: RowTally,
    /// Those that the output failed to take.
    pub refused_failed: RowTally,
    /// Those that were left when the end had taken too long.
    pub refused_end: RowTally,
    /// Rows that came behind later ones of other producers, which had waited for them long enough.
    /// They are written.
    pub late_rows: u64,
    /// Files of logs that were removed, since not all are to stay.
    pub removed: RemovedFiles,
    /// How long writes took.
    pub stalls: Stalls,
    /// The most bytes that waited.
    pub most_bytes: usize,
}

/// What a run's logs came to.
#[derive(Debug)]
pub struct WriterOutcome {
    /// What the facts of several flows amount to; `None` where the thread had to be given up.
    pub joins: Option<JoinStatistics>,
    /// Where the rows went.
    pub statistics: WriterStatistics,
    /// Why not all could be written, if so.
    pub failure: Option<String>,
}

/// The thread that writes the logs of live traffic.
///
/// Dropping it instead of calling [`Self::finish`] lets the thread refuse what is left and end.
#[derive(Debug)]
pub struct LogWriter {
    hand_off: Arc<HandOff>,
    thread: Option<JoinHandle<()>>,
}

/// What anybody may ask of the thread that writes, from any thread.
#[derive(Clone, Debug)]
pub struct WriterCommands(Arc<HandOff>);

impl LogWriter {
    /// Starts the thread. It writes to `sink` what the producers hand over, merged by `merger`.
    ///
    /// # Errors
    ///
    /// When there can be no thread.
    pub fn start<S: LiveSink>(
        mut sink: S,
        merger: Merger,
        settings: WriterSettings,
    ) -> anyhow::Result<(Self, Vec<RowProducer>)> {
        let WriterSettings { producers, bounds, on_failure, end_wait, tell } = settings;
        let watch = Arc::new(Watch::new());
        sink.attend(Arc::clone(&watch));
        let hand_off = Arc::new(HandOff::new(producers, bounds, end_wait, watch));
        let writing = Writing::new(Arc::clone(&hand_off), sink, merger, on_failure, tell);
        let thread = std::thread::Builder::new()
            .name("logs".to_owned())
            .spawn(move || writing.run())
            .context("cannot start the thread that writes the logs")?;
        let producer = |at| RowProducer::new(Arc::clone(&hand_off), at);
        let producers = (0..producers).map(producer).collect();
        Ok((Self { hand_off, thread: Some(thread) }, producers))
    }

    /// What may be asked of it, also by other threads.
    #[must_use]
    pub fn commands(&self) -> WriterCommands {
        WriterCommands(Arc::clone(&self.hand_off))
    }

    /// Why the run is to end, if it is.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.hand_off.lock().failure.clone()
    }

    /// A sentence for the user, once, as soon as rows found no room in the queue. The thread cannot tell
    /// it: it waits for the output.
    #[must_use]
    pub fn first_refusal(&self) -> Option<String> {
        let mut state = self.hand_off.lock();
        let is_empty = state.refused.total() == 0 && state.refused.facts() == 0;
        if is_empty || core::mem::replace(&mut state.has_told_refusal, true) {
            return None;
        }
        let said = "the logs are not written as fast as they are made: from now on rows are refused \
                    and counted; the capture goes on";
        Some(said.to_owned())
    }

    /// Where the rows went so far. Those on their way are neither written nor refused yet.
    #[must_use]
    pub fn statistics(&self) -> WriterStatistics {
        statistics(&self.hand_off)
    }

    /// Waits until everything is written that the producers handed over, which all must have ended, as long as
    /// something is written in the time that the settings say. What is then left is refused.
    #[must_use]
    pub fn finish(mut self) -> WriterOutcome {
        self.hand_off.lock().wants_end = true;
        self.hand_off.begin_end();
        self.wait_until_deadline();
        self.hand_off.expire(GRACE);
        self.wait_until_deadline();
        let mut state = self.hand_off.lock();
        let has_ended = state.is_done;
        if !has_ended {
            state.give_up("the output did not take the last rows, and was given up");
            // What the thread does from here on is no longer counted.
            state.close();
        }
        let (joins, failure) = (state.joins.clone(), state.failure.clone());
        drop(state);
        let statistics = statistics(&self.hand_off);
        if let Some(thread) = self.thread.take_if(|_| has_ended) {
            // It has said so itself, where it panicked.
            let _ = thread.join();
        }
        WriterOutcome { joins, statistics, failure }
    }

    fn wait_until_deadline(&self) {
        let mut state = self.hand_off.lock();
        while let (false, Some(deadline)) = (state.is_done, state.deadline) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.hand_off.room.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.hand_off.expire(Duration::ZERO);
    }
}

impl WriterCommands {
    /// Rolls all logs as soon as the thread can. Asking again before it could is asking once.
    pub fn roll(&self) {
        self.0.lock().wants_roll = true;
        self.0.work.notify_one();
    }

    /// Keeps files within other bounds as soon as the thread can.
    pub fn keep(&self, keep: Keep) {
        self.0.lock().wants_keep = Some(keep);
        self.0.work.notify_one();
    }

    /// Writes what waits as soon as the thread can, without waiting for the time of that.
    pub fn flush(&self) {
        self.0.lock().wants_flush = true;
        self.0.work.notify_one();
    }

    /// Writes rows that belong to no ring, such as the books, as they come, also behind the end of the
    /// producers. They hold no facts. Afterwards `rows` is empty.
    pub fn write(&self, rows: &mut RowBuffer) -> HandedOver {
        self.0.hand_over_beside(rows)
    }
}

fn statistics(hand_off: &HandOff) -> WriterStatistics {
    let state = hand_off.lock();
    let mut refused = state.refused.clone();
    refused.add(&state.books.refused);
    refused.add(&state.left);
    WriterStatistics {
        written: state.books.written.clone(),
        refused,
        refused_full: state.refused.clone(),
        refused_failed: state.books.refused.clone(),
        refused_end: state.left.clone(),
        late_rows: state.late_rows,
        removed: state.removed,
        stalls: hand_off.watch.stalls(),
        most_bytes: state.most_bytes,
    }
}

/// What to do about an error of the output.
pub(super) fn advice(kind: Option<ErrorKind>) -> &'static str {
    match kind {
        Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge) => {
            "make room there, or write the logs elsewhere"
        }
        Some(ErrorKind::BrokenPipe) => "the reader has gone, or there was none; start it first",
        Some(ErrorKind::NotFound) => "the directory has gone; make it again",
        Some(ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
            "the directory must stay writable for the user that netsniff runs as"
        }
        Some(ErrorKind::TimedOut) => "the reader does not read",
        _ => "rows that are not written are counted",
    }
}
