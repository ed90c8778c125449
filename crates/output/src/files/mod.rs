//! Logs as files in a directory, `conn.log` and so on, made when their first row comes.

mod earlier;
mod keeping;
mod lock;
mod names;
mod removing;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use netsniff_analysis::SortKey;
use netsniff_analysis::rows::LOGS;
use netsniff_console::{clock, unlinked};
use netsniff_packet::Timestamp;

use self::lock::DirectoryLock;
use crate::descriptors::Identity;
use crate::format::LogEncoder;
use crate::log_file::{LogFile, MOST_KEPT};
use crate::manifest::Manifest;
use crate::retention::{EndedFiles, Keep, RemovedFiles};
use crate::rolled::{self, Renamer, Roll, Schedule};
use crate::row_file::RowFile;
use crate::watch::Watch;
use crate::{Format, LiveSink, RowSink, SinkBooks};

/// What the name of a file ends with that can be read once it has ended, until then.
const PART: &str = "parquet.part";

/// How often such files end, of a run that goes on for long, where nobody says how often.
const HOUR: Duration = Duration::from_secs(3600);

/// Bytes of rows that the encoders of all logs may keep.
const MOST_KEPT_BY_ALL: usize = 8 * MOST_KEPT;

/// One file for each log that has rows.
#[derive(Debug)]
pub struct LogFiles {
    directory: PathBuf,
    format: Format,
    logs: Vec<Log>,
    /// Whether the run goes on for long.
    is_live: bool,
    schedule: Option<Schedule>,
    /// Bytes that a file may have before its footer.
    most: u64,
    /// The same, as it was asked for.
    most_asked: u64,
    /// Bytes of memory that rows take which encoders keep, and no less.
    kept_bytes: usize,
    /// The list of whole files, where they can be read only then.
    manifest: Option<Manifest>,
    /// Files that have ended, where some of them are not to stay.
    ended: Option<EndedFiles>,
    watch: Option<Arc<Watch>>,
    /// Held by a run that goes on for long, until it ends.
    lock: Option<DirectoryLock>,
    books: SinkBooks,
    /// Says which files are begun and ended.
    tell: fn(&str),
}

/// A log, which has a file or not.
#[derive(Debug, Default)]
struct Log {
    file: Option<LogFile>,
    renamer: Renamer,
    /// It could not be written, so that its rows are refused until the next flush.
    is_resting: bool,
    /// Rows that had been refused when a file of it was put on the list last.
    refused: u64,
}

impl LogFiles {
    /// Files in `directory`, which is made if it is missing. Logs that are there already are
    /// removed: what an earlier run left must not lie among the logs of this one.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made, or a log in it cannot be removed.
    pub fn create(directory: &Path, format: Format) -> anyhow::Result<Self> {
        let files = Self::new(directory, format)?;
        if format.is_read_whole() {
            refuse_tables_of_live_runs(directory)?;
        }
        for other in extensions() {
            let paths = (0..LOGS.len()).map(|log| files.path_of(log, other));
            for path in paths.filter(|path| is_own(path)) {
                fs::remove_file(&path)
                    .with_context(|| format!("cannot replace the old log {}", path.display()))?;
            }
        }
        if let Some(manifest) = files.manifest.as_ref().map(Manifest::path).filter(|it| is_own(it))
        {
            fs::remove_file(manifest)
                .with_context(|| format!("cannot replace the old {}", manifest.display()))?;
        }
        Ok(files)
    }

