//! One order out of the buffers of many workers, and what only shows there.

use core::cmp::Reverse;
use std::sync::Arc;

use netsniff_packet::{Anonymizer, Timestamp};

use super::buffer::{FactOf, Kind, RowEntry};
use super::{Encode, LogSet, RowBuffer, RowSink, joins};
use crate::correlator::{Correlator, JoinStatistics, JoinedRow};
use crate::limits::Limits;
use crate::notice::{Notices, Sighting, Watch};
use crate::record::{Connection, LastColumns, Observer as _, SortKey};

/// Writes the rows of many buffers in one order, with those that their facts make together.
#[derive(Debug)]
pub struct Merger<E> {
    correlator: Correlator,
    /// Rows of the correlator on their way.
    joined: RowBuffer<E>,
    /// What rows of joins are looked through for, too.
    watch: Option<Arc<Watch>>,
}

impl<E: Encode> Merger<E> {
    /// Nothing was written yet.
    #[must_use]
    pub fn new(limits: &Limits, encoder: Option<E>, anonymizer: Option<Arc<Anonymizer>>) -> Self {
        Self {
            correlator: Correlator::new(limits, joins()),
            joined: RowBuffer::new(encoder).anonymized(anonymizer),
            watch: None,
        }
    }

    /// Makes rows of what `watch` finds, where there is one.
    #[must_use]
    pub fn watched(mut self, watch: Option<Arc<Watch>>) -> Self {
        if let Some(watch) = &watch {
            self.correlator.add(Box::new(Notices::new(watch)));
        }
        self.watch = watch;
        self
    }

    /// Makes rows of these logs alone.
    #[must_use]
    pub fn only(mut self, logs: LogSet) -> Self {
        self.joined = self.joined.only(logs);
        self
    }

    /// Writes the rows of all `buffers`, each sorted, to `sink` in the order of their keys.
    ///
    /// # Errors
    ///
    /// The first error of the sink; the rows after it are not written.
    pub fn merge<S: RowSink>(
        &mut self,
        buffers: &mut [RowBuffer<E>],
        sink: &mut S,
    ) -> Result<(), S::Error> {
        self.merge_with(buffers, sink, |_, _| {})
    }

    /// The same, and gives back each buffer with its number as soon as its last row is written.
    ///
    /// # Errors
    ///
    /// The first error of the sink; the rows after it are not written.
    pub fn merge_with<S: RowSink>(
        &mut self,
        buffers: &mut [RowBuffer<E>],
        sink: &mut S,
        mut done: impl FnMut(usize, &mut RowBuffer<E>),
    ) -> Result<(), S::Error> {
        // The next row of each buffer that has one left, the lowest key last.
        let mut heads: Vec<Head> =
            (0..buffers.len()).filter_map(|buffer| head(buffers, buffer, 0)).collect();
        heads.sort_unstable_by_key(|head| Reverse(head.key));
        for (at, empty) in buffers.iter_mut().enumerate().filter(|(_, it)| it.is_empty()) {
            done(at, empty);
        }
        while let Some(lead) = heads.pop() {
            // The leading buffer goes on until another one is lower, so that buffers whose times
            // hardly overlap cost one comparison a row.
            let limit = heads.last().map(|head| head.key);
            let mut position = lead.position;
            let buffer = &mut buffers[lead.buffer];
            while let Some(&row) = buffer.entries().get(position)
                && limit.is_none_or(|limit| row.key <= limit)
            {
                self.row(buffer, &row, sink)?;
                position += 1;
            }
            match head(buffers, lead.buffer, position) {
                Some(next) => {
                    let at = heads.partition_point(|head| head.key > next.key);
                    heads.insert(at, next);
                }
                None => done(lead.buffer, &mut buffers[lead.buffer]),
            }
        }
        Ok(())
    }

    /// Writes the rows of `own`, and of `beside` those from `position` on that belong before `watermark`. Both are sorted.
    /// Returns the position behind.
    ///
    /// # Errors
    ///
    /// The first error of the sink; the rows after it are not written.
    pub fn merge_beside<S: RowSink>(
        &mut self,
        own: &mut RowBuffer<E>,
        (beside, mut position): (&mut RowBuffer<E>, usize),
        watermark: SortKey,
        sink: &mut S,
    ) -> Result<usize, S::Error> {
        let mut own_position = 0;
        loop {
            let next = beside.entries().get(position).filter(|row| row.key < watermark).copied();
            match (own.entries().get(own_position).copied(), next) {
                (Some(row), next) if next.is_none_or(|next| row.key <= next.key) => {
                    self.row(own, &row, sink)?;
                    own_position += 1;
                }
                (_, Some(next)) => {
                    self.row(beside, &next, sink)?;
                    position += 1;
                }
                (_, None) => return Ok(position),
            }
        }
    }

