//! AF_XDP: memory in chunks, and rings of chunks that go to the kernel and come back.
//!
//! A [`Chunk`] is the right to use a part of the memory. Whoever hands a descriptor to the kernel gives
//! the chunk away, and gets it back from the ring where the kernel returns it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::mapping::Mapping;
use super::socket::Socket;
use crate::ring::{Consumer, Producer};

/// The right to use one chunk of an [`Umem`]. Exactly one exists for each chunk.
#[derive(Debug)]
pub(crate) struct Chunk(u32);

impl Chunk {
    /// Its number, from 0.
    pub(crate) const fn number(&self) -> u32 {
        self.0
    }
}

/// A chunk that came back, and where in it the frame lies that the kernel put there, if it did.
#[derive(Debug)]
pub(crate) struct Descriptor {
    /// The right to the chunk.
    pub(crate) chunk: Chunk,
    /// Where the frame begins in it.
    pub(crate) offset: u32,
    /// Bytes of the frame.
    pub(crate) len: u32,
}

/// Memory that an XDP socket takes packets from and puts packets in.
#[derive(Debug)]
pub(crate) struct Umem {
    mapping: Mapping,
    chunk_len: usize,
}

impl Umem {
    /// Makes memory of `chunks` chunks, a power of two of bytes each, and registers it.
    pub(crate) fn register(
        socket: &Socket,
        chunks: u32,
        chunk_len: u32,
    ) -> io::Result<(Self, Vec<Chunk>)> {
        let mapping = Mapping::private(chunks as usize * chunk_len as usize)?;
        let region = libc::xdp_umem_reg {
            addr: mapping.start().as_ptr() as u64,
            len: mapping.len() as u64,
            chunk_size: chunk_len,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        socket.set(libc::SOL_XDP, libc::XDP_UMEM_REG, &region)?;
        // The last chunk first, so that popping yields them in order.
        let rights = (0..chunks).rev().map(Chunk).collect();
        Ok((Self { mapping, chunk_len: chunk_len as usize }, rights))
    }

    /// The bytes of a chunk.
    pub(crate) fn bytes(&mut self, chunk: &Chunk) -> &mut [u8] {
        // SAFETY: the right to this chunk is here, so it is in no ring, and the kernel does not use it.
        unsafe { self.mapping.bytes_mut(chunk.0 as usize * self.chunk_len, self.chunk_len) }
    }

    /// The bytes of chunks that lie in a row; `None` where they do not, or there is none.
    pub(crate) fn row(&mut self, row: &[Descriptor]) -> Option<&mut [u8]> {
        let first = row.first()?.chunk.0;
        if !row.iter().zip(first..).all(|(descriptor, number)| descriptor.chunk.0 == number) {
            return None;
        }
        // SAFETY: the rights to all of these chunks are here, so they are in no ring, and the kernel uses
        // none of them.
        Some(unsafe {
            self.mapping.bytes_mut(first as usize * self.chunk_len, row.len() * self.chunk_len)
        })
    }

    const fn address(&self, chunk: &Chunk) -> u64 {
        chunk.0 as u64 * self.chunk_len as u64
    }

    const fn chunk_at(&self, address: u64) -> u32 {
        (address / self.chunk_len as u64) as u32
    }
}

/// Where the words and entries of a ring lie in its mapping.
#[derive(Debug)]
struct Memory {
    mapping: Mapping,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
}

impl Memory {
    fn map(
        socket: &Socket,
        offsets: &libc::xdp_ring_offset,
        size: u32,
        entry_len: usize,
        page: u64,
    ) -> io::Result<Self> {
        let len = offsets.desc as usize + size as usize * entry_len;
        Ok(Self {
            mapping: Mapping::shared(socket.descriptor(), len, page as i64)?,
            producer: offsets.producer as usize,
            consumer: offsets.consumer as usize,
            flags: offsets.flags as usize,
            entries: offsets.desc as usize,
        })
    }

    fn load(&self, offset: usize) -> u32 {
        self.mapping.word(offset).load(Ordering::Acquire)
    }

    fn store(&self, offset: usize, value: u32) {
        self.mapping.word(offset).store(value, Ordering::Release);
    }

    /// A word of an entry. Entries change hands by the producer and consumer words, so that plain order is
    /// enough here.
    fn entry_word(&self, offset: usize) -> u32 {
        self.mapping.word(self.entries + offset).load(Ordering::Relaxed)
    }

    fn set_entry_word(&self, offset: usize, value: u32) {
        self.mapping.word(self.entries + offset).store(value, Ordering::Relaxed);
    }

