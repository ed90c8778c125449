//! The end of a spool at which rows come in.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use netsniff_console::say;

use super::record::{MOST, Record};
use super::segment::{self, Segment};
use super::{Spool, State};
use crate::Identity;

/// Bytes of rows that are gathered before they are written.
const PIECE: usize = 64 << 10;
/// How long there is no room before it is said.
const PATIENCE: Duration = Duration::from_secs(2);

/// What becomes of rows for which there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFull {
    /// They wait until there is room, and so does whoever makes them.
    Wait,
    /// They are refused and counted.
    Refuse,
}

/// Appends rows to a spool.
#[derive(Debug)]
pub struct Appender {
    spool: Arc<Spool>,
    on_full: OnFull,
    header: Vec<u8>,
    /// Rows that were not written yet, and their number.
    waiting: Vec<u8>,
    rows: u64,
    open: Option<Open>,
    /// What was said.
    has_told_wait: bool,
    has_told_refusal: bool,
}

/// The segment that is written.
#[derive(Debug)]
struct Open {
    number: u64,
    file: File,
    bytes: u64,
}

impl Appender {
    /// Appends rows of a run.
    #[must_use]
    pub fn new(spool: Arc<Spool>, identity: &Identity, on_full: OnFull) -> Self {
        Self {
            spool,
            on_full,
            header: segment::header(identity),
            waiting: Vec::new(),
            rows: 0,
            open: None,
            has_told_wait: false,
            has_told_refusal: false,
        }
    }

    /// Appends a row: `json` is an object, `time` when it was made, `seq` its number in the log.
    ///
    /// # Errors
    ///
    /// When rows cannot be written; they are counted as refused.
    pub fn row(&mut self, log: &str, seq: u64, time: i64, json: &[u8]) -> anyhow::Result<()> {
        let before = self.waiting.len();
        Record { time, seq, log, json }.append(&mut self.waiting);
        self.rows += 1;
        if self.waiting.len() - before > MOST {
            self.waiting.truncate(before);
            self.refuse(1);
            return Ok(());
        }
        if self.waiting.len() < PIECE { Ok(()) } else { self.flush() }
    }

    /// Writes what waits.
    ///
    /// # Errors
    ///
    /// When it cannot be written; the rows are counted as refused.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let most = self.spool.segment_bytes();
        let length = self.waiting.len() as u64;
        if self.open.as_ref().is_some_and(|open| open.bytes + length > most) {
            self.end_segment();
        }
        if !self.has_room(length + self.header.len() as u64) {
            self.refuse(self.rows);
            return Ok(());
        }
        let result = self.write();
        if result.is_err() {
            self.end_segment();
            self.refuse(self.rows);
        }
        result.with_context(|| format!("cannot write to the spool {}", self.spool.folder.display()))
    }

    /// Writes what waits, and says that no more rows will come.
    ///
    /// # Errors
    ///
    /// As [`Self::flush`].
    pub fn finish(&mut self) -> anyhow::Result<()> {
        let result = self.flush();
        self.end_segment();
        self.spool.close();
        result
    }

    fn write(&mut self) -> io::Result<()> {
        if self.open.is_none() {
            self.open = Some(self.begin_segment()?);
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        if let Err(error) = open.file.write_all_at(&self.waiting, open.bytes) {
            // Half a row is no row, and room for others.
            let _ = open.file.set_len(open.bytes);
            return Err(error);
        }
        open.bytes += self.waiting.len() as u64;
        let (number, bytes, added) = (open.number, open.bytes, self.waiting.len() as u64);
        let rows = core::mem::take(&mut self.rows);
        self.waiting.clear();
        let mut state = self.spool.lock();
        state.bytes += added;
        state.books.made += rows;
        state.books.spooled += rows;
        let segment = state.segments.entry(number).or_default();
        segment.rows += rows;
        (segment.readable, segment.file_bytes) = (bytes, bytes);
        drop(state);
        self.spool.changed.notify_all();
        Ok(())
    }

    fn begin_segment(&self) -> io::Result<Open> {
        let mut state = self.spool.lock();
        let last = state.segments.last_key_value().map_or(0, |(&number, _)| number);
        let number = last.max(state.position.place().segment) + 1;
        let path = segment::path(&self.spool.folder, number);
        let file = File::options().write(true).create_new(true).open(&path)?;
        if let Err(error) = file.write_all_at(&self.header, 0) {
            // Its number is still free.
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        let bytes = self.header.len() as u64;
        state.bytes += bytes;
        let segment = Segment { readable: bytes, file_bytes: bytes, ..Segment::default() };
        state.segments.insert(number, segment);
        Ok(Open { number, file, bytes })
    }

    fn end_segment(&mut self) {
        let Some(open) = self.open.take() else { return };
        // Where it fails, rows are as safe as those of a segment that goes on.
        let _ = open.file.sync_data();
        let mut state = self.spool.lock();
        if let Some(segment) = state.segments.get_mut(&open.number) {
            segment.is_ended = true;
        }
        let place = state.position.place();
        if place.segment >= open.number {
            // It was delivered already, and nobody comes back to it.
            state.pass(&self.spool.folder, place);
        }
        drop(state);
        self.spool.changed.notify_all();
    }

    /// Whether there is room, for which it waits where it may.
    fn has_room(&mut self, wanted: u64) -> bool {
        let bound = self.spool.bound;
        let is_full = |state: &State| state.bytes + wanted > bound && !state.is_given_up;
        let mut state = self.spool.lock();
        if self.on_full == OnFull::Wait && wanted <= bound {
            let begun = Instant::now();
            while is_full(&state) {
                let waited = self.spool.changed.wait_timeout(state, PATIENCE);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                if begun.elapsed() >= PATIENCE && !core::mem::replace(&mut self.has_told_wait, true)
                {
                    let target = &state.books.target;
                    say(&format!(
                        "the spool for {target} is full: the analysis waits for the receiver"
                    ));
                }
            }
        }
        state.bytes + wanted <= bound
    }

    /// Counts the last `rows` that wait as refused.
    fn refuse(&mut self, rows: u64) {
        let mut state = self.spool.lock();
        state.books.made += rows;
        state.books.refused_full += rows;
        self.rows -= rows;
        if self.rows == 0 {
            self.waiting.clear();
        }
        if !core::mem::replace(&mut self.has_told_refusal, true) {
            let target = &state.books.target;
            say(&format!(
                "the spool for {target} has no room: from now on rows are refused and counted"
            ));
        }
    }
}
