//! A file of which more is read whenever there is more.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::folder::{Folder, Head};
use super::{Followed, POLL};

/// Reads a file that grows, also where it gets another name. Its end comes where nobody adds to it any more: behind a
/// signal, with the next file of its directory, or once it has no name.
pub(super) struct Growing {
    /// `None` behind the end.
    file: Option<File>,
    /// How it began when it was opened.
    head: Head,
    position: Arc<AtomicU64>,
    folder: Option<Arc<Folder>>,
    is_over: Arc<AtomicBool>,
    /// Where to end: as long as the file was when the signal came.
    end: Option<u64>,
}

impl Growing {
    /// Opens a file of what is followed.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(super) fn open(path: &Path, followed: &Followed) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| format!("cannot open: {error}"))?;
        let metadata = file.metadata().map_err(|error| format!("cannot read: {error}"))?;
        if !metadata.is_file() {
            return Err("only a file or a directory can be followed".to_owned());
        }
        Ok(Self {
            head: Head::of(&file, None).map_err(|error| format!("cannot read: {error}"))?,
            file: Some(file),
            position: Arc::clone(&followed.position),
            folder: followed.folder.clone(),
            is_over: Arc::clone(&followed.is_over),
            end: None,
        })
    }

    /// Whether nobody adds to the file after what is there now.
    fn is_last(&self, metadata: &Metadata) -> bool {
        self.folder.as_ref().is_some_and(|folder| folder.has_next()) || metadata.nlink() == 0
    }

    /// Ends the file, which must still be the one that was opened.
    fn end(&mut self) -> io::Result<usize> {
        let Some(file) = self.file.take() else { return Ok(0) };
        let position = self.position.load(Ordering::Relaxed);
        let said = if file.metadata()?.len() < position {
            format!("it was cut when {position} bytes of it had been read")
        } else if !self.head.is_of(&file)? {
            format!("it was written anew when {position} bytes of it had been read")
        } else {
            return self.folder.as_ref().map_or(Ok(()), |folder| folder.left(&file)).map(|()| 0);
        };
        if let Some(folder) = &self.folder {
            folder.lost();
        }
        Err(io::Error::other(said))
    }

    /// How much may be read into a buffer of `wanted` bytes, before the place where a signal ended it.
    fn room(&mut self, wanted: usize) -> io::Result<usize> {
        let Some(file) = &self.file else { return Ok(0) };
        if self.end.is_none() && self.is_over.load(Ordering::Relaxed) {
            self.end = Some(file.metadata()?.len());
        }
        let left = self.end.map(|end| end.saturating_sub(self.position.load(Ordering::Relaxed)));
        let left = left.and_then(|left| usize::try_from(left).ok());
        Ok(left.map_or(wanted, |left| wanted.min(left)))
    }
}

impl Read for Growing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let room = self.room(buffer.len())?;
            let Some(file) = &mut self.file else { return Ok(0) };
            let read = file.read(&mut buffer[..room])?;
            if read > 0 {
                self.position.fetch_add(read as u64, Ordering::Relaxed);
                return Ok(read);
            }
            let metadata = file.metadata()?;
            let position = self.position.load(Ordering::Relaxed);
            if metadata.len() < position || self.end.is_some() {
                return self.end();
            }
            // What came between the read and this look is read first.
            if self.is_last(&metadata) && file_len(self.file.as_ref())? == position {
                return self.end();
            }
            if metadata.len() == position {
                std::thread::sleep(POLL);
            }
        }
    }
}

fn file_len(file: Option<&File>) -> io::Result<u64> {
    file.map_or(Ok(0), |file| Ok(file.metadata()?.len()))
}
