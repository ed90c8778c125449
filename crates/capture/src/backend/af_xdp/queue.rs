//! One queue of an interface: its socket, the chunks that go round between it and the kernel, and its drops.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::backend::af_packet::packet_socket;
use crate::backend::losses::Losses;
use crate::error::{CallContext as _, Error, Result};
use crate::interface::Interface;
use crate::negotiate::{FreeMemory, Negotiation, negotiate};
use crate::options::Options;
use crate::sys::socket::Socket;
use crate::sys::xdp::{Chunk, Descriptor, InwardMemory, ReceiveRings, Umem};
use crate::xdp_socket;

/// The least ring: the kernel takes packets in groups.
const LEAST_CHUNKS: u32 = 16;

/// The largest ring: rings have positions of 32 bits, and entries of up to 16 bytes.
const MOST_CHUNKS: u32 = 1 << 26;

/// Chunks that are lent at once: given back together, soon enough for the kernel to go on.
const MOST: usize = 256;

/// Packets that a driver receives before it shows them (`NAPI_POLL_WEIGHT` of the kernel), and that a call which
/// polls it asks for at most.
const NAPI_WEIGHT: u32 = 64;

/// One queue of the interface.
#[derive(Debug)]
pub(super) struct Queue {
    /// Before the socket, since the memory goes first.
    pub(super) rings: ReceiveRings,
    pub(super) umem: Umem,
    pub(super) socket: Arc<Socket>,
    pub(super) chunks: u32,
    /// Chunks whose packets are lent.
    pub(super) lent: Vec<Descriptor>,
    /// Chunks that were given to the kernel since the start, and that came back with packets.
    given: u64,
    taken: u64,
    pub(super) losses: Losses,
    /// Chunks that had been given when surely no packet had been dropped yet for want of one, since the last
    /// reading.
    since: u64,
    /// Packets that had come at the last reading.
    pub(super) came: u64,
    last: libc::xdp_statistics,
}

impl Queue {
    /// Opens it, with chunks of so many bytes in memory of at most `bytes`.
    ///
    /// # Errors
    ///
    /// Missing rights, lack of memory that may be locked, and another socket that has the queue.
    pub(super) fn open(
        interface: &Interface,
        number: u32,
        bytes: usize,
        chunk_len: u32,
        options: &Options,
    ) -> Result<(Self, Negotiation)> {
        let socket = xdp_socket::open()?;
        let least = (LEAST_CHUNKS * chunk_len) as usize;
        let ask = |bytes: usize| {
            let chunks = u32::try_from(bytes / chunk_len as usize).unwrap_or(u32::MAX);
            // A power of two, as the size of a ring.
            let chunks = 1 << chunks.clamp(LEAST_CHUNKS, MOST_CHUNKS).ilog2();
            let (umem, rights) = Umem::register(&socket, chunks, chunk_len)?;
            Ok(((umem, rights, chunks), chunks as usize * chunk_len as usize))
        };
        let (got, memory) = negotiate(bytes, least, FreeMemory::now(), ask).map_err(|source| {
            if source.raw_os_error() == Some(libc::ENOBUFS) {
                return Error::Invalid(xdp_socket::lock_refused(least));
            }
            Error::Call { what: "register memory for an XDP socket".to_owned(), reason: source }
        })?;
        let (umem, rights, chunks) = got;
        let rings =
            ReceiveRings::make(&socket, chunks).trying("make the rings of an XDP socket")?;
        if let Some(time) = options.busy_poll {
            prefer_busy_polling(&socket, time)?;
        }
        let last = statistics(&socket)?;
        let mut queue = Self {
            rings,
            umem,
            socket: Arc::new(socket),
            chunks,
            lent: Vec::with_capacity(MOST.min(chunks as usize)),
            given: 0,
            taken: 0,
            losses: Losses::new(chunks as usize, 0),
            since: 0,
            came: 0,
            last,
        };
        for chunk in rights.into_iter().rev() {
            queue.give(chunk)?;
        }
        queue.rings.fill.publish();
        queue.since = queue.given;
        xdp_socket::bind(&queue.socket, interface, number, libc::XDP_USE_NEED_WAKEUP)?;
        Ok((queue, explained(memory)))
    }

    fn give(&mut self, chunk: Chunk) -> Result<()> {
        let full = |_| {
            Error::Invalid(
                "the fill ring is full, though it has room for all chunks twice".to_owned(),
            )
        };
        self.rings.fill.push(&self.umem, chunk, 0).map_err(full)?;
        self.given += 1;
        Ok(())
    }

    /// Packets that wait to be lent.
    pub(super) fn ready(&mut self) -> u32 {
        self.rings.receive.ready()
    }

    /// Whether the kernel has used up the chunks that it was given, so that it may be dropping.
    pub(super) fn is_starved(&mut self) -> bool {
        self.rings.fill.waiting() == 0
    }

