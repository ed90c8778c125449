//! What is recorded, and how it is written.

use std::path::PathBuf;

use netsniff_console::paths::is_stdin;
use netsniff_packet::Timestamp;
use netsniff_packet::decode::TunnelPorts;
use netsniff_pcapfile::{Interface, Packing, Section};

use super::naming::{CaptureFormat, FileName};
use super::rotation::Rotation;
use crate::carving::index::series::Naming;

/// The most bytes that are kept of a packet, as libpcap has it; no interface has longer ones.
pub const MOST_CAPTURED: u32 = 262_144;
/// Bytes that are written at once, unless told otherwise: large writes cost least per byte, as long as
/// a processor's second-level cache holds what is written.
pub const BUFFER_BYTES: usize = 256 << 10;
/// Buffers, unless told otherwise: at 1 Gbit/s a quarter of a second in which the disk may stand
/// still.
pub const BUFFERS: usize = 128;

/// How bytes get to a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum WriteIo {
    /// Past the page cache where the file system can
    #[default]
    Auto,
    /// Through the page cache
    Buffered,
    /// Past the page cache (O_DIRECT), or not at all
    Direct,
}

/// What is recorded, and how it is written.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to write; `-` for standard output, which makes one file.
    pub output: PathBuf,
    /// The format of the files.
    pub format: CaptureFormat,
    /// How files are compressed, if they are.
    pub packing: Option<Packing>,
    /// How they get to the disk.
    pub io: WriteIo,
    /// When to begin another file.
    pub rotation: Rotation,
    /// The most bytes that are kept of a packet, [`MOST_CAPTURED`] at most.
    pub snaplen: u32,
    /// Bytes of a flow behind which only headers are kept.
    pub flow_cutoff: Option<u64>,
    /// UDP ports on which tunnels are looked for, whose flows are cut off one by one.
    pub tunnel_ports: TunnelPorts,
    /// Secret that keeps crafted traffic from aiming at places of the table of flows.
    pub seed: u64,
    /// How connections are named in an index beside each file; `None` for no index.
    pub index: Option<Naming>,
    /// What is said of the machine, with comments.
    pub section: Section,
    /// The interfaces, at the numbers that packets give.
    pub interfaces: Vec<Interface>,
    /// Buffers between capturing and writing; two at least.
    pub buffers: usize,
    /// Bytes of each. One is never smaller than what a packet and the begin of a file need.
    pub buffer_bytes: usize,
}

impl Options {
    /// One pcapng file with whole packets.
    #[must_use]
    pub fn new(output: PathBuf, interfaces: Vec<Interface>) -> Self {
        Self {
            output,
            format: CaptureFormat::Pcapng,
            packing: None,
            io: WriteIo::default(),
            rotation: Rotation::default(),
            snaplen: MOST_CAPTURED,
            flow_cutoff: None,
            tunnel_ports: TunnelPorts::default(),
            seed: 0,
            index: None,
            section: super::machine::section(),
            interfaces,
            buffers: BUFFERS,
            buffer_bytes: BUFFER_BYTES,
        }
    }

    /// The file that takes everything; `None` for standard output, and where there are several.
    #[must_use]
    pub fn only_file(&self) -> Option<PathBuf> {
        let is_one = !is_stdin(&self.output) && !self.rotation.is_on();
        // Without a number there is no time in the name.
        is_one.then(|| FileName::new(&self.output, self.packing, false).of(1, Timestamp::EPOCH))
    }
}
