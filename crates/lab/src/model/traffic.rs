//! A capture as traffic: when its frames come, and how long they are.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use netsniff_packet::{Batch, Packet, Progress, Source as _};
use netsniff_traffic::steady::Steady;

use super::TOGETHER;
use super::simulate::{FrameArrival, room};
use super::{Costs, raw};
use crate::load::FCS_LEN;

/// Frames of a capture whose times and lengths are held, at most: of a longer one its beginning is taken again and again.
const MOST: usize = 4_000_000;

/// The longest frame that interfaces of the testbed take, without its frame check sequence: longer ones are not sent.
const LONGEST: u32 = 1514;

/// Frames that are less than this apart, in nanoseconds, are taken as one group: the kernel takes longer for them.
const NEAR: f64 = 5000.0;

/// A capture's frames, as `netsniff replay` sends them. What is stored of it is which file it was, and what was in it.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Traffic {
    /// Path of the capture.
    pub path: PathBuf,
    /// Frames that can be sent.
    pub packets: u64,
    /// Their bytes, frame check sequences included.
    pub bytes: u64,
    /// Nanoseconds from the first to the last of them.
    pub span: u64,
    /// Frames that are too long to be sent.
    pub left_out: u64,
    /// Nanoseconds from the first frame, and bytes with the frame check sequence, of as many as are held.
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
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut traffic = Self { path, ..Self::default() };
        let (mut steady, mut first) = (Steady::default(), None);
        loop {
            let state = reader.read_batch(&mut batch);
            let state =
                state.with_context(|| format!("{} cannot be read", traffic.path.display()))?;
            for packet in batch.iter() {
                let at = steady.at(packet.timestamp).nanos();
                let since = at.saturating_sub(*first.get_or_insert(at));
                traffic.add(u64::try_from(since).unwrap_or(0), &packet);
            }
            if state == Progress::End {
                break;
            }
        }
        let path = traffic.path.display();
        ensure!(traffic.span > 0, "the frames of {path} take no time, so they have no rate");
        Ok(traffic)
    }

    fn add(&mut self, at: u64, packet: &Packet<'_>) {
        if packet.wire_len > LONGEST {
            self.left_out += 1;
            return;
        }
        let size = packet.wire_len.saturating_add(FCS_LEN);
        self.packets += 1;
        self.bytes += u64::from(size);
        self.span = at;
        if self.frames.len() < MOST {
            self.frames.push((at, size));
        }
        if self.samples.len() < raw::FRAMES as usize {
            let mut sample = packet.data.to_vec();
            // What was cut when it was recorded is sent as zeros.
            sample.resize(packet.wire_len as usize, 0);
            self.samples.push(sample);
        }
    }

    /// Whether the file has more frames than are held.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        (self.frames.len() as u64) < self.packets
    }

    /// Whether it is of the same file, with the same in it.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.packets, it.bytes, it.span);
        self.path == other.path && of(self) == of(other)
    }

    /// Reads it again, where only what is stored of it is known.
    ///
    /// # Errors
    ///
    /// As [`Self::read`], and where it is not what it was.
    pub fn again(&self) -> anyhow::Result<Self> {
        let traffic = Self::read(&self.path)?;
        ensure!(
            traffic.is(self),
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

    /// Frames of the capture, to be sent in calibrations.
    #[must_use]
    pub fn samples(&self) -> &[Vec<u8>] {
        &self.samples
    }

    fn mean_gap(&self) -> f64 {
        self.span as f64 / (self.packets.max(2) - 1) as f64
    }

    /// Nanoseconds after which the frames that are held come again: the mean gap after the last of them.
    fn period(&self) -> f64 {
        self.frames.last().map_or(0.0, |(at, _)| *at as f64) + self.mean_gap()
    }

    /// How many frames come in some seconds with the gaps that were recorded, scaled to a mean rate: bursts and pauses make
    /// it more or less than that rate says.
    #[must_use]
    pub fn due(&self, rate: f64, seconds: f64) -> f64 {
        let time = seconds * rate * self.mean_gap();
        let (period, rounds) = (self.period(), (time / self.period()).floor());
        let rest = time - rounds * period;
        let begun = self.frames.partition_point(|(at, _)| (*at as f64) < rest);
        rounds * self.frames.len() as f64 + begun as f64
    }

    /// Its frames again and again for some seconds, at a mean rate: with the gaps that were recorded, scaled to it, but no
    /// two frames nearer than `gap`, which is what the sender can do.
    pub(super) fn recorded(
        &self,
        (rate, seconds): (f64, f64),
        gap: f64,
        costs: Costs,
    ) -> impl Iterator<Item = FrameArrival> {
        let (length, period, end) = (self.frames.len(), self.period(), seconds * 1e9);
        let scale = 1e9 / rate / self.mean_gap();
        let at = move |number: usize| {
            let (round, frame) = (number / length, number % length);
            (round as f64 * period + self.frames[frame].0 as f64) * scale
        };
        let (mut next, mut free) = (0, 0.0_f64);
        std::iter::from_fn(move || {
            let first = (at(next) < end).then_some(next)?;
            let begin = at(first).max(free);
            let last = (begin + NEAR).min(end);
            while next - first < TOGETHER as usize && at(next) < last {
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
    ) -> impl Iterator<Item = FrameArrival> {
        let (burst, group) = (burst.max(1) as usize, burst.clamp(1, TOGETHER) as usize);
        let all = (rate * seconds) as usize;
        (0..all.div_ceil(group)).map(move |number| {
            let first = number * group;
            let at = (first / burst * burst) as f64 / rate * 1e9 + (first % burst) as f64 * gap;
            self.group(first, all.min(first + group), at, costs)
        })
    }

    /// Frames that come together, each counted as the mean of them.
    fn group(&self, from: usize, to: usize, at: f64, costs: Costs) -> FrameArrival {
        let sizes = (from..to).map(|number| self.frames[number % self.frames.len()].1);
        let frames = (to - from) as f64;
        FrameArrival { at, frames, room: sizes.map(room).sum::<f64>() / frames, costs }
    }
}

#[cfg(test)]
mod tests {
    use netsniff_packet::{LinkType, Timestamp};

    use super::*;

    fn traffic() -> Traffic {
        let frames = vec![(0, 100), (1_000_000, 300), (1_001_000, 300), (4_000_000, 100)];
        Traffic { frames, packets: 4, bytes: 800, span: 4_000_000, ..Traffic::default() }
    }

    #[test]
    fn recorded_gaps_are_scaled() {
        let traffic = traffic();
        assert_eq!((traffic.rate(), traffic.size()), (750.0, 200));
        let arrivals: Vec<_> = traffic.recorded((750.0, 0.0105), 10.0, Costs::default()).collect();
        // Eight frames: two rounds, in each of which two come together.
        let seen: Vec<_> =
            arrivals.iter().map(|of| (of.at.round() as u64, of.frames as u32)).collect();
        let period = 5_333_333;
        let expected = [(0, 1), (1_000_000, 2), (4_000_000, 1)];
        let again = expected.map(|(at, frames)| (at + period, frames));
        assert_eq!(seen, [expected, again].concat());
        assert_eq!(arrivals[1].room, room(300));
        // Twice as fast: half the times.
        let faster: Vec<_> = traffic.recorded((1500.0, 0.0026), 10.0, Costs::default()).collect();
        assert_eq!(faster[1].at.round(), 500_000.0);
        assert_eq!(faster.iter().map(|of| of.frames).sum::<f64>(), 4.0);
        assert_eq!(traffic.due(1500.0, 0.0026), 4.0);
        // What comes in a part of the time is what came then, and not what the mean rate says.
        for (seconds, frames) in [(0.0005, 1.0), (0.0011, 3.0), (0.0039, 3.0), (0.0064, 7.0)] {
            let part = traffic.recorded((750.0, seconds), 10.0, Costs::default());
            assert_eq!(part.map(|of| of.frames).sum::<f64>(), frames, "{seconds} s");
            assert_eq!(traffic.due(750.0, seconds), frames, "{seconds} s");
        }
        // A sender that needs 2 ms for a frame is behind from the third one on.
        let slow: Vec<_> = traffic.recorded((750.0, 0.0053), 2e6, Costs::default()).collect();
        let times: Vec<_> = slow.iter().map(|of| of.at.round() as u64).collect();
        assert_eq!(times, [0, 2_000_000, 6_000_000]);
    }

    #[test]
    fn even_gaps_are_those_of_stamped_frames() {
        let traffic = traffic();
        let arrivals: Vec<_> = traffic.even((1000.0, 0.01), (4, 10.0), Costs::default()).collect();
        let seen: Vec<_> = arrivals.iter().map(|of| (of.at, of.frames)).collect();
        assert_eq!(seen, [(0.0, 4.0), (4e6, 4.0), (8e6, 2.0)]);
        assert_eq!(arrivals[0].room, f64::midpoint(room(100), room(300)));
    }

    #[test]
    fn frames_are_those_that_are_sent() {
        let packet = |wire_len: u32, data: &'static [u8]| {
            let timestamp = Timestamp::from_nanos(0);
            Packet { timestamp, data, wire_len, link_type: LinkType::ETHERNET, interface: 0 }
        };
        let mut traffic = Traffic::default();
        traffic.add(0, &packet(100, &[1, 2, 3]));
        traffic.add(5, &packet(1515, &[0; 1515]));
        traffic.add(7, &packet(1514, &[0; 1514]));
        assert_eq!((traffic.packets, traffic.left_out, traffic.bytes), (2, 1, 1622));
        assert_eq!((traffic.span, traffic.is_cut()), (7, false));
        // Cut when it was recorded, and filled up with zeros.
        assert_eq!((traffic.samples[0].len(), &traffic.samples[0][..4]), (100, &[1, 2, 3, 0][..]));
        let later = Traffic { span: 8, ..traffic.clone() };
        assert!(traffic.is(&traffic.clone()) && !traffic.is(&later));
        let long = Traffic { packets: 3, ..traffic };
        assert!(long.is_cut());
    }

    #[test]
    fn what_is_no_traffic_is_said() {
        let said = Traffic::read(Path::new("no/such")).unwrap_err().to_string();
        assert_eq!(said, "cannot open no/such");
    }
}
