//! A run from its opened rings to its closed books, for commands with one consumer for each ring.

use anyhow::Context as _;
use netsniff_console::clock;
use netsniff_console::say;
use netsniff_pipeline::books::{BooksKeeper, BooksLine};
use netsniff_pipeline::live::{Consumer, Control, RingOutcome};

use super::{CaptureArgs, Monitor, Reopener, Rings, RunHooks, Signals, Supervisor, Wanted, work};

/// What a run has to do with.
#[derive(Debug)]
pub struct Session<'a> {
    /// Interfaces, rings and options of the capture.
    pub capture: &'a CaptureArgs,
    /// Filter and length of the packets that are wanted.
    pub wanted: &'a Wanted,
    /// The signals that end the run.
    pub signals: &'a Signals,
    /// How to go on where an interface is gone.
    pub reopener: Option<&'a Reopener>,
    /// Who is told how the run is.
    pub monitor: &'a Monitor,
    /// Whether it is not said that it captures.
    pub is_quiet: bool,
}

impl Session<'_> {
    /// Lets the rings run to their end, each with the consumer of its number; returns the books, and failures.
    ///
    /// # Errors
    ///
    /// Where a ring cannot be started, and where its thread panicked.
    pub fn run<C: Consumer>(
        &self,
        rings: Rings,
        consumer: impl Fn(usize) -> C,
        attendant: &mut dyn RunHooks,
    ) -> anyhow::Result<(Vec<BooksLine>, Vec<String>)> {
        let Self { capture, wanted, signals, reopener, monitor, is_quiet } = *self;
        let control = Control::new(rings.rings.len());
        let places = rings.rings.iter().map(|ring| ring.place.clone()).collect();
        let mut keeper = BooksKeeper::begin(
            &rings.interfaces,
            places,
            wanted.sampling(),
            rings.host,
            clock::now(),
        )?;
        let rule = Supervisor {
            control: &control,
            signals,
            duration: capture.duration(),
            interval: capture.stats_interval(),
            contention: rings.contention,
            monitor,
        };
        let outcomes = std::thread::scope(|scope| {
            let mut handles = Vec::new();
            let waiting: Vec<_> =
                rings.rings.into_iter().enumerate().map(|of| (consumer(of.0), of)).collect();
            let start = |(consumer, (number, ring))| {
                work(capture, number, ring, &control, consumer, reopener)
            };
            let works = keeper
                .start(|| waiting.into_iter().map(start).collect::<anyhow::Result<Vec<_>>>())?;
            for (number, work) in works.into_iter().enumerate() {
                let thread = std::thread::Builder::new().name(format!("ring {number}"));
                let handle = thread.spawn_scoped(scope, move || work.run());
                handles.push(handle.context("cannot start a thread for a ring")?);
            }
            if !is_quiet {
                say("capturing; SIGINT ends the run");
            }
            Ok::<_, anyhow::Error>(rule.run(handles, &mut keeper, attendant))
        })?;
        let outcomes: Option<Vec<RingOutcome<C>>> = outcomes.into_iter().collect();
        let outcomes = outcomes.context("the thread of a ring panicked")?;
        let reports: Vec<_> = outcomes.iter().map(|outcome| outcome.report.clone()).collect();
        let mut entries = keeper.close(&reports);
        let now = clock::now();
        let since = keeper.turn(now);
        attendant.books(&mut entries, now, since, true);
        let mut failures: Vec<_> =
            outcomes.into_iter().filter_map(|outcome| outcome.failure).collect();
        // Rings of one interface fail at the same.
        failures.dedup();
        Ok((entries, failures))
    }
}
