//! Many threads over sources, attendants and sinks that fail at some point.

use std::net::{IpAddr, Ipv4Addr};
use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::bail;
use netsniff_analysis::engine::decoding::Intake;
use netsniff_analysis::{Limits, Options, SortKey};
use netsniff_output::{Format, LogSet, RowSink};
use netsniff_packet::{Batch, LinkType, Packet, Progress, Source, Timestamp};
use netsniff_traffic::frame::{Host, udp_frame};

use super::run::{AnalysisOutcome, Attend, Settings, run};

/// Flows of one datagram, a second apart and 40 in a batch.
struct Datagrams {
    next: u32,
    end: u32,
    /// Whether the source fails instead of ending.
    fails: bool,
}

impl Source for Datagrams {
    type Error = anyhow::Error;

    fn read_batch(&mut self, batch: &mut Batch) -> anyhow::Result<Progress> {
        batch.clear();
        if self.next == self.end {
            if self.fails {
                bail!("the source failed");
            }
            return Ok(Progress::End);
        }
        for at in self.next..self.end.min(self.next + 40) {
            let host = |low, port| Host::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, low)), port);
            let from = host(1 + (at % 99) as u8, 4000 + (at / 99) as u16);
            let frame = udp_frame(&from, &host(200, 5000), 0, b"hello").unwrap();
            assert!(batch.push(&Packet {
                timestamp: Timestamp::from_secs_nanos(1000 + i64::from(at), 0),
                data: &frame,
                wire_len: frame.len() as u32,
                link_type: LinkType::ETHERNET,
                interface: 0,
            }));
            self.next = at + 1;
        }
        Ok(Progress::More)
    }
}

/// Rows that were written, up to a number at which writing fails.
struct Rows {
    rows: Vec<(usize, Vec<u8>)>,
    most: usize,
}

impl RowSink for Rows {
    type Error = anyhow::Error;

    fn row(&mut self, log: usize, _: &SortKey, bytes: &[u8]) -> anyhow::Result<()> {
        if self.rows.len() == self.most {
            // Whatever comes later is noticed.
            self.most = usize::MAX;
            bail!("the sink failed");
        }
        self.rows.push((log, bytes.to_vec()));
        Ok(())
    }
}

/// Sees so many batches, and panics at the next.
struct Batches(usize);

impl Intake for Batches {}

impl Attend<Datagrams> for Batches {
    fn taken(&mut self, _: &Datagrams) -> anyhow::Result<()> {
        self.0 = self.0.checked_sub(1).expect("seen enough");
        Ok(())
    }
}

const WORKERS: [usize; 4] = [1, 2, 3, 8];

fn analysed(
    workers: usize,
    fails: bool,
    attendant: &mut (impl Attend<Datagrams> + Send),
    most: usize,
) -> (anyhow::Result<AnalysisOutcome>, Vec<(usize, Vec<u8>)>) {
    let settings = Settings {
        limits: Limits::default(),
        options: Options::default(),
        workers,
        style: Some(Format::Tsv.into()),
        logs: LogSet::ALL,
        seed: 1,
        prompt: false,
    };
    let mut source = Datagrams { next: 0, end: 2000, fails };
    let mut sink = Rows { rows: Vec::new(), most };
    let outcome = run(&mut source, &settings, attendant, &mut sink);
    (outcome, sink.rows)
}

#[test]
fn any_number_of_threads_gives_the_same_rows() {
    let whole = WORKERS.map(|workers| {
        let (outcome, rows) = analysed(workers, false, &mut (), usize::MAX);
        let outcome = outcome.unwrap();
        assert_eq!(outcome.now, Timestamp::from_secs_nanos(2999, 0), "{workers} workers");
        assert_eq!(rows.len(), 2000, "{workers} workers");
        rows
    });
    assert!(whole.iter().all(|rows| *rows == whole[0]));
}

#[test]
fn what_was_read_before_the_source_failed_is_written() {
    let (_, whole) = analysed(1, false, &mut (), usize::MAX);
    for workers in WORKERS {
        let (outcome, rows) = analysed(workers, true, &mut (), usize::MAX);
        assert_eq!(outcome.unwrap_err().to_string(), "the source failed", "{workers} workers");
        assert!(rows.len() > 1800 && whole.starts_with(&rows), "{workers}: {} rows", rows.len());
    }
}

#[test]
fn nothing_is_written_behind_an_error_of_the_sink() {
    for workers in WORKERS {
        for most in [0, 700, 1999] {
            let (outcome, rows) = analysed(workers, false, &mut (), most);
            assert_eq!(outcome.unwrap_err().to_string(), "the sink failed", "{workers} workers");
            assert_eq!(rows.len(), most, "{workers} workers");
        }
    }
}

#[test]
fn a_panic_of_any_thread_ends_all() {
    for workers in WORKERS {
        for batches in [0, 7, 50] {
            let mut attendant = Batches(batches);
            let work = || analysed(workers, false, &mut attendant, usize::MAX).0;
            // Where the calling thread panicked, so does the call.
            if let Ok(outcome) = catch_unwind(AssertUnwindSafe(work)) {
                assert_eq!(outcome.unwrap_err().to_string(), "a worker panicked");
            }
        }
    }
}