    /// Files in `directory` of a run that goes on for long, which begins at `now`: they roll, and
    /// logs that are there already are kept, under names with the times at which they were last
    /// changed. A log that cannot be written is an error once, and refuses its rows until the next
    /// flush; those that it refused are counted.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made, or a log in it cannot be renamed, and where another such run writes there.
    pub fn live(
        directory: &Path,
        format: Format,
        roll: Roll,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let mut files = Self { is_live: true, ..Self::new(directory, format)? };
        // Before anything is renamed: what is there may be the files of another run.
        files.lock = DirectoryLock::take(directory)?;
        // Tables that are whole lie elsewhere than those of this run, and are on the same list.
        let is_in_the_way = |other: &&str| !format.is_read_whole() || *other != format.extension();
        for other in extensions().into_iter().filter(is_in_the_way) {
            for log in 0..LOGS.len() {
                files.set_aside(log, other)?;
            }
        }
        if let Some(manifest) = &files.manifest {
            let opened = manifest.open();
            opened.with_context(|| format!("cannot write {}", manifest.path().display()))?;
        }
        let by_hour = format.is_read_whole().then_some(HOUR);
        files.schedule = roll.every.or(by_hour).map(|every| Schedule::new(every, now));
        let mut footer = Vec::new();
        for log in LOGS.iter().take(1) {
            format.encoder(log).footer(now, &mut footer)?;
        }
        let footer = footer.len() as u64;
        files.most = roll.size.map_or(u64::MAX, |size| size.saturating_sub(footer));
        files.most_asked = files.most;
        Ok(files)
    }

    fn new(directory: &Path, format: Format) -> anyhow::Result<Self> {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot make the directory {}", directory.display()))?;
        let files = Self {
            directory: directory.to_owned(),
            format,
            logs: LOGS.iter().map(|_| Log::default()).collect(),
            is_live: false,
            schedule: None,
            most: u64::MAX,
            most_asked: u64::MAX,
            kept_bytes: 0,
            manifest: format.is_read_whole().then(|| Manifest::of(directory)),
            ended: None,
            watch: None,
            lock: None,
            books: SinkBooks::default(),
            tell: |_| {},
        };
        for path in (0..LOGS.len()).map(|log| files.path_of(log, files.extension())) {
            unlinked::refuse(&path).with_context(|| format!("cannot write {}", path.display()))?;
        }
        if let Some(path) = files.manifest.as_ref().map(Manifest::path) {
            unlinked::refuse(path).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(files)
    }

    /// The same files, of which `tell` gets a sentence whenever one is begun or ended, with its rows.
    #[must_use]
    pub fn telling(self, tell: fn(&str)) -> Self {
        Self { tell, ..self }
    }

    /// Ends every file; `closed` is the time at which the input ended.
    ///
    /// Dropping the files instead may lose rows without a word.
    ///
    /// # Errors
    ///
    /// The first file that could not be written to its end. The others are ended all the same.
    pub fn finish(mut self, closed: Timestamp) -> anyhow::Result<()> {
        self.end(closed)
    }

    /// What the name of a file ends with while it is written.
    const fn extension(&self) -> &'static str {
        match self.format.is_read_whole() {
            true => PART,
            false => self.format.extension(),
        }
    }

    fn path_of(&self, log: usize, extension: &str) -> PathBuf {
        let name = LOGS.get(log).map_or("unknown", |log| log.path);
        self.directory.join(format!("{name}.{extension}"))
    }

    /// Adds a row that needs a file first, or a new one.
    fn row_of_new_file(&mut self, at: usize, time: Timestamp, row: &[u8]) -> anyhow::Result<()> {
        let log = self.logs.get(at).context("a row of a log that is not in the list")?;
        let is_full = log.file.as_ref().is_some_and(|file| {
            let has_rows = file.size() > file.header;
            has_rows && file.identity.is_some() && !file.is_staying
        });
        let mut result = Ok(());
        if is_full && !log.is_resting {
            result = self.roll_log(at, time);
            result = result.and(self.remove_excess(clock::now()));
        }
        if self.logs.get(at).is_some_and(|log| log.file.is_none() && !log.is_resting) {
            result = result.and(self.open(at, time, None));
        }
        let Some(Log { file: Some(file), is_resting: false, .. }) = self.logs.get_mut(at) else {
            self.books.refused.add_rows(at, 1);
            return result;
        };
        let before = file.kept_bytes;
        file.push(row);
        let has_room = file.has_room();
        self.kept_bytes += file.kept_bytes.saturating_sub(before);
        result.and(if has_room { self.bound_kept() } else { self.write_out(at) })
    }

