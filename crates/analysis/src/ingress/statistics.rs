//! Counts over all packets: layers, sizes, order, and what could not be decoded.

use std::collections::BTreeMap;

use netsniff_packet::decode::{Layer, Layers, Stop};
use netsniff_packet::{LinkType, Loss, Packet, Timestamp, decode};

use super::cut_headers::CutHeaders;
use super::stamps::EqualStamps;
use crate::checksums::Verdicts;
use crate::depth::{Depth, PacketsByDepth};

/// A number of packets, with their bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of packets.
    pub packets: u64,
    /// Bytes on the wire.
    pub bytes: u64,
}

impl Count {
    const fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// What all packets amount to.
///
/// Every packet is in exactly one of `unsupported`, `unknown`, `stopped`, `discarded` and `decoded`.
#[derive(Clone, Debug, Default)]
pub struct PacketStatistics {
    /// Packets read, with their bytes on the wire.
    pub total: Count,
    /// Bytes that the capture kept of them.
    pub captured_bytes: u64,
    /// Packets of which the capture kept less than the wire carried.
    pub cut: u64,
    /// Packets of link types that are not supported.
    pub unsupported: BTreeMap<LinkType, Count>,
    /// Packets whose last header says that something follows which is not known, and of which no
    /// other log tells: an EtherType, a protocol in GRE, what is in LLC.
    pub unknown: u64,
    /// Packets whose headers could not be read to the end, because they are malformed or cut, be
    /// it inside a tunnel.
    pub stopped: u64,
    /// Packets that were left out because of an IPv4 header with a wrong checksum, be it inside a
    /// tunnel.
    pub discarded: u64,
    /// Packets whose headers were read to the end, and that are understood.
    pub decoded: u64,
    /// Those of them that belong to no flow, ARP and fragments for example, by the depth in force when
    /// they came. The others are counted with their flows, by
    /// [`FlowStatistics::packets`](crate::flow::report::statistics::FlowStatistics::packets).
    pub without_flow: PacketsByDepth,
    /// Packets of [`Self::without_flow`] of which no log tells, though they are understood: ARP, and acknowledgements of
    /// enhanced GRE.
    pub without_log: PacketsByDepth,
    /// Packets of [`Self::without_flow`] that are fragments of datagrams that are not whole.
    pub unjoined: PacketsByDepth,
    /// Checksums of IP headers, those of fragments and inside tunnels included. IPv6 has none.
    pub ip_checksums: Verdicts,
    /// Earliest and latest stamp.
    pub span: Option<(Timestamp, Timestamp)>,
    /// Packets whose stamp lies before that of a packet read earlier.
    pub out_of_order: u64,
    /// The furthest that one lies back, in nanoseconds.
    pub furthest_back_nanos: i64,
    /// Packets with the stamp of the packet before them.
    pub equal_stamps: EqualStamps,
    /// Packets whose headers the snap length cut.
    pub cut_headers: CutHeaders,
    /// Packets whose stamp alone lies far ahead of those around them.
    pub ahead: u64,
    /// The furthest that one lies ahead, in nanoseconds.
    pub furthest_ahead_nanos: i64,
    /// What the capture lost between the packets.
    pub losses: LossStatistics,
    /// Oddities of headers, by name.
    pub weirds: BTreeMap<&'static str, u64>,
    by_layers: Vec<(Layers, Count)>,
}

/// What a capture lost between its packets, as it tells itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossStatistics {
    /// Places at which something was lost.
    pub places: u64,
    /// Packets lost there, each told once.
    pub packets: u64,
}

impl LossStatistics {
    pub(super) const fn add(&mut self, loss: &Loss) {
        self.places += 1;
        self.packets = self.packets.saturating_add(loss.packets);
    }
}

/// How far a packet went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its headers were read to the end, if its link type is supported.
    #[default]
    Passed,
    /// What follows the last header is not known, and nothing tells of the packet.
    Unknown,
    /// A header could not be read.
    Stopped(Stop),
    /// A header's checksum was wrong, and such packets are not wanted.
    Discarded,
}

/// What tells of a packet that belongs to no flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportedBy {
    /// A row of a log.
    Logged,
    /// No packet follows.
    Nowhere,
    /// Nothing, before the datagram is whole of which it is a fragment.
    Waiting,
}

impl PacketStatistics {
    /// Counts a packet, which came at `time` as far as that is known. Returns whether its headers were read
    /// to the end.
    #[inline(never)]
    pub(super) fn packet(
        &mut self,
        packet: &Packet<'_>,
        time: Timestamp,
        layers: Layers,
        fate: Fate,
        now: Timestamp,
    ) -> bool {
        let mut is_decoded = false;
        if matches!(fate, Fate::Stopped(_)) {
            self.stopped += 1;
        } else if fate == Fate::Discarded {
            self.discarded += 1;
        } else if fate == Fate::Unknown {
            self.unknown += 1;
        } else if layers == Layers::default() && !decode::supported(packet.link_type) {
            let count = self.unsupported.entry(packet.link_type).or_default();
            count.add(Count { packets: 1, bytes: packet.wire_len.into() });
        } else {
            self.decoded += 1;
            is_decoded = true;
        }
        self.note(packet, time, layers, now);
        is_decoded
    }

