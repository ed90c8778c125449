//! Sending through an XDP socket in copy mode, which needs no XDP program.
//!
//! The kernel makes one linear buffer for each descriptor and is called once for many of them, which makes
//! it the fastest way on interfaces without zero-copy.

use super::{SendMethod, Transmitter};
use crate::error::{CallContext as _, Error, Result};
use crate::interface::Interface;
use crate::sys::message::{Kicked, kick};
use crate::sys::socket::Socket;
use crate::sys::xdp::{Chunk, SendRings, Umem};
use crate::xdp_socket;

pub(super) const WAY: SendMethod = SendMethod {
    name: "af-xdp",
    summary: "an XDP socket in copy mode",
    open: |interface, queue| Ok(Box::new(AfXdp::open(interface, queue)?)),
};

/// Bytes of a chunk, which a frame must fit in: as many as a page has, and no kernel takes larger ones.
const CHUNK: usize = 4096;

/// Frames in flight at most, a power of two.
const CHUNKS: u32 = 4096;

/// Frames that are handed over before the kernel is called.
const AHEAD: u32 = 1024;

#[derive(Debug)]
struct AfXdp {
    socket: Socket,
    longest: usize,
    umem: Umem,
    rings: SendRings,
    /// Chunks that are ours, as a queue, so that buffers come round in a fixed cycle.
    free: std::collections::VecDeque<Chunk>,
    /// Frames that the kernel had taken when it was last asked.
    handed: u64,
    taken: u64,
    refusals: u64,
    lost: u64,
}

impl AfXdp {
    fn open(interface: &Interface, queue: u32) -> Result<Self> {
        let socket = xdp_socket::open()?;
        let registered = Umem::register(&socket, CHUNKS, CHUNK as u32);
        let (umem, mut chunks) = registered.map_err(|source| match source.raw_os_error() {
            Some(libc::ENOBUFS) => {
                Error::Invalid(xdp_socket::lock_refused(CHUNKS as usize * CHUNK))
            }
            _ => {
                Error::Call { what: "register memory for an XDP socket".to_owned(), reason: source }
            }
        })?;
        chunks.reverse();
        let rings = SendRings::make(&socket, CHUNKS).trying("make the rings of an XDP socket")?;
        let flags = libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP;
        xdp_socket::bind(&socket, interface, queue, flags)?;
        Ok(Self {
            socket,
            longest: (interface.longest_frame() as usize).min(CHUNK),
            umem,
            rings,
            free: chunks.into(),
            handed: 0,
            taken: 0,
            refusals: 0,
            lost: 0,
        })
    }

    fn collect(&mut self) {
        while let Some(sent) = self.rings.completion.pop(&self.umem) {
            self.free.push_back(sent.chunk);
        }
        self.rings.completion.release();
    }
}

impl Transmitter for AfXdp {
    fn way(&self) -> &'static str {
        WAY.name
    }

    fn longest(&self) -> usize {
        self.longest
    }

    fn room(&mut self) -> Option<(usize, &mut [u8])> {
        if self.free.is_empty() {
            self.collect();
        }
        let chunk = self.free.front()?;
        Some((chunk.number() as usize, self.umem.bytes(chunk)))
    }

    fn fill(&mut self, len: usize) {
        let Some(chunk) = self.free.pop_front() else { return };
        // There are as many entries as chunks, so that none is refused.
        match self.rings.transmit.push(&self.umem, chunk, len.min(self.longest) as u32) {
            Ok(()) => self.handed += 1,
            Err(chunk) => self.free.push_front(chunk),
        }
        if self.handed.is_multiple_of(u64::from(AHEAD)) {
            self.rings.transmit.publish();
        }
    }

    fn flush(&mut self) -> Result<usize> {
        self.rings.transmit.publish();
        let mut kicked = Kicked::Took;
        if self.rings.transmit.waiting() > 0
            && (self.rings.transmit.needs_wakeup() || self.free.is_empty())
        {
            kicked = kick(&self.socket).trying("send through the XDP socket")?;
        }
        self.collect();
        let taken = self.handed - u64::from(self.rings.transmit.waiting());
        let new = taken - self.taken;
        self.taken = taken;
        // The kernel also asks to be called again after each 32 frames.
        self.refusals += u64::from(kicked == Kicked::Full && new == 0);
        self.lost += u64::from(kicked == Kicked::Refused);
        Ok(new as usize)
    }

    fn pending(&mut self) -> usize {
        self.rings.transmit.waiting() as usize
    }

    fn refusals(&self) -> u64 {
        self.refusals
    }

    fn lost(&self) -> u64 {
        self.lost
    }

    fn buffers(&self) -> usize {
        CHUNKS as usize
    }
}
