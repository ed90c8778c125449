//! The ring that BPF programs put records into (`BPF_MAP_TYPE_RINGBUF`), as <linux/bpf.h> and
//! Documentation/bpf/ringbuf.rst lay it out: a page with our position, a page with the kernel's, and the records,
//! mapped twice in a row so that each lies in one piece.
//!
//! Records lie between our position and the kernel's. Each has a word before it that says how long it is, and
//! whether it is still being written; the kernel writes to none that it has finished until our position is
//! behind it.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::bpf::create_ring;
use super::mapping::Mapping;
use super::socket::poll;

/// A ring, of which this is the only reader.
#[derive(Debug)]
pub(crate) struct RecordRing {
    /// Our position, on a page of its own that may be written.
    consumer: Mapping,
    /// The kernel's position on a page, and the records.
    producer: Mapping,
    page: usize,
    len: u32,
    /// Behind the records that were passed.
    taken: u64,
    descriptor: OwnedFd,
}

/// Bytes before a record, and what each record is a multiple of.
const HEADER: u64 = 8;

impl RecordRing {
    /// A ring of so many bytes, a power of two and a multiple of the page.
    ///
    /// # Errors
    ///
    /// `EPERM` without `CAP_BPF`; `ENOMEM`; `EINVAL` for another length.
    pub(crate) fn create(len: u32) -> io::Result<Self> {
        let descriptor = create_ring(len)?;
        let page = page()?;
        let consumer = Mapping::shared(descriptor.as_fd(), page, 0)?;
        let all = page + 2 * len as usize;
        let producer = Mapping::read_only(descriptor.as_fd(), all, page as i64)?;
        Ok(Self { consumer, producer, page, len, taken: 0, descriptor })
    }

    /// The descriptor as instructions name it, while the ring lives.
    pub(crate) fn number(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }

    /// Bytes of records that were not passed.
    pub(crate) fn waiting(&self) -> u64 {
        self.produced().saturating_sub(self.taken)
    }

    /// The next record, which stays ours until [`release`](Self::release); `None` where none is finished.
    pub(crate) fn peek(&self) -> Option<Record<'_>> {
        let Header { len, is_discarded } = self.header()?;
        if is_discarded {
            return Some(Record::GivenUp);
        }
        let at = self.page + self.place() + HEADER as usize;
        let len = if size(len) <= self.waiting() { len as usize } else { 0 };
        // SAFETY: the record is finished and lies before the kernel's position, so the kernel writes to it
        // only after `release`, which needs this value alone; nobody else writes.
        unsafe { self.producer.bytes(at, len) }.map(Record::Finished)
    }

    /// Passes the next record. Where the ring makes no sense nothing in it can be found any more, and all of it
    /// is passed.
    pub(crate) fn advance(&mut self) {
        let waiting = self.waiting();
        let size = self.header().map(|header| size(header.len));
        self.taken += size.filter(|size| *size <= waiting).unwrap_or(waiting);
    }

    /// Gives back what was passed.
    pub(crate) fn release(&mut self) {
        self.consumer.long(0).store(self.taken, Ordering::Release);
    }

    /// Waits at most so long until something is there, and returns the events of poll(2).
    pub(crate) fn poll(&self, time: Duration) -> io::Result<libc::c_short> {
        let fd = self.descriptor.as_raw_fd();
        poll(&mut [libc::pollfd { fd, events: libc::POLLIN, revents: 0 }], time)
    }

    fn produced(&self) -> u64 {
        self.producer.long(0).load(Ordering::Acquire)
    }

    /// Where in the ring the next record begins.
    const fn place(&self) -> usize {
        (self.taken & (self.len as u64 - 1)) as usize
    }

    /// What the kernel says of the next record; `None` where none is finished.
    fn header(&self) -> Option<Header> {
        if self.waiting() < HEADER {
            return None;
        }
        Header::parse(self.producer.word(self.page + self.place()).load(Ordering::Acquire))
    }
}

/// What the next record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// Bytes, none of them where it makes no sense.
    Finished(&'a [u8]),
    /// A program did not want it any more.
    GivenUp,
}

/// What a record takes up, with what lies before it.
fn size(len: u32) -> u64 {
    (u64::from(len) + HEADER).next_multiple_of(HEADER)
}

/// What lies before a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    len: u32,
    is_discarded: bool,
}

impl Header {
    /// Reads the word (`BPF_RINGBUF_BUSY_BIT`, `BPF_RINGBUF_DISCARD_BIT`); `None` where the record is being
    /// written.
    const fn parse(word: u32) -> Option<Self> {
        const BUSY: u32 = 1 << 31;
        const DISCARDED: u32 = 1 << 30;
        if word & BUSY != 0 {
            return None;
        }
        Some(Self { len: word & (DISCARDED - 1), is_discarded: word & DISCARDED != 0 })
    }
}

/// Bytes of a page of memory.
pub(crate) fn page() -> io::Result<usize> {
    // SAFETY: only a number is passed.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(page).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_before_a_record_is_read_as_the_kernel_writes_it() {
        assert_eq!(Header::parse(1 << 31 | 88), None);
        assert_eq!(Header::parse(88), Some(Header { len: 88, is_discarded: false }));
        assert_eq!(Header::parse(1 << 30 | 24), Some(Header { len: 24, is_discarded: true }));
    }
}
