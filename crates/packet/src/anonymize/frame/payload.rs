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
    /// Blanks the begin of a tunnel in a fragment, in every mode: the headers inside are not understood.
    pub(super) fn tunnel_in_fragment(data: &mut [u8], range: Range<usize>) -> Reach {
        if let Some(payload) = data.get_mut(range) {
            let before = sum(payload);
            payload.fill(0);
            keep_sum(payload, before);
        }
        Reach::Whole
    }

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
        if is_fragment {
            keep_sum(payload, before);
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

/// Sets the first two bytes so that the sum of all is what it was.
fn keep_sum(payload: &mut [u8], before: u16) {
    let Some(word) = payload.first_chunk_mut::<2>() else { return };
    *word = [0; 2];
    let word = add(before, !sum(payload)).to_be_bytes();
    payload.iter_mut().zip(word).for_each(|(to, from)| *to = from);
}
