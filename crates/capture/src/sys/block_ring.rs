//! The blocks of a TPACKET_V3 ring: shared memory that changes hands block by block.
//!
//! Layout of `struct tpacket_block_desc` in <linux/if_packet.h>.

use std::io;
use std::sync::atomic::Ordering;

use super::mapping::Mapping;
use super::socket::Socket;

/// Where `block_status` lies in a block.
const STATUS: usize = 8;

/// A mapped ring of blocks.
#[derive(Debug)]
pub(crate) struct BlockRing {
    mapping: Mapping,
    block_len: usize,
    blocks: usize,
}

impl BlockRing {
    /// Maps the ring that the socket was given before (`PACKET_RX_RING`).
    pub(crate) fn map(socket: &Socket, block_len: usize, blocks: usize) -> io::Result<Self> {
        let len = block_len.checked_mul(blocks).filter(|len| *len > 0 && block_len >= 4096);
        let len = len.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(Self { mapping: Mapping::shared(socket.descriptor(), len, 0)?, block_len, blocks })
    }

    /// Blocks in the ring.
    pub(crate) const fn blocks(&self) -> usize {
        self.blocks
    }

    /// Whether the kernel has handed this block over.
    pub(crate) fn is_ready(&self, block: usize) -> bool {
        self.status(block) & libc::TP_STATUS_USER != 0
    }

    /// The status of a block (`TP_STATUS_…`).
    pub(crate) fn status(&self, block: usize) -> u32 {
        self.mapping.word(self.offset(block) + STATUS).load(Ordering::Acquire)
    }

    /// The bytes of a block that the kernel has handed over; `None` while it is the kernel's.
    pub(crate) fn block(&mut self, block: usize) -> Option<&mut [u8]> {
        if !self.is_ready(block) {
            return None;
        }
        let offset = self.offset(block);
        // SAFETY: the status, read with acquire, says that the block is ours: the kernel writes to it again
        // only after `give_back`, which needs `&mut self` and thus the end of this borrow.
        Some(unsafe { self.mapping.bytes_mut(offset, self.block_len) })
    }

    /// Hands a block to the kernel, with all that was read from it or written to it.
    pub(crate) fn give_back(&mut self, block: usize) {
        let status = self.mapping.word(self.offset(block) + STATUS);
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }

    fn offset(&self, block: usize) -> usize {
        (block % self.blocks) * self.block_len
    }
}
