//! TPACKET_V2: a ring of frames, each handed over as soon as its packet is in it.
//!
//! That is quicker than blocks for a single packet, and takes more memory for each: a frame has room for the
//! longest packet. A fast reader who lets the kernel wake it is woken for nearly every packet.
//!
//! Frames that lie in a row are lent together. `tpacket_rcv` of the kernel drops a packet when the frame at
//! the head of the ring is still ours, and counts that; a frame that it fills next is marked. Here, as for
//! blocks, the counter is read before the first frame is given back and after the last one, where the ring is
//! full: drops then lie between two frames, or, where they happened while frames were given back, somewhere
//! in as many frames as were lent ([`losses`](crate::backend::losses)). What a marked frame tells of without the ring
//! having been seen full was counted late, on another processor, and has a place as many frames wide as there
//! are processors.

use core::convert::Infallible;

use super::frame;
use super::mapped::{Mapped, Slots};
use super::packet_socket;
use super::packet_socket::{PacketSocket, Size};
use crate::backend::listing::PacketListBuilder;
use crate::backend::receiver::{Base, RingReceiver};
use crate::backend::{Backend, Path, Receiver, RingUnit};
use crate::error::{CallContext as _, Error, Result};
use crate::interface::Interface;
use crate::negotiate::{FreeMemory, Negotiation, negotiate};
use crate::options::Options;
use crate::sys::scheduling::processors;
use crate::sys::slot_ring::{Layout, SlotRing};
use crate::sys::socket::Socket;

pub(in crate::backend) const BACKEND: Backend = Backend {
    name: "af-packet-v2",
    summary: "a ring of frames shared with the kernel (TPACKET_V2): soon there, much memory",
    path: Path::Tap,
    reopens: true,
    open,
};

/// Pieces of memory are multiples of a page, frames of 16 bytes (`TPACKET_ALIGNMENT`).
const PAGE: usize = 4096;
const ALIGNMENT: usize = 16;

/// Frames, each with one packet.
#[derive(Debug)]
struct Frames;

impl Slots for Frames {
    type Place = Infallible;
    // Given back together, soon enough for the kernel to go on filling a small ring.
    const MOST: usize = 256;

    fn list(
        data: &mut [u8],
        starts: impl Iterator<Item = usize>,
        _: Option<Infallible>,
        listing: &mut PacketListBuilder<'_>,
    ) -> Option<Infallible> {
        for start in starts {
            frame::list(data, start, listing);
        }
        None
    }
}

fn open(interface: &Interface, options: &Options) -> Result<Box<dyn Receiver>> {
    let piece = options.block_bytes;
    if !piece.is_multiple_of(PAGE) || piece == 0 || piece > 1 << 30 {
        return Err(Error::Invalid(format!(
            "pieces of {piece} bytes cannot be: they must be a multiple of 4096"
        )));
    }
    let socket = packet_socket::open()?;
    packet_socket::choose_version(&socket, libc::tpacket_versions::TPACKET_V2)?;
    packet_socket::stamp(&socket, interface, options.stamps)?;
    let longest = packet_socket::longest_packet(interface).min(options.snaplen);
    let (ring, memory) = make_ring(&socket, layout(longest, piece), options.ring_bytes)?;
    let layout = ring.layout();
    let size = Size {
        unit: RingUnit::Frame,
        unit_bytes: layout.slot_len,
        units: layout.slots(),
        memory,
        longest: layout.slot_len - frame::HEADROOM,
    };
    let socket = PacketSocket::bind(socket, interface, options, false)?;
    let facts = socket.facts(BACKEND.name, interface, size);
    let base = Base::new(facts, interface, options, core::time::Duration::ZERO);
    let ring: Mapped<Frames> = Mapped::new(ring, socket, processors());
    Ok(Box::new(RingReceiver::new(ring, base, interface)?))
}

/// Frames with room for packets of `longest` bytes, in one piece of memory of at least `piece` bytes.
fn layout(longest: u32, piece: usize) -> Layout {
    let slot_len = (frame::HEADROOM + longest as usize).next_multiple_of(ALIGNMENT);
    let piece_len = piece.max(slot_len.next_multiple_of(PAGE));
    Layout { status_at: 0, slot_len, per_piece: piece_len / slot_len, piece_len, pieces: 1 }
}

fn make_ring(
    socket: &Socket,
    layout: Layout,
    ring_bytes: usize,
) -> Result<(SlotRing, Negotiation)> {
    let ask = |bytes: usize| {
        let pieces = (bytes / layout.piece_len).max(1);
        let layout = Layout { pieces, ..layout };
        let request = libc::tpacket_req {
            tp_block_size: layout.piece_len as u32,
            tp_block_nr: pieces as u32,
            tp_frame_size: layout.slot_len as u32,
            tp_frame_nr: layout.slots() as u32,
        };
        let ring = packet_socket::make_ring(socket, &request, layout)?;
        Ok((ring, pieces * layout.piece_len))
    };
    let got = negotiate(ring_bytes, layout.piece_len, FreeMemory::now(), ask);
    got.trying(format!("make a ring of {ring_bytes} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_room_for_the_longest_packet_and_pieces_for_a_frame() {
        let usual = layout(1522, 1 << 20);
        assert_eq!((usual.slot_len, usual.per_piece, usual.piece_len), (1664, 630, 1 << 20));
        let merged = layout((1 << 16) + 22, 1 << 14);
        assert_eq!((merged.slot_len, merged.per_piece, merged.piece_len), (65_696, 1, 69_632));
        assert_eq!(layout(0, 4096).per_piece, 32);
    }
}
