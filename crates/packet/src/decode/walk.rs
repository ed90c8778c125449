//! The ways into a walk: a whole packet, a header inside a tunnel, a reassembled datagram.

use super::{
    Decoded, Ip, Layer, Layers, Stop, Transport, link, network, straight, transport as upper,
};
use crate::LinkType;

/// The bytes that a walk is over. Offsets are relative to the first of them.
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    pub(super) data: &'a [u8],
    /// What was on the wire; never less than was captured.
    pub(super) wire_len: usize,
}

impl<'a> Frame<'a> {
    #[inline]
    fn new(data: &'a [u8], wire_len: u32) -> Self {
        // Offsets are 32 bits wide; nothing that a header can say reaches beyond that.
        let data = data.get(..u32::MAX as usize).unwrap_or(data);
        Self { data, wire_len: data.len().max(wire_len as usize) }
    }

    /// What was captured from `offset` on.
    #[inline]
    pub(super) fn from(&self, offset: usize) -> &'a [u8] {
        self.data.get(offset..).unwrap_or_default()
    }

    /// The same frame, ended at `end` where it is longer.
    pub(super) fn until(&self, end: usize) -> Self {
        let data = self.data.get(..end).unwrap_or(self.data);
        Self { data, wire_len: self.wire_len.min(end) }
    }

    /// What was on the wire from `offset` on, in bytes.
    #[inline]
    pub(super) const fn wire_from(&self, offset: usize) -> usize {
        self.wire_len.saturating_sub(offset)
    }

    /// The stop of a header at `offset` that needs more bytes than there are.
    #[cold]
    pub(super) fn short(
        &self,
        weird: &'static str,
        layer: Layer,
        offset: usize,
        needed: usize,
    ) -> Stop {
        Stop {
            weird,
            layer,
            offset: offset as u32,
            needed: needed as u32,
            had: self.from(offset).len() as u32,
            cut: self.wire_from(offset) >= needed,
        }
    }

    /// The stop of a header at `offset` whose content is at fault.
    #[cold]
    pub(super) fn bad(&self, weird: &'static str, layer: Layer, offset: usize) -> Stop {
        let had = self.from(offset).len() as u32;
        Stop { weird, layer, offset: offset as u32, needed: 0, had, cut: false }
    }
}

/// The bytes above a header.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    /// Offset of the first byte.
    pub(super) offset: usize,
    /// Length by the header, in bytes.
    pub(super) len: usize,
    /// How many of the bytes were captured.
    pub(super) captured: usize,
}

impl Extent {
    /// What follows a header of `header_len` bytes at `offset` in a datagram of `total_len` bytes, of which `data` was
    /// captured.
    #[inline(always)]
    pub(super) fn within(data: &[u8], offset: usize, header_len: usize, total_len: usize) -> Self {
        Self {
            offset: offset + header_len,
            len: total_len - header_len,
            captured: data.len().min(total_len) - header_len,
        }
    }
}

/// Whether packets of a link type can be decoded.
#[must_use]
pub const fn supported(link_type: LinkType) -> bool {
    link::supported(link_type)
}

/// Walks a packet from its link layer to its transport header.
///
/// `wire_len` is the packet's length on the wire in bytes, as the capture tells it; a value below
/// `data.len()` counts as `data.len()`. For a link type that is not [`supported`] the result is
/// empty, without a stop.
#[must_use]
pub fn packet(link_type: LinkType, data: &[u8], wire_len: u32) -> Decoded {
    let mut decoded = Decoded::default();
    packet_into(link_type, data, wire_len, &mut decoded);
    decoded
}

/// As [`packet`], into a value that is used again and again, which saves copying it.
///
/// What `decoded` held before does not matter. Returns whether the packet is one whole datagram of TCP or UDP with
/// nothing odd about it; others may be so too.
#[inline]
pub fn packet_into(link_type: LinkType, data: &[u8], wire_len: u32, decoded: &mut Decoded) -> bool {
    let frame = Frame::new(data, wire_len);
    if link_type == LinkType::ETHERNET && straight::decode(decoded, frame) {
        #[cfg(debug_assertions)]
        {
            let mut walked = Decoded::default();
            link::walk(&mut walked, frame, link_type);
            assert_eq!(*decoded, walked, "the straight way leads elsewhere");
        }
        return true;
    }
    walk(link_type, frame, decoded);
    false
}

