//! Where the drops of a mapped ring belong among its slots, blocks or frames.
//!
//! The kernel counts drops without saying when they happened, and a counter that is read starts anew. What
//! narrows the time down is that the kernel drops only while the slot that it would fill next is still ours:
//! before it fills slot k of a ring of n, all of the slots k - n to k - 1 are ours. Slots are given back in
//! order, so k is the one that comes next for us, plus n, at that moment: drops that were counted between two
//! readings lie between the values of that sum at both. Where the ring is full at a reading, and nothing was
//! given back since the reading before, that is one place.
//!
//! Two more facts bound them. A slot is marked (`TP_STATUS_LOSING`) if drops had been counted since the last
//! reading when it was filled (a frame) or closed (a block): slots from the reading before on that are not
//! marked lie before the first drop. Slots that are handed over during a reading say nothing: it may have come
//! before them, and lets the kernel forget what they were to tell. And drops lie before a slot that is not filled yet, except that frames,
//! unlike blocks, are filled by several processors at once: on each, one frame may be on its way that lies
//! before the drop. What the kernel does not tell apart is a drop that a processor has begun before a reading and
//! counts behind it, when it was interrupted in between: it is told with those that follow.

use std::cmp::Ordering;
use std::collections::VecDeque;

use netsniff_packet::{Loss, Stage, Timestamp};

/// The state of a ring when its counters are read. Slots are numbered from the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RingState {
    /// The slot that is read next.
    pub(super) next: u64,
    /// The first slot that the kernel has not handed over.
    pub(super) first_open: u64,
    /// The same before the reading began.
    pub(super) first_open_before: u64,
    /// The first slot that says that drops were counted before it was handed over, among those that were
    /// handed over since the reading before.
    pub(super) first_telling: Option<u64>,
    /// Where another thread has read the counters before: a slot that had not been handed over by then. Those behind it
    /// do not say that drops were counted before that reading.
    pub(super) told_until: Option<u64>,
}

/// Up to which slot marks tell of drops, where another thread reads the counters, too.
///
/// Its reading ends what slots say: those that are handed over behind it are not marked for the drops that it found,
/// of which the thread of the ring hears later. Slots that were there when surely all drops that had been read were
/// told are marked for all others.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkedUntil(u64);

impl MarkedUntil {
    pub(super) const fn new() -> Self {
        Self(0)
    }

    /// Slots before `first_open` were handed over; `has_told_all` where all drops were told that had been read by then.
    pub(super) const fn looked(&mut self, first_open: u64, has_told_all: bool) {
        if has_told_all {
            self.0 = first_open;
        }
    }

    /// What bounds drops that were told now ([`RingState::told_until`]); nothing where slots are marked for all of them,
    /// since no other thread has read any.
    pub(super) const fn bound(self, are_marked: bool) -> Option<u64> {
        if are_marked { None } else { Some(self.0) }
    }
}

/// Drops between two slots.
#[derive(Clone, Copy, Debug)]
struct Drops {
    packets: u64,
    /// The first and the last slot that they may lie before.
    from_slot: u64,
    before_slot: u64,
    /// The last packet before `from_slot`, once that is known.
    since: Option<Option<Timestamp>>,
}

/// Keeps drops until the slot is reached that they belong before.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    /// Slots in the ring.
    slots: u64,
    /// Slots that may be on their way behind the first open one.
    in_flight: u64,
    /// What came next at the last reading.
    previous: u64,
    pending: VecDeque<Drops>,
    /// The last packet that was lent, and that of the last reading.
    last: Option<Timestamp>,
    last_then: Option<Timestamp>,
}

impl Losses {
    pub(super) const fn new(slots: usize, in_flight: usize) -> Self {
        Self {
            slots: slots as u64,
            in_flight: in_flight as u64,
            previous: 0,
            pending: VecDeque::new(),
            last: None,
            last_then: None,
        }
    }

