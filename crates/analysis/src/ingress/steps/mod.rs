//! Where the stamps of an interface jump or are out of order, for whoever looks through records.
//!
//! A jump is a step of the clock only if the hosts' own clocks say that no such time passed: a pause of the
//! traffic looks the same, and so does another recording in the same file.

mod witnesses;

use std::collections::BTreeMap;

use netsniff_packet::decode::Decoded;
use netsniff_packet::{Packet, Timestamp};

use crate::key::uid::Uid;
use crate::notice::Watch;
use crate::notice::clocks::{Disorder, Step};
use crate::record::{Interval, Observer, Phase, SortKey};
use witnesses::{Verdict, Witnesses};

/// Interfaces that are looked at. A file may describe more.
const MOST_INTERFACES: usize = 1_000;

/// Nanoseconds behind a jump at which it is judged. Packets that waited for a link tell old times up to there.
const JUDGED_AFTER: i64 = 5_000_000_000;
/// Behind a jump ahead at least so much must have been seen.
const LEAST: i64 = 1_000_000_000;

/// The number of a fact among those of its packet: behind what ARP tells, and what was lost.
const NUMBER: u32 = u32::MAX;

/// The stamps of all interfaces.
#[derive(Debug)]
pub(super) struct Steps {
    /// Nanoseconds from which on a jump is looked at.
    bound: i64,
    interfaces: BTreeMap<u32, Interface>,
    witnesses: Witnesses,
}

/// The stamps of an interface.
#[derive(Debug)]
struct Interface {
    last: Timestamp,
    /// The latest one since the last jump.
    latest: Timestamp,
    /// How many jumps were looked at.
    epoch: u64,
    jump: Option<Jump>,
    packets: u64,
    late: u64,
    /// The furthest that one lies back, in nanoseconds, and the number of the first.
    deepest: i64,
    first_late: u64,
    steps: u64,
    largest: Option<Judged>,
}

/// A jump that is not judged yet.
#[derive(Clone, Copy, Debug)]
struct Jump {
    size: i64,
    /// Number of the packet.
    ordinal: u64,
    /// The first stamp behind it.
    begin: Timestamp,
    /// The latest stamp before it.
    latest: Timestamp,
    packets: u64,
}

/// A step of a clock.
#[derive(Clone, Copy, Debug)]
struct Judged {
    size: i64,
    ordinal: u64,
    hosts: u64,
}

impl Steps {
    /// Nothing seen yet; `None` where nobody looks for findings.
    pub(super) fn new(watch: &Watch) -> Option<Self> {
        let seconds = i64::try_from(watch.step_seconds()?).unwrap_or(i64::MAX);
        Some(Self {
            bound: seconds.saturating_mul(1_000_000_000),
            interfaces: BTreeMap::new(),
            witnesses: Witnesses::new(),
        })
    }

    /// Takes the stamp of a packet with its number, at engine time `now`.
    pub(super) fn packet<O: Observer>(
        &mut self,
        packet: &Packet<'_>,
        decoded: &Decoded,
        (now, ordinal): (Timestamp, u64),
        observer: &mut O,
    ) {
        let (number, stamp) = (packet.interface, packet.timestamp);
        if !self.interfaces.contains_key(&number) {
            if self.interfaces.len() >= MOST_INTERFACES {
                return;
            }
            self.interfaces.insert(number, Interface::new(stamp));
        }
        let Some(interface) = self.interfaces.get_mut(&number) else { return };
        let mut judged = None;
        let jump = stamp.nanos_since(interface.last);
        if jump.saturating_abs() >= self.bound {
            judged = interface
                .jumps(jump, (stamp, ordinal), |epoch| self.witnesses.verdict(number, epoch));
        } else if let Some(jump) = interface.jump
            && stamp.nanos_since(jump.begin) >= JUDGED_AFTER
        {
            judged = interface.judge(|epoch| self.witnesses.verdict(number, epoch));
        }
        interface.note(stamp, ordinal);
        let size = interface.jump.map(|jump| jump.size);
        let epoch = interface.epoch;
        self.witnesses.hear(number, (stamp, epoch), size, decoded);
        if let Some(judged) = judged {
            let key = key(now, Phase::Packet, ordinal, NUMBER);
            observer.unwritten(&key, &judged.told(number, None));
        }
    }

    /// Tells what the stamps of each interface amount to, at the end.
    pub(super) fn finish<O: Observer>(
        &mut self,
        (now, ordinal): (Timestamp, u64),
        observer: &mut O,
    ) {
        for (place, (&number, interface)) in (0_u32..).zip(&mut self.interfaces) {
            let key_of = |which| key(now, Phase::End, ordinal, place * 3 + which);
            if let Some(judged) = interface.judge(|epoch| self.witnesses.verdict(number, epoch)) {
                observer.unwritten(&key_of(0), &judged.told(number, None));
            }
            if let Some(largest) = interface.largest.filter(|_| interface.steps > 1) {
                let sum = largest.told(number, Some(interface.steps));
                observer.unwritten(&key_of(1), &sum);
            }
            if interface.late > 0 {
                let disorder = Disorder {
                    interface: number,
                    packets: interface.packets,
                    late: interface.late,
                    deepest: Interval::from_nanos(interface.deepest),
                    first: interface.first_late,
                };
                observer.unwritten(&key_of(2), &disorder);
            }
        }
    }
}

const fn key(time: Timestamp, phase: Phase, ordinal: u64, number: u32) -> SortKey {
    SortKey { time, phase, ordinal, uid: Uid::NONE, number }
}

impl Judged {
    const fn told(&self, interface: u32, steps: Option<u64>) -> Step {
        Step {
            interface,
            packet: self.ordinal,
            size: Interval::from_nanos(self.size),
            hosts: self.hosts,
            steps,
        }
    }
}

