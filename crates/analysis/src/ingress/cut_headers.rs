//! Headers that a capture did not keep to their end: by layer, and what would have been enough.

use std::collections::BTreeMap;

use netsniff_packet::Packet;
use netsniff_packet::decode::{self, Decoded, Layer, Stop, Transport, TunnelPorts, tunnel};

/// Tunnels in tunnels that are followed to the headers inside.
const MAX_DEPTH: usize = 4;

/// Packets whose headers the snap length cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutHeaders {
    looked_at: u64,
    by_layer: BTreeMap<Layer, u64>,
    enough: u32,
}

impl CutHeaders {
    /// Packets that the snap length cut, and whose headers were looked at.
    #[must_use]
    pub const fn looked_at(&self) -> u64 {
        self.looked_at
    }

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

    /// Looks at the headers of a packet that was cut, and at those in its tunnels, which are looked for on `ports`.
    #[cold]
    pub fn look(&mut self, packet: &Packet<'_>, ports: &TunnelPorts) {
        let mut decoded = decode::packet(packet.link_type, packet.data, packet.wire_len);
        for _ in 0..MAX_DEPTH {
            match tunnel::find(&decoded, packet.data, ports) {
                Some(Ok(found)) => {
                    let inner = found.decode(packet.data);
                    let is_cut = inner.stop.is_some_and(|stop| stop.cut);
                    if inner.ip.is_none() && !is_cut {
                        break;
                    }
                    decoded = inner;
                }
                Some(Err(stop)) => return self.note(packet, Some(&stop), []),
                None => break,
            }
        }
        self.note(packet, decoded.stop.as_ref(), [&decoded]);
    }

    /// Notes a packet that was cut, with where its headers end too early, or with a datagram that it has.
    #[cold]
    pub(super) fn note<'a>(
        &mut self,
        packet: &Packet<'_>,
        stop: Option<&Stop>,
        datagrams: impl IntoIterator<Item = &'a Decoded>,
    ) {
        self.looked_at += 1;
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
    pub fn merge(&mut self, other: &Self) {
        self.looked_at += other.looked_at;
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

#[cfg(test)]
mod tests {
    use core::net::{IpAddr, Ipv4Addr};

    use netsniff_packet::wire::tcp::TcpHeader;
    use netsniff_packet::{LinkType, Timestamp};
    use netsniff_traffic::frame::{Host, tcp_frame, udp_frame};

    use super::*;

    fn host(last: u8, port: u16) -> Host {
        Host::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port)
    }

    /// A segment with 12 bytes of options: 66 bytes of headers.
    fn segment() -> Vec<u8> {
        let header = TcpHeader {
            source_port: 0,
            destination_port: 0,
            sequence: 1,
            acknowledgement: 1,
            flags: 0x18,
            window: 1000,
            checksum: 0,
            urgent_pointer: 0,
            options: &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
        };
        tcp_frame(&host(1, 4000), &host(2, 80), 1, &header, &[7; 400]).unwrap()
    }

    fn looked(cut: &mut CutHeaders, frame: &[u8], snaplen: usize) {
        let packet = Packet {
            timestamp: Timestamp::EPOCH,
            data: &frame[..snaplen],
            wire_len: frame.len() as u32,
            link_type: LinkType::ETHERNET,
            interface: 0,
        };
        cut.look(&packet, &TunnelPorts::default());
    }

    #[test]
    fn headers_are_cut_up_to_their_last_byte() {
        let frame = segment();
        let mut cut = CutHeaders::default();
        looked(&mut cut, &frame, 66);
        assert_eq!((cut.looked_at(), cut.packets()), (1, 0));
        for (snaplen, layer, enough) in
            [(65, Layer::Tcp, 66), (50, Layer::Tcp, 54), (30, Layer::Ipv4, 34)]
        {
            let mut cut = CutHeaders::default();
            looked(&mut cut, &frame, snaplen);
            assert_eq!(cut.by_layer().iter().collect::<Vec<_>>(), [(&layer, &1)], "{snaplen}");
            assert_eq!((cut.looked_at(), cut.enough()), (1, enough), "{snaplen}");
        }
    }

    /// VXLAN: 14 + 20 + 8 + 8 bytes of headers before those of the segment inside.
    #[test]
    fn headers_in_tunnels_are_looked_at() {
        let inside = [&[8, 0, 0, 0, 0, 0, 5, 0][..], &segment()].concat();
        let frame = udp_frame(&host(8, 5000), &host(9, 4789), 1, &inside).unwrap();
        let mut cut = CutHeaders::default();
        looked(&mut cut, &frame, 50 + 66);
        assert_eq!(cut.packets(), 0);
        looked(&mut cut, &frame, 50 + 65);
        let mut sum = CutHeaders::default();
        sum.merge(&cut);
        sum.merge(&cut);
        assert_eq!((sum.looked_at(), sum.packets(), sum.enough()), (4, 2, 50 + 66));
    }
}
