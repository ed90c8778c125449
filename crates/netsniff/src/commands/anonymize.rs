//! `netsniff anonymize`: a capture that names nobody.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, ErrorKind, Write, stderr, stdout};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use netsniff_console::number::exact;
use netsniff_console::paths::{is_same_file, is_stdin};
use netsniff_console::terminal::progress::{ProgressLine, is_output_seen};
use netsniff_console::unlinked::create_named_private;
use netsniff_console::{DAMAGED, DONE, FAILED, UsageError, print, say};
use netsniff_packet::anonymize::frame::{Cut, PacketAnonymizer, PayloadMode};
use netsniff_packet::decode::TunnelPorts;
use netsniff_packet::{Batch, Loss, Packet, Progress, Source as _, Stage, Timestamp};
use netsniff_pcapfile::{
    Counters, Format, Interface, PcapWriter, PcapngWriter, Reader, Resolution, Section,
};

use super::inputs::span::SpanArgs;
use super::inputs::{Input, Inputs};
use super::interrupted;
use super::pseudonyms::PseudonymArgs;

/// Write a capture with pseudonyms for addresses, and without payload
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff anonymize in.pcapng out.pcapng                    pseudonyms of this run alone\n  \
    netsniff anonymize in.pcap out.pcap -m cryptopan -k KEYFILE\n                                                             \
    the same as in logs made with that key\n\n\
    Addresses are mapped in the headers of all layers and tunnels, in ARP and in what ICMP quotes;\n\
    checksums stay right where they were, and wrong where they were. What is not understood is cut.\n\
    Comments, names of hosts and descriptions of interfaces in pcapng are left out.\n\n\
    Exit code: 0 fine; 1 failed; 2 wrong usage; 3 the input was damaged, and all that could be read\n\
    was written")]
pub struct AnonymizeArgs {
    /// Capture file, pcap or pcapng, also packed with gzip, zstd or lz4; `-` for standard input
    #[arg(value_name = "IN", group = "pseudonymized")]
    input: PathBuf,
    /// Where to write, in the format of the input, not packed; `-` for standard output
    #[arg(value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    span: SpanArgs,
    #[command(flatten)]
    pseudonyms: PseudonymArgs,
    /// What becomes of payload
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    payload: PayloadPolicy,
    /// UDP ports on which tunnels are looked for, beside the known ones, as for netsniff analyze
    #[arg(long, value_name = "LIST")]
    tunnel_ports: Option<TunnelPorts>,
    /// Print no progress, and nothing of what was done
    #[arg(short, long)]
    quiet: bool,
}

/// What becomes of payload.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum PayloadPolicy {
    /// It stays, with the names and addresses in it
    Keep,
    /// It is cut off, as by a snaplen; that of fragments becomes zeros
    #[default]
    Cut,
    /// It is replaced by as many bytes of a keyed hash
    Hash,
}

