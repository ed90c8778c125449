//! How an application waits for blocks, and how long it takes until it reads on.

use std::time::Duration;

use anyhow::Context as _;
use netsniff_traffic::Random;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use crate::host::process;

/// How long a thread sleeps between two looks, in nanoseconds: long enough for the processor to be idle.
const SLEPT: i64 = 1_000_000;

/// How long it took until a thread that slept went on, after what it waited for.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Wakes {
    /// How long each pause was; nanoseconds.
    pub lengths: Vec<u64>,
}

impl Wakes {
    /// What so many of them stay below, as a share of all; `None` where there are none.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let mut lengths = self.lengths.clone();
        lengths.sort_unstable();
        let last = lengths.len().checked_sub(1)?;
        lengths.get((share * last as f64).round() as usize).copied()
    }

    /// One of them, by chance; 0 where there are none.
    fn draw(&self, chance: &mut Random) -> f64 {
        let number = chance.below(self.lengths.len() as u64) as usize;
        self.lengths.get(number).map_or(0.0, |&length| length as f64)
    }
}

/// Lets a timer wake a thread on a processor, again and again for so long: the interrupt of a timer wakes who sleeps as
/// that of a frame does.
///
/// # Errors
///
/// Where no thread can run on it, or there are no timers.
pub fn measure(processor: usize, time: Duration) -> anyhow::Result<Wakes> {
    let measured = move || -> anyhow::Result<Wakes> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC);
        let timer = timer.context("there is no timer")?;
        let end = now() + i64::try_from(time.as_nanos())?;
        let mut wakes = Wakes::default();
        while now() < end {
            let due = now() + SLEPT;
            let it_value = Timespec { tv_sec: due / 1_000_000_000, tv_nsec: due % 1_000_000_000 };
            let once = Itimerspec { it_value, it_interval: Timespec::default() };
            timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &once)
                .context("cannot set a timer")?;
            rustix::io::read(&timer, &mut [0_u8; 8]).context("cannot wait for a timer")?;
            wakes.lengths.push(u64::try_from(now() - due).unwrap_or(0));
        }
        Ok(wakes)
    };
    process::on_processor(processor, measured)?
}

fn now() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// How netsniff's tools wait unless told: they look for a moment, sleep once for as long as an eighth of the ring takes to
/// fill where that is neither short nor long, and then let the kernel wake them. All in nanoseconds.
const SPIN: f64 = 5e3;
const SHORTEST: f64 = 100e3;
const LONGEST: f64 = 10e6;
const SHARE: u64 = 8;

/// Over how long they look how fast blocks come.
const STRETCH: f64 = 1e6;

/// An application that waits so.
#[derive(Debug)]
pub(super) struct Waiter<'a> {
    wakes: &'a Wakes,
    /// Blocks that fill while it sleeps.
    blocks: f64,
    /// How long a block takes to fill, by the last ones.
    per_block: Option<f64>,
    /// When it was looked how fast blocks come, and blocks since then.
    looked: Option<f64>,
    found: f64,
    /// Since when there is nothing to read, and until when it sleeps whatever comes; `None` while it reads, or is woken.
    idle: Option<(f64, Option<f64>)>,
    /// When it reads on.
    reads_from: f64,
}

impl<'a> Waiter<'a> {
    /// An application that waits for the first block of a ring of so many. Where nothing is known of how it wakes, it reads
    /// at once.
    pub(super) fn new(wakes: &'a Wakes, blocks: u64) -> Self {
        Self {
            wakes,
            // Where the ring has fewer, this is no nap.
            blocks: (blocks / SHARE) as f64,
            per_block: None,
            looked: None,
            found: 0.0,
            idle: Some((f64::NEG_INFINITY, None)),
            reads_from: f64::NEG_INFINITY,
        }
    }

    /// When it reads on, or has done so.
    pub(super) const fn reads_from(&self) -> f64 {
        self.reads_from
    }

    /// It has read a block.
    pub(super) fn has_read(&mut self, now: f64) {
        self.found += 1.0;
        let Some(looked) = self.looked else {
            (self.looked, self.found) = (Some(now), 0.0);
            return;
        };
        let elapsed = now - looked;
        if elapsed >= STRETCH {
            let per_block = elapsed / self.found;
            self.per_block =
                Some(self.per_block.map_or(per_block, |old| f64::midpoint(old, per_block)));
            (self.looked, self.found) = (Some(now), 0.0);
        }
    }