    /// Opens the file of a log, of which the first row belongs at `time`, for the rows of an encoder, or of a new one.
    fn open(
        &mut self,
        at: usize,
        time: Timestamp,
        encoder: Option<Box<dyn LogEncoder>>,
    ) -> anyhow::Result<()> {
        let opened = self.opened(at, time, encoder);
        if let Some(log) = self.logs.get_mut(at) {
            log.is_resting = opened.is_err();
            log.file = None;
        }
        let file = opened?;
        if let Some(log) = self.logs.get_mut(at) {
            log.file = Some(file);
        }
        Ok(())
    }

    fn opened(
        &mut self,
        at: usize,
        time: Timestamp,
        encoder: Option<Box<dyn LogEncoder>>,
    ) -> anyhow::Result<LogFile> {
        let log = LOGS.get(at).context("a row of a log that is not in the list")?;
        let path = self.path_of(at, self.extension());
        if self.is_live {
            self.set_aside(at, self.extension())?;
        }
        let file = if self.is_live { open_beside(&path) } else { unlinked::create(&path) };
        let file = file.with_context(|| format!("cannot create {}", path.display()))?;
        let identity = file.metadata().ok().filter(|_| is_own(&path)).map(|it| Identity::of(&it));
        let rows = RowFile::new(file, self.watch.clone());
        let encoder = encoder.unwrap_or_else(|| self.format.encoder(log));
        let mut file = LogFile::new(path, rows, encoder, identity);
        if let Err(error) = file.begin(time) {
            if file.identity.is_some() {
                // Nothing is in it.
                let _ = fs::remove_file(&file.path);
            }
            return Err(error).with_context(|| format!("cannot write {}", file.path.display()));
        }
        (self.tell)(&format!("writing {}", file.path.display()));
        Ok(file)
    }

    /// Writes the rows of the log that keeps most, where all together keep too many.
    #[inline]
    fn bound_kept(&mut self) -> anyhow::Result<()> {
        if self.kept_bytes < MOST_KEPT_BY_ALL { Ok(()) } else { self.write_largest() }
    }

    #[cold]
    fn write_largest(&mut self) -> anyhow::Result<()> {
        let kept = |log: &Log| log.file.as_ref().map_or(0, |file| file.kept_bytes);
        let all = self.logs.iter().map(kept);
        // What was counted before a file was ended is forgotten here.
        self.kept_bytes = all.clone().sum();
        let largest = all.enumerate().max_by_key(|&(_, bytes)| bytes);
        match largest {
            Some((at, _)) if self.kept_bytes >= MOST_KEPT_BY_ALL => self.write_out(at),
            _ => Ok(()),
        }
    }

    /// Writes the rows of a log that wait, but for those that an encoder had better keep.
    fn write_settled(&mut self, at: usize) -> anyhow::Result<()> {
        let file = self.logs.get(at).and_then(|log| log.file.as_ref());
        if file.is_some_and(|file| file.encoder.waits_for_more()) {
            return Ok(());
        }
        self.write_out(at)
    }

    /// Writes the rows of a log that wait.
    fn write_out(&mut self, at: usize) -> anyhow::Result<()> {
        let Some(log) = self.logs.get_mut(at) else { return Ok(()) };
        let Some(file) = &mut log.file else { return Ok(()) };
        let before = file.kept_bytes;
        let out = file.write_out();
        self.kept_bytes = self.kept_bytes.saturating_sub(before - file.kept_bytes.min(before));
        self.books.written.add_rows(at, out.written);
        self.books.refused.add_rows(at, out.refused);
        let result = out.result.with_context(|| format!("cannot write {}", file.path.display()));
        log.rest_after(&result);
        result
    }

    /// Goes on in a new file where somebody removed the old one.
    fn replace_removed(&mut self, at: usize) -> anyhow::Result<()> {
        let is_removed = |file: &mut LogFile| file.is_removed();
        let Some(log) = self.logs.get_mut(at) else { return Ok(()) };
        let Some(LogFile { mut rows, encoder, kept, opened, .. }) = log.file.take_if(is_removed)
        else {
            return Ok(());
        };
        if !rows.has_waiting() && kept == 0 {
            return Ok(());
        }
        let result = self.open(at, opened, Some(encoder));
        match self.logs.get_mut(at).and_then(|log| log.file.as_mut()) {
            Some(file) => {
                file.rows.adopt(&mut rows);
                file.kept = kept;
                file.unsettled = file.encoder.unsettled();
                file.kept_bytes = file.encoder.kept_bytes();
            }
            None => self.books.refused.add_rows(at, rows.discard() + kept),
        }
        result
    }

