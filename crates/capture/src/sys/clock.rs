//! The system's clocks.

use netsniff_packet::Timestamp;

/// Nanoseconds of the monotonic clock, which never goes back.
pub fn monotonic() -> u64 {
    let time = read(libc::CLOCK_MONOTONIC);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// The time of day, by which the kernel stamps packets.
pub fn realtime() -> Timestamp {
    let time = read(libc::CLOCK_REALTIME);
    Timestamp::from_secs_nanos(time.tv_sec, time.tv_nsec)
}

/// By how many whole seconds `CLOCK_TAI` is ahead of the time of day. The kernel keeps it so, whatever is done to
/// the time of day; that it changes is seen once in a system's life, when it is told of the leap seconds.
pub(crate) fn tai_seconds() -> i64 {
    const TRIES: usize = 4;
    let mut ahead = 0;
    for _ in 0..TRIES {
        let before = read(libc::CLOCK_REALTIME);
        let tai = read(libc::CLOCK_TAI);
        let after = read(libc::CLOCK_REALTIME);
        let nanos = (tai.tv_sec - before.tv_sec) * 1_000_000_000 + (tai.tv_nsec - before.tv_nsec);
        ahead = nanos.saturating_add(500_000_000).div_euclid(1_000_000_000);
        // Where much time went by between the readings, they are not of the same moment.
        if before.tv_sec == after.tv_sec && after.tv_nsec - before.tv_nsec < 100_000_000 {
            break;
        }
    }
    ahead
}

fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec. The call cannot fail for these clocks.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time
}
