//! Memory that this process shares with the kernel, or keeps for it.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

const READ: i32 = libc::PROT_READ;
const WRITE: i32 = libc::PROT_WRITE;

/// Pages that are mapped while this value lives.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread, and every access needs this value.
unsafe impl Send for Mapping {}

// SAFETY: what `&Mapping` reaches without a promise of the caller is words, which all sides access as a whole.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps what a socket, or another descriptor, offers at `offset`, readable and writable for both sides.
    pub(crate) fn shared(socket: BorrowedFd<'_>, len: usize, offset: i64) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Self::map(len, READ | WRITE, flags, socket.as_raw_fd(), offset)
    }

    /// Maps what a descriptor offers at `offset`, to be read only.
    pub(super) fn read_only(from: BorrowedFd<'_>, len: usize, offset: i64) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Self::map(len, READ, flags, from.as_raw_fd(), offset)
    }

    /// Fresh memory of this process, zeroed and present.
    pub(crate) fn private(len: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        Self::map(len, READ | WRITE, flags, -1, 0)
    }

    fn map(
        len: usize,
        protection: i32,
        flags: i32,
        descriptor: i32,
        offset: i64,
    ) -> io::Result<Self> {
        // SAFETY: without an address and MAP_FIXED the kernel picks pages that nobody uses.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, descriptor, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { start, len })
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Its first byte, for calls that tell the kernel of it and for the rings over it.
    pub(crate) const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// A word that both sides change.
    ///
    /// # Panics
    ///
    /// Where the word is not wholly in the mapping, or `offset` is no multiple of 4: the caller has
    /// checked the layout when it made the ring.
    pub(super) fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.len, "a word outside the mapping");
        // SAFETY: the word is in the mapping, which outlives the reference and starts on a page, so it is
        // aligned; both sides access it as a whole, and no slice over it is lent at the same time
        // (whoever lends slices of the mapping leaves the words out or holds `&mut self`).
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    /// Eight bytes that another side may change.
    ///
    /// # Panics
    ///
    /// As [`word`](Self::word), with multiples of 8.
    pub(super) fn long(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.len, "a word outside the mapping");
        // SAFETY: as in `word`.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    /// A part of the mapping, to be read; `None` where it is not wholly in it.
    ///
    /// # Safety
    ///
    /// Until the slice is dropped, the kernel must not write to it, and nor must we through another slice.
    pub(super) unsafe fn bytes(&self, offset: usize, len: usize) -> Option<&[u8]> {
        offset.checked_add(len).filter(|end| *end <= self.len)?;
        // SAFETY: the part is in the mapping, whose pages are initialised by the kernel, and the caller vouches
        // for those who write.
        Some(unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(offset), len) })
    }

    /// A part of the mapping.
    ///
    /// # Safety
    ///
    /// Until the slice is dropped, the kernel must not write to it.
    ///
    /// # Panics
    ///
    /// Where the part is not wholly in the mapping.
    pub(super) unsafe fn bytes_mut(&mut self, offset: usize, len: usize) -> &mut [u8] {
        let end = offset.checked_add(len);
        assert!(end.is_some_and(|end| end <= self.len), "bytes outside the mapping");
        // SAFETY: the part is in the mapping, whose pages are initialised by the kernel; `&mut self`
        // excludes other slices of ours, and the caller vouches for the kernel.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(offset), len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: these pages were mapped by `map`, and nothing that borrows from them lives any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
