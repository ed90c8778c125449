//! What lies in a frame of a TPACKET_V2 ring: `struct tpacket2_hdr`, a `struct sockaddr_ll` and the packet,
//! as <linux/if_packet.h> lays them out.

use netsniff_packet::Timestamp;

use crate::backend::listing::{Description, PacketListBuilder};

/// Length of `struct tpacket2_hdr`, behind which a `struct sockaddr_ll` of 20 bytes lies.
const HEADER: usize = 32;
const ADDRESS: usize = 20;

/// Bytes of a frame before its packet, at most: the two headers and room for the link's one, which the
/// kernel aligns to 16.
pub(super) const HEADROOM: usize = 128;

/// Lists the packet of the frame that begins at `at`.
#[inline]
pub(super) fn list(data: &mut [u8], at: usize, listing: &mut PacketListBuilder<'_>) {
    let header = data.get(at..).and_then(<[u8]>::first_chunk::<HEADER>);
    let is_listed = header
        .and_then(|header| describe(header, at))
        .is_some_and(|description| listing.push(data, &description));
    if !is_listed {
        listing.malformed(1);
    }
}

/// Reads `struct tpacket2_hdr`.
#[inline]
fn describe(header: &[u8; HEADER], at: usize) -> Option<Description> {
    let word = |at: usize| {
        u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let half = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    Some(Description {
        timestamp: Timestamp::from_secs_nanos(word(16).into(), word(20).into()),
        offset: at.checked_add(usize::from(half(12)))?,
        free_from: at.checked_add(HEADER + ADDRESS)?,
        captured_len: word(8),
        wire_len: word(4),
        status: word(0),
        vlan_tci: half(24),
        vlan_tpid: half(26),
    })
}
