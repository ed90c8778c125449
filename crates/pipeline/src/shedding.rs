//! Shedding before losing: how deep new flows are analysed while a ring fills up.
//!
//! A ring that is full loses packets, of whatever flow. Before that, new flows are analysed less deep,
//! so that every packet is at least counted. A state machine without a clock: whoever reads the ring
//! tells how full it is and what time it is.

use netsniff_analysis::Depth;
use netsniff_packet::Timestamp;

/// Share of the ring, in percent, from which new flows are analysed no deeper than [`Depth::Tcp`]. Bursts
/// that an analysis keeps up with on average fill less than half; the other half takes up what comes while
/// the flows that began before are still analysed in full.
const TCP_FROM: u64 = 50;
/// The same for [`Depth::Flows`], which ends what is said in older flows, too: new flows alone did not
/// make enough of a difference.
const FLOWS_FROM: u64 = 70;
/// The same for [`Depth::Packets`]. What is left is room for the packets that come until this depth shows,
/// one look at the ring later.
const PACKETS_FROM: u64 = 85;
/// Share of the ring, in percent, below which there is room for more. Half of [`TCP_FROM`], so that what
/// the deeper analysis adds does not at once bring back the shallower one.
const CALM_BELOW: u64 = 25;
/// How long the ring must be calm until one depth more is tried: longer than the pauses of a sender that
/// waits for an acknowledgement or a retransmission (RFC 6298, 2: one second at first), so that
/// bursts of one transfer count as one.
const RECOVERY_NANOS: i64 = 2_000_000_000;

/// Depth in force for new flows, by how full a ring is.
///
/// It falls at once, as far as needed, and recovers one depth at a time.
#[derive(Clone, Debug)]
pub struct Shedding {
    /// The depth without any shedding.
    deepest: Depth,
    depth: Depth,
    /// When the depth in force began.
    since: Timestamp,
    /// Since when the ring is calm, or one depth was recovered.
    calm_since: Option<Timestamp>,
    /// The latest time told.
    now: Timestamp,
    /// What is over of each depth, by its place in [`Depth::ALL`], with how often each began.
    spells: [DepthEpisodes; Depth::ALL.len()],
}

/// How often a depth came into force, and how long it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DepthEpisodes {
    /// How often it came into force, the begin included.
    pub times: u64,
    /// For how long, in nanoseconds.
    pub nanos: u64,
}

impl Shedding {
    /// Begins at `now` with the depth that is wanted where nothing must be shed.
    #[must_use]
    pub fn new(deepest: Depth, now: Timestamp) -> Self {
        let mut spells = [DepthEpisodes::default(); Depth::ALL.len()];
        spells[deepest as usize].times = 1;
        Self { deepest, depth: deepest, since: now, calm_since: None, now, spells }
    }

    /// Takes note that `used` of the `capacity` of the ring (blocks, bytes or packets) wait to be
    /// analysed at `now`. Returns the depth in force from now on. A ring without capacity tells nothing,
    /// and time that goes back stands still.
    pub fn observe(&mut self, used: u64, capacity: u64, now: Timestamp) -> Depth {
        self.now = self.now.max(now);
        let is_from =
            |percent: u64| u128::from(used) * 100 >= u128::from(capacity) * u128::from(percent);
        if capacity == 0 {
            return self.depth;
        }
        if is_from(CALM_BELOW) {
            self.calm_since = None;
            let most = match () {
                () if is_from(PACKETS_FROM) => Depth::Packets,
                () if is_from(FLOWS_FROM) => Depth::Flows,
                () if is_from(TCP_FROM) => Depth::Tcp,
                () => Depth::Protocols,
            };
            self.change(self.depth.min(most));
        } else {
            let calm_since = *self.calm_since.get_or_insert(self.now);
            if self.depth < self.deepest && self.now.nanos_since(calm_since) >= RECOVERY_NANOS {
                self.calm_since = Some(self.now);
                self.change(deeper(self.depth));
            }
        }
        self.depth
    }

    /// The depth in force.
    #[must_use]
    pub const fn depth(&self) -> Depth {
        self.depth
    }

    /// How often and how long each depth was in force until the latest observation, the deepest first.
    pub fn in_force(&self) -> impl Iterator<Item = (Depth, DepthEpisodes)> {
        let all = Depth::ALL.iter().copied().zip(self.spells).rev();
        all.map(|(depth, mut spells)| {
            if depth == self.depth {
                spells.nanos = spells.nanos.saturating_add(self.lasted());
            }
            (depth, spells)
        })
    }

    /// Nanoseconds since the depth in force began.
    fn lasted(&self) -> u64 {
        u64::try_from(self.now.nanos_since(self.since)).unwrap_or(0)
    }

    fn change(&mut self, depth: Depth) {
        if depth == self.depth {
            return;
        }
        let lasted = self.lasted();
        let over = &mut self.spells[self.depth as usize];
        over.nanos = over.nanos.saturating_add(lasted);
        self.depth = depth;
        self.since = self.now;
        self.spells[depth as usize].times += 1;
    }
}

