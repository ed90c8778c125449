//! When a recording goes on in a new file, and which of its files stay.

use core::str::FromStr;

use netsniff_console::quantity;
use netsniff_output::Keep;
use netsniff_packet::Timestamp;

/// The rules by which files end and are removed, as dumpcap's `-b` has them. Without any, one file
/// takes everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// A file ends once it has so many bytes, before packing.
    pub file_bytes: Option<u64>,
    /// A file ends once it has so many packets.
    pub packets: Option<u64>,
    /// A file ends so many nanoseconds after its first packet.
    pub duration: Option<i64>,
    /// A file ends where the time passes a multiple of so many nanoseconds.
    pub interval: Option<i64>,
    /// So many files stay; the oldest is removed before another is begun.
    pub files: Option<u64>,
    /// All files together stay below so many bytes, as they are on the disk; the oldest are removed.
    pub quota: Option<u64>,
}

/// The part of a quota that one file may have, since the file that is written cannot be removed.
const QUOTA_SHARE: u64 = 4;
/// A quota below would hold no more than what waits to be written.
const LEAST_QUOTA: u64 = 4_000_000;

/// One rule, as `duration:60` or `filesize:100MB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule(Rotation);

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once(':').ok_or("write it as NAME:VALUE, duration:60")?;
        let count = || quantity::at_least_one(value).map(|count| count as u64);
        let mut rule = Rotation::default();
        match name {
            "duration" => rule.duration = Some(seconds(value)?),
            "interval" => rule.interval = Some(seconds(value)?),
            "filesize" => rule.file_bytes = Some(file_size(value)?),
            "packets" => rule.packets = Some(count()?),
            "files" => rule.files = Some(count()?),
            "quota" => rule.quota = Some(quota(value)?),
            _ => {
                let names = "duration, interval, filesize, packets, files and quota";
                return Err(format!("{name:?} is none of {names}"));
            }
        }
        Ok(Self(rule))
    }
}

fn seconds(text: &str) -> Result<i64, String> {
    let span = quantity::interval(text)?;
    i64::try_from(span.as_nanos()).map_err(|_| format!("{text:?} is more than 292 years"))
}

/// A bare number counts kilobytes, as dumpcap has it.
fn file_size(text: &str) -> Result<u64, String> {
    let bytes = match text.parse::<u64>() {
        Ok(kilobytes) => kilobytes.saturating_mul(1000),
        Err(_) => quantity::size(text)? as u64,
    };
    if bytes == 0 { Err("a file has at least a byte".to_owned()) } else { Ok(bytes) }
}

fn quota(text: &str) -> Result<u64, String> {
    match quantity::size(text)? as u64 {
        bytes if bytes >= LEAST_QUOTA => Ok(bytes),
        _ => Err("a quota has at least 4MB".to_owned()),
    }
}

impl Rotation {
    /// All rules together; of rules with the same name the last one holds.
    #[must_use]
    pub fn of_rules(rules: &[Rule]) -> Self {
        let mut all = Self::default();
        for Rule(rule) in rules {
            all.file_bytes = rule.file_bytes.or(all.file_bytes);
            all.packets = rule.packets.or(all.packets);
            all.duration = rule.duration.or(all.duration);
            all.interval = rule.interval.or(all.interval);
            all.files = rule.files.or(all.files);
            all.quota = rule.quota.or(all.quota);
        }
        all
    }

    /// Whether there may be more than one file.
    #[must_use]
    pub fn is_on(&self) -> bool {
        *self != Self::default()
    }

    /// Whether nothing would ever begin a second file.
    #[must_use]
    pub fn never_ends_a_file(&self) -> bool {
        self.files.is_some() && Self { files: None, ..*self } == Self::default()
    }

    /// Which of the files stay that have ended.
    #[must_use]
    pub fn keep(&self) -> Keep {
        Keep { files: self.files, bytes: self.quota, ..Keep::default() }
    }

    /// Bytes after which a file ends: a quota asks for several files.
    fn most_bytes(&self) -> u64 {
        let share = self.quota.map_or(u64::MAX, |quota| quota / QUOTA_SHARE);
        self.file_bytes.unwrap_or(u64::MAX).min(share)
    }
}

