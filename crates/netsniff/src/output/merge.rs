//! One order out of the buffers of many workers, and what only shows there.

use std::cmp::Reverse;
use std::sync::Arc;

use netsniff_analysis::correlator::{Correlator, JoinStatistics};
use netsniff_analysis::{Limits, SortKey};
use netsniff_packet::{Anonymizer, Timestamp};

use super::row_buffer::{FACT, Row};
use super::{Format, RowBuffer, RowSink};

/// Writes the rows of many buffers in one order, with those that their facts make together.
#[derive(Debug)]
pub struct Merger {
    correlator: Correlator,
    /// Rows of the correlator on their way.
    joined: RowBuffer,
}

impl Merger {
    /// Nothing was written yet.
    #[must_use]
    pub fn new(
        limits: &Limits,
        format: Option<Format>,
        anonymizer: Option<Arc<Anonymizer>>,
    ) -> Self {
        Self {
            correlator: Correlator::new(limits),
            joined: RowBuffer::new(format).anonymized(anonymizer),
        }
    }

    /// Writes the rows of all `buffers`, each sorted, to `sink` in the order of their keys.
    ///
    /// # Errors
    ///
    /// The first error of the sink; the rows after it are not written.
    pub fn merge(
        &mut self,
        buffers: &mut [RowBuffer],
        sink: &mut impl RowSink,
    ) -> anyhow::Result<()> {
        self.merge_with(buffers, sink, |_, _| {})
    }

    /// The same, and gives back each buffer with its number as soon as its last row is written.
    pub(super) fn merge_with(
        &mut self,
        buffers: &mut [RowBuffer],
        sink: &mut impl RowSink,
        mut done: impl FnMut(usize, &mut RowBuffer),
    ) -> anyhow::Result<()> {
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
            while let Some(&row) = buffer.rows().get(position)
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

    /// Writes what is left once the input has ended, at engine time `now`.
    ///
    /// # Errors
    ///
    /// The first error of the sink.
    pub fn finish(&mut self, now: Timestamp, sink: &mut impl RowSink) -> anyhow::Result<()> {
        self.correlator.finish(now, &mut self.joined);
        self.write_joined(sink)
    }

    /// What the facts amount to so far.
    #[must_use]
    pub fn statistics(&self) -> JoinStatistics {
        self.correlator.statistics()
    }

    #[inline]
    fn row(
        &mut self,
        buffer: &mut RowBuffer,
        row: &Row,
        sink: &mut impl RowSink,
    ) -> anyhow::Result<()> {
        if row.log != FACT {
            return sink.row(usize::from(row.log), row.key.time, buffer.bytes_of(row));
        }
        if let Some(fact) = buffer.take_fact(row) {
            self.correlator.fact(&row.key, fact, &mut self.joined);
            self.write_joined(sink)?;
        }
        Ok(())
    }

    /// Writes the rows that the correlator made, which come in order.
    fn write_joined(&mut self, sink: &mut impl RowSink) -> anyhow::Result<()> {
        self.joined.write(sink)?;
        self.joined.clear();
        Ok(())
    }
}

/// The next row of one buffer.
struct Head {
    key: SortKey,
    buffer: usize,
    position: usize,
}

fn head(buffers: &[RowBuffer], buffer: usize, position: usize) -> Option<Head> {
    let row = buffers.get(buffer)?.rows().get(position)?;
    Some(Head { key: row.key, buffer, position })
}

#[cfg(test)]
mod tests {
    use netsniff_analysis::log::Weird;
    use netsniff_analysis::{Observer as _, Phase, Uid};

    use super::super::Stream;
    use super::*;

    /// A record whose name tells its key.
    fn add(buffer: &mut RowBuffer, time: i64, phase: Phase, ordinal: u64, number: u32) {
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
    fn merged(mut buffers: Vec<RowBuffer>) -> Vec<String> {
        buffers.iter_mut().for_each(RowBuffer::sort);
        let mut out = Vec::new();
        let mut stream = Stream::new(&mut out, "memory");
        let mut merger = Merger::new(&Limits::default(), Some(Format::Json), None);
        merger.merge(&mut buffers, &mut stream).unwrap();
        stream.finish().unwrap();
        let lines = String::from_utf8(out).unwrap();
        let rows = lines.lines().map(|line| serde_json::from_str(line).unwrap());
        rows.map(|row: serde_json::Value| {
            assert_eq!(row["_path"], "weird");
            format!("{} {}", row["ts"], row["name"].as_str().unwrap())
        })
        .collect()
    }

    #[test]
    fn timers_come_before_packets_and_the_end_last() {
        let mut buffer = RowBuffer::new(Some(Format::Json));
        add(&mut buffer, 2, Phase::End, 0, 0);
        add(&mut buffer, 2, Phase::Packet, 9, 1);
        add(&mut buffer, 2, Phase::Packet, 9, 0);
        add(&mut buffer, 2, Phase::Packet, 8, 0);
        add(&mut buffer, 2, Phase::Timer, 0, 0);
        add(&mut buffer, 1, Phase::End, 0, 0);
        let expected =
            ["1.0 End0.0", "2.0 Timer0.0", "2.0 Packet8.0", "2.0 Packet9.0", "2.0 Packet9.1"];
        assert_eq!(merged(vec![buffer])[..5], expected);
    }

    #[test]
    fn rows_wait_for_their_watermark_and_no_longer() {
        let (mut rows, mut done) = (RowBuffer::new(Some(Format::Json)), RowBuffer::new(None));
        for time in [5, 1, 3, 3] {
            add(&mut rows, time, Phase::Packet, 1, 0);
        }
        for (watermark, expected) in [(1, 0), (2, 1), (3, 0), (4, 2), (5, 0), (6, 1), (7, 0)] {
            rows.take_before(Timestamp::from_secs_nanos(watermark, 0), &mut done);
            assert_eq!(done.len(), expected, "before {watermark}");
        }
        assert!(rows.is_empty());
    }

    #[test]
    fn any_number_of_buffers_gives_the_same_output() {
        let merged_from = |workers: usize| {
            let mut buffers: Vec<_> =
                (0..workers).map(|_| RowBuffer::new(Some(Format::Json))).collect();
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
        assert!(merged(vec![RowBuffer::new(Some(Format::Json))]).is_empty());
    }
}
