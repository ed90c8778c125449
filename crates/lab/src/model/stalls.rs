//! When the machine stood still: other virtual machines, interrupts, whatever takes a processor from a program.

use std::time::{Duration, Instant};

use crate::host::process;

/// Shorter ones are of no account: ticks of the kernel.
pub(super) const LEAST: Duration = Duration::from_micros(100);

/// What stood in the way of a program that only looked at the clock.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Stalls {
    /// Nanoseconds that were watched.
    pub watched: u64,
    /// Nanoseconds of each stall, of 100 microseconds and more.
    pub lengths: Vec<u64>,
}

impl Stalls {
    /// Stalls in a nanosecond in which there is none.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let between = self.watched.saturating_sub(self.lengths.iter().sum());
        self.lengths.len() as f64 / between.max(1) as f64
    }

    /// The share of the time that was watched in which the machine stood still.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.lengths.iter().sum::<u64>() as f64 / self.watched.max(1) as f64
    }
}

/// Watches a processor for so long.
///
/// # Errors
///
/// Where no thread can run on it.
pub fn watch(processor: usize, time: Duration) -> anyhow::Result<Stalls> {
    process::on_processor(processor, || {
        let begin = Instant::now();
        let (mut before, mut lengths) = (begin, Vec::new());
        while before - begin < time {
            let now = Instant::now();
            let length = now - before;
            if length >= LEAST {
                lengths.push(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
            }
            before = now;
        }
        let watched = u64::try_from((before - begin).as_nanos()).unwrap_or(u64::MAX);
        Stalls { watched, lengths }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_are_told_with_their_lengths() {
        let stalls = watch(0, Duration::from_millis(50)).unwrap();
        assert!(stalls.watched >= 50_000_000);
        assert!(stalls.lengths.iter().all(|&length| length >= 100_000));
        assert!(stalls.lengths.iter().sum::<u64>() <= stalls.watched);
        let known = Stalls { watched: 1_000_000, lengths: vec![200_000, 300_000] };
        assert_eq!((known.rate(), known.share()), (4e-6, 0.5));
        assert!(watch(100_000, Duration::from_millis(1)).is_err());
    }
}
