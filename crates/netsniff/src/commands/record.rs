//! `netsniff record`: live packets to files.

use std::io::{stderr, stdout};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use netsniff_analysis::{Limits, Options as Analysis};
use netsniff_console::clock;
use netsniff_console::number::{bytes, exact, files};
use netsniff_console::paths::is_stdin;
use netsniff_console::pidfile::PidFile;
use netsniff_console::printable::json_line;
use netsniff_console::terminal::progress::ProgressLine;
use netsniff_console::{BELOW_QUALITY, DONE, FAILED, UsageError, print, say};
use netsniff_packet::Timestamp;
use netsniff_pcapfile::{Counters, Interface};
use netsniff_pipeline::books::{BooksLine, BooksScope};
use netsniff_pipeline::carving::index::series::Naming;
use netsniff_pipeline::live::{Recording, SharedRecorder};
use netsniff_pipeline::recording::books::{State, Statistics};
use netsniff_pipeline::recording::indexing::{Indexed, Indexedness, Indexing};
use netsniff_pipeline::recording::options::Options;
use netsniff_pipeline::recording::{Finished, Recorder};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::extract::naming_choices;
use super::live::{
    self, CaptureArgs, MonitorParts, Opening, ReportedLine, Rings, RunHooks, Session, Signals,
    Wanted,
};
use super::recording::RecordOutputArgs;
use crate::commands::filters::filters;
use crate::sandbox::Outputs;
use crate::summary::{CaptureBooks, CaptureReport, Style};

/// How long the end may wait for a slow disk.
const PATIENCE: Duration = Duration::from_secs(10);

/// Record live packets to pcapng or pcap files
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff record -i eth0 -w traffic.pcapng                    until Ctrl-C\n  \
    netsniff record -i eth0 -w t.pcapng.zst -b filesize:1000000 -b files:10\n                                                               \
    a ring of ten files, packed\n  \
    netsniff record -i eth0 -w t.pcapng -b duration:1h --index   find connections later by netsniff extract\n  \
    netsniff record -i eth0 -w - tcp port 80 | tshark -r -       on to others\n\n\
    Exit code: 0 fine; 1 failed, or not all could be written; 2 wrong usage; 4 below --require-quality")]
pub struct RecordArgs {
    #[command(flatten)]
    capture: CaptureArgs,
    #[command(flatten)]
    output: RecordOutputArgs,
    /// Write an index beside each file, by which netsniff extract finds packets without reading all: a thread reads
    /// each file that has ended. Not for packed files
    #[arg(long)]
    index: bool,
    /// Rings for each interface, each with a thread; one recorder writes the packets of all in order
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = netsniff_console::quantity::threads)]
    workers: usize,
    /// Record only the packets that match, in the language of pcap-filter(7)
    #[arg(short, long, value_name = "EXPR")]
    filter: Option<String>,
    /// The same as words
    #[arg(value_name = "FILTER")]
    words: Vec<String>,
    /// Print the report as one line of JSON: to standard output, or to standard error where that is the recording
    #[arg(long, conflicts_with = "quiet")]
    json: bool,
    /// Print nothing but errors and losses
    #[arg(short, long)]
    quiet: bool,
    /// End with exit code 4 where less than this percentage of the packets was recorded
    #[arg(long, value_name = "PERCENT", value_parser = netsniff_console::quantity::percentage)]
    require_quality: Option<f64>,
}

/// Records until the run ends, and returns the exit code.
///
/// # Errors
///
/// [`UsageError`], and failures that leave nothing to report.
pub fn run(args: &RecordArgs) -> anyhow::Result<u8> {
    let capture = &args.capture;
    if !capture.is_live() {
        return Err(
            UsageError("-i says on which interface; for example: -i eth0".to_owned()).into()
        );
    }
    let words = args.words.join(" ");
    let wanted = Wanted::new(&filters([args.filter.as_deref(), Some(&words)])?, capture.sample())?;
    let signals = Signals::listen()?;
    let _pidfile = capture.pidfile.as_deref().map(PidFile::create).transpose()?;
    let opening = Opening {
        backend: capture.backend()?,
        options: capture.options(capture.interfaces.len() * args.workers)?,
        wanted: &wanted,
        rings: args.workers,
        cpus: capture.cpus(),
        group: capture.fanout_group(),
    };
    let rings = opening.open(&capture.interfaces)?;
    if !args.quiet {
        live::print_rings(&rings, &wanted, capture.cpus());
    }
    let mut options = options(&args.output, &rings, &wanted)?;
    options.index = args.naming(&options)?;
    let outputs = Outputs::default().with_recording(&options);
    let monitor = MonitorParts::open(capture)?;
    let reopener = live::confine(capture, outputs, args.quiet)?;
    let recorder = start(&options, &rings)?;
    let monitor = monitor.start()?;
    let session = Session {
        capture,
        wanted: &wanted,
        signals: &signals,
        reopener: reopener.as_ref(),
        monitor: &monitor,
        is_quiet: args.quiet,
    };
    let mut clerk = RecordHooks {
        recorder: &recorder,
        told: Vec::new(),
        is_quiet: args.quiet,
        begin: Instant::now(),
        is_piped: is_stdin(&args.output.write),
    };
    let is_cutting = capture.snaplen().is_some();
    let consumer = |ring| {
        let recording = Recording::new(Arc::clone(&recorder), ring);
        if is_cutting {
            recording.watching_headers(options.tunnel_ports.clone())
        } else {
            recording
        }
    };
    let (entries, failures) = session.run(rings, consumer, &mut clerk)?;
    finish(args, recorder, entries, &failures)
}

