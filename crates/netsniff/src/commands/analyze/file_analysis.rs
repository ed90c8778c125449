//! An analysis of files, from their opening to its summary: what the command runs, and what other programs run.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use netsniff_analysis::Options;
use netsniff_analysis::engine::decoding::Intake;
use netsniff_analysis::file::Extract;
use netsniff_analysis::ingress::Unparsed;
use netsniff_console::say;
use netsniff_delivery::Books;
use netsniff_output::{ExtractedFiles, LogSet, RowSink, RowStyle, UnparsedFile};
use netsniff_packet::Packet;
use netsniff_packet::filter::Filter;
use netsniff_pcapfile::Damage;
use netsniff_pipeline::{
    AnalysisOutcome, Attend, Jobs, PartsOutcome, Settings, read_size, run_parts, share_of,
};

use super::args::{AnalyzeArgs, Request};
use super::files::Files;
use super::parts::Parts;
use super::report::Analysis;
use super::selection::Selection;
use super::{name, verbose};
use crate::commands::inputs::{Inputs, Refused};
use crate::summary::Summary;

/// Files, and how they are to be analysed.
pub struct FileAnalysis {
    pub(super) inputs: Inputs,
    pub(super) refused: Vec<Refused>,
    pub(super) paths: Vec<PathBuf>,
    selection: Selection,
    settings: Settings,
    /// How hosts and people are named, where it is not by their names.
    pseudonyms: Option<String>,
    extracted: Option<ExtractedFiles>,
    jobs: Option<Jobs>,
    /// What became of each file by itself, where that was wanted.
    parts: Option<PartsOutcome>,
    unparsed_left_out: u64,
    delivered: Vec<Books>,
    begun: Instant,
}

impl core::fmt::Debug for FileAnalysis {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { paths, settings, .. } = self;
        let mut analysis = f.debug_struct("FileAnalysis");
        analysis.field("paths", paths).field("settings", settings).finish_non_exhaustive()
    }
}

impl FileAnalysis {
    /// Opens the files that are named, for rows of a style, or for none. Files that cannot be read are told of by
    /// [`Self::refused`].
    ///
    /// # Errors
    ///
    /// [`UsageError`](netsniff_console::UsageError) where options contradict each other, and what cannot be made of what they name.
    pub fn open(args: &AnalyzeArgs, style: Option<RowStyle>) -> anyhow::Result<Self> {
        let Request { paths, filters } = args.request()?;
        let options = args.options()?;
        let extraction = args.extraction()?;
        let pseudonyms = args.pseudonyms()?;
        let span = args.span().span()?;
        let limits = args.limits()?;
        let (inputs, refused) = opened(args, &paths)?;
        let inputs = inputs.within(span);
        let extraction = extraction.filter(|_| !inputs.files.is_empty());
        let extracted = extraction
            .map(|directory| ExtractedFiles::create(directory, limits.extracted_bytes, say))
            .transpose()?;
        let extract = extracted.clone().map(|directory| Arc::new(directory) as Arc<dyn Extract>);
        let said = pseudonyms.as_ref().map(|pseudonyms| pseudonyms.said.clone());
        let anonymizer = pseudonyms.map(|pseudonyms| Arc::new(pseudonyms.anonymizer));
        let options = Options { anonymizer, extract, ..options };
        let jobs = args.jobs(&options)?.map(|jobs| jobs.for_parts(inputs.files.len()));
        let settings = Settings {
            limits: jobs.map_or(limits, |jobs| share_of(limits, jobs.engines())),
            options,
            workers: args.workers(),
            style,
            logs: args.logs(),
            seed: seed(),
            prompt: inputs.may_wait(),
        };
        Ok(Self {
            inputs,
            refused,
            paths,
            selection: Selection::new(filters),
            settings,
            pseudonyms: said,
            extracted,
            jobs,
            parts: None,
            unparsed_left_out: 0,
            delivered: Vec::new(),
            begun: Instant::now(),
        })
    }

    /// Files of which nothing can be read, each with what is wrong with it.
    pub fn refused(&self) -> impl Iterator<Item = (String, &str)> {
        self.refused.iter().map(|input| (name(&input.path), input.said.as_str()))
    }

    /// Each place at which a file is damaged, as far as its reader keeps them, with the name of the file.
    pub fn damage(&self) -> impl Iterator<Item = (&str, &Damage)> {
        self.inputs
            .iter()
            .flat_map(|(file, reader)| reader.damage().iter().map(|it| (file.name.as_str(), it)))
    }

