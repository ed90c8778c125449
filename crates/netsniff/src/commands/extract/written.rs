//! The capture that extracting writes: interfaces and counters of the input, and a comment on each packet.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use netsniff_analysis::Uid;
use netsniff_packet::Packet;
use netsniff_pcapfile::{Interface, PacketNotes, Section};
use netsniff_pipeline::carving::{Carved, TakeCarved};
use netsniff_pipeline::recording::naming::{CaptureFormat, packing_of_name};

use crate::commands::inputs::Inputs;
use crate::commands::sort::output::Output;

/// A capture that begins with its first packet, since only then its interfaces are known.
pub(super) struct Written {
    path: PathBuf,
    format: CaptureFormat,
    section: Section,
    /// Those that the input has described so far.
    interfaces: Vec<Interface>,
    /// How many of them are described in the output.
    described: usize,
    output: Option<Output>,
    comment: String,
}

impl Written {
    pub(super) fn new(path: &Path, format: CaptureFormat) -> Self {
        Self {
            path: path.to_owned(),
            format,
            section: Section::default(),
            interfaces: Vec::new(),
            described: 0,
            output: None,
            comment: String::new(),
        }
    }

    /// Takes over what the input told of new interfaces, and of the capturing machine.
    pub(super) fn describe(&mut self, inputs: &Inputs) {
        let numbers = self.interfaces.len() as u32..inputs.merged.interface_count() as u32;
        let new = numbers.filter_map(|number| inputs.merged.interface(number));
        self.interfaces.extend(new.map(|(_, interface)| interface.clone()));
        if self.output.is_none()
            && let Some(section) = inputs.iter().find_map(|(_, reader)| reader.sections().first())
        {
            self.section = section.clone();
        }
    }

    /// Begins the file. That of pcap holds packets like the first one; in pcapng interfaces are described when they are
    /// needed, so that the file does not depend on how much was read at once.
    fn begin(&self, first: Option<&Packet<'_>>) -> io::Result<Output> {
        let application = Some(concat!("netsniff ", env!("CARGO_PKG_VERSION")).to_owned());
        let section = Section { application, ..self.section.clone() };
        let interfaces = match (self.format, first) {
            (CaptureFormat::Pcapng, _) => Vec::new(),
            (CaptureFormat::Pcap, Some(packet)) => {
                let like = |it: &&Interface| it.link_type == packet.link_type;
                self.interfaces.iter().filter(like).cloned().collect()
            }
            (CaptureFormat::Pcap, None) => self.interfaces.iter().take(1).cloned().collect(),
        };
        let packing = packing_of_name(&self.path);
        Output::begin(&self.path, self.format, packing, &section, &interfaces)
            .map_err(io::Error::other)
    }

    /// Ends the file with what the interfaces counted. It is there also where no packet is.
    pub(super) fn finish(mut self, inputs: &Inputs) -> io::Result<()> {
        self.describe(inputs);
        if self.output.is_none() {
            self.output = Some(self.begin(None)?);
        }
        self.describe_up_to(self.interfaces.len())?;
        let Some(output) = self.output.take() else { return Ok(()) };
        let numbers = 0..self.described as u32;
        let interfaces = numbers.filter_map(|number| inputs.merged.interface(number));
        output.finish(interfaces.map(|(_, interface)| interface))
    }

    /// Describes the interfaces of the input up to this number, as far as they are not yet.
    fn describe_up_to(&mut self, number: usize) -> io::Result<()> {
        let Some(output) = &mut self.output else { return Ok(()) };
        let new = self.interfaces.iter().take(number).skip(self.described);
        for interface in new {
            output.interface(interface)?;
            self.described += 1;
        }
        Ok(())
    }

    /// The output, in which the interface of a packet is described.
    fn ready(&mut self, packet: &Packet<'_>) -> io::Result<&mut Output> {
        if self.output.is_none() {
            self.output = Some(self.begin(Some(packet))?);
        }
        self.describe_up_to(packet.interface as usize + 1)?;
        self.output.as_mut().ok_or_else(|| io::Error::other("there is no output"))
    }
}

impl TakeCarved for Written {
    fn packet(&mut self, carved: &Carved<'_>) -> io::Result<()> {
        let mut told = core::mem::take(&mut self.comment);
        told.clear();
        for flow in carved.flows {
            let space = if told.is_empty() { "" } else { " " };
            // Text takes whatever is written.
            let _ = write!(told, "{space}uid={}", Uid::new(flow.name));
        }
        let own = carved.comments.iter().map(String::as_str);
        // What was extracted before may have the same.
        let mut comments: Vec<_> = own.filter(|comment| *comment != told).collect();
        comments.extend(Some(told.as_str()).filter(|text| !text.is_empty()));
        let lost = (carved.lost > 0).then_some(carved.lost);
        let notes = PacketNotes { lost, comments: &comments };
        let is_pcap = self.format == CaptureFormat::Pcap;
        let output = self.ready(&carved.packet)?;
        let written = output.packet(&carved.packet, notes).map_err(|error| {
            let remedy = if is_pcap { "; write pcapng, which can" } else { "" };
            if error.kind() == io::ErrorKind::InvalidInput {
                io::Error::other(format!("{error}{remedy}"))
            } else {
                error
            }
        });
        self.comment = told;
        written
    }

    fn block(&mut self, block: &[u8]) -> io::Result<()> {
        if self.format == CaptureFormat::Pcap {
            return Ok(());
        }
        if self.output.is_none() {
            self.output = Some(self.begin(None)?);
        }
        self.output.as_mut().map_or(Ok(()), |output| output.block(block))
    }
}