impl RecordArgs {
    /// How connections are named in indexes; `None` where none are asked for.
    fn naming(&self, options: &Options) -> Result<Option<Naming>, UsageError> {
        if !self.index {
            return Ok(None);
        }
        if is_stdin(&options.output) {
            return Err(UsageError(
                "--index: standard output has no place for an index".to_owned(),
            ));
        }
        if options.packing.is_some() {
            let said =
                "--index: packed files cannot be read from the middle; record without --compress";
            return Err(UsageError(said.to_owned()));
        }
        let tunnel_ports = Arc::new(options.tunnel_ports.clone());
        let (limits, options) =
            (Limits::default(), Analysis { tunnel_ports, ..Analysis::default() });
        let choices = naming_choices(&limits, &options);
        Ok(Some(Naming { limits, options, choices }))
    }
}

/// What is to be recorded from the interfaces of some rings.
///
/// # Errors
///
/// Those of [`RecordOutputArgs::options`].
pub fn options(
    output: &RecordOutputArgs,
    rings: &Rings,
    wanted: &Wanted,
) -> anyhow::Result<Options> {
    let described = rings.interfaces.iter().map(|interface| Interface {
        name: Some(interface.name.clone()),
        description: interface.driver.as_ref().map(|driver| format!("driver {driver}")),
        speed: interface.speed_mbps.map(|mbps| u64::from(mbps) * 1_000_000),
        filter: wanted.text().map(str::to_owned),
        ..Interface::new(interface.link_type, rings.rings.first().map_or(0, |r| r.options.snaplen))
    });
    let mut options = output.options(described.collect())?;
    let sampled = wanted
        .sampled()
        .map(|one_in| format!("--sample 1/{one_in}: one in so many pairs of addresses"));
    options.section.comments.extend(sampled);
    Ok(options)
}

/// Starts a recorder for some rings.
///
/// # Errors
///
/// Where the first file cannot be made.
pub fn start(options: &Options, rings: &Rings) -> anyhow::Result<Arc<Mutex<SharedRecorder>>> {
    let recorder = Recorder::start(options, clock::now())?;
    let interfaces = rings.rings.iter().map(|ring| ring.place.interface as u32);
    Ok(Arc::new(Mutex::new(SharedRecorder::new(recorder, interfaces))))
}

/// Tells the recorder what the kernel has counted, and people what was lost.
struct RecordHooks<'a> {
    recorder: &'a Mutex<SharedRecorder>,
    told: Vec<ReportedLine>,
    is_quiet: bool,
    begin: Instant,
    /// Whether the recording goes to standard output.
    is_piped: bool,
}

impl RunHooks for RecordHooks<'_> {
    fn books(&mut self, entries: &mut [BooksLine], now: Timestamp, _: Timestamp, is_final: bool) {
        let mut shared = lock(self.recorder);
        update_recorder(shared.recorder(), entries, now);
        let statistics = shared.recorder().statistics();
        drop(shared);
        for entry in entries.iter_mut() {
            add(entry, &statistics);
        }
        live::warn(entries, &mut self.told);
        if !self.is_quiet && !is_final {
            say(&format!(
                "{} s: {} packets recorded, {} in {}, {} refused",
                self.begin.elapsed().as_secs(),
                exact(statistics.recorded.packets.into()),
                bytes(statistics.file_bytes),
                files(statistics.files),
                exact(statistics.refused.packets.into())
            ));
        }
    }

    fn roll(&mut self) {}

    fn failure(&mut self) -> Option<String> {
        let is_unread = || self.is_piped && is_unread(stdout());
        failure(self.recorder).or_else(|| is_unread().then(|| ENOUGH.to_owned()))
    }
}

/// Said where a recording ends since nobody reads it any more.
const ENOUGH: &str = "whoever read the recording has enough";

/// Whether a pipe has no reader any more, which writing would tell only with the next packet.
fn is_unread(pipe: impl AsFd) -> bool {
    let mut polled = [PollFd::new(&pipe, PollFlags::empty())];
    poll(&mut polled, Some(&Timespec::default())).is_ok()
        && polled[0].revents().contains(PollFlags::ERR)
}

