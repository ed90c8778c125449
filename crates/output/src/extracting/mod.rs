//! The thread that writes the content of files of live traffic, and the bounded hand-off to it.
//!
//! Whoever captures hands pieces over and never waits for the disk: where too much waits, or for too long, a
//! file is given up, and counted. Whoever writes the logs asks what became of a file, and waits for the
//! answer, since a row of `files` tells it; that, too, has an end where the disk hangs.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use netsniff_analysis::file::{Extract, Extraction, Stored};

use super::extracted::{BUFFER, ExtractedFiles, Output};
use super::log_writer::END_WAIT;

/// What may wait to be written.
#[derive(Clone, Copy, Debug)]
pub struct ContentBounds {
    /// Bytes of content that wait at most.
    pub bytes: usize,
    /// How long they may wait. The logs wait for twice as long before they take the disk to hang, and
    /// their own end ([`END_WAIT`]) has to be later than that.
    pub lag: Duration,
    /// How long the end may take.
    pub end_wait: Duration,
}

impl Default for ContentBounds {
    /// 64 MiB are half a second of a link of 1 Gbit/s that carries nothing but files.
    fn default() -> Self {
        Self { bytes: 64 << 20, lag: Duration::from_secs(2), end_wait: END_WAIT }
    }
}

/// The thread that writes the content of files of live traffic.
///
/// Dropping it instead of calling [`Self::finish`] lets the thread write what is left, and end.
#[derive(Debug)]
pub struct ExtractionWriter {
    hand_off: Arc<HandOff>,
    thread: Option<JoinHandle<()>>,
}

/// What came of the extraction beside what the correlator counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtractionOutcome {
    /// Files that were begun and not kept, since no row of the log `files` tells of them.
    pub untold: u64,
    /// Whether a file could not be written, of which the first was told.
    pub has_failed: bool,
    /// Why the end was not waited for, if so.
    pub failure: Option<String>,
}

/// Why files are not kept, each of which is told once.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    Overrun,
    Bound,
}

/// Shared by those who find files, the thread that writes them, and those who ask what became of them.
#[derive(Debug)]
struct HandOff {
    state: Mutex<State>,
    /// Something to write, or the end.
    work: Condvar,
    done: Condvar,
    directory: ExtractedFiles,
    bounds: ContentBounds,
}

#[derive(Debug, Default)]
struct State {
    tasks: VecDeque<Task>,
    /// When the task was handed over that the thread works on.
    working: Option<Instant>,
    held_bytes: usize,
    wants_end: bool,
    has_ended: bool,
    is_told: [bool; 2],
    news: Vec<&'static str>,
    untold: u64,
    spare: Vec<Vec<u8>>,
}

/// Buffers that are kept to be used again.
const SPARE_BUFFERS: usize = 16;

#[derive(Debug)]
struct Task {
    since: Instant,
    file: Arc<Carried>,
    what: ExtractionStep,
}

#[derive(Debug)]
enum ExtractionStep {
    /// Bytes that belong at this offset.
    Write(u64, Vec<u8>),
    /// The size, holes among it.
    End(u64),
    Keep,
    /// Nobody else has it any more: what is not kept is removed.
    Release,
}

/// A file on its way to the disk. No thread but the one that writes locks it.
#[derive(Debug)]
struct Carried {
    output: Mutex<Output>,
    verdict: OnceLock<Stored>,
}

impl ExtractionWriter {
    /// Starts the thread, which writes to `directory`.
    ///
    /// # Errors
    ///
    /// When there can be no thread.
    pub fn start(directory: ExtractedFiles, bounds: ContentBounds) -> anyhow::Result<Self> {
        let hand_off = Arc::new(HandOff {
            state: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
            directory,
            bounds,
        });
        let works = Arc::clone(&hand_off);
        let thread = std::thread::Builder::new()
            .name("extraction".to_owned())
            .spawn(move || works.run())
            .context("cannot start the thread that extracts files")?;
        Ok(Self { hand_off, thread: Some(thread) })
    }

    /// Where files are handed over.
    #[must_use]
    pub fn extract(&self) -> Arc<dyn Extract> {
        Arc::new(Extracting(Arc::clone(&self.hand_off)))
    }

