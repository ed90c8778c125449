//! Packets with long headers, RFC 9000 section 17.2, and the frames of Initial packets, section 19.

use super::version::{PacketType, Version};
use crate::protocol::tls::reader::Reader;

/// The bit of long headers.
pub(super) const LONG: u8 = 0x80;
/// The bit that all packets of QUIC have.
pub(super) const FIXED: u8 = 0x40;

/// Octets of the shortest rest of an Initial packet: packet number and sample, RFC 9001 section
/// 5.4.2.
const MIN_PROTECTED: u64 = 20;

/// What every version has, RFC 8999 section 5.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Invariant<'a> {
    pub(super) first: u8,
    pub(super) version: u32,
    /// The receiver's connection identifier.
    pub(super) destination: &'a [u8],
    /// The sender's connection identifier.
    pub(super) source: &'a [u8],
    /// The bytes behind the connection identifiers.
    rest: &'a [u8],
}

impl<'a> Invariant<'a> {
    /// The begin of a packet with a long header; `None` where it is cut.
    pub(super) fn of(packet: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(packet);
        Some(Self {
            first: reader.u8()?,
            version: reader.u32()?,
            destination: reader.vector8()?,
            source: reader.vector8()?,
            rest: reader.rest(),
        })
    }

    /// The versions that a version negotiation offers, RFC 8999 section 6.
    pub(super) fn offered(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.rest.as_chunks().0.iter().map(|version| u32::from_be_bytes(*version))
    }
}

/// A packet with a long header of a version that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) kind: PacketType,
    /// Where its packet number begins.
    pub(super) number_at: usize,
    /// Octets of the packet.
    pub(super) len: usize,
}

impl Packet {
    /// The packet at the begin of `bytes`; `None` where it is cut.
    pub(super) fn of(bytes: &[u8], invariant: &Invariant<'_>, version: Version) -> Option<Self> {
        let kind = version.packet_type(invariant.first);
        let mut reader = Reader::new(invariant.rest);
        if kind == PacketType::Retry {
            return Some(Self { kind, number_at: bytes.len(), len: bytes.len() });
        }
        if kind == PacketType::Initial {
            let token = variable(&mut reader)?;
            reader.take(usize::try_from(token).ok()?)?;
        }
        let length = variable(&mut reader)?;
        if kind == PacketType::Initial && length < MIN_PROTECTED {
            return None;
        }
        let number_at = bytes.len().checked_sub(reader.rest().len())?;
        reader.take(usize::try_from(length).ok()?)?;
        Some(Self { kind, number_at, len: bytes.len().checked_sub(reader.rest().len())? })
    }
}

/// A number of one, two, four or eight octets, RFC 9000 section 16.
fn variable(reader: &mut Reader<'_>) -> Option<u64> {
    let first = reader.u8()?;
    let more = (1_usize << (first >> 6)) - 1;
    let begin = u64::from(first & 0x3f);
    Some(reader.take(more)?.iter().fold(begin, |value, octet| value << 8 | u64::from(*octet)))
}

/// A frame that is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// A piece of the handshake's messages.
    Crypto {
        /// Where in the stream of messages it is.
        offset: u64,
        data: &'a [u8],
    },
    /// `CONNECTION_CLOSE`.
    Close,
}

/// A frame that Initial packets do not have, or that is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoFrame;

/// The frames of an Initial packet, RFC 9000 section 12.4.
#[derive(Debug)]
pub(super) struct Frames<'a> {
    reader: Reader<'a>,
}

impl<'a> Frames<'a> {
    /// The frames in what was protected.
    pub(super) const fn new(payload: &'a [u8]) -> Self {
        Self { reader: Reader::new(payload) }
    }

    fn skip_acknowledgement(&mut self, has_counts: bool) -> Option<()> {
        let reader = &mut self.reader;
        let (_largest, _delay) = (variable(reader)?, variable(reader)?);
        let (ranges, _first) = (variable(reader)?, variable(reader)?);
        for _ in 0..ranges {
            let (_gap, _len) = (variable(reader)?, variable(reader)?);
        }
        for _ in 0..if has_counts { 3 } else { 0 } {
            variable(reader)?;
        }
        Some(())
    }

