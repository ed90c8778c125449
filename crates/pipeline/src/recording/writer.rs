//! The writing thread: full buffers in, files out.

use std::io::{self, ErrorKind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use netsniff_console::say;
use netsniff_packet::Timestamp;

use super::books::{Books, State, Tally};
use super::files::Files;

/// A buffer of whole blocks on its way to the disk.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) bytes: Vec<u8>,
    /// What is in it, file by file.
    pub(super) segments: Vec<Segment>,
    /// Whether all that was written until its end is to be readable at once.
    pub(super) flush: bool,
}

/// The part of a chunk that belongs to one file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Segment {
    /// Set where a file begins with it: the time of its first packet.
    pub(super) begins: Option<Timestamp>,
    pub(super) len: usize,
    pub(super) tally: Tally,
}

impl Chunk {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ..Self::default() }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.segments.clear();
        self.flush = false;
    }
}

/// Empty buffers. The one that came back last goes out first, since caches still hold it.
#[derive(Debug)]
pub(super) struct Pool {
    free: Mutex<Vec<Chunk>>,
    returned: Condvar,
}

impl Pool {
    /// So many buffers of so many bytes.
    pub(super) fn new(buffers: usize, bytes: usize) -> Self {
        let free = (0..buffers).map(|_| Chunk::with_capacity(bytes)).collect();
        Self { free: Mutex::new(free), returned: Condvar::new() }
    }

    /// A buffer, if one is free.
    pub(super) fn take(&self) -> Option<Chunk> {
        self.free().pop()
    }

    /// A buffer, as soon as one is free within the time.
    pub(super) fn wait(&self, patience: Duration) -> Option<Chunk> {
        let free = self.free();
        let waited = self.returned.wait_timeout_while(free, patience, |free| free.is_empty());
        waited.unwrap_or_else(PoisonError::into_inner).0.pop()
    }

    fn give_back(&self, mut chunk: Chunk) {
        chunk.clear();
        self.free().push(chunk);
        self.returned.notify_one();
    }

    fn free(&self) -> MutexGuard<'_, Vec<Chunk>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes what comes, until no more can come.
pub(super) fn write(mut files: Files, filled: &Receiver<Chunk>, free: &Pool, books: &Arc<Books>) {
    for chunk in filled {
        write_chunk(&mut files, &chunk, books);
        books.queued.fetch_sub(1, Ordering::Relaxed);
        free.give_back(chunk);
    }
    if books.state() == State::Recording
        && let Err(error) = files.end()
    {
        fail(&mut files, &error, books);
    }
}

fn write_chunk(files: &mut Files, chunk: &Chunk, books: &Books) {
    let mut rest = chunk.bytes.as_slice();
    for segment in &chunk.segments {
        let (bytes, behind) = rest.split_at_checked(segment.len).unwrap_or((rest, &[]));
        rest = behind;
        if books.state() != State::Recording {
            books.refuse(segment.tally);
        } else if let Err(error) = write_segment(files, segment, bytes) {
            books.refuse(segment.tally);
            fail(files, &error, books);
        }
    }
    if chunk.flush
        && books.state() == State::Recording
        && let Err(error) = files.flush()
    {
        fail(files, &error, books);
    }
}

fn write_segment(files: &mut Files, segment: &Segment, bytes: &[u8]) -> anyhow::Result<()> {
    if let Some(time) = segment.begins {
        files.next(time)?;
    }
    files.write(bytes, segment.tally)
}

/// Ends the recording, and says why.
fn fail(files: &mut Files, error: &anyhow::Error, books: &Books) {
    files.give_up();
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let remedy = match kind {
        // Whoever reads has enough.
        Some(ErrorKind::BrokenPipe) => return books.end(State::Closed, None),
        Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            "; free some space, or bound the recording with -b quota:SIZE or -b files:N"
        }
        _ => "",
    };
    let said = format!(
        "{error:#}{remedy}. What was recorded before is whole; packets from here on are counted as \
         refused"
    );
    say(&said);
    books.end(State::Failed, Some(said));
}
