//! The files of a recording: begun, packed, bounded in number and bytes, and whole at any time.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use netsniff_console::paths::is_stdin;
use netsniff_console::unlinked;
use netsniff_console::{UsageError, clock, say};
use netsniff_output::{EndedFile, EndedFiles, OpenFiles};
use netsniff_packet::Timestamp;
use netsniff_pcapfile::{Packer, Packing};

use super::books::{Books, Tally};
use super::direct::DirectFile;
use super::indexing::Ended;
use super::naming::FileName;
use super::options::{Options, WriteIo};
use crate::carving::index::index_name;

/// The files of one recording, one of which is written.
pub(super) struct Files {
    /// `None` for standard output.
    name: Option<FileName>,
    packing: Option<Packing>,
    io: WriteIo,
    number: u64,
    /// Files that ended and are still there.
    ended: EndedFiles,
    current: Option<Current>,
    books: Arc<Books>,
    /// Whom files are told to that have ended, for an index; `None` without one, and once it cannot be.
    index: Option<Ended>,
    /// Whether files may have indexes beside them.
    has_indexes: bool,
}

/// The file that is written.
struct Current {
    path: PathBuf,
    packer: Packer<Target>,
    /// The file once more, to cut off what was written of it in part; `None` for what is no file.
    file: Option<File>,
    /// Bytes up to which readers find whole blocks.
    whole: u64,
    /// What was written behind these, with its end in the file, which is not known of what is packed.
    unsettled: Vec<(Option<u64>, Tally)>,
}

/// Where bytes go, with the time that it takes.
struct Target {
    output: Output,
    written: u64,
    /// After a failure nothing more is written: an encoder that is dropped would add to what was cut.
    failed: bool,
    books: Arc<Books>,
}

enum Output {
    File(File),
    Direct(DirectFile),
}

impl Files {
    /// Those that the options ask for, the first of which is begun.
    ///
    /// # Errors
    ///
    /// When it cannot be created.
    pub(super) fn begin(
        options: &Options,
        now: Timestamp,
        books: Arc<Books>,
        index: Option<Ended>,
    ) -> anyhow::Result<Self> {
        let named = !is_stdin(&options.output);
        let is_numbered = options.rotation.is_on();
        let mut files = Self {
            name: named.then(|| FileName::new(&options.output, options.packing, is_numbered)),
            packing: options.packing,
            io: options.io,
            number: 0,
            ended: EndedFiles::new(options.rotation.keep()),
            current: None,
            books,
            has_indexes: index.is_some(),
            index,
        };
        files.next(now)?;
        Ok(files)
    }

    /// Ends the file, if there is one, and begins the next, the first packet of which comes at
    /// `time`.
    ///
    /// # Errors
    ///
    /// When the one cannot be ended, or the other cannot be created.
    pub(super) fn next(&mut self, time: Timestamp) -> anyhow::Result<()> {
        self.end()?;
        self.remove_excess(OpenFiles { files: 1, bytes: 0 });
        self.number += 1;
        let (path, output, file) = match &self.name {
            None => {
                let file = standard_output().context("cannot write to standard output")?;
                (PathBuf::from("standard output"), Output::File(file), None)
            }
            Some(name) => {
                let path = name.of(self.number, time);
                let file = unlinked::create_named_private(&path)
                    .with_context(|| format!("cannot create {}", path.display()))?;
                if self.has_indexes {
                    // One of an earlier run is of another capture.
                    let _ = fs::remove_file(index_name(&path));
                }
                let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
                let again = if is_file { file.try_clone().ok() } else { None };
                let output = match self.io {
                    WriteIo::Buffered => Output::File(file),
                    WriteIo::Auto => {
                        DirectFile::new(file).map_or_else(Output::File, Output::Direct)
                    }
                    WriteIo::Direct => Output::Direct(DirectFile::new(file).map_err(|_| {
                        UsageError(format!("{} cannot be written with --io direct", path.display()))
                    })?),
                };
                (path, output, again)
            }
        };
        let target = Target { output, written: 0, failed: false, books: Arc::clone(&self.books) };
        let packer = Packer::new(target, self.packing).context("cannot begin to pack")?;
        self.current = Some(Current { path, packer, file, whole: 0, unsettled: Vec::new() });
        self.books.begin_file();
        Ok(())
    }

    /// Writes whole blocks, with so many packets in them.
    ///
    /// # Errors
    ///
    /// When they cannot be written.
    pub(super) fn write(&mut self, bytes: &[u8], tally: Tally) -> anyhow::Result<()> {
        self.make_room(bytes.len() as u64);
        let Some(current) = &mut self.current else { return Ok(()) };
        let result = current.packer.write_all(bytes);
        let target = current.packer.get_ref();
        let (settled, end) = (target.settled(), self.packing.is_none().then_some(target.written));
        let last = if result.is_ok() { Some((end, tally)) } else { None };
        current.unsettled.extend(last);
        current.settle(&self.books, |end| end.is_some_and(|end| end <= settled));
        result.with_context(|| current.said())
    }

