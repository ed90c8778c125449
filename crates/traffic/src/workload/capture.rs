//! One source capture of a mix: its packets with idle gaps clipped, its addresses numbered, its traits counted.

use std::collections::HashSet;

use netsniff_packet::{LinkType, Packet, Timestamp};

use super::category::{self, Category};
use crate::addresses::Numbered;
use crate::rewrite::{Outer, rewrite_addresses};

/// Longest pause between two packets of a capture, in nanoseconds; longer ones are cut to it.
pub const MAX_GAP: i64 = 400_000_000;

/// Why a capture cannot take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rejection {
    /// A packet was cut by the snaplen.
    Cut,
    /// A packet's link type has no Ethernet form.
    LinkType(LinkType),
    /// It holds no IP packet.
    NoIp,
    /// It is larger than 2 GiB.
    Large,
}

/// What a capture adds to a mix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// Number of packets.
    pub packets: u64,
    /// Bytes of their frames.
    pub bytes: u64,
    /// TCP and UDP packets without payload.
    pub empty: u64,
    /// Flows: five-tuples without direction.
    pub flows: u64,
    /// Bytes by category, in the order of [`Category::ALL`].
    pub by_category: [u64; category::COUNT],
}

impl Traits {
    /// Counts one frame, but not its flow.
    pub fn count(&mut self, outer: Option<&Outer>, subject: Option<Category>, frame_len: usize) {
        self.packets += 1;
        self.bytes += frame_len as u64;
        let category =
            outer.and_then(|outer| Category::from_ports(outer.protocol, outer.ports)).or(subject);
        self.by_category[category.unwrap_or(Category::Other) as usize] += frame_len as u64;
        let empty = |outer: &Outer| matches!(outer.protocol, 6 | 17) && outer.payload_len == 0;
        self.empty += u64::from(outer.is_some_and(empty));
    }
}

/// The five-tuple of a packet with its lower end first.
#[must_use]
pub fn flow_of(outer: &Outer) -> Outer {
    let (source, destination) = ((outer.source, outer.ports.0), (outer.destination, outer.ports.1));
    let (low, high) =
        if source <= destination { (source, destination) } else { (destination, source) };
    Outer {
        source: low.0,
        destination: high.0,
        ports: (low.1, high.1),
        payload_len: 0,
        protocol: outer.protocol,
    }
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Nanoseconds since the capture's first packet, clipped; never less than the frame before.
    at: i64,
    end: u32,
}

/// A capture in memory, as Ethernet frames.
#[derive(Clone, Debug)]
pub struct Capture {
    subject: Option<Category>,
    data: Vec<u8>,
    frames: Vec<Frame>,
    last_stamp: Option<i64>,
    addresses: Numbered,
    traits: Traits,
    flows: HashSet<Outer>,
}

impl Capture {
    /// An empty capture; `subject` is the category of what no port tells.
    #[must_use]
    pub fn new(subject: Option<Category>) -> Self {
        Self {
            subject,
            data: Vec::new(),
            frames: Vec::new(),
            last_stamp: None,
            addresses: Numbered::default(),
            traits: Traits::default(),
            flows: HashSet::new(),
        }
    }

    /// Takes in the next packet of the file.
    ///
    /// # Errors
    ///
    /// Where the packet makes the whole capture useless for a mix.
    pub fn push(&mut self, packet: &Packet<'_>) -> Result<(), Rejection> {
        if packet.is_cut() {
            return Err(Rejection::Cut);
        }
        let start = self.data.len();
        let body = match ethernet_header(packet) {
            Some((header, body)) => {
                self.data.extend_from_slice(&header);
                body
            }
            None if packet.link_type == LinkType::ETHERNET => packet.data,
            None => return Err(Rejection::LinkType(packet.link_type)),
        };
        self.data.extend_from_slice(body);
        let end = u32::try_from(self.data.len())
            .ok()
            .filter(|end| *end < 1 << 31)
            .ok_or(Rejection::Large)?;
        let stamp = packet.timestamp.nanos();
        let gap = self.last_stamp.map_or(0, |last| stamp.saturating_sub(last)).clamp(0, MAX_GAP);
        self.last_stamp = Some(stamp);
        let at = self.frames.last().map_or(0, |frame| frame.at) + gap;
        self.frames.push(Frame { at, end });
        // Nothing is changed here but checksums, which are set right once and for all.
        let frame = &mut self.data[start..];
        let outer = rewrite_addresses(frame, &mut self.addresses);
        self.traits.count(outer.as_ref(), self.subject, frame.len());
        self.flows.extend(outer.as_ref().map(flow_of));
        Ok(())
    }

