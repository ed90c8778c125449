//! Decoding of any bytes as any link type, and what must hold of the result.
//!
//! Needs nothing of libFuzzer: an ordinary test replays findings with it.

use std::sync::{Arc, LazyLock};

use netsniff_packet::anonymize::frame::{PacketAnonymizer, PayloadMode};
use netsniff_packet::anonymize::{Keep, Key, Method};
use netsniff_packet::decode::{self, Decoded, Ip, Stop, Transport, TunnelPorts, tunnel};
use netsniff_packet::{Anonymizer, LinkType};

/// Tunnels within tunnels that are followed here; more than any analysis does.
const DEPTH: usize = 8;

/// Decodes a packet from an input: a byte for the link type, one for how many bytes the capture cut
/// off, and the packet.
///
/// # Panics
///
/// Where the result contradicts the packet or itself.
pub fn check(input: &[u8]) {
    let [link_type, cut, data @ ..] = input else { return };
    let link_type = match *link_type {
        255 => LinkType::LINUX_SLL2,
        other => LinkType(other.into()),
    };
    let wire_len = data.len() as u32 + u32::from(*cut);
    let decoded = decode::packet(link_type, data, wire_len);
    let mut used = decode::packet(LinkType::RAW, USED, USED.len() as u32);
    assert!(used.ip.is_some() && used.stop.is_none());
    decode::packet_into(link_type, data, wire_len, &mut used);
    assert_eq!(used, decoded, "what a value held before shows");
    walk(&decoded, data, wire_len as usize, DEPTH);
    for payload in [PayloadMode::Keep, PayloadMode::Cut, PayloadMode::Hash] {
        anonymize(link_type, data, wire_len, payload);
    }
}

/// Anonymises the packet: no byte is written beyond what is left, and headers stay where they are.
fn anonymize(link_type: LinkType, data: &[u8], wire_len: u32, payload: PayloadMode) {
    static ANONYMIZER: LazyLock<Arc<Anonymizer>> = LazyLock::new(|| {
        let key = Key::new([7; Key::LEN]);
        Arc::new(Anonymizer::new(Method::CryptoPan, &key, &Keep::default()))
    });
    let mut changed = data.to_vec();
    let mut anonymizer = PacketAnonymizer::new(Arc::clone(&ANONYMIZER), payload);
    let left = anonymizer.packet(link_type, &mut changed, wire_len);
    assert!(left.len <= data.len() && left.cut.is_some() == (left.len < data.len()), "{left:?}");
    let (before, after) = (
        decode::packet(link_type, data, wire_len),
        decode::packet(link_type, &changed[..left.len], wire_len),
    );
    if let (Some(ip), None) = (before.ip, left.cut) {
        let mapped = ANONYMIZER.address(ip.source);
        assert_eq!(after.ip.map(|ip| ip.source), Some(mapped));
        assert_eq!(after.layers, before.layers, "{link_type:?} {data:02x?} became {changed:02x?}");
    }
}

/// An IPv4 packet with UDP.
const USED: &[u8] =
    &[0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0, 7, 0, 7, 0, 8, 0, 0];

/// Checks what was decoded, and goes on inside.
fn walk(decoded: &Decoded, data: &[u8], wire_len: usize, depth: usize) {
    consistent(decoded, data, wire_len);
    let found = tunnel::find(decoded, data, TunnelPorts::KNOWN);
    if let Transport::Udp(udp) = &decoded.transport {
        assert!(
            found.is_none() || tunnel::may_be_in_udp(udp, data, TunnelPorts::KNOWN),
            "find without may_be"
        );
    }
    match found {
        Some(Ok(found)) => {
            let (offset, end) = (found.offset as usize, found.end as usize);
            assert!(offset <= data.len() && offset <= end && end <= wire_len, "{found:?}");
            let inner = found.decode(data);
            if let Some(ip) = &inner.ip {
                assert!(ip.offset >= found.offset, "inside begins before the tunnel");
            }
            // Every step inside takes bytes away, but only the caller bounds the steps.
            if depth > 0 {
                walk(&inner, &data[..data.len().min(end)], end, depth - 1);
            }
        }
        Some(Err(stop)) => check_stop(&stop, data, wire_len),
        None => {}
    }
    if let Some(ip) = &decoded.ip
        && decoded.stop.is_none()
        && ip.fragment.is_some()
        && depth > 0
    {
        let payload = slice(data, ip.payload_offset, ip.payload_captured);
        let whole = Ip { fragment: None, ..*ip };
        let inner = decode::reassembled(&whole, payload);
        // The header of what was put together lies before the bytes.
        transport_fits(&inner.transport, payload);
        let (transport, _, stop) = decode::transport(ip.protocol, payload, ip.payload_len);
        transport_fits(&transport, payload);
        if let Some(stop) = stop {
            check_stop(&stop, payload, payload.len().max(ip.payload_len as usize));
        }
    }
}

