//! The way of one packet from its outermost headers to its innermost datagram.

use core::ops::Range;
use std::sync::Arc;

use netsniff_packet::Timestamp;
use netsniff_packet::checksum::{self, ChecksumVerdict};
use netsniff_packet::decode::tunnel::{self, Tunnel, TunnelKind};
use netsniff_packet::decode::{self, Decoded, Ip, Layer, Layers, Stop, Transport, Udp};
use netsniff_packet::wire::ipv4::protocol;

use super::Ingress;
use super::statistics::{Fate, ReportedBy};
use super::tunnels::is_plain_udp;
use crate::key::uid::Uid;
use crate::log::weird::Weird;
use crate::options::ChecksumMode;
use crate::reassembly::fragments::Arrival;
use crate::record::{Observer, Phase, Port, SortKey, Undecided};
use crate::unit::{DatagramBatch, DecodedDatagram, Joined};
use crate::weird::{Oddity, Weirds};

/// One packet on its way, and what was met so far.
pub(super) struct Walk<'a, O> {
    ingress: &'a mut Ingress,
    units: &'a mut DatagramBatch,
    observer: &'a mut O,
    /// When the packet was seen.
    time: Timestamp,
    /// Where it lies among the bytes that go with the units.
    bytes: Range<usize>,
    /// Number of the next oddity.
    number: u32,
    /// How many units there were before it.
    first: usize,
    /// Set once something in it is a fragment that waits for others.
    waits: bool,
    /// All layers on the way.
    pub(super) layers: Layers,
    /// How far the packet went.
    pub(super) fate: Fate,
}

/// What a datagram is inside of.
#[derive(Clone, Default)]
pub(super) struct OuterHeaders {
    /// The innermost flow or tunnel around it.
    parent: Option<Uid>,
    /// How many tunnels it is in.
    depth: u8,
    /// The innermost tunnel's kind, and the bytes that it carries.
    tunnel: Option<(TunnelKind, u32)>,
    /// Set where this very datagram was put together from fragments: what the checksums of their
    /// headers say.
    joined: Option<ChecksumVerdict>,
    /// The bytes that it lies in, where they were put together from fragments.
    reassembled: Option<Arc<Joined>>,
}

impl<'a, O: Observer> Walk<'a, O> {
    /// At the beginning of a packet that was seen at a time and lies in a range of bytes.
    pub(super) fn new(
        ingress: &'a mut Ingress,
        (time, bytes): (Timestamp, Range<usize>),
        units: &'a mut DatagramBatch,
        observer: &'a mut O,
    ) -> Self {
        let (layers, fate) = (Layers::default(), Fate::default());
        let first = units.len();
        let waits = false;
        Self { ingress, units, observer, time, bytes, number: 0, first, waits, layers, fate }
    }

    /// What tells of the packet, where it belongs to no flow.
    pub(super) const fn reported_by(&self) -> ReportedBy {
        match (self.waits, self.number) {
            (true, _) => ReportedBy::Waiting,
            (false, 0) => ReportedBy::Nowhere,
            (false, _) => ReportedBy::Logged,
        }
    }

    /// Goes on with what was decoded from `data`. Returns whether something in it belongs to a
    /// flow.
    pub(super) fn datagram(
        &mut self,
        decoded: &Decoded,
        data: &[u8],
        outside: &OuterHeaders,
    ) -> bool {
        self.layers = self.layers.union(decoded.layers);
        if let Some(boundary) = &mut self.ingress.boundary
            && let Some(ip) = &decoded.ip
        {
            boundary.level(ip, self.ingress.clock.now());
        }
        let header_checksum = self.header_checksum(decoded, data, outside);
        if self.ingress.checksums.discards(header_checksum) && is_header_whole(decoded) {
            self.discard(decoded);
            return false;
        }
        if decoded.stop.is_some() || !decoded.oddities.is_empty() {
            self.report_oddities(decoded);
        }
        if decoded.stop.is_some() {
            return false;
        }
        let Some(ip) = decoded.ip else {
            // A link type that is not supported has no layer at all.
            let is_read =
                decoded.layers.contains(Layer::Arp) || decoded.layers == Layers::default();
            self.fate = if is_read { self.fate } else { Fate::Unknown };
            return false;
        };
        if ip.fragment.is_some() {
            return self.fragment(decoded, &ip, header_checksum, data, outside);
        }
        let mut unit = self.unit(decoded, outside);
        unit.header_checksum = header_checksum;
        match decoded.transport {
            Transport::Udp(udp) => {
                self.udp(unit, &udp, data, outside);
                true
            }
            Transport::Other => self.other(unit, &ip, data, outside),
            _ => {
                self.units.push(unit);
                true
            }
        }
    }

