//! Packets that wait until it is known whether they are wanted, and those behind them, in order.

use std::collections::{HashMap, VecDeque};

use netsniff_analysis::key::FlowKey;
use netsniff_packet::{LinkType, Packet, Timestamp};

use super::watch::{Claim, Doubt};
use super::{Carved, Flow, SYN_PATIENCE};

/// A packet that waits.
#[derive(Debug)]
pub(super) struct HeldPacket {
    pub(super) ordinal: u64,
    /// The number that it is handed over with.
    number: u64,
    time: Timestamp,
    wire_len: u32,
    link_type: LinkType,
    interface: u32,
    data: Box<[u8]>,
    /// Packets that the capture lost before it, behind the packet that waits before it.
    pub(super) lost: u64,
    /// The wanted flows that it belongs to.
    pub(super) flows: Vec<Flow>,
    comments: Vec<String>,
    /// Whether it is no packet, but a block behind the packet of that number.
    is_block: bool,
    /// Why that may change, and up to which engine time it may.
    pub(super) doubt: Option<(Doubt, Timestamp)>,
    /// How many claims have looked at it.
    #[cfg(test)]
    looks: u64,
}

/// What a packet takes beside its bytes.
const COST: usize = size_of::<HeldPacket>() + 48;
/// What a SYN takes in the table of those that wait, at most: a place in a queue, and a queue of its own.
const SYN_COST: usize = size_of::<(FlowKey, VecDeque<u64>)>() * 2 + 4 * size_of::<u64>();

impl HeldPacket {
    pub(super) fn new(
        ordinal: u64,
        number: u64,
        packet: &Packet<'_>,
        flows: Vec<Flow>,
        comments: Vec<String>,
    ) -> Self {
        Self {
            ordinal,
            number,
            time: packet.timestamp,
            wire_len: packet.wire_len,
            link_type: packet.link_type,
            interface: packet.interface,
            data: packet.data.into(),
            lost: 0,
            flows,
            comments,
            is_block: false,
            doubt: None,
            #[cfg(test)]
            looks: 0,
        }
    }

    /// A block that stands behind the packet of this number.
    pub(super) fn of_block(ordinal: u64, block: &[u8]) -> Self {
        let (timestamp, link_type) = (Timestamp::EPOCH, LinkType::NULL);
        let packet = Packet { timestamp, data: block, wire_len: 0, link_type, interface: 0 };
        Self { is_block: true, ..Self::new(ordinal, 0, &packet, Vec::new(), Vec::new()) }
    }

    /// The block, where it is one.
    pub(super) fn block(&self) -> Option<&[u8]> {
        self.is_block.then_some(&self.data)
    }

    /// Its place among packets and the blocks between them.
    const fn place(&self) -> u64 {
        self.ordinal * 2 + self.is_block as u64
    }

    /// It as it stands, at this engine time.
    pub(super) fn carved(&self, now: Timestamp) -> Carved<'_> {
        let (flows, comments) = (&self.flows[..], &self.comments[..]);
        let is_hurried = self.is_open(now);
        let (packet, number, lost) = (self.packet(), self.number, self.lost);
        Carved { packet, number, flows, lost, comments, is_hurried }
    }

    /// Whether something may still be found out of it at this engine time.
    pub(super) fn is_open(&self, now: Timestamp) -> bool {
        self.doubt.is_some_and(|(_, until)| until >= now)
    }

    fn packet(&self) -> Packet<'_> {
        Packet {
            timestamp: self.time,
            data: &self.data,
            wire_len: self.wire_len,
            link_type: self.link_type,
            interface: self.interface,
        }
    }

    /// Adds a flow that it turned out to belong to.
    fn add(&mut self, flow: Flow) {
        if !self.flows.contains(&flow) {
            self.flows.push(flow);
        }
    }

    /// A SYN within one flow belongs to another that began with its answer.
    fn claim(&mut self, claim: &Claim) {
        #[cfg(test)]
        {
            self.looks += 1;
        }
        let Some((Doubt::Syn(_, holder), _)) = self.doubt else { return };
        // Whatever waits longer, the answer came in time or not.
        let is_soon = claim.to <= self.time + SYN_PATIENCE;
        if self.time >= claim.from && is_soon {
            self.flows.retain(|flow| Some(flow.name) != holder);
            let key = Some(claim.key);
            claim.name.into_iter().for_each(|name| self.add(Flow { name, key }));
            self.doubt = None;
        }
    }

    /// The memory that it takes.
    fn bytes(&self) -> usize {
        let comments = self.comments.iter().map(String::capacity).sum::<usize>();
        let lists = self.comments.capacity() * size_of::<String>()
            + self.flows.capacity() * size_of::<Flow>();
        let is_syn = matches!(self.doubt, Some((Doubt::Syn(..), _)));
        COST + self.data.len() + comments + lists + if is_syn { SYN_COST } else { 0 }
    }
}

