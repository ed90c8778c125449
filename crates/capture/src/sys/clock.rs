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

fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec. The call cannot fail for these clocks.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time
}
