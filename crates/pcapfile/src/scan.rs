//! What the scanners of both formats share: where they put what they find, and what they answer.

use netsniff_packet::{Loss, Note, PacketRecord};

use crate::error::{Damage, DamageKind, DamageLog};

/// Where a scanner puts what it finds in a buffer.
#[derive(Debug)]
pub(crate) struct Sink<'a> {
    pub(crate) packets: &'a mut Vec<PacketRecord>,
    /// What was lost between them, with the number of packets in this buffer before it.
    pub(crate) losses: &'a mut Vec<(u32, Loss)>,
    /// What is told besides, likewise; `None` where nobody wants it.
    pub(crate) notes: Option<&'a mut Vec<(u32, Note)>>,
    pub(crate) damage: &'a mut DamageLog,
    /// Packets that were found in earlier buffers.
    pub(crate) packets_before: u64,
    /// Bytes that lie before this buffer.
    pub(crate) bytes_before: u64,
    /// Whether no byte will follow this buffer.
    pub(crate) at_end: bool,
}

impl Sink<'_> {
    /// Ordinal, from 1, of the packet that comes next.
    pub(crate) fn next_packet(&self) -> u64 {
        self.packets_before + self.packets.len() as u64 + 1
    }

    /// Offset in the file of a place in the buffer.
    pub(crate) fn offset(&self, at: usize) -> u64 {
        self.bytes_before + at as u64
    }

    /// Notes damage at a place in the buffer.
    #[cold]
    pub(crate) fn damage_at(&mut self, at: usize, skipped: usize, kind: DamageKind) {
        let (packet, offset) = (self.next_packet(), self.offset(at));
        self.damage.push(Damage { packet, offset, skipped: skipped as u64, kind });
    }
}

/// How far a scanner came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scanned {
    /// Bytes of the buffer that are done with.
    pub(crate) consumed: usize,
    /// Bytes that must follow these, at least, before it can go on; the rest of the buffer counts.
    pub(crate) needed: usize,
    /// Whether nothing that follows can be used.
    pub(crate) stopped: bool,
}

impl Scanned {
    pub(crate) const fn more(consumed: usize, needed: usize) -> Self {
        Self { consumed, needed, stopped: false }
    }

    pub(crate) const fn stop(consumed: usize) -> Self {
        Self { consumed, needed: 1, stopped: true }
    }
}
