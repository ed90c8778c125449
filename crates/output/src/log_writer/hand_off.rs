//! The bounded hand-off between those who make rows of live traffic and the thread that writes them.
//!
//! A full queue refuses, and counts by log what it refused: whoever captures must never wait. Only at
//! the end does it wait, as long as something is written.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use netsniff_analysis::correlator::JoinStatistics;
use netsniff_packet::Timestamp;

use crate::watch::Watch;
use crate::{Keep, RemovedFiles, RowBuffer, RowTally, SinkBooks};

/// Bytes that rows may take which wait to be written: what a busy link tells in some seconds, in
/// which a disk gets over most stalls.
pub const QUEUE_BYTES: usize = 64 << 20;
/// Bytes of rows from the side that may wait beside these, so that the books can still be told when
/// everything else is refused.
pub const SIDE_BYTES: usize = 1 << 20;
/// What a buffer costs however few rows it has: itself, and what the allocator needs for each of its parts.
const BUFFER_BYTES: usize = size_of::<RowBuffer>() + 3 * 32;
/// What part of the queue is full, in eighths, where producers had better hand over nothing more.
const NEARLY_FULL: usize = 6;
/// How many times as long as the end may take while nothing is written it may take where something is.
const END_WAITS: u32 = 12;
/// Empty buffers that are kept for each producer.
const SPARE_BUFFERS: usize = 4;

/// What may wait to be written.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of the rows of all producers, with their buffers.
    pub bytes: usize,
    /// Bytes of rows from the side.
    pub side_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { bytes: QUEUE_BYTES, side_bytes: SIDE_BYTES }
    }
}

/// What became of rows that were handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandedOver {
    /// They will be written.
    Taken,
    /// There was no room for so many rows: they are counted, and gone.
    Refused(u64),
}

/// Shared by the producers, the writing thread and its owner.
#[derive(Debug)]
pub(super) struct HandOff {
    pub(super) state: Mutex<State>,
    /// Something for the writing thread to do.
    pub(super) work: Condvar,
    /// Room in the queue, or the end of the writing thread.
    pub(super) room: Condvar,
    pub(super) watch: Arc<Watch>,
    bounds: Bounds,
    /// How long the end may take while nothing is written.
    end_wait: Duration,
}

#[derive(Debug)]
pub(super) struct State {
    /// Rows by producer, each of them sorted.
    pub(super) queue: VecDeque<(usize, RowBuffer)>,
    pub(super) side: VecDeque<RowBuffer>,
    pub(super) producers: Vec<Origin>,
    pub(super) wants_roll: bool,
    pub(super) wants_flush: bool,
    /// Other bounds of files that are kept.
    pub(super) wants_keep: Option<Keep>,
    /// Rows wait in the writing thread for the watermarks of other producers.
    pub(super) is_merging: bool,
    /// From when on nobody waits any longer, once the end has begun.
    pub(super) deadline: Option<Instant>,
    /// The deadline of all, which what is written cannot put off.
    latest: Option<Instant>,
    /// Everything is to be written once the producers have ended.
    pub(super) wants_end: bool,
    pub(super) is_done: bool,
    pub(super) joins: Option<JoinStatistics>,
    /// What was taken, the rest of which is on its way.
    pub(super) taken: RowTally,
    /// What found no room.
    pub(super) refused: RowTally,
    pub(super) has_told_refusal: bool,
    /// Of what was taken, what became of it so far.
    pub(super) books: SinkBooks,
    pub(super) removed: RemovedFiles,
    /// Rows that were refused since the end took too long.
    pub(super) left: RowTally,
    pub(super) late_rows: u64,
    pub(super) failure: Option<String>,
    held_bytes: usize,
    held_side: usize,
    pub(super) most_bytes: usize,
    spare: Vec<RowBuffer>,
}

/// What is known of a producer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// All its rows before this time were handed over.
    pub(super) watermark: Timestamp,
    pub(super) is_open: bool,
    /// The engine time at its end.
    pub(super) end: Option<Timestamp>,
}

