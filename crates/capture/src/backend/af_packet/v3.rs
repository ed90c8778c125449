//! TPACKET_V3: a ring of blocks that the kernel copies packets into, many to a wake-up.
//!
//! A block is lent at a time, in portions. Drops are located between two blocks; where the ring stays full while one is
//! read, each hole has its own place ([`losses`](crate::backend::losses)).

use super::block;
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
use crate::sys::slot_ring::{Layout, SlotRing};
use crate::sys::socket::Socket;

pub(in crate::backend) const BACKEND: Backend = Backend {
    name: "af-packet",
    summary: "a ring of blocks shared with the kernel (TPACKET_V3)",
    path: Path::Tap,
    reopens: true,
    open,
};

/// The least ring: with one block, the kernel could not fill one while another is read.
const LEAST_BLOCKS: usize = 2;

/// Room that the kernel is told a frame needs. It only checks that blocks are a multiple of it.
const FRAME: usize = 2048;

/// Where `block_status` lies in a block.
const STATUS: usize = 8;

#[derive(Debug)]
struct Blocks;

impl Slots for Blocks {
    type Place = block::Place;
    const MOST: usize = 1;

    fn list(
        data: &mut [u8],
        _: impl Iterator<Item = usize>,
        place: Option<block::Place>,
        listing: &mut PacketListBuilder<'_>,
    ) -> Option<block::Place> {
        block::list(data, place.or_else(|| block::Place::first(data))?, listing)
    }
}

fn open(interface: &Interface, options: &Options) -> Result<Box<dyn Receiver>> {
    let block_bytes = options.block_bytes;
    if block_bytes < 4096 || !block_bytes.is_multiple_of(4096) || block_bytes > 1 << 30 {
        return Err(Error::Invalid(format!(
            "a block of {block_bytes} bytes cannot be: it must be a multiple of 4096"
        )));
    }
    let socket = packet_socket::open()?;
    packet_socket::choose_version(&socket, libc::tpacket_versions::TPACKET_V3)?;
    packet_socket::stamp(&socket, interface, options.stamps)?;
    let (ring, memory) = make_ring(&socket, options)?;
    let size = Size {
        unit: RingUnit::Block,
        unit_bytes: block_bytes,
        units: ring.layout().slots(),
        memory,
        longest: block_bytes,
    };
    let socket = PacketSocket::bind(socket, interface, options, true)?;
    let facts = socket.facts(BACKEND.name, interface, size);
    let base = Base::new(facts, interface, options, options.retire);
    // A block is closed once all copies into it are done, so that none is on its way behind it.
    let ring: Mapped<Blocks> = Mapped::new(ring, socket, 0);
    Ok(Box::new(RingReceiver::new(ring, base, interface)?))
}

fn make_ring(socket: &Socket, options: &Options) -> Result<(SlotRing, Negotiation)> {
    let block_bytes = options.block_bytes;
    let ask = |bytes: usize| {
        let blocks = (bytes / block_bytes).max(LEAST_BLOCKS);
        let request = libc::tpacket_req3 {
            tp_block_size: block_bytes as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: (block_bytes / FRAME * blocks) as u32,
            tp_retire_blk_tov: (options.retire.as_millis() as u32).max(1),
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        let layout = Layout {
            status_at: STATUS,
            slot_len: block_bytes,
            per_piece: 1,
            piece_len: block_bytes,
            pieces: blocks,
        };
        let ring = packet_socket::make_ring(socket, &request, layout)?;
        Ok((ring, blocks * block_bytes))
    };
    let got = negotiate(options.ring_bytes, LEAST_BLOCKS * block_bytes, FreeMemory::now(), ask);
    got.trying(format!("make a ring of {} bytes", options.ring_bytes))
}
