//! Rows as they come, beside another sink.

use std::sync::Arc;

use netsniff_analysis::SortKey;
use netsniff_analysis::rows::{LOGS, RowSink, SinkBooks};
use netsniff_output::{Keep, LiveSink, RemovedFiles};
use netsniff_packet::Timestamp;

use crate::identity::RUN_END;
use crate::spool::{Appender, OnFull};
use crate::{Delivery, Identity, Settings, Target};

/// Rows on their way into the spools of several targets.
#[derive(Debug, Default)]
pub struct Deliveries {
    lanes: Vec<Lane>,
    /// The number of the next row of each log.
    next: Vec<u64>,
}

#[derive(Debug)]
struct Lane {
    appender: Appender,
    /// Which logs it wants.
    wanted: Vec<bool>,
}

impl Deliveries {
    /// Starts to deliver to some targets. Each delivery is waited for apart.
    ///
    /// # Errors
    ///
    /// Where a spool cannot be used.
    pub fn start(
        targets: Vec<Target>,
        settings: &Settings,
        identity: &Identity,
        on_full: OnFull,
    ) -> anyhow::Result<(Self, Vec<Delivery>)> {
        let (mut lanes, mut deliveries) = (Vec::new(), Vec::new());
        for target in targets {
            let wanted = LOGS.iter().map(|log| target.wants(log.path)).collect();
            let delivery = Delivery::start(target, settings)?;
            let appender = Appender::new(Arc::clone(delivery.spool()), identity, on_full);
            lanes.push(Lane { appender, wanted });
            deliveries.push(delivery);
        }
        Ok((Self { lanes, next: vec![0; LOGS.len()] }, deliveries))
    }

    /// Whether there is a target.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Takes a row of the log `log`; every row has a number, whoever wants it.
    ///
    /// # Errors
    ///
    /// The first one; all else is done all the same.
    pub fn row(&mut self, log: usize, key: &SortKey, json: &[u8]) -> anyhow::Result<()> {
        let (Some(next), Some(of)) = (self.next.get_mut(log), LOGS.get(log)) else {
            anyhow::bail!("a row of a log that is not in the list");
        };
        let seq = *next;
        *next += 1;
        let json = json.strip_suffix(b"\n").unwrap_or(json);
        let lanes = self.lanes.iter_mut().filter(|lane| lane.wanted.get(log) == Some(&true));
        all(lanes, |lane| lane.appender.row(of.path, seq, key.time.nanos(), json))
    }

    /// Hands over what waits.
    ///
    /// # Errors
    ///
    /// The first one; all else is done all the same.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        all(self.lanes.iter_mut(), |lane| lane.appender.flush())
    }

    /// Tells how many rows there are, by which a receiver knows that it has all, and hands over what waits; `closed` is
    /// when the input ended.
    ///
    /// # Errors
    ///
    /// The first one; all else is done all the same.
    pub fn finish(&mut self, closed: Timestamp) -> anyhow::Result<()> {
        let next = &self.next;
        all(self.lanes.iter_mut(), |lane| {
            let logs = LOGS.iter().zip(next).zip(&lane.wanted);
            let told = logs.filter(|((_, rows), wanted)| **wanted && **rows > 0);
            let mut result = Ok(());
            for (number, ((log, rows), _)) in told.enumerate() {
                let json = format!("{{\"of\":\"{}\",\"rows\":{rows}}}", log.path);
                let row =
                    lane.appender.row(RUN_END, number as u64, closed.nanos(), json.as_bytes());
                result = result.and(row);
            }
            result.and(lane.appender.finish())
        })
    }
}

/// Does something with all lanes, and returns the first error.
fn all<'a>(
    lanes: impl Iterator<Item = &'a mut Lane>,
    work: impl FnMut(&mut Lane) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    lanes.map(work).fold(Ok(()), Result::and)
}

/// A sink whose rows are delivered as well.
#[derive(Debug)]
pub struct Delivering<S> {
    /// The sink.
    pub sink: S,
    /// Where else rows go.
    pub deliveries: Deliveries,
}

impl<S: RowSink<Error = anyhow::Error>> RowSink for Delivering<S> {
    type Error = anyhow::Error;

    #[inline]
    fn row(&mut self, log: usize, key: &SortKey, bytes: &[u8]) -> anyhow::Result<()> {
        let delivered =
            if self.deliveries.is_empty() { Ok(()) } else { self.deliveries.row(log, key, bytes) };
        self.sink.row(log, key, bytes).and(delivered)
    }

    fn publish(&mut self) -> anyhow::Result<()> {
        let delivered = self.deliveries.flush();
        self.sink.publish().and(delivered)
    }
}

impl<S: LiveSink> LiveSink for Delivering<S> {
    fn attend(&mut self, watch: Arc<netsniff_output::Watch>) {
        self.sink.attend(watch);
    }

    fn flush(&mut self, now: Timestamp) -> anyhow::Result<()> {
        let delivered = self.deliveries.flush();
        self.sink.flush(now).and(delivered)
    }

    fn roll(&mut self, now: Timestamp) -> anyhow::Result<()> {
        self.sink.roll(now)
    }

    fn end(&mut self, closed: Timestamp) -> anyhow::Result<()> {
        let delivered = self.deliveries.finish(closed);
        self.sink.end(closed).and(delivered)
    }

    fn books(&self) -> &SinkBooks {
        self.sink.books()
    }

    fn keep(&mut self, keep: Keep, now: Timestamp) -> anyhow::Result<()> {
        self.sink.keep(keep, now)
    }

    fn removed(&self) -> RemovedFiles {
        self.sink.removed()
    }
}

#[cfg(test)]
mod tests {
    use netsniff_analysis::{Phase, Uid};

    use super::*;
    use crate::spool::{BatchBounds, LEAST_BYTES, Spool};

    #[test]
    fn every_row_has_a_number_of_its_log_whoever_wants_it() {
        let folder = std::env::temp_dir().join(format!("netsniff-sink-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let spool = Spool::open(&folder, LEAST_BYTES, "target").unwrap();
        let identity = Identity::new("s", "r").unwrap();
        let appender = Appender::new(Arc::clone(&spool), &identity, OnFull::Refuse);
        let wanted = (0..LOGS.len()).map(|log| log != 1).collect();
        let lanes = vec![Lane { appender, wanted }];
        let mut sink = Deliveries { lanes, next: vec![0; LOGS.len()] };
        let time = Timestamp::from_nanos(5);
        let key = SortKey { time, phase: Phase::End, ordinal: 0, uid: Uid::NONE, number: 0 };
        for log in [0, 1, 0, 2, 1, 0] {
            sink.row(log, &key, b"{}\n").unwrap();
        }
        sink.finish(time).unwrap();
        let bounds = BatchBounds { rows: 100, bytes: 4096, linger: core::time::Duration::ZERO };
        let batch = spool.next(&bounds).unwrap().unwrap();
        let found: Vec<_> = batch.rows().map(|row| (row.log.to_owned(), row.seq)).collect();
        let expected = [(0, 0), (0, 1), (2, 0), (0, 2)].map(|(log, seq)| (LOGS[log].path, seq));
        let end = [(RUN_END, 0), (RUN_END, 1)];
        let expected: Vec<_> =
            expected.iter().chain(&end).map(|(log, seq)| ((*log).to_owned(), *seq)).collect();
        assert_eq!(found, expected);
        assert!(batch.rows().any(
            |row| row.json == format!("{{\"of\":\"{}\",\"rows\":3}}", LOGS[0].path).as_bytes()
        ));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
