//! Bodies of which only the first bytes are decoded, and how long they are all the same.

use super::coding::{BLOCK, Budget, Decoder};

/// Bytes that are decoded of such a body: as many as tell its kind.
const DECODED: u64 = crate::file::mime::HEAD as u64;

/// The most bytes that one of deflate stands for (258 for each two bits), rounded up.
const MOST_RATIO: u64 = 1_032;

/// A body of which no more than [`DECODED`] bytes are decoded.
#[derive(Debug)]
pub(super) struct Undecoded {
    /// What the connection had carried before it.
    carried: u64,
    /// Bytes as they were sent.
    sent: u64,
    /// The first two of them.
    first: [u8; 2],
    /// The last four of them.
    last: [u8; 4],
    /// Bytes that may yet be decoded.
    room: u64,
    /// What tells how long it is.
    told_by: ToldBy,
    /// How long it is, where something tells, once all of it has come.
    length: Option<u64>,
}

/// What tells how long a body is that was not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToldBy {
    /// It was sent as it is.
    Framing,
    /// The trailer of gzip.
    Trailer,
    Nothing,
}

impl Undecoded {
    /// Nothing of it has come.
    pub(super) const fn new(budget: &Budget) -> Self {
        let carried = budget.carried();
        Self {
            carried,
            sent: 0,
            first: [0; 2],
            last: [0; 4],
            room: DECODED,
            told_by: ToldBy::Nothing,
            length: None,
        }
    }

    /// Whether all that may be decoded has been, so that the length of the body is not that of what came out.
    pub(super) const fn is_cut(&self) -> bool {
        self.room == 0
    }

    /// How long it is, where something tells.
    pub(super) const fn length(&self) -> Option<u64> {
        self.length
    }

    /// What of the bytes that came out is still wanted.
    pub(super) fn wanted<'a>(&mut self, clear: &'a [u8]) -> &'a [u8] {
        let len = clear.len().min(usize::try_from(self.room).unwrap_or(usize::MAX));
        self.room -= len as u64;
        clear.get(..len).unwrap_or(clear)
    }

    /// Takes note of bytes as they were sent.
    pub(super) fn note(&mut self, data: &[u8]) {
        for (at, &byte) in (self.sent..2).zip(data) {
            self.first[usize::from(at == 1)] = byte;
        }
        match data.last_chunk::<4>() {
            Some(last) => self.last = *last,
            None => {
                for &byte in data {
                    self.last.rotate_left(1);
                    self.last[3] = byte;
                }
            }
        }
        self.sent = self.sent.saturating_add(data.len() as u64);
    }

    /// What the connection has spent once this body was cut, of which `wanted` bytes came
    /// out behind what it had spent `before`: however its bytes are cut into segments.
    pub(super) fn spent(&self, before: Budget, wanted: u64) -> Budget {
        let mut budget = before;
        budget.spend(usize::try_from(wanted).unwrap_or(usize::MAX));
        budget.set_carried(self.carried());
        budget
    }

    /// What the connection has carried with it, in blocks.
    pub(super) const fn carried(&self) -> u64 {
        self.carried.saturating_add(self.sent.div_ceil(BLOCK).saturating_mul(BLOCK))
    }

    /// Lets go of its decoder, since enough came out.
    pub(super) fn stop(&mut self, decoder: &mut Decoder) {
        let is_gzip = self.first == [0x1f, 0x8b] && decoder.is_deflate();
        self.told_by = match decoder.is_untouched() {
            true => ToldBy::Framing,
            false if is_gzip => ToldBy::Trailer,
            false => ToldBy::Nothing,
        };
        decoder.stop();
    }

    /// Learns that all of it has come.
    pub(super) fn end(&mut self) {
        self.length = match self.told_by {
            ToldBy::Framing => Some(self.sent),
            // RFC 1952, 2.3.1: ISIZE, modulo 2^32.
            ToldBy::Trailer => {
                let length = u64::from(u32::from_le_bytes(self.last));
                Some(length).filter(|&length| self.is_plausible(length))
            }
            ToldBy::Nothing => None,
        };
    }

    /// Whether gzip makes of a content of so many bytes what was sent: it neither shrinks more than it can, nor
    /// grows but for headers of blocks.
    const fn is_plausible(&self, length: u64) -> bool {
        length >= DECODED
            && length <= self.sent.saturating_mul(MOST_RATIO)
            && self.sent <= length + length / 1_000 + 4_096
    }
}