impl Interface {
    const fn new(first: Timestamp) -> Self {
        Self {
            last: first,
            latest: first,
            epoch: 0,
            jump: None,
            packets: 0,
            late: 0,
            deepest: 0,
            first_late: 0,
            steps: 0,
            largest: None,
        }
    }

    /// Takes a stamp that is far from the last one. Returns the jump before, where that is judged now.
    fn jumps(
        &mut self,
        size: i64,
        (stamp, ordinal): (Timestamp, u64),
        verdict: impl FnOnce(u64) -> Verdict,
    ) -> Option<Judged> {
        let mut judged = None;
        if let Some(before) = self.jump {
            if is_undone(before.size, size) {
                // Some packets were stamped by another clock, or wait for the others of their time.
                self.jump = None;
                self.epoch += 1;
                if before.size < 0 {
                    self.late += before.packets;
                    self.first_late =
                        if self.first_late == 0 { before.ordinal } else { self.first_late };
                    self.deepest = self.deepest.max(before.size.saturating_neg());
                }
                self.latest = before.latest.max(stamp);
                return None;
            }
            // A shorter pause does not end what is open.
            let is_due = stamp.nanos_since(before.begin) >= JUDGED_AFTER;
            if !is_due && size > 0 && size / 2 <= before.size.saturating_abs() {
                return None;
            }
            judged = self.judge(verdict);
        }
        let (begin, latest) = (stamp, self.latest);
        self.jump = Some(Jump { size, ordinal, begin, latest, packets: 0 });
        self.epoch += 1;
        self.latest = stamp;
        judged
    }

    /// Judges the jump that is open, if one is.
    fn judge(&mut self, verdict: impl FnOnce(u64) -> Verdict) -> Option<Judged> {
        let Jump { size, ordinal, begin, .. } = self.jump.take()?;
        let Verdict { step, pause } = verdict(self.epoch);
        // Of a jump back without any witness it is not known what it is.
        let is_too_early = size > 0 && self.latest.nanos_since(begin) < LEAST;
        if pause > 0 || size > 0 && step == 0 || is_too_early {
            return None;
        }
        let judged = Judged { size, ordinal, hosts: step };
        self.steps += 1;
        let is_larger = |other: &Judged| other.size.saturating_abs() >= size.saturating_abs();
        if !self.largest.as_ref().is_some_and(is_larger) {
            self.largest = Some(judged);
        }
        Some(judged)
    }

    fn note(&mut self, stamp: Timestamp, ordinal: u64) {
        self.packets += 1;
        self.last = stamp;
        if let Some(jump) = &mut self.jump {
            jump.packets += 1;
        }
        if stamp >= self.latest {
            self.latest = stamp;
            return;
        }
        self.late += 1;
        self.deepest = self.deepest.max(self.latest.nanos_since(stamp));
        if self.first_late == 0 {
            self.first_late = ordinal;
        }
    }
}

/// Whether a jump takes back the one before.
fn is_undone(before: i64, size: i64) -> bool {
    before.saturating_add(size).saturating_abs() <= before.saturating_abs() / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTS: fn(u64) -> Verdict = |_| Verdict { step: 2, pause: 0 };

    /// The sizes in seconds that are judged of stamps at these tenths of a second, and how many are late.
    fn judged(tenths: &[i64], verdict: fn(u64) -> Verdict) -> (Vec<i64>, u64) {
        let at = |tenth: i64| Timestamp::from_nanos(1_000_000_000_000 + tenth * 100_000_000);
        let mut interface = Interface::new(at(tenths[0]));
        let mut sizes = Vec::new();
        for (ordinal, &tenth) in (1..).zip(tenths) {
            let jump = at(tenth).nanos_since(interface.last);
            if jump.abs() >= 2_000_000_000 {
                sizes.extend(interface.jumps(jump, (at(tenth), ordinal), verdict));
            }
            interface.note(at(tenth), ordinal);
        }
        sizes.extend(interface.judge(verdict));
        let seconds = sizes.iter().map(|judged| judged.size / 1_000_000_000).collect();
        (seconds, interface.late)
    }

    #[test]
    fn jumps_are_judged_by_the_clocks_of_hosts() {
        let ahead: Vec<i64> = (0..10).chain(1_000..1_020).collect();
        assert_eq!(judged(&ahead, HOSTS), (vec![99], 0));
        assert_eq!(judged(&ahead, |_| Verdict { step: 0, pause: 0 }), (vec![], 0), "a pause");
        assert_eq!(judged(&ahead, |_| Verdict { step: 3, pause: 1 }), (vec![], 0), "contradicted");
        assert_eq!(
            judged(&ahead[..15], HOSTS),
            (vec![], 0),
            "half a second behind it is too little"
        );
        let back: Vec<i64> = (1_000..1_010).chain(0..3).collect();
        assert_eq!(judged(&back, |_| Verdict { step: 0, pause: 0 }), (vec![-100], 0));
        assert_eq!(judged(&back, |_| Verdict { step: 0, pause: 1 }), (vec![], 0), "an older file");
    }

    #[test]
    fn packets_of_another_time_are_late_and_no_step() {
        let excursion = [100, 101, 102, 5, 6, 103, 104, 120];
        assert_eq!(judged(&excursion, HOSTS), (vec![], 2));
        let twice = [100, 101, 5, 102, 6, 103, 7, 104, 130];
        assert_eq!(judged(&twice, HOSTS), (vec![], 3));
        assert_eq!(judged(&[100, 101, 100, 102, 101], HOSTS), (vec![], 2), "a little");
    }
}
