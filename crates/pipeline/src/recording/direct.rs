//! Files that are written past the page cache, where their file system can.
//!
//! Nobody reads a recording while it is made, so that a copy of it in the page cache costs twice: the copying,
//! and the moments in which the system writes gigabytes of it back and lets nobody else write. Bytes are
//! gathered in an aligned buffer, which is written as a whole. What is to be readable before it is full goes
//! through the cache, and is written once more with the rest of the buffer.

use std::fs::File;
use std::io::{self, Write};

/// Bytes that are written at once: fewer make a disk slower, and are written again where a flush came between.
const BUFFER: usize = 1 << 20;

/// A file that is written from its begin.
pub(super) struct DirectFile {
    direct: File,
    cached: File,
    /// Longer than what is used of it, from `start` on, for the sake of alignment.
    memory: Box<[u8]>,
    start: usize,
    /// Where in the file the buffer begins.
    base: u64,
    len: usize,
    /// Bytes of the buffer that are in the file.
    flushed: usize,
}

impl DirectFile {
    /// Takes a new file; `Err` gives it back where it cannot be written in this way.
    pub(super) fn new(file: File) -> Result<Self, File> {
        let Some((direct, align)) = open(&file) else { return Err(file) };
        let memory = vec![0; BUFFER + align].into_boxed_slice();
        let start = memory.as_ptr().align_offset(align);
        if start > align {
            return Err(file);
        }
        Ok(Self { direct, cached: file, memory, start, base: 0, len: 0, flushed: 0 })
    }

    /// Bytes from the begin on that are in the file.
    pub(super) const fn settled(&self) -> u64 {
        self.base + self.flushed as u64
    }

    fn buffer(&self) -> &[u8] {
        self.memory.get(self.start..self.start + self.len).unwrap_or_default()
    }

    /// Writes the full buffer.
    fn write_out(&mut self) -> io::Result<()> {
        // What does not go in this way, at the end of the disk for one, goes through the cache or fails there.
        let written = write_at(&self.direct, self.buffer(), self.base).unwrap_or_default();
        self.flushed = self.flushed.max(written);
        self.flush()?;
        self.base += self.len as u64;
        (self.len, self.flushed) = (0, 0);
        Ok(())
    }
}

impl Write for DirectFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(BUFFER - self.len);
        let from = self.start + self.len;
        if let (Some(room), Some(bytes)) =
            (self.memory.get_mut(from..from + taken), bytes.get(..taken))
        {
            room.copy_from_slice(bytes);
        }
        self.len += taken;
        if self.len == BUFFER {
            self.write_out()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.flushed < self.len {
            let rest = self.buffer().get(self.flushed..).unwrap_or_default();
            match write_at(&self.cached, rest, self.settled()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.flushed += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The file once more, to be written past the cache, and what its writes must be aligned to.
#[cfg(target_os = "linux")]
fn open(file: &File) -> Option<(File, usize)> {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    use rustix::fs::{AtFlags, OFlags, StatxFlags, statx};

    let facts = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let align = facts.stx_dio_mem_align.max(facts.stx_dio_offset_align) as usize;
    // Not set where the file system cannot, as tmpfs.
    let is_told = facts.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    if !is_told || !align.is_power_of_two() || !BUFFER.is_multiple_of(align) {
        return None;
    }
    let again = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut options = File::options();
    options.write(true).custom_flags(OFlags::DIRECT.bits().cast_signed());
    Some((options.open(again).ok()?, align))
}

#[cfg(not(target_os = "linux"))]
fn open(_: &File) -> Option<(File, usize)> {
    None
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, bytes, at)
}

#[cfg(not(unix))]
fn write_at(_: &File, _: &[u8], _: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use netsniff_testing::{Need, skip};

    /// A file in this folder, which is on a disk where `target` is.
    fn file(name: &str) -> (std::path::PathBuf, Option<DirectFile>) {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
        // Whoever builds elsewhere has none.
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("direct-{}-{name}", std::process::id()));
        let file = File::create(&path).unwrap();
        let direct = DirectFile::new(file).ok();
        if direct.is_none() {
            std::fs::remove_file(&path).unwrap();
            skip(Need::Kernel, "files here cannot be written past the page cache");
        }
        (path, direct)
    }

    #[test]
    fn what_is_written_is_in_the_file_however_it_is_cut() {
        for piece in [1000, 4096, 300_000, 2_500_000] {
            let (path, Some(mut direct)) = file("cut") else { return };
            let all: Vec<u8> = (0..5_000_000_u32).map(|at| (at * 7 / 3) as u8).collect();
            for (number, bytes) in all.chunks(piece).enumerate() {
                direct.write_all(bytes).unwrap();
                if number % 3 == 1 {
                    direct.flush().unwrap();
                    let written = (number * piece + bytes.len()) as u64;
                    assert_eq!(direct.settled(), written);
                    assert_eq!(std::fs::metadata(&path).unwrap().len(), written);
                }
            }
            direct.flush().unwrap();
            assert_eq!(direct.settled(), all.len() as u64);
            assert!(std::fs::read(&path).unwrap() == all, "pieces of {piece}");
            std::fs::remove_file(path).unwrap();
        }
    }

    /// Else everything would go through the cache, and nobody would see it.
    #[test]
    fn a_full_buffer_goes_past_the_cache() {
        let (path, Some(mut direct)) = file("past") else { return };
        direct.len = BUFFER;
        let written = write_at(&direct.direct, direct.buffer(), BUFFER as u64);
        assert_eq!(written.unwrap(), BUFFER);
        let unaligned = direct.buffer().get(1..).unwrap();
        assert!(write_at(&direct.direct, unaligned, 0).is_err(), "O_DIRECT is in force");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_full_buffer_is_in_the_file_and_the_rest_is_not_said_to_be() {
        let (path, Some(mut direct)) = file("settled") else { return };
        direct.write_all(&vec![1; BUFFER - 1]).unwrap();
        assert_eq!(direct.settled(), 0);
        direct.write_all(&[2, 3]).unwrap();
        assert_eq!(direct.settled(), BUFFER as u64);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), BUFFER as u64);
        std::fs::remove_file(path).unwrap();
    }
}
