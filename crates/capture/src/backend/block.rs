//! What lies in a block of a TPACKET_V3 ring: `struct tpacket_block_desc`, `struct tpacket3_hdr` and the
//! packets, as <linux/if_packet.h> lays them out.

use netsniff_packet::Timestamp;

use super::listing::{Description, Listing};

/// Length of `struct tpacket3_hdr`, behind which a `struct sockaddr_ll` of 20 bytes lies.
const HEADER: usize = 48;
const ADDRESS: usize = 20;

/// Where `ts_first_pkt` lies, which in spite of its name is the time at which the kernel opened the block, by
/// the system's clock.
const OPENED: usize = 32;

/// Lists the packets of a block.
pub(super) fn list(block: &mut [u8], listing: &mut Listing<'_>) {
    let (Some(packets), Some(first)) = (word(block, 12), word(block, 16)) else { return };
    if let (Some(seconds), Some(nanos)) = (word(block, OPENED), word(block, OPENED + 4)) {
        listing.began(Timestamp::from_secs_nanos(seconds.into(), nanos.into()));
    }
    // Each of them has a header in the block, whatever the count says.
    listing.expect((packets as usize).min(block.len() / HEADER));
    let mut at = first as usize;
    for number in 0..packets {
        let header = block.get(at..).and_then(<[u8]>::first_chunk::<HEADER>);
        let described = header.and_then(|header| describe(header, at));
        let Some((description, next)) = described else {
            return listing.malformed(u64::from(packets - number));
        };
        if !listing.push(block, &description) {
            return listing.malformed(u64::from(packets - number));
        }
        at = at.saturating_add(next as usize);
    }
}

/// Reads `struct tpacket3_hdr`: what it says of its packet, and how far away the next one is.
#[inline]
fn describe(header: &[u8; HEADER], at: usize) -> Option<(Description, u32)> {
    let word = |at: usize| {
        u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let half = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    let description = Description {
        timestamp: Timestamp::from_secs_nanos(word(4).into(), word(8).into()),
        offset: at.checked_add(usize::from(half(24)))?,
        free_from: at.checked_add(HEADER + ADDRESS)?,
        captured_len: word(12),
        wire_len: word(16),
        status: word(20),
        vlan_tci: word(32) as u16,
        vlan_tpid: half(36),
    };
    Some((description, word(0)))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}
