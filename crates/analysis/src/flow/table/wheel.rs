//! Deadlines of flows in a ring of ticks, so that arming one costs the same for any number.

use netsniff_packet::Timestamp;

/// Length of a tick. Watermarks come at its multiples, and records wait for the next one: 10 ms
/// keep few records waiting even where a flood ends flows by the million.
pub const TICK_NANOS: i64 = 10_000_000;

/// Ticks in the ring: deadlines further away than this (about five and a half minutes) are looked
/// at once a turn. Longer than the usual time-outs, so that nearly every flow is looked at once.
const SLOTS: usize = 32_768;

/// The tick that a time lies in.
#[must_use]
#[inline]
pub const fn tick_of(time: Timestamp) -> i64 {
    time.nanos().div_euclid(TICK_NANOS)
}

/// When a tick begins.
#[must_use]
pub const fn begin_of(tick: i64) -> Timestamp {
    Timestamp::from_nanos(tick.saturating_mul(TICK_NANOS))
}

/// An entry: a flow's place in its table, with the tick for which it was armed. Where the flow that
/// is there now was armed for another tick, the entry is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Place in the table.
    pub place: u32,
    /// The tick, as [`Wheel::arm`] returned it.
    pub armed: Armed,
}

/// A tick for which something is armed: its low 32 bits, since none lies further off than a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Armed(u32);

impl Armed {
    /// Whether this comes up at `tick` or has come up before.
    #[must_use]
    #[inline]
    pub const fn is_up(self, tick: i64) -> bool {
        self.0.wrapping_sub(tick as u32) as i32 <= 0
    }

    /// What no entry of the ring is armed for while this one comes up: a tick that passed two turns ago.
    #[must_use]
    pub const fn never(self) -> Self {
        Self(self.0.wrapping_sub(2 * SLOTS as u32))
    }

    /// Whether this comes up after `tick`.
    #[must_use]
    #[inline]
    pub const fn is_after(self, tick: i64) -> bool {
        !self.is_up(tick)
    }
}

/// A timing wheel. Entries are never removed: a flow whose deadline moved on is armed again when
/// its entry comes up, and entries of flows that are gone or were armed anew are recognised.
#[derive(Debug)]
pub struct Wheel {
    slots: Vec<Vec<Entry>>,
    /// A bit for each slot that holds something, so that empty ones are skipped 64 at a time.
    occupied: Vec<u64>,
    /// The first tick that has not passed.
    current: i64,
    started: bool,
}

impl Default for Wheel {
    fn default() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| Vec::new()).collect(),
            occupied: vec![0; SLOTS / 64],
            current: 0,
            started: false,
        }
    }
}

impl Wheel {
    /// Bytes for one more entry in the worst case: the memory of a slot doubles.
    pub const BYTES: usize = 2 * size_of::<Entry>();

    /// Arms the flow at `place` for `tick` and returns the tick at which it will come up: that, or
    /// an earlier one where it lies too far ahead, or the current one where it has passed.
    #[inline]
    pub fn arm(&mut self, place: u32, tick: i64) -> Armed {
        self.start(tick);
        let tick = tick.clamp(self.current, self.last());
        let (armed, slot) = (Armed(tick as u32), slot_of(tick));
        self.slots[slot].push(Entry { place, armed });
        self.occupied[slot / 64] |= 1 << (slot % 64);
        armed
    }

    /// The tick for which something is armed that did not come up yet.
    #[must_use]
    pub const fn tick_of(&self, armed: Armed) -> i64 {
        let ahead = armed.0.wrapping_sub(self.current as u32) as i32;
        self.current.saturating_add(ahead as i64)
    }

    /// The first tick that has not passed.
    #[must_use]
    pub const fn current(&self) -> i64 {
        self.current
    }

    /// Whether `tick` lies a turn or more ahead, so that the wheel must pass what lies between:
    /// what is armed is told by its low bits only.
    #[must_use]
    #[inline]
    pub const fn is_behind(&self, tick: i64) -> bool {
        self.started && tick.saturating_sub(self.current) >= SLOTS as i64
    }

    /// The last tick of the ring: what is armed for a later one comes up then.
    #[must_use]
    pub const fn last(&self) -> i64 {
        self.current.saturating_add(SLOTS as i64 - 1)
    }

