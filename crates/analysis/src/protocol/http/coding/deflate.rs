//! gzip (RFC 1952), zlib (RFC 1950) and bare deflate (RFC 1951).

use super::gzip::{self, Gzip};
use super::inflater::{self, Inflater};
use super::{Outcome, Step};

/// Undoes deflate, whose kind the first two bytes tell: servers that say deflate send zlib, bare deflate
/// or gzip, whichever they like.
#[derive(Debug)]
pub(super) enum Deflate {
    /// Too few bytes to tell what it is.
    Begin(Option<u8>),
    Inflating(Box<Wrapped>),
}

/// Deflate in its wrapping.
#[derive(Debug)]
pub(super) struct Wrapped {
    inflater: Inflater,
    gzip: Option<Gzip>,
}

impl Default for Deflate {
    fn default() -> Self {
        Self::Begin(None)
    }
}

impl Deflate {
    /// Decodes some of `data` to `out`.
    pub(super) fn step(&mut self, data: &[u8], out: &mut [u8]) -> Step {
        let mut wrapped = match (&mut *self, data) {
            (Self::Inflating(wrapped), _) => return wrapped.step(data, out),
            (Self::Begin(None), &[first, second, ..]) => Wrapped::of(first, second),
            (Self::Begin(None), _) => {
                *self = Self::Begin(data.first().copied());
                return Step { took: data.len(), gave: 0, outcome: Outcome::Open };
            }
            (&mut Self::Begin(Some(_)), &[]) => {
                return Step { took: 0, gave: 0, outcome: Outcome::Open };
            }
            (&mut Self::Begin(Some(first)), &[second, ..]) => {
                let mut wrapped = Wrapped::of(first, second);
                // Nothing comes out of one byte.
                let step = wrapped.step(&[first], out);
                if step.outcome != Outcome::Open {
                    return Step { took: 0, ..step };
                }
                wrapped
            }
        };
        let step = wrapped.step(data, out);
        *self = Self::Inflating(Box::new(wrapped));
        step
    }

    /// Bytes that it holds outside itself.
    pub(super) const fn heap_bytes(&self) -> usize {
        match self {
            Self::Begin(_) => 0,
            Self::Inflating(_) => size_of::<Wrapped>() + inflater::BYTES,
        }
    }
}

impl Wrapped {
    /// What begins with two bytes.
    fn of(first: u8, second: u8) -> Self {
        let is_zlib = first & 0xf == 8
            && first >> 4 <= 7
            && u16::from_be_bytes([first, second]).is_multiple_of(31);
        let is_gzip = [first, second] == gzip::MAGIC;
        Self { inflater: Inflater::new(is_zlib), gzip: is_gzip.then(Gzip::default) }
    }

    fn step(&mut self, data: &[u8], out: &mut [u8]) -> Step {
        let Self { inflater, gzip } = self;
        let Some(gzip) = gzip else { return inflater.step(data, out) };
        let (before, outcome) = gzip.frame(data);
        if !gzip.is_at_data() {
            return Step { took: before, gave: 0, outcome };
        }
        let data = data.get(before..).unwrap_or_default();
        let Step { took, gave, outcome } = inflater.step(data, out);
        gzip.decoded(out.get(..gave).unwrap_or_default());
        let mut step = Step { took: before + took, gave, outcome };
        if outcome == Outcome::Ended {
            gzip.data_ended();
            let (behind, outcome) = gzip.frame(data.get(took..).unwrap_or_default());
            (step.took, step.outcome) = (step.took + behind, outcome);
        }
        step
    }
}
