//! Records and facts on their way to whoever takes what is complete: another thread, or a sink in this one.

use netsniff_packet::Timestamp;

use super::{Encode, Merger, RowBuffer, RowSink};
use crate::correlator::JoinStatistics;
use crate::limits::Limits;
use crate::record::{Connection, Fact, Observer, Record, Row, SortKey};

/// Takes rows once they are complete.
pub trait TakeComplete<E> {
    /// Takes from `waiting` what belongs before `watermark` ([`RowBuffer::take_before`]).
    fn take_complete(&mut self, waiting: &mut RowBuffer<E>, watermark: SortKey);
}

/// Observes records and facts, and lets `T` take them as they become complete.
#[derive(Debug)]
pub struct Collector<E, T> {
    waiting: RowBuffer<E>,
    /// Takes what is complete.
    pub taker: T,
}

impl<E, T> Collector<E, T> {
    /// Nothing observed yet. Records go through `rows`, which is empty.
    #[must_use]
    pub const fn new(rows: RowBuffer<E>, taker: T) -> Self {
        Self { waiting: rows, taker }
    }
}

impl<E, T: TakeComplete<E>> Collector<E, T> {
    /// Goes on with `rows`, which were observed elsewhere and belong behind all that were observed here.
    pub fn go_on_with(&mut self, rows: RowBuffer<E>) {
        self.taker.take_complete(&mut self.waiting, SortKey::END);
        self.waiting = rows;
    }
}

impl<E: Encode, T: TakeComplete<E>> Observer for Collector<E, T> {
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

    fn unwritten<R: Record>(&mut self, key: &SortKey, record: &R) {
        self.waiting.unwritten(key, record);
    }

    fn look(&mut self, key: &SortKey) {
        self.waiting.look(key);
    }

    fn complete(&mut self, watermark: SortKey) {
        self.taker.take_complete(&mut self.waiting, watermark);
    }
}

impl<S: RowSink, E: Encode> Collector<E, Merging<S, E>> {
    /// Writes `rows` among those that are observed from here on, each at its place. They were observed elsewhere, none of
    /// them belongs before what was complete so far, and all before the end of the input.
    pub fn put_beside(&mut self, mut rows: RowBuffer<E>) {
        rows.sort();
        let before = self.taker.beside.replace((rows, 0));
        if let Some((left, position)) = before {
            self.waiting.append(left, position);
        }
    }
}

/// Writes what is complete to a sink, with the rows that facts make together.
///
/// Behind an error of the sink it writes nothing more; [`Output::check`] gives the error back.
#[derive(Debug)]
pub struct Merging<S: RowSink, E> {
    complete: [RowBuffer<E>; 1],
    /// Rows of elsewhere, sorted, with the position of the next one.
    beside: Option<(RowBuffer<E>, usize)>,
    merger: Merger<E>,
    sink: S,
    error: Option<S::Error>,
}

/// From records to a sink in one thread.
pub type Output<S, E> = Collector<E, Merging<S, E>>;

impl<S: RowSink, E: Encode + Clone> Output<S, E> {
    /// Nothing observed yet. Records go through `rows`, which is empty, and `merger` to `sink`.
    #[must_use]
    pub fn to_sink(rows: RowBuffer<E>, merger: Merger<E>, sink: S) -> Self {
        let complete = [rows.same()];
        Self::new(rows, Merging { complete, beside: None, merger, sink, error: None })
    }

    /// Rows as `encoder` encodes them, and what `limits` allow to be joined, on their way to `sink`.
    #[must_use]
    pub fn encoded(limits: &Limits, encoder: E, sink: S) -> Self {
        let merger = Merger::new(limits, Some(encoder.clone()), None);
        Self::to_sink(RowBuffer::new(Some(encoder)), merger, sink)
    }

    /// The first error of the sink, once.
    ///
    /// # Errors
    ///
    /// That error.
    pub fn check(&mut self) -> Result<(), S::Error> {
        self.taker.error.take().map_or(Ok(()), Err)
    }

    /// Lets whoever reads along see the rows that are complete.
    ///
    /// # Errors
    ///
    /// The first error of the sink, once.
    pub fn publish(&mut self) -> Result<(), S::Error> {
        self.check()?;
        self.taker.sink.publish()
    }

    /// Writes what waits for the end of the input, which came at engine time `now`.
    ///
    /// # Errors
    ///
    /// The first error of the sink.
    pub fn finish(&mut self, now: Timestamp) -> Result<(), S::Error> {
        self.check()?;
        self.taker.merger.finish(now, &mut self.taker.sink)
    }

    /// What the facts of several flows amount to so far.
    #[must_use]
    pub fn joins(&self) -> JoinStatistics {
        self.taker.merger.statistics()
    }

    /// Where the rows go.
    #[must_use]
    pub const fn sink(&self) -> &S {
        &self.taker.sink
    }

    /// Ends the output, and returns where it went.
    #[must_use]
    pub fn into_sink(self) -> S {
        self.taker.sink
    }
}

impl<S: RowSink, E: Encode> TakeComplete<E> for Merging<S, E> {
    fn take_complete(&mut self, waiting: &mut RowBuffer<E>, watermark: SortKey) {
        if self.beside.is_some() {
            return self.take_with_beside(waiting, watermark);
        }
        let [complete] = &mut self.complete;
        waiting.take_before(watermark, complete);
        if complete.is_empty() || self.error.is_some() {
            return;
        }
        self.error = self.merger.merge(&mut self.complete, &mut self.sink).err();
    }
}

impl<S: RowSink, E: Encode> Merging<S, E> {
    #[cold]
    fn take_with_beside(&mut self, waiting: &mut RowBuffer<E>, watermark: SortKey) {
        let [complete] = &mut self.complete;
        waiting.take_before(watermark, complete);
        let Some((beside, position)) = &mut self.beside else { return };
        if self.error.is_none() {
            let from = (&mut *beside, *position);
            match self.merger.merge_beside(complete, from, watermark, &mut self.sink) {
                Ok(behind) => *position = behind,
                Err(error) => self.error = Some(error),
            }
        }
        if *position == beside.len() {
            self.beside = None;
        }
    }
}