/// Bytes read at once.
const READ_SIZE: usize = 256 << 10;
/// Bytes gathered before a system call writes them.
const WRITE_SIZE: usize = 256 << 10;
/// The most bytes that a packet of a pcap file has whose interface tells no bound, as libpcap has it.
const MOST_CAPTURED: u32 = 262_144;

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], a key that cannot be read, and an output that cannot be written.
pub fn run(args: &AnonymizeArgs) -> anyhow::Result<u8> {
    if is_same_file(&args.input, &args.output) {
        return Err(UsageError(format!(
            "{} is both read and written: name another file to write to",
            args.input.display()
        ))
        .into());
    }
    let pseudonyms = args.pseudonyms.pseudonyms()?;
    let span = args.span.span()?;
    let (inputs, refused) = Inputs::open(std::slice::from_ref(&args.input), READ_SIZE);
    let mut inputs = inputs.within(span);
    if let Some(input) = refused.first() {
        say(&format!("{}: {}", input.path.display(), input.said));
        return Ok(FAILED);
    }
    let payload = match args.payload {
        PayloadPolicy::Keep => PayloadMode::Keep,
        PayloadPolicy::Cut => PayloadMode::Cut,
        PayloadPolicy::Hash => PayloadMode::Hash,
    };
    let tunnel_ports = Arc::new(args.tunnel_ports.clone().unwrap_or_default());
    let anonymizer = PacketAnonymizer::new(Arc::new(pseudonyms.anonymizer), payload)
        .with_tunnel_ports(tunnel_ports);
    let to_stdout = is_stdin(&args.output);
    let output: Box<dyn Write> = if to_stdout {
        Box::new(stdout())
    } else {
        let created = create_named_private(&args.output);
        Box::new(created.with_context(|| format!("cannot create {}", args.output.display()))?)
    };
    let is_quiet = args.quiet || to_stdout && is_output_seen();
    let mut progress = interrupted::progress_line(inputs.size(), is_quiet)?;
    let mut work = Work::new(anonymizer, BufWriter::with_capacity(WRITE_SIZE, output));
    let done = work.all(&mut inputs, &mut progress).and_then(|()| work.finish(&inputs));
    drop(progress);
    let done = match done {
        // Whoever reads has enough.
        Err(error) if to_stdout && error.kind() == ErrorKind::BrokenPipe => return Ok(DONE),
        done => done.with_context(|| format!("cannot write {}", args.output.display())),
    };
    let told = done?;
    let damaged = inputs.report_damage();
    if !args.quiet {
        let lines = told.lines(&pseudonyms.said);
        // What was done is no part of a capture.
        let printed = if to_stdout { print(stderr(), &lines) } else { print(stdout(), &lines) };
        printed.context("cannot print what was done")?;
    }
    Ok(if damaged { DAMAGED } else { DONE })
}

/// A file that is written, in one of two formats.
enum Writer<W: Write> {
    Pcap(PcapWriter<W>),
    Pcapng(PcapngWriter<W>),
}

#[derive(Clone, Debug, Default)]
struct Told {
    packets: u64,
    cut: BTreeMap<Cut, u64>,
}

struct Work<W: Write> {
    anonymizer: PacketAnonymizer,
    /// Where to write until the format is known.
    output: Option<W>,
    writer: Option<Writer<W>>,
    /// Interfaces that were written.
    interfaces: usize,
    /// Packets that were lost before the next one.
    lost: u64,
    latest: Timestamp,
    told: Told,
}

impl<W: Write> Work<W> {
    fn new(anonymizer: PacketAnonymizer, output: W) -> Self {
        Self {
            anonymizer,
            output: Some(output),
            writer: None,
            interfaces: 0,
            lost: 0,
            latest: Timestamp::EPOCH,
            told: Told::default(),
        }
    }

    fn all(&mut self, inputs: &mut Inputs, progress: &mut ProgressLine) -> io::Result<()> {
        let mut batch = Batch::default();
        loop {
            let Ok(state) = inputs.read_batch(&mut batch);
            let reader = inputs.merged.readers().next();
            let reader = reader.ok_or_else(|| io::Error::other("there is nothing to read"))?;
            self.describe(reader)?;
            self.batch(&mut batch, reader.interfaces().len())?;
            progress.update(|| (inputs.bytes_read(), inputs.packets()));
            if state == Progress::End {
                return Ok(());
            }
        }
    }

    /// Begins the file, and describes the interfaces that are new.
    fn describe(&mut self, reader: &Reader<Input>) -> io::Result<()> {
        if let Some(output) = self.output.take() {
            self.writer = Some(match (reader.format(), reader.interfaces()) {
                (Format::Pcap(_), [interface, ..]) => {
                    let snaplen = interface.snaplen.unwrap_or(MOST_CAPTURED);
                    Writer::Pcap(PcapWriter::new(output, interface.link_type, snaplen)?)
                }
                _ => {
                    let application = concat!("netsniff ", env!("CARGO_PKG_VERSION")).to_owned();
                    let section = Section { application: Some(application), ..Section::default() };
                    Writer::Pcapng(PcapngWriter::new(output, &section)?)
                }
            });
        }
        if let Some(Writer::Pcapng(writer)) = &mut self.writer {
            for interface in reader.interfaces().iter().skip(self.interfaces) {
                writer.add_interface(&unnamed(interface))?;
                self.interfaces += 1;
            }
        }
        Ok(())
    }