    /// As [`Self::packet`], for one of a link type that is supported, and whose headers were read to the end.
    #[inline(always)]
    pub(super) fn passed(
        &mut self,
        packet: &Packet<'_>,
        time: Timestamp,
        layers: Layers,
        now: Timestamp,
    ) {
        self.decoded += 1;
        self.note(packet, time, layers, now);
    }

    /// Notes what does not depend on how far a packet went.
    #[inline(always)]
    fn note(&mut self, packet: &Packet<'_>, time: Timestamp, layers: Layers, now: Timestamp) {
        let bytes = u64::from(packet.wire_len);
        self.total.add(Count { packets: 1, bytes });
        self.captured_bytes += packet.data.len() as u64;
        self.cut += u64::from(packet.is_cut());
        self.equal_stamps.note(packet.timestamp);
        self.note_time(time, now);
        self.note_layers(layers, bytes);
    }

    /// Notes the depth of a packet that was read to the end and belongs to no flow, and what tells of it.
    #[cold]
    pub(super) const fn note_without_flow(&mut self, depth: Depth, told: ReportedBy) {
        self.without_flow.add(depth, 1);
        match told {
            ReportedBy::Logged => {}
            ReportedBy::Nowhere => self.without_log.add(depth, 1),
            ReportedBy::Waiting => self.unjoined.add(depth, 1),
        }
    }

    #[inline]
    fn note_time(&mut self, time: Timestamp, now: Timestamp) {
        match &mut self.span {
            Some((_, last)) if time > *last => *last = time,
            Some((first, _)) => *first = time.min(*first),
            None => self.span = Some((time, time)),
        }
        if time < now {
            self.out_of_order += 1;
            self.furthest_back_nanos = self.furthest_back_nanos.max(now.nanos_since(time));
        }
    }

    /// Adds what another ring's packets amount to.
    pub fn merge(&mut self, other: &Self) {
        self.total.add(other.total);
        self.captured_bytes += other.captured_bytes;
        self.cut += other.cut;
        for (&link_type, &count) in &other.unsupported {
            self.unsupported.entry(link_type).or_default().add(count);
        }
        self.unknown += other.unknown;
        self.stopped += other.stopped;
        self.discarded += other.discarded;
        self.decoded += other.decoded;
        self.without_flow = self.without_flow.with(&other.without_flow);
        self.without_log = self.without_log.with(&other.without_log);
        self.unjoined = self.unjoined.with(&other.unjoined);
        self.ip_checksums.merge(&other.ip_checksums);
        let span = |of: &Self| of.span.into_iter();
        let first = span(self).chain(span(other)).map(|span| span.0).min();
        let last = span(self).chain(span(other)).map(|span| span.1).max();
        self.span = first.zip(last);
        self.out_of_order += other.out_of_order;
        self.furthest_back_nanos = self.furthest_back_nanos.max(other.furthest_back_nanos);
        self.equal_stamps.merge(&other.equal_stamps);
        self.cut_headers.merge(&other.cut_headers);
        self.ahead += other.ahead;
        self.furthest_ahead_nanos = self.furthest_ahead_nanos.max(other.furthest_ahead_nanos);
        self.losses.places += other.losses.places;
        self.losses.packets = self.losses.packets.saturating_add(other.losses.packets);
        for (&name, &count) in &other.weirds {
            *self.weirds.entry(name).or_default() += count;
        }
        for &(layers, count) in &other.by_layers {
            match self.by_layers.iter_mut().find(|(known, _)| *known == layers) {
                Some((_, sum)) => sum.add(count),
                None => self.by_layers.push((layers, count)),
            }
        }
    }

    /// Few combinations of layers occur, and those that occur first are mostly the most common.
    #[inline]
    fn note_layers(&mut self, layers: Layers, bytes: u64) {
        if let Some((_, count)) = self.by_layers.iter_mut().find(|(known, _)| *known == layers) {
            count.packets += 1;
            count.bytes += bytes;
        } else {
            self.by_layers.push((layers, Count { packets: 1, bytes }));
        }
    }

    pub(super) fn weird(&mut self, name: &'static str) {
        *self.weirds.entry(name).or_default() += 1;
    }

    /// Packets and bytes of the packets in which each layer was met, tunnels included. A packet
    /// counts once in a layer, however often it has it.
    #[must_use]
    pub fn layers(&self) -> Vec<(Layer, Count)> {
        let count_of = |layer: Layer| {
            let with = self.by_layers.iter().filter(|(layers, _)| layers.contains(layer));
            with.fold(Count::default(), |sum, (_, count)| Count {
                packets: sum.packets + count.packets,
                bytes: sum.bytes + count.bytes,
            })
        };
        let counts = Layer::ALL.iter().map(|&layer| (layer, count_of(layer)));
        counts.filter(|(_, count)| count.packets > 0).collect()
    }
}
