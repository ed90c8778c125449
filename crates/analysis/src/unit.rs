//! What the flows are fed with: one datagram, decoded, with its place in the input.

use core::ops::Range;
use std::sync::Arc;

use netsniff_packet::Timestamp;
use netsniff_packet::checksum::ChecksumVerdict;
use netsniff_packet::decode::{Decoded, Ip, Transport};

use crate::key::uid::Uid;
use crate::key::{FlowKey, Side};
use crate::series::IntervalEnd;

/// One datagram on its way from decoding to its flow.
///
/// A packet yields one for its outermost IP header and one more for each tunnel level inside.
#[derive(Clone, Debug)]
pub struct DecodedDatagram {
    /// When its packet was seen, as the source stamped it.
    pub time: Timestamp,
    /// Engine time: the latest stamp so far.
    pub now: Timestamp,
    /// Number of the packet in the input, from 1.
    pub ordinal: u64,
    /// Number of the packet among those between the same outermost addresses at the same engine time, from 0.
    pub tie: u64,
    /// What the headers say.
    pub decoded: Decoded,
    /// Where the bytes that offsets in `decoded` refer to lie among the bytes that came with the
    /// units.
    pub bytes: Range<usize>,
    /// Those bytes themselves, where they were put together from fragments.
    pub reassembled: Option<Arc<Joined>>,
    /// The flow that this one travels in.
    pub parent: Option<Uid>,
    /// What the checksum of the IP header says, or those of all fragments that it was put together
    /// from; unknown where checksums are not looked at.
    pub header_checksum: ChecksumVerdict,
    /// What the transport checksum says, where that had to be known before the flow.
    pub checksum: Option<ChecksumVerdict>,
    /// Whether it stands for its packet where packets are counted: of a packet that was analysed and
    /// belongs to any flow, one unit does.
    pub is_packet: bool,
}

/// What was put together from fragments.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The payload of all of them.
    pub bytes: Box<[u8]>,
    /// The numbers of the packets that brought them, in order.
    pub packets: Box<[u64]>,
}

impl Default for DecodedDatagram {
    fn default() -> Self {
        Self {
            time: Timestamp::EPOCH,
            now: Timestamp::EPOCH,
            ordinal: 0,
            tie: 0,
            decoded: Decoded::default(),
            bytes: 0..0,
            reassembled: None,
            parent: None,
            header_checksum: ChecksumVerdict::default(),
            checksum: None,
            is_packet: false,
        }
    }
}

impl DecodedDatagram {
    /// The IP header, where the unit has one.
    #[must_use]
    #[inline]
    pub const fn ip(&self) -> Option<&Ip> {
        self.decoded.ip.as_ref()
    }

    /// The key of its flow and the side that sent it; `None` where it belongs to none.
    #[must_use]
    #[inline]
    pub fn flow_key(&self) -> Option<(FlowKey, Side)> {
        FlowKey::of(self.ip()?, &self.decoded.transport)
    }

    /// A hash of its two addresses, [`FlowKey::pair`], where it has a header of IP.
    #[must_use]
    #[inline]
    pub fn pair(&self) -> Option<u64> {
        self.ip().map(|ip| FlowKey::pair(ip.source, ip.destination))
    }

    /// Belongs to its pair of hosts and a protocol above IP from now on, whatever its ports are.
    pub(crate) const fn stand_above_ip(&mut self, protocol: u8) {
        self.decoded.transport = Transport::Other;
        if let Some(ip) = &mut self.decoded.ip {
            ip.protocol = protocol;
        }
    }

    /// 128 bits that name the flow with this `key`, if this is its first datagram.
    #[must_use]
    pub fn flow_name(&self, key: &FlowKey) -> u128 {
        let context = (u64::from(self.decoded.vlan.map_or(0, |id| id + 1)) << 16)
            ^ u64::from(self.decoded.inner_vlan.map_or(0, |id| id + 1))
            ^ self.parent.map_or(0, |parent| parent.word());
        key.name(context, self.now.nanos(), self.tie)
    }