/// Why the run is to end, if so.
pub fn failure(recorder: &Mutex<SharedRecorder>) -> Option<String> {
    match lock(recorder).recorder().state() {
        State::Recording => None,
        State::Closed => Some(ENOUGH.to_owned()),
        State::Failed => Some("the recording ends, since it cannot be written".to_owned()),
    }
}

/// The recorder, whoever has panicked before.
pub fn lock(recorder: &Mutex<SharedRecorder>) -> MutexGuard<'_, SharedRecorder> {
    recorder.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends a recording once no ring records any more.
///
/// # Errors
///
/// Where one still does, which is our fault.
pub fn end(recorder: Arc<Mutex<SharedRecorder>>) -> anyhow::Result<Finished> {
    let recorder = Arc::into_inner(recorder).context("a ring still records")?;
    let shared = recorder.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(shared.into_recorder().finish(PATIENCE))
}

/// Gives the counters of the books to the file.
pub fn update_recorder(recorder: &mut Recorder, entries: &[BooksLine], now: Timestamp) {
    let interfaces = entries.iter().filter(|entry| matches!(entry.place, BooksScope::Interface(_)));
    for (number, entry) in (0..).zip(interfaces) {
        let counters = Counters {
            received: entry.arrived,
            dropped_by_interface: entry.lost_interface,
            dropped_by_os: entry.ring_dropped(),
            delivered: entry.delivered(),
            ..Counters::NONE
        };
        recorder.counters(number, now, &counters);
        recorder.restamped(number, entry.wrong_stamps());
    }
}

/// Adds what became of the delivered packets. One recorder writes the packets of all rings, so that only a
/// run with one interface knows them by interface.
pub fn add(entry: &mut BooksLine, statistics: &Statistics) {
    if matches!(entry.place, BooksScope::Interface(_)) {
        entry.recorded = Some(statistics.recorded.packets);
        entry.unrecorded = Some(statistics.refused.packets);
    }
}

/// Ends the recording and says what came of it.
fn print_report(args: &RecordArgs, report: &CaptureReport<'_>) -> anyhow::Result<()> {
    if args.json {
        let line = json_line(report)?;
        let is_recording = is_stdin(&args.output.write);
        let printed = if is_recording { print(stderr(), &line) } else { print(stdout(), &line) };
        printed.context("cannot print the report")?;
    } else if !args.quiet {
        // Standard output may be the recording.
        eprint!("{}", report.text(Style::of(&stderr())));
    }
    Ok(())
}

fn finish(
    args: &RecordArgs,
    recorder: Arc<Mutex<SharedRecorder>>,
    mut entries: Vec<BooksLine>,
    failures: &[String],
) -> anyhow::Result<u8> {
    failures.iter().for_each(|why| say(why));
    let done = end(recorder)?;
    for entry in &mut entries {
        add(entry, &done.statistics);
    }
    let capture: Vec<_> = entries.iter().map(|entry| CaptureBooks::of(entry, false)).collect();
    print_report(args, &CaptureReport { capture: &capture, recording: Some(&done.statistics) })?;
    if let Some(why) = &done.failure {
        say(why);
    }
    let is_indexed =
        done.indexing.is_none_or(|indexing| told(&waited(indexing, args.quiet), args.quiet));
    let lost = entries.iter().filter_map(BooksLine::loss).fold(0.0, f64::max);
    if let Some(percent) = args.require_quality
        && (1.0 - lost) * 100.0 < percent
    {
        say(&format!("below the required quality of {percent} %: {:.3} % was lost", lost * 100.0));
        return Ok(BELOW_QUALITY);
    }
    let is_whole = done.failure.is_none() && failures.is_empty() && done.statistics.in_flight == 0;
    Ok(if is_whole && is_indexed { DONE } else { FAILED })
}

/// Waits until all files are indexed, and tells how far that is.
fn waited(indexing: Indexing, is_quiet: bool) -> Indexed {
    let Indexedness { ended, bytes: read, .. } = indexing.advance();
    let left = ended.saturating_sub(read);
    if !is_quiet && left > 0 {
        say(&format!(
            "the capture has ended; {} of its {} are still to be indexed. Another Ctrl-C leaves them without indexes",
            bytes(left),
            bytes(ended)
        ));
    }
    let mut progress = ProgressLine::new(Some(ended), is_quiet);
    indexing.wait(|now| progress.update(|| (now.bytes, now.packets)))
}

/// Says what became of the indexes, and returns whether all are there. Why one is not was said at its time.
fn told(indexed: &Indexed, is_quiet: bool) -> bool {
    if !is_quiet {
        let share = indexed.bytes as f64 * 100.0 / indexed.capture_bytes.max(1) as f64;
        let (of, size) = (files(indexed.files), bytes(indexed.bytes));
        say(&format!("indexes of {of}: {size}, {share:.2} % of the captures"));
    }
    indexed.failure.is_none() && indexed.left_out == 0
}
