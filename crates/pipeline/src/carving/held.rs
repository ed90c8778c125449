//! Packets that wait until it is known whether they are wanted, and those behind them, in order.

use std::collections::VecDeque;

use netsniff_packet::{LinkType, Packet, Timestamp};

use super::SYN_PATIENCE;
use super::watch::{Claim, Doubt};

/// A packet that waits.
#[derive(Debug)]
pub(super) struct HeldPacket {
    pub(super) ordinal: u64,
    time: Timestamp,
    wire_len: u32,
    link_type: LinkType,
    interface: u32,
    data: Box<[u8]>,
    /// Packets that the capture lost before it, behind the packet that waits before it.
    pub(super) lost: u64,
    /// The wanted flows that it belongs to.
    pub(super) flows: Vec<u128>,
    /// Why that may change, and up to which engine time it may.
    pub(super) doubt: Option<(Doubt, Timestamp)>,
}

/// What a packet takes beside its bytes.
const COST: usize = size_of::<HeldPacket>() + 48;

impl HeldPacket {
    pub(super) fn new(ordinal: u64, packet: &Packet<'_>, flows: Vec<u128>) -> Self {
        Self {
            ordinal,
            time: packet.timestamp,
            wire_len: packet.wire_len,
            link_type: packet.link_type,
            interface: packet.interface,
            data: packet.data.into(),
            lost: 0,
            flows,
            doubt: None,
        }
    }

    pub(super) fn packet(&self) -> Packet<'_> {
        Packet {
            timestamp: self.time,
            data: &self.data,
            wire_len: self.wire_len,
            link_type: self.link_type,
            interface: self.interface,
        }
    }

    /// Adds a flow that it turned out to belong to.
    fn add(&mut self, name: u128) {
        if !self.flows.contains(&name) {
            self.flows.push(name);
        }
    }

    fn bytes(&self) -> usize {
        COST + self.data.len()
    }
}

/// Packets in order, of which the first waits.
#[derive(Debug, Default)]
pub(super) struct HeldPackets {
    packets: VecDeque<HeldPacket>,
    bytes: usize,
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
        Some(first)
    }

    /// The packet with this number, if it waits.
    fn find(&mut self, ordinal: u64) -> Option<&mut HeldPacket> {
        let at = self.packets.binary_search_by_key(&ordinal, |packet| packet.ordinal).ok()?;
        self.packets.get_mut(at)
    }

    /// A packet that waits belongs to this flow.
    pub(super) fn add(&mut self, ordinal: u64, name: u128) {
        if let Some(packet) = self.find(ordinal) {
            packet.add(name);
        }
    }

    /// The datagram of a fragment is whole: all flows that it belongs to are known.
    pub(super) fn join(&mut self, ordinal: u64) {
        if let Some(packet) = self.find(ordinal)
            && matches!(packet.doubt, Some((Doubt::Fragment, _)))
        {
            packet.doubt = None;
        }
    }

    /// The packet that the engine had in hand was seen by now; `doubt` is what is left.
    pub(super) fn seen(&mut self, ordinal: u64, doubt: Option<(Doubt, Timestamp)>) {
        if let Some(packet) = self.find(ordinal)
            && matches!(packet.doubt, Some((Doubt::Unseen, _)))
        {
            packet.doubt = doubt;
        }
    }

    /// SYNs within one flow belong to the one that began with their answer.
    pub(super) fn claim(&mut self, claim: &Claim) {
        for packet in &mut self.packets {
            let Some((Doubt::Syn(key, holder), _)) = packet.doubt else { continue };
            // Whatever waits longer, the answer came in time or not.
            let is_soon = claim.to <= packet.time + SYN_PATIENCE;
            let is_claimed = packet.ordinal < claim.ordinal && packet.time >= claim.from && is_soon;
            if key == claim.key && is_claimed {
                packet.flows.retain(|name| Some(*name) != holder);
                claim.name.into_iter().for_each(|name| packet.add(name));
                packet.doubt = None;
            }
        }
    }
}