    /// Ends the capture, and brings it to at most `longest` nanoseconds by clipping pauses harder.
    ///
    /// # Errors
    ///
    /// Where it holds no IP packet.
    pub fn finish(mut self, longest: i64) -> Result<Self, Rejection> {
        if self.flows.is_empty() {
            return Err(Rejection::NoIp);
        }
        self.traits.flows = self.flows.len() as u64;
        self.flows = HashSet::new();
        let mut gap = MAX_GAP;
        while self.duration() > longest.max(0) {
            gap /= 2;
            let (mut before, mut at) = (0, 0);
            for frame in &mut self.frames {
                at += (frame.at - before).min(gap);
                before = std::mem::replace(&mut frame.at, at);
            }
        }
        Ok(self)
    }

    /// What belongs to one category alone, as a capture of its own, so that a capture of many subjects can be drawn
    /// on for each; `None` where that is next to nothing or nearly all.
    #[must_use]
    pub fn part(&self, category: Category) -> Option<Self> {
        let bytes = self.traits.by_category[category as usize];
        if bytes * 50 < self.traits.bytes || bytes * 10 > self.traits.bytes * 9 {
            return None;
        }
        let mut part = Self::new(self.subject);
        for index in 0..self.frames.len() {
            let (at, data) = self.frame(index)?;
            let mut counted = Traits::default();
            let outer = rewrite_addresses(&mut data.to_vec(), &mut Numbered::default());
            counted.count(outer.as_ref(), self.subject, data.len());
            if counted.by_category[category as usize] > 0 {
                let (timestamp, wire_len) = (Timestamp::from_nanos(at), data.len() as u32);
                let link_type = LinkType::ETHERNET;
                part.push(&Packet { timestamp, data, wire_len, link_type, interface: 0 }).ok()?;
            }
        }
        part.finish(self.duration()).ok()
    }

    /// What the capture adds to a mix.
    #[must_use]
    pub const fn traits(&self) -> &Traits {
        &self.traits
    }

    /// What it is about, where its folder says so.
    #[must_use]
    pub const fn subject(&self) -> Option<Category> {
        self.subject
    }

    /// Nanoseconds from its first to its last packet, pauses clipped.
    #[must_use]
    pub fn duration(&self) -> i64 {
        self.frames.last().map_or(0, |frame| frame.at)
    }

    /// How many IPv4 and IPv6 addresses of its own it has.
    #[must_use]
    pub fn address_counts(&self) -> (u32, u32) {
        self.addresses.counts()
    }

    /// Frame `index` and its time since the first.
    pub(super) fn frame(&self, index: usize) -> Option<(i64, &[u8])> {
        let start = index.checked_sub(1).map_or(0, |before| self.frames[before].end as usize);
        let frame = self.frames.get(index)?;
        Some((frame.at, self.data.get(start..frame.end as usize)?))
    }

    pub(super) const fn addresses(&self) -> &Numbered {
        &self.addresses
    }
}

/// The Ethernet header that stands for another link-layer header, and what follows; `None` for Ethernet itself and
/// for what cannot be told.
fn ethernet_header<'p>(packet: &Packet<'p>) -> Option<([u8; 14], &'p [u8])> {
    let data = packet.data;
    let by_version = |bytes: &[u8]| match bytes.first()? >> 4 {
        4 => Some(0x0800u16),
        6 => Some(0x86dd),
        _ => None,
    };
    let (skip, ethertype) = match packet.link_type {
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 => (0, by_version(data)?),
        LinkType::NULL | LinkType::LOOP => (4, by_version(data.get(4..)?)?),
        LinkType::LINUX_SLL => (16, u16::from_be_bytes(*data.get(14..)?.first_chunk()?)),
        LinkType::LINUX_SLL2 => (20, u16::from_be_bytes(*data.first_chunk()?)),
        LinkType::PPP => {
            // The address and control bytes may be left out, RFC 1661.
            let skip = if data.first_chunk() == Some(&[0xff, 0x03]) { 4 } else { 2 };
            (skip, by_version(data.get(skip..)?)?)
        }
        _ => return None,
    };
    // Cooked captures put values below 0x600 there that are not Ethernet types.
    let [high, low] = (ethertype >= 0x600).then(|| ethertype.to_be_bytes())?;
    Some(([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, high, low], data.get(skip..)?))
}
