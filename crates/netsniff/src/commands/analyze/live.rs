//! `netsniff analyze -i`: live traffic to logs, books and a summary.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::Context as _;
use netsniff_analysis::{Limits, Observer as _, Options, Phase, SortKey, Uid};
use netsniff_console::clock;
use netsniff_console::pidfile::PidFile;
use netsniff_console::{BELOW_QUALITY, DONE, FAILED, say};
use netsniff_output::{
    Bounds, ContentBounds, END_WAIT, ExtractedFiles, ExtractionOutcome, ExtractionWriter, LiveSink,
    LiveStream, LogFiles, LogWriter, Merger, Nowhere, OnFailure, RowBuffer, UnparsedFile,
    WriterCommands, WriterSettings,
};
use netsniff_packet::Timestamp;
use netsniff_pipeline::books::{BooksKeeper, BooksLine};
use netsniff_pipeline::live::{
    Analyser, Consumer, Control, OffThread, Recording, RingAnalysis, RingOutcome, SharedRecorder,
    SplitFlowDetector,
};
use netsniff_pipeline::recording::options::Options as RecordingOptions;
use netsniff_pipeline::{AnalysisOutcome, Settings, share_of};

use super::args::{AnalyzeArgs, Target};
use super::aside::UnparsedWriter;
use super::live_origin::Live;
use super::report::Analysis;
use super::{print_summary, seed};
use crate::commands::live::{
    self, Metrics, Opening, Reopener, ReportedLine, Rings, RunHooks, Signals, Supervisor, Wanted,
};
use crate::commands::record;
use crate::sandbox::Outputs;

/// Captures until the run ends, and returns the exit code.
pub(super) fn run(args: &AnalyzeArgs) -> anyhow::Result<u8> {
    let capture = args.capture();
    let filters = args.live_filters()?;
    let target = args.target()?;
    let options = args.options()?;
    let extraction = args.extraction()?;
    let pseudonyms = args.pseudonyms()?;
    let signals = Signals::listen()?;
    let _pidfile = capture.pidfile.as_deref().map(PidFile::create).transpose()?;
    let wanted = Wanted::new(&filters, capture.sample())?;
    let opening = Opening {
        backend: capture.backend()?,
        options: capture.options(capture.interfaces.len() * args.rings())?,
        wanted: &wanted,
        rings: args.rings(),
        cpus: capture.cpus(),
        group: capture.fanout_group(),
    };
    let rings = opening.open(&capture.interfaces)?;
    if !args.quiet() {
        live::print_rings(&rings, &wanted, capture.cpus());
    }
    let said = pseudonyms.as_ref().map(|pseudonyms| pseudonyms.said.clone());
    let anonymizer = pseudonyms.map(|pseudonyms| Arc::new(pseudonyms.anonymizer));
    let recording = args.record().map(|to| record::options(&to, &rings, &wanted)).transpose()?;
    let listener = capture.listen()?;
    let outputs = outputs(&target, extraction, recording.as_ref());
    let reopener = live::confine(capture, outputs, args.quiet())?;
    let metrics = listener.map(Metrics::serve).transpose()?;
    // What writes inherits it; rings choose their own.
    pin_last(capture.cpus())?;
    let limits = args.limits()?;
    let extraction = extraction.map(|directory| extract_to(directory, &limits)).transpose()?;
    let extract = extraction.as_ref().map(ExtractionWriter::extract);
    let count = rings.rings.len();
    let settings = Settings {
        limits: share_of(limits, count),
        options: Options { anonymizer, extract, sampling: wanted.sampled(), ..options },
        workers: count,
        format: target.format(),
        seed: seed(),
    };
    let session = Session {
        args,
        target: &target,
        settings: &settings,
        wanted: &wanted,
        signals: &signals,
        recording: recording.as_ref(),
        reopener: reopener.as_ref(),
        metrics: metrics.as_ref(),
        extraction: extraction.as_ref(),
    };
    let begin = Instant::now();
    let mut run = session.run(rings)?;
    if let Some(ExtractionOutcome { untold, has_failed, failure }) =
        extraction.map(ExtractionWriter::finish)
    {
        failure.iter().for_each(|why| say(why));
        run.origin.untold_files = untold;
        run.has_failed |= has_failed;
    }
    let elapsed_nanos = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let analysis = Analysis {
        origin: &run.origin,
        settings: &settings,
        outcome: &run.outcome,
        pseudonyms: said.as_deref(),
        elapsed_nanos,
    };
    print_summary(&analysis.summary(), args, &target)?;
    if let Some(percent) = args.required_quality()
        && let Some(why) = analysis.below(percent)
    {
        say(&format!("below the required quality of {percent} %: {why}"));
        return Ok(BELOW_QUALITY);
    }
    Ok(if run.has_failed { FAILED } else { DONE })
}

