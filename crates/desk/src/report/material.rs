//! What a report is made of: a directory of logs, with what the run that made them said of itself.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;

use serde::Deserialize;

use crate::logs::Folder;

/// A directory of logs.
#[derive(Clone, Debug)]
pub(super) struct Material {
    /// What it is, for the title.
    pub name: String,
    /// The logs.
    pub folder: Folder,
    /// The summary of the run, if there is one.
    pub summary: Option<Summary>,
    /// Why there is none, where its file is there.
    pub no_summary: Option<String>,
    /// Whether the captures were analysed for this report, with everything that it shows.
    pub is_fresh: bool,
}

/// The name of the file with what `netsniff analyze --json` prints, beside the logs.
pub(crate) const SUMMARY: &str = "summary.json";
/// Bytes of a summary, at most.
const MOST: u64 = 64 << 20;

/// Of the summary of a run what the logs do not have.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Summary {
    /// What was read.
    #[serde(default)]
    pub input: Input,
    /// Where packets went.
    #[serde(default)]
    pub books: Books,
    /// What became of connections.
    #[serde(default)]
    pub flows: Flows,
    /// What else there was to say.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Connections of a run.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Flows {
    /// How many there were: rows of `conn`.
    pub total: Option<u64>,
}

/// What was read.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Input {
    /// The files or interfaces.
    #[serde(default)]
    pub sources: Vec<Source>,
    /// Seconds since 1970 of the first packet.
    pub first: Option<f64>,
    /// Those of the last.
    pub last: Option<f64>,
    /// Packets that were read.
    pub packets: Option<u64>,
    /// Their bytes on the wire.
    pub wire_bytes: Option<u64>,
    /// The filters that they had to pass.
    #[serde(default)]
    pub filters: Vec<String>,
}

/// A file or interface.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Source {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Packets read from it.
    pub packets: Option<u64>,
    /// Places at which it is damaged.
    pub damage_count: Option<u64>,
    /// The first of them.
    #[serde(default)]
    pub damage: Vec<String>,
}

/// Where packets went.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Books {
    /// Packets that came in.
    pub read: Option<u64>,
    /// What became of them.
    #[serde(default)]
    pub parts: Vec<BookLine>,
    /// Packets that never came in.
    #[serde(default)]
    pub lost: Vec<BookLine>,
    /// What is left.
    pub unexplained: Option<i64>,
}

/// A line of the books.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct BookLine {
    /// What became of packets.
    #[serde(default)]
    pub name: String,
    /// How many; `None` where nobody can tell.
    pub packets: Option<u64>,
}

impl Material {
    /// That of a directory.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub(super) fn of(directory: &Path) -> anyhow::Result<Self> {
        let folder = Folder::open(directory)?;
        let path = directory.join(SUMMARY);
        let (summary, no_summary) = match path.is_file().then(|| read(&path)) {
            None => (None, None),
            Some(Ok(summary)) => (Some(summary), None),
            Some(Err(said)) => (None, Some(said)),
        };
        let name = directory.canonicalize().ok();
        let name = name.as_deref().unwrap_or(directory).file_name();
        let name = name.unwrap_or(directory.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { name, folder, summary, no_summary, is_fresh: false })
    }
}

/// A summary, or why there is none: the logs are there all the same.
fn read(path: &Path) -> Result<Summary, String> {
    let file = File::open(path).map_err(|error| format!("it cannot be read: {error}"))?;
    let summary: Summary = serde_json::from_reader(BufReader::new(file.take(MOST)))
        .map_err(|error| format!("it is no summary of a run: {error}"))?;
    if summary.flows.total.is_none() || summary.input.packets.is_none() {
        return Err("it tells neither packets nor connections of a run".to_owned());
    }
    Ok(summary)
}
