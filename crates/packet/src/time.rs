//! Time as integers of nanoseconds; nothing here reads a clock.

use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;

/// Nanoseconds in a second.
pub const NANOS_PER_SEC: i64 = 1_000_000_000;

/// A point in time: nanoseconds since 1970-01-01 00:00:00 UTC, negative before it.
///
/// The range reaches from 1677 to 2262. Arithmetic saturates at its ends, since the stamps of a
/// damaged file may be anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);
    /// The earliest time that can be told.
    pub const MIN: Self = Self(i64::MIN);
    /// The latest time that can be told.
    pub const MAX: Self = Self(i64::MAX);

    /// A time from nanoseconds since the epoch.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// A time from whole seconds and nanoseconds (which may exceed a second) since the epoch.
    #[must_use]
    pub const fn from_secs_nanos(secs: i64, nanos: i64) -> Self {
        Self(secs.saturating_mul(NANOS_PER_SEC).saturating_add(nanos))
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// Nanoseconds from `earlier` to `self`, negative where `earlier` is later.
    #[must_use]
    pub const fn nanos_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This time moved by a signed number of nanoseconds.
    #[must_use]
    pub const fn offset(self, nanos: i64) -> Self {
        Self(self.0.saturating_add(nanos))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let nanos = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        let nanos = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(nanos))
    }
}

/// Seconds with nine decimals, as `1329843175.736107000`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        let per_sec = NANOS_PER_SEC.unsigned_abs();
        write!(f, "{sign}{}.{:09}", magnitude / per_sec, magnitude % per_sec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_seconds_and_nanoseconds() {
        assert_eq!(Timestamp::from_secs_nanos(12, 5).to_string(), "12.000000005");
        assert_eq!(Timestamp::from_nanos(-1_500_000_000).to_string(), "-1.500000000");
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::MAX + Duration::from_secs(1), Timestamp::MAX);
        assert_eq!(Timestamp::MIN - Duration::MAX, Timestamp::MIN);
        assert_eq!(Timestamp::MAX.nanos_since(Timestamp::MIN), i64::MAX);
    }
}