    /// Does something with every log; the first error is told.
    fn each(
        &mut self,
        mut work: impl FnMut(&mut Self, usize) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut result = Ok(());
        for at in 0..self.logs.len() {
            result = result.and(work(self, at));
        }
        result
    }
}

impl RowSink for LogFiles {
    type Error = anyhow::Error;

    #[inline]
    fn row(&mut self, log: usize, key: &SortKey, bytes: &[u8]) -> anyhow::Result<()> {
        if let Some(Log { file: Some(file), is_resting: false, .. }) = self.logs.get_mut(log)
            && file.size().saturating_add(bytes.len() as u64) <= self.most
        {
            let before = file.kept_bytes;
            file.push(bytes);
            let has_room = file.has_room();
            self.kept_bytes += file.kept_bytes.saturating_sub(before);
            return if has_room { self.bound_kept() } else { self.write_out(log) };
        }
        self.row_of_new_file(log, key.time, bytes)
    }

    fn publish(&mut self) -> anyhow::Result<()> {
        self.each(Self::write_settled)
    }
}

impl LiveSink for LogFiles {
    fn attend(&mut self, watch: Arc<Watch>) {
        for file in self.logs.iter_mut().filter_map(|log| log.file.as_mut()) {
            file.rows.watch(Arc::clone(&watch));
        }
        self.watch = Some(watch);
    }

    fn flush(&mut self, now: Timestamp) -> anyhow::Result<()> {
        let is_due = self.schedule.as_mut().is_some_and(|schedule| schedule.is_due(now));
        self.each(|files, at| {
            if let Some(log) = files.logs.get_mut(at) {
                log.is_resting = false;
                log.file.iter_mut().for_each(|file| file.is_staying = false);
            }
            files.replace_removed(at)?;
            if is_due { files.roll_log(at, now) } else { files.write_settled(at) }
        })
        .and(self.list_waiting())
        .and(self.remove_excess(now))
    }

    fn roll(&mut self, now: Timestamp) -> anyhow::Result<()> {
        self.each(|files, at| {
            files.replace_removed(at)?;
            files.roll_log(at, now)
        })
        .and(self.remove_excess(now))
    }

    fn end(&mut self, closed: Timestamp) -> anyhow::Result<()> {
        let ended = self.each(|files, at| {
            let result = files.write_out(at);
            let Some(log) = files.logs.get_mut(at) else { return result };
            let Some(mut file) = log.file.take() else { return result };
            let (ended, _) = file.end(closed);
            let ended = ended.with_context(|| format!("cannot write {}", file.path.display()));
            let named = ended.and_then(|()| files.name_last(at, &mut file, closed));
            if named.is_ok() {
                (files.tell)(&format!("wrote {}", file.summary()));
            }
            result.and(named)
        });
        let ended = ended.and(self.list_waiting());
        self.lock = None;
        ended
    }

    fn books(&self) -> &SinkBooks {
        &self.books
    }

    fn keep(&mut self, keep: Keep, now: Timestamp) -> anyhow::Result<()> {
        self.set_keep(keep, now)
    }

    fn removed(&self) -> RemovedFiles {
        self.ended.as_ref().map(EndedFiles::removed).copied().unwrap_or_default()
    }
}

impl Log {
    /// Lets the log rest after an error. A pipe that was left begins anew with its next reader.
    fn rest_after(&mut self, result: &anyhow::Result<()>) {
        self.is_resting = result.is_err();
        if self.is_resting {
            self.file.take_if(|file| file.identity.is_none());
        }
    }
}

/// Refuses a directory that has tables of a live run: they would lie among those of this run, on no list.
fn refuse_tables_of_live_runs(directory: &Path) -> anyhow::Result<()> {
    let begin = format!("{}=", rolled::PARTITIONS[0]);
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name());
    match names.find(|name| name.to_string_lossy().starts_with(&begin)) {
        Some(name) => anyhow::bail!(
            "{} has tables of a live run, as {}: write to another directory",
            directory.display(),
            name.display()
        ),
        None => Ok(()),
    }
}