/// Packets in order, of which the first waits.
#[derive(Debug, Default)]
pub(super) struct HeldPackets {
    packets: VecDeque<HeldPacket>,
    bytes: usize,
    /// The numbers of the SYNs within each flow that may begin another one, in order.
    syns: HashMap<FlowKey, VecDeque<u64>>,
}

impl HeldPackets {
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn push(&mut self, packet: HeldPacket) {
        self.bytes += packet.bytes();
        self.note_syn(packet.ordinal, packet.doubt);
        self.packets.push_back(packet);
    }

    /// The first packet, if `is_decided` says that nothing is to be waited for.
    pub(super) fn pop_if(
        &mut self,
        is_decided: impl FnOnce(&HeldPacket) -> bool,
    ) -> Option<HeldPacket> {
        self.packets.front().filter(|first| is_decided(first))?;
        let first = self.packets.pop_front()?;
        self.bytes -= first.bytes();
        self.forget_syn(&first);
        Some(first)
    }

    /// The last packet, if `is_decided` says that nothing is to be waited for.
    pub(super) fn pop_last_if(
        &mut self,
        is_decided: impl FnOnce(&HeldPacket) -> bool,
    ) -> Option<HeldPacket> {
        self.packets.back().filter(|last| is_decided(last))?;
        let last = self.packets.pop_back()?;
        self.bytes -= last.bytes();
        self.forget_syn(&last);
        Some(last)
    }

    /// All packets that `is_decided` tells, in order.
    pub(super) fn take_decided(
        &mut self,
        is_decided: impl Fn(&HeldPacket) -> bool,
    ) -> Vec<HeldPacket> {
        let mut taken = Vec::new();
        // Once around, so that what waits is not there twice.
        for _ in 0..self.packets.len() {
            let Some(packet) = self.packets.pop_front() else { break };
            if is_decided(&packet) {
                self.bytes -= packet.bytes();
                self.forget_syn(&packet);
                taken.push(packet);
            } else {
                self.packets.push_back(packet);
            }
        }
        taken
    }

    fn note_syn(&mut self, ordinal: u64, doubt: Option<(Doubt, Timestamp)>) {
        if let Some((Doubt::Syn(key, _), _)) = doubt {
            self.syns.entry(key).or_default().push_back(ordinal);
        }
    }

    /// Forgets a SYN that waits no longer: the first of its flow or the last one.
    fn forget_syn(&mut self, packet: &HeldPacket) {
        let Some((Doubt::Syn(key, _), _)) = packet.doubt else { return };
        let Some(syns) = self.syns.get_mut(&key) else { return };
        if syns.pop_front_if(|ordinal| *ordinal == packet.ordinal).is_none() {
            syns.pop_back_if(|ordinal| *ordinal == packet.ordinal);
        }
        if syns.is_empty() {
            self.syns.remove(&key);
        }
    }

