//! `netsniff analyze -i`: live traffic to logs, books and a summary.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::Context as _;
use netsniff_analysis::{Limits, Options};
use netsniff_console::clock;
use netsniff_console::pidfile::PidFile;
use netsniff_console::{BELOW_QUALITY, DONE, FAILED, UNDELIVERED, say};
use netsniff_delivery::{Books, Deliveries, OnFull};
use netsniff_output::{
    Bounds, ContentBounds, END_WAIT, ExtractedFiles, ExtractionOutcome, ExtractionWriter, LiveSink,
    LiveStream, LogFiles, LogStream, LogWriter, Nowhere, RowProducer, UnparsedFile, WriterSettings,
};
use netsniff_packet::Timestamp;
use netsniff_pipeline::books::{BooksKeeper, BooksLine, RingPlace};
use netsniff_pipeline::live::{
    Analyser, Consumer, Control, OffThread, Recording, RingAnalysis, RingOutcome, SharedRecorder,
    SplitFlowDetector,
};
use netsniff_pipeline::recording::options::Options as RecordingOptions;
use netsniff_pipeline::{AnalysisOutcome, Settings, share_of};

use super::args::AnalyzeArgs;
use super::file_analysis::seed;
use super::hooks::AnalyzeHooks;
use super::live_origin::Live;
use super::print_summary;
use super::report::Analysis;
use super::unparsed::UnparsedWriter;
use super::verbose;
use crate::commands::delivery::{Delivering, DeliveryPlan};
use crate::commands::live::{
    self, Monitor, MonitorParts, Opening, Reloading, Reopener, Ring, Rings, RunHooks as _, Signals,
    Supervisor, Wanted,
};
use crate::commands::record;
use crate::commands::row_output::Target;
use crate::sandbox::Outputs;

/// Captures until the run ends, and returns the exit code.
pub(super) fn run(
    args: &AnalyzeArgs,
    reloading: Option<&Reloading<'_, AnalyzeArgs>>,
) -> anyhow::Result<u8> {
    let capture = args.capture();
    args.span().none_of_live()?;
    let filters = args.live_filters()?;
    let target = args.target()?;
    let options = args.options()?;
    let extraction = args.extraction()?;
    let pseudonyms = args.pseudonyms()?;
    let plan = args.delivery().plan()?;
    let signals = Signals::listen()?;
    let _pidfile = capture.pidfile.as_deref().map(PidFile::create).transpose()?;
    let wanted = Wanted::new(&filters, capture.sample())?;
    let rings = open_rings(args, &wanted)?;
    let said = pseudonyms.as_ref().map(|pseudonyms| pseudonyms.said.clone());
    let anonymizer = pseudonyms.map(|pseudonyms| Arc::new(pseudonyms.anonymizer));
    let recording = args.record().map(|to| record::options(&to, &rings, &wanted)).transpose()?;
    let monitor = MonitorParts::open(capture)?;
    let outputs = outputs(&target, extraction, recording.as_ref(), plan.as_ref());
    let outputs = reloading.into_iter().fold(outputs, |outputs, reloading| {
        let of_indicators = args.notices().intel().iter().filter_map(|file| file.parent());
        outputs.with_readable(reloading.folders().chain(of_indicators))
    });
    let reopener = live::confine(capture, outputs, args.quiet())?;
    let monitor = monitor.start()?;
    // What writes inherits it; rings choose their own.
    pin_last(capture.cpus())?;
    let started = plan.map(|plan| plan.start(OnFull::Refuse)).transpose()?;
    let style = args.style(&target)?;
    let (deliveries, delivering) = started.unwrap_or_default();
    let limits = args.limits()?;
    let extraction = extraction.map(|directory| extract_to(directory, &limits)).transpose()?;
    let extract = extraction.as_ref().map(ExtractionWriter::extract);
    let count = rings.rings.len();
    let settings = Settings {
        limits: share_of(limits, count),
        options: Options { anonymizer, extract, sampling: wanted.sampled(), ..options },
        workers: count,
        style,
        logs: args.logs(),
        seed: seed(),
        prompt: false,
    };
    if args.verbose() {
        verbose::plan(&settings, &target, said.as_deref());
    }
    let session = Session {
        args,
        target: &target,
        settings: &settings,
        wanted: &wanted,
        signals: &signals,
        recording: recording.as_ref(),
        reopener: reopener.as_ref(),
        monitor: &monitor,
        extraction: extraction.as_ref(),
        delivering: &delivering,
        reloading,
    };
    let begin = Instant::now();
    let mut run = session.run(rings, deliveries)?;
    if let Some(extraction) = extraction {
        finish_extraction(extraction, &mut run);
    }
    let delivered = delivering.finish();
    let elapsed_nanos = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let analysis = Analysis {
        origin: &run.origin,
        settings: &settings,
        outcome: &run.outcome,
        pseudonyms: said.as_deref(),
        delivered: &delivered,
        elapsed_nanos,
    };
    conclude(&analysis, run.has_failed, args, &target)
}