fn consistent(decoded: &Decoded, data: &[u8], wire_len: usize) {
    for id in decoded.vlan.iter().chain(&decoded.inner_vlan) {
        assert!(*id < 4096, "VLAN {id}");
    }
    assert!(decoded.vlan.is_some() || decoded.inner_vlan.is_none());
    if let Some(stop) = &decoded.stop {
        check_stop(stop, data, wire_len);
    }
    let Some(ip) = &decoded.ip else {
        assert_eq!(decoded.transport, Transport::None, "a transport header above nothing");
        return;
    };
    assert!(ip.payload_captured <= ip.payload_len, "{ip:?}");
    assert!(ip.payload_len <= ip.total_len, "{ip:?}");
    assert!(ip.offset < ip.payload_offset, "{ip:?}");
    slice(data, ip.payload_offset, ip.payload_captured);
    if let Some(fragment) = ip.fragment {
        assert!(fragment.offset > 0 || fragment.more, "an atomic fragment");
        assert_eq!(decoded.transport, Transport::None, "the header of a fragment");
    }
    if let Some((_, len, _)) = extent(&decoded.transport) {
        assert!(len <= ip.payload_len, "more payload than IP has");
    }
    transport_fits(&decoded.transport, data);
}

/// Payload offset, length, and bytes captured.
const fn extent(transport: &Transport) -> Option<(u32, u32, u32)> {
    Some(match transport {
        Transport::Tcp(it) => (it.payload_offset, it.payload_len, it.payload_captured),
        Transport::Udp(it) => (it.payload_offset, it.payload_len, it.payload_captured),
        Transport::Icmp(it) => (it.payload_offset, it.payload_len, it.payload_captured),
        Transport::Sctp(it) => (it.payload_offset, it.payload_len, it.payload_captured),
        Transport::Other | Transport::None => return None,
    })
}

fn transport_fits(transport: &Transport, data: &[u8]) {
    if let Some((offset, len, captured)) = extent(transport) {
        assert!(captured <= len, "{transport:?}");
        slice(data, offset, captured);
    }
    if let Transport::Tcp(tcp) = transport {
        assert!(tcp.flags.0 < 0x200 && tcp.options.sack_count <= 4, "{tcp:?}");
    }
}

fn check_stop(stop: &Stop, data: &[u8], wire_len: usize) {
    assert!(!stop.weird.is_empty());
    // A header may begin beyond what there is; a length is held against the wire.
    let end = u64::from(stop.offset) + u64::from(stop.had);
    assert!(stop.had == 0 || end <= wire_len.max(data.len()) as u64, "{stop:?} of {wire_len}");
    if stop.needed > 0 {
        assert!(stop.had < stop.needed, "{stop:?}");
    }
    assert!(!stop.cut || wire_len > data.len(), "nothing was cut: {stop:?}");
}

fn slice(data: &[u8], offset: u32, len: u32) -> &[u8] {
    let (offset, len) = (offset as usize, len as usize);
    let all = data.len();
    if len == 0 {
        // What the capture cut off may begin behind the last byte.
        return &[];
    }
    data.get(offset..)
        .and_then(|rest| rest.get(..len))
        .unwrap_or_else(|| panic!("{len} bytes at {offset} of {all}"))
}