/// What is written once the rings are open.
fn outputs(
    target: &Target<'_>,
    extraction: Option<&Path>,
    recording: Option<&RecordingOptions>,
) -> Outputs {
    let outputs = match target {
        Target::Nowhere | Target::Stream(_) => Outputs::default(),
        Target::Directory(directory, _) => Outputs::default().with_directory(directory),
    };
    let outputs = extraction.into_iter().fold(outputs, Outputs::with_directory);
    recording.into_iter().fold(outputs, Outputs::with_recording)
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
    metrics: Option<&'a Metrics>,
    extraction: Option<&'a ExtractionWriter>,
}

/// What came of a run.
struct Run {
    origin: Live,
    outcome: AnalysisOutcome,
    has_failed: bool,
}

impl Session<'_> {
    fn run(&self, rings: Rings) -> anyhow::Result<Run> {
        let now = clock::now();
        match self.target {
            Target::Nowhere => self.write(rings, Nowhere::default(), None),
            Target::Stream(format) => {
                let sink =
                    LiveStream::stdout(*format).context("cannot write to standard output")?;
                self.write(rings, sink, None)
            }
            Target::Directory(directory, format) => {
                let roll = self.args.rolling().roll();
                let sink = LogFiles::live(directory, *format, roll, now)?;
                let options = &self.settings.options;
                let unparsed = UnparsedFile::new(directory, options, self.args.unparsed())?;
                self.write(rings, sink, Some(unparsed))
            }
        }
    }

    fn write<S: LiveSink>(
        &self,
        rings: Rings,
        sink: S,
        unparsed: Option<UnparsedFile>,
    ) -> anyhow::Result<Run> {
        let settings = self.settings;
        let merger =
            Merger::new(&settings.limits, settings.format, settings.options.anonymizer.clone());
        let (writer, producers) = LogWriter::start(
            sink,
            merger,
            WriterSettings {
                producers: rings.rings.len(),
                bounds: Bounds::default(),
                on_failure: OnFailure::End,
                end_wait: END_WAIT,
                tell: Box::new(say),
            },
        )?;
        let capture = self.args.capture();
        let control = Control::new(rings.rings.len());
        let places: Vec<_> = rings.rings.iter().map(|ring| ring.place.clone()).collect();
        let recorder = self.recording.map(|options| record::start(options, &rings)).transpose()?;
        let mut keeper = BooksKeeper::begin(
            &rings.interfaces,
            places.clone(),
            self.wanted.sampling(),
            rings.host,
            clock::now(),
        )?;
        let rule = Supervisor {
            control: &control,
            signals: self.signals,
            duration: capture.duration(),
            interval: capture.stats_interval(),
            contention: rings.contention,
        };
        let mut scribe = AnalyzeHooks::new(&writer, settings, recorder.clone(), self);
        let aside = UnparsedWriter::new(unparsed);
        // What other processes get of a group nobody here can tell.
        let splits = capture.fanout_group().is_none().then(|| {
            Arc::new(SplitFlowDetector::new(rings.rings.iter().map(|ring| ring.place.interface)))
        });
        let outcomes = std::thread::scope(|scope| {
            let mut waiting = Vec::new();
            for (number, (ring, rows)) in rings.rings.into_iter().zip(producers).enumerate() {
                let also = recorder.as_ref().map(|recorder| -> Box<dyn Consumer> {
                    Box::new(Recording::new(Arc::clone(recorder), number))
                });
                let sheds = self.args.sheds();
                let mut analyser = Analyser::new(settings, aside.taker(), also, rows, sheds);
                if let Some(splits) = &splits {
                    analyser = analyser.with_splits(Arc::clone(splits), number);
                }
                waiting.push((number, ring, self.place(analyser)?));
            }
            // One at once behind the other, so that the books know when.
            let start = |(number, ring, consumer)| {
                live::work(capture, number, ring, &control, consumer, self.reopener)
            };
            let works = keeper
                .start(|| waiting.into_iter().map(start).collect::<anyhow::Result<Vec<_>>>())?;
            let mut handles = Vec::new();
            for (number, work) in works.into_iter().enumerate() {
                let handle = std::thread::Builder::new().name(format!("ring {number}"));
                let handle = handle.spawn_scoped(scope, move || work.run());
                handles.push(handle.context("cannot start a thread for a ring")?);
            }
            if !self.args.quiet() {
                say("capturing; SIGINT ends the run, SIGHUP rolls the logs");
            }
            Ok::<_, anyhow::Error>(rule.run(handles, &mut keeper, &mut scribe))
        })?;
        let finished = finished(outcomes)?;
        let reports: Vec<_> = finished.iter().map(|outcome| outcome.report.clone()).collect();
        let mut entries = keeper.close(&reports);
        let now = clock::now();
        let since = keeper.turn(now);
        let mut failures: Vec<_> =
            finished.iter().filter_map(|outcome| outcome.failure.clone()).collect();
        // Rings of one interface fail at the same.
        failures.dedup();
        let outcome = sum(finished)?;
        scribe.recorder = None;
        let mut recorded_late = 0;
        if let Some(recorder) = recorder {
            // The last counters stand in the file, and the last books tell what is in it.
            record::update_recorder(record::lock(&recorder).recorder(), &entries, now);
            let done = record::end(recorder)?;
            entries.iter_mut().for_each(|entry| record::add(entry, &done.statistics));
            recorded_late = done.statistics.out_of_order;
            failures.extend(done.failure);
        }
        scribe.books(&mut entries, now, since, true);
        drop(scribe);
        failures.iter().for_each(|why| say(why));
        let written = writer.finish();
        let [unparsed_refused, unparsed_left_out] = aside.finish()?;
        let has_failed = !failures.is_empty() || written.failure.is_some();
        let outcome = AnalysisOutcome { joins: written.joins.unwrap_or_default(), ..outcome };
        let origin = Live {
            places,
            interfaces: rings.interfaces,
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
}

impl Session<'_> {
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

/// Writes the books down.
struct AnalyzeHooks<'a> {
    writer: &'a LogWriter,
    commands: WriterCommands,
    rows: RowBuffer,
    /// Rows of the books so far.
    number: u32,
    /// What was said when the books were made last, by line.
    told: Vec<ReportedLine>,
    recorder: Option<Arc<Mutex<SharedRecorder>>>,
    metrics: Option<&'a Metrics>,
    extraction: Option<&'a ExtractionWriter>,
}

