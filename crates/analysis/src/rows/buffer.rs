//! Rows that a worker encoded, with the keys by which they are merged.

use std::sync::Arc;

use netsniff_packet::{Anonymizer, Timestamp};

use super::lists::place_of;
use super::{Encode, LogSet, RowSink, RowTally};
use crate::notice::Watch;
use crate::record::{
    BegunRow, Connection, Fact, LastColumns, Observer, Record, RecordAnonymizer, Row, RowEnd,
    SortKey,
};

/// Encoded rows in one buffer.
#[derive(Debug)]
pub struct RowBuffer<E> {
    encoder: Option<E>,
    /// Rows of other logs are not encoded.
    logs: LogSet,
    /// Stands between records and their encoding where they are to tell of nobody.
    anonymizer: Option<RecordAnonymizer>,
    /// Takes copies of records before they are anonymised, where they are looked through.
    watch: Option<Arc<Watch>>,
    rows: Vec<RowEntry>,
    bytes: Vec<u8>,
    /// Facts by their places, each until it is taken.
    facts: Vec<Option<FactOf>>,
    /// No row belongs before this time.
    earliest: Timestamp,
}

/// Where a row stands, in the output and in the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowEntry {
    pub(super) key: SortKey,
    pub(super) kind: Kind,
    len: u32,
    /// Where its bytes begin.
    start: u64,
}

/// What an entry is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A row of the log that counts so in the list of logs.
    Row(u16),
    /// One of the facts. Its bytes are the begin of the row whose last columns it makes, if it does.
    Fact(u32),
    /// It is time for a look.
    Look,
}

/// A fact with the flow that told it.
#[derive(Debug)]
pub(super) struct FactOf {
    pub(super) connection: Connection,
    pub(super) fact: Box<dyn Fact>,
    /// What is still to come of the row that came with it, if one did.
    pub(super) end: Option<RowEnd>,
}

impl FactOf {
    /// Bytes that it holds outside itself.
    fn heap_bytes(&self) -> usize {
        size_of_val(&*self.fact) + self.fact.heap_bytes()
    }
}

/// Room for bytes and rows that an empty buffer keeps. Dozens of buffers go round between workers
/// and whoever writes; without a bound each would become as large as the largest burst of rows.
const KEPT_BYTES: usize = 1 << 20;
const KEPT_ROWS: usize = 4096;