    /// Begins counting at `tick`, unless it has begun.
    pub const fn start(&mut self, tick: i64) {
        if !self.started {
            self.started = true;
            self.current = tick;
        }
    }

    /// Takes the entries that come up before the tick `until`, with the tick that has then passed,
    /// and moves on, past ticks for which nothing is armed. Call it until it returns nothing. A jump over more than a turn takes all
    /// entries at once. Slots keep no memory, so that the wheel takes what is armed and not the most
    /// that each slot ever had.
    pub fn pass(&mut self, until: i64) -> Option<(i64, Vec<Entry>)> {
        if self.current >= until {
            return None;
        }
        if until.saturating_sub(self.current) > SLOTS as i64 {
            self.current = until;
            return Some((until - 1, self.take_all()));
        }
        // Ticks for which nothing is armed cost nothing, however far time leaps.
        let next = self.ahead().map(|ahead| self.current.saturating_add(ahead as i64));
        let Some(tick) = next.filter(|&tick| tick < until) else {
            self.current = until;
            return None;
        };
        self.current = tick + 1;
        let slot = slot_of(tick);
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        Some((tick, core::mem::take(&mut self.slots[slot])))
    }

    /// Takes the entries that come up at the tick, which is the current one or later.
    pub fn take_at(&mut self, tick: i64) -> Vec<Entry> {
        if !(self.current..=self.last()).contains(&tick) {
            return Vec::new();
        }
        let slot = slot_of(tick);
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        core::mem::take(&mut self.slots[slot])
    }

    /// Takes all entries. Slots without any cost a bit each, since whoever writes the times of packets may leap again and again.
    fn take_all(&mut self) -> Vec<Entry> {
        let mut all = Vec::new();
        let mut from = 0;
        while let Some(at) = self.next_occupied(from, SLOTS) {
            all.append(&mut core::mem::take(&mut self.slots[at]));
            from = at + 1;
        }
        self.occupied.fill(0);
        all
    }

    /// Ticks from the current one to the first for which something is armed.
    fn ahead(&self) -> Option<usize> {
        let from = slot_of(self.current);
        let at = self.next_occupied(from, SLOTS).or_else(|| self.next_occupied(0, from))?;
        Some((at + SLOTS - from) % SLOTS)
    }

    /// Takes one entry of those that come up first, with its tick.
    pub fn pop_first(&mut self) -> Option<(i64, Entry)> {
        let ahead = self.ahead()?;
        let at = (slot_of(self.current) + ahead) % SLOTS;
        let slot = &mut self.slots[at];
        let entry = slot.pop()?;
        if slot.is_empty() {
            // A flood that is evicted would leave its entries' memory in one slot after the other.
            *slot = Vec::new();
            self.occupied[at / 64] &= !(1 << (at % 64));
        }
        Some((self.current.saturating_add(ahead as i64), entry))
    }

    /// The first slot from `from` up to `end` that holds something.
    fn next_occupied(&self, from: usize, end: usize) -> Option<usize> {
        let words = self.occupied.get(from / 64..end.div_ceil(64))?;
        let mut mask = u64::MAX << (from % 64);
        for (number, word) in (from / 64..).zip(words) {
            let bits = word & core::mem::replace(&mut mask, u64::MAX);
            if bits != 0 {
                let at = number * 64 + bits.trailing_zeros() as usize;
                return (at < end).then_some(at);
            }
        }
        None
    }
}

