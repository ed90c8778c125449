//! Which packets are wanted, and what became of those that cannot be analysed.

use std::collections::BTreeMap;

use netsniff_packet::filter::Filter;
use netsniff_packet::{LinkType, Packet, decode};

use crate::commands::inputs::span::LeftOut;

/// Asked for each packet whether it is to be analysed.
#[derive(Debug)]
pub(super) struct Selection {
    filters: Vec<Filter>,
    /// The link type that was last found to be supported.
    supported: LinkType,
    /// Wanted packets of unsupported link types, by interface.
    unsupported: BTreeMap<u32, u64>,
    /// What the filters refused.
    refused: LeftOut,
}

impl Selection {
    /// Wants the packets that match all `filters`.
    pub(super) const fn new(filters: Vec<Filter>) -> Self {
        Self {
            filters,
            supported: LinkType::ETHERNET,
            unsupported: BTreeMap::new(),
            refused: LeftOut { packets: 0, wire_bytes: 0, captured_bytes: 0, span: None },
        }
    }

    #[inline]
    pub(super) fn wants(&mut self, packet: &Packet<'_>) -> bool {
        if !self.filters.is_empty() && self.refuses(packet) {
            return false;
        }
        if packet.link_type != self.supported {
            self.other_link_type(packet);
        }
        true
    }

    /// Whether a filter refuses a packet, which is counted then.
    #[inline(never)]
    fn refuses(&mut self, packet: &Packet<'_>) -> bool {
        let is_refused = !self.filters.iter().all(|filter| filter.matches(packet));
        if is_refused {
            self.refused.add(packet);
        }
        is_refused
    }

    #[cold]
    fn other_link_type(&mut self, packet: &Packet<'_>) {
        if decode::supported(packet.link_type) {
            self.supported = packet.link_type;
        } else {
            *self.unsupported.entry(packet.interface).or_default() += 1;
        }
    }

    /// The same that has seen nothing.
    pub(super) fn same(&self) -> Self {
        Self::new(self.filters.clone())
    }

    /// Adds what another one saw of a file, whose interfaces `number` finds among those of all files.
    pub(super) fn add(&mut self, other: &Self, number: impl Fn(u32) -> Option<u32>) {
        self.refused.merge(&other.refused);
        for (&interface, packets) in &other.unsupported {
            let interface = number(interface).unwrap_or(interface);
            *self.unsupported.entry(interface).or_default() += packets;
        }
    }

    pub(super) fn filters(&self) -> &[Filter] {
        &self.filters
    }

    pub(super) const fn unsupported(&self) -> &BTreeMap<u32, u64> {
        &self.unsupported
    }

    pub(super) const fn refused(&self) -> LeftOut {
        self.refused
    }
}
