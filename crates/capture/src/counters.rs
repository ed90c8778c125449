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

impl RingCounters {
    /// Adds what an earlier ring of the same interface had counted.
    pub fn add_earlier(&mut self, earlier: &Self) {
        fn sum(now: &mut Option<u64>, earlier: Option<u64>) {
            *now = now.zip(earlier).map(|(now, earlier)| now + earlier);
        }
        self.delivered += earlier.delivered;
        self.delivered_bytes += earlier.delivered_bytes;
        sum(&mut self.accepted, earlier.accepted);
        sum(&mut self.dropped, earlier.dropped);
        sum(&mut self.filtered, earlier.filtered);
        sum(&mut self.freezes, earlier.freezes);
        self.malformed += earlier.malformed;
        self.cut += earlier.cut;
        self.retagged += earlier.retagged;
        self.partial_checksums += earlier.partial_checksums;
        self.super_frames += earlier.super_frames;
        self.inversions += earlier.inversions;
        self.deepest_inversion = self.deepest_inversion.max(earlier.deepest_inversion);
        self.wrong_stamps += earlier.wrong_stamps;
        self.waiting.groups += earlier.waiting.groups;
        self.waiting.empty += earlier.waiting.empty;
        self.waiting.polls += earlier.waiting.polls;
        self.waiting.wakeups += earlier.waiting.wakeups;
        self.waiting.naps += earlier.waiting.naps;
        self.occupancy.high_water = self.occupancy.high_water.max(earlier.occupancy.high_water);
    }
}

/// How often there was nothing, and what was done then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitCounters {
    /// Groups of packets that were lent.
    pub groups: u64,
    /// Times that nothing was there, after something had been.
    pub empty: u64,
    /// Calls of poll(2).
    pub polls: u64,
    /// Those that ended since packets came.
    pub wakeups: u64,
    /// Times that the thread slept for a time of its own choice.
    pub naps: u64,
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

    /// Free units.
    #[must_use]
    pub const fn room(&self) -> u32 {
        self.capacity.saturating_sub(self.used)
    }
}
