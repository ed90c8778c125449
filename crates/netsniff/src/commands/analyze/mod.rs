//! `netsniff analyze`: packets to logs and a summary.

mod args;
mod files;
mod hooks;
mod live;
mod live_origin;
mod named;
mod origin;
mod packet_notes;
mod report;
mod selection;
mod unparsed;
mod verbose;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufWriter, ErrorKind, IsTerminal as _, Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use netsniff_analysis::Options;
use netsniff_analysis::engine::decoding::Intake;
use netsniff_analysis::file::Extract;
use netsniff_analysis::ingress::Unparsed;
use netsniff_packet::Packet;

pub use args::AnalyzeArgs;
use netsniff_console::paths::is_stdin;
use netsniff_console::pidfile::PidFile;
use netsniff_console::terminal::progress::{ProgressLine, is_output_seen};
use netsniff_console::{BELOW_QUALITY, DAMAGED, DONE, FAILED, say};
use netsniff_output::{ExtractedFiles, LogFiles, Nowhere, RowSink, Stream, UnparsedFile};
use netsniff_pipeline::{AnalysisOutcome, Attend, Settings};

use super::extract::index::write;
use super::inputs::{Inputs, Refused};
use super::interrupted;
use crate::summary::{Style, Summary};
use args::{Request, Target};
use files::Files;
use report::Analysis;
use selection::Selection;

