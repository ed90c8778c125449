//! `netsniff receive`: which stamped frames arrived, when, and which did not.

use std::io::stdout;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use netsniff_console::pidfile::PidFile;
use netsniff_console::{BELOW_QUALITY, DAMAGED, DONE, FAILED, UsageError, print, quantity, say};
use netsniff_packet::{Batch, Progress, Source as _, Timestamp};
use netsniff_pipeline::books::BooksScope;
use netsniff_pipeline::live::{Consumer, PacketSlice, RingReport};
use netsniff_pipeline::receiving::Reception;
use netsniff_pipeline::receiving::report::Report;
use netsniff_traffic::probe::PORT;

use super::inputs::Inputs;
use super::inputs::span::SpanArgs;
use super::live::{self, CaptureArgs};
use crate::config::INPUTS;

/// Bytes read at once.
const READ_SIZE: usize = 256 << 10;

/// Count stamped frames as they arrive: which are missing, doubled, out of order, how late they come
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff receive -i eth2 --idle 2s                  until two seconds after the last frame\n  \
    netsniff receive -i eth2 --expect 1000000 --json    ends once all have come\n  \
    netsniff receive recorded.pcapng                    what a capture holds\n\n\
    Frames are stamped by `netsniff generate`.\n\n\
    Exit code: 0 all arrived; 1 failed; 2 wrong usage; 3 a capture was damaged; 4 frames are missing")]
#[command(group = clap::ArgGroup::new(INPUTS).multiple(true).args(["files", "interfaces"]))]
pub struct ReceiveArgs {
    /// Capture files, or with -i none
    // No `conflicts_with`: clap takes what is in conflict with an argument for that argument where it is required.
    #[arg(value_name = "FILE", required_unless_present = "interfaces")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    span: SpanArgs,
    #[command(flatten)]
    capture: CaptureArgs,
    /// The port that frames are sent to
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,
    /// Frames that each stream has; without it the highest number that arrives counts, and frames that are missing
    /// behind it are not seen
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    expect: Option<u64>,
    /// End once no stamped frame has come for so long, after the first one
    #[arg(long, value_name = "TIME", requires = "interfaces", value_parser = quantity::interval)]
    idle: Option<Duration>,
    /// Judge gaps by this rate, in frames a second; without it by the stamps, which tell when each frame was sent
    #[arg(long, value_name = "RATE", value_parser = quantity::rate)]
    rate: Option<f64>,
    /// Print the report as one line of JSON
    #[arg(long)]
    json: bool,
    /// Print nothing but the report
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], a capture that cannot be read, and an interface that cannot be captured on.
pub fn run(args: &ReceiveArgs) -> anyhow::Result<u8> {
    if args.capture.is_live() && !args.files.is_empty() {
        let said = "capture files and an interface cannot be counted together";
        return Err(UsageError(said.to_owned()).into());
    }
    if args.capture.is_live() {
        args.span.none_of_live()?;
    }
    let reception = Reception::new(args.port, args.rate);
    let (report, code) = if args.capture.is_live() {
        let (reception, lost, failures) = listen(args, reception)?;
        failures.iter().for_each(|why| say(why));
        let code = if failures.is_empty() { DONE } else { FAILED };
        (Report::new(reception, args.expect, lost), code)
    } else {
        let (reception, is_damaged) = read(args, reception)?;
        let code = if is_damaged { DAMAGED } else { DONE };
        (Report::new(reception, args.expect, None), code)
    };
    let text = if args.json { report.json()? } else { report.text() };
    print(stdout(), &text).context("cannot print the report")?;
    if let Some(shortfall) = report.shortfall() {
        say(&shortfall);
        return Ok(if code == DONE { BELOW_QUALITY } else { code });
    }
    Ok(code)
}

/// Reads captures; also whether one was damaged.
fn read(args: &ReceiveArgs, mut reception: Reception) -> anyhow::Result<(Reception, bool)> {
    let _pidfile = args.capture.pidfile.as_deref().map(PidFile::create).transpose()?;
    let (inputs, refused) = Inputs::open(&args.files, READ_SIZE);
    let mut inputs = inputs.within(args.span.span()?);
    if let Some(input) = refused.first() {
        anyhow::bail!("{}: {}", input.path.display(), input.said);
    }
    let mut batch = Batch::default();
    loop {
        let Ok(state) = inputs.read_batch(&mut batch);
        batch.iter().try_for_each(|packet| reception.packet(&packet))?;
        if state == Progress::End {
            return Ok((reception, inputs.report_damage()));
        }
    }
}

/// What the thread of the ring and the ruling one share.
#[derive(Debug)]
struct Shared {
    reception: Reception,
    failure: Option<anyhow::Error>,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands the packets of a ring to the reception.
struct Counting(Arc<Mutex<Shared>>);

impl Consumer for Counting {
    fn group(&mut self, group: PacketSlice<'_>) {
        let mut shared = lock(&self.0);
        for (_, packet) in group.iter() {
            if let Err(error) = shared.reception.packet(&packet) {
                shared.failure = Some(error);
            }
        }
    }

    fn idle(&mut self, _: Timestamp) {}

    fn finish(&mut self) {}

    fn fill(&self, _: &mut RingReport) {}
}

/// Ends the run once nothing more is to come.
struct Watch<'a> {
    args: &'a ReceiveArgs,
    /// Stamped frames as they were counted last, and when that changed.
    seen: (u64, Instant),
}

impl Watch<'_> {
    /// Why the run is to end, if so.
    fn end(&mut self, shared: &Shared) -> Option<String> {
        if let Some(failure) = &shared.failure {
            return Some(format!("{failure:#}"));
        }
        let stamped = shared.reception.stamped();
        if stamped != self.seen.0 {
            self.seen = (stamped, Instant::now());
        }
        let have_all = |expected| shared.reception.all_have(expected);
        if self.args.expect.is_some_and(have_all) && self.args.idle.is_none() {
            return Some("as many frames have come as were expected".to_owned());
        }
        let idle = self.args.idle.filter(|idle| stamped > 0 && self.seen.1.elapsed() >= *idle)?;
        Some(format!("no stamped frame has come for {} s", idle.as_secs_f64()))
    }
}

/// Captures until the run ends; also what the capture itself lost, and failures.
fn listen(
    args: &ReceiveArgs,
    reception: Reception,
) -> anyhow::Result<(Reception, Option<u64>, Vec<String>)> {
    let shared = Arc::new(Mutex::new(Shared { reception, failure: None }));
    let mut watch = Watch { args, seen: (0, Instant::now()) };
    let consumer = || Counting(Arc::clone(&shared));
    let mut end = || watch.end(&lock(&shared));
    let (entries, failures) = live::one_ring(&args.capture, args.quiet, consumer, &mut end)?;
    let total = entries.iter().find(|entry| matches!(entry.place, BooksScope::Interface(_)));
    let lost =
        total.and_then(|entry| Some(entry.ring_dropped()? + entry.lost_interface.unwrap_or(0)));
    let shared = Arc::into_inner(shared).context("a ring still counts")?;
    let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((shared.reception, lost, failures))
}
