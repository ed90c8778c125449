//! Tags that switches and service chains put between Ethernet and what it carries.
//!
//! | EtherType | header behind it | then |
//! |---|---|---|
//! | 0x8926 | VN-Tag: direction, list, interfaces | EtherType |
//! | 0x893f | E-TAG, IEEE 802.1BR | EtherType |
//! | 0x892f | HSR, IEC 62439-3: path, size, sequence number | EtherType |
//! | 0x8909 | Cisco metadata: version, length, options | EtherType |
//! | 0x88e5 | MACsec, IEEE 802.1AE, where it only authenticates | EtherType |
//! | 0x88e7 | service instance, IEEE 802.1ah | Ethernet |
//! | 0x894f | network service header, RFC 8300 | by its next protocol |

use super::link::{Next, bad, cut};
use super::walk::Frame;
use super::{Decoded, Layer};
use crate::wire::ethernet::ethertype;

/// Words of the NSH base header and its service path header, the least that there may be.
const NSH_FIXED_WORDS: usize = 2;

/// Goes on behind the tag that an EtherType announces, or ends where it announces none.
pub(super) fn follow(decoded: &mut Decoded, frame: Frame<'_>, kind: u16, offset: usize) -> Next {
    let Some(layer) = layer(kind) else { return Next::Other };
    decoded.layers.insert(layer);
    let data = frame.from(offset);
    let len = match len(kind, data) {
        Some(len) if data.len() >= len => len,
        len => {
            let needed = len.unwrap_or(MACSEC_FIXED);
            return cut(decoded, frame, "truncated_link_header", layer, (offset, needed));
        }
    };
    match kind {
        ethertype::SERVICE_INSTANCE => Next::Ethernet(offset + len),
        ethertype::NSH => network_service(decoded, frame, offset, len),
        ethertype::MACSEC if is_encrypted(data) => Next::Other,
        _ => match data.get(len - 2..len) {
            Some(&[high, low]) => Next::EtherType(u16::from_be_bytes([high, low]), offset + len),
            _ => Next::Other,
        },
    }
}

const fn layer(kind: u16) -> Option<Layer> {
    Some(match kind {
        ethertype::VN_TAG => Layer::VnTag,
        ethertype::E_TAG => Layer::ETag,
        ethertype::SERVICE_INSTANCE => Layer::Pbb,
        ethertype::HSR => Layer::Hsr,
        ethertype::CISCO_METADATA => Layer::Cmd,
        ethertype::MACSEC => Layer::Macsec,
        ethertype::NSH => Layer::Nsh,
        _ => return None,
    })
}

/// Tag, short length and packet number of MACsec; a channel identifier may follow.
const MACSEC_FIXED: usize = 6;
/// MACsec: a channel identifier, which is a MAC address and a port, follows.
const MACSEC_CHANNEL: u8 = 0x20;

/// Length of the tag that an EtherType announces and `data` begins with, the EtherType of what
/// follows included; `None` where it announces none, or too little of it is there to tell.
pub(crate) fn len(kind: u16, data: &[u8]) -> Option<usize> {
    match kind {
        ethertype::SERVICE_INSTANCE => Some(4),
        ethertype::VN_TAG | ethertype::HSR => Some(6),
        ethertype::E_TAG | ethertype::CISCO_METADATA => Some(8),
        ethertype::MACSEC => {
            let channel = if data.first()? & MACSEC_CHANNEL == 0 { 0 } else { 8 };
            let ethertype = if is_encrypted(data) { 0 } else { 2 };
            Some(MACSEC_FIXED + channel + ethertype)
        }
        ethertype::NSH => {
            let words = usize::from(data.get(1)? & 0x3f);
            Some(4 * words.max(NSH_FIXED_WORDS))
        }
        _ => None,
    }
}

/// Whether a MACsec tag says that its data are encrypted or changed.
fn is_encrypted(data: &[u8]) -> bool {
    data.first().is_some_and(|control| control & 0x0c != 0)
}

/// RFC 8300, section 2.2.
fn network_service(decoded: &mut Decoded, frame: Frame<'_>, offset: usize, len: usize) -> Next {
    let &[first, second, _, next] = frame.from(offset).first_chunk().unwrap_or(&[0; 4]);
    if first >> 6 != 0 || usize::from(second & 0x3f) < NSH_FIXED_WORDS {
        return bad(decoded, frame, "invalid_NSH_header", Layer::Nsh, offset);
    }
    let above = offset + len;
    match next {
        1 | 2 => Next::Ip(above),
        3 => Next::Ethernet(above),
        4 => Next::EtherType(ethertype::NSH, above),
        5 => Next::Mpls(above),
        _ => Next::Other,
    }
}
