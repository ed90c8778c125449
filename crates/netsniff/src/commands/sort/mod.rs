//! `netsniff sort`: captures in the order of time.

pub(crate) mod output;
mod runs;

use std::fs::Metadata;
use std::io::{self, ErrorKind, stderr, stdout};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use netsniff_console::number::{duration, exact};
use netsniff_console::paths::{is_same_file, is_stdin};
use netsniff_console::terminal::progress::{ProgressLine, is_output_seen};
use netsniff_console::{DAMAGED, DONE, FAILED, UsageError, print, quantity, say};
use netsniff_packet::{Batch, LinkType, Loss, Progress, Source as _, Stage};
use netsniff_pcapfile::{Facts, Interface, PacketNotes, Section};
use netsniff_pipeline::recording::naming::{CaptureFormat, packing_of_name};

use self::output::Output;
use self::runs::{Item, LEAST_MEMORY, Sorter};
use super::inputs::Inputs;
use super::inputs::span::SpanArgs;
use super::interrupted;

/// Write the packets of captures in the order of their time
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff sort in.pcapng out.pcapng               as reordercap does, whatever the size\n  \
    netsniff sort a.pcap b.pcap.gz both.pcapng.zst   several files as one, packed\n  \
    netsniff sort in.pcapng - | netsniff analyze -\n\n\
    Packets with equal times stay in the order in which they are read, file after file. Comments and\n\
    flags of single packets are left out.\n\n\
    Exit code: 0 fine; 1 failed; 2 wrong usage; 3 an input was damaged, and all that could be read\n\
    was written")]
pub struct SortArgs {
    /// Capture files, pcap or pcapng, also packed with gzip, zstd or lz4; `-` for standard input
    #[arg(value_name = "IN", required = true)]
    inputs: Vec<PathBuf>,
    /// Where to write; packed where the suffix says so; `-` for standard output
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Format to write; as the suffix of OUT tells, or else pcapng
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<CaptureFormat>,
    #[command(flatten)]
    span: SpanArgs,
    /// Memory to stay within, as 500M or 2G; more packets than fit are sorted in parts, in files
    /// beside OUT
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, default_value = "256M")]
    memory: usize,
    /// Print no progress, and nothing of what was done
    #[arg(short, long)]
    quiet: bool,
}

/// Bytes read at once.
const READ_SIZE: usize = 256 << 10;
/// Memory for all but sorting: what is read, unpacked and written, and the program.
const BUFFERS: usize = 13 << 20;
/// The part of the rest that the allocator may leave unused: one of so many.
const UNUSED: usize = 8;
/// Packets that are written between two looks at the clock.
const PACKETS_BETWEEN_LOOKS: u64 = 256;

