//! When each frame is to leave: plans, which know neither a clock nor a wire.
//!
//! A plan is asked for the frames in their order, and answers with nanoseconds since the start. It counts from the
//! start and never from the frame before, so that it does not drift, however long it runs.

use core::time::Duration;

use netsniff_packet::Timestamp;

use crate::Random;

const NANOS_PER_SEC: u128 = 1_000_000_000;

/// A rate in thousandths of its unit a second: whole numbers, so that no plan depends on how floats are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// So many units a second; `None` for less than a thousandth.
    #[must_use]
    pub fn per_second(units: f64) -> Option<Self> {
        let milli = (units * 1000.0).round() as u64;
        (milli > 0).then_some(Self(milli))
    }

    /// So many units in a span of time; `None` where either is 0.
    #[must_use]
    pub fn of(units: u64, span: Duration) -> Option<Self> {
        let milli = u128::from(units) * NANOS_PER_SEC * 1000 / span.as_nanos().max(1);
        (milli > 0 && !span.is_zero()).then_some(Self(u64::try_from(milli).unwrap_or(u64::MAX)))
    }

    /// The rate in units a second.
    #[must_use]
    pub fn units(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// Nanoseconds that so many units take.
    fn nanos(self, units: u64) -> u64 {
        narrow(u128::from(units) * NANOS_PER_SEC * 1000 / u128::from(self.0))
    }
}

/// What the mean rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mean {
    /// So many frames a second.
    Frames(Rate),
    /// So many bits a second, of frames as they are in a capture (from the Ethernet header to the end of the payload)
    /// with so many bytes more for each.
    Bits {
        /// Bits a second on the wire.
        rate: Rate,
        /// Bytes that each frame takes beside its own, such as preamble and gap.
        overhead: u64,
    },
}

impl Mean {
    /// What a frame of so many bytes takes of it.
    const fn units(self, len: usize) -> u64 {
        match self {
            Self::Frames(_) => 1,
            Self::Bits { overhead, .. } => 8 * (len as u64 + overhead),
        }
    }

    const fn rate(self) -> Rate {
        match self {
            Self::Frames(rate) | Self::Bits { rate, .. } => rate,
        }
    }

    /// So many bits a second, of frames as they are in a capture.
    #[must_use]
    pub const fn bits(rate: Rate) -> Self {
        Self::Bits { rate, overhead: 0 }
    }
}

/// A frame that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// When it was recorded; frames that are made have any time.
    pub recorded: Timestamp,
    /// Its bytes, without frame check sequence.
    pub len: usize,
}

/// When frames are due.
#[derive(Clone, Debug)]
pub enum Plan {
    /// As the gaps were recorded, scaled.
    Recorded(Recorded),
    /// At even gaps.
    Even(Even),
    /// At random gaps.
    Poisson(Poisson),
}

impl Plan {
    /// When the next frame is due, in nanoseconds since the start; never before the one before it.
    pub fn due(&mut self, frame: &Outgoing) -> u64 {
        match self {
            Self::Recorded(plan) => plan.due(frame),
            Self::Even(plan) => plan.due(frame),
            Self::Poisson(plan) => plan.due(frame),
        }
    }

    /// The plan of recorded gaps, if it is one: it counts what it met.
    #[must_use]
    pub const fn as_recorded(&self) -> Option<&Recorded> {
        if let Self::Recorded(plan) = self { Some(plan) } else { None }
    }

    /// Notes that the same frames come again: those that were recorded follow after a gap as long as the mean of all.
    pub fn again(&mut self) {
        if let Self::Recorded(plan) = self {
            plan.again();
        }
    }
}

/// The gaps of a capture, all of them scaled alike. A frame with a time before that of an earlier one is due with that
/// ([`Steady`](crate::steady::Steady) tells where the clock of a capture was set back).
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Wanted span of time over recorded span.
    scale: (u64, u64),
    /// The longest gap that is kept, as recorded.
    longest_gap: Option<Duration>,
    /// The time of the first frame of this round, moved by what was cut off of gaps since.
    origin: Option<Timestamp>,
    /// The latest time of this round.
    latest: Timestamp,
    /// When the first frame of this round was due, and the last one.
    base: u64,
    last: u64,
    frames: u64,
    shortened: u64,
}