/// What names of logs of any format end with, each once.
fn extensions() -> BTreeSet<&'static str> {
    Format::ALL.iter().map(|format| format.extension()).chain([PART]).collect()
}

/// Whether there is a file that a log of an earlier run may be. Pipes are there on purpose, for a log to
/// go through them.
fn is_own(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_file())
}

/// Opens a log without harm to what is there, and without waiting for the reader of a pipe.
fn open_beside(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true);
    if path.symlink_metadata().is_err() {
        return options.create_new(true).open(path);
    }
    let opened = unlinked::open(&mut options, path, true);
    #[cfg(unix)]
    if let Err(error) = &opened
        && error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error())
    {
        return Err(io::Error::new(io::ErrorKind::BrokenPipe, "nobody reads the pipe"));
    }
    opened
}

#[cfg(test)]
mod tests {
    use netsniff_testing::full_device;

    use super::*;
    #[cfg(feature = "parquet")]
    use crate::manifest;

    /// A directory of its own, removed at the end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let name = format!("netsniff-files-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const TIME: Timestamp = Timestamp::from_secs_nanos(1_317_402_178, 0);

    #[test]
    fn a_file_has_header_rows_and_footer() {
        let directory = Directory::new("whole");
        let mut files = LogFiles::create(&directory.0, Format::Tsv).unwrap();
        let tunnel = LOGS.iter().position(|log| log.path == "tunnel").unwrap();
        files.row(tunnel, &SortKey::first_at(TIME), b"first\n").unwrap();
        files.row(tunnel, &SortKey::first_at(TIME), b"second\n").unwrap();
        files.finish(Timestamp::from_secs_nanos(1_317_402_180, 0)).unwrap();
        let text = fs::read_to_string(directory.0.join("tunnel.log")).unwrap();
        let expected = "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n\
            #unset_field\t-\n#path\ttunnel\n#open\t2011-09-30-17-02-58\n\
            #fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\ttunnel_type\taction\n\
            #types\ttime\tstring\taddr\tport\taddr\tport\tenum\tenum\n\
            first\nsecond\n#close\t2011-09-30-17-03-00\n";
        assert_eq!(text, expected);
        let others = fs::read_dir(&directory.0).unwrap().count();
        assert_eq!(others, 1, "a log without rows has no file");
    }

    #[test]
    fn logs_of_an_earlier_run_are_gone_and_other_files_stay() {
        let directory = Directory::new("again");
        fs::create_dir_all(&directory.0).unwrap();
        for name in ["rtt.log", "conn.log", "notes.log"] {
            fs::write(directory.0.join(name), b"old\n").unwrap();
        }
        let mut files = LogFiles::create(&directory.0, Format::Json).unwrap();
        files.row(0, &SortKey::first_at(TIME), b"{}\n").unwrap();
        files.finish(TIME).unwrap();
        let read = |name: &str| fs::read(directory.0.join(name)).ok();
        assert_eq!(read("conn.log").as_deref(), Some(&b"{}\n"[..]));
        assert_eq!(read("notes.log").as_deref(), Some(&b"old\n"[..]));
        assert_eq!(read("rtt.log"), None);
    }

    /// A format that writes rows together, and whose end tells how many there are.
    #[derive(Debug, Default)]
    struct Batches {
        rows: Vec<Vec<u8>>,
        /// Rows that the file has.
        settled: u64,
    }

    impl LogEncoder for Batches {
        fn header(&mut self, _: Timestamp, out: &mut Vec<u8>) {
            self.settled = 0;
            out.extend_from_slice(b"begin;");
        }

        fn row(&mut self, row: &[u8], _: &mut Vec<u8>) {
            self.rows.push(row.to_vec());
        }

        fn settle(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
            self.settled += self.rows.len() as u64;
            out.extend_from_slice(&[&b"["[..], &self.rows.concat(), b"];"].concat());
            self.rows.clear();
            Ok(())
        }