    /// A datagram of UDP, which may carry another one.
    fn udp(&mut self, mut unit: DecodedDatagram, udp: &Udp, data: &[u8], outside: &OuterHeaders) {
        let found = self.find(&unit.decoded, data).filter(|_| is_plain_udp(udp));
        if udp.checksum == 0 && matches!(found, Some(Ok(_))) {
            // Over IPv6 too a tunnel may do without (RFC 6935, 5), on whatever port.
            unit.checksum = Some(ChecksumVerdict::Absent);
        }
        let is_carrier = is_plain_udp(udp) && self.ingress.tunnels.is_followed(&unit);
        if self.ingress.checksums == ChecksumMode::Discard && (found.is_some() || is_carrier) {
            // Nothing inside counts where the datagram itself does not.
            let judge = || checksum::transport(&unit.decoded, data);
            let verdict = unit.checksum.unwrap_or_else(judge);
            unit.checksum = Some(verdict);
            if verdict.is_wrong() {
                self.ingress.tunnels.note_discarded(&unit);
                self.units.push(unit);
                return;
            }
        }
        if let Some(Ok(found)) = found {
            self.units.push(unit.clone());
            if found.kind == TunnelKind::Gre {
                // As without UDP, the hosts are the tunnel: UDP ports are chosen by what is inside, to
                // spread flows over paths (RFC 8086, section 3.1).
                unit.stand_above_ip(protocol::GRE);
            }
            self.tunnel(&unit, &found, data, outside);
            return;
        }
        if is_carrier {
            self.ingress.tunnels.note(&unit);
        }
        self.units.push(unit);
    }

    /// The tunnel that a datagram carries, if any.
    fn find(&self, decoded: &Decoded, data: &[u8]) -> Option<Result<Tunnel, Stop>> {
        tunnel::find(decoded, data, &self.ingress.tunnel_ports)
    }

    /// What the checksum of the datagram's IP header says. Those of fragments were looked at when
    /// the fragments came.
    fn header_checksum(
        &mut self,
        decoded: &Decoded,
        data: &[u8],
        outside: &OuterHeaders,
    ) -> ChecksumVerdict {
        if let Some(joined) = outside.joined {
            return joined;
        }
        let verdict = self.ingress.checksums.judge_header(decoded, data);
        if decoded.ip.is_some() {
            self.ingress.statistics.ip_checksums.count(verdict);
        }
        verdict
    }

    /// Leaves out a datagram whose header has a wrong checksum.
    #[cold]
    fn discard(&mut self, decoded: &Decoded) {
        self.fate = Fate::Discarded;
        for oddity in decoded.oddities.iter() {
            self.weird(oddity.weird(), decoded.ip.as_ref(), None);
        }
        self.weird("bad_IP_checksum", decoded.ip.as_ref(), None);
    }

    /// A datagram without a transport header. As in Zeek, tunnels directly above IP are no flows,
    /// whatever is inside, and neither is a header that says that nothing follows.
    fn other(
        &mut self,
        unit: DecodedDatagram,
        ip: &Ip,
        data: &[u8],
        outside: &OuterHeaders,
    ) -> bool {
        match ip.protocol {
            protocol::IPV4 | protocol::IPV6 | protocol::GRE => {
                match self.find(&unit.decoded, data) {
                    Some(Ok(found)) => self.tunnel(&unit, &found, data, outside),
                    Some(Err(stop)) => {
                        self.report_stop(ip, &stop);
                        false
                    }
                    None => {
                        let version = data.get(ip.payload_offset as usize + 1).map(|byte| byte & 7);
                        // Enhanced GRE without a payload only acknowledges (RFC 2637, 4.1).
                        self.fate = if version == Some(1) { self.fate } else { Fate::Unknown };
                        false
                    }
                }
            }
            protocol::NO_NEXT_HEADER => {
                match outside.tunnel {
                    // A bubble, which keeps address translations open.
                    Some((TunnelKind::Teredo, len)) => {
                        if len > ip.total_len {
                            self.weird("Teredo_bubble_with_payload", Some(ip), None);
                        }
                    }
                    _ => self.weird("ipv6_no_next", Some(ip), None),
                }
                false
            }
            // What is above stays unknown, and Zeek has no connection for it; for the same in IPv4
            // it has one.
            protocol::ESP if !ip.is_v4() => {
                self.fate = Fate::Unknown;
                false
            }
            _ => {
                self.units.push(unit);
                true
            }
        }
    }

