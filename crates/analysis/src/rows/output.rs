//! From records to a sink in one thread.

use netsniff_packet::Timestamp;

use super::{Encode, Merger, RowBuffer, RowSink};
use crate::correlator::JoinStatistics;
use crate::limits::Limits;
use crate::record::{Connection, Fact, Observer, Record, Row, SortKey};

/// Observes records and facts, and writes to a sink what is complete.
///
/// Behind an error of the sink it writes nothing more; [`Self::check`] gives the error back.
#[derive(Debug)]
pub struct Output<S: RowSink, E> {
    waiting: RowBuffer<E>,
    complete: [RowBuffer<E>; 1],
    merger: Merger<E>,
    sink: S,
    error: Option<S::Error>,
}

impl<S: RowSink, E: Encode + Clone> Output<S, E> {
    /// Nothing observed yet. Records go through `rows`, which is empty.
    #[must_use]
    pub fn new(rows: RowBuffer<E>, merger: Merger<E>, sink: S) -> Self {
        let complete = [rows.same()];
        Self { waiting: rows, complete, merger, sink, error: None }
    }

    /// Rows as `encoder` encodes them, and what `limits` allow to be joined, on their way to `sink`.
    #[must_use]
    pub fn encoded(limits: &Limits, encoder: E, sink: S) -> Self {
        let merger = Merger::new(limits, Some(encoder.clone()), None);
        Self::new(RowBuffer::new(Some(encoder)), merger, sink)
    }

    /// The first error of the sink, once.
    ///
    /// # Errors
    ///
    /// That error.
    pub fn check(&mut self) -> Result<(), S::Error> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Writes what waits for the end of the input, which came at engine time `now`.
    ///
    /// # Errors
    ///
    /// The first error of the sink.
    pub fn finish(&mut self, now: Timestamp) -> Result<(), S::Error> {
        self.check()?;
        self.merger.finish(now, &mut self.sink)
    }

    /// What the facts of several flows amount to so far.
    #[must_use]
    pub fn joins(&self) -> JoinStatistics {
        self.merger.statistics()
    }

    /// Where the rows go.
    #[must_use]
    pub const fn sink(&self) -> &S {
        &self.sink
    }

    /// Ends it.
    #[must_use]
    pub fn into_sink(self) -> S {
        self.sink
    }
}

impl<S: RowSink, E: Encode + Clone> Observer for Output<S, E> {
    #[inline]
    fn record<R: Record>(&mut self, key: &SortKey, record: &R) {
        self.waiting.record(key, record);
    }

    fn fact(&mut self, key: &SortKey, connection: &Connection, fact: Box<dyn Fact>) {
        self.waiting.fact(key, connection, fact);
    }

    fn begun_row(
        &mut self,
        key: &SortKey,
        connection: &Connection,
        row: &dyn Row,
        fact: Box<dyn Fact>,
    ) {
        self.waiting.begun_row(key, connection, row, fact);
    }

    fn look(&mut self, key: &SortKey) {
        self.waiting.look(key);
    }

    fn complete(&mut self, watermark: SortKey) {
        let [complete] = &mut self.complete;
        self.waiting.take_before(watermark, complete);
        if complete.is_empty() || self.error.is_some() {
            return;
        }
        self.error = self.merger.merge(&mut self.complete, &mut self.sink).err();
    }
}