impl HandOff {
    pub(super) fn new(
        producers: usize,
        bounds: Bounds,
        end_wait: Duration,
        watch: Arc<Watch>,
    ) -> Self {
        let origin = Origin { watermark: Timestamp::MIN, is_open: true, end: None };
        let state = State {
            queue: VecDeque::new(),
            side: VecDeque::new(),
            producers: vec![origin; producers],
            wants_roll: false,
            wants_flush: false,
            wants_keep: None,
            is_merging: false,
            deadline: None,
            latest: None,
            wants_end: false,
            is_done: false,
            joins: None,
            taken: RowTally::default(),
            refused: RowTally::default(),
            has_told_refusal: false,
            books: SinkBooks::default(),
            removed: RemovedFiles::default(),
            left: RowTally::default(),
            late_rows: 0,
            failure: None,
            held_bytes: 0,
            held_side: 0,
            most_bytes: 0,
            spare: Vec::new(),
        };
        let (work, room) = (Condvar::new(), Condvar::new());
        Self { state: Mutex::new(state), work, room, watch, bounds, end_wait }
    }

    /// The state, whoever has panicked before.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets whoever waits for room, or for the last rows, do so from now on until nothing was written for as long as
    /// the end may take.
    pub(super) fn begin_end(&self) {
        let (mut state, now) = (self.lock(), Instant::now());
        state.deadline = Some(now + self.end_wait);
        state.latest = Some(now + self.end_wait * END_WAITS);
        drop(state);
        self.room.notify_all();
        self.work.notify_all();
    }

    /// Lets nobody wait any longer, but for the thread itself, which has so much time to count what is left.
    pub(super) fn expire(&self, grace: Duration) {
        self.watch.expire();
        self.lock().deadline = Some(Instant::now() + grace);
        self.room.notify_all();
        self.work.notify_all();
    }

    /// Hands over rows from the side, which wait for nobody's watermark. Afterwards `rows` is empty.
    pub(super) fn hand_over_beside(&self, rows: &mut RowBuffer) -> HandedOver {
        rows.sort();
        rows.trim();
        let (bytes, tally) = (rows.heap_bytes(), rows.tally());
        let mut state = self.lock();
        if state.is_done || state.held_side.saturating_add(bytes) > self.bounds.side_bytes {
            state.refused.add(&tally);
            rows.clear();
            return HandedOver::Refused(tally.total());
        }
        let mut taken = RowBuffer::new(None);
        taken.swap_rows(rows);
        state.held_side += bytes;
        state.taken.add(&tally);
        state.side.push_back(taken);
        self.work.notify_one();
        HandedOver::Taken
    }

    /// Gives back what rows took that were written, and their buffer to be used again.
    pub(super) fn release(&self, bytes: usize, spare: RowBuffer) {
        let mut state = self.lock();
        state.held_bytes = state.held_bytes.saturating_sub(bytes);
        if let (Some(latest), false) = (state.latest, self.watch.is_over()) {
            state.deadline = Some(latest.min(Instant::now() + self.end_wait));
        }
        if state.spare.len() < SPARE_BUFFERS * state.producers.len() {
            state.spare.push(spare);
        }
        self.room.notify_all();
    }

    /// Gives back what rows from the side took.
    pub(super) fn release_side(&self, bytes: usize) {
        let mut state = self.lock();
        state.held_side = state.held_side.saturating_sub(bytes);
    }
}

impl State {
    /// Up to where the rows of all producers are there.
    pub(super) fn watermark(&self) -> Timestamp {
        let open = self.producers.iter().filter(|origin| origin.is_open);
        open.map(|origin| origin.watermark).min().unwrap_or(Timestamp::MAX)
    }

    /// Whether nobody will hand over anything any more.
    pub(super) fn is_at_end(&self) -> bool {
        self.wants_end && self.producers.iter().all(|origin| !origin.is_open)
    }

    /// Counts all that is on its way as refused: nobody can tell what became of it.
    pub(super) fn give_up(&mut self, why: &str) {
        self.queue.clear();
        self.side.clear();
        let on_the_way = self.taken.without(&self.books.written);
        let on_the_way = on_the_way.without(&self.books.refused).without(&self.left);
        self.left.add(&on_the_way);
        self.failure.get_or_insert_with(|| why.to_owned());
    }

    /// Takes no more rows, and counts as refused those that nobody looked at.
    pub(super) fn close(&mut self) {
        self.is_done = true;
        for (_, rows) in self.queue.drain(..) {
            self.left.add(&rows.tally());
        }
        for rows in self.side.drain(..) {
            self.left.add(&rows.tally());
        }
    }

