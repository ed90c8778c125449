//! The slots of a packet ring, blocks or frames: shared memory that changes hands slot by slot.
//!
//! Rings are made as <linux/if_packet.h> and packet_mmap.rst in the kernel's documentation say: pieces of
//! memory (`tp_block_size`), each with as many slots as fit in.

use std::io;
use std::sync::atomic::Ordering;

use super::mapping::Mapping;
use super::socket::Socket;

/// How the slots lie in the memory of a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Where the status lies in a slot.
    pub(crate) status_at: usize,
    /// Bytes of a slot, a multiple of 16.
    pub(crate) slot_len: usize,
    /// Slots in each piece of memory.
    pub(crate) per_piece: usize,
    /// Bytes of a piece, which may be more than those of its slots.
    pub(crate) piece_len: usize,
    pub(crate) pieces: usize,
}

impl Layout {
    pub(crate) const fn slots(&self) -> usize {
        self.per_piece.saturating_mul(self.pieces)
    }

    /// Where a slot begins.
    pub(crate) const fn offset(&self, slot: usize) -> usize {
        slot / self.per_piece * self.piece_len + slot % self.per_piece * self.slot_len
    }

    /// Bytes in all; `None` where the numbers do not fit together.
    pub(super) fn memory(&self) -> Option<usize> {
        let fits = self.slot_len.checked_mul(self.per_piece)? <= self.piece_len
            && self.status_at.checked_add(4)? <= self.slot_len
            && self.slot_len.is_multiple_of(16)
            && self.status_at.is_multiple_of(4)
            && self.piece_len.is_multiple_of(4096);
        let len = self.piece_len.checked_mul(self.pieces)?;
        (fits && self.slots() > 0).then_some(len)
    }
}

/// A mapped ring, and where its reader is. Slots are numbered from the start, through all rounds.
#[derive(Debug)]
pub(crate) struct SlotRing {
    mapping: Mapping,
    layout: Layout,
    /// The slot that comes next: all before it were given back.
    next: u64,
    /// Slots from there on that are known to be ours.
    ready: usize,
    telling: Option<u64>,
}

/// Slots that lie one behind the other in the memory.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    /// The place of the first of them in the ring.
    pub(crate) slot: usize,
    pub(crate) slots: usize,
    pub(crate) data: &'a mut [u8],
}

impl SlotRing {
    /// Maps the ring that the socket was given before (`PACKET_RX_RING`).
    pub(crate) fn map(socket: &Socket, layout: Layout) -> io::Result<Self> {
        let len = layout.memory().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mapping = Mapping::shared(socket.descriptor(), len, 0)?;
        Ok(Self { mapping, layout, next: 0, ready: 0, telling: None })
    }

    /// How the slots lie.
    pub(crate) const fn layout(&self) -> Layout {
        self.layout
    }

    /// The number of the slot that comes next.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// The first slot that is not known to be ours.
    pub(crate) const fn first_open(&self) -> u64 {
        self.next + self.ready as u64
    }

    /// Whether every slot is known to be ours.
    pub(crate) const fn is_full(&self) -> bool {
        self.ready == self.layout.slots()
    }

    /// Counts the slots that the kernel has handed over in a row.
    pub(crate) fn look(&mut self) -> usize {
        while !self.is_full() {
            let number = self.first_open();
            let status = self.status(number);
            if status & libc::TP_STATUS_USER == 0 {
                break;
            }
            if status & libc::TP_STATUS_LOSING != 0 && self.telling.is_none() {
                self.telling = Some(number);
            }
            self.ready += 1;
        }
        self.ready
    }

    /// Whether the kernel has handed a slot over, which need not follow the others.
    pub(crate) fn is_ready(&self, number: u64) -> bool {
        self.status(number) & libc::TP_STATUS_USER != 0
    }

    /// The first slot that was found to tell of drops since [`SlotRing::take_reported_drops`].
    pub(crate) const fn reported_drops(&self) -> Option<u64> {
        self.telling
    }

    /// Looks for such a slot among those alone that come from now on, and returns the one that there was.
    pub(crate) const fn take_reported_drops(&mut self) -> Option<u64> {
        self.telling.take()
    }

    /// The next slots, as many as are known to be ours and lie in a row, at most `most`; `None` where
    /// there is none.
    pub(crate) fn run(&mut self, most: usize) -> Option<Run<'_>> {
        let slot = self.place(self.next);
        let slots = most.min(self.ready).min(self.layout.slots() - slot);
        let begin = self.layout.offset(slot);
        let end = self.layout.offset(slot + slots.checked_sub(1)?) + self.layout.slot_len;
        // SAFETY: `look` has read with acquire that each of these slots is ours, and whatever lies between
        // two slots is nobody's. The kernel writes to them again only after `give_back`, which needs
        // `&mut self` and thus the end of this borrow.
        let data = unsafe { self.mapping.bytes_mut(begin, end - begin) };
        Some(Run { slot, slots, data })
    }

    /// Hands the next slots to the kernel, with all that was read from them or written to them.
    pub(crate) fn give_back(&mut self, slots: usize) {
        for _ in 0..slots.min(self.ready) {
            self.status_word(self.next).store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next += 1;
            self.ready -= 1;
        }
    }

    fn status(&self, number: u64) -> u32 {
        self.status_word(number).load(Ordering::Acquire)
    }

    fn status_word(&self, number: u64) -> &std::sync::atomic::AtomicU32 {
        self.mapping.word(self.layout.offset(self.place(number)) + self.layout.status_at)
    }

    const fn place(&self, number: u64) -> usize {
        (number % self.layout.slots() as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_do_not_cross_the_end_of_a_piece() {
        let frames =
            Layout { status_at: 0, slot_len: 1664, per_piece: 4, piece_len: 8192, pieces: 3 };
        assert_eq!((frames.slots(), frames.memory()), (12, Some(24_576)));
        assert_eq!([frames.offset(3), frames.offset(4), frames.offset(11)], [4992, 8192, 21_376]);
        assert_eq!(Layout { per_piece: 5, ..frames }.memory(), None, "five do not fit in");
        assert_eq!(Layout { per_piece: 0, ..frames }.memory(), None);
        assert_eq!(Layout { slot_len: 1660, ..frames }.memory(), None, "not aligned");
        assert_eq!(Layout { pieces: usize::MAX, ..frames }.memory(), None);
    }
}
