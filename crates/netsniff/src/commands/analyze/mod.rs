//! `netsniff analyze`: packets to logs and a summary.

mod args;
mod file_analysis;
mod files;
mod hooks;
mod live;
mod live_origin;
mod named;
mod origin;
mod packet_notes;
mod parts;
mod report;
mod selection;
mod unparsed;
mod verbose;

use std::io::{self, BufWriter, ErrorKind, IsTerminal as _, Write, stderr, stdout};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

pub use args::AnalyzeArgs;
pub use file_analysis::{FileAnalysis, Taken};
use netsniff_console::paths::is_stdin;
use netsniff_console::pidfile::PidFile;
use netsniff_console::terminal::progress::{ProgressLine, is_output_seen};
use netsniff_console::{BELOW_QUALITY, DAMAGED, DONE, FAILED, UNDELIVERED, say};
use netsniff_delivery::{Books, Deliveries, Delivering, OnFull};
use netsniff_output::{LiveSink as _, LogFiles, LogStream, Nowhere, RowSink, Stream, UnparsedFile};
use netsniff_pipeline::AnalysisOutcome;

use super::extract::index::write;
use super::interrupted;
use super::live::Reloading;
use super::row_output::Target;
use crate::summary::{Style, Summary};
use report::Analysis;

/// Bytes of rows gathered before they go to standard output.
const STREAM_BUFFER: usize = 64 * 1024;
/// Places of damage told of one file at once.
const DAMAGE_TOLD: usize = 10;

/// Runs the command as a service, whose configuration can be read again, and returns its exit code.
///
/// # Errors
///
/// As [`run`].
pub fn serve(args: &AnalyzeArgs, reloading: &Reloading<'_, AnalyzeArgs>) -> anyhow::Result<u8> {
    if args.capture().is_live() { live::run(args, Some(reloading)) } else { run(args) }
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`](netsniff_console::UsageError), and failures that leave nothing to report.
pub fn run(args: &AnalyzeArgs) -> anyhow::Result<u8> {
    args.parent.heed()?;
    if args.capture().is_live() {
        return live::run(args, None);
    }
    let target = args.target()?;
    let plan = args.delivery().plan()?;
    let _pidfile = args.capture().pidfile.as_deref().map(PidFile::create).transpose()?;
    let mut analysis = FileAnalysis::open(args, args.style(&target)?)?;
    say_refused(args, &analysis);
    if analysis.is_empty() {
        return Ok(FAILED);
    }
    if args.verbose() {
        let said = analysis.pseudonyms();
        // It may name hosts that pseudonyms hide.
        analysis.filters().iter().filter(|_| said.is_none()).for_each(verbose::filter);
        verbose::plan(analysis.settings(), &target, said);
    }
    let started = plan.map(|plan| plan.start(OnFull::Wait)).transpose()?;
    let (deliveries, delivering) = started.unwrap_or_default();
    let outcome = match analyse(&mut analysis, &target, args, deliveries) {
        // Whoever reads has enough, as in `netsniff analyze FILE -o - | head`.
        Err(error) if is_enough(&target, args, &error) => return Ok(DONE),
        result => result?,
    };
    analysis.delivered(delivering.finish());
    let code = analysis.concluded(&outcome, |concluded| {
        let summary = concluded.summary();
        print_summary(&summary, args, &target)?;
        Ok::<_, anyhow::Error>(exit_code(args, &concluded, analysis.is_damaged(&summary)))
    })?;
    let has_failed = analysis.has_failed() || !index(args, &analysis.paths)?;
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
    if !analysis.delivered.iter().all(Books::is_whole) {
        code = UNDELIVERED;
    }
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

/// Says which files cannot be read.
fn say_refused(args: &AnalyzeArgs, analysis: &FileAnalysis) {
    for (name, said) in analysis.refused() {
        say(&format!("{name}: {said}"));
    }
    let missing = analysis.refused.iter().filter(|input| input.missing);
    if let Some(hint) = missing.filter_map(|input| args.hint(&input.path)).next() {
        say(&hint);
    }
    if args.follows() && analysis.is_empty() {
        say("no capture came to be read");
    }
}

fn analyse(
    analysis: &mut FileAnalysis,
    target: &Target<'_>,
    args: &AnalyzeArgs,
    deliveries: Deliveries,
) -> anyhow::Result<AnalysisOutcome> {
    // Where they are seen, the rows themselves show how far it is.
    let is_quiet = args.quiet() || target.is_stdout() && is_output_seen();
    let size = analysis.inputs.size();
    let mut progress = if args.follows() {
        // It ends by itself upon signals.
        ProgressLine::new(size, is_quiet)
    } else {
        interrupted::progress_line(size, is_quiet)?
    };
    let mut taken = |bytes, packets| {
        progress.update(|| (bytes, packets));
        Ok(())
    };
    match target {
        Target::Nowhere => {
            Ok(run_with(analysis, Nowhere::default(), deliveries, None, &mut taken)?.0)
        }
        Target::Stream(style) => {
            let writer = BufWriter::with_capacity(STREAM_BUFFER, stdout());
            let sink = Stream::new(writer, "standard output", style.format)?;
            let (outcome, sink) = run_with(analysis, sink, deliveries, None, &mut taken)?;
            sink.finish()?;
            Ok(outcome)
        }
        Target::Log(style, logs) => {
            let sink = LogStream::stdout(style.format, *logs)?;
            let (outcome, mut sink) = run_with(analysis, sink, deliveries, None, &mut taken)?;
            sink.end(outcome.now)?;
            Ok(outcome)
        }
        Target::Directory(directory, style) => {
            let sink = LogFiles::create(directory, style.format)?.telling(args.tell());
            let options = &analysis.settings().options;
            let mut unparsed = UnparsedFile::new(directory, options, args.unparsed())?;
            let aside = Some(&mut unparsed);
            let (outcome, sink) = run_with(analysis, sink, deliveries, aside, &mut taken)?;
            sink.finish(outcome.now)?;
            analysis.unparsed_left_out(unparsed.finish()?);
            Ok(outcome)
        }
    }
}

/// Analyses the files into `sink`, and into the spools of deliveries.
fn run_with<K: RowSink<Error = anyhow::Error> + Send>(
    analysis: &mut FileAnalysis,
    sink: K,
    deliveries: Deliveries,
    unparsed: Option<&mut UnparsedFile>,
    taken: &mut Taken<'_>,
) -> anyhow::Result<(AnalysisOutcome, K)> {
    let mut sink = Delivering { sink, deliveries };
    let outcome = analysis.run_with(&mut sink, unparsed, taken)?;
    sink.deliveries.finish(outcome.now)?;
    Ok((outcome, sink.sink))
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
    let streams = target.is_stdout();
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

/// Whether the output has a reader who has enough, and there is nobody else.
fn is_enough(target: &Target<'_>, args: &AnalyzeArgs, error: &anyhow::Error) -> bool {
    target.is_stdout() && !args.delivery().is_wanted() && is_broken_pipe(error)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|error| error.kind() == ErrorKind::BrokenPipe)
}

fn name(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}