    /// Sentences for the user, each once: why files are not kept.
    #[must_use]
    pub fn news(&self) -> Vec<&'static str> {
        core::mem::take(&mut self.hand_off.lock().news)
    }

    /// Waits until everything is written, and no longer than the bounds say. Nobody must have files any
    /// more.
    #[must_use]
    pub fn finish(mut self) -> ExtractionOutcome {
        let mut state = self.hand_off.lock();
        state.wants_end = true;
        self.hand_off.work.notify_one();
        let deadline = Instant::now() + self.hand_off.bounds.end_wait;
        while !state.has_ended {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.hand_off.done.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let (has_ended, untold) = (state.has_ended, state.untold);
        drop(state);
        let thread = self.thread.take_if(|_| has_ended);
        let failure = match thread.map(JoinHandle::join) {
            None => Some(
                "the disk did not take all of the extracted files in time: there may be some that no \
                 row tells of"
                    .to_owned(),
            ),
            Some(Err(_)) => Some("the thread that extracts files panicked".to_owned()),
            Some(Ok(())) => None,
        };
        let has_failed = failure.is_some() || self.hand_off.directory.has_failed();
        ExtractionOutcome { untold, has_failed, failure }
    }
}

impl Drop for ExtractionWriter {
    fn drop(&mut self) {
        self.hand_off.lock().wants_end = true;
        self.hand_off.work.notify_one();
    }
}

/// Begins files that another thread writes.
#[derive(Debug)]
struct Extracting(Arc<HandOff>);

impl Extracting {
    fn file(&self, name: &str) -> Option<HandedOver> {
        let Some(output) = self.0.directory.file(name) else {
            self.0.lock().report(Refusal::Bound);
            return None;
        };
        let file = Carried { output: Mutex::new(output), verdict: OnceLock::new() };
        Some(HandedOver {
            hand_off: Arc::clone(&self.0),
            file: Some(Arc::new(file)),
            waiting: Vec::new(),
            at: 0,
            is_told: OnceLock::new(),
        })
    }
}

impl Extract for Extracting {
    fn begin(&self, name: &str) -> Option<Box<dyn Extraction>> {
        Some(Box::new(self.file(name)?))
    }
}

/// A file that another thread writes.
#[derive(Debug)]
struct HandedOver {
    hand_off: Arc<HandOff>,
    /// `None` once it was given up.
    file: Option<Arc<Carried>>,
    /// Bytes that were not handed over yet, and where they belong.
    waiting: Vec<u8>,
    at: u64,
    /// Set once somebody has asked what became of it.
    is_told: OnceLock<()>,
}

impl Extraction for HandedOver {
    fn write(&mut self, offset: u64, data: &[u8]) {
        if self.file.is_none() {
            return;
        }
        if self.at.checked_add(self.waiting.len() as u64) != Some(offset) {
            self.flush();
        }
        if self.waiting.is_empty() {
            self.at = offset;
        }
        self.waiting.extend_from_slice(data);
        if self.waiting.len() >= BUFFER {
            self.flush();
        }
    }

    fn end(&mut self, size: u64) {
        self.flush();
        self.waiting = Vec::new();
        if let Some(file) = &self.file {
            self.hand_off.push(Arc::clone(file), ExtractionStep::End(size));
        }
    }

    fn keep(&self) -> Stored {
        self.is_told.get_or_init(|| ());
        self.file.as_ref().map_or(Stored::Overrun, |file| self.hand_off.keep(file))
    }

    fn refuse(&self) {
        self.is_told.get_or_init(|| ());
        self.hand_off.directory.close();
        self.hand_off.lock().report(Refusal::Bound);
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Self>() + size_of::<Carried>() + self.waiting.capacity()
    }
}

impl HandedOver {
    fn flush(&mut self) {
        let Some(file) = &self.file else { return };
        if self.waiting.is_empty() {
            return;
        }
        if !self.hand_off.write(file, self.at, &mut self.waiting) {
            self.waiting = Vec::new();
            self.release();
        }
    }

    fn release(&mut self) {
        if let Some(file) = self.file.take() {
            self.hand_off.push(file, ExtractionStep::Release);
        }
    }
}

impl Drop for HandedOver {
    fn drop(&mut self) {
        self.release();
        if self.is_told.get().is_none() {
            self.hand_off.lock().untold += 1;
        }
    }
}

