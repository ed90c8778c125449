//! When logs roll, and the names that rolled logs get.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use netsniff_console::calendar::Date;
use netsniff_packet::Timestamp;

use crate::format::digits;

/// Logs of one name whose times are the same second, beyond which it is not worth looking for a name.
const MAX_NUMBER: u32 = 1_000_000;

/// When the logs of a run roll that goes on for long. On request they always do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roll {
    /// All logs together, at each multiple of this time since the epoch.
    pub every: Option<Duration>,
    /// A log alone, before it has more bytes than this.
    pub size: Option<u64>,
}

/// When all logs roll next by time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    every: i64,
    next: i64,
}

impl Schedule {
    /// Nothing is due at `now`.
    pub(super) fn new(every: Duration, now: Timestamp) -> Self {
        let every = i64::try_from(every.as_nanos()).unwrap_or(i64::MAX).max(1);
        Self { every, next: multiple_after(now.nanos(), every) }
    }

    /// Whether logs are to roll at `now`, of which it tells once.
    pub(super) const fn is_due(&mut self, now: Timestamp) -> bool {
        let now = now.nanos();
        let is_due = now >= self.next;
        // A clock that was set back far would put off the next roll as far; one that was set back by
        // little must not roll twice at one multiple.
        if is_due || now < self.next.saturating_sub(self.every.saturating_mul(2)) {
            self.next = multiple_after(now, self.every);
        }
        is_due
    }
}

const fn multiple_after(now: i64, every: i64) -> i64 {
    now.saturating_sub(now.rem_euclid(every)).saturating_add(every)
}

/// Renames the logs of one path, `conn` for one, out of the way.
#[derive(Debug, Default)]
pub(super) struct Renamer {
    /// The last name that was given: its second, and which one of that second it is.
    last: Option<(i64, u32)>,
}

impl Renamer {
    /// Renames the file `from` in `directory` to the first of the names with `time` that no file has, which it returns; `place` does
    /// it for one name, and fails where a file has that.
    pub(super) fn rename(
        &mut self,
        directory: &Path,
        name: impl Fn(Timestamp, u32) -> PathBuf,
        from: &Path,
        time: Timestamp,
        place: fn(from: &Path, to: &Path) -> io::Result<()>,
    ) -> io::Result<PathBuf> {
        let second = time.nanos().div_euclid(1_000_000_000);
        let first = match self.last {
            Some((last, number)) if last == second => number + 1,
            _ => 1,
        };
        for number in first..=MAX_NUMBER {
            let to = directory.join(name(time, number));
            match place(from, &to) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    self.last = Some((second, number));
                    return Ok(to);
                }
            }
        }
        Err(io::Error::other("a million logs have its name and time"))
    }
}

/// Renames a file to a name that a file of its own keeps for it. Where there is no room for one more file the log goes on under the
/// name that it has, since there would be none for the next log either.
pub(super) fn rename_reserved(from: &Path, to: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(to)?;
    fs::rename(from, to).inspect_err(|_| {
        // If it cannot be removed, an empty file is left, which harms nobody.
        let _ = fs::remove_file(to);
    })
}

/// Renames a file in one step where the system can: a reader of tables fails at an empty file.
pub(super) fn rename_whole(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;

        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            // Not each file system can.
            Err(Errno::INVAL | Errno::NOSYS) => {}
            done => return Ok(done?),
        }
    }
    rename_reserved(from, to)
}

/// The name of a log that was opened at `time`, in UTC, as Zeek gives it by default:
/// `conn.2026-11-22-13-00-00.log`; the second one of that time has `-2` behind it.
pub(super) fn name(log: &str, time: Timestamp, number: u32, extension: &str) -> PathBuf {
    let mut date = Vec::new();
    digits::date(&mut date, time);
    let date = String::from_utf8_lossy(&date);
    let number = if number > 1 { format!("-{number}") } else { String::new() };
    format!("{log}.{date}{number}.{extension}").into()
}

