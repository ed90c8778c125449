//! Sending through an XDP socket in copy mode, which needs no XDP program.
//!
//! The kernel makes one linear buffer for each descriptor and is called once for many of them, which makes
//! it the fastest way on interfaces without zero-copy.

use std::thread::sleep;
use std::time::Duration;

use super::{LARGEST_FRAME, Transmitter, Way};
use crate::error::{Context as _, Error, Result, Right, permitted};
use crate::interface::Interface;
use crate::sys::socket::Socket;
use crate::sys::xdp::{Chunk, SendRings, Umem, kick};

pub(super) const WAY: Way = Way {
    name: "af-xdp",
    summary: "an XDP socket in copy mode",
    open: |interface, queue| Ok(Box::new(AfXdp::open(interface, queue)?)),
};

/// Frames in flight at most, a power of two.
const CHUNKS: u32 = 4096;

/// Frames that are handed over before the kernel is called.
const AHEAD: u32 = 1024;

/// How long a queue stays busy after another process has left it.
const BUSY: Duration = Duration::from_millis(20);
const TRIES: u32 = 50;

#[derive(Debug)]
struct AfXdp {
    socket: Socket,
    umem: Umem,
    rings: SendRings,
    /// Chunks that are ours, as a queue, so that buffers come round in a fixed cycle.
    free: std::collections::VecDeque<Chunk>,
    /// Frames that the kernel had taken when it was last asked.
    handed: u64,
    taken: u64,
    refusals: u64,
}

impl AfXdp {
    fn open(interface: &Interface, queue: u32) -> Result<Self> {
        let socket = permitted(
            Socket::open(libc::AF_XDP, libc::SOCK_RAW, 0),
            "open an XDP socket",
            Right::RAW,
        )?;
        // Memory for XDP counts as locked memory, unless the process may lock what it likes.
        let registered = Umem::register(&socket, CHUNKS, LARGEST_FRAME as u32);
        let (umem, mut chunks) = registered.map_err(|source| match source.raw_os_error() {
            Some(libc::ENOBUFS) => Error::Invalid(format!(
                "cannot lock {} MiB for an XDP socket: raise the limit of locked memory (ulimit -l), \
                 or give CAP_IPC_LOCK",
                (CHUNKS as usize * LARGEST_FRAME) >> 20
            )),
            _ => Error::Call { what: "register memory for an XDP socket".to_owned(), source },
        })?;
        chunks.reverse();
        let rings = SendRings::make(&socket, CHUNKS).trying("make the rings of an XDP socket")?;
        bind(&socket, interface, queue)?;
        Ok(Self { socket, umem, rings, free: chunks.into(), handed: 0, taken: 0, refusals: 0 })
    }

    fn collect(&mut self) {
        while let Some((chunk, _)) = self.rings.completion.pop(&self.umem) {
            self.free.push_back(chunk);
        }
        self.rings.completion.release();
    }
}

fn bind(socket: &Socket, interface: &Interface, queue: u32) -> Result<()> {
    let flags = libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP;
    for _ in 0..TRIES {
        match socket.bind_xdp(interface.index, queue, flags) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => sleep(BUSY),
            result => {
                return result.trying(format!("bind an XDP socket to {}", interface.name));
            }
        }
    }
    Err(Error::Invalid(format!(
        "queue {queue} of {} is used by another XDP socket",
        interface.name
    )))
}

impl Transmitter for AfXdp {
    fn way(&self) -> &'static str {
        WAY.name
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
        match self.rings.transmit.push(&self.umem, chunk, len.min(LARGEST_FRAME) as u32) {
            Ok(()) => self.handed += 1,
            Err(chunk) => self.free.push_front(chunk),
        }
        if self.handed.is_multiple_of(u64::from(AHEAD)) {
            self.rings.transmit.publish();
        }
    }

    fn flush(&mut self) -> Result<usize> {
        self.rings.transmit.publish();
        if self.rings.transmit.waiting() > 0
            && (self.rings.transmit.needs_wakeup() || self.free.is_empty())
            && !kick(&self.socket).trying("send through the XDP socket")?
        {
            self.refusals += 1;
        }
        self.collect();
        let taken = self.handed - u64::from(self.rings.transmit.waiting());
        let new = taken - self.taken;
        self.taken = taken;
        Ok(new as usize)
    }

    fn pending(&mut self) -> usize {
        self.rings.transmit.waiting() as usize
    }

    fn refusals(&self) -> u64 {
        self.refusals
    }

    fn buffers(&self) -> usize {
        CHUNKS as usize
    }
}
