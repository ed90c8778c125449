//! What the flows are fed with: one datagram, decoded, with its place in the input.

use netsniff_packet::Timestamp;
use netsniff_packet::decode::{Ip, Transport};

use crate::flow::key::FlowKey;
use crate::uid::Uid;

/// One datagram on its way from decoding to its flow.
///
/// A packet yields one for its outermost IP header and one more for each tunnel level inside.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// When its packet was seen, as the source stamped it.
    pub time: Timestamp,
    /// Engine time: the latest stamp so far.
    pub now: Timestamp,
    /// Number of the packet in the input, from 1.
    pub ordinal: u64,
    /// The IP header.
    pub ip: Ip,
    /// The transport header.
    pub transport: Transport,
    /// VLAN ids, outer and inner.
    pub vlan: [Option<u16>; 2],
    /// The flow that this one travels in.
    pub parent: Option<Uid>,
}

impl Unit {
    /// 128 bits that name the flow with this `key`, if this is its first datagram.
    #[must_use]
    pub fn flow_name(&self, key: &FlowKey) -> u128 {
        let context = (u64::from(self.vlan[0].map_or(0, |id| id + 1)) << 16)
            ^ u64::from(self.vlan[1].map_or(0, |id| id + 1))
            ^ self.parent.map_or(0, |parent| parent.word());
        key.name(context, self.now.nanos(), self.ordinal)
    }
}