impl HandOff {
    /// The state, whoever has panicked before.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over bytes of a file, and returns whether there was room. Afterwards `data` is empty.
    fn write(&self, file: &Arc<Carried>, at: u64, data: &mut Vec<u8>) -> bool {
        let mut state = self.lock();
        let is_within = state.held_bytes.saturating_add(data.len()) <= self.bounds.bytes;
        let is_in_time = state.lag().is_none_or(|lag| lag < self.bounds.lag);
        if !is_within || !is_in_time || state.has_ended {
            state.report(Refusal::Overrun);
            return false;
        }
        state.held_bytes += data.len();
        let empty = state.spare.pop().unwrap_or_default();
        let what = ExtractionStep::Write(at, core::mem::replace(data, empty));
        state.tasks.push_back(Task { since: Instant::now(), file: Arc::clone(file), what });
        self.work.notify_one();
        true
    }

    /// Hands over what takes no room to speak of, at most three of them for each file.
    fn push(&self, file: Arc<Carried>, what: ExtractionStep) {
        let mut state = self.lock();
        let task = Task { since: Instant::now(), file, what };
        if state.has_ended {
            drop(state);
            task.run();
            return;
        }
        state.tasks.push_back(task);
        self.work.notify_one();
    }

    /// Keeps a file that has ended, once it is written.
    fn keep(&self, file: &Arc<Carried>) -> Stored {
        let mut state = self.lock();
        let stored = loop {
            if let Some(stored) = file.verdict.get() {
                break *stored;
            }
            // Without any task nobody will tell: the thread has panicked.
            let Some(lag) = state.lag() else { break Stored::Failed };
            let left = (2 * self.bounds.lag).saturating_sub(lag);
            if left.is_zero() {
                break Stored::Overrun;
            }
            let waited = self.done.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        match stored {
            Stored::Overrun => state.report(Refusal::Overrun),
            Stored::Refused => state.report(Refusal::Bound),
            Stored::Whole | Stored::Failed => {}
        }
        drop(state);
        if stored == Stored::Whole {
            self.push(Arc::clone(file), ExtractionStep::Keep);
        }
        stored
    }

    /// Writes until the end.
    fn run(&self) {
        let _ended = Ended(self);
        while let Some(task) = self.take() {
            let data = task.run();
            let mut state = self.lock();
            state.working = None;
            if let Some(mut data) = data {
                state.held_bytes = state.held_bytes.saturating_sub(data.len());
                if state.spare.len() < SPARE_BUFFERS {
                    data.clear();
                    state.spare.push(data);
                }
            }
            drop(state);
            self.done.notify_all();
        }
    }

    /// Waits for something to do; `None` at the end.
    fn take(&self) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if let Some(task) = state.tasks.pop_front() {
                state.working = Some(task.since);
                return Some(task);
            }
            if state.wants_end {
                return None;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl State {
    /// For how long the oldest task has waited, the one among them that is worked on.
    fn lag(&self) -> Option<Duration> {
        let waiting = self.tasks.front().map(|task| task.since);
        Some(self.working.or(waiting)?.elapsed())
    }

    /// Has the user told, unless that was done.
    fn report(&mut self, why: Refusal) {
        let (is_told, text) = match why {
            Refusal::Overrun => (
                &mut self.is_told[0],
                "files come faster than the disk takes them: from now on some are not extracted, and \
                 counted; the capture goes on",
            ),
            Refusal::Bound => (
                &mut self.is_told[1],
                "a bound of all extracted files was reached (--extract-total, --extract-files): those \
                 that are too much are not kept, and counted; the capture goes on",
            ),
        };
        if !core::mem::replace(is_told, true) {
            self.news.push(text);
        }
    }
}

impl Task {
    /// Does it, and returns the buffer whose bytes were written.
    fn run(self) -> Option<Vec<u8>> {
        let Self { file, what, .. } = self;
        let mut output = file.output.lock().unwrap_or_else(PoisonError::into_inner);
        match what {
            ExtractionStep::Write(at, data) => {
                output.write(at, &data);
                return Some(data);
            }
            ExtractionStep::End(size) => {
                output.end(size);
                let _ = file.verdict.set(output.stored());
            }
            ExtractionStep::Keep => {
                output.keep();
            }
            ExtractionStep::Release => {}
        }
        None
    }
}

/// Says that the thread has ended, also where it panics.
struct Ended<'a>(&'a HandOff);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.has_ended = true;
        state.working = None;
        let left = core::mem::take(&mut state.tasks);
        drop(state);
        // Without this, what they release is removed, and what they keep, too.
        if !std::thread::panicking() {
            left.into_iter().for_each(|task| drop(task.run()));
        }
        self.0.done.notify_all();
    }
}

#[cfg(test)]
mod tests;