    /// Writes what is left once the input has ended, at engine time `now`.
    ///
    /// # Errors
    ///
    /// The first error of the sink.
    pub fn finish<S: RowSink>(&mut self, now: Timestamp, sink: &mut S) -> Result<(), S::Error> {
        let joined = self.correlator.finish(now);
        let sighted = take_rows(&mut self.joined, joined, self.watch.as_deref());
        self.look_through(sighted);
        self.write_joined(sink)
    }

    /// What the facts amount to so far.
    #[must_use]
    pub fn statistics(&self) -> JoinStatistics {
        self.correlator.statistics()
    }

    #[inline]
    fn row<S: RowSink>(
        &mut self,
        buffer: &mut RowBuffer<E>,
        entry: &RowEntry,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        match entry.kind {
            Kind::Row(log) => sink.row(usize::from(log), &entry.key, buffer.bytes_of(entry)),
            Kind::Fact(at) => {
                let Some(fact) = buffer.take_fact(at) else { return Ok(()) };
                self.join(&entry.key, fact, buffer.bytes_of(entry));
                self.write_joined(sink)
            }
            Kind::Look => {
                let joined = self.correlator.look(&entry.key);
                let sighted = take_rows(&mut self.joined, joined, self.watch.as_deref());
                self.look_through(sighted);
                self.write_joined(sink)
            }
        }
    }

    /// Makes rows of a fact, of which one may be begun.
    fn join(&mut self, key: &SortKey, told: FactOf, begun: &[u8]) {
        let FactOf { connection, fact, end } = told;
        let (columns, rows) = self.correlator.fact(key, &connection, &*fact);
        if let Some(end) = end {
            let columns = columns.as_deref();
            self.joined.finish_row(key, begun, &LastColumns { end, columns });
        }
        let sighted = take_rows(&mut self.joined, rows, self.watch.as_deref());
        self.look_through(sighted);
    }

    /// Looks through the rows of joins. What is found in them is looked through no more.
    fn look_through(&mut self, sighted: Vec<(SortKey, Sighting)>) {
        for (key, sighting) in sighted {
            let (_, rows) = self.correlator.fact(&key, &Connection::NONE, &sighting);
            take_rows(&mut self.joined, rows, None);
        }
    }

    /// Writes the rows that the correlator made, which come in order.
    fn write_joined<S: RowSink>(&mut self, sink: &mut S) -> Result<(), S::Error> {
        self.joined.write(sink)?;
        self.joined.clear();
        Ok(())
    }
}

/// Encodes rows of joins, and returns copies of those that `watch` wants.
fn take_rows<E: Encode>(
    buffer: &mut RowBuffer<E>,
    rows: impl Iterator<Item = JoinedRow>,
    watch: Option<&Watch>,
) -> Vec<(SortKey, Sighting)> {
    let mut sighted = Vec::new();
    for joined in rows {
        buffer.record(&joined.key, &joined.whole());
        let sighting = watch.and_then(|watch| watch.sight(&joined.whole()));
        sighted.extend(sighting.map(|sighting| (joined.key, sighting)));
    }
    sighted
}

/// The next row of one buffer.
struct Head {
    key: SortKey,
    buffer: usize,
    position: usize,
}

