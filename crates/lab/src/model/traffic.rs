//! A capture as traffic: when its frames come, and how long they are.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use netsniff_packet::{Batch, Progress, Source as _};

use super::TOGETHER;
use super::simulate::{Arrival, room};
use super::{Costs, raw};
use crate::load::FCS_LEN;

/// Frames of a capture that are looked at, at most: what comes after the last of them is not part of the prediction.
const MOST: usize = 4_000_000;

/// Frames that are less than this apart, in nanoseconds, are taken as one group: the kernel takes longer for them.
const NEAR: f64 = 5000.0;

/// A capture's frames. What is stored of it is which file it was, and how much was in it.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Traffic {
    /// The file.
    pub path: PathBuf,
    /// Frames that were looked at.
    pub packets: u64,
    /// Their bytes, frame check sequences included.
    pub bytes: u64,
    /// Whether the file has more.
    pub is_cut: bool,
    /// Nanoseconds from the first frame, and bytes with the frame check sequence.
    #[serde(skip)]
    frames: Vec<(u64, u32)>,
    /// Some frames themselves, to work on.
    #[serde(skip)]
    samples: Vec<Vec<u8>>,
}

impl Traffic {
    /// Reads a capture.
    ///
    /// # Errors
    ///
    /// Where it cannot be read, or has fewer than two frames, or they take no time.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let file = std::fs::File::open(path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        let reader = netsniff_pcapfile::Reader::new(file);
        let mut reader = reader.with_context(|| format!("{} is no capture", path.display()))?;
        let mut batch = Batch::default();
        let mut traffic = Self { path: path.to_owned(), ..Self::default() };
        let (mut first, mut last) = (None, 0);
        loop {
            let state = reader.read_batch(&mut batch);
            let state = state.with_context(|| format!("{} cannot be read", path.display()))?;
            for packet in batch.iter() {
                if traffic.frames.len() >= MOST {
                    traffic.is_cut = true;
                    break;
                }
                let at = packet.timestamp.nanos();
                let since = at.saturating_sub(*first.get_or_insert(at));
                // A clock that was set back stands still here.
                last = last.max(u64::try_from(since).unwrap_or(0));
                let size = packet.wire_len.saturating_add(FCS_LEN);
                traffic.frames.push((last, size));
                traffic.packets += 1;
                traffic.bytes += u64::from(size);
                if traffic.samples.len() < raw::FRAMES as usize {
                    traffic.samples.push(packet.data.to_vec());
                }
            }
            if state == Progress::End || traffic.is_cut {
                break;
            }
        }
        ensure!(last > 0, "the frames of {} take no time, so they have no rate", path.display());
        Ok(traffic)
    }

    /// Reads it again, where only what is stored of it is known.
    ///
    /// # Errors
    ///
    /// As [`Self::read`], and where it is not what it was.
    pub fn again(&self) -> anyhow::Result<Self> {
        let traffic = Self::read(&self.path)?;
        ensure!(
            (traffic.packets, traffic.bytes) == (self.packets, self.bytes),
            "{} has changed since the model was made of it",
            self.path.display()
        );
        Ok(traffic)
    }

    /// Frames a second, as they were recorded.
    #[must_use]
    pub fn rate(&self) -> f64 {
        1e9 / self.mean_gap()
    }

    /// Bytes of a frame on average, frame check sequence included.
    #[must_use]
    pub fn size(&self) -> u32 {
        u32::try_from(self.bytes / self.packets.max(1)).unwrap_or(u32::MAX)
    }

    /// Some frames themselves.
    #[must_use]
    pub fn samples(&self) -> &[Vec<u8>] {
        &self.samples
    }

    fn mean_gap(&self) -> f64 {
        let span = self.frames.last().map_or(0, |(at, _)| *at);
        span as f64 / (self.frames.len().max(2) - 1) as f64
    }

    /// Its frames again and again for some seconds, at a mean rate: with the gaps that were recorded, scaled to it, but no
    /// two frames nearer than `gap`, which is what the sender can do.
    pub(super) fn recorded(
        &self,
        (rate, seconds): (f64, f64),
        gap: f64,
        costs: Costs,
    ) -> impl Iterator<Item = Arrival> {
        let (length, mean) = (self.frames.len(), self.mean_gap());
        let scale = 1e9 / rate / mean;
        let period = mean * length as f64;
        let all = (rate * seconds) as usize;
        let at = move |number: usize| {
            let (round, frame) = (number / length, number % length);
            (round as f64 * period + self.frames[frame].0 as f64) * scale
        };
        let (mut next, mut free) = (0, 0.0_f64);
        std::iter::from_fn(move || {
            let first = (next < all).then_some(next)?;
            let begin = at(first).max(free);
            while next < all && next - first < TOGETHER as usize && at(next) - begin < NEAR {
                next += 1;
            }
            next = next.max(first + 1);
            free = begin + (next - first) as f64 * gap;
            Some(self.group(first, next, begin, costs))
        })
    }

    /// Likewise with even gaps between groups of so many frames, of which each is `gap` after the one before.
    pub(super) fn even(
        &self,
        (rate, seconds): (f64, f64),
        (burst, gap): (u32, f64),
        costs: Costs,
    ) -> impl Iterator<Item = Arrival> {
        let (burst, group) = (burst.max(1) as usize, burst.clamp(1, TOGETHER) as usize);
        let all = (rate * seconds) as usize;
        (0..all.div_ceil(group)).map(move |number| {
            let first = number * group;
            let at = (first / burst * burst) as f64 / rate * 1e9 + (first % burst) as f64 * gap;
            self.group(first, all.min(first + group), at, costs)
        })
    }

    /// Frames that come together, each counted as the mean of them.
    fn group(&self, from: usize, to: usize, at: f64, costs: Costs) -> Arrival {
        let sizes = (from..to).map(|number| self.frames[number % self.frames.len()].1);
        let frames = (to - from) as f64;
        Arrival { at, frames, room: sizes.map(room).sum::<f64>() / frames, costs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic() -> Traffic {
        let frames = vec![(0, 100), (1_000_000, 300), (1_001_000, 300), (4_000_000, 100)];
        Traffic { frames, packets: 4, bytes: 800, ..Traffic::default() }
    }

    #[test]
    fn recorded_gaps_are_scaled() {
        let traffic = traffic();
        assert_eq!((traffic.rate(), traffic.size()), (750.0, 200));
        let arrivals: Vec<_> = traffic.recorded((750.0, 0.011), 10.0, Costs::default()).collect();
        // Eight frames: two rounds, in each of which two come together.
        let seen: Vec<_> =
            arrivals.iter().map(|of| (of.at.round() as u64, of.frames as u32)).collect();
        let period = 5_333_333;
        let expected = [(0, 1), (1_000_000, 2), (4_000_000, 1)];
        let again = expected.map(|(at, frames)| (at + period, frames));
        assert_eq!(seen, [expected, again].concat());
        assert_eq!(arrivals[1].room, room(300));
        // Twice as fast: half the times.
        let faster: Vec<_> = traffic.recorded((1500.0, 0.003), 10.0, Costs::default()).collect();
        assert_eq!(faster[1].at.round(), 500_000.0);
        assert_eq!(faster.iter().map(|of| of.frames).sum::<f64>(), 4.0);
        // A sender that needs 2 ms for a frame is behind from the third one on.
        let slow: Vec<_> = traffic.recorded((750.0, 0.0054), 2e6, Costs::default()).collect();
        let times: Vec<_> = slow.iter().map(|of| of.at.round() as u64).collect();
        assert_eq!(times, [0, 2_000_000, 6_000_000]);
    }

    #[test]
    fn even_gaps_are_those_of_stamped_frames() {
        let traffic = traffic();
        let arrivals: Vec<_> = traffic.even((1000.0, 0.01), (4, 10.0), Costs::default()).collect();
        let seen: Vec<_> = arrivals.iter().map(|of| (of.at, of.frames)).collect();
        assert_eq!(seen, [(0.0, 4.0), (4e6, 4.0), (8e6, 2.0)]);
        assert_eq!(arrivals[0].room, room(200));
    }

    #[test]
    fn what_is_no_traffic_is_said() {
        let said = Traffic::read(Path::new("no/such")).unwrap_err().to_string();
        assert_eq!(said, "cannot open no/such");
    }
}
