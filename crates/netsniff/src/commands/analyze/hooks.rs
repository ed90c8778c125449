//! What a live analysis does with the books while it goes on.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use netsniff_analysis::notice::Watch;
use netsniff_analysis::{Observer as _, Phase, SortKey, Uid};
use netsniff_console::say;
use netsniff_output::{ExtractionWriter, Keep, LogWriter, RowBuffer, WriterCommands};
use netsniff_packet::Timestamp;
use netsniff_pipeline::Settings;
use netsniff_pipeline::books::{BooksLine, BooksScope};
use netsniff_pipeline::live::SharedRecorder;

use super::args::AnalyzeArgs;
use super::verbose;
use crate::commands::delivery::Delivering;
use crate::commands::live::{
    self, Monitor, Reloading, ReportedLine, Reread, RunHooks, reload_said,
};
use crate::commands::record;
use crate::commands::rolling::{KEEP_OPTIONS, other_bounds};

/// Writes the books down.
pub(super) struct AnalyzeHooks<'a> {
    writer: &'a LogWriter,
    commands: WriterCommands,
    rows: RowBuffer,
    /// Rows of the books so far.
    number: u32,
    /// What was said when the books were made last, by line.
    told: Vec<ReportedLine>,
    recorder: Option<Arc<Mutex<SharedRecorder>>>,
    monitor: &'a Monitor,
    extraction: Option<&'a ExtractionWriter>,
    delivering: &'a Delivering,
    /// Whether the books are said, too.
    is_verbose: bool,
    watch: Option<Arc<Watch>>,
    /// How the configuration is read again, of a service.
    reloading: Option<&'a Reloading<'a, AnalyzeArgs>>,
    /// The bounds of files that were asked for last.
    keep: Keep,
}

impl<'a> AnalyzeHooks<'a> {
    pub(super) fn new(
        writer: &'a LogWriter,
        settings: &Settings,
        recorder: Option<Arc<Mutex<SharedRecorder>>>,
        monitor: &'a Monitor,
        extraction: Option<&'a ExtractionWriter>,
        delivering: &'a Delivering,
    ) -> Self {
        let rows = RowBuffer::new(settings.style).only(settings.logs);
        Self {
            writer,
            commands: writer.commands(),
            rows,
            number: 0,
            told: Vec::new(),
            recorder,
            monitor,
            extraction,
            delivering,
            is_verbose: false,
            watch: settings.options.watch.clone(),
            reloading: None,
            keep: Keep::default(),
        }
    }

    /// The same, which says the books, too, if so.
    pub(super) fn verbose(self, is_verbose: bool) -> Self {
        Self { is_verbose, ..self }
    }

    /// The same, which reads its configuration again where it is asked to. Until then files stay within these bounds.
    pub(super) fn reloading(
        self,
        reloading: Option<&'a Reloading<'a, AnalyzeArgs>>,
        keep: Keep,
    ) -> Self {
        Self { reloading, keep, ..self }
    }

    /// Puts in force what can be of a configuration that was read again. Where anything is wrong in it, nothing is.
    fn take(&mut self, reread: Reread<AnalyzeArgs>) -> anyhow::Result<String> {
        let Reread { args, mut changed } = reread;
        let indicators = args.notices().indicators()?;
        let keep = args.rolling().keep();
        let before = core::mem::replace(&mut self.keep, keep);
        let mut in_force: BTreeSet<_> = other_bounds(&before, &keep).map(str::to_owned).collect();
        // Bounds that were refused once may hold now.
        self.commands.keep(keep);
        // They differ from those of the start, but no restart is needed for them.
        changed.retain(|option| !KEEP_OPTIONS.contains(&option.as_str()));
        if let (Some(watch), Some(indicators)) = (&self.watch, indicators)
            && watch.replace_indicators(indicators)
        {
            // The files may be others, whatever their names are.
            in_force.insert("intel".to_owned());
        }
        Ok(reload_said(&in_force, &changed))
    }

    /// Lets go of the recorder, whose last counters come from elsewhere.
    pub(super) fn let_recorder_go(&mut self) {
        self.recorder = None;
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
        if self.is_verbose {
            verbose::books(entries);
        }
        let statistics = self.writer.statistics();
        for entry in entries.iter_mut().filter(|entry| entry.place == BooksScope::Host) {
            entry.refused_rows = Some(statistics.refused.total());
        }
        self.monitor.rows(statistics);
        self.monitor.deliveries(self.delivering.books());
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

    fn reload(&mut self) -> Option<String> {
        let reread = (self.reloading?.again)();
        let reread = reread.and_then(|reread| self.take(reread));
        Some(reread.unwrap_or_else(|error| {
            format!("the configuration is wrong, and stays as it was: {error:#}")
        }))
    }

    fn notify_user(&mut self) {
        self.writer.first_refusal().iter().for_each(|said| say(said));
        self.extraction.iter().flat_map(|it| it.news()).for_each(say);
    }

    fn failure(&mut self) -> Option<String> {
        let recorder = self.recorder.as_deref();
        self.writer.failure().or_else(|| recorder.and_then(record::failure))
    }
}
