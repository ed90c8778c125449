//! Where the drops of a ring belong among its blocks.
//!
//! The kernel counts drops without saying when they happened, and a counter that is read starts anew. What
//! narrows the time down is that the kernel drops only while it waits for a block that is still ours: before
//! it opens block k, all of the blocks k - n to k - 1 of a ring of n are ours.

use std::collections::VecDeque;

use netsniff_packet::{Loss, Stage, Timestamp};

/// The state of a ring when its counters are read. Blocks are numbered from the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RingState {
    /// The block that is read next.
    pub(super) next: u64,
    /// The first block that the kernel has not handed over.
    pub(super) first_open: u64,
    /// The first block from the next one on that says that drops were counted before it was closed, among
    /// those that were not handed over when the counters were read last.
    pub(super) first_telling: Option<u64>,
}

/// Drops between two blocks.
#[derive(Clone, Copy, Debug)]
struct Drops {
    packets: u64,
    /// The first and the last block that they may lie before.
    from_block: u64,
    before_block: u64,
    /// The last packet before `from_block`, once that is known.
    since: Option<Option<Timestamp>>,
}

/// Keeps drops until the block is reached that they belong before.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    /// Blocks in the ring.
    blocks: u64,
    pub(super) previous: RingState,
    pending: VecDeque<Drops>,
    /// The last packet that was lent.
    last: Option<Timestamp>,
}

impl Losses {
    pub(super) fn new(blocks: usize) -> Self {
        Self {
            blocks: blocks as u64,
            previous: RingState::default(),
            pending: VecDeque::new(),
            last: None,
        }
    }

    /// Notes drops that the kernel has counted since the last time, with the state of the ring now.
    pub(super) fn note(&mut self, packets: u64, state: RingState) {
        let previous = core::mem::replace(&mut self.previous, state);
        if packets == 0 {
            return;
        }
        // Blocks that were handed over since, and do not tell, were closed before the first of the drops.
        let from_block = state.first_telling.unwrap_or(state.first_open);
        let from_block = from_block.max(previous.next + self.blocks).min(state.first_open);
        let is_full = state.first_open == state.next + self.blocks;
        let is_told = state.first_telling == Some(state.next) && !is_full;
        let before_block = if is_told { state.next } else { state.first_open };
        let since = (from_block <= state.next).then_some(self.last);
        self.pending.push_back(Drops { packets, from_block, before_block, since });
    }

    /// What was lost before block number `block`, whose packets lie between `first` and `last`.
    pub(super) fn take(&mut self, block: u64, first: Timestamp, last: Timestamp) -> Option<Loss> {
        for drops in &mut self.pending {
            if drops.since.is_none() && drops.from_block <= block {
                drops.since = Some(self.last);
            }
        }
        let mut loss: Option<Loss> = None;
        while let Some(drops) = self.pending.front()
            && drops.before_block <= block
        {
            let packets = drops.packets + loss.map_or(0, |loss| loss.packets);
            let before = loss.map_or(drops.since.flatten(), |loss| loss.before);
            loss = Some(Loss { before, after: first, packets, stage: Stage::System });
            self.pending.pop_front();
        }
        self.last = Some(last);
        loss
    }

    /// What was lost and has no packets behind it, at the end.
    pub(super) fn rest(&mut self, now: Timestamp) -> Option<Loss> {
        let packets = self.pending.iter().map(|drops| drops.packets).sum();
        let first = self.pending.front()?;
        let before = first.since.unwrap_or(self.last);
        self.pending.clear();
        Some(Loss { before, after: now, packets, stage: Stage::System })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(seconds: u64) -> Timestamp {
        Timestamp::from_secs_nanos(seconds as i64, 0)
    }

    /// Block n lasts from second 10 n to second 10 n + 5.
    fn take(losses: &mut Losses, block: u64) -> Option<(u64, Option<Timestamp>, Timestamp)> {
        let loss = losses.take(block, time(10 * block), time(10 * block + 5))?;
        Some((loss.packets, loss.before, loss.after))
    }

    fn full(next: u64) -> RingState {
        RingState { next, first_open: next + 4, first_telling: None }
    }

    #[test]
    fn drops_of_a_full_ring_lie_behind_its_last_block() {
        let mut losses = Losses::new(4);
        losses.note(7, full(0));
        for block in 0..4 {
            assert_eq!(take(&mut losses, block), None, "nothing was lost here");
        }
        assert_eq!(take(&mut losses, 4), Some((7, Some(time(35)), time(40))));
        assert_eq!(take(&mut losses, 5), None, "told once");
    }

    #[test]
    fn a_block_that_tells_bounds_them_from_above() {
        let mut losses = Losses::new(4);
        losses.note(0, full(0));
        (0..4).for_each(|block| assert_eq!(take(&mut losses, block), None));
        // Block 4 is there, and nothing behind it.
        losses.note(3, RingState { next: 4, first_open: 5, first_telling: Some(4) });
        assert_eq!(take(&mut losses, 4), Some((3, Some(time(35)), time(40))));
    }

    #[test]
    fn a_ring_that_stays_full_tells_hole_by_hole() {
        let mut losses = Losses::new(4);
        losses.note(2, full(0));
        assert_eq!(take(&mut losses, 0), None);
        losses.note(5, RingState { first_telling: Some(4), ..full(1) });
        (1..4).for_each(|block| assert_eq!(take(&mut losses, block), None));
        assert_eq!(take(&mut losses, 4), Some((2, Some(time(35)), time(40))));
        // These may have been lost on either side of block 4.
        assert_eq!(take(&mut losses, 5), Some((5, Some(time(35)), time(50))));
    }

    #[test]
    fn blocks_that_do_not_tell_bound_them_from_below() {
        let mut losses = Losses::new(4);
        losses.note(1, full(0));
        (0..4).for_each(|block| assert_eq!(take(&mut losses, block), None));
        // The ring is full once more, and nothing was lost before blocks 4 to 7 were closed.
        losses.note(5, full(4));
        assert_eq!(take(&mut losses, 4), Some((1, Some(time(35)), time(40))));
        (5..8).for_each(|block| assert_eq!(take(&mut losses, block), None));
        assert_eq!(take(&mut losses, 8), Some((5, Some(time(75)), time(80))));
    }

    #[test]
    fn what_nobody_followed_is_told_at_the_end() {
        let mut losses = Losses::new(4);
        assert_eq!(losses.rest(time(1)), None);
        losses.note(1, full(0));
        (0..4).for_each(|block| assert_eq!(take(&mut losses, block), None));
        let rest = losses.rest(time(99)).unwrap();
        assert_eq!((rest.packets, rest.before, rest.after), (1, Some(time(35)), time(99)));
        assert_eq!(losses.rest(time(99)), None);
    }

    #[test]
    fn drops_before_the_first_packet_have_no_begin() {
        let mut losses = Losses::new(1);
        losses.note(1, RingState { next: 0, first_open: 0, first_telling: None });
        assert_eq!(take(&mut losses, 0), Some((1, None, time(0))));
    }
}
