//! gzip (RFC 1952), zlib (RFC 1950) and bare deflate (RFC 1951).

use flate2::{Decompress, FlushDecompress, Status};

use super::{Outcome, Step};

/// Undoes deflate, whose kind the first two bytes tell: servers that say deflate send zlib, bare deflate
/// or gzip, whichever they like.
#[derive(Debug)]
pub(super) enum Deflate {
    /// Too few bytes to tell what it is.
    Begin(Option<u8>),
    Inflating(Box<Decompress>),
}

/// Bytes that a decoder for one body takes, with its window.
const DECODER_BYTES: usize = 48 << 10;

/// Largest window of deflate, as a power of two.
const WINDOW_BITS: u8 = 15;

impl Default for Deflate {
    fn default() -> Self {
        Self::Begin(None)
    }
}

impl Deflate {
    /// Decodes some of `data` to `out`.
    pub(super) fn step(&mut self, data: &[u8], out: &mut [u8]) -> Step {
        let inflater = match (&mut *self, data) {
            (Self::Inflating(inflater), _) => return inflate(inflater, data, out),
            (Self::Begin(None), &[first, second, ..]) => inflater(first, second),
            (Self::Begin(None), _) => {
                *self = Self::Begin(data.first().copied());
                return Step { took: data.len(), gave: 0, outcome: Outcome::Open };
            }
            (&mut Self::Begin(Some(_)), &[]) => {
                return Step { took: 0, gave: 0, outcome: Outcome::Open };
            }
            (&mut Self::Begin(Some(first)), &[second, ..]) => {
                let mut inflater = inflater(first, second);
                // Nothing comes out of one byte.
                let step = inflate(&mut inflater, &[first], out);
                if step.outcome != Outcome::Open {
                    return Step { took: 0, ..step };
                }
                inflater
            }
        };
        let mut inflater = Box::new(inflater);
        let step = inflate(&mut inflater, data, out);
        *self = Self::Inflating(inflater);
        step
    }

    /// Bytes that it holds outside itself.
    pub(super) const fn heap_bytes(&self) -> usize {
        match self {
            Self::Begin(_) => 0,
            Self::Inflating(_) => DECODER_BYTES,
        }
    }
}

fn inflate(inflater: &mut Decompress, data: &[u8], out: &mut [u8]) -> Step {
    let before = (inflater.total_in(), inflater.total_out());
    let result = inflater.decompress(data, out, FlushDecompress::None);
    let count = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(usize::MAX);
    let outcome = match result {
        Ok(Status::StreamEnd) => Outcome::Ended,
        Ok(_) => Outcome::Open,
        Err(_) => Outcome::Broken,
    };
    Step {
        took: count(inflater.total_in(), before.0),
        gave: count(inflater.total_out(), before.1),
        outcome,
    }
}

fn inflater(first: u8, second: u8) -> Decompress {
    let is_zlib = first & 0xf == 8
        && first >> 4 <= 7
        && u16::from_be_bytes([first, second]).is_multiple_of(31);
    if (first, second) == (0x1f, 0x8b) {
        Decompress::new_gzip(WINDOW_BITS)
    } else {
        Decompress::new(is_zlib)
    }
}