const fn deeper(depth: Depth) -> Depth {
    match depth {
        Depth::Packets => Depth::Flows,
        Depth::Flows => Depth::Tcp,
        Depth::Tcp | Depth::Protocols => Depth::Protocols,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_nanos(1_700_000_000_000_000_000);
    /// Blocks of a ring.
    const RING: u64 = 64;
    const MILLISECOND: i64 = 1_000_000;

    fn at(milliseconds: i64) -> Timestamp {
        START.offset(milliseconds * MILLISECOND)
    }

    /// What is in force after each of some observations: used percent at milliseconds.
    fn depths(deepest: Depth, observations: &[(i64, u64)]) -> Vec<Depth> {
        let mut shedding = Shedding::new(deepest, START);
        let observe = |&(time, percent): &(i64, u64)| shedding.observe(percent, 100, at(time));
        observations.iter().map(observe).collect()
    }

    #[test]
    fn falls_at_once_and_as_far_as_needed() {
        use Depth::{Flows, Packets, Protocols, Tcp};
        let found =
            depths(Protocols, &[(0, 0), (1, 49), (2, 50), (3, 69), (4, 70), (5, 84), (6, 85)]);
        assert_eq!(found, [Protocols, Protocols, Tcp, Tcp, Flows, Flows, Packets]);
        assert_eq!(depths(Protocols, &[(0, 100)]), [Packets]);
        // A depth that is less than asked for is no cause to get deeper.
        assert_eq!(depths(Protocols, &[(0, 90), (1, 50)]), [Packets, Packets]);
        assert_eq!(depths(Flows, &[(0, 60), (1, 90)]), [Flows, Packets]);
    }

    #[test]
    fn recovers_one_depth_after_each_calm_spell() {
        use Depth::{Flows, Packets, Protocols, Tcp};
        let calm = [
            (0, 100),
            (10, 24),
            (2_009, 0),
            (2_010, 0),
            (4_009, 0),
            (4_010, 0),
            (6_010, 24),
            (9_999, 0),
        ];
        let expected = [Packets, Packets, Packets, Flows, Flows, Tcp, Protocols, Protocols];
        assert_eq!(depths(Protocols, &calm), expected);
        let shallow = depths(Flows, &calm);
        assert_eq!(shallow, [Packets, Packets, Packets, Flows, Flows, Flows, Flows, Flows]);
        // A quarter of the ring is not calm, and begins the wait anew.
        let disturbed = [(0, 60), (10, 0), (1_900, 25), (1_910, 0), (3_900, 0), (3_910, 0)];
        assert_eq!(depths(Protocols, &disturbed), [Tcp, Tcp, Tcp, Tcp, Tcp, Protocols]);
    }

    /// A ring that rises and falls around each of the shares every 10 ms for a minute.
    #[test]
    fn a_ring_around_a_share_changes_the_depth_once() {
        for (low, high, fallen) in
            [(49, 50, 1), (69, 70, 2), (84, 85, 2), (24, 25, 0), (24, 55, 1), (0, 100, 1)]
        {
            let mut shedding = Shedding::new(Depth::Protocols, START);
            let mut changes = 0;
            for step in 0..6_000 {
                let before = shedding.depth();
                let used = if step % 2 == 0 { low } else { high };
                shedding.observe(used, 100, at(step * 10));
                changes += i32::from(shedding.depth() != before);
            }
            assert_eq!(changes, fallen, "{low} to {high}");
        }
    }

    /// An analysis that is too slow for all protocols: the ring fills within half a second of each
    /// recovery. No more than one change back and forth for each wait.
    #[test]
    fn a_lasting_overload_is_tried_again_once_in_a_while() {
        let mut shedding = Shedding::new(Depth::Protocols, START);
        let (mut used, mut worst) = (0_i64, 0);
        for step in 0..6_000 {
            let rate = if shedding.depth() == Depth::Protocols { 1 } else { -1 };
            used = (used + rate).clamp(0, RING as i64);
            worst = worst.max(used);
            shedding.observe(used.unsigned_abs(), RING, at(step * 10));
        }
        let spells: Vec<_> = shedding.in_force().collect();
        let [(_, protocols), (_, tcp), (_, flows), (_, packets)] = spells[..] else { panic!() };
        assert_eq!((flows.times, packets.times), (0, 0));
        assert!(
            (20..=30).contains(&tcp.times) && protocols.times.abs_diff(tcp.times) <= 1,
            "{tcp:?}"
        );
        assert_eq!(worst, RING as i64 / 2, "the ring never gets fuller than where shedding begins");
    }

    #[test]
    fn times_and_spells_add_up() {
        let mut shedding = Shedding::new(Depth::Protocols, START);
        for (time, used) in [(100, 60), (150, 90), (1_000, 0), (3_500, 0), (3_000, 0), (4_000, 0)] {
            shedding.observe(used, 100, at(time));
        }
        let found: Vec<_> = shedding.in_force().map(|(_, spells)| spells).collect();
        let spells = |times, millis: u64| DepthEpisodes { times, nanos: millis * 1_000_000 };
        assert_eq!(found, [spells(1, 100), spells(1, 50), spells(1, 500), spells(1, 3_350)]);
        let sum: u64 = found.iter().map(|spells| spells.nanos).sum();
        assert_eq!(sum, 4_000 * 1_000_000);
    }

    #[test]
    fn nonsense_changes_nothing() {
        let mut shedding = Shedding::new(Depth::Protocols, START);
        assert_eq!(shedding.observe(5, 0, at(1)), Depth::Protocols);
        assert_eq!(shedding.observe(u64::MAX, u64::MAX, at(2)), Depth::Packets);
        shedding.observe(0, RING, at(10));
        assert_eq!(shedding.observe(0, RING, at(-100_000)), Depth::Packets);
        assert_eq!(shedding.observe(0, RING, Timestamp::MAX), Depth::Flows);
        assert_eq!(shedding.in_force().map(|(_, spells)| spells.times).sum::<u64>(), 3);
    }
}