    /// Goes on inside the tunnel that `unit` carries.
    fn tunnel(
        &mut self,
        unit: &DecodedDatagram,
        found: &Tunnel,
        data: &[u8],
        outside: &OuterHeaders,
    ) -> bool {
        self.layers.insert(found.kind.layer());
        if outside.depth >= self.ingress.limits.tunnel_depth {
            self.ingress.tunnels.note_too_deep();
            if self.ingress.tunnels.is_followed(unit) {
                self.ingress.tunnels.note(unit);
            }
            self.weird("exceeded_tunnel_max_depth", unit.ip(), None);
            return false;
        }
        let inside = OuterHeaders {
            parent: self.ingress.tunnels.note(unit),
            depth: outside.depth + 1,
            tunnel: Some((found.kind, found.end.saturating_sub(found.offset))),
            joined: None,
            reassembled: outside.reassembled.clone(),
        };
        let has_flow = self.datagram(&found.decode(data), data, &inside);
        if has_flow {
            self.ingress.tunnels.note_inside(unit, found.kind, self.observer);
        }
        has_flow
    }

    fn unit(&self, decoded: &Decoded, outside: &OuterHeaders) -> DecodedDatagram {
        DecodedDatagram {
            time: self.time,
            now: self.ingress.now(),
            ordinal: self.ingress.ordinal,
            tie: self.ingress.tie,
            decoded: *decoded,
            bytes: self.bytes.clone(),
            reassembled: outside.reassembled.clone(),
            parent: outside.parent,
            header_checksum: ChecksumVerdict::Unknown,
            checksum: None,
            is_packet: false,
        }
    }

    /// Takes a fragment, and goes on with the datagram that it completes.
    #[cold]
    fn fragment(
        &mut self,
        decoded: &Decoded,
        ip: &Ip,
        header_checksum: ChecksumVerdict,
        data: &[u8],
        outside: &OuterHeaders,
    ) -> bool {
        if outside.joined.is_some() {
            // A datagram put together is no fragment again, else there would be no end to it.
            let stop = Stop {
                weird: "nested_fragment",
                layer: Layer::Fragment,
                offset: ip.offset,
                needed: 0,
                had: ip.payload_captured,
                cut: false,
            };
            self.report_stop(ip, &stop);
            return false;
        }
        let (start, len) = (ip.payload_offset as usize, ip.payload_len as usize);
        let Some(payload) = start.checked_add(len).and_then(|end| data.get(start..end)) else {
            return self.cut_fragment(decoded, ip, header_checksum, data, outside);
        };
        let mut weirds = Weirds::default();
        let now = self.ingress.now();
        // Inside a tunnel, a fragment may have come in several packets itself.
        let own = [self.ingress.ordinal];
        let packets = outside.reassembled.as_ref().map_or(&own[..], |outer| &outer.packets);
        let arrival = Arrival { now, packets };
        let whole = self.ingress.fragments.add(arrival, ip, header_checksum, payload, &mut weirds);
        for Oddity { name, .. } in weirds.drain() {
            self.weird(name, Some(ip), None);
        }
        let Some(whole) = whole else {
            self.waits = true;
            packets.iter().for_each(|it| self.observer.undecided(*it, Undecided::Fragment));
            return false;
        };
        if self.units.len() == self.first {
            // Otherwise they are in a flow, which tells of them.
            let depth = self.ingress.depth;
            self.ingress.statistics.unjoined.remove(depth, whole.fragments.saturating_sub(1));
        }
        let mut inside = decode::reassembled(&whole.ip, &whole.payload);
        inside.vlan = decoded.vlan;
        inside.inner_vlan = decoded.inner_vlan;
        let joined =
            Arc::new(Joined { bytes: whole.payload.into(), packets: whole.packets.into() });
        let outside = OuterHeaders {
            joined: Some(whole.header_checksum),
            reassembled: Some(Arc::clone(&joined)),
            ..outside.clone()
        };
        self.datagram(&inside, &joined.bytes, &outside)
    }

