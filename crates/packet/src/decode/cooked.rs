//! Headers that a capture, not the wire, puts before the network layer.

use super::link::{Next, bad, cut};
use super::walk::Frame;
use super::{Decoded, Layer};
use crate::wire::ethernet::ethertype;

/// Address families as the systems number them: 2 everywhere for IPv4, and for IPv6 10 on Linux,
/// 24, 28 and 30 on the BSDs and macOS.
const fn is_ip_family(family: u32) -> bool {
    matches!(family, 2 | 10 | 24 | 28 | 30)
}

/// Linux cooked capture, version 1: 16 bytes.
pub(super) fn version_1(decoded: &mut Decoded, frame: Frame<'_>, offset: usize) -> Next {
    const LEN: usize = 16;
    decoded.layers.insert(Layer::Cooked);
    let Some(header) = frame.from(offset).first_chunk::<LEN>() else {
        let weird = "truncated_Linux_SLL_header";
        return cut(decoded, frame, weird, Layer::Cooked, (offset, LEN));
    };
    let hardware = u16::from_be_bytes([header[2], header[3]]);
    let protocol = u16::from_be_bytes([header[14], header[15]]);
    cooked_payload(hardware, protocol, offset + LEN)
}

/// Linux cooked capture, version 2: 20 bytes.
pub(super) fn version_2(decoded: &mut Decoded, frame: Frame<'_>, offset: usize) -> Next {
    const LEN: usize = 20;
    decoded.layers.insert(Layer::Cooked);
    let Some(header) = frame.from(offset).first_chunk::<LEN>() else {
        let weird = "truncated_Linux_SLL2_header";
        return cut(decoded, frame, weird, Layer::Cooked, (offset, LEN));
    };
    let protocol = u16::from_be_bytes([header[0], header[1]]);
    let hardware = u16::from_be_bytes([header[8], header[9]]);
    cooked_payload(hardware, protocol, offset + LEN)
}

/// The hardware type (ARPHRD) decides whether the protocol is an EtherType.
const fn cooked_payload(hardware: u16, protocol: u16, offset: usize) -> Next {
    const LLC: u16 = 0x0004;
    const NETLINK: u16 = 824;
    const RADIOTAP: u16 = 803;
    const FRAD: u16 = 770;
    match (hardware, protocol) {
        (NETLINK | RADIOTAP | FRAD, _) => Next::Other,
        (_, LLC) => Next::Llc(offset, usize::MAX),
        _ => Next::EtherType(protocol, offset),
    }
}

/// BSD null and OpenBSD loop: an address family of 4 bytes, in the order of whichever host wrote it.
pub(super) fn loopback(decoded: &mut Decoded, frame: Frame<'_>, offset: usize) -> Next {
    const LEN: usize = 4;
    decoded.layers.insert(Layer::Loopback);
    let Some(header) = frame.from(offset).first_chunk::<LEN>() else {
        return cut(decoded, frame, "null_analyzer_failed", Layer::Loopback, (offset, LEN));
    };
    let family = u32::from_le_bytes(*header);
    if is_ip_family(family) || is_ip_family(family.swap_bytes()) {
        return Next::Ip(offset + LEN);
    }
    // Some writers put an EtherType into the second half.
    match u16::from_be_bytes([header[2], header[3]]) {
        kind @ (ethertype::IPV4 | ethertype::IPV6) => Next::EtherType(kind, offset + LEN),
        _ => Next::Other,
    }
}

/// Linux netfilter log: a header of 4 bytes, then fields of length, type and value, aligned to 4
/// bytes and in the order of whichever host wrote them. Field 9 is the packet.
pub(super) fn nflog(decoded: &mut Decoded, frame: Frame<'_>, offset: usize) -> Next {
    const LEN: usize = 4;
    const PAYLOAD: u16 = 9;
    decoded.layers.insert(Layer::Nflog);
    let Some(&[family, version, ..]) = frame.from(offset).first_chunk::<LEN>() else {
        return cut(decoded, frame, "truncated_nflog_header", Layer::Nflog, (offset, LEN));
    };
    if version != 0 {
        return bad(decoded, frame, "unknown_nflog_version", Layer::Nflog, offset);
    }
    let mut at = offset + LEN;
    while let Some(&[a, b, c, d]) = frame.from(at).first_chunk() {
        // No field has a type above 255, so that a byte there tells the order.
        let (len, kind) = if d == 0 {
            (u16::from_le_bytes([a, b]), u16::from(c))
        } else {
            (u16::from_be_bytes([a, b]), u16::from(d))
        };
        if kind == PAYLOAD {
            let is_ip = is_ip_family(u32::from(family));
            return if is_ip { Next::Ip(at + LEN) } else { Next::Other };
        }
        if len < 4 {
            return bad(decoded, frame, "nflog_bad_tlv_len", Layer::Nflog, at);
        }
        at += usize::from(len).next_multiple_of(4);
    }
    cut(decoded, frame, "nflog_no_pcap_payload", Layer::Nflog, (at, LEN))
}
