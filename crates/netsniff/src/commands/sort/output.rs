//! A capture file that is written under another name until it is whole.

use std::fs::File;
use std::io::{self, Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use netsniff_console::paths::is_stdin;
use netsniff_console::unfinished::Unfinished;
use netsniff_console::unlinked;
use netsniff_packet::{Packet, Timestamp};
use netsniff_pcapfile::{Counters, Interface, Packer, PacketNotes, Packing, Section, Statistics};
use netsniff_pipeline::recording::encoding::Encoding;
use netsniff_pipeline::recording::naming::CaptureFormat;

/// Bytes gathered before they are packed or written.
const WRITE_SIZE: usize = 256 << 10;

/// A capture file that is written.
pub(crate) struct Output {
    encoding: Encoding,
    /// What waits to be written.
    blocks: Vec<u8>,
    packer: Packer<Box<dyn Write>>,
    /// The file and its name, where it has another one until it is whole.
    unfinished: Option<(Unfinished, PathBuf)>,
    latest: Timestamp,
}

impl Output {
    /// Begins a file with these interfaces.
    ///
    /// # Errors
    ///
    /// When it cannot be created, or the format cannot hold the interfaces.
    pub(crate) fn begin(
        path: &Path,
        format: CaptureFormat,
        packing: Option<Packing>,
        section: &Section,
        interfaces: &[Interface],
    ) -> anyhow::Result<Self> {
        let encoding = Encoding::new(format, section, interfaces)?;
        let (output, unfinished) =
            create(path).with_context(|| format!("cannot create {}", path.display()))?;
        let packer = Packer::new(output, packing).context("cannot begin to pack")?;
        let blocks = encoding.header().to_vec();
        let latest = Timestamp::EPOCH;
        Ok(Self { encoding, blocks, packer, unfinished, latest })
    }

    /// Describes an interface that was not known when the file began.
    ///
    /// # Errors
    ///
    /// Texts longer than a block can be.
    pub(crate) fn interface(&mut self, interface: &Interface) -> io::Result<()> {
        self.encoding.interface(interface, &mut self.blocks)
    }

    /// Adds the packet that comes next.
    ///
    /// # Errors
    ///
    /// Those of the output, a time that the format cannot tell, and a link type that it cannot hold.
    pub(crate) fn packet(&mut self, packet: &Packet<'_>, notes: PacketNotes<'_>) -> io::Result<()> {
        self.latest = self.latest.max(packet.timestamp);
        self.encoding.packet(packet, notes, &mut self.blocks)?;
        if self.blocks.len() >= WRITE_SIZE { self.write() } else { Ok(()) }
    }

    /// Adds a whole block of pcapng.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub(crate) fn block(&mut self, block: &[u8]) -> io::Result<()> {
        self.blocks.extend(block);
        if self.blocks.len() >= WRITE_SIZE { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> io::Result<()> {
        self.packer.write_all(&self.blocks)?;
        self.blocks.clear();
        Ok(())
    }

    /// Adds what the interfaces counted by the end, ends the file and gives it its name.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub(crate) fn finish<'i>(
        mut self,
        interfaces: impl IntoIterator<Item = &'i Interface>,
    ) -> io::Result<()> {
        for (number, interface) in (0..).zip(interfaces) {
            // Those between packets stand there.
            let counters = Counters { dropped_between_packets: None, ..interface.counters };
            if counters != Counters::NONE {
                let statistics = Statistics { counters, ..Statistics::default() };
                let (at, out) = (self.latest, &mut self.blocks);
                self.encoding.statistics(number, at, &statistics, out)?;
            }
        }
        self.write()?;
        self.packer.finish()?;
        match self.unfinished {
            Some((unfinished, name)) => unfinished.finish(&name),
            None => Ok(()),
        }
    }
}

/// What is written to, and the unfinished file behind it with the name that it gets in the end, where there is one.
type Created = (Box<dyn Write>, Option<(Unfinished, PathBuf)>);

/// Standard output, a pipe or device as it is, or a file under another name.
fn create(path: &Path) -> io::Result<Created> {
    if is_stdin(path) {
        return Ok((Box::new(stdout()), None));
    }
    if unlinked::is_of_system(path) {
        return Ok((Box::new(unlinked::create_named_private(path)?), None));
    }
    unlinked::refuse(path)?;
    if path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        return Ok((Box::new(File::options().write(true).open(path)?), None));
    }
    let name = path.to_owned();
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name.file_name().unwrap_or_default());
    hidden.push(format!(".{}", std::process::id()));
    let written = name.with_file_name(hidden);
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if written.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let unfinished = Unfinished::new(written);
    let file = unlinked::create_new_private(unfinished.path())?;
    Ok((Box::new(file), Some((unfinished, name))))
}
