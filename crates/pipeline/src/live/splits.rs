//! Flows that are seen on two rings of an interface, each of which takes its packets for the whole.
//!
//! The kernel shares packets out by their outermost addresses. That splits no flow but one whose directions travel
//! in two tunnels, or one whose packets the kernel and we tell apart in another way, which would be a fault: either
//! shows here. Rings tell which flows begin and end in their tables, group by group.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use netsniff_analysis::flow::flow_events::{FlowEvent, FlowEventKind};
use netsniff_analysis::key::FlowKey;
use netsniff_packet::Timestamp;

/// Flows of all rings that are remembered: some 50 MiB. With more at a time nobody can tell any more.
const MOST_FLOWS: usize = 1 << 19;

/// How long an ended flow is remembered, since a ring may be behind another one by so much.
const LINGER: Duration = Duration::from_secs(1);

/// Counts them, ring by ring.
#[derive(Debug)]
pub struct SplitFlowDetector(Mutex<Option<Tables>>);

#[derive(Debug)]
struct Tables {
    rings: Vec<Ring>,
    most_flows: usize,
}

#[derive(Debug)]
struct Ring {
    interface: usize,
    /// The flows that it has: [`Timestamp::MAX`], or when they ended.
    flows: HashMap<FlowKey, Timestamp>,
    ended: VecDeque<(Timestamp, FlowKey)>,
    split: u64,
}

impl SplitFlowDetector {
    /// For rings of these interfaces.
    #[must_use]
    pub fn new(interfaces: impl IntoIterator<Item = usize>) -> Self {
        let ring =
            |interface| Ring { interface, flows: HashMap::new(), ended: VecDeque::new(), split: 0 };
        let rings = interfaces.into_iter().map(ring).collect();
        Self(Mutex::new(Some(Tables { rings, most_flows: MOST_FLOWS })))
    }

    /// Whether a flow of this ring could be on another one.
    #[must_use]
    pub fn is_possible(&self, ring: usize) -> bool {
        let tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rings = tables.as_ref().map_or(&[][..], |tables| &tables.rings);
        let own = rings.get(ring).map(|own| own.interface);
        rings.iter().filter(|other| Some(other.interface) == own).count() > 1
    }

    /// Takes what began and ended on a ring.
    pub fn turn(&self, ring: usize, turns: &[FlowEvent]) {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = &mut *tables else { return };
        turns.iter().for_each(|turn| open.turn(ring, turn));
        if open.rings.iter().map(|ring| ring.flows.len()).sum::<usize>() > open.most_flows {
            *tables = None;
        }
    }

    /// Flows that began on this ring while another one of the interface had them; `None` where there were too many
    /// at a time to tell.
    #[must_use]
    pub fn count(&self, ring: usize) -> Option<u64> {
        let tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some(tables.as_ref()?.rings.get(ring)?.split)
    }
}

impl Tables {
    fn turn(&mut self, ring: usize, turn: &FlowEvent) {
        let Some(own) = self.rings.get(ring) else { return };
        let interface = own.interface;
        let is_split =
            turn.event == FlowEventKind::Begin
                && self.rings.iter().enumerate().any(|(at, other)| {
                    at != ring && other.interface == interface && other.has(turn)
                });
        let Some(own) = self.rings.get_mut(ring) else { return };
        own.split += u64::from(is_split);
        match turn.event {
            FlowEventKind::Begin => {
                own.flows.insert(turn.key, Timestamp::MAX);
            }
            FlowEventKind::End => {
                own.flows.insert(turn.key, turn.time);
                own.ended.push_back((turn.time, turn.key));
            }
        }
        own.forget(turn.time);
    }
}

impl Ring {
    fn has(&self, turn: &FlowEvent) -> bool {
        self.flows.get(&turn.key).is_some_and(|until| *until + LINGER >= turn.time)
    }

    /// Forgets flows that ended long before `now`, unless they began again.
    fn forget(&mut self, now: Timestamp) {
        while let Some((time, key)) = self.ended.pop_front_if(|(time, _)| *time + LINGER < now) {
            if self.flows.get(&key) == Some(&time) {
                self.flows.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use netsniff_analysis::key::Endpoint;

    use super::*;

    fn turn(port: u16, seconds: i64, event: FlowEventKind) -> FlowEvent {
        let address = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)).into();
        let (from, to) = (Endpoint { address, port }, Endpoint { address, port: 80 });
        let (key, _) = FlowKey::new(from, to, 6, false);
        FlowEvent { key, time: Timestamp::from_secs_nanos(seconds, 0), event }
    }

    const BEGIN: FlowEventKind = FlowEventKind::Begin;
    const END: FlowEventKind = FlowEventKind::End;

    #[test]
    fn a_flow_on_two_rings_of_one_interface_is_split() {
        let splits = SplitFlowDetector::new([0, 0, 1]);
        assert_eq!([0, 1, 2].map(|ring| splits.is_possible(ring)), [true, true, false]);
        for ring in [2, 0, 1] {
            splits.turn(ring, &[turn(1, 1, BEGIN), turn(2 + ring as u16, 1, BEGIN)]);
        }
        assert_eq!([0, 1, 2].map(|ring| splits.count(ring)), [Some(0), Some(1), Some(0)]);
    }

    #[test]
    fn what_ended_lately_still_counts_and_what_ended_long_ago_is_forgotten() {
        let splits = SplitFlowDetector::new([0, 0]);
        splits.turn(0, &[turn(1, 10, BEGIN), turn(1, 10, END), turn(2, 10, BEGIN)]);
        splits.turn(0, &[turn(3, 10, BEGIN), turn(3, 10, END), turn(3, 10, BEGIN)]);
        splits.turn(0, &[turn(4, 30, BEGIN)]);
        splits.turn(1, &[turn(1, 11, BEGIN)]);
        assert_eq!(splits.count(1), Some(0), "the ring that had it is twenty seconds ahead");
        splits.turn(1, &[turn(2, 11, BEGIN), turn(3, 11, BEGIN)]);
        assert_eq!(splits.count(1), Some(2), "both are open");
        splits.turn(0, &[turn(4, 40, END)]);
        splits.turn(1, &[turn(4, 41, BEGIN)]);
        assert_eq!(splits.count(1), Some(3));
        splits.turn(1, &[turn(4, 42, END)]);
        splits.turn(0, &[turn(4, 44, BEGIN)]);
        assert_eq!(splits.count(0), Some(0), "over for more than a second");
    }

    #[test]
    fn with_too_many_flows_nobody_can_tell() {
        let splits = SplitFlowDetector::new([0, 0]);
        if let Some(tables) = &mut *splits.0.lock().unwrap() {
            tables.most_flows = 2;
        }
        splits.turn(0, &[turn(1, 1, BEGIN), turn(2, 1, BEGIN)]);
        assert_eq!(splits.count(0), Some(0));
        splits.turn(1, &[turn(3, 1, BEGIN)]);
        assert_eq!((splits.count(0), splits.count(1)), (None, None));
    }
}
