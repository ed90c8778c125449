//! The identities of tunnels: which flow or pair of hosts carries other packets, and since when.
//!
//! A UDP flow that carries packets is a connection of its own, which some worker tracks. Here it
//! is followed by the same rules, so that the packets inside learn its name without asking. Hosts
//! that tunnel directly above IP have no connection; the pair and the protocol are the tunnel.
//!
//! A flow between other ports than tunnels have is followed from the first packet that it carries.
//! Where other packets came before, its name here is not the one that the connection has.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use netsniff_packet::Timestamp;
use netsniff_packet::decode::tunnel::TunnelKind;
use netsniff_packet::decode::{Transport, TunnelPorts, Udp};

use crate::flow::{roles, silence_of};
use crate::key::Endpoint;
use crate::key::uid::Uid;
use crate::key::{FlowKey, Side, UDP};
use crate::limits::Limits;
use crate::log::tunnel::{Tunnel as Row, TunnelAction};
use crate::naming::Naming;
use crate::protocol::ProtocolSet;
use crate::record::{Observer, Phase, Port, SortKey};
use crate::unit::DecodedDatagram;

/// Counts over all tunnels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelStatistics {
    /// Identities begun: flows to tunnel ports, and pairs of hosts that tunnel above IP.
    pub begun: u64,
    /// Tunnels that showed a datagram inside.
    pub discovered: u64,
    /// Packets in tunnels whose identity found no room.
    pub refused: u64,
    /// Packets in more tunnels than are followed.
    pub too_deep: u64,
    /// The most identities held at once.
    pub peak: usize,
}

/// What carries, or may carry, other packets.
#[derive(Debug)]
pub struct Tunnels {
    limits: Limits,
    ports: Arc<TunnelPorts>,
    naming: Naming,
    /// The map's hashes are keyed at random, so that senders cannot aim at one bucket; nothing
    /// depends on its order.
    carriers: HashMap<FlowKey, Carrier>,
    /// Of each carrier, one timer is not later than what it waits for; the others are stale.
    timers: BinaryHeap<Reverse<Timer>>,
    /// Those that have been silent for long, until a look finds that.
    silent: Vec<FlowKey>,
    /// UDP carriers none of whose ports is a tunnel's.
    unexpected: usize,
    statistics: TunnelStatistics,
}

/// Ordered by time, then by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Timer {
    time: Timestamp,
    number: u64,
    key: FlowKey,
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (self.time, self.number).cmp(&(other.time, other.number))
    }
}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Debug)]
struct Carrier {
    number: u64,
    uid: Uid,
    originator: Endpoint,
    responder: Endpoint,
    is_expected: bool,
    /// When it ends if nothing more comes.
    deadline: Timestamp,
    /// Its kind and when a datagram was last inside, while the log has it as active.
    active: Option<(TunnelKind, Timestamp)>,
    /// Whether a look is to find whether it is silent.
    is_silent: bool,
    /// Time of its valid timer.
    armed: Timestamp,
}

impl Tunnels {
    pub(super) fn new(limits: Limits, ports: Arc<TunnelPorts>, naming: Naming) -> Self {
        Self {
            limits,
            ports,
            naming,
            carriers: HashMap::new(),
            timers: BinaryHeap::new(),
            silent: Vec::new(),
            unexpected: 0,
            statistics: TunnelStatistics::default(),
        }
    }

    /// What the tunnels amount to so far.
    #[must_use]
    pub const fn statistics(&self) -> &TunnelStatistics {
        &self.statistics
    }

