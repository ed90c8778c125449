//! Many packets in one buffer: what is read at once, and what is handed from thread to thread.

use core::ops::Range;

use crate::{LinkType, Loss, Packet, Timestamp};

/// Where a packet lies in its [`Batch`], and what is known of it besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// When it was seen.
    pub timestamp: Timestamp,
    /// Offset of its first byte in the batch's buffer.
    pub offset: u32,
    /// Bytes that the capture kept of the packet.
    pub captured_len: u32,
    /// Bytes on the wire.
    pub wire_len: u32,
    /// Number of the interface in its source.
    pub interface: u32,
    /// What the first header is.
    pub link_type: LinkType,
}

impl PacketRecord {
    /// Where its bytes lie in the batch's buffer.
    #[must_use]
    #[inline]
    pub const fn range(&self) -> Range<usize> {
        let start = self.offset as usize;
        start..start.saturating_add(self.captured_len as usize)
    }
}

/// A buffer and the packets in it, in the order in which they were read.
///
/// The buffer may hold other bytes between and after the packets (file headers, the head of a
/// packet that continues in the next batch). Its capacity is kept when it is reused.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The bytes of all packets, one behind the other.
    pub data: Vec<u8>,
    /// The packets, each within `data`.
    pub packets: Vec<PacketRecord>,
    /// What the capture lost between them, in order: each with the number of packets of this batch
    /// that come before it.
    pub losses: Vec<(u32, Loss)>,
    /// What the capture tells besides, in order, where its reader was asked to keep it: each with the number of packets
    /// of this batch that come before it. A comment is on the packet that follows.
    pub notes: Vec<(u32, Note)>,
    /// Interfaces that go on from an earlier file: the number of each, and that of the first one of the same. They are told
    /// with their first packet.
    pub continued: Vec<(u32, u32)>,
}

/// What a capture tells besides packets and losses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A comment on a packet.
    Comment(String),
    /// A whole block of pcapng, little-endian, that holds for what follows: names, secrets, or what others define.
    Block(Box<[u8]>),
}

impl Note {
    /// Bytes of its text or block.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a note without content is one all the same")]
    pub fn len(&self) -> usize {
        match self {
            Self::Comment(text) => text.len(),
            Self::Block(block) => block.len(),
        }
    }
}

impl Batch {
    /// Empties the batch and keeps its memory.
    pub fn clear(&mut self) {
        self.data.clear();
        self.clear_packets();
    }

    /// Empties the batch but for its bytes, which the next read overwrites.
    pub fn clear_packets(&mut self) {
        self.packets.clear();
        self.losses.clear();
        self.notes.clear();
        self.continued.clear();
    }

    /// Notes a loss behind the packets that are in the batch.
    pub fn push_loss(&mut self, loss: Loss) {
        self.losses.push((self.packets.len() as u32, loss));
    }

    /// Notes what is told behind the packets that are in the batch.
    pub fn push_note(&mut self, note: Note) {
        self.notes.push((self.packets.len() as u32, note));
    }

    /// Copies a packet to the end. Returns `false`, and changes nothing, where the buffer would
    /// exceed 4 GiB.
    pub fn push(&mut self, packet: &Packet<'_>) -> bool {
        let (Ok(offset), Ok(captured_len)) =
            (u32::try_from(self.data.len()), u32::try_from(packet.data.len()))
        else {
            return false;
        };
        if offset.checked_add(captured_len).is_none() {
            return false;
        }
        self.data.extend_from_slice(packet.data);
        self.packets.push(PacketRecord {
            timestamp: packet.timestamp,
            offset,
            captured_len,
            wire_len: packet.wire_len,
            interface: packet.interface,
            link_type: packet.link_type,
        });
        true
    }

    /// The packet that `record` describes; empty where the record does not fit this batch.
    #[must_use]
    #[inline]
    pub fn packet(&self, record: &PacketRecord) -> Packet<'_> {
        Packet {
            timestamp: record.timestamp,
            data: self.data.get(record.range()).unwrap_or_default(),
            wire_len: record.wire_len,
            link_type: record.link_type,
            interface: record.interface,
        }
    }

    /// The packets, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Packet<'_>> {
        self.packets.iter().map(|record| self.packet(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushed_packets_come_back() {
        let mut batch = Batch::default();
        let first = Packet {
            timestamp: Timestamp::from_nanos(1),
            data: &[1, 2, 3],
            wire_len: 60,
            link_type: LinkType::ETHERNET,
            interface: 0,
        };
        let second = Packet { data: &[], interface: 7, ..first };
        assert!(batch.push(&first) && batch.push(&second));
        assert_eq!(batch.iter().collect::<Vec<_>>(), [first, second]);
        assert!(first.is_cut());
    }

    #[test]
    fn a_record_outside_the_buffer_is_an_empty_packet() {
        let record = PacketRecord {
            timestamp: Timestamp::EPOCH,
            offset: 10,
            captured_len: 4,
            wire_len: 4,
            interface: 0,
            link_type: LinkType::RAW,
        };
        assert!(Batch::default().packet(&record).data.is_empty());
    }
}
