//! What gzip puts around deflate, RFC 1952 section 2.3: a header before it, a checksum and a length behind it.

use crc32fast::Hasher;

use super::Outcome;

/// The first two bytes.
pub(super) const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The only method of compression.
const DEFLATE: u8 = 8;

/// A checksum of the header follows it.
const HEADER_CHECKSUM: u8 = 0x02;
const EXTRA: u8 = 0x04;
const NAME: u8 = 0x08;
const COMMENT: u8 = 0x10;
/// Must not be set.
const RESERVED: u8 = 0xe0;

/// A member of gzip on its way.
#[derive(Clone, Debug)]
pub(super) struct Gzip {
    place: Place,
    flags: u8,
    /// The numbers that are being read, the first byte lowest, and how many bytes of them came.
    number: u32,
    came: u8,
    /// Over the header, if it has a checksum, then over what was decoded.
    sum: Hasher,
    /// Bytes that were decoded, modulo 2^32.
    len: u32,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The magic number, method and flags.
    Begin,
    /// Time, and two bytes of which nobody needs one.
    Time,
    Hints,
    ExtraLen,
    Extra(u16),
    Name,
    Comment,
    HeaderChecksum,
    Data,
    Checksum,
    Len,
}

impl Default for Gzip {
    fn default() -> Self {
        Self { place: Place::Begin, flags: 0, number: 0, came: 0, sum: Hasher::new(), len: 0 }
    }
}

impl Gzip {
    /// Whether deflate comes next.
    pub(super) fn is_at_data(&self) -> bool {
        self.place == Place::Data
    }

    /// Takes what was decoded.
    pub(super) fn decoded(&mut self, data: &[u8]) {
        self.sum.update(data);
        self.len = self.len.wrapping_add(data.len() as u32);
    }

    /// Deflate has ended.
    pub(super) fn data_ended(&mut self) {
        self.place = Place::Checksum;
    }

    /// Takes bytes before or behind deflate. Returns how many, and what they tell: up to deflate, or up to the end.
    pub(super) fn frame(&mut self, data: &[u8]) -> (usize, Outcome) {
        for (at, &byte) in data.iter().enumerate() {
            if self.is_at_data() {
                return (at, Outcome::Open);
            }
            match self.byte(byte) {
                Outcome::Open => {}
                last => return (at + 1, last),
            }
        }
        (data.len(), Outcome::Open)
    }

    fn byte(&mut self, byte: u8) -> Outcome {
        let place = self.place;
        if self.flags & HEADER_CHECKSUM != 0
            && !matches!(place, Place::HeaderChecksum | Place::Checksum | Place::Len)
        {
            self.sum.update(&[byte]);
        }
        match place {
            Place::Extra(left) => {
                self.place = if left > 1 { Place::Extra(left - 1) } else { self.behind(place) };
                return Outcome::Open;
            }
            Place::Name | Place::Comment => {
                if byte == 0 {
                    self.place = self.behind(place);
                }
                return Outcome::Open;
            }
            _ => {}
        }
        self.number |= u32::from(byte) << (8 * self.came);
        self.came += 1;
        if self.came < place.width() {
            return Outcome::Open;
        }
        let number = core::mem::take(&mut self.number);
        self.came = 0;
        self.number(place, number)
    }

    /// Takes a number that is whole.
    fn number(&mut self, place: Place, number: u32) -> Outcome {
        match place {
            Place::Begin => {
                let [_, _, method, flags] = number.to_le_bytes();
                if method != DEFLATE || flags & RESERVED != 0 {
                    return Outcome::Broken;
                }
                self.flags = flags;
                if flags & HEADER_CHECKSUM != 0 {
                    self.sum.update(&number.to_le_bytes());
                }
            }
            Place::ExtraLen if number > 0 => {
                self.place = Place::Extra(number as u16);
                return Outcome::Open;
            }
            Place::HeaderChecksum if number != self.sum_so_far() & 0xffff => {
                return Outcome::Broken;
            }
            Place::Checksum if number != self.sum_so_far() => return Outcome::Broken,
            Place::Len if number == self.len => return Outcome::Ended,
            Place::Len => return Outcome::Broken,
            _ => {}
        }
        self.place = self.behind(place);
        if self.is_at_data() {
            self.sum = Hasher::new();
        }
        Outcome::Open
    }

    fn sum_so_far(&self) -> u32 {
        self.sum.clone().finalize()
    }

    /// What comes behind a part of the header, or behind the checksum.
    fn behind(&self, place: Place) -> Place {
        let has = |flag| self.flags & flag != 0;
        match place {
            Place::Begin => Place::Time,
            Place::Time => Place::Hints,
            Place::Hints if has(EXTRA) => Place::ExtraLen,
            Place::Hints | Place::ExtraLen | Place::Extra(_) if has(NAME) => Place::Name,
            Place::Hints | Place::ExtraLen | Place::Extra(_) | Place::Name if has(COMMENT) => {
                Place::Comment
            }
            Place::Checksum => Place::Len,
            Place::HeaderChecksum | Place::Data | Place::Len => Place::Data,
            _ if has(HEADER_CHECKSUM) => Place::HeaderChecksum,
            _ => Place::Data,
        }
    }
}

impl Place {
    /// Bytes of the number that stands here.
    const fn width(self) -> u8 {
        match self {
            Self::Begin | Self::Time | Self::Checksum | Self::Len => 4,
            Self::Hints | Self::ExtraLen | Self::HeaderChecksum => 2,
            Self::Extra(_) | Self::Name | Self::Comment | Self::Data => 1,
        }
    }
}
