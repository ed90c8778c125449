//! Whether a datagram's checksums are right, and what becomes of it if not.

use netsniff_packet::checksum::{self, ChecksumVerdict};

use super::update::note_parent;
use super::{FlowTracker, Lookup};
use crate::checksums::Checked;
use crate::depth::Depth;
use crate::flow::TransportState;
use crate::flow::history::is_power_of_ten;
use crate::flow::tcp::TcpConnection;
use crate::options::ChecksumMode;
use crate::unit::DecodedDatagram;

impl FlowTracker {
    /// Looks at the datagram's checksum, and tells whether it is to be analysed.
    #[inline]
    pub(super) fn passes_checksums(
        &mut self,
        lookup: &Lookup<'_>,
        bytes: &[u8],
        place: u32,
        depth: Depth,
    ) -> bool {
        let unit = lookup.unit;
        if !self.checksums.looks_at(depth) {
            self.verdict = ChecksumVerdict::Unknown;
            self.note_unchecked(unit);
            return true;
        }
        let checked = Checked::of(&unit.decoded.transport);
        let verdict = match (checked, unit.checksum) {
            (None, _) => ChecksumVerdict::Absent,
            (_, Some(known)) => known,
            (_, None) => checksum::transport(&unit.decoded, unit.data(bytes)),
        };
        self.verdict = verdict;
        if let Some(checked) = checked {
            self.statistics.checksum(checked, verdict);
        }
        if !verdict.is_wrong() && unit.header_checksum != ChecksumVerdict::Bad {
            return true;
        }
        let Some(checked) = checked.filter(|_| self.checksums.discards(verdict)) else {
            self.count_bad(lookup, verdict, place);
            return true;
        };
        self.discard(lookup, checked, place);
        false
    }

    /// Counts the checksum of a datagram that nobody looks at, unless nobody wants to know of any.
    pub(super) const fn note_unchecked(&mut self, unit: &DecodedDatagram) {
        if !matches!(self.checksums, ChecksumMode::Ignore)
            && let Some(checked) = Checked::of(&unit.decoded.transport)
        {
            self.statistics.checksum(checked, ChecksumVerdict::Unknown);
        }
    }

    /// Counts a datagram that is analysed all the same.
    #[cold]
    fn count_bad(&mut self, lookup: &Lookup<'_>, verdict: ChecksumVerdict, place: u32) {
        let is_bad =
            verdict == ChecksumVerdict::Bad || lookup.unit.header_checksum == ChecksumVerdict::Bad;
        if let Some(flow) = self.table.flow_mut(place) {
            let count = &mut flow.bad_checksums[lookup.side as usize];
            *count = count.saturating_add(is_bad.into());
        }
    }

    /// Leaves a datagram out: as in Zeek, its flow learns of it and of the tunnel around it, and no
    /// more. ICMP has no letters there.
    #[cold]
    fn discard(&mut self, lookup: &Lookup<'_>, checked: Checked, place: u32) {
        let Lookup { unit, side, .. } = *lookup;
        self.release(place);
        let Some(flow) = self.table.flow_mut(place) else { return };
        let mut change = 0;
        if unit.parent.is_some() || flow.is_tunnelled {
            change = note_parent(flow, unit, &self.limits, &mut self.weirds);
        }
        let (weird, has_letter) = match checked {
            Checked::Tcp => ("bad_TCP_checksum", true),
            Checked::Udp => ("bad_UDP_checksum", true),
            Checked::Icmp => ("bad_ICMP_checksum", false),
            // Never known to be wrong.
            Checked::Sctp => return,
        };
        self.weirds.add(weird);
        self.statistics.discarded += 1;
        let before = flow.heap_bytes() as isize;
        if matches!(flow.exchange, TransportState::Unopened) {
            flow.exchange = TransportState::connection(TcpConnection::at(flow.depth.now()));
        }
        let count = &mut flow.bad_checksums[side as usize];
        *count = count.saturating_add(1);
        if has_letter && is_power_of_ten(*count) {
            flow.letters.push(if flow.originator == side { b'C' } else { b'c' });
        }
        change += flow.heap_bytes() as isize - before;
        self.note_change(change);
    }
}
