//! What the owner of a writing thread sees and tells while the thread waits for a disk or a reader.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A write that takes longer than this is a stall: far more than a disk needs that keeps up, and far
/// less than the hand-off has room for.
pub const STALL: Duration = Duration::from_millis(100);

/// How long writes waited so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// Writes that took longer than [`STALL`], with one that goes on.
    pub count: u64,
    /// Nanoseconds of the longest.
    pub longest_nanos: u64,
}

/// Shared by a thread that writes and those who look after it.
#[derive(Debug)]
pub struct Watch {
    origin: Instant,
    /// When the write began that goes on, in nanoseconds since `origin`; 0 where there is none.
    since: AtomicU64,
    count: AtomicU64,
    longest: AtomicU64,
    is_over: AtomicBool,
}

impl Watch {
    pub(super) fn new() -> Self {
        Self {
            origin: Instant::now(),
            since: AtomicU64::new(0),
            count: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    pub(super) fn during<T>(&self, write: impl FnOnce() -> T) -> T {
        let begun = self.nanos();
        self.since.store(begun, Ordering::Relaxed);
        let result = write();
        self.since.store(0, Ordering::Relaxed);
        let took = self.nanos().saturating_sub(begun);
        if took > STALL.as_nanos() as u64 {
            self.count.fetch_add(1, Ordering::Relaxed);
            self.longest.fetch_max(took, Ordering::Relaxed);
        }
        result
    }

    /// What was measured so far.
    pub(super) fn stalls(&self) -> Stalls {
        let since = self.since.load(Ordering::Relaxed);
        let now = self.nanos();
        let took = if since == 0 { 0 } else { now.saturating_sub(since) };
        let is_stall = took > STALL.as_nanos() as u64;
        let longest = self.longest.load(Ordering::Relaxed);
        Stalls {
            count: self.count.load(Ordering::Relaxed) + u64::from(is_stall),
            longest_nanos: if is_stall { longest.max(took) } else { longest },
        }
    }

    /// Says that no write shall wait any longer.
    pub(super) fn expire(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether no write shall wait any longer.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Nanoseconds since the origin, at least 1.
    fn nanos(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_writes_are_stalls_also_while_they_go_on() {
        let watch = Watch::new();
        watch.during(|| {});
        assert_eq!(watch.stalls(), Stalls::default());
        let within = watch.during(|| {
            std::thread::sleep(STALL + Duration::from_millis(20));
            watch.stalls()
        });
        let behind = watch.stalls();
        assert_eq!((within.count, behind.count), (1, 1));
        assert!(within.longest_nanos > STALL.as_nanos() as u64);
        assert!(behind.longest_nanos >= within.longest_nanos);
        watch.during(|| {});
        assert_eq!(watch.stalls(), behind);
    }
}