    /// Takes packets that lie in a row, at most as many as may be lent together, and returns the number of the
    /// first of them since the start.
    pub(super) fn take(&mut self) -> u64 {
        let first = self.taken;
        let cut = self.losses.cut(first).map_or(u64::MAX, |cut| cut - first);
        let most = usize::try_from(cut).unwrap_or(usize::MAX).min(MOST);
        while self.lent.len() < most {
            let next = self.lent.last().map(|last| last.chunk.number().wrapping_add(1));
            let is_wanted = |number| next.is_none_or(|next| next == number);
            let Some(descriptor) = self.rings.receive.pop_if(&self.umem, is_wanted) else { break };
            self.lent.push(descriptor);
            self.taken += 1;
        }
        self.rings.receive.release();
        first
    }

    /// Gives what was lent back to the kernel, and returns how many chunks that were.
    pub(super) fn release(&mut self) -> Result<u32> {
        let count = self.lent.len() as u32;
        if count == 0 {
            return Ok(0);
        }
        // What was dropped up to now lies at one place, what is dropped from here on at another.
        if self.is_starved() {
            self.read_statistics()?;
        }
        let mut lent = core::mem::take(&mut self.lent);
        for descriptor in lent.drain(..) {
            self.give(descriptor.chunk)?;
        }
        self.lent = lent;
        self.rings.fill.publish();
        if self.rings.fill.waiting() <= count {
            // It had none for a moment.
            self.read_statistics()?;
        }
        self.since = self.given;
        Ok(count)
    }

    /// Packets that it had dropped when its counters were read last.
    pub(super) fn dropped(&self) -> u64 {
        dropped(&self.last)
    }

    /// Reads the kernel's counters, and finds places for new drops.
    pub(super) fn read_statistics(&mut self) -> Result<()> {
        let now = statistics(&self.socket)?;
        let came = self.taken + u64::from(self.ready());
        let last = core::mem::replace(&mut self.last, now);
        let new = |of: fn(&libc::xdp_statistics) -> u64| of(&now).saturating_sub(of(&last));
        let dropped = new(dropped);
        // Where the interface fills the chunks itself, it does not drop each time that it finds none.
        let starved = new(|of| of.rx_fill_ring_empty_descs).min(dropped);
        let shown_by = (came + u64::from(NAPI_WEIGHT)).min(self.given);
        self.losses.note_between(dropped - starved, self.came, shown_by, self.taken);
        self.losses.note_between(starved, self.since, self.given, self.taken);
        self.losses.close_reading();
        (self.since, self.came) = (self.given, came);
        Ok(())
    }
}

/// What other threads see of a queue.
#[derive(Debug)]
pub(super) struct QueueIntake {
    socket: Arc<Socket>,
    receive: Arc<InwardMemory>,
}

impl QueueIntake {
    pub(super) fn of(queue: &Queue) -> Self {
        Self { socket: Arc::clone(&queue.socket), receive: queue.rings.receive.memory() }
    }

    /// Packets that came, and those that were dropped.
    pub(super) fn counted(&self) -> Result<[u64; 2]> {
        // First those that came: what is dropped meanwhile is none of them.
        Ok([self.receive.came(), dropped(&statistics(&self.socket)?)])
    }
}

fn statistics(socket: &Socket) -> Result<libc::xdp_statistics> {
    let statistics = socket.option(libc::SOL_XDP, libc::XDP_STATISTICS);
    statistics.trying("read the counters of an XDP socket")
}

/// Packets that a socket has dropped: those that found no chunk or fit in none, and those that found no entry in the
/// ring. The count of times that there was no chunk tells of the same packets.
fn dropped(statistics: &libc::xdp_statistics) -> u64 {
    statistics.rx_dropped.saturating_add(statistics.rx_ring_full)
}

/// Says of sizes that were refused since so much may not be locked what to do.
fn explained(mut memory: Negotiation) -> Negotiation {
    let limit = io::Error::from_raw_os_error(libc::ENOBUFS).to_string();
    for (bytes, why) in memory.refused.iter_mut().filter(|(_, why)| *why == limit) {
        *why = xdp_socket::lock_refused(*bytes);
    }
    memory
}

/// Lets calls ask the driver for packets, rather than its interrupts.
fn prefer_busy_polling(socket: &Socket, time: Duration) -> Result<()> {
    packet_socket::ask_for_busy_polling(socket, time)?;
    for (name, value, what) in [
        (libc::SO_PREFER_BUSY_POLL, 1, "prefer busy polling (SO_PREFER_BUSY_POLL)"),
        (libc::SO_BUSY_POLL_BUDGET, NAPI_WEIGHT as i32, "set SO_BUSY_POLL_BUDGET"),
    ] {
        socket.set(libc::SOL_SOCKET, name, &value).trying(what)?;
    }
    Ok(())
}
