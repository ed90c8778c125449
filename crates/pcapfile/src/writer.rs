//! Writes capture files: classic pcap with nanoseconds, and pcapng.

use std::io::{self, Write};

use netsniff_packet::{LinkType, Packet, Timestamp};

use crate::encode::{PacketNotes, PcapEncoder, PcapngEncoder, Statistics};
use crate::interface::{Counters, Interface};
use crate::pcapng::Section;

/// Writes a classic pcap file, little-endian, with nanoseconds.
///
/// Each packet makes a small write: hand in a [`std::io::BufWriter`] where that matters.
#[derive(Debug)]
pub struct PcapWriter<W: Write> {
    output: W,
    encoder: PcapEncoder,
    /// The record that is being made.
    record: Vec<u8>,
}

impl<W: Write> PcapWriter<W> {
    /// Writes the file header. `snaplen` is the most bytes that a packet will have.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn new(mut output: W, link_type: LinkType, snaplen: u32) -> io::Result<Self> {
        let encoder = PcapEncoder::new(link_type);
        let mut record = Vec::new();
        encoder.file_header(snaplen, &mut record);
        output.write_all(&record)?;
        Ok(Self { output, encoder, record })
    }

    /// Writes a packet.
    ///
    /// # Errors
    ///
    /// Those of the output, and of [`PcapEncoder::packet`].
    pub fn write_packet(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        self.record.clear();
        self.encoder.packet(packet, &mut self.record)?;
        self.output.write_all(&self.record)
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

/// Writes a pcapng file of one section, little-endian. Each block makes a write.
#[derive(Debug)]
pub struct PcapngWriter<W: Write> {
    output: W,
    encoder: PcapngEncoder,
    /// The block that is being made.
    block: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Writes the section header.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn new(mut output: W, section: &Section) -> io::Result<Self> {
        let (mut encoder, mut block) = (PcapngEncoder::default(), Vec::new());
        encoder.section(section, &mut block)?;
        output.write_all(&block)?;
        Ok(Self { output, encoder, block })
    }

    /// Describes an interface and returns its number. Its counters are not written:
    /// [`PcapngWriter::write_counters`] does that.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn add_interface(&mut self, interface: &Interface) -> io::Result<u32> {
        self.block.clear();
        let number = self.encoder.interface(interface, &mut self.block)?;
        self.output.write_all(&self.block)?;
        Ok(number)
    }

    /// Writes a packet of an interface that was added before.
    ///
    /// # Errors
    ///
    /// Those of the output, and of [`PcapngEncoder::packet`].
    pub fn write_packet(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        self.write(packet, PacketNotes::default())
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
        self.write(packet, PacketNotes { comments: &[comment], lost: None })
    }

    /// Writes a packet before which so many were lost since the last one of its interface
    /// (epb_dropcount).
    ///
    /// # Errors
    ///
    /// Those of [`PcapngWriter::write_packet`].
    pub fn write_packet_after_loss(&mut self, packet: &Packet<'_>, lost: u64) -> io::Result<()> {
        self.write(packet, PacketNotes { lost: Some(lost), comments: &[] })
    }

    fn write(&mut self, packet: &Packet<'_>, notes: PacketNotes<'_>) -> io::Result<()> {
        self.block.clear();
        self.encoder.packet(packet, notes, &mut self.block)?;
        self.output.write_all(&self.block)
    }

    /// Writes what was counted on an interface until `timestamp`. Unknown counters are left out;
    /// those that are kept per packet (drops between packets, directions, errors) have no place here.
    ///
    /// # Errors
    ///
    /// Those of the output, and of [`PcapngEncoder::statistics`].
    pub fn write_counters(
        &mut self,
        interface: u32,
        timestamp: Timestamp,
        counters: &Counters,
    ) -> io::Result<()> {
        self.block.clear();
        let statistics = Statistics { counters: *counters, ..Statistics::default() };
        self.encoder.statistics(interface, timestamp, &statistics, &mut self.block)?;
        self.output.write_all(&self.block)
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