        fn unsettled(&self) -> usize {
            self.rows.iter().map(Vec::len).sum()
        }

        fn refused(&mut self, rows: u64) {
            self.settled -= rows;
        }

        fn footer(&mut self, _: Timestamp, out: &mut Vec<u8>) -> io::Result<()> {
            out.extend_from_slice(format!("end {}", self.settled).as_bytes());
            Ok(())
        }
    }

    /// Files whose first log has a file of [`Batches`].
    fn batches(directory: &Directory, roll: Roll) -> LogFiles {
        let mut files = LogFiles::live(&directory.0, Format::Json, roll, TIME).unwrap();
        files.open(0, TIME, Some(Box::default() as Box<Batches>)).unwrap();
        files
    }

    fn add(files: &mut LogFiles, rows: &[&str]) {
        for row in rows {
            files.row(0, &SortKey::first_at(TIME), row.as_bytes()).unwrap();
        }
    }

    #[test]
    fn rows_may_be_written_together_and_the_end_tells_of_them() {
        let directory = Directory::new("batches");
        let mut files = batches(&directory, Roll::default());
        add(&mut files, &["a", "b", "c", "d"]);
        files.flush(TIME).unwrap();
        assert_eq!(files.books().written.total(), 4);
        add(&mut files, &["e"]);
        files.end(TIME).unwrap();
        let text = fs::read_to_string(directory.0.join("conn.log")).unwrap();
        assert_eq!(text, "begin;[abcd];[e];end 5");
        assert_eq!((files.books().written.total(), files.books().refused.total()), (5, 0));
    }

