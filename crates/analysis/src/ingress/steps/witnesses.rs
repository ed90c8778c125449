//! Clocks of hosts, as the timestamps of TCP tell them (RFC 7323): they say whether time passed where stamps jump.
//!
//! What is remembered has a fixed size. Who fills it with other connections takes evidence away, and adds none.

use netsniff_packet::decode::{Decoded, Transport};
use netsniff_packet::{Address, Timestamp};

/// Directions of connections that are remembered.
const WITNESSES: usize = 1024;

/// A clock is known when it was seen for so long, in nanoseconds, and for so many of its ticks.
const KNOWN_NANOS: i64 = 500_000_000;
const KNOWN_TICKS: i64 = 10;

/// Ticks that are surely no overflow of a clock.
const MOST_TICKS: f64 = (1 << 30) as f64;

/// One direction of a connection, on one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Direction {
    interface: u32,
    addresses: [Address; 2],
    ports: [u16; 2],
}

/// A stamp of the capture in nanoseconds, with the time that the sender had.
#[derive(Clone, Copy, Debug)]
struct Reading {
    stamp: i64,
    ticks: u32,
}

/// What a witness says of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vote {
    /// Its clock did not go on as the stamps did.
    Step,
    /// Its clock went on as the stamps did.
    Pause,
    /// It says nothing that fits.
    Nothing,
}

#[derive(Clone, Debug)]
struct Witness {
    direction: Direction,
    /// The number of steps of the interface when it was seen.
    epoch: u64,
    first: Reading,
    last: Reading,
    /// The last reading before the step, and ticks per nanosecond up to there.
    before: Option<(Reading, f64)>,
    vote: Vote,
}

/// The clocks of the hosts that spoke of late.
#[derive(Debug)]
pub(super) struct Witnesses(Vec<Option<Witness>>);

/// How many hosts say that the clock of the capture was set, and how many that time passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) step: u64,
    pub(super) pause: u64,
}

impl Witnesses {
    pub(super) fn new() -> Self {
        Self(vec![None; WITNESSES])
    }

    /// Takes a packet, which came when the stamps of its interface had made `epoch` steps; the last one, of `size`
    /// nanoseconds, is not judged yet where that is set.
    pub(super) fn hear(
        &mut self,
        interface: u32,
        (stamp, epoch): (Timestamp, u64),
        size: Option<i64>,
        decoded: &Decoded,
    ) {
        let (Transport::Tcp(tcp), Some(ip)) = (&decoded.transport, decoded.ip.as_ref()) else {
            return;
        };
        let Some((ticks, _)) = tcp.options.timestamps else { return };
        let direction = Direction {
            interface,
            addresses: [ip.source, ip.destination],
            ports: [tcp.source_port, tcp.destination_port],
        };
        let reading = Reading { stamp: stamp.nanos(), ticks };
        let Some(place) = self.0.get_mut(direction.place()) else { return };
        match place {
            Some(witness) if witness.direction == direction => witness.hear(reading, epoch, size),
            _ => *place = Some(Witness::new(direction, reading, epoch)),
        }
    }

    /// What the hosts say of the step with which `epoch` began.
    pub(super) fn verdict(&self, interface: u32, epoch: u64) -> Verdict {
        let hosts = |vote: Vote| {
            let of_step = self.0.iter().flatten().filter(|witness| {
                witness.direction.interface == interface && witness.epoch == epoch
            });
            let mut hosts: Vec<_> = of_step
                .filter(|witness| witness.vote == vote)
                .map(|witness| witness.direction.addresses[0])
                .collect();
            hosts.sort_unstable();
            hosts.dedup();
            hosts.len() as u64
        };
        Verdict { step: hosts(Vote::Step), pause: hosts(Vote::Pause) }
    }
}

