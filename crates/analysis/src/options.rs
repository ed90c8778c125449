//! What the user may want of the analysis besides the bounds.

use core::time::Duration;

/// Choices that change what records say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Samples the RTT of every TCP connection into the `rtt` log, a row for each interval of this
    /// length in which there were samples. An interval of 0 counts as none.
    pub rtt_interval: Option<Duration>,
    /// The capture was taken on a gateway, which is itself a hop: hop counts are one lower.
    pub gateway: bool,
}

impl Options {
    /// The sampling interval in nanoseconds, if there is to be sampling.
    #[must_use]
    pub fn rtt_interval_nanos(&self) -> Option<i64> {
        let nanos = i64::try_from(self.rtt_interval?.as_nanos()).unwrap_or(i64::MAX);
        (nanos > 0).then_some(nanos)
    }
}