    /// Whether nothing can be read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inputs.files.is_empty()
    }

    /// The logs that are wanted.
    #[must_use]
    pub const fn logs(&self) -> LogSet {
        self.settings.logs
    }

    pub(super) const fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(super) fn pseudonyms(&self) -> Option<&str> {
        self.pseudonyms.as_deref()
    }

    pub(super) fn filters(&self) -> &[Filter] {
        self.selection.filters()
    }

    /// Analyses the files to their end. `taken` hears after each piece how many bytes and packets were read, and ends the
    /// analysis by an error.
    ///
    /// # Errors
    ///
    /// Those of `sink` and of `taken`.
    pub fn run<K: RowSink<Error = anyhow::Error> + Send>(
        &mut self,
        sink: &mut K,
        taken: &mut Taken<'_>,
    ) -> anyhow::Result<AnalysisOutcome> {
        self.run_with(sink, None, taken)
    }

    /// The same, and keeps packets that were not understood.
    pub(super) fn run_with<K: RowSink<Error = anyhow::Error> + Send>(
        &mut self,
        sink: &mut K,
        unparsed: Option<&mut UnparsedFile>,
        taken: &mut Taken<'_>,
    ) -> anyhow::Result<AnalysisOutcome> {
        self.begun = Instant::now();
        let Self { inputs, selection, settings, jobs, parts, .. } = self;
        let files = Parts::of(inputs, selection, read_size(1), unparsed.is_some());
        let mut attendant = Attendant { selection, taken, unparsed, failure: None };
        let outcome = match *jobs {
            None => netsniff_pipeline::run(inputs, settings, &mut attendant, sink)?,
            Some(jobs) => {
                inputs.merged.stop_between();
                let how = (&*settings, jobs);
                let (outcome, of) = run_parts(inputs, &files, how, &mut attendant, sink)?;
                *parts = Some(of);
                outcome
            }
        };
        attendant.check()?;
        Ok(outcome)
    }

    /// Packets for which the file of those that were not understood had no room.
    pub(super) const fn unparsed_left_out(&mut self, packets: u64) {
        self.unparsed_left_out = packets;
    }

    /// Where the rows went that were to be delivered.
    pub(super) fn delivered(&mut self, books: Vec<Books>) {
        self.delivered = books;
    }

    /// What the analysis found, which is over now.
    #[must_use]
    pub fn summary(&self, outcome: &AnalysisOutcome) -> Summary {
        self.concluded(outcome, |analysis| analysis.summary())
    }

    /// Hands everything that the analysis is known by to `conclude`.
    pub(super) fn concluded<T>(
        &self,
        outcome: &AnalysisOutcome,
        conclude: impl FnOnce(Analysis<'_>) -> T,
    ) -> T {
        let elapsed = self.begun.elapsed().as_nanos();
        let Self { inputs, selection, parts, unparsed_left_out, .. } = self;
        let (parts, unparsed_left_out) = (*parts, *unparsed_left_out);
        let origin = Files { inputs, selection, parts, unparsed_left_out };
        conclude(Analysis {
            origin: &origin,
            settings: &self.settings,
            outcome,
            pseudonyms: self.pseudonyms(),
            delivered: &self.delivered,
            elapsed_nanos: u64::try_from(elapsed).unwrap_or(u64::MAX),
        })
    }

    /// Whether a file could not be extracted.
    pub(super) fn has_failed(&self) -> bool {
        self.extracted.as_ref().is_some_and(ExtractedFiles::has_failed)
    }

    /// Whether an input was damaged, or not read.
    #[must_use]
    pub fn is_damaged(&self, summary: &Summary) -> bool {
        let damaged = summary.input.sources.iter().any(|source| source.damage_count > 0);
        damaged || !self.refused.is_empty() || self.inputs.lacks_files()
    }
}

/// Hears how many bytes and packets were read.
pub type Taken<'a> = dyn FnMut(u64, u64) -> anyhow::Result<()> + Send + 'a;

/// Opens the files apart from those that cannot be read.
fn opened(args: &AnalyzeArgs, paths: &[PathBuf]) -> anyhow::Result<(Inputs, Vec<Refused>)> {
    let piece = read_size(args.workers());
    let (mut inputs, refused) = match paths {
        [path] if args.follows() => (Inputs::follow(path, piece)?, Vec::new()),
        paths => Inputs::open(paths, piece),
    };
    if args.verbose() {
        inputs.iter().for_each(|(file, reader)| verbose::opened(file, reader));
    }
    if let Some(window) = args.capture().file_window() {
        inputs.reorder(window);
    }
    Ok((inputs, refused))
}

/// Chooses packets, keeps those that were not understood, and tells how far the analysis is.
pub(super) struct Attendant<'a, 'b> {
    pub(super) selection: &'a mut Selection,
    taken: &'a mut Taken<'b>,
    unparsed: Option<&'a mut UnparsedFile>,
    /// Why a packet could not be kept.
    failure: Option<anyhow::Error>,
}

impl Attendant<'_, '_> {
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

impl Intake for Attendant<'_, '_> {
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

impl Attend<Inputs> for Attendant<'_, '_> {
    fn taken(&mut self, inputs: &Inputs) -> anyhow::Result<()> {
        (self.taken)(inputs.bytes_read(), inputs.packets())?;
        self.check()
    }
}

/// Protects tables from senders who aim at them.
pub(super) fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}