    fn entry_long(&self, offset: usize) -> u64 {
        let halves = [self.entry_word(offset), self.entry_word(offset + 4)];
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&halves[0].to_ne_bytes());
        bytes[4..].copy_from_slice(&halves[1].to_ne_bytes());
        u64::from_ne_bytes(bytes)
    }

    fn set_entry_long(&self, offset: usize, value: u64) {
        let [a, b, c, d, e, f, g, h] = value.to_ne_bytes();
        self.set_entry_word(offset, u32::from_ne_bytes([a, b, c, d]));
        self.set_entry_word(offset + 4, u32::from_ne_bytes([e, f, g, h]));
    }
}

/// The ring in which frames go to the kernel to be sent, or empty chunks to be filled.
#[derive(Debug)]
pub(crate) struct Outward {
    memory: Memory,
    cursor: Producer,
    entry_len: usize,
}

impl Outward {
    /// Hands over `len` bytes of a chunk. Gives it back where the ring is full.
    pub(crate) fn push(&mut self, umem: &Umem, chunk: Chunk, len: u32) -> Result<(), Chunk> {
        let Some(slot) = self.cursor.reserve() else { return Err(chunk) };
        let offset = slot as usize * self.entry_len;
        self.memory.set_entry_long(offset, umem.address(&chunk));
        if self.entry_len == 16 {
            // `struct xdp_desc`: address, length, options.
            self.memory.set_entry_word(offset + 8, len);
            self.memory.set_entry_word(offset + 12, 0);
        }
        Ok(())
    }

    /// Lets the kernel see what was pushed.
    pub(crate) fn publish(&mut self) {
        self.memory.store(self.memory.producer, self.cursor.position());
    }

    /// Entries that the kernel has not taken yet.
    pub(crate) fn waiting(&mut self) -> u32 {
        self.cursor.update(self.memory.load(self.memory.consumer));
        self.cursor.used()
    }

