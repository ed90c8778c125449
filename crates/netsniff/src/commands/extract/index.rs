//! `netsniff index`: which packets belong to which connection, so that `netsniff extract` need not read all.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use netsniff_analysis::{Limits, Options};
use netsniff_console::number::exact;
use netsniff_console::paths::is_stdin;
use netsniff_console::terminal::progress::ProgressLine;
use netsniff_console::{DONE, FAILED, UsageError, print, say};
use netsniff_packet::decode::TunnelPorts;
use netsniff_packet::{Batch, Progress, Source as _};
use netsniff_pipeline::carving::choice::{FlowChoice, PacketChoice};
use netsniff_pipeline::carving::index::Identity;
use netsniff_pipeline::carving::index::build::Builder;
use netsniff_pipeline::carving::index::format::{Together, Writer};
use netsniff_pipeline::carving::index::sidecar::{Appended, Sidecar, Written};
use netsniff_pipeline::carving::{Carver, CarvingStatistics};

use super::READ_SIZE;
use super::args::expanded;
use super::indexed::naming_choices;
use crate::commands::inputs::Inputs;
use crate::commands::interrupted;
use crate::commands::timeouts::{self, Timeouts};

/// Write indexes of captures, by which netsniff extract finds packets without reading all
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff index day.pcapng                          writes day.pcapng.nsi\n  \
    netsniff index archive/                            of all captures in a directory, as one traffic\n  \
    netsniff extract archive/ -w out.pcapng --uid C0Uu1dTkqKSZqk4Kvm\n\n\
    Connections have the uids that netsniff analyze gives them over the same files together. Where a\n\
    capture was changed since, its index is not used, and that is said.\n\n\
    Exit code: 0 fine; 1 failed, or a capture cannot be indexed (packed, damaged); 2 wrong usage")]
pub struct IndexArgs {
    /// Capture files, pcap or pcapng, not packed, that are analysed as one traffic; of a directory all captures in it
    #[arg(value_name = "IN", required = true)]
    inputs: Vec<PathBuf>,
    /// UDP ports on which tunnels are looked for, beside the known ones, as for netsniff analyze
    #[arg(long, value_name = "LIST")]
    tunnel_ports: Option<TunnelPorts>,
    /// Silences after which flows end, as for netsniff analyze
    #[arg(long, value_name = "NAME=TIME,…", value_parser = timeouts::parse)]
    timeout: Option<Timeouts>,
    /// Print no progress, and nothing of what was done
    #[arg(short, long)]
    quiet: bool,
}

/// Bytes of packets that may wait until it is known which connections they belong to.
const MOST_HELD: usize = 256 << 20;

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], and an index that cannot be written.
pub fn run(args: &IndexArgs) -> anyhow::Result<u8> {
    let limits = args.timeout.as_ref().map_or_else(Limits::default, |it| it.set(Limits::default()));
    let tunnel_ports = Arc::new(args.tunnel_ports.clone().unwrap_or_default());
    let options = Options { tunnel_ports, ..Options::default() };
    let Some(lines) = write(&expanded(&args.inputs)?, limits, options, args.quiet)? else {
        return Ok(FAILED);
    };
    if !args.quiet {
        print(stdout(), &lines).context("cannot print what was done")?;
    }
    Ok(DONE)
}

/// Writes indexes of captures that are analysed together, and returns a line for each; `None` where one cannot be indexed,
/// which is said.
///
/// # Errors
///
/// [`UsageError`], and an index that cannot be written.
pub fn write(
    paths: &[PathBuf],
    limits: Limits,
    options: Options,
    is_quiet: bool,
) -> anyhow::Result<Option<String>> {
    if paths.iter().any(|path| is_stdin(path)) {
        let said = "standard input has no place for an index: write it to a file first";
        return Err(UsageError(said.to_owned()).into());
    }
    interrupted::remove_unfinished()?;
    let captures: Result<Vec<Sidecar>, String> =
        paths.iter().map(|path| Sidecar::of(path)).collect();
    let captures = match captures {
        Ok(captures) => captures,
        Err(why) => {
            say(&why);
            return Ok(None);
        }
    };
    let (mut inputs, refused) = Inputs::open(paths, READ_SIZE);
    if let Some(input) = refused.first() {
        say(&format!("{}: {}", input.path.display(), input.said));
        return Ok(None);
    }
    let builder = Builder::new(begin(&captures, naming_choices(&limits, &options))?);
    let mut progress = ProgressLine::new(inputs.size(), is_quiet);
    let seed = RandomState::new().build_hasher().finish();
    let (flows, packets) = (FlowChoice::default(), PacketChoice::default());
    let carver = Carver::new(flows, packets, limits, options, seed, MOST_HELD);
    let (statistics, _) = gather(&mut inputs, builder, carver, &mut progress)?;
    ensure_unhurried(&statistics)?;
    drop(progress);
    if inputs.report_damage() {
        return Ok(None);
    }
    let mut lines = String::new();
    for capture in captures {
        lines.extend(capture.finish()?.as_ref().map(line));
    }
    Ok(Some(lines))
}

/// Begins the indexes.
fn begin(captures: &[Sidecar], choices: u64) -> anyhow::Result<Vec<Writer<Appended>>> {
    let identities: Vec<_> = captures.iter().map(Sidecar::identity).collect();
    let together = Together::Captures(Identity::of_all(&identities));
    captures.iter().map(|capture| capture.begin(together, choices)).collect()
}

/// Analyses the captures, and writes which packets belong to the connections that the carver wants. Returns the outputs.
pub(super) fn gather<W: Write>(
    inputs: &mut Inputs,
    mut builder: Builder<W>,
    mut carver: Carver,
    progress: &mut ProgressLine,
) -> anyhow::Result<(CarvingStatistics, Vec<W>)> {
    let mut batch = Batch::default();
    let failed = "cannot write an index";
    loop {
        let Ok(state) = inputs.read_batch(&mut batch);
        let merged = &inputs.merged;
        let new = builder.interfaces() as u32..merged.interface_count() as u32;
        for (file, _) in new.filter_map(|number| merged.interface(number)) {
            builder.add_interface(file);
        }
        carver.batch(&batch, merged.interface_count(), &mut builder).context(failed)?;
        progress.update(|| (inputs.bytes_read(), inputs.packets()));
        if state == Progress::End {
            break;
        }
    }
    let (statistics, _) = carver.finish(&mut builder).context(failed)?;
    Ok((statistics, builder.finish().context(failed)?))
}

/// An index that lacks packets is none.
fn ensure_unhurried(statistics: &CarvingStatistics) -> anyhow::Result<()> {
    anyhow::ensure!(
        statistics.hurried == 0,
        "{} packets took more than {} MiB of memory while they waited, fragments for the rest of their datagrams and SYNs \
         for answers: an index would lack some",
        exact(statistics.hurried.into()),
        MOST_HELD >> 20
    );
    Ok(())
}

/// A line that tells how large an index is.
pub(super) fn line(written: &Written) -> String {
    let share = written.bytes as f64 * 100.0 / written.capture_bytes.max(1) as f64;
    let (shown, bytes) = (written.name.display(), exact(written.bytes.into()));
    format!("{shown}: {bytes} bytes, {share:.2} % of the capture\n")
}
