//! Analyses of files.

use std::ffi::OsString;
use std::sync::mpsc::SyncSender;

use netsniff::commands::analyze::{AnalyzeArgs, FileAnalysis};
use netsniff::words;
use netsniff_output::{Format, RowSink as _};
use pyo3::prelude::*;

use crate::batches::{BatchSink, LogBatch};
use crate::failure::Failure;
use crate::stream::{Books, Shared, Stream};

/// Starts an analysis of files, for which `words` are the arguments of `netsniff analyze`. With `strict` damage is a failure.
#[pyfunction]
pub(crate) fn analyse(py: Python<'_>, words: Vec<OsString>, strict: bool) -> PyResult<Stream> {
    py.detach(|| started(words, strict)).map_err(|failure| failure.raised(py))
}

fn started(words: Vec<OsString>, strict: bool) -> Result<Stream, Failure> {
    let args: AnalyzeArgs = words::arguments("analyze", words)?;
    let analysis = FileAnalysis::open(&args, Some(Format::Arrow.into()))?;
    let refused = analysis.refused().next().filter(|_| strict || analysis.is_empty());
    if let Some((file, said)) = refused {
        let is_missing = !std::path::Path::new(&file).exists();
        return Err(Failure::Unreadable { said: said.to_owned(), is_missing, file });
    }
    Stream::start(analysis.logs(), move |taker, shared| run(analysis, taker, shared, strict))
}

fn run(
    mut analysis: FileAnalysis,
    taker: SyncSender<LogBatch>,
    shared: &Shared,
    strict: bool,
) -> Result<Books, Failure> {
    let mut sink = BatchSink::new(taker);
    let mut taken = |_, _| {
        anyhow::ensure!(!shared.is_stopped(), Failure::Closed.said());
        Ok(())
    };
    let outcome = analysis.run(&mut sink, &mut taken)?;
    sink.publish()?;
    let damage = analysis.damage().next().filter(|_| strict);
    if let Some((file, damage)) = damage {
        return Err(Failure::Damaged {
            file: file.to_owned(),
            packet: damage.packet,
            offset: damage.offset,
            said: damage.to_string(),
        });
    }
    let summary = analysis.summary(&outcome);
    let refused = analysis.refused().map(|(file, said)| format!("{file}: {said}"));
    let damaged = summary.input.sources.iter().flat_map(|source| {
        let rest = source.damage_count.saturating_sub(source.damage.len() as u64);
        let rest = (rest > 0).then(|| format!("{}: damaged at {rest} more places", source.name));
        source.damage.iter().map(|it| format!("{}: {it}", source.name)).chain(rest)
    });
    let warnings = refused.chain(damaged).chain(summary.notes.iter().cloned()).collect();
    let summary = summary.json().map_err(|error| Failure::Other(error.to_string()))?;
    Ok(Books { summary: Some(summary), warnings })
}