#[inline(never)]
fn walk(link_type: LinkType, frame: Frame<'_>, decoded: &mut Decoded) {
    decoded.clear();
    link::walk(decoded, frame, link_type);
}

/// As [`packet`], and tells each step through the link layer before it is taken.
pub(crate) fn packet_traced(
    link_type: LinkType,
    data: &[u8],
    wire_len: u32,
    tell: impl FnMut(link::Next),
) -> Decoded {
    let mut decoded = Decoded::default();
    link::walk_traced(&mut decoded, Frame::new(data, wire_len), link_type, tell);
    decoded
}

/// Walks from a step of the link layer, as inside a tunnel, and tells each step before it is taken.
/// `wire_len` as in [`ip`].
pub(crate) fn traced_from(
    next: link::Next,
    data: &[u8],
    wire_len: u32,
    tell: impl FnMut(link::Next),
) -> Decoded {
    let mut decoded = Decoded::default();
    link::run(&mut decoded, Frame::new(data, wire_len), next, tell);
    decoded
}

/// Walks from an IP header of either version at `offset` in `data`, as inside a tunnel.
///
/// `wire_len` is the length on the wire of all of `data`, not from `offset`; the same value as for
/// [`packet`] does, or a lesser one where the tunnel's own header says where its payload ends.
#[must_use]
pub fn ip(data: &[u8], offset: u32, wire_len: u32) -> Decoded {
    let mut decoded = Decoded::default();
    network::ip(&mut decoded, Frame::new(data, wire_len), offset as usize);
    decoded
}

/// Walks from an Ethernet header at `offset` in `data`, as inside a tunnel. `wire_len` as in [`ip`].
#[must_use]
pub fn ethernet(data: &[u8], offset: u32, wire_len: u32) -> Decoded {
    traced_from(link::Next::Ethernet(offset as usize), data, wire_len, |_| {})
}

/// Walks from an MPLS label at `offset` in `data`, as inside a tunnel. `wire_len` as in [`ip`].
#[must_use]
pub fn mpls(data: &[u8], offset: u32, wire_len: u32) -> Decoded {
    traced_from(link::Next::Mpls(offset as usize), data, wire_len, |_| {})
}

/// Walks from a header of IEEE 802.11 at `offset` in `data`, as inside a tunnel. `wire_len` as in [`ip`].
#[must_use]
pub fn wlan(data: &[u8], offset: u32, wire_len: u32) -> Decoded {
    traced_from(link::Next::Wlan(offset as usize, false), data, wire_len, |_| {})
}

/// Decodes the transport header at the start of `data`, which follows an IP header with this
/// protocol number; `len` is the length of the whole payload by that header, in bytes.
///
/// This serves fragments that cannot be reassembled: the first one holds the ports.
#[must_use]
pub fn transport(protocol: u8, data: &[u8], len: u32) -> (Transport, Layers, Option<Stop>) {
    let frame = Frame::new(data, len);
    let mut decoded = Decoded::default();
    let extent = Extent { offset: 0, len: len as usize, captured: data.len().min(len as usize) };
    upper::decode(&mut decoded, frame, Layers::default(), protocol, extent);
    (decoded.transport, decoded.layers, decoded.stop)
}