/// Opens the rings of all interfaces, and prints what they are like.
fn open_rings(args: &AnalyzeArgs, wanted: &Wanted) -> anyhow::Result<Rings> {
    let capture = args.capture();
    let opening = Opening {
        backend: capture.backend()?,
        options: capture.options(capture.interfaces.len() * args.rings())?,
        wanted,
        rings: args.rings(),
        cpus: capture.cpus(),
        group: capture.fanout_group(),
    };
    let rings = opening.open(&capture.interfaces)?;
    if !args.quiet() {
        live::print_rings(&rings, wanted, capture.cpus());
    }
    Ok(rings)
}

/// Waits for the files that are written yet, and notes what of them failed.
fn finish_extraction(extraction: ExtractionWriter, run: &mut Run) {
    let ExtractionOutcome { untold, has_failed, failure } = extraction.finish();
    failure.iter().for_each(|why| say(why));
    run.origin.untold_files = untold;
    run.has_failed |= has_failed;
}

/// Prints the summary, and returns the exit code.
fn conclude(
    analysis: &Analysis<'_>,
    has_failed: bool,
    args: &AnalyzeArgs,
    target: &Target<'_>,
) -> anyhow::Result<u8> {
    print_summary(&analysis.summary(), args, target)?;
    if let Some(percent) = args.required_quality()
        && let Some(why) = analysis.below(percent)
    {
        say(&format!("below the required quality of {percent} %: {why}"));
        return Ok(BELOW_QUALITY);
    }
    Ok(match () {
        () if has_failed => FAILED,
        () if !analysis.delivered.iter().all(Books::is_whole) => UNDELIVERED,
        () => DONE,
    })
}

/// What is written once the rings are open.
fn outputs(
    target: &Target<'_>,
    extraction: Option<&Path>,
    recording: Option<&RecordingOptions>,
    delivery: Option<&DeliveryPlan>,
) -> Outputs {
    let outputs = match target {
        Target::Nowhere | Target::Stream(_) | Target::Log(..) => Outputs::default(),
        Target::Directory(directory, _) => Outputs::default().with_directory(directory),
    };
    let outputs = extraction.into_iter().fold(outputs, Outputs::with_directory);
    let outputs = recording.into_iter().fold(outputs, Outputs::with_recording);
    delivery.into_iter().fold(outputs, |outputs, plan| {
        outputs.with_directory(plan.spool()).with_ports(plan.ports())
    })
}

/// Starts the thread that writes the content of files.
fn extract_to(directory: &Path, limits: &Limits) -> anyhow::Result<ExtractionWriter> {
    let files = ExtractedFiles::create(directory, limits.extracted_bytes, say)?;
    ExtractionWriter::start(files, ContentBounds::default())
}

/// Pins this thread to the last of the processors that were named, and finds out whether there are the others.
fn pin_last(cpus: &[usize]) -> anyhow::Result<()> {
    for cpu in cpus {
        netsniff_capture::pin(*cpu)
            .with_context(|| format!("cannot run on processor {cpu}, which --cpus names"))?;
    }
    Ok(())
}

/// What a run has to do with.
struct Session<'a> {
    args: &'a AnalyzeArgs,
    target: &'a Target<'a>,
    settings: &'a Settings,
    wanted: &'a Wanted,
    signals: &'a Signals,
    recording: Option<&'a RecordingOptions>,
    reopener: Option<&'a Reopener>,
    monitor: &'a Monitor,
    extraction: Option<&'a ExtractionWriter>,
    delivering: &'a Delivering,
    reloading: Option<&'a Reloading<'a, AnalyzeArgs>>,
}

/// What came of a run.
struct Run {
    origin: Live,
    outcome: AnalysisOutcome,
    has_failed: bool,
}

