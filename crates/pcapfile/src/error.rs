//! What can be wrong with an input: errors that leave nothing to read, and damage beside which
//! the rest was read.

use core::fmt;
use std::io;

use crate::Compression;

/// Why a file could not be read at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading the file failed.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// There is not one byte.
    #[error("the file is empty")]
    Empty,
    /// The file is text, no capture.
    #[error("a text file, not a capture: it begins with {0:?}")]
    Text(String),
    /// It is something whose first bytes are known here, and no capture.
    #[error("{0}, not a pcap or pcapng file")]
    Other(&'static str),
    /// The first bytes are those of no format known here.
    #[error("not a pcap or pcapng file: it begins with the bytes {0}")]
    UnknownMagic(Hex),
    /// The magic is that of a capture, and the file ends within its header.
    #[error("the file ends after {present} bytes, within the {needed} bytes of its file header")]
    ShortHeader {
        /// Bytes that are there.
        present: usize,
        /// Bytes that the header has at least.
        needed: usize,
    },
    /// The first bytes could not be unpacked.
    #[error("cannot unpack {compression}: {source}")]
    Unpack {
        /// How it is packed.
        compression: Compression,
        /// What the decoder says.
        source: io::Error,
    },
}

/// The first bytes of a file, shown in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hex {
    bytes: [u8; 8],
    len: usize,
}

impl Hex {
    /// Keeps at most the first eight of `bytes`.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let mut kept = [0; 8];
        let len = bytes.len().min(kept.len());
        kept.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Self { bytes: kept, len }
    }
}

/// `0a 0b ff`.
impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.bytes.iter().take(self.len).enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{byte:02x}")?;
        }
        Ok(())
    }
}

/// A place where the input is not what its format says, and what was done about it.
///
/// Displayed as a sentence without the name of the file:
/// `packet 25 at byte 1722: the file ends within the packet (...)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Ordinal, from 1, of the packet at the damage, or of the one that would have come next.
    pub packet: u64,
    /// Offset in bytes from the start of the file, after unpacking.
    pub offset: u64,
    /// Bytes from `offset` on that were not used.
    pub skipped: u64,
    /// The kind of damage.
    pub kind: DamageKind,
}

/// What is wrong at a place of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DamageKind {
    /// The file ends within a packet or a block. What there is of it was left out.
    Truncated {
        /// Bytes that the packet or block has by its header, or that a header has.
        needed: u64,
        /// Bytes that are there.
        present: u64,
    },
    /// A captured length (pcap) that no packet can have. Reading stopped, since nothing tells where
    /// the next packet begins.
    CapturedLength {
        /// The length as it stands in the file.
        captured: u32,
        /// The most that was accepted.
        limit: u32,
    },
    /// A captured length (pcapng) that does not fit the packet's block. The packet was left out.
    PacketLength {
        /// The length as it stands in the file.
        captured: u32,
        /// The most that the block can hold.
        limit: u32,
    },
    /// More bytes were captured than the wire carried. The packet was used in full, with its
    /// captured length as its length on the wire.
    CapturedExceedsWire {
        /// Bytes captured.
        captured: u32,
        /// Bytes on the wire, as it stands in the file.
        wire: u32,
    },
    /// A block length (pcapng) that no block can have. Reading went on at the next block.
    BlockLength {
        /// The block type as it stands in the file.
        block_type: u32,
        /// The length as it stands in the file.
        length: u32,
    },
    /// The two lengths of a block (pcapng) differ, and it was followed by another block: it was used.
    TrailingLength {
        /// The length before the block's body.
        leading: u32,
        /// The length after it.
        trailing: u32,
    },
    /// A block (pcapng) whose body is too short for what it should hold. It was left out.
    BlockBody {
        /// The block type.
        block_type: u32,
    },
    /// A packet of an interface that was not described before. It was left out.
    UnknownInterface {
        /// The interface's number in its section.
        interface: u32,
    },
    /// More interfaces were described than are kept. This one and its packets were left out.
    TooManyInterfaces,
    /// The compressed data is broken. What could be unpacked before was used.
    Unpack {
        /// How it is packed.
        compression: Compression,
        /// What the decoder says.
        message: String,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { packet, offset, skipped, kind } = self;
        write!(f, "packet {packet} at byte {offset}: ")?;
        match kind {
            DamageKind::Truncated { needed, present } => write!(
                f,
                "the file ends within it ({present} of at least {needed} bytes); it was left out"
            ),
            DamageKind::CapturedLength { captured, limit } => write!(
                f,
                "its captured length {captured} exceeds {limit}; \
                 the last {skipped} bytes of the file were not used"
            ),
            DamageKind::PacketLength { captured, limit } => write!(
                f,
                "its captured length {captured} exceeds the {limit} bytes of its block; \
                 it was left out"
            ),
            DamageKind::CapturedExceedsWire { captured, wire } => write!(
                f,
                "{captured} bytes captured of {wire} on the wire; it was used as {captured} bytes"
            ),
            DamageKind::BlockLength { block_type, length } => write!(
                f,
                "no block has type {block_type:#x} and length {length}; \
                 {skipped} bytes up to the next block were not used"
            ),
            DamageKind::TrailingLength { leading, trailing } => write!(
                f,
                "a block begins with length {leading} and ends with length {trailing}; \
                 it was used with the first"
            ),
            DamageKind::BlockBody { block_type } => {
                write!(f, "a block of type {block_type:#x} is too short; it was left out")
            }
            DamageKind::UnknownInterface { interface } => {
                write!(f, "interface {interface} was not described before; it was left out")
            }
            DamageKind::TooManyInterfaces => {
                write!(f, "too many interfaces; this one and its packets were left out")
            }
            DamageKind::Unpack { compression, message } => {
                write!(f, "the {compression} data is broken ({message}); what came before was used")
            }
        }
    }
}

/// The damage of one input: the first places in full, the others as a number.
#[derive(Clone, Debug, Default)]
pub(crate) struct DamageLog {
    places: Vec<Damage>,
    count: u64,
}

impl DamageLog {
    /// Places that are kept; a file may be broken at every packet.
    const KEPT: usize = 64;

    pub(crate) fn places(&self) -> &[Damage] {
        &self.places
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    #[cold]
    pub(crate) fn push(&mut self, damage: Damage) {
        self.count += 1;
        if self.places.len() < Self::KEPT {
            self.places.push(damage);
        }
    }

    /// Adds to what was skipped after the latest damage, where that one was kept.
    pub(crate) fn skip(&mut self, bytes: u64) {
        if self.count == self.places.len() as u64
            && let Some(latest) = self.places.last_mut()
        {
            latest.skipped += bytes;
        }
    }
}
