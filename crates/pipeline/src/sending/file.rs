//! Frames into a capture file instead of onto a wire, with the times that a plan gives them.

use std::io::{self, BufWriter, ErrorKind, Write, stdout};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, ensure};
use netsniff_console::number::{bytes, duration, things};
use netsniff_console::paths::is_stdin;
use netsniff_console::printable::json_line;
use netsniff_console::unlinked::create_named_private;
use netsniff_packet::{LinkType, Packet, Timestamp};
use netsniff_pcapfile::{Interface, Packer, PcapWriter, PcapngWriter, Section};
use netsniff_traffic::plan::Plan;
use serde::Serialize;

use super::drive::{Frames, Orders, SendStep};
use super::report::UnsentFrames;
use crate::recording::naming::{CaptureFormat, packing_of_name};

/// Bytes gathered before a system call writes them.
const WRITE_SIZE: usize = 1 << 20;

/// The longest frame: what IP can say behind an Ethernet header with two tags.
const LONGEST: usize = 14 + 8 + 65_535;

/// The most bytes of a packet that a pcap file names, as libpcap has it.
const SNAPLEN: u32 = 262_144;

type Output = Packer<BufWriter<Box<dyn Write>>>;

enum Writer {
    Pcap(PcapWriter<Output>),
    Pcapng(PcapngWriter<Output>),
}

impl Writer {
    fn new(path: &Path) -> io::Result<Self> {
        let output: Box<dyn Write> =
            if is_stdin(path) { Box::new(stdout()) } else { Box::new(create_named_private(path)?) };
        let output = BufWriter::with_capacity(WRITE_SIZE, output);
        let output = Packer::new(output, packing_of_name(path))?;
        if CaptureFormat::of_name(path) == Some(CaptureFormat::Pcap) {
            return PcapWriter::new(output, LinkType::ETHERNET, SNAPLEN).map(Self::Pcap);
        }
        let application = concat!("netsniff ", env!("CARGO_PKG_VERSION")).to_owned();
        let section = Section { application: Some(application), ..Section::default() };
        let mut writer = PcapngWriter::new(output, &section)?;
        writer.add_interface(&Interface::new(LinkType::ETHERNET, SNAPLEN))?;
        Ok(Self::Pcapng(writer))
    }

    fn write(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        match self {
            Self::Pcap(writer) => writer.write_packet(packet),
            Self::Pcapng(writer) => writer.write_packet(packet),
        }
    }

    fn finish(self) -> io::Result<()> {
        let output = match self {
            Self::Pcap(writer) => writer.finish()?,
            Self::Pcapng(writer) => writer.finish()?,
        };
        output.finish()?.flush()
    }
}

/// Counts of what was written to a file.
#[derive(Clone, Debug, Serialize)]
pub struct Written {
    file: PathBuf,
    /// Number of frames.
    pub frames: u64,
    bytes: u64,
    /// From the first frame to the last.
    seconds: f64,
    /// What all stamps carry, where frames have stamps.
    run: Option<u32>,
    interrupted: bool,
    /// What was not written as it is, and why.
    left_out: Vec<UnsentFrames>,
}

/// Writes frames to a capture file until there are no more, the orders end it, or `stop` is set. The first is due at
/// `start`.
///
/// # Errors
///
/// Orders without a plan, and a file that cannot be written.
pub fn write(
    frames: &mut impl Frames,
    mut orders: Orders,
    path: &Path,
    start: Timestamp,
    stop: &AtomicBool,
) -> anyhow::Result<Written> {
    let failed = || format!("cannot write {}", path.display());
    let mut writer = Writer::new(path).with_context(failed)?;
    let end = orders.duration.map_or(u128::MAX, |duration| duration.as_nanos());
    frames.begin(start);
    let mut room = vec![0; LONGEST];
    let (mut count, mut bytes, mut times) = (0, 0, None);
    while count < orders.most && !stop.load(Ordering::Relaxed) {
        let frame = match frames.advance()? {
            SendStep::Frame(frame) => frame,
            SendStep::Again => {
                orders.plan.iter_mut().for_each(Plan::again);
                continue;
            }
            SendStep::End => break,
        };
        let due = orders.plan.as_mut().context("a file needs a rate")?.due(&frame);
        if u128::from(due) >= end {
            break;
        }
        let len = frames.write(0, &mut room, due);
        ensure!(len <= LONGEST, "a frame of {len} bytes is too long");
        let timestamp = start.offset(i64::try_from(due).unwrap_or(i64::MAX));
        let packet = Packet {
            timestamp,
            data: &room[..len],
            wire_len: len as u32,
            link_type: LinkType::ETHERNET,
            interface: 0,
        };
        match writer.write(&packet) {
            // Whoever reads has enough.
            Err(error) if is_stdin(path) && error.kind() == ErrorKind::BrokenPipe => break,
            done => done.with_context(failed)?,
        }
        times.get_or_insert((due, due)).1 = due;
        (count, bytes) = (count + 1, bytes + len as u64);
    }
    match writer.finish() {
        Err(error) if is_stdin(path) && error.kind() == ErrorKind::BrokenPipe => {}
        done => done.with_context(failed)?,
    }
    Ok(Written {
        file: path.to_owned(),
        frames: count,
        bytes,
        seconds: times.map_or(0, |(first, last): (u64, u64)| last - first) as f64 / 1e9,
        run: None,
        interrupted: stop.load(Ordering::Relaxed),
        left_out: Vec::new(),
    })
}

impl Written {
    /// The same, of frames with stamps of a run.
    #[must_use]
    pub fn with_run(self, run: u32) -> Self {
        Self { run: Some(run), ..self }
    }

    /// The same, with what was not written as it is.
    #[must_use]
    pub fn with_left_out(self, left_out: Vec<UnsentFrames>) -> Self {
        Self { left_out: left_out.into_iter().filter(|left| left.frames > 0).collect(), ..self }
    }

    /// One line of JSON.
    ///
    /// # Errors
    ///
    /// None that this can cause.
    pub fn json(&self) -> serde_json::Result<String> {
        json_line(self)
    }

    /// The report as lines of text.
    #[must_use]
    pub fn text(&self) -> String {
        let run = self.run.map(|run| format!(", stamps of run {run}")).unwrap_or_default();
        let mut text = format!(
            "Wrote {} ({}, over {}) to {}{run}\n",
            things(self.frames, "frame"),
            bytes(self.bytes),
            duration((self.seconds * 1e9) as u64),
            self.file.display()
        );
        for left in &self.left_out {
            text += &format!("  {}: {}\n", things(left.frames, "frame"), left.what);
        }
        text
    }
}
