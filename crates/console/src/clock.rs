//! The time of day as a timestamp.

use std::time::{SystemTime, UNIX_EPOCH};

use netsniff_packet::Timestamp;

/// The time of day.
#[must_use]
pub fn now() -> Timestamp {
    timestamp(SystemTime::now())
}

/// A time of the system as a timestamp, at the bounds of what that can tell.
#[must_use]
pub fn timestamp(time: SystemTime) -> Timestamp {
    let nanos = |duration: core::time::Duration| i64::try_from(duration.as_nanos());
    Timestamp::from_nanos(match time.duration_since(UNIX_EPOCH) {
        Ok(since) => nanos(since).unwrap_or(i64::MAX),
        Err(before) => nanos(before.duration()).map_or(i64::MIN, |nanos| -nanos),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_before_the_epoch_are_negative() {
        let at = |time| timestamp(time).nanos();
        assert_eq!(
            at(UNIX_EPOCH + Duration::from_nanos(1_300_000_000_000_000_007)),
            1_300_000_000_000_000_007
        );
        assert_eq!(at(UNIX_EPOCH - Duration::from_nanos(5)), -5);
        assert_eq!(at(UNIX_EPOCH + Duration::from_secs(1 << 40)), i64::MAX);
    }
}