    fn crypto(&mut self) -> Option<Frame<'a>> {
        let offset = variable(&mut self.reader)?;
        let len = variable(&mut self.reader)?;
        Some(Frame::Crypto { offset, data: self.reader.take(usize::try_from(len).ok()?)? })
    }

    fn close(&mut self) -> Option<Frame<'a>> {
        let (_error, _frame) = (variable(&mut self.reader)?, variable(&mut self.reader)?);
        let len = variable(&mut self.reader)?;
        self.reader.take(usize::try_from(len).ok()?)?;
        Some(Frame::Close)
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, NoFrame>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(kind) = self.reader.u8() {
            let frame = match kind {
                // PADDING and PING.
                0 | 1 => continue,
                2 | 3 if self.skip_acknowledgement(kind == 3).is_some() => continue,
                6 => self.crypto(),
                0x1c => self.close(),
                _ => None,
            };
            if frame.is_none() {
                self.reader = Reader::new(&[]);
            }
            return Some(frame.ok_or(NoFrame));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 9000, section A.1.
    #[test]
    fn variable_numbers_are_those_of_the_rfc() {
        let read = |bytes: &[u8]| variable(&mut Reader::new(bytes));
        let eight = [0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c];
        assert_eq!(read(&eight), Some(151_288_809_941_952_652));
        assert_eq!(read(&[0x9d, 0x7f, 0x3e, 0x7d]), Some(494_878_333));
        assert_eq!((read(&[0x7b, 0xbd]), read(&[0x25])), (Some(15_293), Some(37)));
        assert_eq!((read(&[0x40, 0x25]), read(&[]), read(&[0x40])), (Some(37), None, None));
    }

    #[test]
    fn packets_follow_each_other() {
        let initial = [&[0xc0, 0, 0, 0, 1, 2, 8, 9, 1, 7, 1, 0xaa, 20][..], &[0; 20]].concat();
        let handshake = [&[0xe0, 0, 0, 0, 1, 0, 0, 3][..], &[0; 3]].concat();
        let both = [initial.clone(), handshake].concat();
        let invariant = Invariant::of(&both).unwrap();
        assert_eq!((invariant.destination, invariant.source), (&[8, 9][..], &[7][..]));
        let version = Version::of(1).unwrap();
        let packet = Packet::of(&both, &invariant, version).unwrap();
        assert_eq!(packet, Packet { kind: PacketType::Initial, number_at: 13, len: 33 });
        let rest = &both[33..];
        let packet = Packet::of(rest, &Invariant::of(rest).unwrap(), version).unwrap();
        assert_eq!((packet.kind, packet.len), (PacketType::Handshake, 11));
        for cut in 0..initial.len() {
            let cut = &initial[..cut];
            let packet = Invariant::of(cut).and_then(|it| Packet::of(cut, &it, version));
            assert_eq!(packet, None);
        }
    }

    #[test]
    fn frames_are_read_up_to_one_that_is_none() {
        let payload = [0, 0, 1, 2, 5, 0, 1, 0, 0, 3, 3, 0, 0, 0, 0, 1, 2, 3, 6, 4, 2, 0xab, 0xcd];
        let frames: Vec<_> = Frames::new(&payload).collect();
        assert_eq!(frames, [Ok(Frame::Crypto { offset: 4, data: &[0xab, 0xcd] })]);
        assert_eq!(Frames::new(&[0x1c, 2, 0, 1, b'x']).collect::<Vec<_>>(), [Ok(Frame::Close)]);
        for bad in [&[8, 1, 2][..], &[6, 0, 9, 1], &[2, 1, 1, 0x3f, 1]] {
            assert_eq!(Frames::new(bad).collect::<Vec<_>>(), [Err(NoFrame)], "{bad:?}");
        }
    }
}