/// Comments on sections that are written; more are read by nobody.
const MOST_COMMENTS: usize = 16;

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], and an output that cannot be written.
pub fn run(args: &SortArgs) -> anyhow::Result<u8> {
    interrupted::remove_unfinished()?;
    if let Some(input) = args.inputs.iter().find(|input| is_same_file(input, &args.output)) {
        let same = input.display();
        let said = format!("{same} is both read and written: name another file to write to");
        return Err(UsageError(said).into());
    }
    let span = args.span.span()?;
    let memory = args.memory.checked_sub(BUFFERS).map(|rest| rest - rest / UNUSED);
    let memory = memory.filter(|memory| *memory >= LEAST_MEMORY);
    let memory = memory.ok_or_else(|| UsageError("--memory must be at least 16M".to_owned()))?;
    let is_quiet = args.quiet || is_stdin(&args.output) && is_output_seen();
    let mut progress = ProgressLine::new(size(&args.inputs), is_quiet);
    let mut work = Work::new(Sorter::new(memory, scratch_name(&args.output)));
    for path in &args.inputs {
        let (inputs, refused) = Inputs::open(std::slice::from_ref(path), READ_SIZE);
        let mut inputs = inputs.within(span);
        if let Some(input) = refused.first() {
            say(&format!("{}: {}", input.path.display(), input.said));
            return Ok(FAILED);
        }
        work.read(&mut inputs, &mut progress).context("cannot write what waits to be sorted")?;
        work.damaged |= inputs.report_damage();
    }
    drop(progress);
    let (damaged, told) = (work.damaged, work.describe());
    let mut progress = ProgressLine::new(Some(work.captured_bytes), is_quiet);
    let written = work.write(args, &mut progress);
    drop(progress);
    match written {
        // Whoever reads has enough.
        Err(error) if is_closed_pipe(&error) && is_stdin(&args.output) => return Ok(DONE),
        done => done?,
    }
    if !args.quiet {
        // What was done is no part of a capture.
        let printed =
            if is_stdin(&args.output) { print(stderr(), &told) } else { print(stdout(), &told) };
        printed.context("cannot print what was done")?;
    }
    Ok(if damaged { DAMAGED } else { DONE })
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// The size of all inputs together; `None` where it is not known of one.
fn size(inputs: &[PathBuf]) -> Option<u64> {
    let metadata = inputs.iter().map(|path| path.metadata().ok().filter(Metadata::is_file));
    metadata.map(|metadata| Some(metadata?.len())).sum()
}

/// A hidden file beside the output, where there is room for the output too.
fn scratch_name(output: &Path) -> PathBuf {
    let folder = match output.parent() {
        Some(folder) if !is_stdin(output) && !output.starts_with("/dev") => folder.to_owned(),
        _ => std::env::temp_dir(),
    };
    folder.join(format!(".netsniff-sort-{}", std::process::id()))
}

/// What was read so far.
struct Work {
    sorter: Sorter,
    /// The interfaces of all inputs, one input after the other, each with its packets.
    interfaces: Vec<(Interface, u64)>,
    section: Section,
    packets: u64,
    inversions: u64,
    /// Nanoseconds by which the latest packet was late.
    lateness: i64,
    bytes_read: u64,
    captured_bytes: u64,
    damaged: bool,
}

impl Work {
    const fn new(sorter: Sorter) -> Self {
        Self {
            sorter,
            interfaces: Vec::new(),
            section: Section { hardware: None, os: None, application: None, comments: Vec::new() },
            packets: 0,
            inversions: 0,
            lateness: 0,
            bytes_read: 0,
            captured_bytes: 0,
            damaged: false,
        }
    }

    /// Reads a file to its end.
    fn read(&mut self, inputs: &mut Inputs, progress: &mut ProgressLine) -> io::Result<()> {
        let (mut batch, mut facts, mut lost) = (Batch::default(), Facts::default(), 0);
        let first = self.interfaces.len();
        loop {
            let Ok(state) = inputs.read_batch(&mut batch);
            let interfaces = inputs.merged.interface_count();
            self.batch(&batch, first, interfaces, &mut facts, &mut lost)?;
            let (before, packets) = (self.bytes_read, self.packets);
            progress.update(|| (before + inputs.bytes_read(), packets + facts.packets));
            if state == Progress::End {
                break;
            }
        }
        for (_, reader) in inputs.iter() {
            for (number, interface) in reader.interfaces().iter().enumerate() {
                let packets = facts.by_interface.get(number).copied().unwrap_or(0);
                self.interfaces.push((interface.clone(), packets));
            }
            for section in reader.sections() {
                self.add_section(section);
            }
        }
        self.packets += facts.packets;
        self.inversions += facts.inversions;
        self.lateness = self.lateness.max(facts.deepest_inversion);
        self.bytes_read += inputs.bytes_read();
        self.captured_bytes += facts.captured_bytes;
        Ok(())
    }

    fn batch(
        &mut self,
        batch: &Batch,
        first: usize,
        interfaces: usize,
        facts: &mut Facts,
        lost: &mut u64,
    ) -> io::Result<()> {
        let mut losses = batch.losses.iter().peekable();
        // With several interfaces nothing tells on which one their totals grew; these stand at the
        // end of the file.
        let before = |loss: &Loss| match loss.stage {
            Stage::Interface | Stage::System if interfaces > 1 => 0,
            _ => loss.packets,
        };
        for (at, packet) in batch.iter().enumerate() {
            while let Some((_, loss)) = losses.next_if(|(place, _)| *place as usize <= at) {
                *lost = lost.saturating_add(before(loss));
            }
            facts.add(&packet);
            self.sorter.push(&Item {
                time: packet.timestamp,
                interface: packet.interface.saturating_add(first as u32),
                wire_len: packet.wire_len,
                lost: core::mem::take(lost),
                data: packet.data,
            })?;
        }
        losses.for_each(|(_, loss)| *lost = lost.saturating_add(before(loss)));
        Ok(())
    }

    /// The machine of the first section stands; comments of all of them do.
    fn add_section(&mut self, section: &Section) {
        let stands = &mut self.section;
        stands.hardware = stands.hardware.take().or_else(|| section.hardware.clone());
        stands.os = stands.os.take().or_else(|| section.os.clone());
        let new = section.comments.iter().filter(|comment| !stands.comments.contains(comment));
        let room = MOST_COMMENTS.saturating_sub(stands.comments.len());
        let new: Vec<_> = new.take(room).cloned().collect();
        stands.comments.extend(new);
    }

    /// Writes all packets by time.
    fn write(self, args: &SortArgs, progress: &mut ProgressLine) -> anyhow::Result<()> {
        let named = CaptureFormat::of_name(&args.output);
        let format = args.format.or(named).unwrap_or_default();
        let application = Some(concat!("netsniff ", env!("CARGO_PKG_VERSION")).to_owned());
        let section = Section { application, ..self.section };
        let packing = packing_of_name(&args.output);
        // Numbers count in pcapng alone, and pcap holds one link type.
        let is_written = |packets: u64| format == CaptureFormat::Pcapng || packets > 0;
        let with_packets = self.interfaces.iter().filter(|(_, packets)| is_written(*packets));
        let described: Vec<_> = with_packets.map(|(interface, _)| interface.clone()).collect();
        let mut output = Output::begin(&args.output, format, packing, &section, &described)?;
        let (mut packets, mut bytes) = (0, 0);
        let written = self.sorter.finish(|item| {
            packets += 1;
            bytes += item.data.len() as u64;
            if packets % PACKETS_BETWEEN_LOOKS == 0 {
                progress.update(|| (bytes, packets));
            }
            let interface = self.interfaces.get(item.interface as usize);
            let link_type = interface.map_or(LinkType::ETHERNET, |(it, _)| it.link_type);
            let lost = (item.lost > 0).then_some(item.lost);
            output.packet(&item.packet(link_type), PacketNotes { lost, comments: &[] })
        });
        let written = written.and_then(|()| output.finish(&described));
        written.with_context(|| format!("cannot write {}", args.output.display()))
    }

    /// What was done, in a few lines.
    fn describe(&self) -> String {
        let count = |number: u64| exact(number.into());
        let mut lines = format!("packets written: {}\n", count(self.packets));
        lines += &match self.inversions {
            0 => "  all were in order\n".to_owned(),
            inversions => format!(
                "  earlier than the one before: {}, at most {} behind the latest\n",
                count(inversions),
                duration(self.lateness.unsigned_abs())
            ),
        };
        lines
    }
}
