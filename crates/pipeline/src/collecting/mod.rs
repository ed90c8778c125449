//! From messages of exporters to rows: what they tell of connections, and the books of each.
//!
//! | module | concern |
//! |---|---|
//! | `pairing` | two records of one connection, put together |
//! | `rows` | what was told, as rows |

mod pairing;
mod rows;

use std::time::Duration;

use netsniff_analysis::locality::LocalNets;
use netsniff_analysis::rows::Output;
use netsniff_analysis::{self as analysis, Observer as _, Phase, SortKey, Uid};
use netsniff_ipfix::{Collector, Exporter, Limits, Refusal, StreamBooks, StreamKey};
use netsniff_output::{LogSet, Merger, RowBuffer, RowSink, RowStyle};
use netsniff_packet::Timestamp;

use self::pairing::{Half, Known, Left, Pairing};

/// How messages are collected.
#[derive(Clone, Debug)]
pub struct CollectSettings {
    /// How rows are rendered; `None` where nobody wants them.
    pub style: Option<RowStyle>,
    /// The logs that are wanted.
    pub logs: LogSet,
    /// How long a record waits for that of the other direction.
    pub window: Duration,
    /// Which hosts are local.
    pub local_nets: LocalNets,
    /// What may be held of what exporters tell.
    pub limits: Limits,
}

/// How often what is too old is looked for.
const LOOK: Duration = Duration::from_secs(10);

/// Messages on their way to a sink, in one thread.
#[derive(Debug)]
pub struct Collection<S: RowSink<Error = anyhow::Error>> {
    collector: Collector,
    pairing: Pairing,
    rows: Rows<S>,
    /// When what is too old is looked for next.
    next_look: Timestamp,
}

/// Rows on their way to a sink.
#[derive(Debug)]
struct Rows<S: RowSink<Error = anyhow::Error>> {
    output: Output<S, RowStyle>,
    local_nets: LocalNets,
    /// The latest time so far.
    now: Timestamp,
    /// Number of the message.
    ordinal: u64,
    /// Rows of connections so far.
    connections: u64,
    /// Those among them that are made of two records.
    paired: u64,
    /// Those of which both directions are known.
    two_way: u64,
    /// Rows at this time, which their keys tell apart.
    number: u32,
}

impl<S: RowSink<Error = anyhow::Error>> Rows<S> {
    fn row(&mut self, left: Left, known: &Known) {
        let number = self.connections;
        let Some(rows) = rows::connection(known, number, &self.local_nets) else { return };
        self.connections += 1;
        self.paired += u64::from(known.second.is_some());
        self.two_way += u64::from(known.second.is_some() || known.first.flow.reverse.is_some());
        self.number += 1;
        let (time, phase, ordinal) = match left {
            Left::Deadline(time) => (time, Phase::Timer, 0),
            Left::Now => (self.now, Phase::Packet, self.ordinal),
        };
        let key = SortKey { time, phase, ordinal, uid: Uid::NONE, number: self.number };
        self.output.record(&key, &rows.conn);
        self.output.record(&key, &rows.exported);
    }
}

impl<S: RowSink<Error = anyhow::Error>> Collection<S> {
    /// Nothing came yet. Rows go to `sink`.
    pub fn new(settings: &CollectSettings, sink: S) -> Self {
        let limits = analysis::Limits::default();
        let merger = Merger::new(&limits, settings.style, None).only(settings.logs);
        let output =
            Output::to_sink(RowBuffer::new(settings.style).only(settings.logs), merger, sink);
        let local_nets = settings.local_nets.clone();
        let (now, ordinal, connections, paired, two_way, number) = (Timestamp::MIN, 0, 0, 0, 0, 0);
        Self {
            collector: Collector::new(settings.limits),
            pairing: Pairing::new(settings.window),
            rows: Rows { output, local_nets, now, ordinal, connections, paired, two_way, number },
            next_look: Timestamp::MIN,
        }
    }

    /// Takes a message that came at `time`.
    ///
    /// # Errors
    ///
    /// Failures of the sink.
    pub fn message(
        &mut self,
        exporter: Exporter,
        time: Timestamp,
        message: &[u8],
    ) -> anyhow::Result<Result<(), Refusal>> {
        self.advance(time)?;
        let Self { collector, pairing, rows, .. } = self;
        rows.ordinal += 1;
        let now = rows.now;
        let read = collector.message(exporter, now, message, |stream, flow| {
            pairing.add(Half::new(*stream, flow, now), |known| rows.row(Left::Now, &known));
        });
        self.rows.output.check()?;
        Ok(read)
    }

    /// Takes note that a connection ended which messages came in.
    pub fn disconnected(&mut self, exporter: &Exporter) {
        self.collector.disconnected(exporter);
    }

    /// Goes on to a time, up to which nothing came; a time that lies back changes nothing.
    ///
    /// # Errors
    ///
    /// Failures of the sink.
    pub fn advance(&mut self, time: Timestamp) -> anyhow::Result<()> {
        if time <= self.rows.now {
            return Ok(());
        }
        let Self { pairing, rows, .. } = self;
        pairing.expire(time, |left, known| rows.row(left, &known));
        rows.now = time;
        rows.number = 0;
        rows.output.complete(SortKey::first_at(time));
        if time >= self.next_look {
            self.collector.expire(time);
            self.next_look = time + LOOK;
        }
        self.rows.output.check()
    }

    /// Writes the books of all exporters as rows.
    pub fn write_books(&mut self, is_final: bool) {
        let Self { collector, rows, .. } = self;
        for (key, books) in collector.books() {
            rows.number += 1;
            let row = rows::exporter(key, &books, rows.now, is_final);
            let (time, phase, ordinal) = (rows.now, Phase::Packet, rows.ordinal);
            let at = SortKey { time, phase, ordinal, uid: Uid::NONE, number: rows.number };
            rows.output.record(&at, &row);
        }
    }

    /// Lets whoever reads along see the rows that are complete.
    ///
    /// # Errors
    ///
    /// Failures of the sink.
    pub fn publish(&mut self) -> anyhow::Result<()> {
        self.rows.output.publish()
    }

    /// Writes what waits and the last books. Returns what it all amounts to, and the sink.
    ///
    /// # Errors
    ///
    /// Failures of the sink.
    pub fn finish(mut self) -> anyhow::Result<(CollectOutcome, S)> {
        let Self { pairing, rows, .. } = &mut self;
        pairing.finish(|left, known| rows.row(left, &known));
        self.write_books(true);
        let Self { collector, mut rows, .. } = self;
        rows.output.complete(SortKey::END);
        rows.output.finish(rows.now)?;
        let Rows { output, now, connections, paired, two_way, .. } = rows;
        let outcome = CollectOutcome { collector, connections, paired, two_way, now };
        Ok((outcome, output.into_sink()))
    }

    /// Where the rows go.
    pub const fn sink(&self) -> &S {
        self.rows.output.sink()
    }

    /// Records that wait for those of the other direction.
    pub fn waiting(&self) -> usize {
        self.pairing.len()
    }
}

/// What a collection amounts to.
#[derive(Debug)]
pub struct CollectOutcome {
    /// The books of all exporters.
    pub collector: Collector,
    /// Rows of connections.
    pub connections: u64,
    /// Those among them that are made of two records.
    pub paired: u64,
    /// Those of which both directions are known.
    pub two_way: u64,
    /// The time of the last message.
    pub now: Timestamp,
}

impl CollectOutcome {
    /// The books of each exporter and domain.
    pub fn books(&self) -> impl Iterator<Item = (&StreamKey, StreamBooks)> {
        self.collector.books()
    }
}
