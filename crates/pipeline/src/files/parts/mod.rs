//! Parts of an input, each of which a thread of its own analyses, and what makes one analysis of them.
//!
//! Each part is analysed as if nothing had come before it. One thread, the *carrier*, has the analysis of all that was
//! read in order. Where a part begins, and nothing that the carrier remembers matters to what comes then
//! ([`Engine::is_over_before`](netsniff_analysis::Engine::is_over_before)), it takes over the engine of the part with the
//! rows that wait there. Else it reads the part itself. Flows of pairs of hosts of which it remembers nothing it takes over
//! even so, and analyses the others. So no record depends on how many parts there are, and on who was first.
//!
//! | module | concern |
//! |---|---|
//! | [`apart`] | the analysis of one part by itself |
//! | [`board`] | which parts are analysed, by whom, and what came of them |
//! | [`plan`] | what is to be done with which part next |
//! | [`carrier`] | the analysis in order |

mod apart;
mod board;
mod carrier;
mod plan;
#[cfg(test)]
mod tests;

use std::io;
use std::thread;

use anyhow::{Context as _, anyhow};
use netsniff_analysis::engine::decoding::Intake;
use netsniff_output::RowSink;
use netsniff_packet::{Source, Timestamp};
use netsniff_pcapfile::Head;

use super::run::{AnalysisOutcome, Attend, Settings};
use board::Board;
use carrier::Carrier;

/// How many threads analyse parts, and how much may wait in each.
#[derive(Clone, Copy, Debug)]
pub struct Jobs {
    /// Threads, of which the calling one is one.
    pub threads: usize,
    /// Bytes of rows and facts that may wait in one part. One with more is analysed up to there, and goes on in order.
    pub waiting_bytes: usize,
}

impl Jobs {
    /// How many engines may hold flows at once: each thread's, one that is done for each of them, the carrier's, and the one
    /// that took other pairs of the carrier's part.
    #[must_use]
    pub const fn engines(self) -> usize {
        2 * self.threads + 1
    }

    /// No more threads than there are parts: others would have nothing to do, and would take their shares of the bounds.
    #[must_use]
    pub fn for_parts(self, parts: usize) -> Self {
        Self { threads: self.threads.min(parts).max(1), ..self }
    }
}

/// What became of the parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartsOutcome {
    /// All of them.
    pub parts: usize,
    /// Those that were analysed by themselves, and taken over.
    pub apart: usize,
    /// Those of which pairs of hosts were analysed by themselves, and the others in order.
    pub by_pairs: usize,
    /// Bytes of packets of others that were analysed by themselves in vain, so that they were read again.
    pub read_again_bytes: u64,
}

/// Opens parts, so that several threads may read them.
pub trait OpenPart: Sync {
    /// What reads a part.
    type Source: Source + Send;
    /// Who chooses packets of a part.
    type Intake: PartIntake + Send;

    /// The part that counts so, from its begin; `None` where it cannot be opened once more.
    fn open(&self, part: usize, reading: PartReading) -> Option<(Self::Source, Self::Intake)>;
}

/// What a part is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartReading {
    /// To find out which pairs of hosts it has: whoever chooses packets is told nothing.
    Pairs,
    /// To analyse it.
    Analysis,
}

/// Whoever chooses packets of a part, and keeps what he finds until the part is taken over.
pub trait PartIntake: Intake {
    /// Whether he has kept as much as he may.
    fn is_full(&self) -> bool;
}

/// A source of several parts, that tells when it is between them.
pub trait PartSource<P: OpenPart>: Source {
    /// The parts of which nothing was read, in the order in which they begin.
    fn heads(&self) -> Vec<Head>;

    /// The part that comes next, if none is begun and not over. Batches end there.
    fn next_alone(&self) -> Option<Head>;

    /// Goes on with `source` in place of its own for a part, of which it read nothing: the packets that `source` has read,
    /// from the first stamp to the latest, are taken elsewhere.
    fn go_on_with(&mut self, part: usize, source: P::Source, span: (Timestamp, Timestamp));
}

/// Whoever attends an analysis of parts.
pub trait AttendParts<S, P: OpenPart>: Attend<S> {
    /// Takes over what was kept of a part.
    ///
    /// # Errors
    ///
    /// Whatever is to end the analysis.
    fn take_over(&mut self, source: &S, part: usize, intake: P::Intake) -> anyhow::Result<()>;
}

/// Reads `source` to its end and writes the records to `sink`, the same as [`run`](super::run) does, while other threads
/// analyse later parts.
///
/// # Errors
///
/// Failures of the source, of the sink and of `attendant`.
pub fn run_parts<S, P, A, K>(
    source: &mut S,
    parts: &P,
    (settings, jobs): (&Settings, Jobs),
    attendant: &mut A,
    sink: &mut K,
) -> anyhow::Result<(AnalysisOutcome, PartsOutcome)>
where
    S: PartSource<P, Error: Into<anyhow::Error>>,
    P: OpenPart,
    A: AttendParts<S, P>,
    K: RowSink<Error = anyhow::Error>,
{
    let board = Board::new(jobs);
    let board_ref = &board;
    thread::scope(|scope| {
        let stop = board_ref.stop_at_end();
        let others = (1..jobs.threads).map(|_| {
            let serve = move || apart::serve(board_ref, parts, settings);
            thread::Builder::new().spawn_scoped(scope, serve)
        });
        let others = others.collect::<io::Result<Vec<_>>>().context("cannot start a thread")?;
        let outcome = Carrier::new(source, parts, settings, attendant, sink, board_ref).run();
        drop(stop);
        for other in others {
            other.join().map_err(|_| anyhow!("a worker panicked"))?;
        }
        outcome
    })
}