impl Session<'_> {
    fn run(&self, rings: Rings, deliveries: Deliveries) -> anyhow::Result<Run> {
        let now = clock::now();
        match self.target {
            Target::Nowhere => self.write(rings, sinks(Nowhere::default(), deliveries), None),
            Target::Stream(style) => {
                let sink =
                    LiveStream::stdout(style.format).context("cannot write to standard output")?;
                self.write(rings, sinks(sink, deliveries), None)
            }
            Target::Log(style, logs) => {
                let sink = LogStream::stdout(style.format, *logs)
                    .context("cannot write to standard output")?;
                self.write(rings, sinks(sink, deliveries), None)
            }
            Target::Directory(directory, style) => {
                let rolling = self.args.rolling();
                let sink = LogFiles::live(directory, style.format, rolling.roll(), now)?;
                let sink = sink.telling(self.args.tell()).keeping(rolling.keep(), now)?;
                let options = &self.settings.options;
                let unparsed = UnparsedFile::new(directory, options, self.args.unparsed())?;
                self.write(rings, sinks(sink, deliveries), Some(unparsed))
            }
        }
    }

    /// Captures to the end, and writes rows, books and packets that nobody understood.
    fn write<S: LiveSink>(
        &self,
        rings: Rings,
        sink: S,
        unparsed: Option<UnparsedFile>,
    ) -> anyhow::Result<Run> {
        let (writer, producers) = self.start_writer(sink, rings.rings.len())?;
        let recorder = self.recording.map(|options| record::start(options, &rings)).transpose()?;
        let Rings { interfaces, rings, host, contention, .. } = rings;
        let control = Control::new(rings.len());
        let places: Vec<_> = rings.iter().map(|ring| ring.place.clone()).collect();
        let sampling = self.wanted.sampling();
        let mut keeper =
            BooksKeeper::begin(&interfaces, places.clone(), sampling, host, clock::now())?;
        let supervisor = Supervisor {
            control: &control,
            signals: self.signals,
            duration: self.args.capture().duration(),
            interval: self.args.capture().stats_interval(),
            contention,
            monitor: self.monitor,
        };
        let mut hooks = AnalyzeHooks::new(
            &writer,
            self.settings,
            recorder.clone(),
            self.monitor,
            self.extraction,
            self.delivering,
        )
        .verbose(self.args.verbose())
        .reloading(self.reloading, self.args.rolling().keep());
        let aside = UnparsedWriter::new(unparsed);
        let analyses = self.analyses(&places, producers, &aside, recorder.as_ref())?;
        let rings = rings.into_iter().zip(analyses).collect();
        let outcomes = self.capture(rings, supervisor, &mut keeper, &mut hooks)?;
        let Closed { outcome, entries, failures, recorded_late } =
            close(finished(outcomes)?, &mut keeper, hooks, recorder)?;
        failures.iter().for_each(|why| say(why));
        let written = writer.finish();
        let [unparsed_refused, unparsed_left_out] = aside.finish()?;
        let is_unwritten = written.statistics.refused_failed.total() > 0;
        let has_failed = !failures.is_empty() || written.failure.is_some() || is_unwritten;
        let outcome = AnalysisOutcome { joins: written.joins.unwrap_or_default(), ..outcome };
        let origin = Live {
            places,
            interfaces,
            entries,
            filter: self.wanted.text().map(str::to_owned),
            written: written.statistics,
            unparsed_refused,
            unparsed_left_out,
            recorded_late,
            untold_files: 0,
        };
        Ok(Run { origin, outcome, has_failed })
    }

    /// Starts the thread that writes the logs, which so many rings hand their rows to.
    fn start_writer<S: LiveSink>(
        &self,
        sink: S,
        producers: usize,
    ) -> anyhow::Result<(LogWriter, Vec<RowProducer>)> {
        let settings = WriterSettings {
            producers,
            bounds: Bounds::default(),
            on_failure: self.args.if_unwritten.into(),
            end_wait: END_WAIT,
            tell: Box::new(say),
        };
        LogWriter::start(sink, self.settings.merger(), settings)
    }

    /// What analyses the packets of each ring.
    fn analyses(
        &self,
        places: &[RingPlace],
        producers: Vec<RowProducer>,
        aside: &UnparsedWriter,
        recorder: Option<&Arc<Mutex<SharedRecorder>>>,
    ) -> anyhow::Result<Vec<RingAnalysis>> {
        // What other processes get of a group nobody here can tell.
        let is_alone = self.args.capture().fanout_group().is_none();
        let splits = is_alone
            .then(|| Arc::new(SplitFlowDetector::new(places.iter().map(|place| place.interface))));
        let analysis = |(number, rows)| {
            let also = recorder.map(|recorder| -> Box<dyn Consumer> {
                Box::new(Recording::new(Arc::clone(recorder), number))
            });
            let settings = on_interface(self.settings, &places[number].facts.interface);
            let mut analyser =
                Analyser::new(&settings, aside.taker(), also, rows, self.args.sheds());
            if let Some(splits) = &splits {
                analyser = analyser.with_splits(Arc::clone(splits), number);
            }
            self.place(analyser)
        };
        producers.into_iter().enumerate().map(analysis).collect()
    }

    /// Starts the threads of all rings, and rules them to the end.
    fn capture(
        &self,
        rings: Vec<(Ring, RingAnalysis)>,
        supervisor: Supervisor<'_>,
        keeper: &mut BooksKeeper,
        hooks: &mut AnalyzeHooks<'_>,
    ) -> anyhow::Result<Vec<Option<RingOutcome<RingAnalysis>>>> {
        let (capture, control) = (self.args.capture(), supervisor.control);
        std::thread::scope(|scope| {
            // One at once behind the other, so that the books know when.
            let start = |(number, (ring, analysis))| {
                live::work(capture, number, ring, control, analysis, self.reopener)
            };
            let works = keeper.start(|| {
                rings.into_iter().enumerate().map(start).collect::<anyhow::Result<Vec<_>>>()
            })?;
            let mut handles = Vec::new();
            for (number, work) in works.into_iter().enumerate() {
                let handle = std::thread::Builder::new().name(format!("ring {number}"));
                let handle = handle.spawn_scoped(scope, move || work.run());
                handles.push(handle.context("cannot start a thread for a ring")?);
            }
            if !self.args.quiet() {
                say("capturing; SIGINT ends the run, SIGHUP rolls the logs");
            }
            Ok(supervisor.run(handles, keeper, hooks))
        })
    }

    /// Where a ring's packets are analysed.
    fn place(&self, analyser: Analyser) -> anyhow::Result<RingAnalysis> {
        if !self.args.is_apart() {
            return Ok(RingAnalysis::Inline(Box::new(analyser)));
        }
        let cpu = self.args.capture().cpus().last().copied();
        let apart =
            OffThread::start(analyser, cpu).context("cannot start a thread to analyse in")?;
        Ok(RingAnalysis::OffThread(Box::new(apart)))
    }
}

