//! TCP options: one value per kind, read by an iterator and written one after the other.

/// The blocks of a SACK option, left and right edge, RFC 2018.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SackBlocks<'a>(&'a [u8]);

impl<'a> SackBlocks<'a> {
    /// Blocks as they stand on the wire, 8 bytes each, or `None` where the length does not fit.
    #[must_use]
    pub const fn from_wire(bytes: &'a [u8]) -> Option<Self> {
        if bytes.len().is_multiple_of(8) { Some(Self(bytes)) } else { None }
    }

    /// The blocks, in order.
    pub fn iter(self) -> impl Iterator<Item = (u32, u32)> + 'a {
        self.0.as_chunks::<8>().0.iter().map(|b| {
            (
                u32::from_be_bytes([b[0], b[1], b[2], b[3]]),
                u32::from_be_bytes([b[4], b[5], b[6], b[7]]),
            )
        })
    }
}

/// One option of a TCP header (RFC 9293, 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOption<'a> {
    /// Kind 0: the list ends here, what follows is padding.
    EndOfList,
    /// Kind 1.
    NoOperation,
    /// Kind 2: maximum segment size, RFC 9293.
    MaximumSegmentSize(u16),
    /// Kind 3: window scale shift, RFC 7323.
    WindowScale(u8),
    /// Kind 4: SACK permitted, RFC 2018.
    SackPermitted,
    /// Kind 5: SACK, RFC 2018.
    Sack(SackBlocks<'a>),
    /// Kind 8: timestamp value and echo reply, RFC 7323.
    Timestamps(u32, u32),
    /// Kind 19: MD5 digest, RFC 2385.
    Md5(&'a [u8; 16]),
    /// Kind 28: user timeout, granularity bit and 15 bits, RFC 5482.
    UserTimeout(u16),
    /// Kind 29: authentication (TCP-AO), RFC 5925: key id, next key id, code.
    Authentication(&'a [u8]),
    /// Kind 30: multipath TCP, RFC 8684, with its subtype in the first nibble.
    Multipath(&'a [u8]),
    /// Kind 34: fast open cookie, empty in a request, RFC 7413.
    FastOpen(&'a [u8]),
    /// Any other kind that has a length.
    Other {
        /// The kind.
        kind: u8,
        /// What follows kind and length.
        data: &'a [u8],
    },
}

impl<'a> TcpOption<'a> {
    fn from_parts(kind: u8, data: &'a [u8]) -> Option<Self> {
        Some(match (kind, data) {
            (2, &[a, b]) => Self::MaximumSegmentSize(u16::from_be_bytes([a, b])),
            (3, &[shift]) => Self::WindowScale(shift),
            (4, []) => Self::SackPermitted,
            (5, blocks) => Self::Sack(SackBlocks::from_wire(blocks)?),
            (8, &[a, b, c, d, e, f, g, h]) => {
                Self::Timestamps(u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
            }
            (19, digest) => Self::Md5(digest.try_into().ok()?),
            (28, &[a, b]) => Self::UserTimeout(u16::from_be_bytes([a, b])),
            (29, data) if data.len() >= 2 => Self::Authentication(data),
            (30, data) if !data.is_empty() => Self::Multipath(data),
            (34, cookie) => Self::FastOpen(cookie),
            (0..=4 | 8 | 28..=30, _) => return None,
            (kind, data) => Self::Other { kind, data },
        })
    }

    /// Writes the option and returns its length, or `None` where `buffer` is too short or the
    /// option longer than an option can be.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let mut scratch = [0; 8];
        let (kind, data): (u8, &[u8]) = match *self {
            Self::EndOfList | Self::NoOperation => {
                *buffer.first_mut()? = u8::from(matches!(self, Self::NoOperation));
                return Some(1);
            }
            Self::MaximumSegmentSize(value) => (2, copied(&mut scratch, &value.to_be_bytes())),
            Self::WindowScale(shift) => (3, copied(&mut scratch, &[shift])),
            Self::SackPermitted => (4, &[]),
            Self::Sack(blocks) => (5, blocks.0),
            Self::Timestamps(value, echo) => {
                scratch[..4].copy_from_slice(&value.to_be_bytes());
                scratch[4..].copy_from_slice(&echo.to_be_bytes());
                (8, &scratch)
            }
            Self::Md5(digest) => (19, digest),
            Self::UserTimeout(value) => (28, copied(&mut scratch, &value.to_be_bytes())),
            Self::Authentication(data) => (29, data),
            Self::Multipath(data) => (30, data),
            Self::FastOpen(cookie) => (34, cookie),
            Self::Other { kind, data } => (kind, data),
        };
        let len = data.len().checked_add(2).filter(|len| *len <= 40)?;
        let out = buffer.get_mut(..len)?;
        out[0] = kind;
        out[1] = len as u8;
        out[2..].copy_from_slice(data);
        Some(len)
    }
}

fn copied<'s, const N: usize>(scratch: &'s mut [u8; 8], bytes: &[u8; N]) -> &'s [u8] {
    scratch[..N].copy_from_slice(bytes);
    &scratch[..N]
}

/// Why a list of options could not be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadOption {
    /// Offset of the option at fault in the list.
    pub offset: usize,
}

/// The options of a header, in order, up to and with the end of the list or the first fault.
#[derive(Clone, Debug)]
pub struct TcpOptionIter<'a> {
    options: &'a [u8],
    at: usize,
}

