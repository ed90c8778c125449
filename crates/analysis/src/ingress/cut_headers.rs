//! Headers that a capture did not keep to their end: by layer, and what would have been enough.

use std::collections::BTreeMap;

use netsniff_packet::Packet;
use netsniff_packet::decode::{Decoded, Layer, Stop, Transport};

/// Packets whose headers the snap length cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutHeaders {
    by_layer: BTreeMap<Layer, u64>,
    enough: u32,
}

impl CutHeaders {
    /// Packets by the layer whose header was cut, each counted once.
    #[must_use]
    pub const fn by_layer(&self) -> &BTreeMap<Layer, u64> {
        &self.by_layer
    }

    /// Packets whose headers were cut.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.by_layer.values().sum()
    }

    /// The snap length that reaches the end of all headers that were cut, in bytes. Headers behind those are not known.
    #[must_use]
    pub const fn enough(&self) -> u32 {
        self.enough
    }

    /// Notes a packet that was cut, with where its headers end too early, or with a datagram that it has.
    #[cold]
    pub(super) fn note<'a>(
        &mut self,
        packet: &Packet<'_>,
        stop: Option<&Stop>,
        datagrams: impl IntoIterator<Item = &'a Decoded>,
    ) {
        let stopped = stop
            .filter(|stop| stop.cut)
            .map(|stop| (stop.layer, stop.needed.saturating_sub(stop.had)));
        let cut = stopped.or_else(|| datagrams.into_iter().find_map(cut_options));
        if let Some((layer, lacking)) = cut {
            *self.by_layer.entry(layer).or_default() += 1;
            let kept = u32::try_from(packet.data.len()).unwrap_or(u32::MAX);
            self.enough = self.enough.max(kept.saturating_add(lacking));
        }
    }

    /// Adds those of another ring.
    pub(super) fn merge(&mut self, other: &Self) {
        for (&layer, &packets) in &other.by_layer {
            *self.by_layer.entry(layer).or_default() += packets;
        }
        self.enough = self.enough.max(other.enough);
    }
}

/// How many bytes of the options of TCP were not captured, where some were not.
fn cut_options(decoded: &Decoded) -> Option<(Layer, u32)> {
    let (Some(ip), Transport::Tcp(tcp)) = (&decoded.ip, &decoded.transport) else { return None };
    let header = tcp.payload_offset.saturating_sub(ip.payload_offset);
    tcp.options.cut.then(|| (Layer::Tcp, header.saturating_sub(ip.payload_captured)))
}
