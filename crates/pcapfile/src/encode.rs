//! The bytes of pcap records and pcapng blocks, added to a caller's buffer.
//!
//! All is little-endian. Each call adds one whole record or block, or nothing where it fails, so a
//! buffer that is written at any time ends with a whole one. A packet costs one look at its
//! interface and one copy, and nothing is allocated while the buffer has room.

use std::io::{self, ErrorKind};

use netsniff_packet::{LinkType, Packet, Timestamp};

use crate::interface::{Clock, Counters, Interface};
use crate::pcapng::Section;

/// Encodes a classic pcap file with nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct PcapEncoder {
    link_type: LinkType,
}

impl PcapEncoder {
    /// Bytes that a record has besides its packet.
    pub const RECORD_OVERHEAD: usize = 16;

    /// For packets of one link type.
    #[must_use]
    pub const fn new(link_type: LinkType) -> Self {
        Self { link_type }
    }

    /// Adds the file header. `snaplen` is the most bytes that a packet will have.
    pub fn file_header(&self, snaplen: u32, out: &mut Vec<u8>) {
        out.extend(0xa1b2_3c4d_u32.to_le_bytes());
        // Version 2.4, and two fields that nobody uses.
        out.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        out.extend(words([snaplen, u32::from(self.link_type.0)]).as_flattened());
    }

    /// Adds a packet.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] where the format cannot hold the packet: a link type other than
    /// the file's, or a time before 1970 or after 2106.
    #[inline]
    pub fn packet(&self, packet: &Packet<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        if packet.link_type != self.link_type {
            return Err(invalid("a pcap file holds packets of one link type"));
        }
        let nanos = u64::try_from(packet.timestamp.nanos()).ok();
        let seconds = nanos.and_then(|nanos| u32::try_from(nanos / 1_000_000_000).ok());
        let (Some(nanos), Some(seconds)) = (nanos, seconds) else {
            return Err(invalid("a pcap file holds times from 1970 to 2106"));
        };
        let fraction = (nanos % 1_000_000_000) as u32;
        let captured = length(packet.data)?;
        let header = words([seconds, fraction, captured, packet.wire_len]);
        out.reserve(Self::RECORD_OVERHEAD.saturating_add(packet.data.len()));
        out.extend_from_slice(header.as_flattened());
        out.extend_from_slice(packet.data);
        Ok(())
    }
}

/// What may be told of a packet besides the packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketNotes<'a> {
    /// Packets that were lost since the last one of its interface (epb_dropcount).
    pub lost: Option<u64>,
    /// Comments on it (opt_comment).
    pub comments: &'a [&'a str],
}

/// What an interface counted until some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics<'a> {
    /// The totals. Unknown ones are left out; those that are kept per packet (drops between packets,
    /// directions, errors) have no place in a statistics block.
    pub counters: Counters,
    /// When counting began (isb_starttime).
    pub started: Option<Timestamp>,
    /// When it ended (isb_endtime).
    pub ended: Option<Timestamp>,
    /// A comment (opt_comment).
    pub comment: Option<&'a str>,
}

/// Encodes one section of pcapng.
#[derive(Clone, Debug, Default)]
pub struct PcapngEncoder {
    interfaces: Vec<Port>,
}

/// What is needed of an interface for each of its packets.
#[derive(Clone, Copy, Debug)]
struct Port {
    link_type: LinkType,
    clock: Clock,
}

impl PcapngEncoder {
    /// The most bytes that a packet's block without a comment has besides its packet.
    pub const PACKET_OVERHEAD: usize = 28 + 3 + 12 + 4;

    /// Adds a section header, and forgets the interfaces of the section before.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] where the texts are longer than a block can be.
    pub fn section(&mut self, section: &Section, out: &mut Vec<u8>) -> io::Result<()> {
        self.interfaces.clear();
        let block = Block::begin(0x0a0d_0d0a, out);
        // Magic, version 1.0, and a length that is not known.
        out.extend([0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0]);
        out.extend([0xff; 8]);
        for comment in &section.comments {
            text(1, Some(comment), out);
        }
        text(2, section.hardware.as_deref(), out);
        text(3, section.os.as_deref(), out);
        text(4, section.application.as_deref(), out);
        block.end(out)
    }

    /// Adds the description of an interface, without its counters, and returns its number.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] where the texts are longer than a block can be.
    pub fn interface(&mut self, interface: &Interface, out: &mut Vec<u8>) -> io::Result<u32> {
        let number = u32::try_from(self.interfaces.len())
            .map_err(|_| invalid("more interfaces than a section can number"))?;
        let block = Block::begin(1, out);
        out.extend(interface.link_type.0.to_le_bytes());
        out.extend([0; 2]);
        out.extend(interface.snaplen.unwrap_or(0).to_le_bytes());
        text(2, interface.name.as_deref(), out);
        text(3, interface.description.as_deref(), out);
        if let Some(speed) = interface.speed {
            option(8, &speed.to_le_bytes(), out);
        }
        option(9, &[interface.resolution.0], out);
        if let Some(filter) = &interface.filter {
            option(11, &[&[0], filter.as_bytes()].concat(), out);
        }
        text(12, interface.os.as_deref(), out);
        if let Some(len) = interface.fcs_len {
            option(13, &[len], out);
        }
        if interface.time_offset != 0 {
            option(14, &interface.time_offset.to_le_bytes(), out);
        }
        text(15, interface.hardware.as_deref(), out);
        block.end(out)?;
        let clock = interface.resolution.clock(interface.time_offset);
        self.interfaces.push(Port { link_type: interface.link_type, clock });
        Ok(number)
    }