    /// When [`Self::advance`] has something to do.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.timers.peek().map(|Reverse(timer)| timer.time)
    }

    /// Whether nothing is followed.
    pub(super) fn is_empty(&self) -> bool {
        self.carriers.is_empty()
    }

    /// Whether `is_it` says so of the pair of a tunnel that is known up to a time, if nothing more comes.
    pub(crate) fn remembers(&self, is_it: &mut impl FnMut(u64, Timestamp) -> bool) -> bool {
        self.carriers.iter().any(|(key, carrier)| is_it(key.own_pair(), carrier.deadline))
    }

    /// Whether any UDP flow carries tunnels although none of its ports says so.
    #[inline]
    pub(super) const fn has_unexpected_carriers(&self) -> bool {
        self.unexpected > 0
    }

    /// Whether the flow of a datagram must be followed, although it showed no tunnel: its ports
    /// are a tunnel's, or it showed one before.
    pub(super) fn is_followed(&self, unit: &DecodedDatagram) -> bool {
        has_tunnel_port(&unit.decoded.transport, &self.ports)
            || self.unexpected > 0
                && unit.flow_key().is_some_and(|(key, _)| self.carriers.contains_key(&key))
    }

    /// Notes a tunnel that is not followed, since it is in too many others.
    pub(super) const fn note_too_deep(&mut self) {
        self.statistics.too_deep += 1;
    }

    /// Notes a datagram that carries another one, or belongs to a flow that may, and returns the
    /// identity of what carries. `None` where there is no room for one more.
    pub(super) fn note(&mut self, unit: &DecodedDatagram) -> Option<Uid> {
        self.carry(unit, true)
    }

    /// Notes a datagram of such a flow that was left out: it may begin the flow, but prolongs none.
    #[cold]
    pub(super) fn note_discarded(&mut self, unit: &DecodedDatagram) {
        self.carry(unit, false);
    }

    fn carry(&mut self, unit: &DecodedDatagram, prolongs: bool) -> Option<Uid> {
        let (key, side) = unit.flow_key()?;
        let deadline = self.deadline_of(&key, unit);
        let is_expected =
            key.protocol != UDP || has_tunnel_port(&unit.decoded.transport, &self.ports);
        let has_room = self.carriers.len() < self.limits.tunnels;
        let carrier = match self.carriers.entry(key) {
            Entry::Occupied(entry) if !prolongs => return Some(entry.get().uid),
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(_) if !has_room => {
                self.statistics.refused += 1;
                return None;
            }
            Entry::Vacant(entry) => {
                self.statistics.begun += 1;
                let uid = Uid::new(self.naming.flow_name(unit, &key));
                let carrier =
                    Carrier::new(self.statistics.begun, uid, unit, (&key, side), is_expected);
                self.unexpected += usize::from(!carrier.is_expected);
                entry.insert(carrier)
            }
        };
        carrier.deadline = deadline;
        let uid = carrier.uid;
        if deadline < carrier.armed {
            carrier.armed = deadline;
            self.timers.push(Reverse(Timer { time: deadline, number: carrier.number, key }));
        }
        self.statistics.peak = self.statistics.peak.max(self.carriers.len());
        self.drop_stale_timers();
        Some(uid)
    }

    /// The same rule as the flow tables have, where there is a flow.
    fn deadline_of(&self, key: &FlowKey, unit: &DecodedDatagram) -> Timestamp {
        let is_flow = key.protocol == UDP;
        let silence = if is_flow {
            silence_of(key.protocol, &self.limits)
        } else {
            self.limits.ip_tunnel_inactivity
        };
        unit.now + silence
    }

    /// Notes that the datagram `unit` carried one that belongs to a flow.
    pub(super) fn note_inside<O: Observer>(
        &mut self,
        unit: &DecodedDatagram,
        kind: TunnelKind,
        observer: &mut O,
    ) {
        let Some((key, _)) = unit.flow_key() else { return };
        let Some(carrier) = self.carriers.get_mut(&key) else { return };
        if let Some((_, last)) = &mut carrier.active {
            *last = unit.now;
            return;
        }
        carrier.active = Some((kind, unit.now));
        self.statistics.discovered += 1;
        let next = carrier.next(&self.limits);
        if next < carrier.armed {
            carrier.armed = next;
            self.timers.push(Reverse(Timer { time: next, number: carrier.number, key }));
        }
        let key = SortKey {
            time: unit.now,
            phase: Phase::Packet,
            ordinal: unit.ordinal,
            uid: carrier.uid,
            number: 0,
        };
        observer.record(&key, &carrier.row(unit.time, kind, TunnelAction::Discover));
    }

    /// Ends what ends until `now`, where the next look is due at `look`.
    pub(super) fn advance<O: Observer>(
        &mut self,
        now: Timestamp,
        look: Timestamp,
        observer: &mut O,
    ) {
        while let Some(&Reverse(timer)) = self.timers.peek()
            && timer.time <= now
        {
            self.timers.pop();
            let limits = &self.limits;
            let Some(carrier) = self.carriers.get_mut(&timer.key) else { continue };
            if carrier.number != timer.number || carrier.armed != timer.time {
                continue;
            }
            if carrier.deadline <= now {
                if let Some((kind, last)) = carrier.active.take() {
                    let key = carrier.timer_key(now);
                    // Where time leaps, the look comes first if it was due first.
                    let is_found =
                        look <= carrier.deadline && last + limits.tunnel_expiration < now;
                    let closes = timer.key.protocol == UDP && !is_found;
                    let action = if closes { TunnelAction::Close } else { TunnelAction::Expire };
                    observer.record(&key, &carrier.row(now, kind, action));
                }
                self.unexpected -= usize::from(!carrier.is_expected);
                self.carriers.remove(&timer.key);
                continue;
            }
            if carrier.next(limits) <= now {
                carrier.is_silent = true;
                self.silent.push(timer.key);
            }
            carrier.armed = carrier.next(limits);
            self.timers.push(Reverse(Timer { time: carrier.armed, ..timer }));
        }
    }

    /// Finds which of those that have been silent for long still are.
    pub(super) fn look<O: Observer>(&mut self, now: Timestamp, observer: &mut O) {
        for key in core::mem::take(&mut self.silent) {
            let Some(carrier) = self.carriers.get_mut(&key).filter(|it| it.is_silent) else {
                continue;
            };
            carrier.is_silent = false;
            if let Some((kind, last)) = carrier.active
                && last + self.limits.tunnel_expiration < now
            {
                carrier.active = None;
                let key = carrier.timer_key(now);
                observer.record(&key, &carrier.row(now, kind, TunnelAction::Expire));
            }
            carrier.armed = carrier.next(&self.limits);
            let (time, number) = (carrier.armed, carrier.number);
            self.timers.push(Reverse(Timer { time, number, key }));
        }
    }

    /// Closes the flows that still carry at the end. Tunnels directly above IP have no end.
    pub(super) fn finish<O: Observer>(&mut self, now: Timestamp, observer: &mut O) {
        let mut open: Vec<_> =
            self.carriers.iter_mut().filter(|(key, _)| key.protocol == UDP).collect();
        open.sort_unstable_by_key(|(_, carrier)| carrier.uid);
        for (_, carrier) in open {
            let Some((kind, _)) = carrier.active.take() else { continue };
            let key = SortKey { phase: Phase::End, ..carrier.timer_key(now) };
            observer.record(&key, &carrier.row(now, kind, TunnelAction::Close));
        }
    }

    /// What comes up earlier than it was armed for leaves a stale timer; they shall not pile up.
    fn drop_stale_timers(&mut self) {
        if self.timers.len() > 2 * self.carriers.len() + 64 {
            let carriers = &self.carriers;
            self.timers.retain(|Reverse(timer)| {
                carriers.get(&timer.key).is_some_and(|carrier| {
                    carrier.number == timer.number && carrier.armed == timer.time
                })
            });
        }
    }
}

