//! A slower disk, planted: what a tool writes is taken at a rate, and now and then not at all.
//!
//! The tool's file is a FIFO, and what comes out of it is taken as such a disk would take it, and counted. So there is no
//! disk, but a schedule, and all queues before it are known: the pipe, and what the tool has of its own.

mod drain;

use std::time::Duration;

pub(crate) use self::drain::Drain;
pub use self::drain::Written;
use crate::tools::bytes;

/// Bytes that the pipe holds which the disk takes them from.
pub const PIPE: u64 = 64 << 10;

/// The slowest disk, in bytes a second: with less a tool has hardly begun its file when a run is over.
const SLOWEST: u64 = 64 << 10;

/// The longest period of stalls, and their period where none is given.
const LONGEST: Duration = Duration::from_secs(3600);
const PERIOD: Duration = Duration::from_secs(2);

/// How a disk takes what is written to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Disk {
    /// Bytes a second; `None` for all that comes.
    pub rate: Option<u64>,
    /// When it takes nothing.
    pub stall: Option<Stall>,
}

/// The last part of every period, counted from when frames are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Stall {
    /// How long nothing is taken.
    pub length: Duration,
    /// In how long a time.
    pub period: Duration,
}

impl Disk {
    /// The same with another value of a setting: `disk`, bytes a second, or `disk-stall`, as `500ms/2s`; `off` takes it
    /// back. `None` for a disk that nothing is planted in, as memory is.
    ///
    /// # Errors
    ///
    /// A sentence, where it has no such value.
    pub(crate) fn with(
        disk: Option<Self>,
        name: &str,
        value: &str,
    ) -> Option<Result<Option<Self>, String>> {
        let mut disk = disk.unwrap_or_default();
        let result = match name {
            "disk" => rate(value).map(|rate| disk.rate = rate),
            "disk-stall" => Stall::parse(value).map(|stall| disk.stall = stall),
            _ => return None,
        };
        Some(result.map(|()| (disk != Self::default()).then_some(disk)))
    }

    /// One line of text for reports.
    #[must_use]
    pub fn words(&self) -> String {
        let rate = self.rate.map(|rate| format!("of {:.1} MB a second", rate as f64 / 1e6));
        let stall = self.stall.map(|Stall { length, period }| {
            format!("that takes nothing for the last {length:?} of every {period:?}")
        });
        let parts = ["a disk".to_owned()].into_iter().chain(rate).chain(stall);
        parts.collect::<Vec<_>>().join(" ")
    }

    /// The first time from this one on at which it takes something.
    fn open(&self, at: Duration) -> Duration {
        self.stall.filter(|stall| stall.left(at).is_none()).map_or(at, |stall| stall.end(at))
    }

    /// When it has written so many bytes that it begins with at a time.
    fn done(&self, at: Duration, bytes: u64) -> Duration {
        let Some(rate) = self.rate else { return at };
        let mut needed = Duration::from_secs_f64(bytes as f64 / rate as f64);
        let mut at = self.open(at);
        while let Some(left) = self.stall.and_then(|stall| stall.left(at))
            && left <= needed
        {
            needed -= left;
            at = self.open(at + left);
        }
        at + needed
    }

    /// Bytes that it takes at once at most: what it writes in a hundredth of a second, so that nothing waits in it that is
    /// in no queue any more.
    fn piece(&self) -> usize {
        let most = self.rate.map_or(PIPE, |rate| (rate / 100).min(PIPE));
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    /// What is lost before it, by arithmetic: a stream that never pauses flows into queues, and what they have no room
    /// for is lost.
    #[must_use]
    pub fn loses(&self, stream: &Stream) -> f64 {
        const STEP: Duration = Duration::from_millis(1);
        let (mut waiting, mut lost, mut time) = (0.0_f64, 0.0, Duration::ZERO);
        let comes = stream.packets * STEP.as_secs_f64();
        while time < stream.time {
            let is_open = self.stall.is_none_or(|stall| stall.left(time).is_some());
            let taken = match self.rate {
                _ if !is_open => 0.0,
                None => f64::INFINITY,
                Some(rate) => rate as f64 * STEP.as_secs_f64() / stream.bytes,
            };
            waiting = (waiting + comes - taken).max(0.0);
            let over = (waiting - stream.room).max(0.0);
            waiting -= over;
            lost += over;
            time += STEP;
        }
        lost / (stream.packets * stream.time.as_secs_f64())
    }
}

/// What flows to a disk.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// The rate in packets a second.
    pub packets: f64,
    /// Bytes of each in the file.
    pub bytes: f64,
    /// Packets that all queues before the disk hold together.
    pub room: f64,
    /// How long it flows.
    pub time: Duration,
}

impl Stall {
    /// `500ms/2s`, or `500ms` in the usual period; `None` for `off`.
    fn parse(text: &str) -> Result<Option<Self>, String> {
        if text == "off" {
            return Ok(None);
        }
        let (length, period) =
            text.split_once('/').map_or((text, None), |(one, other)| (one, Some(other)));
        let stall = Self { length: time(length)?, period: period.map_or(Ok(PERIOD), time)? };
        if stall.length.is_zero() || stall.length >= stall.period || stall.period > LONGEST {
            return Err(format!(
                "{text:?} is no stall: it is a time in a longer one of an hour at most, as 500ms/2s"
            ));
        }
        Ok(Some(stall))
    }