    /// Changes the packet with this number, if it waits.
    fn change(&mut self, ordinal: u64, change: impl FnOnce(&mut HeldPacket)) {
        let found = self.packets.binary_search_by_key(&(ordinal * 2), HeldPacket::place);
        let Some(packet) = found.ok().and_then(|at| self.packets.get_mut(at)) else { return };
        let before = packet.bytes();
        change(packet);
        self.bytes = self.bytes - before + packet.bytes();
    }

    /// A packet that waits belongs to this flow.
    pub(super) fn add(&mut self, ordinal: u64, flow: Flow) {
        self.change(ordinal, |packet| packet.add(flow));
    }

    /// The datagram of a fragment is whole: all flows that it belongs to are known.
    pub(super) fn join(&mut self, ordinal: u64) {
        self.change(ordinal, |packet| {
            packet.doubt.take_if(|(why, _)| *why == Doubt::Fragment);
        });
    }

    /// The packet that the engine had in hand was seen by now; `doubt` is what is left.
    pub(super) fn seen(&mut self, ordinal: u64, doubt: Option<(Doubt, Timestamp)>) {
        let mut was_unseen = false;
        self.change(ordinal, |packet| {
            was_unseen = matches!(packet.doubt, Some((Doubt::Unseen, _)));
            if was_unseen {
                packet.doubt = doubt;
            }
        });
        if was_unseen {
            self.note_syn(ordinal, doubt);
        }
    }

    /// SYNs within one flow belong to the one that began with their answer. Those that do not, since they came too
    /// early, are not claimed by a later one either.
    pub(super) fn claim(&mut self, claim: &Claim) {
        let Some(mut syns) = self.syns.remove(&claim.key) else { return };
        while let Some(ordinal) = syns.pop_front_if(|ordinal| *ordinal < claim.ordinal) {
            self.change(ordinal, |packet| packet.claim(claim));
        }
        if !syns.is_empty() {
            self.syns.insert(claim.key, syns);
        }
    }
}

#[cfg(test)]
mod tests {
    use netsniff_analysis::key::Endpoint;
    use netsniff_packet::Address;

    use super::*;

    const PACKETS: u64 = 20_000;

    /// SYNs of one flow, each of which is claimed at once, behind one that is not: each is looked at once.
    #[test]
    fn claims_take_no_longer_the_more_packets_wait() {
        let end = |port| Endpoint { address: Address::from_v4([192, 0, 2, 1]), port };
        let (key, _) = FlowKey::new(end(1), end(2), 6, false);
        let mut held = HeldPackets::default();
        let time = Timestamp::EPOCH;
        let packet = Packet {
            timestamp: time,
            data: &[],
            wire_len: 0,
            link_type: LinkType::RAW,
            interface: 0,
        };
        let doubt = Some((Doubt::Syn(key, Some(1)), Timestamp::MAX));
        for ordinal in 1..=PACKETS {
            let mut syn = HeldPacket::new(
                ordinal,
                ordinal,
                &packet,
                vec![Flow { name: 1, key: Some(key) }],
                Vec::new(),
            );
            syn.doubt = doubt;
            held.push(syn);
        }
        for ordinal in 2..=PACKETS {
            held.claim(&Claim { ordinal, key, from: time, to: time, name: Some(2) });
        }
        // Where each claim looks at all that wait, these are 200 million.
        assert_eq!(held.packets.iter().map(|it| it.looks).sum::<u64>(), PACKETS - 1);
        let claimed =
            held.packets.iter().filter(|it| it.flows.iter().map(|of| of.name).eq([2])).count()
                as u64;
        assert_eq!(claimed, PACKETS - 1, "the last one comes with no answer");
        assert_eq!(held.syns.get(&key).map(VecDeque::len), Some(1));
        while held.pop_if(|_| true).is_some() {}
        assert!(held.syns.is_empty() && held.bytes == 0);
    }
}
