//! What a ring has counted.

/// Totals since a ring was started. What the platform does not count is `None`, never 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RingCounters {
    /// Packets that were lent to the caller.
    pub delivered: u64,
    /// Their bytes on the wire.
    pub delivered_bytes: u64,
    /// Packets that the kernel put into the ring, those that are still there included.
    pub accepted: Option<u64>,
    /// Packets for which the ring had no room.
    pub dropped: Option<u64>,
    /// Packets that the filter refused.
    pub filtered: Option<u64>,
    /// How often the ring became full.
    pub freezes: Option<u64>,
    /// Packets whose description in the ring made no sense; each block of them is given up from there on.
    pub malformed: u64,
    /// Packets that were cut to the snapshot length.
    pub cut: u64,
    /// Packets whose VLAN tag was put back.
    pub retagged: u64,
    /// Packets whose checksum the interface would have completed: sent by this machine.
    pub partial_checksums: u64,
    /// Packets larger than the interface's MTU: several segments that the stack had merged or not yet cut.
    pub super_frames: u64,
    /// Packets whose stamp is earlier than that of one before.
    pub inversions: u64,
    /// By how many nanoseconds at most.
    pub deepest_inversion: u64,
    /// Packets whose stamp was more than a second off the clock, and that got the clock's.
    pub wrong_stamps: u64,
    /// How the waiting went.
    pub waiting: WaitCounters,
    /// How full the ring is.
    pub occupancy: Occupancy,
}

/// What the kernel counts of the packets that come to a ring, since its start. What it does not count is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// As [`RingCounters::accepted`].
    pub accepted: Option<u64>,
    /// As [`RingCounters::dropped`].
    pub dropped: Option<u64>,
    /// As [`RingCounters::filtered`].
    pub filtered: Option<u64>,
}

impl Counted {
    /// With what another ring has counted, or an earlier one. What one of them does not know, the sum does not.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let sum = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
        Self {
            accepted: sum(self.accepted, other.accepted),
            dropped: sum(self.dropped, other.dropped),
            filtered: sum(self.filtered, other.filtered),
        }
    }
}

impl RingCounters {
    /// What the kernel has counted of this.
    #[must_use]
    pub const fn counted(&self) -> Counted {
        Counted { accepted: self.accepted, dropped: self.dropped, filtered: self.filtered }
    }

    /// Takes over what the kernel has counted.
    pub const fn set_counted(&mut self, counted: Counted) {
        Counted { accepted: self.accepted, dropped: self.dropped, filtered: self.filtered } =
            counted;
    }

    /// Adds what another ring of the same interface has counted, or an earlier one. Occupancy stays that
    /// of this ring, but for the most that was in use. What one of them does not know, the sum does not.
    pub fn add(&mut self, other: &Self) {
        fn sum(own: &mut Option<u64>, other: Option<u64>) {
            *own = own.zip(other).map(|(own, other)| own + other);
        }
        // Named one by one, so that a counter cannot be forgotten.
        let Self {
            delivered,
            delivered_bytes,
            accepted,
            dropped,
            filtered,
            freezes,
            malformed,
            cut,
            retagged,
            partial_checksums,
            super_frames,
            inversions,
            deepest_inversion,
            wrong_stamps,
            waiting,
            occupancy,
        } = other;
        self.delivered += delivered;
        self.delivered_bytes += delivered_bytes;
        sum(&mut self.accepted, *accepted);
        sum(&mut self.dropped, *dropped);
        sum(&mut self.filtered, *filtered);
        sum(&mut self.freezes, *freezes);
        self.malformed += malformed;
        self.cut += cut;
        self.retagged += retagged;
        self.partial_checksums += partial_checksums;
        self.super_frames += super_frames;
        self.inversions += inversions;
        self.deepest_inversion = self.deepest_inversion.max(*deepest_inversion);
        self.wrong_stamps += wrong_stamps;
        self.waiting.add(waiting);
        self.occupancy.high_water = self.occupancy.high_water.max(occupancy.high_water);
    }
}

/// How often there was nothing, and what was done then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitCounters {
    /// Groups of packets that were lent.
    pub groups: u64,
    /// Times that nothing was there, after something had been.
    pub empty: u64,
    /// Number of calls of poll(2).
    pub polls: u64,
    /// Those that ended since packets came.
    pub wakeups: u64,
    /// Times that the thread slept for a time of its own choice.
    pub naps: u64,
}

impl WaitCounters {
    /// Adds what another ring has counted.
    fn add(&mut self, other: &Self) {
        let Self { groups, empty, polls, wakeups, naps } = other;
        self.groups += groups;
        self.empty += empty;
        self.polls += polls;
        self.wakeups += wakeups;
        self.naps += naps;
    }
}

/// How full a ring is, in blocks, frames or bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Units that wait to be read, or are being read.
    pub used: u32,
    /// The most that there were.
    pub high_water: u32,
    /// Units that the ring has.
    pub capacity: u32,
}

impl Occupancy {
    /// Nothing waits, of one unit.
    pub const EMPTY: Self = Self { used: 0, high_water: 0, capacity: 1 };

    /// Notes how many units are in use.
    pub(crate) fn note(&mut self, used: u32) {
        self.used = used;
        self.high_water = self.high_water.max(used);
    }

    /// Units that are free for what comes.
    #[must_use]
    pub const fn room(&self) -> u32 {
        self.capacity.saturating_sub(self.used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_ring_does_not_know_the_sum_does_not() {
        let one = RingCounters {
            delivered: 1,
            accepted: Some(3),
            dropped: Some(5),
            deepest_inversion: 7,
            waiting: WaitCounters { polls: 2, ..WaitCounters::default() },
            ..RingCounters::default()
        };
        let mut sum = RingCounters { accepted: None, deepest_inversion: 9, ..one.clone() };
        sum.add(&one);
        assert_eq!((sum.delivered, sum.accepted, sum.dropped), (2, None, Some(10)));
        assert_eq!((sum.deepest_inversion, sum.waiting.polls), (9, 4), "a maximum and a sum");
    }
}