    fn batch(&mut self, batch: &mut Batch, interfaces: usize) -> io::Result<()> {
        let mut losses = core::mem::take(&mut batch.losses).into_iter().peekable();
        for at in 0..batch.packets.len() {
            while let Some((_, loss)) = losses.next_if(|(before, _)| *before as usize <= at) {
                self.lose(&loss, interfaces);
            }
            let Some(record) = batch.packets.get(at).copied() else { break };
            let Some(data) = batch.data.get_mut(record.range()) else { continue };
            let left = self.anonymizer.packet(record.link_type, data, record.wire_len);
            self.told.packets += 1;
            if let Some(cut) = left.cut {
                *self.told.cut.entry(cut).or_default() += 1;
            }
            let packet = batch.packet(&record);
            let data = packet.data.get(..left.len).unwrap_or_default();
            self.write(&Packet { data, ..packet })?;
        }
        losses.for_each(|(_, loss)| self.lose(&loss, interfaces));
        Ok(())
    }

    /// Notes what was lost before the next packet. With several interfaces nothing tells on which one
    /// their totals grew; these stand at the end of the file.
    const fn lose(&mut self, loss: &Loss, interfaces: usize) {
        if interfaces == 1 || matches!(loss.stage, Stage::Unknown) {
            self.lost = self.lost.saturating_add(loss.packets);
        }
    }

    fn write(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        self.latest = self.latest.max(packet.timestamp);
        match &mut self.writer {
            None => Ok(()),
            Some(Writer::Pcap(writer)) => writer.write_packet(packet),
            Some(Writer::Pcapng(writer)) => match core::mem::take(&mut self.lost) {
                0 => writer.write_packet(packet),
                lost => writer.write_packet_after_loss(packet, lost),
            },
        }
    }

    /// Writes what the interfaces counted, and ends the file.
    fn finish(&mut self, inputs: &Inputs) -> io::Result<Told> {
        match self.writer.take() {
            None => {}
            Some(Writer::Pcap(writer)) => writer.finish()?.flush()?,
            Some(Writer::Pcapng(mut writer)) => {
                let all = inputs.iter().flat_map(|(_, reader)| reader.interfaces());
                for (number, interface) in (0..).zip(all) {
                    let counters = interface.counters;
                    let totals = Counters { dropped_between_packets: None, ..counters };
                    if totals != Counters::NONE {
                        writer.write_counters(number, self.latest, &totals)?;
                    }
                }
                writer.finish()?.flush()?;
            }
        }
        Ok(core::mem::take(&mut self.told))
    }
}

/// An interface without the names that people gave it or its machine.
fn unnamed(interface: &Interface) -> Interface {
    Interface {
        speed: interface.speed,
        // Stamps are nanoseconds, which the finer ones were made when they were read.
        resolution: Resolution::NANOSECONDS,
        time_offset: interface.time_offset,
        ..Interface::new(interface.link_type, interface.snaplen.unwrap_or(0))
    }
}

impl Told {
    /// What was done, in a few lines.
    fn lines(&self, said: &str) -> String {
        let count = |number: u64| exact(number.into());
        let mut lines = format!("packets written: {}\n", count(self.packets));
        for (cut, packets) in &self.cut {
            let what = match cut {
                Cut::Payload => "payload cut".to_owned(),
                Cut::Unknown(layer) => format!("cut behind {}, not understood", layer.name()),
                Cut::LinkType => "emptied, link type not supported".to_owned(),
            };
            lines += &format!("  {what}: {}\n", count(*packets));
        }
        lines + said + "\n"
    }
}
