//! Rows that a worker encoded, with the keys by which they are merged.

use std::sync::Arc;

use netsniff_packet::{Anonymizer, Timestamp};

use super::{Encode, RowSink, RowTally};
use crate::correlator::{Content, Fact};
use crate::log::index_of;
use crate::record::{Observer, Record, RecordAnonymizer, SortKey};

/// Encoded rows in one buffer.
#[derive(Debug)]
pub struct RowBuffer<E> {
    encoder: Option<E>,
    /// Stands between records and their encoding where they are to tell of nobody.
    anonymizer: Option<RecordAnonymizer>,
    rows: Vec<Row>,
    bytes: Vec<u8>,
    /// What rows without bytes hold.
    facts: Vec<Option<Fact>>,
    /// No row belongs before this time.
    earliest: Timestamp,
}

/// Where a row stands, in the output and in the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) key: SortKey,
    /// Log, counted in the list of logs; [`FACT`] for a fact.
    pub(super) log: u16,
    len: u32,
    /// Where its bytes begin, or which of the facts it is.
    start: u64,
}

/// What stands in place of a log where a row is a fact, which belongs to none.
pub(super) const FACT: u16 = u16::MAX;

/// Room for bytes and rows that an empty buffer keeps. A dozen of buffers go round between a worker
/// and the writer; without a bound each would become as large as the largest burst of rows.
const KEPT_BYTES: usize = 1 << 20;
const KEPT_ROWS: usize = 4096;

impl<E> RowBuffer<E> {
    /// An empty buffer for rows as `encoder` encodes them, or one that takes none where nobody wants them.
    #[must_use]
    pub const fn new(encoder: Option<E>) -> Self {
        Self {
            encoder,
            anonymizer: None,
            rows: Vec::new(),
            bytes: Vec::new(),
            facts: Vec::new(),
            earliest: Timestamp::MAX,
        }
    }

    /// Anonymises the records from here on, where there is an anonymizer.
    #[must_use]
    pub fn anonymized(mut self, anonymizer: Option<Arc<Anonymizer>>) -> Self {
        self.anonymizer = anonymizer.map(RecordAnonymizer::new);
        self
    }

    /// An empty buffer for rows of the same encoding that are not to be anonymised, since they were.
    #[must_use]
    pub fn same(&self) -> Self
    where
        E: Clone,
    {
        Self::new(self.encoder.clone())
    }