    #[test]
    fn the_end_does_not_tell_of_rows_that_could_not_be_written() {
        let directory = Directory::new("refused");
        let mut files = batches(&directory, Roll::default());
        let path = directory.0.join("conn.log");
        let rows = |file: io::Result<File>| RowFile::new(file.unwrap(), None);
        let replace = |files: &mut LogFiles, other: RowFile| {
            files.logs[0].file.as_mut().unwrap().rows = other;
        };
        replace(&mut files, rows(File::open(&path)));
        add(&mut files, &["a", "b"]);
        assert!(files.flush(TIME).is_err(), "it is open for reading alone");
        assert_eq!((files.books().written.total(), files.books().refused.total()), (0, 2));
        replace(&mut files, rows(OpenOptions::new().append(true).open(&path)));
        files.flush(TIME).unwrap();
        add(&mut files, &["c"]);
        files.end(TIME).unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "begin;[c];end 1");
    }

    #[test]
    fn an_encoder_keeps_no_more_than_its_bound() {
        let directory = Directory::new("bound");
        let mut files = batches(&directory, Roll::default());
        let row = "x".repeat(MOST_KEPT / 4);
        add(&mut files, &[row.as_str(); 3]);
        assert_eq!(files.books().written.total(), 0);
        add(&mut files, &[row.as_str()]);
        assert_eq!(files.books().written.total(), 4);
    }

    #[test]
    fn rows_that_are_kept_count_for_the_size_of_a_file() {
        let directory = Directory::new("kept");
        let roll = Roll { every: None, size: Some(8) };
        let mut files = batches(&directory, roll);
        add(&mut files, &["a", "b", "c"]);
        files.end(TIME).unwrap();
        let rolled = directory.0.join("conn.2011-09-30-17-02-58.log");
        assert_eq!(fs::read_to_string(rolled).unwrap(), "begin;[ab];end 2");
        assert_eq!(fs::read_to_string(directory.0.join("conn.log")).unwrap(), "c");
    }

    #[cfg(unix)]
    #[test]
    fn rows_that_are_kept_go_into_the_file_behind_one_that_was_removed() {
        let directory = Directory::new("removed");
        let mut files = batches(&directory, Roll::default());
        add(&mut files, &["a", "b", "c"]);
        files.flush(TIME).unwrap();
        add(&mut files, &["d"]);
        fs::remove_file(directory.0.join("conn.log")).unwrap();
        files.flush(TIME).unwrap();
        files.end(TIME).unwrap();
        let text = fs::read_to_string(directory.0.join("conn.log")).unwrap();
        assert_eq!(text, "begin;[d];end 1");
    }

    /// A row of the log `conn` as tables have it: nothing is set.
    #[cfg(feature = "parquet")]
    const CELLS: &[u8] = &[0; 64];

    /// Rows that a table of the log `conn` has.
    #[cfg(feature = "parquet")]
    fn rows_of(path: &Path) -> i64 {
        use parquet::file::reader::{FileReader as _, SerializedFileReader};
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        reader.metadata().file_metadata().num_rows()
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn a_table_has_its_name_once_it_is_whole() {
        let directory = Directory::new("table");
        fs::create_dir_all(&directory.0).unwrap();
        for old in ["conn.parquet", "dns.parquet.part", manifest::NAME] {
            fs::write(directory.0.join(old), b"old").unwrap();
        }
        let mut files = LogFiles::create(&directory.0, Format::Parquet).unwrap();
        assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 0);
        for _ in 0..3 {
            files.row(0, &SortKey::first_at(TIME), CELLS).unwrap();
        }
        files.publish().unwrap();
        let (part, whole) =
            (directory.0.join("conn.parquet.part"), directory.0.join("conn.parquet"));
        assert!(part.exists() && !whole.exists() && !directory.0.join(manifest::NAME).exists());
        files.finish(TIME).unwrap();
        assert!(!part.exists());
        assert_eq!(rows_of(&whole), 3);
        let bytes = fs::metadata(&whole).unwrap().len();
        let listed = format!(
            "{{\"log\":\"conn\",\"file\":\"conn.parquet\",\"rows\":3,\"refused\":0,\"bytes\":{bytes},\"opened\":1317402178.000000,\
             \"closed\":1317402178.000000}}\n"
        );
        assert_eq!(fs::read_to_string(directory.0.join(manifest::NAME)).unwrap(), listed);
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn tables_of_a_long_run_lie_by_log_and_hour() {
        let directory = Directory::new("tables");
        let mut files =
            LogFiles::live(&directory.0, Format::Parquet, Roll::default(), TIME).unwrap();
        let later = Timestamp::from_nanos(TIME.nanos() + 3_600_000_000_000);
        for time in [TIME, later] {
            // A writer flushes before the rows of the next hour come.
            files.flush(time).unwrap();
            files.row(0, &SortKey::first_at(time), CELLS).unwrap();
            files.row(0, &SortKey::first_at(time), CELLS).unwrap();
            // Nobody can read a table before its end, so that rows may wait for others.
            files.flush(time).unwrap();
            assert_eq!(files.books().written.total(), if time == TIME { 0 } else { 2 });
        }
        files.end(later).unwrap();
        let day = directory.0.join("log_name=conn/day=2011-09-30");
        let first = day.join("hour=17/conn.2011-09-30-17-02-58.parquet");
        let second = day.join("hour=18/conn.2011-09-30-18-02-58.parquet");
        assert_eq!((rows_of(&first), rows_of(&second)), (2, 2));
        assert_eq!(files.books().written.total(), 4);
        let listed = fs::read_to_string(directory.0.join(manifest::NAME)).unwrap();
        assert_eq!(listed.lines().count(), 2);
        assert!(listed.contains("\"file\":\"log_name=conn/day=2011-09-30/hour=17/conn.2011-"));
        assert!(!directory.0.join("conn.parquet.part").exists());
        let again = LogFiles::create(&directory.0, Format::Parquet).unwrap_err();
        assert!(again.to_string().contains("has tables of a live run"), "{again}");
    }

    #[cfg(all(unix, feature = "parquet"))]
    #[test]
    fn a_link_in_place_of_a_directory_of_tables_is_not_followed() {
        let (directory, victim) = (Directory::new("linked"), Directory::new("victim"));
        fs::create_dir_all(&directory.0).unwrap();
        fs::create_dir_all(&victim.0).unwrap();
        std::os::unix::fs::symlink(&victim.0, directory.0.join("log_name=conn")).unwrap();
        let mut files =
            LogFiles::live(&directory.0, Format::Parquet, Roll::default(), TIME).unwrap();
        files.row(0, &SortKey::first_at(TIME), CELLS).unwrap();
        let error = format!("{:#}", files.end(TIME).unwrap_err());
        assert!(error.contains("is no directory"), "{error}");
        assert_eq!(fs::read_dir(&victim.0).unwrap().count(), 0);
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn all_logs_together_keep_no_more_than_their_bound() {
        let directory = Directory::new("kept-by-all");
        let mut files = LogFiles::create(&directory.0, Format::Parquet).unwrap();
        // Each log has one long text, which no column takes: its bytes count as kept.
        let row = vec![0; MOST_KEPT / 2];
        for log in 0..LOGS.len() {
            files.row(log, &SortKey::first_at(TIME), &row).unwrap();
            assert!(files.kept_bytes < MOST_KEPT_BY_ALL, "{log}");
        }
        assert!(LOGS.len() > 2 * MOST_KEPT_BY_ALL / MOST_KEPT, "the bound was reached");
        assert!(files.books().written.total() > 0);
        files.finish(TIME).unwrap();
    }

    #[test]
    fn json_files_have_rows_only() {
        let directory = Directory::new("json");
        let mut files = LogFiles::create(&directory.0, Format::Json).unwrap();
        files.row(0, &SortKey::first_at(TIME), b"{}\n").unwrap();
        files.finish(TIME).unwrap();
        assert_eq!(fs::read(directory.0.join("conn.log")).unwrap(), b"{}\n");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let directory = Directory::new("full");
        fs::create_dir_all(&directory.0).unwrap();
        let path = directory.0.join("conn.log");
        if !full_device(&path, "no log was written to it") {
            return;
        }
        let mut files = LogFiles::create(&directory.0, Format::Tsv).unwrap();
        let error =
            format!("{:#}", files.row(0, &SortKey::first_at(TIME), b"a row\n").unwrap_err());
        let expected =
            format!("cannot write {}: No space left on device (os error 28)", path.display());
        assert_eq!(error, expected, "the header was not written");
        let mut files = LogFiles::create(&directory.0, Format::Json).unwrap();
        files.row(0, &SortKey::first_at(TIME), b"a row that stays in the buffer\n").unwrap();
        let error = format!("{:#}", files.finish(TIME).unwrap_err());
        assert_eq!(error, expected, "the row was not written");
    }

    #[test]
    #[cfg(unix)]
    fn a_link_in_place_of_any_log_is_refused_before_anything_is_written() {
        let directory = Directory::new("links");
        fs::create_dir_all(&directory.0).unwrap();
        let victim = directory.0.join("victim");
        fs::write(&victim, "precious").unwrap();
        for log in LOGS.iter() {
            let path = directory.0.join(format!("{}.log", log.path));
            std::os::unix::fs::symlink(&victim, &path).unwrap();
            let files = LogFiles::create(&directory.0, Format::Tsv);
            let live = LogFiles::live(&directory.0, Format::Tsv, Roll::default(), TIME);
            for refused in [files, live] {
                let error = format!("{:#}", refused.unwrap_err());
                assert!(
                    error.starts_with(&format!("cannot write {}: ", path.display())),
                    "{error}"
                );
                assert!(error.contains("symbolic link"), "{error}");
            }
            fs::remove_file(&path).unwrap();
        }
        // One that comes later is met by the first row.
        let mut files = LogFiles::create(&directory.0, Format::Tsv).unwrap();
        std::os::unix::fs::symlink(&victim, directory.0.join("conn.log")).unwrap();
        let error = format!("{:#}", files.row(0, &SortKey::first_at(TIME), b"row\n").unwrap_err());
        assert!(error.contains("symbolic link"), "{error}");
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
    }

    #[test]
    fn a_directory_that_cannot_be_is_an_error() {
        let directory = Directory::new("blocked");
        fs::create_dir_all(&directory.0).unwrap();
        let blocked = directory.0.join("file");
        fs::write(&blocked, b"").unwrap();
        let error = LogFiles::create(&blocked, Format::Tsv).unwrap_err();
        assert!(error.to_string().starts_with("cannot make the directory"), "{error}");
    }
}