impl Direction {
    /// Where it is remembered. This is the same in every run, as what is found must be.
    fn place(&self) -> usize {
        let [source, destination] = self.addresses.map(Address::words);
        let ports = u64::from(self.ports[0]) << 16 | u64::from(self.ports[1]);
        let rest = [ports, u64::from(self.interface)];
        let words = source.into_iter().chain(destination).chain(rest);
        let mixed = words.fold(0xcbf2_9ce4_8422_2325_u64, |hash, word| {
            (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        });
        (mixed % WITNESSES as u64) as usize
    }
}

impl Witness {
    const fn new(direction: Direction, reading: Reading, epoch: u64) -> Self {
        let (first, last) = (reading, reading);
        Self { direction, epoch, first, last, before: None, vote: Vote::Nothing }
    }

    fn hear(&mut self, reading: Reading, epoch: u64, size: Option<i64>) {
        if epoch != self.epoch {
            self.before = if self.epoch + 1 == epoch { self.rate() } else { None };
            (self.epoch, self.first, self.vote) = (epoch, reading, Vote::Nothing);
        }
        self.last = reading;
        // Packets that waited for a link to come back tell old times at first. The last word counts.
        if let (Some((before, rate)), Some(size)) = (self.before, size)
            && let Some(vote) = vote(before, reading, rate, size)
        {
            self.vote = vote;
        }
    }

    /// The last reading with the ticks per nanosecond, where the clock is known.
    fn rate(&self) -> Option<(Reading, f64)> {
        let nanos = self.last.stamp.saturating_sub(self.first.stamp);
        let ticks = i64::from(self.last.ticks.wrapping_sub(self.first.ticks).cast_signed());
        let is_known = nanos >= KNOWN_NANOS && ticks >= KNOWN_TICKS;
        is_known.then(|| (self.last, ticks as f64 / nanos as f64))
    }
}

/// What two readings around a step of `size` nanoseconds say of it; `None` where they are too far from each other.
fn vote(before: Reading, now: Reading, rate: f64, size: i64) -> Option<Vote> {
    let stamps = now.stamp.saturating_sub(before.stamp) as f64;
    let size = size as f64;
    if stamps.abs() * rate > MOST_TICKS {
        return None;
    }
    let ticks = now.ticks.wrapping_sub(before.ticks).cast_signed();
    let passed = f64::from(ticks) / rate;
    // A rate may be off by a tenth, which must not be taken for a part of the step.
    if passed.abs() > 2.0 * size.abs() {
        return None;
    }
    Some(match (stamps - passed) / size {
        part if (0.75..=1.25).contains(&part) => Vote::Step,
        part if part.abs() <= 0.25 => Vote::Pause,
        _ => Vote::Nothing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// What a clock with a rate of 1000 Hz says of a step: nanoseconds by the stamps, and ticks.
    fn said(stamps: i64, ticks: i32, size: i64) -> Option<Vote> {
        let before = Reading { stamp: 50 * SECOND, ticks: u32::MAX };
        let now = Reading {
            stamp: before.stamp + stamps,
            ticks: before.ticks.wrapping_add_signed(ticks),
        };
        vote(before, now, 1e-6, size)
    }

    #[test]
    fn a_clock_tells_a_step_from_a_pause() {
        assert_eq!(said(60 * SECOND, 100, 60 * SECOND), Some(Vote::Step));
        assert_eq!(said(60 * SECOND, 60_000, 60 * SECOND), Some(Vote::Pause));
        assert_eq!(said(-60 * SECOND, 100, -60 * SECOND), Some(Vote::Step));
        assert_eq!(
            said(-60 * SECOND, -60_000, -60 * SECOND),
            Some(Vote::Pause),
            "an earlier recording"
        );
        assert_eq!(said(60 * SECOND, 30_000, 60 * SECOND), Some(Vote::Nothing), "half of it");
        assert_eq!(said(260 * SECOND, 200_000, 60 * SECOND), None, "it was silent");
        assert_eq!(said(5_000_000 * SECOND, 0, 60 * SECOND), None, "it may overflow");
    }
}
