//! Payload: kept, cut, or replaced by bytes that tell nothing but whether it was the same.

use core::ops::Range;

use super::mend::{add, sum};
use super::{Cut, PacketAnonymizer, Reach};
use crate::anonymize::prf::Domain;

/// What becomes of payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PayloadMode {
    /// It stays, with all that it tells.
    Keep,
    /// It is cut, as by a snaplen. That of fragments becomes zeros, so that they can be put together.
    #[default]
    Cut,
    /// It is replaced by as many bytes, the same for the same.
    Hash,
}

impl PacketAnonymizer {
    /// Changes the payload in a range of a packet. Of a fragment its sum stays, since the checksum that
    /// covers it is in another packet.
    pub(super) fn payload(&self, data: &mut [u8], range: Range<usize>, is_fragment: bool) -> Reach {
        let start = range.start;
        let Some(payload) = data.get_mut(range).filter(|payload| !payload.is_empty()) else {
            return Reach::Whole;
        };
        let before = sum(payload);
        match self.payload {
            PayloadMode::Keep => return Reach::Whole,
            PayloadMode::Cut if !is_fragment => return Reach::Until(start, Cut::Payload),
            PayloadMode::Cut => payload.fill(0),
            PayloadMode::Hash => self.hash(payload),
        }
        if is_fragment && let Some(word) = payload.first_chunk_mut::<2>() {
            *word = [0; 2];
            let rest = sum(payload);
            if let Some(word) = payload.first_chunk_mut::<2>() {
                *word = add(before, !rest).to_be_bytes();
            }
        }
        Reach::Whole
    }

    /// Replaces bytes by a stream that a keyed hash of them begins.
    fn hash(&self, payload: &mut [u8]) {
        let names = &self.addresses.anonymizer().names;
        let mut counter = names.of(Domain::Payload, payload);
        for chunk in payload.chunks_mut(16) {
            let block = names.block(counter).to_be_bytes();
            chunk.iter_mut().zip(block).for_each(|(to, from)| *to = from);
            counter = counter.wrapping_add(1);
        }
    }
}