    /// Notes drops that the kernel has counted since the last time, with the state of the ring now.
    pub(super) fn note(&mut self, packets: u64, state: RingState) {
        let previous = core::mem::replace(&mut self.previous, state.next);
        let telling = state.first_telling.into_iter().chain(state.told_until).min();
        let from_slot = telling.unwrap_or(u64::MAX).min(state.first_open_before);
        let from_slot = from_slot.max(previous + self.slots).min(state.first_open);
        let before_slot = (state.first_open + self.in_flight).min(state.next + self.slots);
        self.note_between(packets, from_slot, before_slot, state.next);
        self.close_reading();
    }

    /// Notes drops that lie before one of the slots `from_slot` to `before_slot` and have happened since the last
    /// reading, where the backend knows that by itself; `next` is the slot that is lent next.
    pub(super) fn note_between(&mut self, packets: u64, from: u64, before_slot: u64, next: u64) {
        if packets == 0 {
            return;
        }
        let since = match from.cmp(&next) {
            Ordering::Greater => None,
            Ordering::Equal => Some(self.last),
            Ordering::Less => Some(self.last_then),
        };
        self.pending.push_back(Drops { packets, from_slot: from, before_slot, since });
    }

    /// Notes that the counters were read.
    pub(super) const fn close_reading(&mut self) {
        self.last_then = self.last;
    }

    /// The first slot behind number `slot` at which a group that is lent must end, since drops lie between
    /// it and the slot before, or may begin there.
    pub(super) fn cut(&self, slot: u64) -> Option<u64> {
        let cuts = self.pending.iter().flat_map(|drops| [drops.from_slot, drops.before_slot]);
        cuts.filter(|cut| *cut > slot).min()
    }

    /// What was lost before slot number `slot`, with which a group begins whose packets lie between `first`
    /// and `last`.
    pub(super) fn take(&mut self, slot: u64, first: Timestamp, last: Timestamp) -> Option<Loss> {
        for drops in &mut self.pending {
            if drops.since.is_none() && drops.from_slot <= slot {
                drops.since = Some(self.last);
            }
        }
        let mut loss: Option<Loss> = None;
        while let Some(drops) = self.pending.front()
            && drops.before_slot <= slot
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

/// Drops that were told, where the kernel says at each packet how many there were before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReportedDrops {
    pub(super) packets: u64,
    /// The last packet that was lent.
    last: Option<Timestamp>,
}

impl ReportedDrops {
    /// Tells what was lost before a group whose packets lie between `first` and `last`.
    pub(super) fn report(
        &mut self,
        packets: u64,
        first: Timestamp,
        last: Timestamp,
    ) -> Option<Loss> {
        let loss = self.lose(packets, first);
        self.last = Some(last);
        loss
    }

    /// Tells what of the drops in all has no packets behind it.
    pub(super) fn rest(&mut self, dropped: u64, now: Timestamp) -> Option<Loss> {
        self.lose(dropped.saturating_sub(self.packets), now)
    }

