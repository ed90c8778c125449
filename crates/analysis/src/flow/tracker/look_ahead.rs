//! Asks ahead for what packets and ends will need, so that the waits for memory overlap with the work on others
//! (`docs/decisions/look-ahead.md`).

use core::iter::Fuse;

use super::{FlowTracker, Lookup};
use crate::depth::Depth;
use crate::flow::table::FlowTable;
use crate::flow::{Flow, TransportState};
use crate::key::FlowKey;
use crate::prefetch::prefetch;
use crate::unit::DecodedDatagram;

/// Flows that go through a stage together: as much work lies between two stages as memory takes to answer.
pub(super) const GROUP: usize = 16;

/// Groups on their way: one in each stage.
const STAGES: usize = 6;

/// Below this many flows everything is in the caches, and looking ahead costs more than it gains.
const LOOK_AHEAD_FROM: usize = 8_192;

/// Datagrams on their way to their flows, and where these may be.
pub(super) struct Group<'u> {
    lookups: Vec<Lookup<'u>>,
    /// The places of those flows that lead to more memory than their own.
    deep: Vec<u32>,
}

impl<'u> Group<'u> {
    fn new() -> Self {
        Self { lookups: Vec::with_capacity(GROUP), deep: Vec::with_capacity(GROUP) }
    }

    /// The datagrams, with the places of their flows as far as they are known.
    #[inline]
    pub(super) fn lookups(&self) -> &[Lookup<'u>] {
        &self.lookups
    }

    /// Takes the next datagrams that belong to flows in place of those that it had.
    #[inline]
    fn gather(&mut self, units: &mut impl Iterator<Item = &'u DecodedDatagram>, seed: u64) {
        self.lookups.clear();
        for unit in units {
            let Some(ip) = unit.ip() else { continue };
            let Some((key, side)) = FlowKey::of(ip, &unit.decoded.transport) else { continue };
            self.lookups.push(Lookup { unit, ip, key, side, hash: key.hash(seed), place: None });
            if self.lookups.len() == GROUP {
                return;
            }
        }
    }
}

/// Datagrams in groups, for each of which memory is asked some groups before its turn.
pub(super) struct LookAhead<'u, I> {
    units: Fuse<I>,
    groups: [Group<'u>; STAGES],
    /// Groups that were gathered, those without a datagram behind the last one included.
    gathered: usize,
}

impl<'u, I: Iterator<Item = &'u DecodedDatagram>> LookAhead<'u, I> {
    pub(super) fn new(units: I) -> Self {
        Self { units: units.fuse(), groups: core::array::from_fn(|_| Group::new()), gathered: 0 }
    }

    /// The next group; `None` behind the last.
    #[inline]
    pub(super) fn next(&mut self, tracker: &FlowTracker) -> Option<&[Lookup<'u>]> {
        loop {
            let gathered = self.gathered;
            let at = |stage: usize| (gathered + STAGES - stage) % STAGES;
            self.groups[at(0)].gather(&mut self.units, tracker.seed);
            self.gathered += 1;
            if tracker.table.len() >= LOOK_AHEAD_FROM {
                for lookup in self.groups[at(0)].lookups() {
                    tracker.table.prefetch(lookup.hash);
                }
                self.groups[at(1)].find(&tracker.table);
                self.groups[at(2)].reach(&tracker.table);
                tracker.table.prefetch_parts(self.groups[at(3)].deep());
                if tracker.depth == Depth::Protocols {
                    tracker.table.prefetch_streams(self.groups[at(4)].deep());
                }
            }
            let turn = at(STAGES - 1);
            if !self.groups[turn].lookups().is_empty() {
                return Some(self.groups[turn].lookups());
            }
            if gathered >= STAGES - 1 {
                return None;
            }
        }
    }
}

impl Group<'_> {
    /// Notes where the flows may be, and asks for what every packet needs of them.
    #[inline]
    fn find(&mut self, table: &FlowTable) {
        self.deep.clear();
        for lookup in &mut self.lookups {
            lookup.place = table.candidate(lookup.hash);
            if let Some(flow) = lookup.place.and_then(|place| table.at(place)) {
                flow.prefetch();
            }
        }
    }

    /// Notes which flows lead to more memory, and asks for that.
    #[inline]
    fn reach(&mut self, table: &FlowTable) {
        for lookup in &self.lookups {
            if let Some(place) = lookup.place
                && let Some(flow) = table.at(place)
                && flow.prefetch_transport()
            {
                self.deep.push(place);
            }
        }
    }

    fn deep(&self) -> impl Iterator<Item = u32> {
        self.deep.iter().copied()
    }
}

impl FlowTable {
    /// Asks for what these lead to.
    #[inline]
    fn prefetch_parts(&self, places: impl Iterator<Item = u32>) {
        for flow in places.filter_map(|place| self.at(place)) {
            match &flow.exchange {
                TransportState::Connection(tcp) => {
                    tcp.prefetch_metrics();
                    if let Some(attached) = &flow.attached {
                        prefetch(&attached.talk);
                        prefetch(&attached.reported);
                    }
                }
                TransportState::Held(held) => held.prefetch_data(),
                _ => {}
            }
        }
    }

    /// Asks for what is said in the flows at some places.
    #[inline]
    fn prefetch_streams(&self, places: impl Iterator<Item = u32>) {
        for flow in places.filter_map(|place| self.at(place)) {
            if let (TransportState::Connection(_), Some(attached)) =
                (&flow.exchange, &flow.attached)
            {
                attached.prefetch();
            }
        }
    }
}

impl Flow {
    /// Asks for what it knows above its packets: for the box, and for what leads to others. Returns whether there is any.
    #[inline]
    fn prefetch_transport(&self) -> bool {
        match &self.exchange {
            TransportState::Connection(tcp) => {
                tcp.prefetch();
                prefetch(&self.attached);
                true
            }
            TransportState::Held(held) => {
                held.prefetch();
                true
            }
            _ => false,
        }
    }

    /// Asks for what every packet needs.
    #[inline]
    fn prefetch(&self) {
        prefetch(&self.key);
        prefetch(&self.sent);
    }

    /// Asks for all that its end needs.
    #[inline]
    fn prefetch_whole(&self) {
        self.prefetch();
        prefetch(&self.attached);
    }
}

impl FlowTable {
    /// Asks for what ends some groups behind the one whose turn it is; `place` tells where a flow is. The first
    /// groups are asked for together.
    pub(super) fn prefetch_ends<T>(&self, ends: &[T], turn: usize, place: impl Fn(&T) -> u32) {
        if self.len() < LOOK_AHEAD_FROM {
            return;
        }
        let ahead = |groups: usize| {
            let from = if turn == 0 { 0 } else { turn + groups };
            let to = ((turn + groups + 1) * GROUP).min(ends.len());
            ends.get(from * GROUP..to).unwrap_or_default().iter().map(&place)
        };
        for flow in ahead(4).filter_map(|place| self.at(place)) {
            flow.prefetch_whole();
        }
        for flow in ahead(3).filter_map(|place| self.at(place)) {
            flow.prefetch_transport();
        }
        self.prefetch_parts(ahead(2));
        self.prefetch_streams(ahead(1));
    }
}