    /// Number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of all rows, for whoever bounds the memory that waits for the writer.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that the buffer holds, with room that is not used and with what its facts hold.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let facts = self.facts.iter().flatten().map(Fact::heap_bytes).sum::<usize>();
        self.rows.capacity() * size_of::<Row>()
            + self.bytes.capacity()
            + self.facts.capacity() * size_of::<Option<Fact>>()
            + facts
    }

    /// How many rows of which log it has, and facts.
    #[must_use]
    pub fn tally(&self) -> RowTally {
        let mut tally = RowTally::default();
        for row in &self.rows {
            if row.log != FACT {
                tally.add_row(usize::from(row.log));
                continue;
            }
            let fact = self.facts.get(row.start as usize).and_then(Option::as_ref);
            match fact.and_then(Fact::row) {
                _ if fact.is_some_and(Fact::is_look) => {}
                Some(log) => tally.add_row(log),
                None => tally.add_fact(),
            }
        }
        tally
    }

    /// Swaps rows and facts, but not how they are encoded.
    pub const fn swap_rows(&mut self, other: &mut Self) {
        core::mem::swap(&mut self.rows, &mut other.rows);
        core::mem::swap(&mut self.bytes, &mut other.bytes);
        core::mem::swap(&mut self.facts, &mut other.facts);
        core::mem::swap(&mut self.earliest, &mut other.earliest);
    }

    /// Gives back room of which less than a quarter is used: what waits is bounded by what it holds.
    pub fn trim(&mut self) {
        if self.bytes.capacity() / 4 > self.bytes.len() {
            self.bytes.shrink_to(self.bytes.len());
        }
        if self.rows.capacity() / 4 > self.rows.len() {
            self.rows.shrink_to(self.rows.len());
        }
        if self.facts.capacity() / 4 > self.facts.len() {
            self.facts.shrink_to(self.facts.len());
        }
    }

    /// Empties the buffer and keeps its memory, up to a bound.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.rows.shrink_to(KEPT_ROWS);
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.facts.clear();
        self.facts.shrink_to(KEPT_ROWS);
        self.earliest = Timestamp::MAX;
    }

    /// Sorts the rows by their keys. Workers do it, since the writer is one thread.
    pub fn sort(&mut self) {
        // Rows mostly come in order, which a run of comparisons shows faster than a sort.
        if !self.rows.is_sorted_by(|a, b| a.key <= b.key) {
            self.rows.sort_unstable_by_key(|row| row.key);
        }
    }

    /// Moves the rows that belong before `watermark` to `done`, sorted, in place of what it held;
    /// the others stay.
    pub fn take_before(&mut self, watermark: SortKey, done: &mut Self) {
        done.clear();
        // Asked after every few packets, while rows wait for the same watermark.
        if SortKey::first_at(self.earliest) >= watermark {
            return;
        }
        self.sort();
        let count = self.rows.partition_point(|row| row.key < watermark);
        self.swap_rows(done);
        for row in done.rows.drain(count..) {
            if row.log == FACT {
                let start = self.facts.len() as u64;
                self.facts.push(done.facts.get_mut(row.start as usize).and_then(Option::take));
                self.rows.push(Row { start, ..row });
                continue;
            }
            let start = self.bytes.len() as u64;
            let bytes = &done.bytes[row.start as usize..row.start as usize + row.len as usize];
            self.bytes.extend_from_slice(bytes);
            self.rows.push(Row { start, ..row });
        }
        let first = |rows: &[Row]| rows.first().map_or(Timestamp::MAX, |row| row.key.time);
        (self.earliest, done.earliest) = (first(&self.rows), first(&done.rows));
    }

    /// The time behind the last row, where they are sorted.
    #[must_use]
    pub fn end(&self) -> Timestamp {
        self.rows.last().map_or(Timestamp::MIN, |row| row.key.time.offset(1))
    }

    /// How many rows belong before `time`, where they are sorted.
    #[must_use]
    pub fn rows_before(&self, time: Timestamp) -> usize {
        self.rows.partition_point(|row| row.key.time < time)
    }

    /// Writes the rows in their order, without the facts.
    ///
    /// # Errors
    ///
    /// The first error of the sink; the rows after it are not written.
    pub fn write<S: RowSink>(&self, sink: &mut S) -> Result<(), S::Error> {
        let mut rows = self.rows.iter().filter(|row| row.log != FACT);
        rows.try_for_each(|row| sink.row(usize::from(row.log), &row.key, self.bytes_of(row)))
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The bytes of `row`, which must be one of this buffer's.
    pub(super) fn bytes_of(&self, row: &Row) -> &[u8] {
        let start = row.start as usize;
        self.bytes.get(start..start + row.len as usize).unwrap_or_default()
    }

    /// Takes out the fact that `row` is, which must be one of this buffer's.
    pub(super) fn take_fact(&mut self, row: &Row) -> Option<Fact> {
        self.facts.get_mut(row.start as usize)?.take()
    }
}

impl<E: Encode> Observer for RowBuffer<E> {
    #[inline]
    fn record<R: Record>(&mut self, key: &SortKey, record: &R) {
        let Some(encoder) = &self.encoder else { return };
        let log = const { index_of::<R>() as u16 };
        let start = self.bytes.len();
        match &mut self.anonymizer {
            None => encoder.encode(record, &mut self.bytes),
            Some(anonymizer) => encoder.encode(&anonymizer.record(record), &mut self.bytes),
        }
        let len = (self.bytes.len() - start) as u32;
        self.earliest = self.earliest.min(key.time);
        self.rows.push(Row { key: *key, log, len, start: start as u64 });
    }

    fn fact(&mut self, key: &SortKey, fact: Fact) {
        // What is extracted is counted, and kept or not, also where nobody wants rows.
        if self.encoder.is_none() && !matches!(fact.content, Content::File(_)) {
            return;
        }
        let start = self.facts.len() as u64;
        self.facts.push(Some(fact));
        self.earliest = self.earliest.min(key.time);
        self.rows.push(Row { key: *key, log: FACT, len: 0, start });
    }
}
