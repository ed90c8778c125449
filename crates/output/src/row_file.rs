//! Whole rows into an open file or pipe: what could not be written leaves no half row behind.

use std::fs::File;
use std::io::{self, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::sync::Arc;

use super::watch::Watch;

/// Bytes gathered before a system call writes them. Dozens of files gather them at once, and what was just rendered is
/// still in the caches when it is written.
const BUFFER: usize = 32 * 1024;

/// What a pipe takes at once without waiting when poll(2) says that it has room: `PIPE_BUF` of Linux.
const PIPE_PIECE: usize = 4096;

/// How often a write that waits for a reader looks whether it still should.
#[cfg(unix)]
const LOOK: core::time::Duration = core::time::Duration::from_millis(20);

/// An open file or pipe with the rows that wait to be written to it.
#[derive(Debug)]
pub(super) struct RowFile {
    file: File,
    /// Whether it is a regular file, of which an end can be cut off.
    is_regular: bool,
    waiting: Vec<u8>,
    /// The pieces that it is made of, in their order. Half a piece is nothing.
    pieces: Vec<Piece>,
    /// Bytes of all that was written, and of what waits.
    size: u64,
    /// Bytes of half a row, or of a footer, that it ends with, since they could not be cut off yet.
    torn: usize,
    watch: Option<Arc<Watch>>,
}

/// Bytes that are written whole or not at all: a row, or rows that a format writes together.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Where it ends in what waits.
    end: usize,
    rows: u64,
}

/// What became of the rows that waited, the written ones before the others.
#[derive(Debug)]
pub(super) struct WriteOut {
    pub(super) written: u64,
    pub(super) refused: u64,
    pub(super) result: io::Result<()>,
}

impl RowFile {
    /// Rows are added at the place where the file stands. With a watch, a pipe is waited for until
    /// the watch is over; without, for ever.
    pub(super) fn new(file: File, watch: Option<Arc<Watch>>) -> Self {
        // What cannot tell what it is will not let itself be cut either.
        let is_regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let (waiting, pieces) = (Vec::new(), Vec::new());
        Self { file, is_regular, waiting, pieces, size: 0, torn: 0, watch }
    }

    pub(super) const fn file(&self) -> &File {
        &self.file
    }

    /// Bytes that went through it, with those that wait.
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn watch(&mut self, watch: Arc<Watch>) {
        self.watch = Some(watch);
    }

    /// Whether a row may be added before [`Self::write_out`] is called.
    #[inline]
    pub(super) const fn has_room(&self) -> bool {
        self.waiting.len() < BUFFER
    }

    /// Adds what `write` appends, which has so many rows and is written whole or not at all. Returns whether it appended
    /// anything.
    #[inline]
    pub(super) fn push(&mut self, rows: u64, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let before = self.waiting.len();
        write(&mut self.waiting);
        let end = self.waiting.len();
        if end > before {
            self.pieces.push(Piece { end, rows });
            self.size += (end - before) as u64;
        }
        end > before
    }

    /// Writes the rows that wait; afterwards none does.
    pub(super) fn write_out(&mut self) -> WriteOut {
        let mut pieces = core::mem::take(&mut self.pieces);
        let mut waiting = core::mem::take(&mut self.waiting);
        let (whole, result) = self.write_pieces(&waiting, &pieces);
        let (mut written, mut refused) = (0, 0);
        for piece in &pieces {
            *(if piece.end <= whole { &mut written } else { &mut refused }) += piece.rows;
        }
        self.size -= (waiting.len() - whole) as u64;
        waiting.clear();
        pieces.clear();
        // Rows that were written together may have taken much more.
        waiting.shrink_to(2 * BUFFER);
        (self.waiting, self.pieces) = (waiting, pieces);
        WriteOut { written, refused, result }
    }

    /// Writes what is no row, a header or footer, whole or not at all. No row may wait.
    pub(super) fn write_frame(&mut self, frame: &[u8]) -> io::Result<()> {
        let (whole, result) = self.write_pieces(frame, &[Piece { end: frame.len(), rows: 0 }]);
        self.size += whole as u64;
        result
    }

    /// Takes back a footer of so many bytes, which was written last.
    pub(super) fn cut_frame(&mut self, len: usize) {
        // Where it cannot be cut off yet, nothing is written behind it until it is.
        self.size -= len as u64;
        let _ = self.cut(len);
    }