impl Recorded {
    /// Gaps that are `numerator` / `denominator` times as long as recorded. A gap that was recorded longer than
    /// `longest_gap` is cut to that.
    #[must_use]
    pub const fn new(numerator: u64, denominator: u64, longest_gap: Option<Duration>) -> Self {
        let denominator = if denominator == 0 { 1 } else { denominator };
        Self {
            scale: (numerator, denominator),
            longest_gap,
            origin: None,
            latest: Timestamp::MIN,
            base: 0,
            last: 0,
            frames: 0,
            shortened: 0,
        }
    }

    /// Gaps that were cut.
    #[must_use]
    pub const fn shortened(&self) -> u64 {
        self.shortened
    }

    /// When the next frame is due, in nanoseconds since the start.
    pub fn due(&mut self, frame: &Outgoing) -> u64 {
        let time = frame.recorded;
        let mut origin = *self.origin.get_or_insert(time);
        if self.frames == 0 || time >= self.latest {
            if self.frames > 0
                && let Some(longest) = self.longest_gap
                && let gap = time.nanos_since(self.latest)
                && let longest = i64::try_from(longest.as_nanos()).unwrap_or(i64::MAX)
                && gap > longest
            {
                self.shortened += 1;
                origin = origin.offset(gap - longest);
                self.origin = Some(origin);
            }
            self.latest = time;
        }
        let since = u128::from(time.nanos_since(origin).max(0).unsigned_abs());
        let scaled = since * u128::from(self.scale.0) / u128::from(self.scale.1);
        self.last = self.last.max(self.base.saturating_add(narrow(scaled)));
        self.frames += 1;
        self.last
    }

    fn again(&mut self) {
        let gaps = self.frames.saturating_sub(1).max(1);
        self.base = self.last.saturating_add((self.last - self.base) / gaps);
        (self.origin, self.latest, self.frames) = (None, Timestamp::MIN, 0);
    }
}

/// Even gaps: each frame is due when those before it have taken their time at the mean rate.
#[derive(Clone, Debug)]
pub struct Even {
    mean: Mean,
    bursts: Bursts,
    /// Frames or bits before this burst.
    sent: u64,
}

impl Even {
    /// Bursts of so many frames at once, from 1, at the mean rate.
    #[must_use]
    pub const fn new(mean: Mean, burst: u64) -> Self {
        Self { mean, bursts: Bursts::new(burst), sent: 0 }
    }

    /// When the next frame is due, in nanoseconds since the start.
    pub fn due(&mut self, frame: &Outgoing) -> u64 {
        if let Some(units) = self.bursts.take(self.mean.units(frame.len)) {
            self.sent += units;
        }
        self.mean.rate().nanos(self.sent)
    }
}

/// Random gaps as they come where many senders know nothing of each other: exponentially distributed.
#[derive(Clone, Debug)]
pub struct Poisson {
    mean: Mean,
    bursts: Bursts,
    random: Random,
    /// Picoseconds, so that rounding does not add up.
    at: u128,
}

impl Poisson {
    /// Bursts of so many frames at once, from 1, at the mean rate, by a seed.
    #[must_use]
    pub const fn new(mean: Mean, burst: u64, seed: u64) -> Self {
        Self { mean, bursts: Bursts::new(burst), random: Random::new(seed), at: 0 }
    }

    fn due(&mut self, frame: &Outgoing) -> u64 {
        if let Some(units) = self.bursts.take(self.mean.units(frame.len)) {
            let mean = units as f64 * 1e15 / self.mean.rate().0 as f64;
            self.at += (self.random.exponential() * mean).round() as u128;
        }
        narrow(self.at / 1000)
    }
}

/// Frames that leave together.
#[derive(Clone, Debug)]
struct Bursts {
    size: u64,
    /// Frames of this burst so far, and what they take of the mean rate.
    frames: u64,
    units: u64,
}

impl Bursts {
    const fn new(size: u64) -> Self {
        Self { size: if size == 0 { 1 } else { size }, frames: 0, units: 0 }
    }

    /// Takes the next frame. Where it begins another burst, returns what the one before took.
    const fn take(&mut self, units: u64) -> Option<u64> {
        let before = self.units;
        if self.frames == self.size {
            (self.frames, self.units) = (1, units);
            return Some(before);
        }
        self.frames += 1;
        self.units += units;
        None
    }
}

fn narrow(nanos: u128) -> u64 {
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
