//! What an application costs without a capture: the same work, on frames that lie in memory.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use netsniff_packet::Timestamp;
use netsniff_traffic::probe::frame;

use super::stalls;
use crate::work::{Cost, PacketWork};

/// Frames of different flows that are worked on in turn; so many that they come from memory, as those of a ring do.
pub(super) const FRAMES: u32 = 4096;

/// Frames between two looks at the clock.
const BATCH: usize = 64;

/// One in so many batches is timed frame by frame, which costs a little more: it tells the distribution, and the others the
/// mean.
const SINGLE: usize = 8;

/// How long a frame takes, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Raw {
    /// On average, of the faster half of all batches: the rest was disturbed.
    pub mean: f64,
    /// The median of frames.
    pub median: f64,
    /// What 99 in 100 frames stay below.
    pub p99: f64,
    /// The standard deviation of frames, but for those during which the machine stood still.
    pub deviation: f64,
    /// What the smallest frame takes on average: what is done for each, whatever its size. 0 where that is not known.
    #[serde(default)]
    pub least: f64,
}

impl Raw {
    /// Every frame takes exactly so long.
    #[must_use]
    pub const fn even(mean: f64) -> Self {
        Self { mean, median: mean, p99: mean, deviation: 0.0, least: 0.0 }
    }

    /// What the means of batches and the times of single frames tell, each in any order; `None` where there are none.
    fn of(mut batches: Vec<f64>, mut singles: Vec<f64>) -> Option<Self> {
        batches.sort_by(f64::total_cmp);
        singles.sort_by(f64::total_cmp);
        let faster = &batches[..batches.len().div_ceil(2)];
        let mean = average(faster)?;
        let median = *singles.get(singles.len() / 2)?;
        // What is longer is a stall, which models know by itself.
        let stalled = median + stalls::LEAST.as_nanos() as f64;
        singles.truncate(singles.partition_point(|&time| time < stalled));
        let middle = average(&singles)?;
        let squares: Vec<_> = singles.iter().map(|time| (time - middle).powi(2)).collect();
        Some(Self {
            mean,
            median,
            p99: singles[singles.len() * 99 / 100],
            deviation: average(&squares)?.sqrt(),
            least: 0.0,
        })
    }
}

fn average(of: &[f64]) -> Option<f64> {
    (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64)
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
    let mut work = PacketWork::new(Cost { delay: None, ..cost });
    let (mut batches, mut singles) = (Vec::new(), Vec::new());
    let begin = Instant::now();
    for (number, batch) in frames.chunks(BATCH).cycle().enumerate() {
        let start = Instant::now();
        if number % SINGLE == 0 {
            let mut before = start;
            for frame in batch {
                work.packet(frame, epoch, || epoch)?;
                let after = Instant::now();
                singles.push((after - before).as_nanos() as f64);
                before = after;
            }
        } else {
            for frame in batch {
                work.packet(frame, epoch, || epoch)?;
            }
            batches.push(start.elapsed().as_nanos() as f64 / batch.len() as f64);
        }
        if begin.elapsed() >= time && !batches.is_empty() {
            break;
        }
    }
    Raw::of(batches, singles).context("there was no time to work")
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
        assert!(large.median <= large.p99 && large.deviation > 0.0, "{large:?}");
        assert!(stamped(10).is_err() && measure(Cost::default(), &[], time).is_err());
    }

    #[test]
    fn a_distribution_is_that_of_frames_and_not_of_stalls() {
        // One in ten frames takes ten times as long, and one meets a stall of 5 ms; a batch in three was disturbed.
        let mut singles: Vec<_> =
            (0..1000).map(|number| if number % 10 == 0 { 10_000.0 } else { 1000.0 }).collect();
        singles[500] = 5e6;
        let raw = Raw::of(vec![1900.0, 2500.0, 1900.0], singles).unwrap();
        assert_eq!((raw.mean, raw.median, raw.p99), (1900.0, 1000.0, 10_000.0));
        assert!((raw.deviation - 2700.0).abs() < 20.0, "{raw:?}");
        assert_eq!(Raw::of(vec![], vec![1.0]), None);
        assert_eq!(Raw::even(7.0).deviation, 0.0);
    }
}