    /// Adds a packet of an interface that was added before.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] where the interface is not known, has another link type, or
    /// cannot tell the packet's time.
    #[inline]
    pub fn packet(
        &self,
        packet: &Packet<'_>,
        notes: PacketNotes<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let port = self.port(packet.interface)?;
        if port.link_type != packet.link_type {
            return Err(invalid("a packet of another link type than its interface's"));
        }
        let [high, low] = port.time(packet.timestamp)?;
        let captured = length(packet.data)?;
        out.reserve(Self::PACKET_OVERHEAD.saturating_add(packet.data.len()));
        let start = out.len();
        let head = words([6, 0, packet.interface, high, low, captured, packet.wire_len]);
        out.extend_from_slice(head.as_flattened());
        out.extend_from_slice(packet.data);
        out.extend_from_slice(padding(packet.data.len()));
        if notes != PacketNotes::default() {
            notes.add(out);
        }
        Block { start }.end(out)
    }

    /// Adds what was counted on an interface until `time`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] where the interface is not known or cannot tell the times.
    pub fn statistics(
        &self,
        interface: u32,
        time: Timestamp,
        statistics: &Statistics<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let port = self.port(interface)?;
        let [high, low] = port.time(time)?;
        let times = [(2, statistics.started), (3, statistics.ended)];
        let times = times.map(|(code, time)| (code, time.map(|time| port.time(time))));
        let block = Block::begin(5, out);
        out.extend(words([interface, high, low]).as_flattened());
        text(1, statistics.comment, out);
        for (code, time) in times {
            match time {
                Some(Ok(time)) => option(code, words(time).as_flattened(), out),
                Some(Err(error)) => return block.undo(error, out),
                None => {}
            }
        }
        let counters = &statistics.counters;
        let values = [
            (4, counters.received),
            (5, counters.dropped_by_interface),
            (6, counters.accepted_by_filter),
            (7, counters.dropped_by_os),
            (8, counters.delivered),
        ];
        for (code, value) in values {
            if let Some(value) = value {
                option(code, &value.to_le_bytes(), out);
            }
        }
        block.end(out)
    }

    #[inline]
    fn port(&self, interface: u32) -> io::Result<&Port> {
        self.interfaces
            .get(interface as usize)
            .ok_or_else(|| invalid("a packet of an interface that was not added"))
    }
}

impl Port {
    /// The upper and lower half of a time as the interface counts it.
    #[inline]
    fn time(&self, timestamp: Timestamp) -> io::Result<[u32; 2]> {
        let ticks = self.clock.ticks(timestamp);
        let ticks = ticks.ok_or_else(|| invalid("a time that cannot be told"))?;
        Ok([(ticks >> 32) as u32, ticks as u32])
    }
}

impl PacketNotes<'_> {
    #[cold]
    fn add(self, out: &mut Vec<u8>) {
        if let Some(lost) = self.lost {
            option(4, &lost.to_le_bytes(), out);
        }
        self.comments.iter().for_each(|comment| text(1, Some(comment), out));
    }
}

/// A block that is being added.
struct Block {
    start: usize,
}

impl Block {
    fn begin(block_type: u32, out: &mut Vec<u8>) -> Self {
        let start = out.len();
        out.extend(words([block_type, 0]).as_flattened());
        Self { start }
    }

    /// Adds the length behind the body, and puts it before the body.
    #[inline]
    fn end(self, out: &mut Vec<u8>) -> io::Result<()> {
        let Ok(length) = u32::try_from(out.len().saturating_sub(self.start).saturating_add(4))
        else {
            return self.undo(invalid("a block too long"), out);
        };
        let length = length.to_le_bytes();
        out.extend_from_slice(&length);
        let behind_type = out.get_mut(self.start..).and_then(|block| block.get_mut(4..8));
        if let Some(place) = behind_type {
            place.copy_from_slice(&length);
        }
        Ok(())
    }

    #[cold]
    fn undo(self, error: io::Error, out: &mut Vec<u8>) -> io::Result<()> {
        out.truncate(self.start);
        Err(error)
    }
}

/// Zeros after `len` bytes up to a multiple of four.
#[inline]
fn padding(len: usize) -> &'static [u8] {
    const ZEROS: [u8; 3] = [0; 3];
    ZEROS.get(..len.wrapping_neg() & 3).unwrap_or_default()
}

fn text(code: u16, text: Option<&str>, out: &mut Vec<u8>) {
    if let Some(text) = text {
        option(code, text.as_bytes(), out);
    }
}

/// An option; what exceeds the 65535 bytes that it can hold is cut off.
fn option(code: u16, value: &[u8], out: &mut Vec<u8>) {
    let len = u16::try_from(value.len()).unwrap_or(u16::MAX);
    out.extend(code.to_le_bytes());
    out.extend(len.to_le_bytes());
    out.extend(value.get(..usize::from(len)).unwrap_or(value));
    out.extend(padding(usize::from(len)));
}

#[inline]
fn length(data: &[u8]) -> io::Result<u32> {
    u32::try_from(data.len()).map_err(|_| invalid("a packet too long"))
}

#[inline]
fn words<const N: usize>(words: [u32; N]) -> [[u8; 4]; N] {
    words.map(u32::to_le_bytes)
}

#[cold]
fn invalid(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, what)
}
