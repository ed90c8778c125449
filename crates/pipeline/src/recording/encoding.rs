//! A capture file in its format: begin, packets, end.

use std::io;

use netsniff_console::UsageError;
use netsniff_packet::{LinkType, Packet, Timestamp};
use netsniff_pcapfile::{
    Interface, PacketNotes, PcapEncoder, PcapngEncoder, Resolution, Section, Statistics,
};

use super::naming::CaptureFormat;
use super::options::MOST_CAPTURED;

/// The most bytes of the statistics of one interface: all counters and times, and a comment.
const STATISTICS: usize = 512;

/// Encodes files that all begin with the same bytes: those of a recording, or a single one.
#[derive(Debug)]
pub struct Encoding {
    encoder: Encoder,
    /// What each file begins with.
    header: Vec<u8>,
    interfaces: usize,
}

#[derive(Debug)]
enum Encoder {
    Pcap(PcapEncoder),
    Pcapng(PcapngEncoder),
}

impl Encoding {
    /// For these interfaces, whose times are written in nanoseconds.
    ///
    /// # Errors
    ///
    /// [`UsageError`] where the format cannot hold them, and texts longer than a block can be.
    pub fn new(
        format: CaptureFormat,
        section: &Section,
        interfaces: &[Interface],
    ) -> anyhow::Result<Self> {
        let mut header = Vec::new();
        let encoder = match format {
            CaptureFormat::Pcap => {
                let link_type = one_link_type(interfaces)?;
                let encoder = PcapEncoder::new(link_type);
                let snaplens = interfaces.iter().map(|it| it.snaplen.unwrap_or(MOST_CAPTURED));
                encoder.file_header(snaplens.max().unwrap_or(MOST_CAPTURED), &mut header);
                Encoder::Pcap(encoder)
            }
            CaptureFormat::Pcapng => {
                let mut encoder = PcapngEncoder::default();
                encoder.section(section, &mut header)?;
                for interface in interfaces {
                    let resolution = Resolution::NANOSECONDS;
                    let described = Interface { resolution, ..interface.clone() };
                    encoder.interface(&described, &mut header)?;
                }
                Encoder::Pcapng(encoder)
            }
        };
        Ok(Self { encoder, header, interfaces: interfaces.len() })
    }

    /// What each file begins with.
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// The most bytes that the end of a file takes.
    pub(super) const fn most_end(&self) -> usize {
        match self.encoder {
            Encoder::Pcap(_) => 0,
            Encoder::Pcapng(_) => self.interfaces.saturating_mul(STATISTICS),
        }
    }

    /// The most bytes that a packet takes besides its own.
    #[inline]
    pub(super) const fn overhead(&self) -> usize {
        match self.encoder {
            Encoder::Pcap(_) => PcapEncoder::RECORD_OVERHEAD,
            Encoder::Pcapng(_) => PcapngEncoder::PACKET_OVERHEAD,
        }
    }

    /// Describes one more interface, where the format can tell.
    ///
    /// # Errors
    ///
    /// Texts longer than a block can be.
    pub fn interface(&mut self, interface: &Interface, out: &mut Vec<u8>) -> io::Result<()> {
        if let Encoder::Pcapng(encoder) = &mut self.encoder {
            let resolution = Resolution::NANOSECONDS;
            encoder.interface(&Interface { resolution, ..interface.clone() }, out)?;
        }
        self.interfaces += 1;
        Ok(())
    }

    /// Adds a packet with what is told of it, where the format can tell.
    #[inline]
    pub fn packet(
        &self,
        packet: &Packet<'_>,
        notes: PacketNotes<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        match &self.encoder {
            Encoder::Pcap(encoder) => encoder.packet(packet, out),
            Encoder::Pcapng(encoder) => encoder.packet(packet, notes, out),
        }
    }

    /// Adds what an interface counted until `time`, at the end of a file, where the format can tell.
    ///
    /// # Errors
    ///
    /// Those of [`PcapngEncoder::statistics`].
    pub fn statistics(
        &self,
        interface: u32,
        time: Timestamp,
        statistics: &Statistics<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        match &self.encoder {
            Encoder::Pcap(_) => Ok(()),
            Encoder::Pcapng(encoder) => encoder.statistics(interface, time, statistics, out),
        }
    }
}

fn one_link_type(interfaces: &[Interface]) -> Result<LinkType, UsageError> {
    let mut link_types = interfaces.iter().map(|interface| interface.link_type);
    match link_types.next() {
        None => Ok(LinkType::ETHERNET),
        Some(first) if link_types.all(|other| other == first) => Ok(first),
        Some(_) => Err(UsageError(
            "pcap holds packets of one link type, and these interfaces have several: write pcapng"
                .to_owned(),
        )),
    }
}