fn head<E>(buffers: &[RowBuffer<E>], buffer: usize, position: usize) -> Option<Head> {
    let row = buffers.get(buffer)?.entries().get(position)?;
    Some(Head { key: row.key, buffer, position })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::uid::Uid;
    use crate::log::Weird;
    use crate::record::{FieldInfo, Phase, Record, Value, Visitor};

    /// Encodes the name of a row alone.
    #[derive(Clone, Copy, Debug)]
    struct Names;

    impl Encode for Names {
        fn columns<R: Record>(&self, record: &R, out: &mut Vec<u8>) {
            record.visit(&mut Name(out));
        }
    }

    struct Name<'a>(&'a mut Vec<u8>);

    impl Visitor for Name<'_> {
        fn field(&mut self, _: usize, info: &'static FieldInfo, value: Value<'_>) {
            if let (Value::Str(name), "name") = (value, info.name) {
                self.0.extend_from_slice(name.as_bytes());
            }
        }
    }

    /// Times and names of the rows that came.
    #[derive(Default)]
    struct Came(Vec<String>);

    impl RowSink for Came {
        type Error = core::convert::Infallible;

        fn row(&mut self, log: usize, key: &SortKey, bytes: &[u8]) -> Result<(), Self::Error> {
            assert_eq!(crate::rows::LOGS[log].path, "weird");
            let seconds = key.time.nanos() / 1_000_000_000;
            self.0.push(format!("{seconds} {}", String::from_utf8_lossy(bytes)));
            Ok(())
        }
    }

    /// A record whose name tells its key.
    fn add(buffer: &mut RowBuffer<Names>, time: i64, phase: Phase, ordinal: u64, number: u32) {
        let time = Timestamp::from_secs_nanos(time, 0);
        let key = SortKey { time, phase, ordinal, uid: Uid::NONE, number };
        let weird = Weird {
            ts: time,
            uid: None,
            id_orig_h: None,
            id_orig_p: None,
            id_resp_h: None,
            id_resp_p: None,
            name: &format!("{phase:?}{ordinal}.{number}"),
            addl: None,
            notice: false,
            peer: "netsniff",
            source: None,
        };
        buffer.record(&key, &weird);
    }

    /// Names and times of the rows, in the order in which they come out.
    fn merged(mut buffers: Vec<RowBuffer<Names>>) -> Vec<String> {
        buffers.iter_mut().for_each(RowBuffer::sort);
        let mut came = Came::default();
        let mut merger = Merger::new(&Limits::default(), Some(Names), None);
        let Ok(()) = merger.merge(&mut buffers, &mut came);
        came.0
    }

    #[test]
    fn timers_come_before_packets_and_the_end_last() {
        let mut buffer = RowBuffer::new(Some(Names));
        add(&mut buffer, 2, Phase::End, 0, 0);
        add(&mut buffer, 2, Phase::Packet, 9, 1);
        add(&mut buffer, 2, Phase::Packet, 9, 0);
        add(&mut buffer, 2, Phase::Packet, 8, 0);
        add(&mut buffer, 2, Phase::Timer, 0, 0);
        add(&mut buffer, 1, Phase::End, 0, 0);
        let expected = ["1 End0.0", "2 Timer0.0", "2 Packet8.0", "2 Packet9.0", "2 Packet9.1"];
        assert_eq!(merged(vec![buffer])[..5], expected);
    }

    #[test]
    fn rows_wait_for_their_watermark_and_no_longer() {
        let (mut rows, mut done) = (RowBuffer::new(Some(Names)), RowBuffer::new(None));
        for time in [5, 1, 3, 3] {
            add(&mut rows, time, Phase::Packet, 1, 0);
        }
        for (watermark, expected) in [(1, 0), (2, 1), (3, 0), (4, 2), (5, 0), (6, 1), (7, 0)] {
            let watermark = Timestamp::from_secs_nanos(watermark, 0);
            rows.take_before(SortKey::first_at(watermark), &mut done);
            assert_eq!(done.len(), expected, "before {watermark}");
        }
        assert!(rows.is_empty());
    }

    #[test]
    fn any_number_of_buffers_gives_the_same_output() {
        let merged_from = |workers: usize| {
            let mut buffers: Vec<_> = (0..workers).map(|_| RowBuffer::new(Some(Names))).collect();
            for ordinal in 0..1000u64 {
                let worker = (ordinal * 7919 % 1013) as usize % workers;
                let time = (ordinal / 10) as i64;
                add(&mut buffers[worker], time, Phase::Packet, ordinal, 0);
                if ordinal % 3 == 0 {
                    add(&mut buffers[worker], time - 5, Phase::Timer, 0, ordinal as u32);
                }
            }
            merged(buffers)
        };
        let one = merged_from(1);
        assert_eq!(one.len(), 1334);
        for workers in [2, 3, 8] {
            assert_eq!(merged_from(workers), one, "{workers} workers");
        }
    }

    #[test]
    fn no_buffers_give_no_rows() {
        assert!(merged(Vec::new()).is_empty());
        assert!(merged(vec![RowBuffer::new(Some(Names))]).is_empty());
    }
}
