//! What the thread does that writes the logs of live traffic.
//!
//! Rows of each producer come in order. Those of several are merged as far as the watermarks of all
//! reach; a producer that lags is waited for, but only for a short time, and what it then brings is
//! late, which costs order, and no row.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use netsniff_analysis::SortKey;
use netsniff_console::{clock, number};
use netsniff_packet::Timestamp;

use super::hand_off::{HandOff, State, held_bytes};
use super::{OnFailure, advice};
use crate::{Keep, LiveSink, Merger, RowBuffer, RowSink, RowTally};

/// How long rows wait for those of a producer that lags.
const MERGE_WAIT: Duration = Duration::from_millis(300);
/// How often what was written so far is handed to the system. Together with the wait before, a row is in
/// its file within a second.
const FLUSH_EVERY: Duration = Duration::from_millis(300);

/// How long rows must have been refused before it is said that they are written again: where room comes and goes many times
/// a second, nobody wants to hear of each time.
const RECOVERY: Duration = Duration::from_secs(1);

/// What the writing thread alone has.
pub(super) struct Writing<S> {
    hand_off: Arc<HandOff>,
    merger: Merger,
    sink: ForgivingSink<S>,
    /// For each producer what was not merged yet, each buffer with its size and when it came.
    lanes: Vec<VecDeque<Waiting>>,
    flush_at: Instant,
    /// No row before this time has to come any more, unless late.
    merged: Timestamp,
    late_rows: u64,
}

struct Waiting {
    rows: RowBuffer,
    bytes: usize,
    since: Instant,
}

/// What there is to do.
struct Work {
    queue: VecDeque<(usize, RowBuffer)>,
    side: VecDeque<RowBuffer>,
    watermark: Timestamp,
    wants_roll: bool,
    wants_flush: bool,
    wants_keep: Option<Keep>,
    /// Nothing will come any more.
    is_last: bool,
}

impl<S: LiveSink> Writing<S> {
    pub(super) fn new(
        hand_off: Arc<HandOff>,
        sink: S,
        merger: Merger,
        on_failure: OnFailure,
        tell: Box<dyn FnMut(&str) + Send>,
    ) -> Self {
        let lanes = hand_off.lock().producers.iter().map(|_| VecDeque::new()).collect();
        let sink = ForgivingSink {
            hand_off: Arc::clone(&hand_off),
            sink,
            on_failure,
            tell,
            told: Vec::new(),
            failing: None,
            refused: 0,
            left: RowTally::default(),
        };
        let flush_at = Instant::now() + FLUSH_EVERY;
        Self { hand_off, merger, sink, lanes, flush_at, merged: Timestamp::MIN, late_rows: 0 }
    }

    pub(super) fn run(mut self) {
        let _done = Done(Arc::clone(&self.hand_off));
        loop {
            let work = self.take();
            let since = Instant::now();
            for (at, rows) in work.queue {
                if let Some(lane) = self.lanes.get_mut(at) {
                    let bytes = held_bytes(&rows);
                    lane.push_back(Waiting { rows, bytes, since });
                }
            }
            self.write_side(work.side);
            self.merge(if work.is_last { None } else { Some(work.watermark) });
            if let Some(keep) = work.wants_keep {
                self.sink.attempt(|sink| sink.keep(keep, clock::now()));
            }
            if work.wants_roll {
                self.sink.attempt(|sink| sink.roll(clock::now()));
            }
            if work.wants_flush || Instant::now() >= self.flush_at {
                if self.sink.attempt(|sink| sink.flush(clock::now())) {
                    self.sink.recover();
                }
                self.flush_at = Instant::now() + FLUSH_EVERY;
            }
            if work.is_last {
                return self.end();
            }
            self.publish();
        }
    }

