//! Many hosts at once, merged by time.

use core::time::Duration;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use netsniff_packet::Timestamp;

use super::{ActiveSession, Kind, Profile};
use crate::Random;
use crate::dialogue::{Seen, Side};
use crate::impair::{Impairment, Timed};
use crate::random::mix;

/// What the hosts do.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How many there are.
    pub hosts: u32,
    /// Their sessions, each kind as often as it stands there; none at all is no traffic.
    pub mix: Vec<Kind>,
    /// What the sessions are like.
    pub profile: Profile,
    /// Mean time between two sessions of a host.
    pub think: Duration,
    /// Sessions in all; `None` for no end.
    pub sessions: Option<u64>,
    /// Whether they have IPv6.
    pub is_ipv6: bool,
    /// What the network does to packets, which TCP answers; by each leg alike.
    pub network: Impairment,
    /// What everything depends on.
    pub seed: u64,
    /// When the first session begins, at the earliest.
    pub start: Timestamp,
}

/// A frame as a tap before the hosts sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// When it is sent.
    pub timestamp: Timestamp,
    /// The side that sent it.
    pub from: Side,
    /// The Ethernet frame.
    pub data: Vec<u8>,
}

/// A host, with what is left of its session.
#[derive(Debug)]
struct Host {
    random: Random,
    port: u16,
    frames: std::vec::IntoIter<Seen>,
    /// When the last frame of its session passes.
    end: Timestamp,
}

/// Hosts at work: an iterator over their frames, in order of time.
#[derive(Debug)]
pub struct Hosts {
    settings: Settings,
    hosts: Vec<Host>,
    /// When each host's next frame passes, or its next session begins.
    turns: BinaryHeap<Reverse<(Timestamp, u32)>>,
    begun: u64,
}

impl Hosts {
    /// Hosts that have not begun.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let mut hosts = Vec::new();
        let mut turns = BinaryHeap::new();
        for number in 0..settings.hosts {
            let mut random = Random::new(mix(settings.seed ^ mix(number.into())));
            // They do not begin together.
            let at = settings.start + settings.think.mul_f64(random.exponential().min(10.0));
            turns.push(Reverse((at, number)));
            let port = 32_768 + random.below(20_000) as u16;
            hosts.push(Host { random, port, frames: Vec::new().into_iter(), end: at });
        }
        Self { settings, hosts, turns, begun: 0 }
    }

    /// Sessions that have begun.
    #[must_use]
    pub const fn sessions(&self) -> u64 {
        self.begun
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.hosts.iter().map(|host| host.frames.len()).sum()
    }

    /// Begins the next session of a host, and lines its first frame up.
    fn begin(&mut self, number: u32, start: Timestamp) {
        if self.settings.mix.is_empty()
            || self.settings.sessions.is_some_and(|most| self.begun >= most)
        {
            return;
        }
        self.begun += 1;
        let Some(host) = self.hosts.get_mut(number as usize) else { return };
        let kinds = &self.settings.mix;
        let kind = kinds[host.random.below(kinds.len() as u64) as usize];
        let Host { random, port, .. } = host;
        let mut scene = ActiveSession::new(&self.settings, kind, number, port, start, random);
        let frames = kind.play(&mut scene);
        host.end = frames.last().map_or(start, |seen| seen.timestamp);
        host.frames = frames.into_iter();
        self.line_up(number);
    }

    /// Puts a host among those that have something to do.
    fn line_up(&mut self, number: u32) {
        let Some(host) = self.hosts.get_mut(number as usize) else { return };
        let at = match host.frames.as_slice().first() {
            Some(seen) => seen.timestamp,
            None => host.end + self.settings.think.mul_f64(host.random.exponential().min(10.0)),
        };
        self.turns.push(Reverse((at, number)));
    }
}

impl Timed for Frame {
    fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    fn at(self, timestamp: Timestamp) -> Self {
        Self { timestamp, ..self }
    }
}

impl Iterator for Hosts {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        loop {
            let Reverse((at, number)) = self.turns.pop()?;
            let host = self.hosts.get_mut(number as usize)?;
            let Some(Seen { timestamp, from, frame, .. }) = host.frames.next() else {
                self.begin(number, at);
                continue;
            };
            self.line_up(number);
            return Some(Frame { timestamp, from, data: frame });
        }
    }
}