impl<E> RowBuffer<E> {
    /// An empty buffer for rows as `encoder` encodes them, or one that takes none where nobody wants them.
    #[must_use]
    pub const fn new(encoder: Option<E>) -> Self {
        Self {
            encoder,
            logs: LogSet::ALL,
            anonymizer: None,
            watch: None,
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

    /// Leaves copies of the records that `watch` wants, where there is one.
    #[must_use]
    pub fn watched(mut self, watch: Option<Arc<Watch>>) -> Self {
        self.watch = watch;
        self
    }

    /// Takes rows of these logs alone.
    #[must_use]
    pub const fn only(mut self, logs: LogSet) -> Self {
        self.logs = logs;
        self
    }

    /// An empty buffer for rows of the same logs and encoding that are not to be anonymised, since they were.
    #[must_use]
    pub fn same(&self) -> Self
    where
        E: Clone,
    {
        Self::new(self.encoder.clone()).only(self.logs)
    }

    /// Number of rows in the buffer.
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
        let facts = self.facts.iter().flatten().map(FactOf::heap_bytes).sum::<usize>();
        self.rows.capacity() * size_of::<RowEntry>()
            + self.bytes.capacity()
            + self.facts.capacity() * size_of::<Option<FactOf>>()
            + facts
    }

    /// How many rows of which log it has, and facts.
    #[must_use]
    pub fn tally(&self) -> RowTally {
        let mut tally = RowTally::default();
        for row in &self.rows {
            match row.kind {
                Kind::Row(log) => tally.add_row(usize::from(log)),
                Kind::Look => {}
                Kind::Fact(at) => {
                    let fact = self.facts.get(at as usize).and_then(Option::as_ref);
                    match fact.and_then(|it| it.end) {
                        Some(end) => tally.add_row(place_of(end.log)),
                        None => tally.add_fact(),
                    }
                }
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
            // What is out of order are runs: of timers, and of packets.
            self.rows.sort_by_key(|row| row.key);
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
        let later = done.rows.drain(count..);
        later.for_each(|row| self.take(row, &done.bytes, &mut done.facts));
        let first = |rows: &[RowEntry]| rows.first().map_or(Timestamp::MAX, |row| row.key.time);
        (self.earliest, done.earliest) = (first(&self.rows), first(&done.rows));
    }

    /// Adds the rows of `other` from its `first`th on.
    pub fn append(&mut self, other: Self, first: usize) {
        let Self { rows, bytes, mut facts, .. } = other;
        for row in rows.into_iter().skip(first) {
            self.earliest = self.earliest.min(row.key.time);
            self.take(row, &bytes, &mut facts);
        }
    }

    /// Takes a row with its bytes, and its fact if it is one, out of another buffer.
    fn take(&mut self, mut row: RowEntry, bytes: &[u8], facts: &mut [Option<FactOf>]) {
        if let Kind::Fact(at) = &mut row.kind {
            let fact = facts.get_mut(*at as usize).and_then(Option::take);
            *at = self.facts.len() as u32;
            self.facts.push(fact);
        }
        let start = self.bytes.len() as u64;
        self.bytes
            .extend_from_slice(&bytes[row.start as usize..row.start as usize + row.len as usize]);
        self.rows.push(RowEntry { start, ..row });
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
        self.rows.iter().try_for_each(|row| match row.kind {
            Kind::Row(log) => sink.row(usize::from(log), &row.key, self.bytes_of(row)),
            Kind::Fact(_) | Kind::Look => Ok(()),
        })
    }

    pub(super) fn entries(&self) -> &[RowEntry] {
        &self.rows
    }

    /// The bytes of `entry`, which must be one of this buffer's.
    pub(super) fn bytes_of(&self, entry: &RowEntry) -> &[u8] {
        let start = entry.start as usize;
        self.bytes.get(start..start + entry.len as usize).unwrap_or_default()
    }

    /// Takes out a fact by its place.
    pub(super) fn take_fact(&mut self, at: u32) -> Option<FactOf> {
        self.facts.get_mut(at as usize)?.take()
    }
}

impl<E: Encode> RowBuffer<E> {
    /// Enters what was appended from `start` on.
    #[inline]
    fn enter(&mut self, key: &SortKey, kind: Kind, start: usize) {
        let len = (self.bytes.len() - start) as u32;
        self.earliest = self.earliest.min(key.time);
        self.rows.push(RowEntry { key: *key, kind, len, start: start as u64 });
    }

    fn enter_fact(&mut self, key: &SortKey, fact: FactOf, start: usize) {
        let at = self.facts.len() as u32;
        self.facts.push(Some(fact));
        self.enter(key, Kind::Fact(at), start);
    }

    /// Enters a copy of a record behind it, where somebody looks through records.
    #[cold]
    fn sight<R: Record>(&mut self, watch: &Watch, key: &SortKey, record: &R) {
        if let Some(sighting) = watch.sight(record) {
            let (connection, fact) = (Connection::NONE, Box::new(sighting));
            self.enter_fact(key, FactOf { connection, fact, end: None }, self.bytes.len());
        }
    }

    /// Takes a row that is encoded up to its last columns, with these.
    pub(super) fn finish_row(&mut self, key: &SortKey, begun: &[u8], last: &LastColumns<'_>) {
        let Some(encoder) = &self.encoder else { return };
        let start = self.bytes.len();
        self.bytes.extend_from_slice(begun);
        columns_of(encoder, &mut self.anonymizer, last, &mut self.bytes);
        encoder.end(last.log(), start, &mut self.bytes);
        self.enter(key, Kind::Row(place_of(last.log()) as u16), start);
    }
}

/// Appends columns, which are pseudonyms where an anonymizer stands before their encoding.
#[inline]
fn columns_of<E: Encode, R: Record>(
    encoder: &E,
    anonymizer: &mut Option<RecordAnonymizer>,
    record: &R,
    out: &mut Vec<u8>,
) {
    match anonymizer {
        None => encoder.columns(record, out),
        Some(anonymizer) => encoder.columns(&anonymizer.record(record), out),
    }
}

impl<E: Encode> Observer for RowBuffer<E> {
    #[inline]
    fn record<R: Record>(&mut self, key: &SortKey, record: &R) {
        let Some(encoder) = &self.encoder else { return };
        let log = place_of(record.log());
        if self.logs.contains(log) {
            let start = self.bytes.len();
            encoder.begin(record, Some(key.time), &mut self.bytes);
            columns_of(encoder, &mut self.anonymizer, record, &mut self.bytes);
            encoder.end(record.log(), start, &mut self.bytes);
            self.enter(key, Kind::Row(log as u16), start);
        }
        if let Some(watch) = self.watch.clone() {
            self.sight(&watch, key, record);
        }
    }

    fn fact(&mut self, key: &SortKey, connection: &Connection, fact: Box<dyn Fact>) {
        if self.encoder.is_some() || fact.has_effects() {
            let fact = FactOf { connection: *connection, fact, end: None };
            self.enter_fact(key, fact, self.bytes.len());
        }
    }

    fn begun_row(
        &mut self,
        key: &SortKey,
        connection: &Connection,
        row: &dyn Row,
        fact: Box<dyn Fact>,
    ) {
        let start = self.bytes.len();
        let begun = BegunRow { connection, row };
        let mut end = Some(begun.end());
        if let Some(encoder) = &self.encoder {
            // A row that nobody wants leaves its fact, which others may be joined with.
            end = end.filter(|end| self.logs.contains(place_of(end.log)));
            if end.is_some() {
                encoder.begin(&begun, Some(key.time), &mut self.bytes);
                columns_of(encoder, &mut self.anonymizer, &begun, &mut self.bytes);
            }
        } else if !fact.has_effects() {
            return;
        }
        let fact = FactOf { connection: *connection, fact, end };
        self.enter_fact(key, fact, start);
        if let Some(watch) = self.watch.clone().filter(|_| self.encoder.is_some()) {
            self.sight(&watch, key, &begun);
        }
    }

    fn unwritten<R: Record>(&mut self, key: &SortKey, record: &R) {
        if let Some(watch) = self.watch.clone().filter(|_| self.encoder.is_some()) {
            self.sight(&watch, key, record);
        }
    }

    fn look(&mut self, key: &SortKey) {
        if self.encoder.is_some() {
            self.enter(key, Kind::Look, self.bytes.len());
        }
    }
}
