//! `unparsed.pcapng`: the packets that no layer understood, each with the reason as its comment.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use netsniff_analysis::Options;
use netsniff_analysis::ingress::Unparsed;
use netsniff_console::unlinked;
use netsniff_packet::anonymize::frame::{PacketAnonymizer, PayloadMode};
use netsniff_packet::{LinkType, Packet, Timestamp};
use netsniff_pcapfile::{Interface, PcapngWriter, Resolution, Section};

/// A file that is made when its first packet comes.
#[derive(Debug)]
pub struct UnparsedFile {
    path: PathBuf,
    /// Changes packets that are to tell of nobody, in a buffer that is used again and again.
    anonymizer: Option<(PacketAnonymizer, Vec<u8>)>,
    writer: Option<PcapngWriter<BufWriter<File>>>,
    /// The link types of the interfaces in the file.
    link_types: Vec<LinkType>,
    /// Bytes that it may have, and those that it has.
    limit: u64,
    bytes: u64,
    /// Packets for which there was no room.
    left_out: u64,
}

/// More than the blocks of a packet, its comment apart, and of a new interface take.
const BLOCKS: u64 = 256;

impl UnparsedFile {
    /// The file in a directory. One of an earlier run is removed. Where `options` have an anonymizer, its
    /// packets have pseudonyms, and no payload. It has at most `limit` bytes; what is beyond them is
    /// counted.
    ///
    /// # Errors
    ///
    /// When it cannot be removed, or a link is in its place.
    pub fn new(directory: &Path, options: &Options, limit: u64) -> anyhow::Result<Self> {
        let path = directory.join("unparsed.pcapng");
        if path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            fs::remove_file(&path).with_context(|| format!("cannot replace {}", path.display()))?;
        }
        unlinked::refuse(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let anonymizer = options.anonymizer.clone().map(|it| {
            let packets = PacketAnonymizer::new(it, PayloadMode::Cut);
            (packets.with_tunnel_ports(Arc::clone(&options.tunnel_ports)), Vec::new())
        });
        Ok(Self {
            path,
            anonymizer,
            writer: None,
            link_types: Vec::new(),
            limit,
            bytes: 0,
            left_out: 0,
        })
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
        let comment = why.to_string();
        let bytes = self.bytes.saturating_add((packet.data.len() + comment.len()) as u64 + BLOCKS);
        if bytes > self.limit {
            self.left_out += 1;
            return Ok(());
        }
        self.bytes = bytes;
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let section =
                    Section { application: Some("netsniff".to_owned()), ..Section::default() };
                let file = BufWriter::new(unlinked::create_private(&self.path)?);
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
        let mut packet = Packet { interface, timestamp, ..*packet };
        if let Some((anonymizer, buffer)) = &mut self.anonymizer {
            buffer.clear();
            buffer.extend_from_slice(packet.data);
            let left = anonymizer.packet(packet.link_type, buffer, packet.wire_len);
            packet.data = buffer.get(..left.len).unwrap_or_default();
        }
        writer.write_packet_with_comment(&packet, &comment)
    }

    /// Ends the file, and returns how many packets it had no room for.
    ///
    /// # Errors
    ///
    /// When it cannot be written to its end.
    pub fn finish(self) -> anyhow::Result<u64> {
        if let Some(writer) = self.writer {
            let finished = writer.finish();
            finished.with_context(|| format!("cannot write {}", self.path.display()))?;
        }
        Ok(self.left_out)
    }
}
