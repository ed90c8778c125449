//! What became of the messages of one exporter and domain.

use netsniff_packet::Timestamp;

use crate::record::OwnCounts;
use crate::sampling::Sampling;

/// Counts of one exporter and domain since its first message.
///
/// `records` is `flows` + `options` + `others`. `sets` is `decoded_sets` + `waiting_sets` + `undecoded_sets`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamBooks {
    /// When the first message came.
    pub first: Timestamp,
    /// When the last one came.
    pub last: Timestamp,
    /// Messages, but for those that came twice.
    pub messages: u64,
    /// Messages that came twice, and were left out.
    pub duplicates: u64,
    /// Messages that came behind later ones.
    pub late: u64,
    /// Bytes of all messages.
    pub bytes: u64,
    /// Sets of data, or for NetFlow 5 messages.
    pub sets: u64,
    /// Those that were read.
    pub decoded_sets: u64,
    /// Those that wait for their template now.
    pub waiting_sets: u64,
    /// Those that were given up, since no template came for them, or since they are not what their template says.
    pub undecoded_sets: u64,
    /// Messages of which a part could not be told into sets.
    pub damaged: u64,
    /// Records that were read.
    pub records: u64,
    /// Records of flows.
    pub flows: u64,
    /// Records of the exporter itself.
    pub options: u64,
    /// Records that tell of no connection: without addresses, ports or times, or of an event.
    pub others: u64,
    /// Templates that hold now.
    pub templates: u64,
    /// Templates that were told, also again.
    pub templates_told: u64,
    /// Templates that make no sense, or for which there was no room.
    pub templates_refused: u64,
    /// Templates that were withdrawn, or forgotten since they were not told again.
    pub templates_ended: u64,
    /// How often the numbers began anew.
    pub restarts: u64,
    /// What is missing by sequence numbers: messages of NetFlow 9, records of the others. Unset where sets were not
    /// read, since nobody knows how many records they have, and where messages came too late to tell.
    pub lost: Option<u64>,
    /// What was told of sampling last.
    pub sampling: Sampling,
    /// What the exporter counted of itself.
    pub own: OwnCounts,
}

impl StreamBooks {
    pub(super) fn new() -> Self {
        Self {
            first: Timestamp::MAX,
            last: Timestamp::MIN,
            messages: 0,
            duplicates: 0,
            late: 0,
            bytes: 0,
            sets: 0,
            decoded_sets: 0,
            waiting_sets: 0,
            undecoded_sets: 0,
            damaged: 0,
            records: 0,
            flows: 0,
            options: 0,
            others: 0,
            templates: 0,
            templates_told: 0,
            templates_refused: 0,
            templates_ended: 0,
            restarts: 0,
            lost: None,
            sampling: Sampling::Untold,
            own: OwnCounts::default(),
        }
    }

    /// Whether all records are known of what did not wait.
    pub(super) const fn is_all_read(&self) -> bool {
        self.undecoded_sets == 0 && self.damaged == 0
    }

    pub(super) fn note_own(&mut self, own: &OwnCounts) {
        let OwnCounts { exported_flows, not_sent_flows, ignored_packets, dropped_packets } = own;
        self.own = OwnCounts {
            exported_flows: exported_flows.or(self.own.exported_flows),
            not_sent_flows: not_sent_flows.or(self.own.not_sent_flows),
            ignored_packets: ignored_packets.or(self.own.ignored_packets),
            dropped_packets: dropped_packets.or(self.own.dropped_packets),
        };
    }
}
