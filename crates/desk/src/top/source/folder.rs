//! A directory of logs, which may be written while it is read.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use netsniff_analysis::rows::LOGS;

use super::BATCH;
use super::tsv::Columns;
use crate::top::model::Event;

/// How often files are looked at.
const PAUSE: Duration = Duration::from_millis(300);
/// Bytes that are read at once.
const PIECE: usize = 256 << 10;
/// Bytes of a row; a longer one is none.
const LONGEST: usize = 16 << 20;

/// A log file that is read.
#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    file: File,
    columns: Columns,
    /// What was read of a row that is not whole.
    begun: Vec<u8>,
    is_too_long: bool,
}

/// Reads the logs of a directory; their rows become events. Where `follows`, it goes on with what is written later.
///
/// # Errors
///
/// When there is no log `series` in it.
pub(crate) fn start(
    directory: &Path,
    follows: bool,
    events: SyncSender<Event>,
) -> anyhow::Result<()> {
    let mut files = open(directory)?;
    let has_series = files.iter().any(|file| file.columns.is_of("series"));
    anyhow::ensure!(
        has_series,
        "{} has no log `series`, from which intervals are known: write the logs with --series 1s --series-conns 50",
        directory.display()
    );
    let directory = directory.to_owned();
    let read = move || {
        let ended = follow(&directory, &mut files, follows, &events);
        if ended {
            // Where nobody listens any more, nobody asks how it ended.
            let _ = events.send(Event::Ended("read to its end".to_owned()));
        }
    };
    thread::Builder::new().name("rows".to_owned()).spawn(read)?;
    Ok(())
}

/// The logs of a directory: those that were rolled in the order of their times, then the one that is being written.
fn open(directory: &Path) -> anyhow::Result<Vec<LogFile>> {
    let cannot = || format!("cannot read {}", directory.display());
    let entries = fs::read_dir(directory).with_context(cannot)?;
    let mut names: Vec<_> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    let mut files = Vec::new();
    for log in LOGS.iter() {
        let rolled = format!("{}.", log.path);
        let plain = format!("{}.log", log.path);
        let mut of_log: Vec<_> = names
            .iter()
            .filter(|name| name.starts_with(&rolled) && name.ends_with(".log"))
            .filter(|name| name.matches('.').count() <= 2)
            .collect();
        of_log.sort_by_key(|name| (**name == plain, name.as_str()));
        for name in of_log {
            files.extend(LogFile::open(&directory.join(name), log.path));
        }
    }
    Ok(files)
}

/// Reads all files, and goes on where it `follows`. Returns whether it came to an end that somebody wants to know of.
fn follow(
    directory: &Path,
    files: &mut Vec<LogFile>,
    follows: bool,
    events: &SyncSender<Event>,
) -> bool {
    loop {
        let mut has_read = false;
        for file in files.iter_mut() {
            match file.read(events) {
                Some(read) => has_read |= read,
                None => return false,
            }
        }
        if has_read {
            continue;
        }
        if !follows || files.iter().all(|file| file.columns.is_closed && file.is_in_place()) {
            return true;
        }
        thread::sleep(PAUSE);
        renew(directory, files);
    }
}

/// Goes on with new files in place of those that were renamed, and with logs that began.
fn renew(directory: &Path, files: &mut Vec<LogFile>) {
    files.retain(LogFile::is_in_place);
    for log in LOGS.iter() {
        let path = directory.join(format!("{}.log", log.path));
        if !files.iter().any(|file| file.path == path) {
            files.extend(LogFile::open(&path, log.path));
        }
    }
}

impl LogFile {
    fn open(path: &Path, log: &str) -> Option<Self> {
        let file = File::open(path).ok()?;
        let columns = Columns::of(log)?;
        let (begun, is_too_long) = (Vec::new(), false);
        Some(Self { path: path.to_owned(), file, columns, begun, is_too_long })
    }

    /// Whether its name is still that of this file.
    fn is_in_place(&self) -> bool {
        let (own, named) = (self.file.metadata().ok(), fs::metadata(&self.path).ok());
        own.zip(named)
            .is_some_and(|(own, named)| own.ino() == named.ino() && own.dev() == named.dev())
    }

    /// Hands over the rows of the next piece. Returns whether there was any; `None` where nobody wants them.
    fn read(&mut self, events: &SyncSender<Event>) -> Option<bool> {
        let mut piece = vec![0; PIECE];
        let read = self.file.read(&mut piece).unwrap_or(0);
        let mut lines = Vec::new();
        let parts: Vec<&[u8]> = piece.get(..read)?.split(|byte| *byte == b'\n').collect();
        for (at, part) in parts.iter().enumerate() {
            if self.begun.len() + part.len() > LONGEST {
                self.begun.clear();
                self.is_too_long = true;
            } else if !self.is_too_long {
                self.begun.extend_from_slice(part);
            }
            if at + 1 == parts.len() {
                break;
            }
            let line = std::mem::take(&mut self.begun);
            if !std::mem::take(&mut self.is_too_long) {
                lines.extend(self.columns.row(&String::from_utf8_lossy(&line)));
            }
            if lines.len() >= BATCH {
                events.send(Event::Rows(std::mem::take(&mut lines))).ok()?;
            }
        }
        if !lines.is_empty() {
            events.send(Event::Rows(lines)).ok()?;
        }
        Some(read > 0)
    }
}