/// Whether a datagram's flow ends by the rules that are known here: those of UDP alone.
pub(super) fn is_plain_udp(udp: &Udp) -> bool {
    let ends_early = |port| {
        ProtocolSet::ALL.of_udp_port(port).is_some_and(|id| id.protocol().exchange().is_some())
    };
    !ends_early(udp.source_port) && !ends_early(udp.destination_port)
}

/// Whether one of the ports is a tunnel's.
fn has_tunnel_port(transport: &Transport, ports: &TunnelPorts) -> bool {
    let Transport::Udp(udp) = transport else { return false };
    ports.has(udp.source_port) || ports.has(udp.destination_port)
}

impl Carrier {
    fn new(
        number: u64,
        uid: Uid,
        unit: &DecodedDatagram,
        (key, side): (&FlowKey, Side),
        is_expected: bool,
    ) -> Self {
        let (mut originator, mut responder) = key.ends_from(side);
        if roles::begins_at_server(unit, originator, responder) {
            core::mem::swap(&mut originator, &mut responder);
        }
        Self {
            number,
            uid,
            originator,
            responder,
            is_expected,
            deadline: Timestamp::MAX,
            active: None,
            is_silent: false,
            armed: Timestamp::MAX,
        }
    }

    /// When something happens if nothing more comes: it ends or, before that, it expires.
    fn next(&self, limits: &Limits) -> Timestamp {
        match self.active {
            Some((_, last)) if !self.is_silent => {
                self.deadline.min(last + limits.tunnel_expiration)
            }
            _ => self.deadline,
        }
    }

    fn timer_key(&self, time: Timestamp) -> SortKey {
        SortKey { time, phase: Phase::Timer, ordinal: 0, uid: self.uid, number: 0 }
    }

    fn row(&self, time: Timestamp, kind: TunnelKind, action: TunnelAction) -> Row {
        Row {
            ts: time,
            uid: Some(self.uid),
            id_orig_h: self.originator.address,
            id_orig_p: Port(self.originator.port),
            id_resp_h: self.responder.address,
            id_resp_p: Port(self.responder.port),
            tunnel_type: kind.into(),
            action,
        }
    }
}
