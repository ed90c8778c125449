//! The rounds on their way from reading to merging, and what a thread does next.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use anyhow::anyhow;
use netsniff_analysis::engine::shard::FinishStep;
use netsniff_analysis::{DatagramBatch, SortKey};
use netsniff_output::RowBuffer;
use netsniff_packet::{Batch, Progress};

/// Rounds on their way up to which a thread reads before it takes its own: with fewer, others would often wait for
/// whoever reads.
const AHEAD: usize = 4;

/// Rounds that may be on their way at all. A thread whose flows are few goes on reading while another is behind, but
/// what waits too long has left the caches when it is taken.
const MOST: usize = 16;

/// What every shard takes.
pub(super) struct Round {
    pub(super) work: Work,
    pub(super) units: DatagramBatch,
    /// Which of the datagrams are each shard's.
    pub(super) shares: Vec<Vec<u32>>,
    /// Up to where rows are complete behind it.
    pub(super) watermark: SortKey,
}

/// What there is to take.
pub(super) enum Work {
    /// Datagrams that lie in a batch.
    Datagrams(Arc<Batch>),
    /// A part of the end.
    Finish(FinishStep),
}

/// Memory of a round that is over.
#[derive(Default)]
pub(super) struct RoundMemory {
    pub(super) units: DatagramBatch,
    pub(super) shares: Vec<Vec<u32>>,
}

/// What a thread is to do.
pub(super) enum Job {
    /// Take the next round, and put complete rows into the buffer.
    Round(Arc<Round>, RowBuffer),
    /// Read the next piece of the source.
    Read,
    /// Merge the rows of the oldest round.
    Merge(Vec<RowBuffer>),
}

/// A round with the rows that are complete behind it.
struct Slot {
    round: Arc<Round>,
    /// Those of decoding, then of every shard.
    rows: Vec<RowBuffer>,
    /// Shards that have not taken it.
    missing: usize,
}

/// What is on its way.
struct Board {
    workers: usize,
    /// Rounds up to which reading comes before the rounds of a worker.
    ahead: usize,
    /// The rounds, the oldest first.
    slots: VecDeque<Slot>,
    /// The number of the oldest.
    first: u64,
    /// Whether somebody reads.
    is_reading: bool,
    /// Whether somebody merges.
    is_merging: bool,
    /// Whether nothing more will be read.
    has_ended: bool,
    /// Whether everybody is to stop.
    is_stopped: bool,
    error: Option<anyhow::Error>,
    /// An empty buffer, as all of them are.
    empty: RowBuffer,
    free_rows: Vec<RowBuffer>,
    free_rounds: Vec<RoundMemory>,
    /// Threads that wait.
    idle: usize,
}

impl Board {
    /// What a thread is to do whose shard takes the round `next`; `None` where it must wait.
    fn job(&mut self, next: u64) -> Option<Job> {
        if !self.is_merging && self.slots.front().is_some_and(|slot| slot.missing == 0) {
            return self.merge();
        }
        let may_read = !self.is_reading && !self.has_ended;
        if may_read && self.slots.len() < self.ahead {
            self.is_reading = true;
            return Some(Job::Read);
        }
        if let Some(slot) = self.slots.get(next.saturating_sub(self.first) as usize) {
            return Some(Job::Round(Arc::clone(&slot.round), self.free_rows()));
        }
        if may_read && self.slots.len() < MOST {
            self.is_reading = true;
            return Some(Job::Read);
        }
        None
    }

    /// Takes the oldest round, of which all rows are there.
    fn merge(&mut self) -> Option<Job> {
        let slot = self.slots.pop_front()?;
        self.first += 1;
        self.is_merging = true;
        if let Some(Round { mut units, mut shares, .. }) = Arc::into_inner(slot.round) {
            units.clear();
            shares.iter_mut().for_each(Vec::clear);
            self.free_rounds.push(RoundMemory { units, shares });
        }
        Some(Job::Merge(slot.rows))
    }

    /// An empty buffer for rows.
    fn free_rows(&mut self) -> RowBuffer {
        self.free_rows.pop().unwrap_or_else(|| self.empty.same())
    }

    /// Lets everybody stop. Of several errors that of merging is the cause of the others.
    fn fail(&mut self, error: anyhow::Error) {
        self.is_stopped = true;
        self.error = Some(error);
    }