    /// Makes all that was written readable.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        current.packer.flush().with_context(|| current.said())?;
        current.settle(&self.books, |_| true);
        current.whole = current.packer.get_ref().written;
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// When its end cannot be written.
    pub(super) fn end(&mut self) -> anyhow::Result<()> {
        let Some(Current { path, packer, file, whole, unsettled }) = self.current.take() else {
            return Ok(());
        };
        match packer.finish() {
            Ok(target) => {
                unsettled.iter().for_each(|(_, tally)| self.books.record(*tally));
                self.index.take_if(|index| !index.tell(&path, target.written));
                let (bytes, ended) = (target.written, clock::now());
                self.ended.add(EndedFile::new(path, bytes, ended));
                Ok(())
            }
            Err(error) => {
                cut(file.as_ref(), whole);
                unsettled.iter().for_each(|(_, tally)| self.books.refuse(*tally));
                Err(error).with_context(|| format!("cannot write {}", path.display()))
            }
        }
    }

    /// After a failure: what was written last, and is not whole, is cut off and counted as refused.
    pub(super) fn give_up(&mut self) {
        let Some(mut current) = self.current.take() else { return };
        current.packer.get_mut().failed = true;
        cut(current.file.as_ref(), current.whole);
        current.unsettled.iter().for_each(|(_, tally)| self.books.refuse(*tally));
    }

    /// Removes the oldest files until so many bytes more are within the bound.
    fn make_room(&mut self, more: u64) {
        if let Some(current) = &self.current {
            let bytes = current.packer.get_ref().written.saturating_add(more);
            self.remove_excess(OpenFiles { files: 1, bytes });
        }
    }

    /// Removes the oldest files until the bounds are held beside what is written.
    fn remove_excess(&mut self, open: OpenFiles) {
        for (file, bound) in self.ended.take_excess(clock::now(), open, || None) {
            let before = self.ended.removed().total();
            let removed = remove(&file.path, self.has_indexes);
            match self.ended.note(&file, bound, removed) {
                Err(error) => say(&format!("cannot remove {}: {error}", file.path.display())),
                // Somebody else was faster.
                Ok(()) if self.ended.removed().total() == before => {}
                Ok(()) => self.books.remove_file(),
            }
        }
    }
}

/// Removes a capture, and then its index: whoever makes one at this time looks for the capture once it has its name, and
/// removes it where there is none.
fn remove(capture: &Path, has_index: bool) -> io::Result<()> {
    let removed = fs::remove_file(capture);
    let is_gone = removed.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::NotFound);
    if has_index && is_gone {
        // There may be none yet, or none any more.
        let _ = fs::remove_file(index_name(capture));
    }
    removed
}

impl Current {
    /// Counts what is in the file for good, by where it ends there.
    fn settle(&mut self, books: &Books, is_settled: impl Fn(Option<u64>) -> bool) {
        let settled = self.unsettled.iter().take_while(|(end, _)| is_settled(*end)).count();
        for (end, tally) in self.unsettled.drain(..settled) {
            books.record(tally);
            self.whole = end.unwrap_or(self.whole);
        }
    }

    fn said(&self) -> String {
        format!("cannot write {}", self.path.display())
    }
}

/// Standard output without the buffer of [`io::Stdout`], in which bytes would wait that count as written.
#[cfg(unix)]
fn standard_output() -> io::Result<File> {
    use std::os::fd::AsFd as _;
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

#[cfg(windows)]
fn standard_output() -> io::Result<File> {
    use std::os::windows::io::AsHandle as _;
    Ok(io::stdout().as_handle().try_clone_to_owned()?.into())
}

/// Cuts a file to its whole blocks; where even that fails, readers find them nevertheless.
fn cut(file: Option<&File>, whole: u64) {
    if let Some(file) = file {
        let _ = file.set_len(whole);
    }
}

impl Target {
    /// Bytes that are written for good, of those that were taken.
    const fn settled(&self) -> u64 {
        match &self.output {
            Output::Direct(file) => file.settled(),
            Output::File(_) => self.written,
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failed {
            return Err(io::Error::other("a write before has failed"));
        }
        let start = Instant::now();
        let result = match &mut self.output {
            Output::File(file) => file.write(bytes),
            Output::Direct(file) => file.write(bytes),
        };
        match &result {
            Ok(written) => {
                self.written += *written as u64;
                self.books.wrote(*written, start.elapsed());
            }
            Err(error) => self.failed = error.kind() != ErrorKind::Interrupted,
        }
        result
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.failed {
            return Ok(());
        }
        let start = Instant::now();
        let result = match &mut self.output {
            Output::File(_) => return Ok(()),
            Output::Direct(file) => file.flush(),
        };
        self.failed = result.is_err();
        self.books.wrote(0, start.elapsed());
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index without its capture would stay for ever, and a capture that stays keeps its index.
    #[test]
    fn an_index_goes_once_its_capture_is_gone() {
        let folder = std::env::temp_dir().join(format!("netsniff-remove-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let capture = folder.join("a.pcapng");
        let index = index_name(&capture);
        // What cannot be removed as a file.
        fs::create_dir(&capture).unwrap();
        fs::write(&index, "index").unwrap();
        assert!(remove(&capture, true).is_err() && index.exists());
        fs::remove_dir(&capture).unwrap();
        assert!(remove(&capture, true).is_err() && !index.exists(), "nobody else removes it");
        for has_index in [true, false] {
            fs::write(&capture, "capture").unwrap();
            fs::write(&index, "index").unwrap();
            remove(&capture, has_index).unwrap();
            assert_eq!((capture.exists(), index.exists()), (false, !has_index));
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
