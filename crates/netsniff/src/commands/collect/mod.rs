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
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use netsniff_analysis::locality::LocalNets;
use netsniff_console::quantity::interval;
use netsniff_console::{DAMAGED, DONE, FAILED, UNDELIVERED, UsageError, print, say};
use netsniff_delivery::{Books, Deliveries, Delivering, OnFull};
use netsniff_output::{LiveSink as _, LogFiles, LogStream, Nowhere, RowSink, Stream};
use netsniff_pipeline::collecting::{CollectSettings, Collection};

use self::captures::Captures;
use self::listening::Endpoint;
use self::summary::Summary;
use super::delivery::{DeliveryArgs, undelivered};
use super::inputs::Inputs;
use super::inputs::span::SpanArgs;
use super::rolling::RollArgs;
use super::row_output::{OutputArgs, Target};
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
    could not be read, or a capture was damaged; 5 not all rows were delivered (--deliver)")]
#[command(group = clap::ArgGroup::new("rows").multiple(true).args(["output", "deliver"]))]
#[command(group = clap::ArgGroup::new(INPUTS).multiple(true).args(["sources"]))]
pub struct CollectArgs {
    /// Where to listen, as netflow://[ADDR][:PORT] or ipfix://[ADDR][:PORT]; or capture files with messages in UDP
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<OsString>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    rolling: RollArgs,
    #[command(flatten)]
    delivery: DeliveryArgs,
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
    if !args.quiet {
        let text = summary.text();
        let is_streamed = args.target()?.is_stdout();
        let printed = if is_streamed { print(stderr(), &text) } else { print(stdout(), &text) };
        printed.context("cannot print the summary")?;
    }
    undelivered(&summary.delivered).for_each(|said| say(&said));
    if let Some(why) = summary.nothing_read() {
        say(why);
        return Ok(FAILED);
    }
    Ok(if summary.has_failed {
        FAILED
    } else if !summary.delivered.iter().all(Books::is_whole) {
        UNDELIVERED
    } else if summary.is_damaged() {
        DAMAGED
    } else {
        DONE
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
    let started = args.delivery.plan()?.map(|plan| plan.start(OnFull::Wait)).transpose()?;
    let (deliveries, delivering) = started.unwrap_or_default();
    let mut captures = Captures::new(&mut inputs, &args.port);
    let mut summary = read_into(args, &mut captures, deliveries)?;
    summary.delivered = delivering.finish();
    summary.is_cut |= inputs.report_damage() || !refused.is_empty();
    Ok(summary)
}

/// Reads captures into the sink that is wanted, and into the spools of deliveries.
fn read_into(
    args: &CollectArgs,
    captures: &mut Captures<'_>,
    deliveries: Deliveries,
) -> anyhow::Result<Summary> {
    match args.target()? {
        Target::Nowhere => Ok(read_with(args, captures, Nowhere::default(), deliveries)?.0),
        Target::Stream(style) => {
            let writer = BufWriter::with_capacity(STREAM_BUFFER, stdout());
            let sink = Stream::new(writer, "standard output", style.format)?;
            let (summary, sink) = read_with(args, captures, sink, deliveries)?;
            sink.finish()?;
            Ok(summary)
        }
        Target::Log(style, logs) => {
            let sink = LogStream::stdout(style.format, logs)?;
            let (summary, mut sink) = read_with(args, captures, sink, deliveries)?;
            sink.end(summary.outcome.now)?;
            Ok(summary)
        }
        Target::Directory(directory, style) => {
            let sink = LogFiles::create(directory, style.format)?;
            let (summary, sink) = read_with(args, captures, sink, deliveries)?;
            sink.finish(summary.outcome.now)?;
            Ok(summary)
        }
    }
}

fn read_with<K: RowSink<Error = anyhow::Error>>(
    args: &CollectArgs,
    captures: &mut Captures<'_>,
    sink: K,
    deliveries: Deliveries,
) -> anyhow::Result<(Summary, K)> {
    let sink = Delivering { sink, deliveries };
    let (summary, mut sink) = captures.read(Collection::new(&args.settings()?, sink))?;
    sink.deliveries.finish(summary.outcome.now)?;
    Ok((summary, sink.sink))
}

impl CollectArgs {
    fn target(&self) -> Result<Target<'_>, UsageError> {
        self.output.target(false, self.delivery.is_wanted())
    }

    fn settings(&self) -> Result<CollectSettings, UsageError> {
        Ok(CollectSettings {
            style: self.output.style(&self.target()?, self.delivery.is_wanted())?,
            logs: self.output.logs(),
            window: self.pair,
            local_nets: self.local_nets.clone().unwrap_or_default(),
            limits: netsniff_ipfix::Limits::default(),
        })
    }
}
