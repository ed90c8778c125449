//! The slots of a packet ring that sends (`PACKET_TX_RING` of version 2): memory that changes hands slot by slot.
//!
//! A slot is a `tpacket2_hdr`, whose status tells whose it is, and the frame behind it.

use std::io;
use std::sync::atomic::Ordering;

use super::mapping::Mapping;
use super::slot_ring::Layout;
use super::socket::Socket;

/// Where the length of the frame lies in a slot (`tp_len`).
const LEN_AT: usize = 4;

/// Where the frame lies in a slot: behind the header, aligned.
pub(crate) const FRAME_AT: usize = 32;

/// A mapped ring, and where its writer is. Slots are numbered from the start, through all rounds.
#[derive(Debug)]
pub(crate) struct SendRing {
    mapping: Mapping,
    layout: Layout,
    /// The slot that is filled next: all before it were handed over.
    next: u64,
    /// The first slot that the kernel is not known to have taken.
    taken: u64,
    /// The first slot that the kernel is not known to have given back.
    oldest: u64,
}

impl SendRing {
    /// Maps the ring that the socket was given before.
    pub(crate) fn map(socket: &Socket, layout: Layout) -> io::Result<Self> {
        let fits = layout.slot_len > FRAME_AT && layout.status_at == 0;
        let len = layout.memory().filter(|_| fits);
        let len = len.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mapping = Mapping::shared(socket.descriptor(), len, 0)?;
        Ok(Self { mapping, layout, next: 0, taken: 0, oldest: 0 })
    }

    pub(crate) const fn slots(&self) -> usize {
        self.layout.slots()
    }

    /// Bytes that a frame may have.
    pub(crate) const fn longest(&self) -> usize {
        self.layout.slot_len - FRAME_AT
    }

    /// Looks at how far the kernel is, which takes slots in order and gives them back in any.
    ///
    /// # Errors
    ///
    /// Where the kernel took a slot for malformed, which ends the ring.
    pub(crate) fn look(&mut self) -> io::Result<()> {
        while self.taken < self.next {
            let status = self.status(self.taken);
            if status & libc::TP_STATUS_WRONG_FORMAT != 0 {
                return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
            }
            if status & libc::TP_STATUS_SEND_REQUEST != 0 {
                break;
            }
            self.taken += 1;
        }
        while self.oldest < self.taken && self.status(self.oldest) & libc::TP_STATUS_SENDING == 0 {
            self.oldest += 1;
        }
        Ok(())
    }

    /// Slots that were handed over and that the kernel was not found to have taken.
    pub(crate) const fn untaken(&self) -> usize {
        (self.next - self.taken) as usize
    }

    /// Room for the next frame, with the place of its slot; `None` while the kernel has all slots.
    pub(crate) fn room(&mut self) -> Option<(usize, &mut [u8])> {
        if self.is_full() {
            return None;
        }
        let place = self.place(self.next);
        let begin = self.layout.offset(place) + FRAME_AT;
        let len = self.longest();
        // SAFETY: the slot is not in flight: it was never handed over, or `look` has read with acquire that the
        // kernel gave it back. It is handed over by `hand_over` alone, which needs `&mut self` and thus the end of
        // this borrow.
        Some((place, unsafe { self.mapping.bytes_mut(begin, len) }))
    }

    /// Hands the next slot to the kernel, with a frame of so many bytes, where there is room.
    pub(crate) fn hand_over(&mut self, len: usize) {
        if self.is_full() {
            return;
        }
        let len = len.min(self.longest()) as u32;
        self.word(self.next, LEN_AT).store(len, Ordering::Relaxed);
        let status = self.word(self.next, self.layout.status_at);
        status.store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.next += 1;
    }

    fn status(&self, number: u64) -> u32 {
        self.word(number, self.layout.status_at).load(Ordering::Acquire)
    }

    fn word(&self, number: u64, at: usize) -> &std::sync::atomic::AtomicU32 {
        self.mapping.word(self.layout.offset(self.place(number)) + at)
    }

    const fn is_full(&self) -> bool {
        self.next - self.oldest == self.slots() as u64
    }

    const fn place(&self, number: u64) -> usize {
        (number % self.layout.slots() as u64) as usize
    }
}