    fn lose(&mut self, packets: u64, after: Timestamp) -> Option<Loss> {
        self.packets += packets;
        (packets > 0).then_some(Loss { before: self.last, after, packets, stage: Stage::System })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(seconds: u64) -> Timestamp {
        Timestamp::from_secs_nanos(seconds as i64, 0)
    }

    /// Slot n lasts from second 10 n to second 10 n + 5.
    fn take(losses: &mut Losses, slot: u64) -> Option<(u64, Option<Timestamp>, Timestamp)> {
        let loss = losses.take(slot, time(10 * slot), time(10 * slot + 5))?;
        Some((loss.packets, loss.before, loss.after))
    }

    fn state(next: u64, first_open: u64) -> RingState {
        let first_open_before = first_open;
        RingState { next, first_open, first_open_before, first_telling: None, told_until: None }
    }

    fn full(next: u64) -> RingState {
        state(next, next + 4)
    }

    #[test]
    fn drops_of_a_full_ring_lie_behind_its_last_slot() {
        let mut losses = Losses::new(4, 2);
        losses.note(7, full(0));
        assert_eq!(losses.cut(0), Some(4));
        for slot in 0..4 {
            assert_eq!(take(&mut losses, slot), None, "nothing was lost here");
        }
        assert_eq!(losses.cut(4), None);
        assert_eq!(take(&mut losses, 4), Some((7, Some(time(35)), time(40))));
        assert_eq!(take(&mut losses, 5), None, "told once");
    }

    #[test]
    fn a_ring_that_is_read_before_anything_is_given_back_tells_hole_by_hole() {
        let mut losses = Losses::new(4, 0);
        losses.note(2, full(0));
        assert_eq!(take(&mut losses, 0), None);
        losses.note(3, full(0));
        losses.note(5, full(1));
        (1..4).for_each(|slot| assert_eq!(take(&mut losses, slot), None));
        assert_eq!(take(&mut losses, 4), Some((5, Some(time(35)), time(40))));
        assert_eq!(take(&mut losses, 5), Some((5, Some(time(45)), time(50))));
    }

    #[test]
    fn drops_while_slots_were_given_back_lie_between_the_two_places() {
        let mut losses = Losses::new(4, 0);
        losses.note(2, full(0));
        assert_eq!(take(&mut losses, 0), None);
        // Slot 4 was filled after the first of them.
        losses.note(5, RingState { first_telling: Some(4), ..full(1) });
        assert_eq!(losses.cut(1), Some(4));
        (1..4).for_each(|slot| assert_eq!(take(&mut losses, slot), None));
        assert_eq!(take(&mut losses, 4), Some((2, Some(time(35)), time(40))));
        // These may have been lost on either side of slot 4.
        assert_eq!(take(&mut losses, 5), Some((5, Some(time(35)), time(50))));
    }

    #[test]
    fn slots_that_do_not_tell_bound_them_from_below() {
        let mut losses = Losses::new(4, 0);
        losses.note(1, full(0));
        (0..4).for_each(|slot| assert_eq!(take(&mut losses, slot), None));
        // The ring is full once more, and nothing was lost before slots 4 to 7 were handed over.
        losses.note(5, full(4));
        assert_eq!(take(&mut losses, 4), Some((1, Some(time(35)), time(40))));
        (5..8).for_each(|slot| assert_eq!(take(&mut losses, slot), None));
        assert_eq!(take(&mut losses, 8), Some((5, Some(time(75)), time(80))));
    }

    #[test]
    fn slots_that_another_reading_let_forget_do_not_bound_them() {
        let mut losses = Losses::new(4, 0);
        losses.note(1, full(0));
        (0..4).for_each(|slot| assert!(take(&mut losses, slot).is_none()));
        // As before, but the drops were read when slot 5 was the first that had not come.
        losses.note(5, RingState { told_until: Some(5), ..full(4) });
        assert_eq!(take(&mut losses, 4), Some((1, Some(time(35)), time(40))));
        (5..8).for_each(|slot| assert_eq!(take(&mut losses, slot), None));
        assert_eq!(take(&mut losses, 8), Some((5, Some(time(45)), time(80))));
        // Slot 9 tells of later ones, and the first of all may lie before those that were lent since.
        losses.note(0, state(9, 9));
        (9..14).for_each(|slot| assert_eq!(take(&mut losses, slot), None));
        let first_telling = Some(14);
        losses.note(2, RingState { first_telling, told_until: Some(10), ..state(14, 15) });
        assert_eq!(take(&mut losses, 14), None);
        assert_eq!(take(&mut losses, 15), Some((2, Some(time(85)), time(150))));
    }

    #[test]
    fn slots_that_come_during_a_reading_do_not_place_its_drops() {
        let mut losses = Losses::new(4, 0);
        assert_eq!(take(&mut losses, 0), None);
        // The ring was full up to slot 3 when 2 were dropped. Slot 0 is given back, and slot 4 comes: it is not marked if
        // the reading let the kernel forget them before.
        losses.note(2, RingState { first_open_before: 4, ..state(1, 5) });
        (1..4).for_each(|slot| assert_eq!(take(&mut losses, slot), None));
        assert_eq!(take(&mut losses, 4), None);
        assert_eq!(take(&mut losses, 5), Some((2, Some(time(35)), time(50))));
    }

    #[test]
    fn frames_that_may_be_on_their_way_widen_the_place() {
        let mut losses = Losses::new(4, 1);
        // Slots 0 to 2 were there, then 0 and 1 were given back, and 3 may have been on its way.
        (0..2).for_each(|slot| assert_eq!(take(&mut losses, slot), None));
        losses.note(3, state(2, 4));
        (2..5).for_each(|slot| assert_eq!(take(&mut losses, slot), None));
        assert_eq!(take(&mut losses, 5), Some((3, Some(time(35)), time(50))));
    }

    #[test]
    fn what_nobody_followed_is_told_at_the_end() {
        let mut losses = Losses::new(4, 0);
        assert_eq!(losses.rest(time(1)), None);
        losses.note(1, full(0));
        (0..4).for_each(|slot| assert_eq!(take(&mut losses, slot), None));
        let rest = losses.rest(time(99)).unwrap();
        assert_eq!((rest.packets, rest.before, rest.after), (1, Some(time(35)), time(99)));
        assert_eq!(losses.rest(time(99)), None);
    }

    #[test]
    fn a_backend_may_know_the_place_by_itself() {
        let mut losses = Losses::new(4, 0);
        losses.close_reading();
        assert_eq!(take(&mut losses, 0), None);
        // Behind slot 0, and at an unknown place since the last reading, when nothing had come.
        losses.note_between(3, 1, 1, 1);
        losses.note_between(2, 0, 3, 1);
        losses.note_between(0, 0, 2, 1);
        losses.close_reading();
        assert_eq!(losses.cut(1), Some(3));
        assert_eq!(take(&mut losses, 1), Some((3, Some(time(5)), time(10))));
        assert_eq!(take(&mut losses, 2), None);
        assert_eq!(take(&mut losses, 3), Some((2, None, time(30))));
        losses.note_between(1, 4, 6, 3);
        assert_eq!(take(&mut losses, 4), None);
        assert_eq!(take(&mut losses, 6), Some((1, Some(time(35)), time(60))));
    }

    #[test]
    fn what_packets_tell_is_told_once() {
        let mut told = ReportedDrops::default();
        assert_eq!(told.report(0, time(1), time(2)), None);
        let loss = told.report(3, time(4), time(6)).unwrap();
        assert_eq!((loss.packets, loss.before, loss.after), (3, Some(time(2)), time(4)));
        assert_eq!(told.rest(3, time(9)), None);
        let rest = told.rest(5, time(9)).unwrap();
        assert_eq!((rest.packets, rest.before, rest.after), (2, Some(time(6)), time(9)));
    }

    #[test]
    fn drops_before_the_first_packet_have_no_begin() {
        let mut losses = Losses::new(1, 0);
        losses.note(1, RingState::default());
        assert_eq!(take(&mut losses, 0), Some((1, None, time(0))));
    }

    #[test]
    fn slots_behind_a_reading_of_another_thread_do_not_place_its_drops() {
        // Slots 0 and 1 were handed over. Then drops come, another thread reads them, and the kernel hands over slots 2 to
        // 4, which are not marked for them.
        let mut marked = MarkedUntil::new();
        marked.looked(2, true);
        marked.looked(5, false);
        let cut = |are_marked| {
            let mut losses = Losses::new(4, 0);
            let told_until = marked.bound(are_marked);
            losses.note(3, RingState { told_until, ..state(3, 5) });
            losses.cut(3)
        };
        assert_eq!(cut(false), Some(4), "as far back as a ring of 4 slots can have dropped");
        assert_eq!(cut(true), Some(5), "what is not marked came before the first drop");
    }
}
