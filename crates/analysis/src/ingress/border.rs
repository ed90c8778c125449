//! What decoding remembers of the packets before a file: at most borders between files, nothing that matters.

use netsniff_packet::Timestamp;

use super::boundary::Boundary;
use super::{CLOCK, Ingress};
use crate::record::Observer;

/// Bits of an ordinal that count the packets of one part of an input. More would take years to read.
const PART_BITS: u32 = 40;

impl Ingress {
    /// Numbers packets as those of the part of the input that counts so from 0: behind all packets of the parts
    /// before it, however many these are.
    pub(crate) fn begin_part(&mut self, part: u32) {
        self.ordinal = u64::from(part) << PART_BITS;
    }

    /// Ends what ends until `first`, the stamp of the packet that comes next. A look waits for that packet.
    pub(crate) fn settle_before<O: Observer>(&mut self, first: Timestamp, observer: &mut O) {
        self.fragments.expire(first);
        self.tunnels.advance(first, self.next_look, observer);
    }

    /// Whether a packet with the stamp `first`, which is believed, and all that come behind it are taken as they
    /// were if no packet had come before.
    pub(crate) fn is_over_before(&self, first: Timestamp) -> bool {
        self.is_new_to_others(first) && self.next_look <= first && self.tunnels.is_empty()
    }

    /// The same, but for looks, and for packets of pairs of hosts with tunnels that are known.
    pub(crate) fn is_new_to_others(&self, first: Timestamp) -> bool {
        // Fewer packets are no clock, so that later ones are believed which are not, were these left out.
        let is_clock = self.ordinal >= CLOCK && !self.clock.has_doubt();
        is_clock
            && self.clock.now() < first
            && self.fragments.is_empty()
            && self.series.is_none()
            && !self.is_watched
    }

    /// Notes from now on which pairs of hosts there are, up to `most`.
    pub(crate) fn note_boundary(&mut self, most: usize) {
        self.boundary = Some(Box::new(Boundary::new(self.limits, most)));
    }

    /// The pairs that were noted, if they were.
    pub(crate) fn take_boundary(&mut self) -> Option<Boundary> {
        self.boundary.take().map(|boundary| *boundary)
    }
}