    /// It has nothing to read.
    pub(super) fn idles(&mut self, now: f64) {
        if self.idle.is_none() {
            let nap = self.per_block.filter(|per_block| *per_block < LONGEST);
            let nap = nap.map(|per_block| (per_block * self.blocks).min(LONGEST));
            let nap = nap.filter(|nap| *nap >= SHORTEST);
            self.idle = Some((now, nap.map(|nap| now + SPIN + nap)));
        }
    }

    /// A block is ready.
    pub(super) fn is_ready(&mut self, now: f64, chance: &mut Random) {
        let Some((since, sleeps)) = self.idle.take() else { return };
        if self.wakes.lengths.is_empty() || now < since + SPIN {
            return;
        }
        self.reads_from = sleeps.unwrap_or(now).max(now) + self.wakes.draw(chance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wakes(lengths: &[u64]) -> Wakes {
        Wakes { lengths: lengths.to_vec() }
    }

    #[test]
    fn timers_tell_how_long_waking_takes() {
        let wakes = measure(0, Duration::from_millis(60)).unwrap();
        assert!((2..=60).contains(&wakes.lengths.len()), "{wakes:?}");
        let [median, p99] = [0.5, 0.99].map(|share| wakes.quantile(share).unwrap());
        assert!(median > 0 && median <= p99, "{wakes:?}");
        assert!(measure(100_000, Duration::from_millis(1)).is_err());
    }

    #[test]
    fn quantiles_are_of_all() {
        let known = wakes(&[50, 10, 30, 20, 40]);
        assert_eq!([0.0, 0.5, 1.0].map(|share| known.quantile(share)), [10, 30, 50].map(Some));
        assert_eq!(Wakes::default().quantile(0.5), None);
        let mut chance = Random::new(1);
        let drawn: Vec<_> = (0..100).map(|_| known.draw(&mut chance)).collect();
        assert!([10.0, 20.0, 30.0, 40.0, 50.0].iter().all(|one| drawn.contains(one)), "{drawn:?}");
    }

    #[test]
    fn who_sleeps_reads_on_later() {
        let (known, mut chance) = (wakes(&[70_000]), Random::new(1));
        let mut waiter = Waiter::new(&known, 64);
        waiter.is_ready(1e6, &mut chance);
        assert_eq!(waiter.reads_from(), 1_070_000.0, "the kernel wakes it");
        // Another block while it wakes, or reads, changes nothing.
        waiter.is_ready(2e6, &mut chance);
        assert_eq!(waiter.reads_from(), 1_070_000.0);
        // What comes while it still looks is read at once.
        waiter.idles(3e6);
        waiter.is_ready(3e6 + 4e3, &mut chance);
        assert_eq!(waiter.reads_from(), 1_070_000.0);
        // Nothing is known.
        let unknown = Wakes::default();
        let mut waiter = Waiter::new(&unknown, 64);
        waiter.is_ready(1e6, &mut chance);
        assert_eq!(waiter.reads_from(), f64::NEG_INFINITY);
    }

    #[test]
    fn who_knows_how_fast_blocks_come_sleeps_for_some_of_them() {
        let (known, mut chance) = (wakes(&[70_000]), Random::new(1));
        // So many blocks, of which one comes in so many milliseconds; until when it sleeps, and when it reads on.
        for (blocks, each, sleeps) in
            [(64, 1.0, 8.0), (8, 3.0, 3.0), (2, 3.0, 0.0), (8, 12.0, 0.0), (8, 0.01, 0.0)]
        {
            let mut waiter = Waiter::new(&known, blocks);
            waiter.is_ready(0.0, &mut chance);
            let last = (0..2000)
                .map(|number| f64::from(number) * each * 1e6)
                .inspect(|now| waiter.has_read(*now));
            let last = last.last().unwrap();
            waiter.idles(last);
            waiter.is_ready(last + 6e3, &mut chance);
            let expected = if sleeps > 0.0 { SPIN + sleeps * 1e6 } else { 6e3 } + 70e3;
            assert!((waiter.reads_from() - last - expected).abs() < 10.0, "{blocks} {each}");
        }
    }
}
