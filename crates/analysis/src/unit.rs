//! What the flows are fed with: one datagram, decoded, with its place in the input.

use core::ops::Range;
use std::sync::Arc;

use netsniff_packet::Timestamp;
use netsniff_packet::decode::{Ip, Transport};

use crate::flow::key::FlowKey;
use crate::uid::Uid;

/// One datagram on its way from decoding to its flow.
///
/// A packet yields one for its outermost IP header and one more for each tunnel level inside.
#[derive(Clone, Debug)]
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
    /// Where the bytes that offsets in `ip` and `transport` refer to lie among the bytes that came
    /// with the units.
    pub bytes: Range<usize>,
    /// Those bytes themselves, where they were put together from fragments.
    pub reassembled: Option<Arc<[u8]>>,
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

    /// The captured payload of the transport header, out of the bytes that came with the unit.
    #[must_use]
    pub fn payload<'a>(&'a self, bytes: &'a [u8]) -> &'a [u8] {
        let (offset, len) = match &self.transport {
            Transport::Tcp(tcp) => (tcp.payload_offset, tcp.payload_captured),
            Transport::Udp(udp) => (udp.payload_offset, udp.payload_captured),
            Transport::Icmp(icmp) => (icmp.payload_offset, icmp.payload_captured),
            Transport::Sctp(sctp) => (sctp.payload_offset, sctp.payload_captured),
            Transport::Other | Transport::None => {
                (self.ip.payload_offset, self.ip.payload_captured)
            }
        };
        let all = match &self.reassembled {
            Some(bytes) => bytes,
            None => bytes.get(self.bytes.clone()).unwrap_or_default(),
        };
        let (start, len) = (offset as usize, len as usize);
        all.get(start..start.saturating_add(len)).unwrap_or_default()
    }
}