/// The log and the extension of a name that [`name`] gives; `None` for any other name.
pub(super) fn parts_of(name: &str) -> Option<(&str, &str)> {
    let (log, rest) = name.split_once('.')?;
    let (time, extension) = rest.split_once('.')?;
    let (date, number) = time.split_at_checked("2026-11-22-13-00-00".len())?;
    let is_date = date.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 | 10 | 13 | 16 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    let is_number = number.is_empty()
        || number
            .strip_prefix('-')
            .and_then(|number| number.parse().ok())
            .is_some_and(|it: u32| it > 1);
    (is_date && is_number).then_some((log, extension))
}

/// Names of directories, which readers of tables take for columns: no log has a column of such a name.
pub(super) const PARTITIONS: [&str; 3] = ["log_name", "day", "hour"];

/// The directories of a log that was opened at `time`, in UTC, by which readers of tables find it:
/// `log_name=conn/day=2026-11-22/hour=13`.
pub(super) fn partition(log: &str, time: Timestamp) -> PathBuf {
    let Date { year, month, day, hour, .. } = Date::of(time);
    let [log_key, day_key, hour_key] = PARTITIONS;
    format!("{log_key}={log}/{day_key}={year:04}-{month:02}-{day:02}/{hour_key}={hour:02}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_zeek() {
        let time = Timestamp::from_secs_nanos(1_299_466_805, 999_999_999);
        assert_eq!(name("conn", time, 1, "log"), Path::new("conn.2011-03-07-03-00-05.log"));
        assert_eq!(
            name("dns", time, 12, "msgpack"),
            Path::new("dns.2011-03-07-03-00-05-12.msgpack")
        );
    }

    #[test]
    fn names_are_known_again() {
        let time = Timestamp::from_secs_nanos(1_299_466_805, 0);
        for (number, extension) in [(1, "log"), (2, "msgpack"), (12, "parquet.part")] {
            let name = name("conn", time, number, extension);
            assert_eq!(parts_of(name.to_str().unwrap()), Some(("conn", extension)));
        }
        for other in [
            "conn.log",
            "conn.2011-03-07-03-00-05",
            "conn.2011-03-07-03-00-5.log",
            "conn.2011-03-07-03:00:05.log",
            "conn.2011-03-07-03-00-05-1.log",
            "conn.2011-03-07-03-00-05-x.log",
            "conn.2011-03-07-03-00-05.old.log.gz",
            "2011-03-07-03-00-05.log",
        ] {
            let known = parts_of(other);
            assert!(
                known.is_none_or(|(_, extension)| extension == "old.log.gz"),
                "{other}: {known:?}"
            );
        }
    }

    #[test]
    fn readers_take_no_column_of_a_log_for_a_directory() {
        for log in netsniff_analysis::rows::LOGS.iter() {
            let taken = log.fields.iter().find(|field| PARTITIONS.contains(&field.name));
            assert!(taken.is_none(), "{}: {taken:?}", log.path);
        }
        let time = Timestamp::from_secs_nanos(1_299_466_805, 0);
        let expected = Path::new("log_name=conn/day=2011-03-07/hour=03");
        assert_eq!(partition("conn", time), expected);
    }

    #[test]
    fn rolls_are_due_at_multiples_once() {
        let at = |seconds| Timestamp::from_secs_nanos(seconds, 0);
        let mut schedule = Schedule::new(Duration::from_secs(3600), at(7300));
        let due: Vec<i64> = [7300, 10_799, 10_800, 10_801, 14_399, 14_400, 30_000, 32_399, 32_400]
            .into_iter()
            .filter(|&seconds| schedule.is_due(at(seconds)))
            .collect();
        assert_eq!(due, [10_800, 14_400, 30_000, 32_400]);
        // The clock is set back by little, and by much.
        assert!(!schedule.is_due(at(32_399)) && !schedule.is_due(at(32_400)));
        assert!(
            !schedule.is_due(at(100)) && !schedule.is_due(at(3599)) && schedule.is_due(at(3600))
        );
    }

    #[test]
    fn times_beyond_all_clocks_are_never_due() {
        let mut schedule = Schedule::new(Duration::MAX, Timestamp::EPOCH);
        assert!(!schedule.is_due(Timestamp::from_secs_nanos(9_000_000_000, 0)));
        assert!(!Schedule::new(Duration::ZERO, Timestamp::MIN).is_due(Timestamp::MIN));
    }
}
