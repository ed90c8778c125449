//! Frames on their way to trackers, for tests.

use netsniff_packet::{LinkType, Packet, Timestamp};

use super::FlowTracker;
use crate::ingress::Ingress;
use crate::record::{Observer, Record, SortKey};
use crate::{DatagramBatch, Limits, Options};

/// Wants no record.
pub(super) struct Nobody;

impl Observer for Nobody {
    fn record<R: Record>(&mut self, _: &SortKey, _: &R) {}
}

/// Decodes frames of Ethernet.
pub(super) struct Wire {
    pub(super) ingress: Ingress,
    units: DatagramBatch,
}

impl Wire {
    pub(super) fn new() -> Self {
        let ingress = Ingress::new(Limits::default(), Options::default());
        Self { ingress, units: DatagramBatch::default() }
    }

    /// Hands a frame to each of the trackers.
    pub(super) fn frame<O: Observer>(
        &mut self,
        timestamp: Timestamp,
        data: &[u8],
        trackers: &mut [&mut FlowTracker],
        observer: &mut O,
    ) {
        let (wire_len, link_type) = (data.len() as u32, LinkType::ETHERNET);
        let packet = Packet { timestamp, data, wire_len, link_type, interface: 0 };
        let _ = self.ingress.packet(&packet, 0..data.len(), &mut self.units, observer);
        for tracker in trackers {
            tracker.units(self.units.as_slice().iter(), data, observer);
        }
        self.units.clear();
    }
}
