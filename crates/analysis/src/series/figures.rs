//! What is counted of an interval, and how shares of it are added up.

use core::hash::Hash;
use core::ops::AddAssign;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use netsniff_packet::Address;

use super::Failure;
use super::connections::BusiestConnections;
use super::sketch::Sketch;

/// Packets, with their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Traffic {
    #[inline]
    pub(super) const fn one(bytes: u32) -> Self {
        Self { packets: 1, bytes: bytes as u64 }
    }
}

impl AddAssign<&Self> for Traffic {
    #[inline]
    fn add_assign(&mut self, other: &Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// What a host sent and received, by the outermost IP headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HostTraffic {
    pub(super) sent: Traffic,
    pub(super) received: Traffic,
}

impl HostTraffic {
    pub(super) const fn bytes(&self) -> u64 {
        self.sent.bytes.saturating_add(self.received.bytes)
    }
}

impl AddAssign<&Self> for HostTraffic {
    #[inline]
    fn add_assign(&mut self, other: &Self) {
        self.sent += &other.sent;
        self.received += &other.received;
    }
}

/// Figures by a name, with what there was no room for: their sum is that of all.
#[derive(Clone, Debug)]
pub(super) struct Bounded<K, V> {
    pub(super) named: HashMap<K, V>,
    /// The sum of those that have no name here; `None` while all have.
    pub(super) rest: Option<V>,
}

impl<K, V> Default for Bounded<K, V> {
    fn default() -> Self {
        Self { named: HashMap::new(), rest: None }
    }
}

impl<K: Clone + Eq + Hash, V: Default + for<'a> AddAssign<&'a V>> Bounded<K, V> {
    /// The figures of `name`, or the rest where it is new and there is no `room` for one more.
    #[inline]
    pub(super) fn of(&mut self, name: K, room: &mut usize) -> &mut V {
        match self.named.entry(name) {
            Entry::Occupied(known) => known.into_mut(),
            // Once something of a new name went there, room that comes back must not give a name a part of what is its.
            Entry::Vacant(_) if *room == 0 || self.rest.is_some() => {
                self.rest.get_or_insert_default()
            }
            Entry::Vacant(new) => {
                *room -= 1;
                new.insert(V::default())
            }
        }
    }

    /// The figures of `name`, whatever room there is.
    pub(super) fn entry(&mut self, name: K) -> &mut V {
        self.named.entry(name).or_default()
    }

    /// Adds the figures of another share, which had bounds of its own: to choose among them here would let the order of a
    /// hash table show.
    pub(super) fn add(&mut self, other: &Self) {
        for (name, figures) in &other.named {
            *self.entry(name.clone()) += figures;
        }
        if let Some(rest) = &other.rest {
            *self.rest.get_or_insert_default() += rest;
        }
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.named.allocation_size()
    }
}

/// Payload bytes that were lost, by who lost them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LostBytes {
    pub(crate) network: u64,
    pub(crate) capture: u64,
    pub(crate) unknown: u64,
}

/// What flows showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FlowFigures {
    /// Packets and bytes of IP of originators.
    pub(super) orig: [u64; 2],
    /// The same of responders.
    pub(super) resp: [u64; 2],
    /// Flows that began.
    pub(super) new: u64,
    /// Flows that had packets.
    pub(super) active: u64,
    pub(super) retransmitted: i64,
    pub(super) lost: LostBytes,
    pub(super) rtt: Sketch,
    /// What failed, by [`Failure`].
    pub(super) failures: [u64; Failure::COUNT],
}

impl AddAssign<&Self> for FlowFigures {
    fn add_assign(&mut self, other: &Self) {
        for at in 0..2 {
            self.orig[at] += other.orig[at];
            self.resp[at] += other.resp[at];
        }
        self.new += other.new;
        self.active += other.active;
        self.retransmitted += other.retransmitted;
        self.lost.network = self.lost.network.saturating_add(other.lost.network);
        self.lost.capture = self.lost.capture.saturating_add(other.lost.capture);
        self.lost.unknown = self.lost.unknown.saturating_add(other.lost.unknown);
        self.rtt += &other.rtt;
        for (count, more) in self.failures.iter_mut().zip(&other.failures) {
            *count += more;
        }
    }
}

/// What the flows of an interval amount to.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowInterval {
    pub(super) total: FlowFigures,
    /// By what the content of flows showed; `None` for what is not known.
    pub(super) services: Bounded<Option<Box<str>>, FlowFigures>,
    pub(super) hosts: Bounded<Address, FlowFigures>,
    pub(super) connections: BusiestConnections,
}

impl FlowInterval {
    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let all = self.services.named.values().chain(self.hosts.named.values());
        let sketches = all.map(|figures| figures.rtt.heap_bytes()).sum::<usize>();
        let names = self.services.heap_bytes() + self.hosts.heap_bytes();
        names + sketches + self.connections.heap_bytes()
    }
}

/// What all packets of an interval amount to.
#[derive(Clone, Debug, Default)]
pub(super) struct PacketFigures {
    pub(super) total: Traffic,
    /// Packets that the capture lost, as it tells itself.
    pub(super) dropped: u64,
    pub(super) interfaces: Bounded<u32, Traffic>,
    pub(super) hosts: Bounded<Address, HostTraffic>,
}

impl PacketFigures {
    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.interfaces.heap_bytes() + self.hosts.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_in_the_rest_exactly() {
        let (mut bounded, mut room) = (Bounded::<u32, Traffic>::default(), 2);
        for name in [1, 2, 3, 1, 4, 2] {
            *bounded.of(name, &mut room) += &Traffic::one(name * 10);
        }
        assert_eq!(bounded.named[&1], Traffic { packets: 2, bytes: 20 });
        assert_eq!(bounded.named[&2], Traffic { packets: 2, bytes: 40 });
        assert_eq!(bounded.rest, Some(Traffic { packets: 2, bytes: 70 }));
        room = 5;
        *bounded.of(3, &mut room) += &Traffic::one(30);
        assert_eq!(bounded.named.get(&3), None, "a part of it is in the rest");
        assert_eq!(bounded.rest, Some(Traffic { packets: 3, bytes: 100 }));
        let mut sum = Bounded::default();
        sum.add(&bounded);
        sum.add(&bounded);
        let mut all = sum.rest.unwrap();
        sum.named.values().for_each(|named| all += named);
        assert_eq!((sum.named.len(), all), (2, Traffic { packets: 14, bytes: 320 }));
    }
}