    /// Whether the kernel sleeps until it is called.
    pub(crate) fn needs_wakeup(&self) -> bool {
        self.memory.load(self.memory.flags) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// The ring in which the kernel returns chunks that it has sent, or hands over received frames.
#[derive(Debug)]
pub(crate) struct Inward {
    memory: Arc<InwardMemory>,
    cursor: Consumer,
    entry_len: usize,
}

/// The memory of such a ring, and what was taken from it so far.
#[derive(Debug)]
pub(crate) struct InwardMemory {
    memory: Memory,
    taken: AtomicU64,
}

impl InwardMemory {
    /// Entries that the kernel has put into the ring since it was made. Any thread may ask.
    pub(crate) fn came(&self) -> u64 {
        let taken = self.taken.load(Ordering::Acquire);
        // Positions have 32 bits and begin with 0. What is taken meanwhile the kernel has put there before.
        let more = self.memory.load(self.memory.producer).wrapping_sub(taken as u32);
        taken.saturating_add(more.into())
    }
}

impl Inward {
    fn new(memory: Memory, size: u32, entry_len: usize) -> Self {
        let memory = Arc::new(InwardMemory { memory, taken: AtomicU64::new(0) });
        Self { memory, cursor: Consumer::new(size), entry_len }
    }

    /// Its memory, for other threads.
    pub(crate) fn memory(&self) -> Arc<InwardMemory> {
        Arc::clone(&self.memory)
    }

    fn update(&mut self) {
        let memory = &self.memory.memory;
        self.cursor.update(memory.load(memory.producer));
    }

    /// Entries that wait to be popped.
    pub(crate) fn ready(&mut self) -> u32 {
        self.update();
        self.cursor.available()
    }

    /// The next chunk; `None` while there is none.
    pub(crate) fn pop(&mut self, umem: &Umem) -> Option<Descriptor> {
        self.pop_if(umem, |_| true)
    }

    /// The next chunk, where there is one and its number is wanted.
    pub(crate) fn pop_if(
        &mut self,
        umem: &Umem,
        is_wanted: impl FnOnce(u32) -> bool,
    ) -> Option<Descriptor> {
        if self.cursor.is_empty() {
            self.update();
        }
        let at = self.cursor.peek()? as usize * self.entry_len;
        let memory = &self.memory.memory;
        let address = memory.entry_long(at);
        let number = umem.chunk_at(address);
        if !is_wanted(number) {
            return None;
        }
        self.cursor.take();
        let len = if self.entry_len == 16 { memory.entry_word(at + 8) } else { 0 };
        let offset = (address % umem.chunk_len as u64) as u32;
        Some(Descriptor { chunk: Chunk(number), offset, len })
    }

    /// Gives the entries that were taken back to the kernel.
    pub(crate) fn release(&mut self) {
        let Memory { consumer, .. } = self.memory.memory;
        let position = self.cursor.position();
        let taken = self.memory.taken.load(Ordering::Relaxed);
        let more = position.wrapping_sub(taken as u32);
        self.memory.taken.store(taken.saturating_add(more.into()), Ordering::Release);
        self.memory.memory.store(consumer, position);
    }
}

/// The rings of an XDP socket that sends.
#[derive(Debug)]
pub(crate) struct SendRings {
    /// Frames to be sent.
    pub(crate) transmit: Outward,
    /// Chunks whose frames are gone.
    pub(crate) completion: Inward,
}

impl SendRings {
    /// Makes rings of `size` entries, a power of two, and maps them.
    pub(crate) fn make(socket: &Socket, size: u32) -> io::Result<Self> {
        for name in [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_TX_RING] {
            socket.set(libc::SOL_XDP, name, &size)?;
        }
        let offsets: libc::xdp_mmap_offsets =
            socket.option(libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        let transmit = Memory::map(socket, &offsets.tx, size, 16, libc::XDP_PGOFF_TX_RING as u64)?;
        let completion =
            Memory::map(socket, &offsets.cr, size, 8, libc::XDP_UMEM_PGOFF_COMPLETION_RING)?;
        Ok(Self {
            transmit: Outward { memory: transmit, cursor: Producer::new(size), entry_len: 16 },
            completion: Inward::new(completion, size, 8),
        })
    }
}

/// The rings of an XDP socket that receives.
#[derive(Debug)]
pub(crate) struct ReceiveRings {
    /// Chunks that the kernel may put frames in.
    pub(crate) fill: Outward,
    /// The receive ring: chunks that the kernel has filled.
    pub(crate) receive: Inward,
}

impl ReceiveRings {
    /// Makes rings for so many chunks, a power of two, and maps them.
    ///
    /// The fill ring has twice the entries: the kernel tells that it has taken some only when it has taken all
    /// that it knew of, while chunks of these come back with packets and are given again.
    pub(crate) fn make(socket: &Socket, chunks: u32) -> io::Result<Self> {
        let (size, fill_size) = (chunks, chunks.saturating_mul(2));
        socket.set(libc::SOL_XDP, libc::XDP_UMEM_FILL_RING, &fill_size)?;
        socket.set(libc::SOL_XDP, libc::XDP_RX_RING, &size)?;
        // Nothing is sent, but a socket with memory of its own is not bound without it.
        socket.set(libc::SOL_XDP, libc::XDP_UMEM_COMPLETION_RING, &1)?;
        let offsets: libc::xdp_mmap_offsets =
            socket.option(libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        let fill = Memory::map(socket, &offsets.fr, fill_size, 8, libc::XDP_UMEM_PGOFF_FILL_RING)?;
        let receive = Memory::map(socket, &offsets.rx, size, 16, libc::XDP_PGOFF_RX_RING as u64)?;
        Ok(Self {
            fill: Outward { memory: fill, cursor: Producer::new(fill_size), entry_len: 8 },
            receive: Inward::new(receive, size, 16),
        })
    }
}

/// Lets the driver look for packets, where it sleeps until it is called or the socket may poll it. That the
/// interface is down or gone, or the driver busy, is told elsewhere.
pub(crate) fn wake_receiver(socket: &Socket) {
    // SAFETY: no buffer and no address are passed.
    unsafe {
        libc::recvfrom(
            socket.raw(),
            std::ptr::null_mut(),
            0,
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdp_socket;
    use netsniff_testing::{Need, skip};

    /// The kernel shows the frames of a burst before it says that it has taken their chunks from the fill ring.
    /// A socket that is bound to nothing never says it, so that the ring stands still at that moment.
    #[test]
    fn chunks_that_came_back_are_given_again_before_the_kernel_says_that_it_took_them() {
        const CHUNKS: u32 = 16;
        let socket = match xdp_socket::open() {
            Ok(socket) => socket,
            Err(error) => {
                skip(
                    Need::Root,
                    format_args!("the rings of an XDP socket need the right to open one: {error}"),
                );
                return;
            }
        };
        let (umem, chunks) = Umem::register(&socket, CHUNKS, 2048).unwrap();
        let mut rings = ReceiveRings::make(&socket, CHUNKS).unwrap();
        for chunk in chunks {
            rings.fill.push(&umem, chunk, 0).unwrap();
        }
        rings.fill.publish();
        // All of them came back with frames.
        for number in 0..CHUNKS {
            rings.fill.push(&umem, Chunk(number), 0).unwrap();
        }
        rings.fill.publish();
        assert_eq!(rings.fill.waiting(), 2 * CHUNKS, "as far as the kernel has told");
    }
}
