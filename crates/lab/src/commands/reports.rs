//! What `lab sweep` and `lab lossless` left in a directory, read again.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use netsniff_console::UsageError;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::journal;
use crate::compare::Selection;
use crate::compare::facts::Setup;
use crate::search::lossless::Cell;
use crate::search::sweep::Run;

/// Runs of a sweep, one to a line, as they are made.
pub(super) const RUNS: &str = "runs.jsonl";
/// How a sweep begins.
pub(super) const SWEEP: &str = "sweep.json";
/// All of a search.
pub(super) const LOSSLESS: &str = "lossless.json";

#[derive(Debug)]
pub(super) struct Report {
    pub(super) directory: PathBuf,
    /// Where it was made.
    pub(super) setup: Setup,
    pub(super) content: ReportContent,
}

#[derive(Debug)]
pub(super) enum ReportContent {
    /// By `lab lossless`.
    Lossless(Vec<Cell>),
    /// By `lab sweep`.
    Sweep(Vec<Run>),
}

impl ReportContent {
    /// The command that made it.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Lossless(_) => "lossless",
            Self::Sweep(_) => "sweep",
        }
    }
}

#[derive(Deserialize)]
struct Cells {
    cells: Vec<Cell>,
}

/// A directory, and what of it is meant: `DIR:TOOL:ring=2M`. The directory is the longest beginning that is one.
///
/// # Errors
///
/// [`UsageError`] for words that make no sense; no such directory.
pub(super) fn reference(text: &str) -> anyhow::Result<(PathBuf, Selection)> {
    let colons = text.rmatch_indices(':').map(|(at, _)| at);
    let end = std::iter::once(text.len())
        .chain(colons)
        .find(|end| *end > 0 && Path::new(&text[..*end]).is_dir());
    let Some(end) = end else {
        let name = text.split(':').next().unwrap_or_default();
        bail!("there is no directory {name}; the -o of lab sweep or lab lossless makes one");
    };
    let words = text[end..].split(':').skip(1);
    let selection = Selection::of_words(words);
    let selection = selection.map_err(|said| UsageError(format!("{text}: {said}")))?;
    Ok((PathBuf::from(&text[..end]), selection))
}

/// Reads a report, and says whether its last run was cut.
///
/// # Errors
///
/// Where it is none, or damaged, with the file and the line.
pub(super) fn read(directory: PathBuf) -> anyhow::Result<(Report, bool)> {
    let [runs_path, lossless] = [RUNS, LOSSLESS].map(|name| directory.join(name));
    let at = directory.display();
    let (setup, content, is_cut) = match (runs_path.is_file(), lossless.is_file()) {
        (true, false) => {
            let text = text(&runs_path)?;
            let (runs, whole): (Vec<Run>, _) = journal::entries(&text, &runs_path)?;
            ensure!(!runs.is_empty(), "there is no whole run in {}", runs_path.display());
            let head = directory.join(SWEEP);
            (json(&self::text(&head)?, &head)?, ReportContent::Sweep(runs), whole < text.len())
        }
        (false, true) => {
            let text = text(&lossless)?;
            let Cells { cells } = json(&text, &lossless)?;
            ensure!(!cells.is_empty(), "there is no search in {}", lossless.display());
            (json(&text, &lossless)?, ReportContent::Lossless(cells), false)
        }
        (false, false) => {
            bail!("{at} has neither {RUNS} of lab sweep nor {LOSSLESS} of lab lossless")
        }
        (true, true) => bail!("{at} has both {RUNS} and {LOSSLESS}, of which only one is meant"),
    };
    Ok((Report { directory, setup, content }, is_cut))
}

/// The runs of a sweep's directory.
///
/// # Errors
///
/// Where they cannot be read, with the file and the line.
pub(super) fn runs(directory: &Path) -> anyhow::Result<Vec<Run>> {
    let path = directory.join(RUNS);
    Ok(journal::entries(&text(&path)?, &path)?.0)
}

/// What the searches of a directory found.
///
/// # Errors
///
/// Where they cannot be read.
pub(super) fn cells(directory: &Path) -> anyhow::Result<Vec<Cell>> {
    let path = directory.join(LOSSLESS);
    let Cells { cells } = json(&text(&path)?, &path)?;
    Ok(cells)
}

fn text(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn json<T: DeserializeOwned>(text: &str, path: &Path) -> anyhow::Result<T> {
    let at = path.display();
    serde_json::from_str(text)
        .map_err(|error| anyhow::anyhow!("{at} is no report of this version: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_may_have_colons() {
        let name = format!("netsniff-reference-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let with_colon = root.join("a:b");
        fs::create_dir_all(&with_colon).unwrap();
        let text = |end: &str| format!("{}{end}", with_colon.display());
        for (end, tool, settings) in
            [("", None, 0), (":record", Some("record"), 0), (":x:ring=2M", Some("x"), 1)]
        {
            let (directory, selection) = reference(&text(end)).unwrap();
            assert_eq!(directory, with_colon);
            assert_eq!((selection.tool.as_deref(), selection.settings.len()), (tool, settings));
        }
        for wrong in [":", ":x:y", ":x=1:x=2"] {
            assert!(reference(&text(wrong)).unwrap_err().is::<UsageError>(), "{wrong}");
        }
        let missing = reference("no/such:record").unwrap_err().to_string();
        assert!(missing.starts_with("there is no directory no/such;"), "{missing}");
        assert!(reference("").is_err() && reference(":x").is_err());
        fs::remove_dir_all(root).unwrap();
    }
}