    /// Whether there is nothing left to do.
    fn is_over(&self) -> bool {
        self.is_stopped || self.has_ended && self.slots.is_empty()
    }
}

/// The board, and whoever waits for it to change.
pub(super) struct SharedBoard {
    board: Mutex<Board>,
    changed: Condvar,
}

impl SharedBoard {
    /// Nothing was read yet. Rows are put into buffers such as `empty`.
    pub(super) fn new(workers: usize, is_prompt: bool, empty: RowBuffer) -> Self {
        let board = Board {
            workers,
            // Whoever waits for the input must not hold up a round.
            ahead: if is_prompt { 0 } else { AHEAD },
            slots: VecDeque::new(),
            first: 0,
            is_reading: false,
            is_merging: false,
            has_ended: false,
            is_stopped: false,
            error: None,
            empty,
            free_rows: Vec::new(),
            free_rounds: Vec::new(),
            idle: 0,
        };
        Self { board: Mutex::new(board), changed: Condvar::new() }
    }

    /// What a thread is to do whose shard takes the round `next`, once there is something; `None` when
    /// everything is done.
    pub(super) fn job(&self, next: u64) -> Option<Job> {
        let mut board = lock(&self.board);
        while !board.is_over() {
            if let Some(job) = board.job(next) {
                return Some(job);
            }
            board.idle += 1;
            board = self.changed.wait(board).unwrap_or_else(PoisonError::into_inner);
            board.idle -= 1;
        }
        None
    }

    /// Memory for a round and for the rows of its decoding.
    pub(super) fn memory(&self) -> (RoundMemory, RowBuffer) {
        let mut board = lock(&self.board);
        (board.free_rounds.pop().unwrap_or_default(), board.free_rows())
    }

    /// Puts a round behind the others, with the rows that decoding completed.
    pub(super) fn post(&self, round: Round, rows: RowBuffer) {
        self.change(|board| {
            let slot = Slot { round: Arc::new(round), rows: vec![rows], missing: board.workers };
            board.slots.push_back(slot);
        });
    }

    /// A shard has taken the round that counts so, and completed these rows. Nobody holds its own copy of the round.
    pub(super) fn round_done(&self, number: u64, rows: RowBuffer) {
        self.change(|board| {
            if let Some(slot) = board.slots.get_mut(number.saturating_sub(board.first) as usize) {
                slot.rows.push(rows);
                slot.missing -= 1;
            }
        });
    }

    /// Whoever read is done, with a piece or with everything. Behind an error nothing more is read, and what was is
    /// still taken.
    pub(super) fn reading_done(&self, read: anyhow::Result<Progress>) {
        self.change(|board| {
            board.is_reading = false;
            match read {
                Ok(Progress::More) => {}
                Ok(Progress::End) => board.has_ended = true,
                Err(error) => {
                    board.has_ended = true;
                    board.error.get_or_insert(error);
                }
            }
        });
    }

    /// Whoever merged is done; an error ends everything.
    pub(super) fn merging_done(&self, rows: Vec<RowBuffer>, merged: anyhow::Result<()>) {
        self.change(|board| {
            board.is_merging = false;
            board.free_rows.extend(rows);
            if let Err(error) = merged {
                board.fail(error);
            }
        });
    }

    /// Stops the others, should the calling thread panic before what is returned is dropped.
    pub(super) const fn watch(&self) -> PanicWatch<'_> {
        PanicWatch(self)
    }

    /// The error that ended the work, if one did.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        lock(&self.board).error.take().map_or(Ok(()), Err)
    }

    fn change(&self, how: impl FnOnce(&mut Board)) {
        let mut board = lock(&self.board);
        how(&mut board);
        let is_awaited = board.idle > 0;
        drop(board);
        if is_awaited {
            self.changed.notify_all();
        }
    }
}

/// Stops everybody when the thread that has it panics: what it was to do will never be done.
pub(super) struct PanicWatch<'a>(&'a SharedBoard);

impl Drop for PanicWatch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.change(|board| board.fail(anyhow!("a worker panicked")));
        }
    }
}

/// Locks what a thread that panicked may have left behind: everybody is told to stop then.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