    pub(super) const fn has_waiting(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// Takes over the rows that wait for `other`, where none waits here.
    pub(super) fn adopt(&mut self, other: &mut Self) {
        core::mem::swap(&mut self.waiting, &mut other.waiting);
        core::mem::swap(&mut self.pieces, &mut other.pieces);
        self.size += self.waiting.len() as u64;
    }

    /// Forgets the rows that wait, and tells how many they were.
    pub(super) fn discard(&mut self) -> u64 {
        self.waiting.clear();
        self.pieces.drain(..).map(|piece| piece.rows).sum()
    }

    /// Takes back the last `len` bytes that were written, with those that could not be taken back before.
    ///
    /// # Errors
    ///
    /// When that cannot be done now; it is tried again before anything else is written.
    fn cut(&mut self, len: usize) -> io::Result<()> {
        self.torn += len;
        if self.torn == 0 {
            return Ok(());
        }
        if !self.is_regular {
            return Err(io::Error::other("what was written before ends with half a row"));
        }
        let end = self.file.metadata()?.len().saturating_sub(self.torn as u64);
        // What fails here leaves the length as it is, so that it can be tried again.
        self.file.seek(SeekFrom::Start(end))?;
        self.file.set_len(end)?;
        self.torn = 0;
        Ok(())
    }

    /// Writes bytes that are made of these pieces. Returns how many of them stand there, which are whole pieces, and why
    /// not all.
    fn write_pieces(&mut self, bytes: &[u8], pieces: &[Piece]) -> (usize, io::Result<()>) {
        if bytes.is_empty() {
            return (0, Ok(()));
        }
        if let Err(error) = self.cut(0) {
            return (0, Err(error));
        }
        let (done, result) = match self.watch.clone() {
            Some(watch) => watch.during(|| self.write_watched(bytes, pieces, &watch)),
            None => self.write_waiting(bytes),
        };
        if result.is_ok() {
            return (done, result);
        }
        let whole = end_within(pieces, done);
        // Why it could not be written says more than why half of it stays for now.
        let _ = self.cut(done - whole);
        (whole, result)
    }

    /// Writes, however long that takes.
    fn write_waiting(&mut self, bytes: &[u8]) -> (usize, io::Result<()>) {
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            match self.file.write(rest) {
                Ok(0) => return (done, Err(ErrorKind::WriteZero.into())),
                Ok(len) => done += len,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return (done, Err(error)),
            }
        }
        (done, Ok(()))
    }

    /// Writes, and waits for a reader only until the watch is over.
    fn write_watched(
        &mut self,
        bytes: &[u8],
        pieces: &[Piece],
        watch: &Watch,
    ) -> (usize, io::Result<()>) {
        if self.is_regular {
            return self.write_waiting(bytes);
        }
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            if let Err(error) = self.wait(watch) {
                return (done, Err(error));
            }
            let most = end_within(pieces, done + PIPE_PIECE).saturating_sub(done);
            // Of a longer piece the begin.
            let most = if most == 0 { PIPE_PIECE } else { most };
            match self.file.write(rest.get(..most).unwrap_or(rest)) {
                Ok(0) => return (done, Err(ErrorKind::WriteZero.into())),
                Ok(len) => done += len,
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted | ErrorKind::WouldBlock => {}
                    _ => return (done, Err(error)),
                },
            }
        }
        (done, Ok(()))
    }

    /// Waits until a piece can be written without waiting.
    #[cfg(unix)]
    fn wait(&self, watch: &Watch) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};

        let look = Timespec::try_from(LOOK).map_err(io::Error::other)?;
        loop {
            if watch.is_over() {
                return Err(ErrorKind::TimedOut.into());
            }
            let mut file = [PollFd::new(&self.file, PollFlags::OUT)];
            match poll(&mut file, Some(&look)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// There is nothing to ask whether a piece can be written without waiting.
    #[cfg(not(unix))]
    fn wait(&self, watch: &Watch) -> io::Result<()> {
        if watch.is_over() { Err(ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

/// Where the last piece ends that lies within the first `most` bytes; 0 where none does.
fn end_within(pieces: &[Piece], most: usize) -> usize {
    let at = pieces.partition_point(|piece| piece.end <= most);
    at.checked_sub(1).and_then(|last| pieces.get(last)).map_or(0, |piece| piece.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_row_that_could_not_be_cut_off_is_once_it_can() {
        let path = std::env::temp_dir().join(format!("netsniff-torn-{}", std::process::id()));
        let mut rows = RowFile::new(File::create(&path).unwrap(), None);
        let write = |rows: &mut RowFile, text: &str| {
            rows.push(1, |out| out.extend_from_slice(text.as_bytes()));
            rows.write_out()
        };
        assert_eq!(write(&mut rows, "first\n").written, 1);
        rows.write_frame(b"footer\n").unwrap();
        // As where ftruncate(2) fails.
        rows.is_regular = false;
        rows.cut_frame("footer\n".len());
        let out = write(&mut rows, "refused\n");
        assert!((out.written, out.refused) == (0, 1) && out.result.is_err(), "{out:?}");
        rows.is_regular = true;
        let out = write(&mut rows, "second\n");
        assert!((out.written, out.refused) == (1, 0) && out.result.is_ok(), "{out:?}");
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "first\nsecond\n");
        assert_eq!(rows.size(), text.len() as u64);
        std::fs::remove_file(path).unwrap();
    }
}