/// How far the file is that is being written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    most_bytes: u64,
    most_packets: u64,
    duration: Option<i64>,
    interval: Option<i64>,
    bytes: u64,
    packets: u64,
    /// Time of its first packet.
    began: Timestamp,
}

impl Progress {
    pub(super) fn new(rotation: &Rotation) -> Self {
        Self {
            most_bytes: rotation.most_bytes(),
            most_packets: rotation.packets.unwrap_or(u64::MAX),
            duration: rotation.duration,
            interval: rotation.interval,
            bytes: 0,
            packets: 0,
            began: Timestamp::EPOCH,
        }
    }

    /// A new file, with `bytes` before its first packet.
    pub(super) fn begin(&mut self, bytes: usize) {
        (self.bytes, self.packets) = (bytes as u64, 0);
    }

    /// A packet of the file, with the bytes that it takes there.
    #[inline]
    pub(super) fn add(&mut self, bytes: usize, time: Timestamp) {
        if self.packets == 0 {
            self.began = time;
        }
        self.packets += 1;
        self.bytes += bytes as u64;
    }

    /// Whether what comes at `time` belongs into the next file. No file is left without packets.
    #[inline]
    pub(super) fn is_over(&self, time: Timestamp) -> bool {
        self.packets > 0
            && (self.bytes >= self.most_bytes
                || self.packets >= self.most_packets
                || self.is_over_by_time(time))
    }

    #[inline]
    pub(super) fn is_over_by_time(&self, time: Timestamp) -> bool {
        let by_duration = |duration| time.nanos_since(self.began) >= duration;
        // Late packets stay where they come.
        let by_interval =
            |interval| time.nanos().div_euclid(interval) > self.began.nanos().div_euclid(interval);
        self.packets > 0
            && (self.duration.is_some_and(by_duration) || self.interval.is_some_and(by_interval))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rotation(rules: &[&str]) -> Rotation {
        Rotation::of_rules(&rules.iter().map(|rule| rule.parse().unwrap()).collect::<Vec<_>>())
    }

    #[test]
    fn rules_are_those_of_dumpcap() {
        let found =
            rotation(&["filesize:10", "duration:1.5", "interval:60", "packets:7", "files:3"]);
        let expected = Rotation {
            file_bytes: Some(10_000),
            packets: Some(7),
            duration: Some(1_500_000_000),
            interval: Some(60_000_000_000),
            files: Some(3),
            quota: None,
        };
        assert_eq!(found, expected);
        assert_eq!(rotation(&["filesize:10MB", "quota:4GiB"]).file_bytes, Some(10_000_000));
        for wrong in
            ["files", "files:0", "filesize:0", "duration:-1", "duration:9999999999999", "quota:1k"]
        {
            assert!(wrong.parse::<Rule>().is_err(), "{wrong}");
        }
        assert!(rotation(&["files:3"]).never_ends_a_file());
        assert!(!rotation(&["files:3", "packets:1"]).never_ends_a_file());
    }

    #[test]
    fn a_file_is_over_by_the_first_rule_that_holds() {
        let at = |seconds| Timestamp::from_secs_nanos(seconds, 0);
        let began = |rules: &[&str]| {
            let mut progress = Progress::new(&rotation(rules));
            progress.begin(100);
            assert!(!progress.is_over(at(1_000_000)), "an empty file ended");
            progress.add(60, at(95));
            progress
        };
        assert!(!began(&["filesize:161b"]).is_over(at(95)));
        assert!(began(&["filesize:160b"]).is_over(at(95)));
        assert!(began(&["packets:1"]).is_over(at(95)));
        assert!(!began(&["duration:10"]).is_over(at(104)));
        assert!(began(&["duration:10"]).is_over(at(105)));
        assert!(!began(&["interval:10"]).is_over(at(99)));
        assert!(began(&["interval:10"]).is_over(at(100)));
        assert!(!began(&["interval:10"]).is_over(at(80)));
    }
}