    /// The captured payload of the transport header, out of the bytes that came with the unit.
    #[must_use]
    pub fn payload<'a>(&'a self, bytes: &'a [u8]) -> &'a [u8] {
        let (offset, len) = match &self.decoded.transport {
            Transport::Tcp(tcp) => (tcp.payload_offset, tcp.payload_captured),
            Transport::Udp(udp) => (udp.payload_offset, udp.payload_captured),
            Transport::Icmp(icmp) => (icmp.payload_offset, icmp.payload_captured),
            Transport::Sctp(sctp) => (sctp.payload_offset, sctp.payload_captured),
            Transport::Other | Transport::None => {
                self.ip().map_or((0, 0), |ip| (ip.payload_offset, ip.payload_captured))
            }
        };
        self.part(bytes, offset, len)
    }

    /// What lies at an offset that `decoded` tells, out of the bytes that came with the unit.
    #[must_use]
    #[inline]
    pub(crate) fn part<'a>(&'a self, bytes: &'a [u8], offset: u32, len: u32) -> &'a [u8] {
        let (start, len) = (offset as usize, len as usize);
        self.data(bytes).get(start..start.saturating_add(len)).unwrap_or_default()
    }

    /// The bytes that offsets in `decoded` refer to, out of the bytes that came with the unit.
    #[must_use]
    #[inline]
    pub fn data<'a>(&'a self, bytes: &'a [u8]) -> &'a [u8] {
        match &self.reassembled {
            Some(joined) => &joined.bytes,
            None => bytes.get(self.bytes.clone()).unwrap_or_default(),
        }
    }
}

/// Datagrams in order, in memory that is used again and again.
///
/// Headers are decoded into their final place: a unit is a few cache lines, and most packets yield
/// just one.
#[derive(Clone, Debug, Default)]
pub struct DatagramBatch {
    all: Vec<DecodedDatagram>,
    len: usize,
    holes: Vec<CaptureHole>,
}

/// Why a place among datagrams matters to all flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoleKind {
    /// The capture begins here: what came before is unknown.
    Begin,
    /// The capture lost something.
    Loss,
    /// Intervals of the log `series` are over that belong at this place.
    IntervalEnd(IntervalEnd),
}

/// A place among datagrams that all flows must know: mostly one at which something is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureHole {
    /// How many of the datagrams come before it.
    pub at: usize,
    /// Engine time at the hole.
    pub now: Timestamp,
    /// What the hole stands for.
    pub kind: HoleKind,
}

impl DatagramBatch {
    /// The units in the order of their packets.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[DecodedDatagram] {
        self.all.get(..self.len).unwrap_or_default()
    }

    /// Forgets the units and keeps their memory.
    pub fn clear(&mut self) {
        self.len = 0;
        self.holes.clear();
    }

    /// Where something is missing, in order.
    #[must_use]
    #[inline]
    pub fn holes(&self) -> &[CaptureHole] {
        &self.holes
    }

    /// Notes that the capture begins here, lost something, or an interval is over, at engine time `now`.
    pub fn note_hole(&mut self, now: Timestamp, kind: HoleKind) {
        self.holes.push(CaptureHole { at: self.len, now, kind });
    }

    /// Adds the unit of the next packet.
    pub fn push(&mut self, unit: DecodedDatagram) {
        *self.spare() = unit;
        self.len += 1;
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Lets the last of the units from place `first` on that belongs to a flow, which is the innermost,
    /// stand for their packet. Returns whether there is one.
    pub fn mark_packet(&mut self, first: usize) -> bool {
        let new = self.all.get_mut(first..self.len).unwrap_or_default();
        let last = new.iter_mut().rev().find(|unit| unit.flow_key().is_some());
        if let Some(unit) = last {
            unit.is_packet = true;
            return true;
        }
        false
    }

    /// The place of the next unit, with whatever was left there. It becomes a unit with
    /// [`Self::commit`].
    #[inline]
    pub fn spare(&mut self) -> &mut DecodedDatagram {
        if self.len == self.all.len() {
            self.all.push(DecodedDatagram::default());
        }
        &mut self.all[self.len]
    }

    /// Makes a unit of the place that [`Self::spare`] gave.
    #[inline]
    pub fn commit(&mut self) {
        self.len = (self.len + 1).min(self.all.len());
    }
}