/// Decodes a datagram whose payload was reassembled from fragments.
///
/// `ip` is the header of the first fragment, of which addresses, protocol and the like are kept;
/// `payload` is the whole payload. Offsets in the result are relative to `payload`: the IP header's
/// is 0, as is that of its payload unless IPv6 extension headers stand before it.
#[must_use]
pub fn reassembled(ip: &Ip, payload: &[u8]) -> Decoded {
    let frame = Frame::new(payload, 0);
    let len = frame.data.len();
    let header_len = ip.payload_offset.saturating_sub(ip.offset);
    let mut decoded = Decoded::default();
    let layer = if ip.is_v4() { Layer::Ipv4 } else { Layer::Ipv6 };
    decoded.layers.insert(layer);
    decoded.ip = Some(Ip {
        total_len: header_len.saturating_add(len as u32),
        offset: 0,
        payload_offset: 0,
        payload_len: len as u32,
        payload_captured: len as u32,
        fragment: None,
        ..*ip
    });
    network::above_extensions(&mut decoded, frame);
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::TcpFlags;
    use crate::wire::ethernet::ethertype;
    use crate::wire::ipv4::{Ipv4Header, protocol};
    use crate::wire::tcp::TcpHeader;
    use crate::wire::vlan::VlanTag;

    /// Ethernet, a tag, IPv4 and TCP with `payload` bytes of payload, and 4 bytes of padding.
    fn segment(payload: u16) -> Vec<u8> {
        let mut frame = vec![0; 14 + 4 + 20 + 32];
        frame[12..14].copy_from_slice(&ethertype::VLAN.to_be_bytes());
        let tag = VlanTag { priority: 5, drop_eligible: false, id: 7, ethertype: ethertype::IPV4 };
        tag.emit(&mut frame[14..]).unwrap();
        let ip = Ipv4Header {
            traffic_class: 0,
            total_len: 52 + payload,
            identification: 9,
            reserved_flag: false,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 64,
            protocol: protocol::TCP,
            checksum: 0,
            source: [192, 0, 2, 1],
            destination: [192, 0, 2, 2],
            options: &[],
        };
        ip.emit(&mut frame[18..]).unwrap();
        let tcp = TcpHeader {
            source_port: 1000,
            destination_port: 80,
            sequence: 5,
            acknowledgement: 6,
            flags: TcpFlags::ACK.0,
            window: 100,
            checksum: 0,
            urgent_pointer: 0,
            options: &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
        };
        tcp.emit(&mut frame[38..]).unwrap();
        frame.resize(frame.len() + usize::from(payload) + 4, 0);
        frame
    }

    #[test]
    fn a_segment_is_found_behind_a_tag_and_padding_is_trimmed() {
        let frame = segment(10);
        let decoded = packet(LinkType::ETHERNET, &frame, frame.len() as u32);
        assert_eq!(decoded.stop, None);
        assert_eq!((decoded.vlan, decoded.inner_vlan), (Some(7), None));
        let Transport::Tcp(tcp) = decoded.transport else { panic!("no TCP: {decoded:?}") };
        assert_eq!((tcp.payload_offset, tcp.payload_len, tcp.payload_captured), (70, 10, 10));
        assert_eq!(tcp.options.timestamps, Some((1, 2)));
        assert_eq!(decoded.ip.unwrap().destination.to_string(), "192.0.2.2");
    }

    #[test]
    fn a_cut_segment_keeps_its_true_length() {
        let frame = segment(100);
        let decoded = packet(LinkType::ETHERNET, &frame[..75], frame.len() as u32);
        let Transport::Tcp(tcp) = decoded.transport else { panic!("no TCP: {decoded:?}") };
        assert_eq!((tcp.payload_len, tcp.payload_captured), (100, 5));
        let decoded = packet(LinkType::ETHERNET, &frame[..60], frame.len() as u32);
        let Transport::Tcp(tcp) = decoded.transport else { panic!("no TCP: {decoded:?}") };
        assert_eq!((tcp.payload_len, tcp.payload_captured), (100, 0));
        assert!(tcp.options.cut && tcp.options.timestamps.is_none() && decoded.stop.is_none());
        let decoded = packet(LinkType::ETHERNET, &frame[..57], frame.len() as u32);
        let stop = decoded.stop.unwrap();
        assert_eq!((stop.weird, stop.needed, stop.cut), ("internally_truncated_header", 20, true));
    }

    #[test]
    fn a_datagram_longer_than_its_frame_stops_as_truncated() {
        let frame = segment(100);
        let decoded = packet(LinkType::ETHERNET, &frame[..90], 90);
        let stop = decoded.stop.unwrap();
        assert_eq!((stop.weird, stop.needed, stop.had), ("truncated_IP_len", 152, 72));
        assert!(decoded.ip.is_some() && decoded.transport == Transport::None);
    }
}
