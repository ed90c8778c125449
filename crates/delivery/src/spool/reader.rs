//! The end of a spool at which rows go out, in batches.

use core::ops::Range;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::position::Place;
use super::record::{Found, Record};
use super::segment::{self, HEADER_MOST, RECORD_MOST, Segment};
use super::{Spool, State};
use crate::Identity;
use crate::identity::Row;

/// How much is sent at once.
#[derive(Clone, Copy, Debug)]
pub struct BatchBounds {
    /// Rows at most.
    pub rows: usize,
    /// Bytes of rows, beyond which no further one is taken.
    pub bytes: usize,
    /// How long rows wait for others.
    pub linger: Duration,
}

/// Rows of one run that are sent together.
#[derive(Debug)]
pub struct Batch {
    identity: Identity,
    segment: u64,
    bytes: Vec<u8>,
    rows: Vec<Span>,
}

/// Where a row stands in the bytes of its batch.
#[derive(Clone, Debug)]
struct Span {
    time: i64,
    seq: u64,
    log: Range<usize>,
    json: Range<usize>,
    /// Where it ends in the segment.
    end: u64,
}

impl Batch {
    /// Its rows.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|span| Row {
            identity: &self.identity,
            log: self.bytes.get(span.log.clone()).map_or("", |name| {
                // It was text when it was read.
                core::str::from_utf8(name).unwrap_or_default()
            }),
            seq: span.seq,
            time: span.time,
            json: self.bytes.get(span.json.clone()).unwrap_or_default(),
        })
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl Spool {
    /// The next rows, once there are enough of them or they have waited long enough; `None` at the end, or once the spool
    /// was given up.
    ///
    /// # Errors
    ///
    /// When a segment cannot be read.
    pub fn next(&self, bounds: &BatchBounds) -> io::Result<Option<Batch>> {
        loop {
            let Some((place, readable)) = self.wait(bounds) else { return Ok(None) };
            let batch = self.read(place, readable, bounds)?;
            if batch.is_some() {
                return Ok(batch);
            }
        }
    }

    /// Writes down that the rows of a batch between two numbers are done with.
    pub fn settled(&self, batch: &Batch, rows: Range<usize>, refused: u64) {
        let number = rows.len() as u64;
        if let Some(last) = rows.end.checked_sub(1).and_then(|last| batch.rows.get(last)) {
            let place = Place { segment: batch.segment, offset: last.end };
            self.settle(place, number - refused, refused);
        }
    }

    /// Waits for rows. Returns where they begin, and where what can be read of their segment ends.
    fn wait(&self, bounds: &BatchBounds) -> Option<(Place, u64)> {
        let mut state = self.lock();
        let mut since = None;
        loop {
            if state.is_given_up {
                return None;
            }
            let Some((place, segment)) = state.first() else {
                if state.is_closed {
                    return None;
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let is_enough = segment.readable.saturating_sub(place.offset) >= bounds.bytes as u64
                || segment.rows >= bounds.rows as u64;
            let since = *since.get_or_insert_with(Instant::now);
            let left = bounds.linger.saturating_sub(since.elapsed());
            if is_enough || segment.is_ended || state.is_closed || left.is_zero() {
                return Some((place, segment.readable));
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn read(&self, place: Place, readable: u64, bounds: &BatchBounds) -> io::Result<Option<Batch>> {
        let path = segment::path(&self.folder, place.segment);
        let file = segment::open(&path, File::options().read(true))?;
        let begin = piece(&file, 0, readable.min(HEADER_MOST as u64))?;
        let Some((identity, first)) = segment::begin(&begin) else {
            self.lose(place.segment, readable);
            return Ok(None);
        };
        let from = place.offset.max(first);
        let mut wanted = bounds.bytes as u64;
        loop {
            let length = wanted.min(readable.saturating_sub(from));
            let bytes = piece(&file, from, length)?;
            let (rows, is_damaged) = spans(&bytes, from, bounds);
            if !rows.is_empty() {
                return Ok(Some(Batch { identity, segment: place.segment, bytes, rows }));
            }
            if is_damaged || wanted >= RECORD_MOST || from + length >= readable {
                self.lose(place.segment, readable.saturating_sub(from));
                return Ok(None);
            }
            wanted = RECORD_MOST;
        }
    }

    /// Gives up what is left of a segment that cannot be read as it was written.
    fn lose(&self, number: u64, bytes: u64) {
        let mut state = self.lock();
        if state.is_given_up {
            return;
        }
        let Some(segment) = state.segments.get_mut(&number) else { return };
        let (rows, end) = (core::mem::take(&mut segment.rows), segment.readable);
        state.books.lost += rows;
        state.books.spooled -= rows;
        state.books.damaged_bytes += bytes;
        state.books.last_error = Some("a segment of the spool is damaged".to_owned());
        state.pass(&self.folder, Place { segment: number, offset: end });
    }
}

impl State {
    /// Where the first row is that was not delivered, and its segment.
    fn first(&self) -> Option<(Place, Segment)> {
        let place = self.position.place();
        let mut behind = self.segments.range(place.segment..);
        let (&number, &segment) = behind.find(|(_, segment)| segment.rows > 0)?;
        let offset = if number == place.segment { place.offset } else { 0 };
        Some((Place { segment: number, offset }, segment))
    }
}

fn piece(file: &File, from: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, from)?;
    Ok(bytes)
}

/// Where rows stand in bytes of a segment that begin at `from`, and whether what follows is none.
fn spans(bytes: &[u8], from: u64, bounds: &BatchBounds) -> (Vec<Span>, bool) {
    let (mut rows, mut at) = (Vec::new(), 0);
    while rows.len() < bounds.rows {
        match Record::read(bytes.get(at..).unwrap_or_default()) {
            Found::Whole(Record { time, seq, log, json }, size) => {
                let end = at + size;
                let json = end - json.len()..end;
                let log = json.start - log.len()..json.start;
                rows.push(Span { time, seq, log, json, end: from + end as u64 });
                at = end;
            }
            Found::Cut => return (rows, false),
            Found::Damaged => return (rows, true),
        }
    }
    (rows, false)
}
