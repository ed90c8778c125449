//! What lies in a block of a TPACKET_V3 ring: `struct tpacket_block_desc`, `struct tpacket3_hdr` and the
//! packets, as <linux/if_packet.h> lays them out.

use netsniff_packet::Timestamp;

use crate::backend::listing::{Description, PacketListBuilder};
use crate::sys::prefetch::prefetch;

/// Length of `struct tpacket3_hdr`, behind which a `struct sockaddr_ll` of 20 bytes lies.
const HEADER: usize = 48;
const ADDRESS: usize = 20;

/// Headers that are fetched ahead.
const AHEAD: usize = 8;

/// Where `ts_first_pkt` lies, which in spite of its name is the time at which the kernel opened the block, by
/// the system's clock.
const OPENED: usize = 32;

/// Bytes of a block whose packets are listed together: packets and list fit a processor's second-level cache,
/// so that whoever reads the packets finds them there.
const PORTION: usize = 128 << 10;

/// Where in a block to go on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    at: usize,
    packets: u32,
}

impl Place {
    /// The first packet of a block.
    pub(super) fn first(block: &[u8]) -> Option<Self> {
        Some(Self { packets: word(block, 12)?, at: word(block, 16)? as usize })
    }
}

/// Lists packets of a block from `place` on, and returns where to go on; `None` where that was all.
pub(super) fn list(
    block: &mut [u8],
    place: Place,
    listing: &mut PacketListBuilder<'_>,
) -> Option<Place> {
    let Place { mut at, mut packets } = place;
    if let (Some(seconds), Some(nanos)) = (word(block, OPENED), word(block, OPENED + 4)) {
        listing.began(Timestamp::from_secs_nanos(seconds.into(), nanos.into()));
    }
    let portion_end = at.saturating_add(PORTION);
    while packets > 0 {
        if at >= portion_end {
            return Some(Place { at, packets });
        }
        let header = block.get(at..).and_then(<[u8]>::first_chunk::<HEADER>);
        let described = header.and_then(|header| describe(header, at));
        let Some((description, next)) = described else {
            listing.malformed(packets.into());
            return None;
        };
        // Those that follow are as far away, if they are as long.
        prefetch(block, at.saturating_add(AHEAD * next as usize));
        if !listing.push(block, &description) {
            listing.malformed(packets.into());
            return None;
        }
        at = at.saturating_add(next as usize);
        packets -= 1;
    }
    None
}

/// Reads `struct tpacket3_hdr`: what it says of its packet, and how far away the next one is.
#[inline(always)]
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
