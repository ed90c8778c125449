//! What an application costs without a capture: the same work, on frames that lie in memory.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use netsniff_packet::Timestamp;
use netsniff_traffic::probe::frame;

use crate::work::{Cost, Work};

/// Frames of different flows that are worked on in turn; so many that they come from memory, as those of a ring do.
pub(super) const FRAMES: u32 = 4096;

/// Frames between two looks at the clock.
const BATCH: usize = 64;

/// How long a frame takes, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Raw {
    /// On average, of the faster half of all batches: the rest was disturbed.
    pub mean: f64,
    /// The median of batches.
    pub median: f64,
    /// What 99 in 100 batches stay below.
    pub p99: f64,
}

/// Stamped frames of a size, as the sender makes them.
///
/// # Errors
///
/// Where no frame has the size.
pub fn stamped(size: u32) -> anyhow::Result<Vec<Vec<u8>>> {
    let made = (0..FRAMES).map(|flow| frame(size as usize, flow));
    made.collect::<Option<_>>().context("no frame has this size")
}

/// Measures for so long what it costs to work on some frames.
///
/// # Errors
///
/// Where there are none, or the work fails.
pub fn measure(cost: Cost, frames: &[Vec<u8>], time: Duration) -> anyhow::Result<Raw> {
    ensure!(!frames.is_empty(), "there are no frames to work on");
    let epoch = Timestamp::from_nanos(0);
    // A delay is waited for in a capture; here it would be no measurement.
    let mut work = Work::new(Cost { delay: None, ..cost });
    let mut batches = Vec::new();
    let begin = Instant::now();
    for batch in frames.chunks(BATCH).cycle() {
        let start = Instant::now();
        for frame in batch {
            work.packet(frame, epoch, || epoch)?;
        }
        batches.push(start.elapsed().as_nanos() as f64 / batch.len() as f64);
        if begin.elapsed() >= time {
            break;
        }
    }
    batches.sort_by(f64::total_cmp);
    let faster = &batches[..batches.len().div_ceil(2)];
    Ok(Raw {
        mean: faster.iter().sum::<f64>() / faster.len() as f64,
        median: batches[batches.len() / 2],
        p99: batches[batches.len() * 99 / 100],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_work_takes_longer() {
        let time = Duration::from_millis(30);
        let raw =
            |zip, size| measure(Cost { zip, delay: None }, &stamped(size).unwrap(), time).unwrap();
        let (none, small, large) = (raw(None, 1500), raw(Some(6), 100), raw(Some(6), 1500));
        assert!(none.mean < small.mean && small.mean < large.mean, "{none:?} {small:?} {large:?}");
        assert!(large.mean <= large.median && large.median <= large.p99);
        assert!(stamped(10).is_err() && measure(Cost::default(), &[], time).is_err());
    }
}
