//! `netsniff lab work`: captures, and spends a known cost on each packet.

use std::io::stdout;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use netsniff_console::clock;
use netsniff_console::number::{bytes, exact};
use netsniff_console::{DONE, FAILED, print, quantity, say};
use netsniff_lab::work::{Cost, Done, MOST_LEVEL, PacketWork};
use netsniff_packet::Timestamp;
use netsniff_pipeline::live::{Consumer, PacketSlice, RingReport};

use crate::commands::live::{self, CaptureArgs};
use crate::summary::{CaptureBooks, CaptureReport, Style};

/// Capture, and spend a known cost on each packet: an application as heavy as it is told to be
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff lab work -i eth0 --zip 6                compress each packet by itself\n  \
    netsniff lab work -i eth0 --delay 10us --json    a server of 100,000 packets a second\n  \
    netsniff lab sweep --tools work --vary zip=0,1,6,9 --sizes 64,512 --rates top\n\n\
    Exit code: 0 fine; 1 failed; 2 wrong usage")]
pub(super) struct WorkArgs {
    #[command(flatten)]
    capture: CaptureArgs,
    /// Compress each packet with this level of zlib, 0 to 9
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u32).range(..=i64::from(MOST_LEVEL)))]
    zip: Option<u32>,
    /// Take so long for each packet, whatever interrupts it; compression is part of it
    #[arg(long, value_name = "TIME", value_parser = quantity::interval)]
    delay: Option<Duration>,
    /// Print the report as one line of JSON
    #[arg(long)]
    json: bool,
    /// Print nothing but the report
    #[arg(short, long)]
    quiet: bool,
}

/// What came of it.
#[derive(serde::Serialize)]
struct Report {
    capture: Vec<CaptureBooks>,
    work: Done,
}

/// What the thread of the ring and the ruling one share.
struct Shared {
    work: PacketWork,
    failure: Option<anyhow::Error>,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Spends the cost on the packets of a ring.
struct Working(Arc<Mutex<Shared>>);

impl Consumer for Working {
    fn group(&mut self, group: PacketSlice<'_>) {
        let mut shared = lock(&self.0);
        for (record, packet) in group.iter() {
            if let Err(error) = shared.work.packet(packet.data, record.timestamp, clock::now) {
                shared.failure = Some(error);
            }
        }
    }

    fn idle(&mut self, _: Timestamp) {}

    fn stopping(&mut self) {
        lock(&self.0).work.end();
    }

    fn finish(&mut self) {}

    fn fill(&self, _: &mut RingReport) {}
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// Those of [`live::one_ring`].
pub(super) fn run(args: &WorkArgs) -> anyhow::Result<u8> {
    let work = PacketWork::new(Cost { zip: args.zip, delay: args.delay });
    let shared = Arc::new(Mutex::new(Shared { work, failure: None }));
    let consumer = || Working(Arc::clone(&shared));
    let mut end = || lock(&shared).failure.as_ref().map(|why| format!("{why:#}"));
    let (entries, failures) = live::one_ring(&args.capture, args.quiet, consumer, &mut end)?;
    failures.iter().for_each(|why| say(why));
    let capture = entries.iter().map(|entry| CaptureBooks::of(entry, false)).collect();
    let report = Report { capture, work: lock(&shared).work.done() };
    print(stdout(), &describe(args, &report)?).context("cannot print the report")?;
    let is_whole = failures.is_empty() && lock(&shared).failure.is_none();
    Ok(if is_whole { DONE } else { FAILED })
}

fn describe(args: &WorkArgs, report: &Report) -> anyhow::Result<String> {
    if args.json {
        return Ok(serde_json::to_string(report)? + "\n");
    }
    let books = CaptureReport { capture: &report.capture, recording: None };
    let Done { packets, bytes: sum, compressed } = report.work;
    let work = format!("  worked on {} packets of {}", exact(packets.into()), bytes(sum));
    let zip = args.zip.map_or(String::new(), |_| format!(", compressed to {}", bytes(compressed)));
    Ok(books.text(Style::of(&stdout())) + &work + &zip + "\n")
}
