//! `netsniff analyze`: packets to logs and a summary.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufWriter, Read, Write as _, stdin, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use netsniff_analysis::Limits;
use netsniff_packet::Timestamp;
use netsniff_pcapfile::Reader;

use crate::output::{Format, LogFiles, RowSink, Stream};
use crate::pipeline::{self, Outcome, Settings};

/// Analyse capture files: connection logs, metrics and a summary.
#[derive(Debug, clap::Args)]
pub struct AnalyzeArgs {
    /// Capture files (pcap or pcapng, also packed); `-` reads standard input.
    #[arg(value_name = "FILES", required = true)]
    files: Vec<PathBuf>,
    /// Write the logs to this directory, one file each; `-` streams JSON lines to standard output.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// How log files are written.
    #[arg(long, value_enum, default_value_t = LogFormat::Tsv)]
    format: LogFormat,
    /// Threads that analyse; as many as processors unless told.
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
}

/// Formats of log files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Zeek's tab-separated values.
    Tsv,
    /// Zeek's JSON lines.
    Json,
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// Failures that leave nothing to report.
pub fn run(args: &AnalyzeArgs) -> anyhow::Result<u8> {
    let [path] = args.files.as_slice() else { bail!("one file at a time") };
    let mut reader =
        Reader::new(open(path)?).with_context(|| format!("cannot read {}", path.display()))?;
    let workers = match args.workers {
        Some(0) => bail!("--workers 0 would analyse nothing; 1 is the least"),
        Some(workers) => workers,
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let to_stream = args.output.as_deref() == Some(Path::new("-"));
    let format = match args.format {
        LogFormat::Tsv if !to_stream => Format::Tsv,
        _ => Format::Json,
    };
    let seed = RandomState::new().build_hasher().finish();
    let settings = Settings { limits: Limits::default(), workers, format, seed };
    let outcome = match &args.output {
        None => analyse(&mut reader, &settings, &mut Nowhere)?,
        Some(_) if to_stream => {
            let mut sink = Stream::new(BufWriter::new(stdout()), "standard output");
            let outcome = analyse(&mut reader, &settings, &mut sink)?;
            sink.finish()?;
            outcome
        }
        Some(directory) => {
            let mut sink = LogFiles::create(directory, format)?;
            let outcome = analyse(&mut reader, &settings, &mut sink)?;
            sink.finish(outcome.now)?;
            outcome
        }
    };
    if !to_stream {
        let mut out = stdout().lock();
        writeln!(out, "{outcome:#?}")?;
    }
    Ok(0)
}

fn open(path: &Path) -> anyhow::Result<Box<dyn Read + Send>> {
    if path == Path::new("-") {
        return Ok(Box::new(stdin()));
    }
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok(Box::new(file))
}

fn analyse<R: Read, K: RowSink + Send>(
    reader: &mut Reader<R>,
    settings: &Settings,
    sink: &mut K,
) -> anyhow::Result<Outcome> {
    pipeline::run(reader, settings, |_| true, sink, |_, _| {})
}

/// Where rows go that nobody wants.
struct Nowhere;

impl RowSink for Nowhere {
    fn row(&mut self, _: usize, _: Timestamp, _: &[u8]) -> anyhow::Result<()> {
        Ok(())
    }
}