const fn slot_of(tick: i64) -> usize {
    tick.rem_euclid(SLOTS as i64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(wheel: &mut Wheel, until: i64) -> Vec<(i64, u32)> {
        let mut seen = Vec::new();
        while let Some((tick, entries)) = wheel.pass(until) {
            seen.extend(entries.iter().map(|e| (tick, e.place)));
        }
        seen
    }

    #[test]
    fn entries_come_up_at_their_tick() {
        let mut wheel = Wheel::default();
        wheel.start(10);
        wheel.arm(1, 12);
        wheel.arm(2, 11);
        assert_eq!(places(&mut wheel, 12), [(11, 2)]);
        assert_eq!(places(&mut wheel, 100), [(12, 1)]);
    }

    #[test]
    fn the_first_entries_are_taken_first() {
        let mut wheel = Wheel::default();
        wheel.start(0);
        wheel.arm(1, 500);
        wheel.arm(2, 20);
        let mut place = || wheel.pop_first().map(|(tick, entry)| (tick, entry.place));
        assert_eq!((place(), place(), place()), (Some((20, 2)), Some((500, 1)), None));
        wheel.arm(3, 30);
        assert_eq!(wheel.pop_first().map(|(tick, _)| tick), Some(30));
    }

    #[test]
    fn far_and_past_deadlines_are_clamped() {
        let mut wheel = Wheel::default();
        wheel.start(0);
        assert_eq!(wheel.arm(1, 1_000_000), Armed(SLOTS as u32 - 1));
        assert_eq!(wheel.arm(2, -5), Armed(0));
        assert!(Armed(5).is_up(5) && Armed(5).is_after(4) && Armed(2).is_after(0xffff_fffe));
    }

    #[test]
    fn a_jump_over_years_is_quick_and_loses_nothing() {
        let mut wheel = Wheel::default();
        wheel.start(0);
        wheel.arm(1, 3);
        wheel.arm(2, 30_000);
        assert!(wheel.is_behind(i64::MAX / 2) && !wheel.is_behind(SLOTS as i64 - 1));
        assert_eq!(
            places(&mut wheel, i64::MAX / 2),
            [(i64::MAX / 2 - 1, 1), (i64::MAX / 2 - 1, 2)]
        );
        assert_eq!(wheel.current(), i64::MAX / 2);
    }

    /// As many calls as there are ticks with entries, and one that finds none, wherever they lie.
    #[test]
    fn ticks_without_entries_cost_no_call() {
        for start in [0, 63, SLOTS as i64 - 1, -70_000] {
            let mut wheel = Wheel::default();
            wheel.start(start);
            for ahead in [5, 64, 20_000, SLOTS as i64 - 1] {
                wheel.arm(1, start + ahead);
            }
            let calls = |wheel: &mut Wheel, until: i64| {
                let mut ticks = Vec::new();
                while let Some((tick, entries)) = wheel.pass(until) {
                    assert!(!entries.is_empty(), "an empty tick was told");
                    ticks.push(tick - start);
                }
                assert_eq!(wheel.current(), until);
                ticks
            };
            assert_eq!(calls(&mut wheel, start + 5), []);
            assert_eq!(calls(&mut wheel, start + 20_000), [5, 64]);
            assert_eq!(calls(&mut wheel, start + SLOTS as i64), [20_000, SLOTS as i64 - 1]);
            assert_eq!(calls(&mut wheel, start + 2 * SLOTS as i64), []);
        }
    }

    #[test]
    fn what_comes_up_first_is_taken_first_all_around_the_ring() {
        for current in [0, 1, 63, 64, SLOTS as i64 - 1, 5 * SLOTS as i64 + 100, -7] {
            let mut wheel = Wheel::default();
            wheel.start(current);
            let ahead = [0, 1, 62, 63, 64, 127, 128, 4000, SLOTS as i64 - 64, SLOTS as i64 - 1];
            let ticks: Vec<i64> = ahead.iter().map(|ahead| current + ahead).collect();
            for (place, &tick) in (0_u32..10).zip(&ticks).rev() {
                wheel.arm(place, tick);
                wheel.arm(place + 100, tick);
            }
            for (place, &tick) in (0_u32..10).zip(&ticks) {
                for place in [place + 100, place] {
                    let (taken, entry) = wheel.pop_first().unwrap();
                    assert_eq!((taken, entry.place), (tick, place), "from {current}");
                }
            }
            assert_eq!(wheel.pop_first(), None);
            wheel.arm(9, current);
            wheel.pass(current + 1);
            assert_eq!(wheel.pop_first(), None, "what has passed is no longer there");
            for ahead in 1..11 {
                wheel.arm(1, current + ahead);
            }
            while wheel.pass(current + 11).is_some() {}
            let last = current + SLOTS as i64 + 5;
            wheel.arm(2, last);
            let place = wheel.pop_first().map(|(tick, entry)| (tick, entry.place));
            assert_eq!(place, Some((last, 2)), "nor does it hide what lies behind");
        }
    }
}