/// A sink, and where else rows go.
const fn sinks<S>(sink: S, deliveries: Deliveries) -> netsniff_delivery::Delivering<S> {
    netsniff_delivery::Delivering { sink, deliveries }
}

/// What the end of a run leaves.
struct Closed {
    outcome: AnalysisOutcome,
    entries: Vec<BooksLine>,
    failures: Vec<String>,
    recorded_late: u64,
}

/// Closes the books and the recording, and writes the last rows of the books.
fn close(
    finished: Vec<RingOutcome<RingAnalysis>>,
    keeper: &mut BooksKeeper,
    mut hooks: AnalyzeHooks<'_>,
    recorder: Option<Arc<Mutex<SharedRecorder>>>,
) -> anyhow::Result<Closed> {
    let reports: Vec<_> = finished.iter().map(|outcome| outcome.report.clone()).collect();
    let mut entries = keeper.close(&reports);
    let now = clock::now();
    let since = keeper.turn(now);
    let mut failures: Vec<_> =
        finished.iter().filter_map(|outcome| outcome.failure.clone()).collect();
    // Rings of one interface fail at the same.
    failures.dedup();
    let outcome = sum(finished)?;
    hooks.let_recorder_go();
    let mut recorded_late = 0;
    if let Some(recorder) = recorder {
        // The last counters stand in the file, and the last books tell what is in it.
        record::update_recorder(record::lock(&recorder).recorder(), &entries, now);
        let done = record::end(recorder)?;
        entries.iter_mut().for_each(|entry| record::add(entry, &done.statistics));
        recorded_late = done.statistics.out_of_order;
        failures.extend(done.failure);
    }
    hooks.books(&mut entries, now, since, true);
    Ok(Closed { outcome, entries, failures, recorded_late })
}

/// The settings for the packets of one ring of an interface.
fn on_interface(settings: &Settings, interface: &str) -> Settings {
    let mut settings = settings.clone();
    if let Some(series) = &mut settings.options.series {
        series.interface = Some(interface.into());
        series.is_of_ring = settings.workers > 1;
    }
    settings
}

/// The outcomes of all rings; a thread that panicked is our fault.
fn finished<C>(outcomes: Vec<Option<RingOutcome<C>>>) -> anyhow::Result<Vec<RingOutcome<C>>> {
    let outcomes: Option<Vec<_>> = outcomes.into_iter().collect();
    outcomes.context("the thread of a ring panicked")
}

/// Adds up what the rings found.
fn sum(outcomes: Vec<RingOutcome<RingAnalysis>>) -> anyhow::Result<AnalysisOutcome> {
    let mut sum = AnalysisOutcome {
        packets: Default::default(),
        flows: Default::default(),
        filtered: 0,
        joins: Default::default(),
        now: Timestamp::MIN,
    };
    for outcome in outcomes {
        let analyser = outcome.consumer.into_analyser();
        let (packets, flows) = analyser.context("the analysing thread panicked")?.statistics();
        sum.packets.merge(&packets);
        sum.flows.merge(&flows);
        sum.filtered += outcome.report.filtered;
        sum.now = sum.now.max(outcome.report.now.unwrap_or(Timestamp::MIN));
    }
    Ok(sum)
}
