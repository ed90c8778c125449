//! `unparsed.pcapng`: the packets that no layer understood, each with the reason as its comment.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use netsniff_analysis::ingress::Unparsed;
use netsniff_packet::{LinkType, Packet, Timestamp};
use netsniff_pcapfile::{Interface, PcapngWriter, Resolution, Section};

/// A file that is made when its first packet comes.
#[derive(Debug)]
pub struct UnparsedFile {
    path: PathBuf,
    writer: Option<PcapngWriter<BufWriter<File>>>,
    /// The link types of the interfaces in the file.
    link_types: Vec<LinkType>,
}

impl UnparsedFile {
    /// The file in a directory. One of an earlier run is removed.
    ///
    /// # Errors
    ///
    /// When it cannot be removed.
    pub fn new(directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join("unparsed.pcapng");
        if path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            fs::remove_file(&path).with_context(|| format!("cannot replace {}", path.display()))?;
        }
        Ok(Self { path, writer: None, link_types: Vec::new() })
    }

    /// Adds a packet with the reason.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn add(&mut self, packet: &Packet<'_>, why: &Unparsed) -> anyhow::Result<()> {
        let result = self.write(packet, why);
        result.with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn write(&mut self, packet: &Packet<'_>, why: &Unparsed) -> io::Result<()> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let section =
                    Section { application: Some("netsniff".to_owned()), ..Section::default() };
                let file = BufWriter::new(File::create(&self.path)?);
                self.writer.insert(PcapngWriter::new(file, &section)?)
            }
        };
        let known = self.link_types.iter().position(|&known| known == packet.link_type);
        let interface = match known {
            Some(at) => u32::try_from(at).map_err(|_| ErrorKind::InvalidData)?,
            None => {
                self.link_types.push(packet.link_type);
                let resolution = Resolution::NANOSECONDS;
                writer.add_interface(&Interface {
                    resolution,
                    ..Interface::new(packet.link_type, 0)
                })?
            }
        };
        // pcapng counts time from the epoch on.
        let timestamp = packet.timestamp.max(Timestamp::EPOCH);
        let packet = Packet { interface, timestamp, ..*packet };
        writer.write_packet_with_comment(&packet, &why.to_string())
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// When it cannot be written to its end.
    pub fn finish(self) -> anyhow::Result<()> {
        let Some(writer) = self.writer else { return Ok(()) };
        writer.finish().map(drop).with_context(|| format!("cannot write {}", self.path.display()))
    }
}