    /// How far a time is in its period.
    fn within(self, at: Duration) -> Duration {
        let nanos = at.as_nanos() % self.period.as_nanos();
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How long it is from a time until the next one begins; `None` within one.
    fn left(self, at: Duration) -> Option<Duration> {
        let left = (self.period - self.length).checked_sub(self.within(at))?;
        (!left.is_zero()).then_some(left)
    }

    /// When the period ends that a time is in, and its stall with it.
    fn end(self, at: Duration) -> Duration {
        at + (self.period - self.within(at))
    }
}

/// Bytes a second; `None` for `off`.
fn rate(text: &str) -> Result<Option<u64>, String> {
    if text == "off" {
        return Ok(None);
    }
    match bytes(text).filter(|rate| *rate >= SLOWEST) {
        Some(rate) => Ok(Some(rate)),
        None => Err(format!(
            "{text:?} is no speed of a disk: it is bytes a second, 64K or more, as 20M, or off"
        )),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let unit = match &text[digits.len()..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => f64::NAN,
    };
    let seconds = digits.parse::<f64>().unwrap_or(f64::NAN) * unit;
    let time = Duration::try_from_secs_f64(seconds);
    time.map_err(|_| format!("{text:?} is no time: it has a unit, as 500ms or 2s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(settings: &[(&str, &str)]) -> Option<Disk> {
        let with = |disk, (name, value): &(&str, &str)| Disk::with(disk, name, value).unwrap();
        settings.iter().fold(None, |disk, setting| with(disk, setting).unwrap())
    }

    const fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    #[test]
    fn settings_make_a_disk_and_take_it_back() {
        let both = disk(&[("disk", "20M"), ("disk-stall", "500ms/2s")]).unwrap();
        assert_eq!(both.rate, Some(20 << 20));
        assert_eq!(both.stall, Some(Stall { length: ms(500), period: ms(2000) }));
        assert_eq!(
            both.words(),
            "a disk of 21.0 MB a second that takes nothing for the last 500ms of every 2s"
        );
        assert_eq!(disk(&[("disk-stall", "250ms")]), disk(&[("disk-stall", "250ms/2s")]));
        assert_eq!(disk(&[("disk", "20M"), ("disk", "off"), ("disk-stall", "off")]), None);
        for wrong in ["", "0", "63K", "20MB", "-1", "fast"] {
            assert!(Disk::with(None, "disk", wrong).unwrap().is_err(), "{wrong}");
        }
        for wrong in ["", "500", "0s", "2s", "2s/2s", "1s/2h", "1s/3601s", "x/2s", "-1s", "1ms/"] {
            assert!(Disk::with(None, "disk-stall", wrong).unwrap().is_err(), "{wrong}");
        }
        assert!(Disk::with(None, "queues", "1").is_none());
    }

    #[test]
    fn stalls_are_at_the_end_of_periods() {
        let disk = disk(&[("disk-stall", "500ms/2s")]).unwrap();
        for (at, open) in
            [(0, 0), (1499, 1499), (1500, 2000), (1999, 2000), (2000, 2000), (5600, 6000)]
        {
            assert_eq!(disk.open(ms(at)), ms(open), "{at}");
        }
        assert_eq!(disk.done(ms(100), 1 << 40), ms(100), "it takes all that comes");
    }

    #[test]
    fn a_write_takes_its_time_and_that_of_the_stalls_in_it() {
        let slow = disk(&[("disk", "1M")]).unwrap();
        assert_eq!(slow.done(ms(7), 1 << 19), ms(507));
        let both = disk(&[("disk", "1M"), ("disk-stall", "500ms/2s")]).unwrap();
        assert_eq!(both.done(ms(1000), 1 << 18), ms(1250));
        assert_eq!(both.done(ms(1000), 1 << 20), ms(2500));
        assert_eq!(both.done(ms(1700), 1 << 18), ms(2250), "it begins after the stall");
        // 6 s of work in periods that have 1.5 s of it.
        assert_eq!(both.done(ms(0), 6 << 20), ms(8000));
    }

    #[test]
    fn arithmetic_knows_what_is_lost() {
        let stream = Stream { packets: 20_000.0, bytes: 500.0, room: 4000.0, time: ms(4000) };
        let lost = |settings: &[(&str, &str)]| disk(settings).unwrap().loses(&stream);
        let is_about = |one: f64, other: f64| (one - other).abs() < 0.001;
        // 10,000 come in each stall, and 4,000 of them have room.
        assert!(is_about(lost(&[("disk-stall", "500ms/2s")]), 12_000.0 / 80_000.0));
        assert_eq!(lost(&[("disk-stall", "190ms/2s")]), 0.0);
        // 10 MB come in a second and 8 MiB are taken; 2 MB of the rest wait in the end.
        let share = 1.0 - f64::from(8 << 20) / 1e7 - 4000.0 / 80_000.0;
        assert!(is_about(lost(&[("disk", "8M")]), share), "{share}");
        assert_eq!(lost(&[("disk", "10M")]), 0.0);
    }
}