    /// Waits for something to do.
    fn take(&self) -> Work {
        let waiting = self.lanes.iter().filter_map(VecDeque::front).map(|it| it.since).min();
        let merge_at = waiting.map(|since| since + MERGE_WAIT);
        let until = merge_at.map_or(self.flush_at, |at| at.min(self.flush_at));
        let mut state = self.hand_off.lock();
        state.is_merging = merge_at.is_some();
        loop {
            let is_last = state.is_at_end() || self.hand_off.watch.is_over();
            let can_merge = state.is_merging && state.watermark() > self.merged;
            let is_asked = state.wants_roll || state.wants_flush || state.wants_keep.is_some();
            let has_rows = !state.queue.is_empty() || !state.side.is_empty();
            let left = until.saturating_duration_since(Instant::now());
            if is_last || can_merge || is_asked || has_rows || left.is_zero() {
                return work(&mut state, is_last);
            }
            let waited = self.hand_off.work.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn write_side(&mut self, side: VecDeque<RowBuffer>) {
        for rows in side {
            // `Attended` sees to errors.
            let _ = rows.write(&mut self.sink);
            self.hand_off.release_side(rows.heap_bytes());
        }
    }

    /// Writes what belongs before `watermark`, or has waited long enough; everything without one.
    fn merge(&mut self, watermark: Option<Timestamp>) {
        let now = Instant::now();
        let mut oldest = self.lanes.iter().filter_map(VecDeque::front).map(|it| it.since);
        let is_overdue = oldest.any(|since| now.saturating_duration_since(since) >= MERGE_WAIT);
        let limit = watermark.filter(|_| !is_overdue);
        let (mut round, mut bytes) = (Vec::new(), Vec::new());
        for lane in &mut self.lanes {
            while let Some(whole) =
                lane.pop_front_if(|it| limit.is_none_or(|at| it.rows.end() <= at))
            {
                bytes.push(whole.bytes);
                round.push(whole.rows);
            }
            if let (Some(part), Some(limit)) = (lane.front_mut(), limit) {
                let mut before = RowBuffer::new(None);
                // The whole of it stays counted until the rest is taken.
                part.rows.take_before(SortKey::first_at(limit), &mut before);
                bytes.push(0);
                round.push(before);
            }
        }
        let mut last = self.merged;
        for rows in &round {
            self.late_rows += rows.rows_before(self.merged) as u64;
            last = last.max(rows.end());
        }
        self.merged = limit.map_or(last, |limit| last.max(limit));
        if self.hand_off.watch.is_over() {
            // Nobody asks what became of files any more, so that those are not kept of which no row will tell.
            round.iter().for_each(|rows| self.sink.left.add(&rows.tally()));
            return;
        }
        let hand_off = &self.hand_off;
        // `Attended` sees to errors.
        let _ = self.merger.merge_with(&mut round, &mut self.sink, |at, rows| {
            let mut rows = core::mem::replace(rows, RowBuffer::new(None));
            rows.clear();
            hand_off.release(bytes[at], rows);
        });
    }

    /// Tells what became of the rows so far.
    fn publish(&self) {
        let mut state = self.hand_off.lock();
        if !state.is_done {
            state.books.clone_from(self.sink.sink.books());
            state.removed = self.sink.sink.removed();
            state.left.clone_from(&self.sink.left);
            state.late_rows = self.late_rows;
            state.joins = Some(self.merger.statistics());
        }
    }

    fn end(mut self) {
        let ends = self.hand_off.lock().producers.iter().filter_map(|origin| origin.end).max();
        let end = ends.unwrap_or_else(clock::now);
        let _ = self.merger.finish(end, &mut self.sink);
        self.sink.attempt(|sink| sink.end(end));
        self.publish();
    }
}

fn work(state: &mut State, is_last: bool) -> Work {
    Work {
        queue: core::mem::take(&mut state.queue),
        side: core::mem::take(&mut state.side),
        watermark: state.watermark(),
        wants_roll: core::mem::take(&mut state.wants_roll),
        wants_flush: core::mem::take(&mut state.wants_flush),
        wants_keep: state.wants_keep.take(),
        is_last,
    }
}

/// A sink whose errors end nothing: they are told, and what it refused is in its books.
struct ForgivingSink<S> {
    hand_off: Arc<HandOff>,
    sink: S,
    on_failure: OnFailure,
    tell: Box<dyn FnMut(&str) + Send>,
    /// The kinds of errors that were told since all could be written.
    told: Vec<Option<ErrorKind>>,
    /// Since when not all can be written, and how many rows were written and refused before.
    failing: Option<Failing>,
    /// Rows that the sink had refused at its last error.
    refused: u64,
    /// Rows that came when there was no time left.
    left: RowTally,
}

/// A time in which rows are refused by the output.
struct Failing {
    since: Instant,
    written: u64,
    refused: u64,
}

impl<S: LiveSink> ForgivingSink<S> {
    /// Returns whether it went well.
    fn attempt(&mut self, work: impl FnOnce(&mut S) -> anyhow::Result<()>) -> bool {
        let result = work(&mut self.sink);
        if let Err(error) = &result {
            self.fail(error);
        }
        result.is_ok()
    }

    /// Says once rows are written again after some were refused; what is then in the way is told anew. A run whose logs have
    /// a hole is not told so if it is to end for it.
    fn recover(&mut self) {
        let books = self.sink.books();
        let is_over = |failing: &mut Failing| {
            failing.since.elapsed() >= RECOVERY && books.written.total() > failing.written
        };
        let Some(failing) = self.failing.take_if(is_over) else { return };
        let refused = books.refused.total();
        let missing = refused - failing.refused;
        // Rows that were refused without an error, while a log rested, are told now as well.
        self.refused = refused;
        self.told.clear();
        if self.on_failure == OnFailure::GoOn {
            let took = failing.since.elapsed().as_secs();
            let rows = number::rows(missing);
            (self.tell)(&format!(
                "the logs are written again after {took} s: {rows} of them are missing"
            ));
        }
    }

    fn fail(&mut self, error: &anyhow::Error) {
        // Where a log could not be renamed, for one, it goes on, and no row is lost.
        let books = self.sink.books();
        let (written, refused) = (books.written.total(), books.refused.total());
        let before = core::mem::replace(&mut self.refused, refused);
        let is_loss = refused > before;
        let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
        let kind = causes.next().map(io::Error::kind);
        let said = format!("{error:#}: {}", advice(kind));
        if !self.told.contains(&kind) {
            self.told.push(kind);
            (self.tell)(&said);
        }
        if is_loss {
            let now = Failing { since: Instant::now(), written, refused: before };
            // What was written behind a failure counts for the time in which nothing failed any more.
            self.failing.get_or_insert(now).written = written;
        }
        if is_loss && self.on_failure == OnFailure::End {
            self.hand_off.lock().failure.get_or_insert(said);
        }
    }
}

impl<S: LiveSink> RowSink for ForgivingSink<S> {
    type Error = anyhow::Error;

    #[inline]
    fn row(&mut self, log: usize, key: &SortKey, bytes: &[u8]) -> anyhow::Result<()> {
        if self.hand_off.watch.is_over() {
            self.left.add_row(log);
            return Ok(());
        }
        if let Err(error) = self.sink.row(log, key, bytes) {
            self.fail(&error);
        }
        Ok(())
    }
}

/// Says that the thread has ended, also where it panics.
struct Done(Arc<HandOff>);

impl Drop for Done {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if std::thread::panicking() {
            state.give_up("the thread that writes the logs panicked");
        }
        state.close();
        drop(state);
        self.0.room.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::watch::Watch;
    use crate::{Bounds, SinkBooks};

    /// A sink of which the test keeps the books.
    #[derive(Default)]
    struct Booked(SinkBooks);

    impl RowSink for Booked {
        type Error = anyhow::Error;

        fn row(&mut self, _: usize, _: &SortKey, _: &[u8]) -> anyhow::Result<()> {
            Ok(())
        }
    }

    impl LiveSink for Booked {
        fn books(&self) -> &SinkBooks {
            &self.0
        }
    }

    #[test]
    fn rows_that_are_missing_are_told_once() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&told);
        let hand_off = HandOff::new(1, Bounds::default(), Duration::ZERO, Arc::new(Watch::new()));
        let mut sink = ForgivingSink {
            hand_off: Arc::new(hand_off),
            sink: Booked::default(),
            on_failure: OnFailure::GoOn,
            tell: Box::new(move |said| tell.lock().unwrap().push(said.to_owned())),
            told: Vec::new(),
            failing: None,
            refused: 0,
            left: RowTally::default(),
        };
        for (at_error, resting) in [(3, 4), (5, 6)] {
            sink.sink.0.refused.add_rows(0, at_error);
            sink.attempt(|_| Err(io::Error::from(ErrorKind::StorageFull).into()));
            // Its log rests, without another error.
            sink.sink.0.refused.add_rows(0, resting);
            sink.sink.0.written.add_rows(0, 1);
            sink.failing.as_mut().unwrap().since -= RECOVERY;
            sink.recover();
        }
        let told = told.lock().unwrap();
        let missing: Vec<_> = told.iter().filter(|said| said.contains("missing")).collect();
        assert_eq!(missing.len(), 2, "{told:?}");
        assert!(missing[0].ends_with(": 7 rows of them are missing"), "{told:?}");
        assert!(missing[1].ends_with(": 11 rows of them are missing"), "{told:?}");
    }
}