impl<'a> AnalyzeHooks<'a> {
    fn new(
        writer: &'a LogWriter,
        settings: &Settings,
        recorder: Option<Arc<Mutex<SharedRecorder>>>,
        session: &Session<'a>,
    ) -> Self {
        let rows = RowBuffer::new(settings.format);
        Self {
            writer,
            commands: writer.commands(),
            rows,
            number: 0,
            told: Vec::new(),
            recorder,
            metrics: session.metrics,
            extraction: session.extraction,
        }
    }
}

impl RunHooks for AnalyzeHooks<'_> {
    fn books(
        &mut self,
        entries: &mut [BooksLine],
        now: Timestamp,
        since: Timestamp,
        is_final: bool,
    ) {
        if let Some(recorder) = &self.recorder {
            let mut shared = record::lock(recorder);
            let recorder = shared.recorder();
            record::update_recorder(recorder, entries, now);
            let statistics = recorder.statistics();
            entries.iter_mut().for_each(|entry| record::add(entry, &statistics));
        }
        live::warn(entries, &mut self.told);
        if let Some(metrics) = &self.metrics {
            metrics.show(entries);
        }
        for entry in entries {
            let key = SortKey {
                time: now,
                phase: Phase::End,
                ordinal: 0,
                uid: Uid::NONE,
                number: self.number,
            };
            self.number = self.number.wrapping_add(1);
            self.rows.record(&key, &entry.record(now, since, is_final));
        }
        // What is refused is counted by the writer.
        let _ = self.commands.write(&mut self.rows);
    }

    fn roll(&mut self) {
        self.commands.roll();
    }

    fn tell(&mut self) {
        self.writer.first_refusal().iter().for_each(|said| say(said));
        self.extraction.iter().flat_map(|it| it.news()).for_each(say);
    }

    fn failure(&mut self) -> Option<String> {
        let recorder = self.recorder.as_deref();
        self.writer.failure().or_else(|| recorder.and_then(record::failure))
    }
}
