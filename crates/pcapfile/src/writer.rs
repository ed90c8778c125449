//! Writes capture files: classic pcap with nanoseconds, and pcapng.

use std::io::{self, ErrorKind, Write};

use netsniff_packet::{LinkType, Packet, Timestamp};

use crate::interface::{Counters, Interface};
use crate::pcapng::Section;

/// Writes a classic pcap file, little-endian, with nanoseconds.
///
/// Each packet makes two small writes: hand in a [`std::io::BufWriter`] where that matters.
#[derive(Debug)]
pub struct PcapWriter<W: Write> {
    output: W,
    link_type: LinkType,
}

impl<W: Write> PcapWriter<W> {
    /// Writes the file header. `snaplen` is the most bytes that a packet will have.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn new(mut output: W, link_type: LinkType, snaplen: u32) -> io::Result<Self> {
        let mut header = Vec::with_capacity(24);
        header.extend(0xa1b2_3c4d_u32.to_le_bytes());
        header.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        header.extend(snaplen.to_le_bytes());
        header.extend(u32::from(link_type.0).to_le_bytes());
        output.write_all(&header)?;
        Ok(Self { output, link_type })
    }

    /// Writes a packet.
    ///
    /// # Errors
    ///
    /// Those of the output, and [`ErrorKind::InvalidInput`] where the format cannot hold the packet:
    /// a link type other than the file's, or a time before 1970 or after 2106.
    pub fn write_packet(&mut self, packet: &Packet<'_>) -> io::Result<()> {
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
        self.output.write_all(header.as_flattened())?;
        self.output.write_all(packet.data)
    }

    /// Flushes and returns the output.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }
}

/// Writes a pcapng file of one section, little-endian.
#[derive(Debug)]
pub struct PcapngWriter<W: Write> {
    output: W,
    interfaces: Vec<Interface>,
    /// The block that is being made.
    block: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Writes the section header.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn new(output: W, section: &Section) -> io::Result<Self> {
        let mut writer = Self { output, interfaces: Vec::new(), block: Vec::new() };
        writer.begin(0x0a0d_0d0a);
        // Magic, version 1.0, and a length that is not known.
        writer.block.extend([0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0]);
        writer.block.extend([0xff; 8]);
        writer.text(2, section.hardware.as_deref());
        writer.text(3, section.os.as_deref());
        writer.text(4, section.application.as_deref());
        writer.end()?;
        Ok(writer)
    }

