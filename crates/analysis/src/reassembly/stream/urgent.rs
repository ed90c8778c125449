//! Urgent bytes, which most receivers read apart from the stream (RFC 6093, 3.1).

use super::StreamReassembler;
use crate::reassembly::fingerprint::Fingerprints;
use crate::reassembly::piece::{ArrivedSegment, Sink};

impl StreamReassembler {
    /// Notes where the urgent byte is, unless it was read already.
    #[cold]
    pub(super) const fn announce(&mut self, urgent: u64) {
        let is_further = self.urgent == u64::MAX || urgent > self.urgent;
        if urgent >= self.next && urgent != u64::MAX && is_further {
            self.urgent = urgent;
        }
    }

    /// Passes over an urgent byte, which is remembered as any other, and not read.
    pub(super) fn pass_over(
        &mut self,
        it: &ArrivedSegment<'_>,
        keys: &Fingerprints,
        to: &mut impl Sink,
    ) {
        if it.position < self.next {
            return;
        }
        let fingerprint = (!it.data.is_empty()).then(|| keys.of(it.data));
        self.recent.note(1, fingerprint, self.next, self.acknowledged);
        self.next += 1;
        if self.end != u64::MAX {
            self.end_time = self.end_time.max(it.time);
            self.note_end(to);
        }
    }
}