/// Bytes of rows gathered before they go to standard output.
const STREAM_BUFFER: usize = 64 * 1024;
/// Places of damage told of one file at once.
const DAMAGE_TOLD: usize = 10;

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`](netsniff_console::UsageError), and failures that leave nothing to report.
pub fn run(args: &AnalyzeArgs) -> anyhow::Result<u8> {
    args.parent.heed()?;
    if args.capture().is_live() {
        return live::run(args);
    }
    let Request { paths, filters } = args.request()?;
    let target = args.target()?;
    let options = args.options()?;
    let extraction = args.extraction()?;
    let pseudonyms = args.pseudonyms()?;
    let span = args.span().span()?;
    let _pidfile = args.capture().pidfile.as_deref().map(PidFile::create).transpose()?;
    let (inputs, refused) = open(args, &paths)?;
    let mut inputs = inputs.within(span);
    if inputs.files.is_empty() {
        return Ok(FAILED);
    }
    let said = pseudonyms.as_ref().map(|pseudonyms| pseudonyms.said.clone());
    let anonymizer = pseudonyms.map(|pseudonyms| Arc::new(pseudonyms.anonymizer));
    let limits = args.limits()?;
    let extracted = extraction
        .map(|directory| ExtractedFiles::create(directory, limits.extracted_bytes, say))
        .transpose()?;
    let extract = extracted.clone().map(|directory| Arc::new(directory) as Arc<dyn Extract>);
    let options = Options { anonymizer, extract, ..options };
    let settings = Settings {
        limits,
        options,
        workers: args.workers(),
        format: target.format(),
        seed: seed(),
        prompt: inputs.may_wait(),
    };
    if args.verbose() {
        // It may name hosts that pseudonyms hide.
        filters.iter().filter(|_| said.is_none()).for_each(verbose::filter);
        verbose::plan(&settings, &target, said.as_deref());
    }
    let mut selection = Selection::new(filters);
    let start = Instant::now();
    let analysed = analyse(&mut inputs, &mut selection, &settings, &target, args);
    let (outcome, unparsed_left_out) = match analysed {
        // Whoever reads has enough, as in `netsniff analyze FILE -o - | head`.
        Err(error) if matches!(target, Target::Stream(_)) && is_broken_pipe(&error) => {
            return Ok(DONE);
        }
        result => result?,
    };
    let elapsed_nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let analysis = Analysis {
        origin: &Files { inputs: &inputs, selection: &selection, unparsed_left_out },
        settings: &settings,
        outcome: &outcome,
        pseudonyms: said.as_deref(),
        elapsed_nanos,
    };
    let summary = analysis.summary();
    print_summary(&summary, args, &target)?;
    let damaged = summary.input.sources.iter().any(|source| source.damage_count > 0);
    let code = exit_code(args, &analysis, damaged || !refused.is_empty() || inputs.lacks_files());
    let has_failed = extracted.is_some_and(|directory| directory.has_failed());
    let has_failed = has_failed || !index(args, &paths)?;
    Ok(if has_failed { FAILED } else { code })
}

/// Writes indexes of the files, where they are wanted. Returns whether nothing went wrong.
fn index(args: &AnalyzeArgs, paths: &[PathBuf]) -> anyhow::Result<bool> {
    let Some((limits, options)) = args.index() else { return Ok(true) };
    Ok(write(paths, limits, options, args.quiet())?.is_some())
}

/// The exit code of an analysis, with a sentence for what is wrong.
fn exit_code(args: &AnalyzeArgs, analysis: &Analysis<'_>, is_damaged: bool) -> u8 {
    let mut code = if is_damaged { DAMAGED } else { DONE };
    if let Some(why) = analysis.nothing_read() {
        say(&why);
        code = FAILED;
    }
    if let Some(percent) = args.required_quality()
        && let Some(why) = analysis.below(percent)
    {
        say(&format!("below the required quality of {percent} %: {why}"));
        code = BELOW_QUALITY;
    }
    code
}

/// Opens the files, and says which cannot be read.
fn open(args: &AnalyzeArgs, paths: &[PathBuf]) -> anyhow::Result<(Inputs, Vec<Refused>)> {
    let read_size = netsniff_pipeline::read_size(args.workers());
    let (mut inputs, refused) = match paths {
        [path] if args.follows() => (Inputs::follow(path, read_size)?, Vec::new()),
        paths => Inputs::open(paths, read_size),
    };
    if args.verbose() {
        inputs.iter().for_each(|(file, reader)| verbose::opened(file, reader));
    }
    if let Some(window) = args.capture().file_window() {
        inputs.reorder(window);
    }
    for input in &refused {
        say(&format!("{}: {}", name(&input.path), input.said));
    }
    let missing = refused.iter().filter(|input| input.missing);
    if let Some(hint) = missing.filter_map(|input| args.hint(&input.path)).next() {
        say(&hint);
    }
    if args.follows() && inputs.files.is_empty() {
        say("no capture came to be read");
    }
    Ok((inputs, refused))
}

fn analyse(
    inputs: &mut Inputs,
    selection: &mut Selection,
    settings: &Settings,
    target: &Target<'_>,
    args: &AnalyzeArgs,
) -> anyhow::Result<(AnalysisOutcome, u64)> {
    // Where they are seen, the rows themselves show how far it is.
    let is_quiet = args.quiet() || matches!(target, Target::Stream(_)) && is_output_seen();
    let progress = if args.follows() {
        // It ends by itself upon signals.
        ProgressLine::new(inputs.size(), is_quiet)
    } else {
        interrupted::progress_line(inputs.size(), is_quiet)?
    };
    let mut work = PendingAnalysis { progress, inputs, selection, settings, unparsed: None };
    match target {
        Target::Nowhere => Ok((work.run(&mut Nowhere::default())?, 0)),
        Target::Stream(format) => {
            let writer = BufWriter::with_capacity(STREAM_BUFFER, stdout());
            let mut sink = Stream::new(writer, "standard output", *format)?;
            let outcome = work.run(&mut sink)?;
            sink.finish()?;
            Ok((outcome, 0))
        }
        Target::Directory(directory, format) => {
            let mut sink = LogFiles::create(directory, *format)?.telling(args.tell());
            let options = &settings.options;
            let mut unparsed = UnparsedFile::new(directory, options, args.unparsed())?;
            work.unparsed = Some(&mut unparsed);
            let outcome = work.run(&mut sink)?;
            sink.finish(outcome.now)?;
            Ok((outcome, unparsed.finish()?))
        }
    }
}

/// An analysis that waits for a place where its rows go.
struct PendingAnalysis<'a> {
    inputs: &'a mut Inputs,
    selection: &'a mut Selection,
    settings: &'a Settings,
    progress: ProgressLine,
    /// Where packets go that were not understood.
    unparsed: Option<&'a mut UnparsedFile>,
}

impl PendingAnalysis<'_> {
    fn run<K: RowSink<Error = anyhow::Error> + Send>(
        &mut self,
        sink: &mut K,
    ) -> anyhow::Result<AnalysisOutcome> {
        let Self { inputs, selection, settings, progress, unparsed } = self;
        let unparsed = unparsed.as_deref_mut();
        let mut attendant = AnalyzeAttendant { selection, progress, unparsed, failure: None };
        let outcome = netsniff_pipeline::run(&mut **inputs, settings, &mut attendant, sink)?;
        attendant.check()?;
        Ok(outcome)
    }
}

/// Chooses packets, keeps those that were not understood, and shows how far the analysis is.
struct AnalyzeAttendant<'a> {
    selection: &'a mut Selection,
    progress: &'a mut ProgressLine,
    unparsed: Option<&'a mut UnparsedFile>,
    /// Why a packet could not be kept.
    failure: Option<anyhow::Error>,
}

impl AnalyzeAttendant<'_> {
    fn check(&mut self) -> anyhow::Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

impl Intake for AnalyzeAttendant<'_> {
    #[inline]
    fn wants(&mut self, packet: &Packet<'_>) -> bool {
        self.selection.wants(packet)
    }

    fn unparsed(&mut self, packet: &Packet<'_>, why: &Unparsed) {
        if let (Some(file), None) = (&mut self.unparsed, &self.failure) {
            self.failure = file.add(packet, why).err();
        }
    }
}

impl Attend<Inputs> for AnalyzeAttendant<'_> {
    fn taken(&mut self, inputs: &Inputs) -> anyhow::Result<()> {
        self.progress.update(|| (inputs.bytes_read(), inputs.packets()));
        self.check()
    }
}

/// Protects tables from senders who aim at them.
fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Tells damage on standard error, and the summary where it is wanted.
fn print_summary(summary: &Summary, args: &AnalyzeArgs, target: &Target<'_>) -> anyhow::Result<()> {
    for source in &summary.input.sources {
        for damage in source.damage.iter().take(DAMAGE_TOLD) {
            say(&format!("{}: {damage}", source.name));
        }
        let told = source.damage.len().min(DAMAGE_TOLD) as u64;
        if source.damage_count > told {
            say(&format!("{}: damaged at {} more places", source.name, source.damage_count - told));
        }
    }
    let streams = matches!(target, Target::Stream(_));
    if args.json() {
        return printed(stdout().write_all(summary.json()?.as_bytes()));
    }
    if args.quiet() || streams && !stderr().is_terminal() {
        summary.notes.iter().for_each(|note| say(note));
        return Ok(());
    }
    if streams {
        return printed(stderr().write_all(summary.text(Style::of(&stderr())).as_bytes()));
    }
    let mut out = stdout().lock();
    printed(out.write_all(summary.text(Style::of(&out)).as_bytes()).and_then(|()| out.flush()))
}

/// A reader that has enough, `head` for one, is no failure.
fn printed(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot print the summary"),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|error| error.kind() == ErrorKind::BrokenPipe)
}

fn name(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}