    /// Describes an interface and returns its number. Its counters are not written:
    /// [`PcapngWriter::write_counters`] does that.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn add_interface(&mut self, interface: &Interface) -> io::Result<u32> {
        self.begin(1);
        self.block.extend(interface.link_type.0.to_le_bytes());
        self.block.extend([0; 2]);
        self.block.extend(interface.snaplen.unwrap_or(0).to_le_bytes());
        self.text(2, interface.name.as_deref());
        self.text(3, interface.description.as_deref());
        if let Some(speed) = interface.speed {
            self.option(8, &speed.to_le_bytes());
        }
        self.option(9, &[interface.resolution.0]);
        if let Some(filter) = &interface.filter {
            self.option(11, &[&[0], filter.as_bytes()].concat());
        }
        self.text(12, interface.os.as_deref());
        if let Some(len) = interface.fcs_len {
            self.option(13, &[len]);
        }
        if interface.time_offset != 0 {
            self.option(14, &interface.time_offset.to_le_bytes());
        }
        self.text(15, interface.hardware.as_deref());
        self.end()?;
        self.interfaces.push(interface.clone());
        Ok(self.interfaces.len() as u32 - 1)
    }

    /// Writes a packet of an interface that was added before.
    ///
    /// # Errors
    ///
    /// Those of the output, and [`ErrorKind::InvalidInput`] where the interface is not known, has
    /// another link type, or cannot tell the packet's time.
    pub fn write_packet(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        self.write(packet, None, None)
    }

    /// Writes a packet with a comment on it (opt_comment).
    ///
    /// # Errors
    ///
    /// Those of [`PcapngWriter::write_packet`].
    pub fn write_packet_with_comment(
        &mut self,
        packet: &Packet<'_>,
        comment: &str,
    ) -> io::Result<()> {
        self.write(packet, None, Some(comment))
    }

    /// Writes a packet before which so many were lost since the last one of its interface
    /// (epb_dropcount).
    ///
    /// # Errors
    ///
    /// Those of [`PcapngWriter::write_packet`].
    pub fn write_packet_after_loss(&mut self, packet: &Packet<'_>, lost: u64) -> io::Result<()> {
        self.write(packet, Some(lost), None)
    }

    fn write(
        &mut self,
        packet: &Packet<'_>,
        lost: Option<u64>,
        comment: Option<&str>,
    ) -> io::Result<()> {
        let interface = self.described(packet.interface)?;
        if interface.link_type != packet.link_type {
            return Err(invalid("a packet of another link type than its interface's"));
        }
        let [high, low] = time(interface, packet.timestamp)?;
        let captured = length(packet.data)?;
        self.begin(6);
        let fields = words([packet.interface, high, low, captured, packet.wire_len]);
        self.block.extend(fields.as_flattened());
        self.block.extend(packet.data);
        self.pad();
        if let Some(lost) = lost {
            self.option(4, &lost.to_le_bytes());
        }
        self.text(1, comment);
        self.end()
    }

    /// Writes what was counted on an interface until `time`. Unknown counters are left out; those
    /// that are kept per packet (drops between packets, directions, errors) have no place here.
    ///
    /// # Errors
    ///
    /// Those of the output, and [`ErrorKind::InvalidInput`] where the interface is not known or
    /// cannot tell the time.
    pub fn write_counters(
        &mut self,
        interface: u32,
        timestamp: Timestamp,
        counters: &Counters,
    ) -> io::Result<()> {
        let [high, low] = time(self.described(interface)?, timestamp)?;
        self.begin(5);
        self.block.extend(words([interface, high, low]).as_flattened());
        let values = [
            (4, counters.received),
            (5, counters.dropped_by_interface),
            (6, counters.accepted_by_filter),
            (7, counters.dropped_by_os),
            (8, counters.delivered),
        ];
        for (code, value) in values {
            if let Some(value) = value {
                self.option(code, &value.to_le_bytes());
            }
        }
        self.end()
    }

    /// Flushes and returns the output.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }

    fn described(&self, interface: u32) -> io::Result<&Interface> {
        self.interfaces
            .get(interface as usize)
            .ok_or_else(|| invalid("a packet of an interface that was not added"))
    }

    fn begin(&mut self, block_type: u32) {
        self.block.clear();
        self.block.extend(block_type.to_le_bytes());
        self.block.extend([0; 4]);
    }

    fn end(&mut self) -> io::Result<()> {
        let length =
            u32::try_from(self.block.len() + 4).map_err(|_| invalid("a block too long"))?;
        if let Some(place) = self.block.get_mut(4..8) {
            place.copy_from_slice(&length.to_le_bytes());
        }
        self.block.extend(length.to_le_bytes());
        self.output.write_all(&self.block)
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn text(&mut self, code: u16, text: Option<&str>) {
        if let Some(text) = text {
            self.option(code, text.as_bytes());
        }
    }

    /// An option; what exceeds the 65535 bytes that it can hold is cut off.
    fn option(&mut self, code: u16, value: &[u8]) {
        let len = u16::try_from(value.len()).unwrap_or(u16::MAX);
        self.block.extend(code.to_le_bytes());
        self.block.extend(len.to_le_bytes());
        self.block.extend(value.get(..usize::from(len)).unwrap_or(value));
        self.pad();
    }
}

/// The upper and lower half of a time as the interface counts it.
fn time(interface: &Interface, timestamp: Timestamp) -> io::Result<[u32; 2]> {
    let clock = interface.resolution.clock(interface.time_offset);
    let ticks = clock.ticks(timestamp).ok_or_else(|| invalid("a time that cannot be told"))?;
    Ok([(ticks >> 32) as u32, ticks as u32])
}

fn length(data: &[u8]) -> io::Result<u32> {
    u32::try_from(data.len()).map_err(|_| invalid("a packet too long"))
}

fn words<const N: usize>(words: [u32; N]) -> [[u8; 4]; N] {
    words.map(u32::to_le_bytes)
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, what)
}