    /// A fragment of which the capture kept too little. The first one has the ports, so that it
    /// stands for its datagram, as in Zeek.
    fn cut_fragment(
        &mut self,
        decoded: &Decoded,
        ip: &Ip,
        header_checksum: ChecksumVerdict,
        data: &[u8],
        outside: &OuterHeaders,
    ) -> bool {
        self.ingress.fragments.note_cut();
        self.weird("incompletely_captured_fragment", Some(ip), None);
        if ip.fragment.is_some_and(|fragment| fragment.offset > 0) {
            return false;
        }
        let payload = data.get(ip.payload_offset as usize..).unwrap_or_default();
        let (transport, layers, stop) = decode::transport(ip.protocol, payload, ip.payload_len);
        self.layers = self.layers.union(layers);
        if let Some(stop) = stop {
            self.report_stop(ip, &stop);
            return false;
        }
        let transport = moved(transport, ip.payload_offset);
        let mut unit = self.unit(&Decoded { transport, ..*decoded }, outside);
        unit.header_checksum = header_checksum;
        if let Transport::Udp(udp) = transport
            && is_plain_udp(&udp)
            && self.ingress.tunnels.is_followed(&unit)
        {
            self.ingress.tunnels.note(&unit);
        }
        self.units.push(unit);
        true
    }

    #[cold]
    fn report_oddities(&mut self, decoded: &Decoded) {
        for oddity in decoded.oddities.iter() {
            self.weird(oddity.weird(), decoded.ip.as_ref(), None);
        }
        if let Some(stop) = decoded.stop {
            self.fate = Fate::Stopped(stop);
            self.weird(stop.weird, decoded.ip.as_ref(), Some(&stop));
        }
    }

    #[cold]
    fn report_stop(&mut self, ip: &Ip, stop: &Stop) {
        self.fate = Fate::Stopped(*stop);
        self.weird(stop.weird, Some(ip), Some(stop));
    }

    #[cold]
    fn weird(&mut self, name: &'static str, ip: Option<&Ip>, stop: Option<&Stop>) {
        self.ingress.statistics.weird(name);
        let detail =
            stop.map(|stop| format!("{} header at offset {}", stop.layer.name(), stop.offset));
        let key = self.key(Uid::NONE);
        self.observer.record(
            &key,
            &Weird {
                ts: self.time,
                uid: None,
                id_orig_h: ip.map(|ip| ip.source),
                id_orig_p: ip.map(|_| Port(0)),
                id_resp_h: ip.map(|ip| ip.destination),
                id_resp_p: ip.map(|_| Port(0)),
                name,
                addl: detail.as_ref().map(String::as_bytes),
                notice: false,
                peer: "netsniff",
                source: None,
            },
        );
    }

    /// The place of this packet's next record.
    fn key(&mut self, uid: Uid) -> SortKey {
        let number = self.number;
        self.number += 1;
        SortKey {
            time: self.ingress.now(),
            phase: Phase::Packet,
            ordinal: self.ingress.ordinal,
            uid,
            number,
        }
    }
}

/// Whether the IP header itself is in order, whatever is above it.
fn is_header_whole(decoded: &Decoded) -> bool {
    decoded.stop.is_none_or(|stop| stop.layer != Layer::Ipv4)
}

/// The header with its offset counted from `base` bytes before.
fn moved(mut transport: Transport, base: u32) -> Transport {
    let offset = match &mut transport {
        Transport::Tcp(tcp) => &mut tcp.payload_offset,
        Transport::Udp(udp) => &mut udp.payload_offset,
        Transport::Icmp(icmp) => &mut icmp.payload_offset,
        Transport::Sctp(sctp) => &mut sctp.payload_offset,
        Transport::Other | Transport::None => return transport,
    };
    *offset = offset.saturating_add(base);
    transport
}