impl<'a> TcpOptionIter<'a> {
    /// Reads the options of a header.
    #[must_use]
    pub const fn new(options: &'a [u8]) -> Self {
        Self { options, at: 0 }
    }

    fn read(&mut self, kind: u8) -> Option<TcpOption<'a>> {
        if kind <= 1 {
            self.at += 1;
            return Some(if kind == 0 { TcpOption::EndOfList } else { TcpOption::NoOperation });
        }
        let len = usize::from(*self.options.get(self.at + 1)?);
        let data = self.options.get(self.at + 2..self.at + len)?;
        self.at += len;
        TcpOption::from_parts(kind, data)
    }
}

impl<'a> Iterator for TcpOptionIter<'a> {
    type Item = Result<TcpOption<'a>, BadOption>;

    fn next(&mut self) -> Option<Self::Item> {
        let kind = *self.options.get(self.at)?;
        let offset = self.at;
        let option = self.read(kind);
        if matches!(option, None | Some(TcpOption::EndOfList)) {
            self.at = self.options.len();
        }
        Some(option.ok_or(BadOption { offset }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::random::{Random, cases};

    fn any_option<'a>(random: &mut Random, bytes: &'a [u8; 32]) -> TcpOption<'a> {
        match random.below(12) {
            0 => TcpOption::NoOperation,
            1 => TcpOption::MaximumSegmentSize(random.word()),
            2 => TcpOption::WindowScale(random.byte()),
            3 => TcpOption::SackPermitted,
            4 => TcpOption::Sack(SackBlocks::from_wire(&bytes[..8 * random.below(5)]).unwrap()),
            5 => TcpOption::Timestamps(random.long(), random.long()),
            6 => TcpOption::Md5(bytes.first_chunk().unwrap()),
            7 => TcpOption::UserTimeout(random.word()),
            8 => TcpOption::Authentication(&bytes[..2 + random.below(16)]),
            9 => TcpOption::Multipath(&bytes[..1 + random.below(16)]),
            10 => TcpOption::FastOpen(&bytes[..random.below(17)]),
            _ => TcpOption::Other { kind: random.byte() | 0x80, data: &bytes[..random.below(9)] },
        }
    }

    #[test]
    fn every_kind_round_trips_in_a_list() {
        cases(|random| {
            let bytes = random.array();
            let mut list: Vec<_> = (0..4).map(|_| any_option(random, &bytes)).collect();
            list.push(TcpOption::EndOfList);
            let mut buffer = [0xff; 256];
            let mut at = 0;
            for option in &list {
                let len = option.emit(&mut buffer[at..]).unwrap();
                assert_eq!(option.emit(&mut [0; 64][..len - 1]), None);
                at += len;
            }
            // What stands behind the end of the list is not read.
            let read: Result<Vec<_>, _> = TcpOptionIter::new(&buffer).collect();
            assert_eq!(read, Ok(list));
        });
    }

    #[test]
    fn a_fault_ends_the_list_at_its_offset() {
        for options in [&[1, 8, 10, 0][..], &[1, 2, 0, 0], &[1, 2, 1], &[1, 2], &[1, 3, 4, 0, 0, 0]]
        {
            let read: Vec<_> = TcpOptionIter::new(options).collect();
            assert_eq!(read, [Ok(TcpOption::NoOperation), Err(BadOption { offset: 1 })]);
        }
    }
}