    fn has_room(&self, bytes: usize, bounds: &Bounds) -> bool {
        self.held_bytes.saturating_add(bytes) <= bounds.bytes && !self.is_done
    }
}

/// Bytes that rows take while they wait.
pub(super) fn held_bytes(rows: &RowBuffer) -> usize {
    BUFFER_BYTES + rows.heap_bytes()
}

/// Whoever hands over the rows of one ring.
#[derive(Debug)]
pub struct RowProducer {
    hand_off: Arc<HandOff>,
    at: usize,
}

impl RowProducer {
    pub(super) const fn new(hand_off: Arc<HandOff>, at: usize) -> Self {
        Self { hand_off, at }
    }

    /// Hands over rows, and says that all before `watermark` have been handed over with them.
    /// Afterwards `rows` is empty, with the memory of some buffer that was written.
    ///
    /// An idle producer must go on saying so, without rows: those of others wait for it, if only for a
    /// short time. Live this never waits; once the end has begun it does, as long as something is written.
    pub fn hand_over(&mut self, watermark: Timestamp, rows: &mut RowBuffer) -> HandedOver {
        if rows.is_empty() {
            let mut state = self.hand_off.lock();
            self.raise(&mut state, watermark);
            if state.is_merging {
                self.hand_off.work.notify_one();
            }
            return HandedOver::Taken;
        }
        rows.sort();
        rows.trim();
        let (bytes, tally) = (held_bytes(rows), rows.tally());
        let mut state = self.with_room(bytes);
        self.raise(&mut state, watermark);
        if !state.has_room(bytes, &self.hand_off.bounds) {
            state.refused.add(&tally);
            rows.clear();
            return HandedOver::Refused(tally.total());
        }
        let mut taken = state.spare.pop().unwrap_or_else(|| RowBuffer::new(None));
        taken.swap_rows(rows);
        state.queue.push_back((self.at, taken));
        state.taken.add(&tally);
        state.held_bytes += bytes;
        state.most_bytes = state.most_bytes.max(state.held_bytes);
        self.hand_off.work.notify_one();
        HandedOver::Taken
    }

    /// Whether so much waits to be written that rows might soon be refused: who can wait had better do so.
    #[must_use]
    pub fn is_nearly_full(&self) -> bool {
        let state = self.hand_off.lock();
        let can_wait = state.deadline.is_some() || state.is_done;
        !can_wait && state.held_bytes >= self.hand_off.bounds.bytes / 8 * NEARLY_FULL
    }

    /// Says that the end has begun, for all producers: hand-overs wait for room from now on.
    pub fn begin_end(&self) {
        let has_begun = self.hand_off.lock().deadline.is_some();
        if !has_begun {
            self.hand_off.begin_end();
        }
    }

    /// Ends its rows, at engine time `now`. Dropping it instead ends them as well, but what waits for
    /// the end of the traffic then has no time of its own.
    pub fn finish(self, now: Timestamp) {
        let mut state = self.hand_off.lock();
        if let Some(origin) = state.producers.get_mut(self.at) {
            origin.end = Some(now);
        }
    }

    /// Why the run is to end, if it is: the output failed.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.hand_off.lock().failure.clone()
    }

    fn raise(&self, state: &mut State, watermark: Timestamp) {
        if let Some(origin) = state.producers.get_mut(self.at) {
            origin.watermark = origin.watermark.max(watermark);
        }
    }

    /// Waits for room, where the end has begun.
    fn with_room(&self, bytes: usize) -> MutexGuard<'_, State> {
        let HandOff { room, bounds, watch, .. } = &*self.hand_off;
        let mut state = self.hand_off.lock();
        while !state.has_room(bytes, bounds) && !state.is_done && !watch.is_over() {
            let Some(deadline) = state.deadline else { break };
            let left = deadline.saturating_duration_since(Instant::now());
            // More than there ever will be is not waited for.
            if left.is_zero() || bytes > bounds.bytes {
                break;
            }
            state = room.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }
}

impl Drop for RowProducer {
    fn drop(&mut self) {
        let mut state = self.hand_off.lock();
        if let Some(origin) = state.producers.get_mut(self.at) {
            origin.is_open = false;
        }
        self.hand_off.work.notify_one();
    }
}
