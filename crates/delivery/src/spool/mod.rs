//! Rows on disk, and how far they were delivered.
//!
//! A spool is a folder of one target: segments, to the last of which rows are appended, and a position. A segment goes once
//! all of it was delivered. What was written survives the end of the process, however that comes; what the system had not
//! written yet is lost with the power. A segment is synchronised with the disk when it ends.

mod appender;
mod position;
mod reader;
mod record;
mod segment;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use netsniff_console::say;

pub use self::appender::{Appender, OnFull};
use self::position::{Place, Position};
pub use self::reader::{Batch, BatchBounds};
use self::segment::{Scan, Segment};
use crate::Books;
use crate::identity::Row;

/// The least that a spool may be bounded to.
pub const LEAST_BYTES: u64 = 1 << 20;
/// A segment is one of so many parts of the spool, so that room comes back piece by piece.
const SEGMENTS: u64 = 16;
/// The most bytes of a segment, which is read as a whole when a run begins.
const SEGMENT_MOST: u64 = 16 << 20;
/// Rows that a receiver will never take, with its reasons.
const REFUSED: &str = "refused.json";
/// The most bytes of that file.
const REFUSED_MOST: u64 = 64 << 20;

/// The rows that wait for one target.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    /// Bytes that all segments may take together.
    bound: u64,
    state: Mutex<State>,
    /// Rows came, room came, or the end.
    changed: Condvar,
    /// Held as long as the spool is in use.
    _lock: File,
}

#[derive(Debug)]
struct State {
    segments: BTreeMap<u64, Segment>,
    position: Position,
    /// Bytes of all segments.
    bytes: u64,
    refused: Option<File>,
    refused_bytes: u64,
    books: Books,
    /// When rows were last done with.
    progress: Instant,
    /// No more rows will come.
    is_closed: bool,
    /// What is not delivered yet stays.
    is_given_up: bool,
}

