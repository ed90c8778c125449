//! The capture files of one analysis: opened, read as one, and what is wrong with them.

use std::convert::Infallible;
use std::fs::File;
use std::io::{IsTerminal as _, Read, stdin};
use std::path::{Path, PathBuf};

use netsniff_packet::{Batch, Progress, Source};
use netsniff_pcapfile::{Error, Merged, Reader};

use super::args::is_stdin;

/// Bytes from a file or from standard input.
pub(super) type Input = Box<dyn Read + Send>;

/// A file of which packets are read.
#[derive(Debug)]
pub(super) struct CaptureFile {
    /// Its name as it was given, or `standard input`.
    pub(super) name: String,
    path: PathBuf,
    /// Its size in bytes when it was opened, if it is a regular file.
    pub(super) size: Option<u64>,
    /// Why it could not be read to its end.
    pub(super) failure: Option<String>,
}

/// A file of which nothing can be read.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) path: PathBuf,
    pub(super) missing: bool,
    /// What is wrong with it, and what to do.
    pub(super) said: String,
}

/// Several files read as one, by time. A file that cannot be read on ends alone.
pub(super) struct Inputs {
    pub(super) files: Vec<CaptureFile>,
    pub(super) merged: Merged<Input>,
}

impl Inputs {
    /// Opens the files; those that are no capture come back apart.
    pub(super) fn open(paths: &[PathBuf]) -> (Self, Vec<Refused>) {
        let (mut files, mut readers, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for path in paths {
            match open(path) {
                Ok((file, reader)) => {
                    files.push(file);
                    readers.push(reader);
                }
                Err(error) => refused.push(error),
            }
        }
        (Self { files, merged: Merged::new(readers) }, refused)
    }

    /// The size of all files together; `None` where it is not known of one.
    pub(super) fn size(&self) -> Option<u64> {
        self.files.iter().map(|file| file.size).sum()
    }

    /// Bytes read so far, before unpacking.
    pub(super) fn bytes_read(&self) -> u64 {
        self.merged.readers().map(Reader::bytes_read).sum()
    }

    /// Packets read so far.
    pub(super) fn packets(&self) -> u64 {
        self.merged.readers().map(Reader::packets).sum()
    }

    /// Each file with its reader.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&CaptureFile, &Reader<Input>)> {
        self.files.iter().zip(self.merged.readers())
    }
}

impl Source for Inputs {
    type Error = Infallible;

    fn read_batch(&mut self, batch: &mut Batch) -> Result<Progress, Infallible> {
        loop {
            let error = match self.merged.read_batch(batch) {
                Ok(progress) => return Ok(progress),
                Err(error) => error,
            };
            if let Some(file) = self.files.get_mut(error.input) {
                file.failure = Some(error.source.to_string());
            }
            if self.files.len() <= 1 {
                batch.packets.clear();
                return Ok(Progress::End);
            }
        }
    }
}

impl CaptureFile {
    /// Its size now, if it is larger than when it was opened.
    pub(super) fn grown(&self) -> Option<u64> {
        let now = self.path.metadata().ok()?.len();
        self.size.is_some_and(|size| now > size).then_some(now)
    }
}

fn open(path: &Path) -> Result<(CaptureFile, Reader<Input>), Refused> {
    let refused = |said: String| Refused {
        path: path.to_owned(),
        missing: false,
        said: said.trim().to_owned(),
    };
    let (input, size): (Input, _) = if is_stdin(path) {
        if stdin().is_terminal() {
            return Err(refused("it is a terminal; pipe a capture file into it".to_owned()));
        }
        (Box::new(stdin()), None)
    } else {
        let file = File::open(path).map_err(|error| Refused {
            missing: error.kind() == std::io::ErrorKind::NotFound,
            ..refused(format!("cannot open: {error}"))
        })?;
        let metadata = file.metadata().map_err(|error| refused(format!("cannot read: {error}")))?;
        if metadata.is_dir() {
            let files = path.join("*.pcap");
            let said = "a directory, not a capture file; name the files in it";
            return Err(refused(format!("{said}, as {}", files.display())));
        }
        (Box::new(file), metadata.is_file().then_some(metadata.len()))
    };
    let reader = Reader::new(input)
        .map_err(|error| refused(format!("{error}{}", remedy(&error, path).unwrap_or_default())))?;
    let name =
        if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() };
    Ok((CaptureFile { name, path: path.to_owned(), size, failure: None }, reader))
}

/// What the user can do about a file that cannot be read.
fn remedy(error: &Error, path: &Path) -> Option<String> {
    let Error::Other(what) = error else { return None };
    let unpacker = [("xz", "xz -dc"), ("bzip2", "bzip2 -dc"), ("a zip", "unzip -p")];
    let (_, command) = unpacker.iter().find(|(name, _)| what.starts_with(name))?;
    Some(format!("; unpack it: {command} {} | netsniff analyze -", path.display()))
}
