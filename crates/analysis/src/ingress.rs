//! From packets to datagrams: time, decoding, fragments and tunnels, before any flow is known.
//!
//! What happens here needs all packets in order; what comes after needs only those between the
//! same two addresses, and can be shared out among workers.

use core::ops::Range;

use netsniff_packet::decode::{self, Decoded};
use netsniff_packet::{Packet, Timestamp};

use crate::limits::Limits;
use crate::log::weird::Weird;
use crate::record::{Observer, Phase, SortKey};
use crate::uid::Uid;
use crate::unit::Unit;
use statistics::PacketStatistics;

pub mod statistics;

/// Decodes packets, and keeps the state that this needs.
#[derive(Debug)]
pub struct Ingress {
    limits: Limits,
    now: Timestamp,
    ordinal: u64,
    statistics: PacketStatistics,
}

impl Ingress {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, now: Timestamp::MIN, ordinal: 0, statistics: PacketStatistics::default() }
    }

    /// Engine time: the latest stamp so far; [`Timestamp::MIN`] before the first packet.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// What the packets amount to so far.
    #[must_use]
    pub const fn statistics(&self) -> &PacketStatistics {
        &self.statistics
    }

    /// Takes one packet and appends the datagrams that it completes to `units`; `bytes` is where
    /// the packet lies among the bytes that will go with them.
    #[inline]
    pub fn packet<O: Observer>(
        &mut self,
        packet: &Packet<'_>,
        bytes: Range<usize>,
        units: &mut Vec<Unit>,
        observer: &mut O,
    ) {
        self.ordinal += 1;
        self.now = self.now.max(packet.timestamp);
        let decoded = decode::packet(packet.link_type, packet.data, packet.wire_len);
        self.statistics.packet(packet, &decoded, self.now);
        if let Some(ip) = decoded.ip
            && decoded.stop.is_none()
            && ip.fragment.is_none()
        {
            units.push(Unit {
                time: packet.timestamp,
                now: self.now,
                ordinal: self.ordinal,
                ip,
                transport: decoded.transport,
                vlan: [decoded.vlan, decoded.inner_vlan],
                bytes,
                reassembled: None,
                parent: None,
            });
        }
        if decoded.stop.is_some() || !decoded.oddities.is_empty() {
            self.report_oddities(packet, &decoded, observer);
        }
    }

    #[cold]
    fn report_oddities<O: Observer>(
        &mut self,
        packet: &Packet<'_>,
        decoded: &Decoded,
        observer: &mut O,
    ) {
        let mut key = SortKey {
            time: self.now,
            phase: Phase::Packet,
            ordinal: self.ordinal,
            uid: Uid::NONE,
            number: 0,
        };
        let stop = decoded.stop.map(|stop| (stop.weird, Some(stop)));
        let oddities = decoded.oddities.iter().map(|oddity| (oddity.weird(), None));
        for (name, stop) in oddities.chain(stop) {
            self.statistics.weird(name);
            let detail =
                stop.map(|stop| format!("{} header at offset {}", stop.layer.name(), stop.offset));
            observer.record(
                &key,
                &Weird {
                    ts: packet.timestamp,
                    uid: None,
                    id_orig_h: decoded.ip.map(|ip| ip.source),
                    id_orig_p: decoded.ip.map(|_| crate::record::Port(0)),
                    id_resp_h: decoded.ip.map(|ip| ip.destination),
                    id_resp_p: decoded.ip.map(|_| crate::record::Port(0)),
                    name,
                    addl: detail.as_ref().map(String::as_bytes),
                    notice: false,
                    peer: "netsniff",
                    source: None,
                },
            );
            key.number += 1;
        }
    }
}