impl Spool {
    /// Opens the spool in a folder, which is made if need be, with what earlier runs left in it. `target` names it in the
    /// books.
    ///
    /// # Errors
    ///
    /// Where files cannot be read or written, and where another process uses it.
    pub fn open(folder: &Path, bound: u64, target: &str) -> anyhow::Result<Arc<Self>> {
        let opened = || {
            fs::create_dir_all(folder)?;
            let path = folder.join("lock");
            segment::open(&path, File::options().write(true).create(true))
        };
        let lock =
            opened().with_context(|| format!("cannot open the spool {}", folder.display()))?;
        if lock.try_lock().is_err() {
            bail!("the spool {} is in use by another process", folder.display());
        }
        let state = State::load(folder, target);
        let state = state.with_context(|| format!("cannot read the spool {}", folder.display()))?;
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Ok(Arc::new(Self { folder: folder.to_owned(), bound, state, changed, _lock: lock }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of a segment at most.
    fn segment_bytes(&self) -> u64 {
        (self.bound / SEGMENTS).clamp(LEAST_BYTES / SEGMENTS, SEGMENT_MOST)
    }

    /// The books so far.
    #[must_use]
    pub fn books(&self) -> Books {
        self.lock().books.clone()
    }

    /// Changes the books of batches.
    pub(crate) fn note(&self, note: impl FnOnce(&mut Books)) {
        let mut state = self.lock();
        if !state.is_given_up {
            note(&mut state.books);
        }
    }

    /// Says that no more rows will come.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Leaves what is not delivered yet where it is. From here on nothing changes any more.
    pub fn give_up(&self) {
        self.lock().is_given_up = true;
        self.changed.notify_all();
    }

    /// How long it is since rows were last done with, or since it was opened.
    #[must_use]
    pub fn idle(&self) -> Duration {
        self.lock().progress.elapsed()
    }

    /// Whether it was given up.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.lock().is_given_up
    }

    /// Waits for so long, or until it is given up; returns whether it was.
    pub(crate) fn pause(&self, length: Duration) -> bool {
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, length, |state| !state.is_given_up);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_given_up
    }

    /// Keeps a row that a receiver will never take, with its reason, as long as there is room for it.
    pub(crate) fn keep_refused(&self, row: &Row<'_>, why: &str) {
        let mut line = b"{\"reason\":".to_vec();
        // Text has a form in JSON always.
        line.extend_from_slice(serde_json::to_string(why).unwrap_or_default().as_bytes());
        line.extend_from_slice(b",\"row\":");
        row.with_identity(&mut line);
        line.extend_from_slice(b"}\n");
        let mut state = self.lock();
        if state.is_given_up || state.refused_bytes + line.len() as u64 > REFUSED_MOST {
            return;
        }
        match state.append_refused(&self.folder, &line) {
            Ok(()) => state.books.refused_kept += 1,
            Err(error) => state.books.last_error = Some(format!("cannot write {REFUSED}: {error}")),
        }
    }

    /// Writes down that rows up to a place are done with.
    fn settle(&self, place: Place, delivered: u64, refused: u64) {
        let mut state = self.lock();
        if state.is_given_up {
            return;
        }
        state.progress = Instant::now();
        state.books.delivered += delivered;
        state.books.refused_by_receiver += refused;
        state.books.spooled -= delivered + refused;
        if let Some(segment) = state.segments.get_mut(&place.segment) {
            segment.rows -= delivered + refused;
        }
        state.pass(&self.folder, place);
        drop(state);
        self.changed.notify_all();
    }
}

impl State {
    fn load(folder: &Path, target: &str) -> std::io::Result<Self> {
        let position = Position::open(&folder.join("position"))?;
        let mut state = Self {
            segments: BTreeMap::new(),
            bytes: 0,
            refused: None,
            refused_bytes: fs::metadata(folder.join(REFUSED)).map_or(0, |file| file.len()),
            books: Books { target: target.to_owned(), ..Books::default() },
            progress: Instant::now(),
            is_closed: false,
            is_given_up: false,
            position,
        };
        let place = state.position.place();
        for number in segment::numbers(folder)? {
            let path = segment::path(folder, number);
            if number < place.segment {
                fs::remove_file(path)?;
                continue;
            }
            let from = if number == place.segment { place.offset } else { 0 };
            let Scan { segment, damaged } = segment::scan(&path, from)?;
            if damaged > 0 {
                let shown = path.display();
                say(&format!("{shown} is damaged: {damaged} bytes of rows cannot be delivered"));
            }
            state.books.found += segment.rows;
            state.books.damaged_bytes += damaged;
            if segment.rows == 0 {
                fs::remove_file(path)?;
            } else {
                state.bytes += segment.file_bytes;
                state.segments.insert(number, segment);
            }
        }
        state.books.spooled = state.books.found;
        Ok(state)
    }

    /// Goes on to a place, and removes segments before it.
    fn pass(&mut self, folder: &Path, place: Place) {
        if let Err(error) = self.position.set(place) {
            // The next run delivers some rows again.
            self.books.last_error =
                Some(format!("cannot write the position of the spool: {error}"));
        }
        while let Some((&number, segment)) = self.segments.first_key_value() {
            let is_done = number < place.segment
                || number == place.segment && segment.is_ended && place.offset >= segment.readable;
            if !is_done {
                break;
            }
            self.bytes -= segment.file_bytes;
            self.segments.remove(&number);
            if let Err(error) = fs::remove_file(segment::path(folder, number)) {
                self.books.last_error =
                    Some(format!("cannot remove a segment of the spool: {error}"));
            }
        }
    }

    fn append_refused(&mut self, folder: &Path, line: &[u8]) -> std::io::Result<()> {
        use std::io::Write as _;
        if self.refused.is_none() {
            let path = folder.join(REFUSED);
            let file = segment::open(&path, File::options().create(true).append(true))?;
            self.refused = Some(file);
        }
        if let Some(file) = &mut self.refused {
            file.write_all(line)?;
            self.refused_bytes += line.len() as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
