//! `netsniff collect`: flow exports to logs, from exporters or out of captures.
//!
//! | module | concern |
//! |---|---|
//! | `captures` | messages out of capture files |
//! | `listening` | what to listen to, as arguments name it |
//! | `live` | a run that goes on until it is ended |
//! | `sockets` | messages out of sockets, one thread each |
//! | `summary` | what it amounts to, for people |

mod captures;
mod listening;
mod live;
mod sockets;
mod summary;

use std::ffi::OsString;
use std::io::{BufWriter, ErrorKind, stderr, stdout};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use netsniff_analysis::locality::LocalNets;
use netsniff_console::quantity::interval;
use netsniff_console::{DAMAGED, DONE, FAILED, UsageError, print, say};
use netsniff_output::{Format, LogFiles, Nowhere, Stream};
use netsniff_pipeline::collecting::{CollectSettings, Collection};

use self::captures::Captures;
use self::listening::Endpoint;
use self::summary::Summary;
use super::inputs::Inputs;
use super::inputs::span::SpanArgs;
use super::rolling::RollArgs;
use crate::config::INPUTS;

/// Collect what exporters tell of flows, in NetFlow 5 and 9 and IPFIX: rows of connections, and books of each exporter
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff collect netflow://:2055 ipfix://:4739 -o logs/   until Ctrl-C, SIGTERM or --duration\n  \
    netsniff collect ipfix://192.0.2.1 -o - | jq .            JSON lines of all logs\n  \
    netsniff collect exports.pcap -o logs/                    messages that a capture has\n\n\
    netflow:// is NetFlow 5 and 9 and IPFIX over UDP, on port 2055 unless told. ipfix:// is the same over\n\
    UDP and IPFIX over TCP, on port 4739. Without an address, it listens on all.\n\n\
    Exit code: 0 fine; 1 failed, or nothing could be read; 2 wrong usage; 3 messages or sets of them\n\
    could not be read, or a capture was damaged")]
#[command(group = clap::ArgGroup::new(INPUTS).multiple(true).args(["sources"]))]
pub struct CollectArgs {
    /// Where to listen, as netflow://[ADDR][:PORT] or ipfix://[ADDR][:PORT]; or capture files with messages in UDP
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<OsString>,
    /// Write the logs to this directory, one file each; `-` streams the rows of all logs to standard output
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// How logs are written; tsv unless told, for `-o -` json
    #[arg(long, value_enum, requires = "output")]
    format: Option<Format>,
    #[command(flatten)]
    rolling: RollArgs,
    /// Ports of UDP whose datagrams are messages, in captures
    #[arg(
        long,
        value_name = "PORT,…",
        value_delimiter = ',',
        default_value = "2055,4739,9995,9996"
    )]
    port: Vec<u16>,
    #[command(flatten)]
    span: SpanArgs,
    /// How long a record of one direction waits for that of the other, which makes one row of both; 0 makes a row of
    /// each record
    #[arg(long, value_name = "TIME", value_parser = window, default_value = "10s")]
    pair: Duration,
    /// Networks of your own, whose hosts are local in `local_orig` and `local_resp`, beside those that are not routed
    /// globally: 192.0.2.0/24,2001:db8::/32. With `only` in the list those are not local
    #[arg(long, value_name = "NETS")]
    local_nets: Option<LocalNets>,
    /// End after so long
    #[arg(long, value_name = "TIME", value_parser = interval)]
    duration: Option<Duration>,
    /// Write the books, rows of `exporters`, so often; they are written at the end as well
    #[arg(long, value_name = "TIME", value_parser = interval, default_value = "60s")]
    stats: Duration,
    /// Print no summary
    #[arg(short, long)]
    quiet: bool,
}

/// Where rows go.
enum Target<'a> {
    Nowhere,
    Stream(Format),
    Directory(&'a Path, Format),
}

impl Target<'_> {
    const fn format(&self) -> Option<Format> {
        match self {
            Self::Nowhere => None,
            Self::Stream(format) | Self::Directory(_, format) => Some(*format),
        }
    }
}

fn window(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { interval(text) }
}

/// Bytes of rows gathered before they go to standard output.
const STREAM_BUFFER: usize = 64 << 10;
/// Bytes read at once.
const READ_SIZE: usize = 256 << 10;

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], what cannot be listened to, and an output that cannot be written.
pub fn run(args: &CollectArgs) -> anyhow::Result<u8> {
    let endpoints = listening::endpoints(&args.sources)?;
    let summary = if endpoints.is_empty() {
        match read(args) {
            // Whoever reads has enough.
            Err(error) if is_broken_pipe(&error) => return Ok(DONE),
            read => read?,
        }
    } else {
        args.span.none_of_live()?;
        live::run(args, &endpoints)?
    };
    let is_streamed = matches!(args.target()?, Target::Stream(_));
    if !args.quiet {
        let text = summary.text();
        let printed = if is_streamed { print(stderr(), &text) } else { print(stdout(), &text) };
        printed.context("cannot print the summary")?;
    }
    if let Some(why) = summary.nothing_read() {
        say(why);
        return Ok(FAILED);
    }
    Ok(match (summary.has_failed, summary.is_damaged()) {
        (true, _) => FAILED,
        (false, true) => DAMAGED,
        (false, false) => DONE,
    })
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    causes.any(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Reads captures.
fn read(args: &CollectArgs) -> anyhow::Result<Summary> {
    if args.duration.is_some() {
        let said = "--duration is of a run that listens: a capture ends by itself";
        return Err(UsageError(said.to_owned()).into());
    }
    let paths: Vec<_> = args.sources.iter().map(PathBuf::from).collect();
    let (inputs, refused) = Inputs::open(&paths, READ_SIZE);
    let mut inputs = inputs.within(args.span.span()?);
    for input in &refused {
        say(&format!("{}: {}", input.path.display(), input.said));
    }
    let settings = args.settings()?;
    let mut captures = Captures::new(&mut inputs, &args.port);
    let mut summary = match args.target()? {
        Target::Nowhere => captures.read(Collection::new(&settings, Nowhere::default()))?.0,
        Target::Stream(format) => {
            let writer = BufWriter::with_capacity(STREAM_BUFFER, stdout());
            let sink = Stream::new(writer, "standard output", format)?;
            let (summary, sink) = captures.read(Collection::new(&settings, sink))?;
            sink.finish()?;
            summary
        }
        Target::Directory(directory, format) => {
            let sink = LogFiles::create(directory, format)?;
            let (summary, sink) = captures.read(Collection::new(&settings, sink))?;
            sink.finish(summary.outcome.now)?;
            summary
        }
    };
    summary.is_cut |= inputs.report_damage() || !refused.is_empty();
    Ok(summary)
}

impl CollectArgs {
    fn target(&self) -> Result<Target<'_>, UsageError> {
        let Some(output) = &self.output else { return Ok(Target::Nowhere) };
        if output != Path::new("-") {
            return Ok(Target::Directory(output, self.format.unwrap_or(Format::Tsv)));
        }
        let format = self.format.unwrap_or(Format::Json);
        if format.streams() {
            return Ok(Target::Stream(format));
        }
        let said = "-o - writes all logs into one stream, which this format cannot; take json";
        Err(UsageError(said.to_owned()))
    }

    fn settings(&self) -> Result<CollectSettings, UsageError> {
        Ok(CollectSettings {
            style: self.target()?.format().map(Into::into),
            window: self.pair,
            local_nets: self.local_nets.clone().unwrap_or_default(),
            limits: netsniff_ipfix::Limits::default(),
        })
    }
}
