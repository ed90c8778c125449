//! The arguments that say when the logs of a live run roll, and which of them stay.

use std::time::Duration;

use netsniff_console::quantity::{at_least_one, interval, size};
use netsniff_output::{Keep, Roll};

/// Bytes below which a log is not worth a file of its own: each has a header and a name.
const LEAST_SIZE: usize = 4096;

/// Bytes below which nothing of use stays: a file may have an eighth of them.
const LEAST_KEPT: usize = 1 << 20;

const DAY: Duration = Duration::from_secs(86_400);

/// When logs roll, and which of them stay.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RollArgs {
    /// Begin new log files every so often, at multiples of that time: seconds, or with a unit as in
    /// 1h or 1d. The old ones keep their rows under a name with the time. SIGHUP does the same at once. Tables (parquet) roll
    /// each hour unless told
    #[arg(long, value_name = "INTERVAL", value_parser = interval, requires = "output")]
    roll: Option<Duration>,
    /// Begin a new file of a log before it is larger than this, as 500M or 1G
    #[arg(long, value_name = "SIZE", value_parser = rolled_size, requires = "output")]
    roll_size: Option<u64>,
    /// Remove the oldest logs that have rolled, so that all logs together have no more bytes than this, as 20G. Those of
    /// earlier runs count, too. Logs roll each hour unless told, and before they have an eighth of it
    #[arg(long, value_name = "SIZE", value_parser = kept_size, requires = "output")]
    keep_bytes: Option<u64>,
    /// Remove logs that have rolled, and whose last row was written more than so many days ago
    #[arg(long, value_name = "DAYS", value_parser = at_least_one, requires = "output")]
    keep_days: Option<usize>,
    /// Remove the oldest logs that have rolled while the file system has less free than this, as 5G, whoever fills it
    #[arg(long, value_name = "SIZE", value_parser = free_size, requires = "output")]
    keep_free: Option<u64>,
}

impl RollArgs {
    /// When logs roll, by these options.
    #[must_use]
    pub const fn roll(&self) -> Roll {
        Roll { every: self.roll, size: self.roll_size }
    }

    /// Which of the logs stay that have rolled, by these options.
    #[must_use]
    pub fn keep(&self) -> Keep {
        let days = |days| DAY.saturating_mul(u32::try_from(days).unwrap_or(u32::MAX));
        let (bytes, age) = (self.keep_bytes, self.keep_days.map(days));
        Keep { files: None, bytes, age, free: self.keep_free }
    }
}

/// Options of [`RollArgs`] whose bounds can change while a run goes on.
pub const KEEP_OPTIONS: [&str; 3] = ["keep-bytes", "keep-days", "keep-free"];

/// Those of [`KEEP_OPTIONS`] whose bounds differ.
pub fn other_bounds(old: &Keep, new: &Keep) -> impl Iterator<Item = &'static str> {
    let differs = [old.bytes != new.bytes, old.age != new.age, old.free != new.free];
    KEEP_OPTIONS.into_iter().zip(differs).filter_map(|(option, differs)| differs.then_some(option))
}

fn kept_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        size if size < LEAST_KEPT => Err("1M is the least".to_owned()),
        size => Ok(size as u64),
    }
}

fn free_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("expected some bytes".to_owned()),
        size => Ok(size as u64),
    }
}

fn rolled_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        size if size < LEAST_SIZE => Err(format!("{LEAST_SIZE} bytes are the least")),
        size => Ok(size as u64),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Command {
        #[command(flatten)]
        rolling: RollArgs,
        #[arg(short, long)]
        output: Option<PathBuf>,
    }

    fn parsed(words: &str) -> Result<RollArgs, String> {
        let words = ["live"].into_iter().chain(words.split_whitespace());
        let parsed = Command::try_parse_from(words).map_err(|error| error.to_string())?;
        Ok(parsed.rolling)
    }

    fn roll(words: &str) -> Result<Roll, String> {
        parsed(words).map(|rolling| rolling.roll())
    }

    #[test]
    fn logs_stay_as_told() {
        let keep = |words| parsed(words).unwrap().keep();
        assert!(!keep("-o logs --roll 1h").is_on());
        let week = Some(7 * DAY);
        let expected = Keep { files: None, bytes: Some(20 << 30), age: week, free: Some(5 << 30) };
        assert_eq!(keep("-o logs --keep-bytes 20G --keep-days 7 --keep-free 5G"), expected);
    }

    #[test]
    fn bounds_that_differ_are_named() {
        let names = |old, new| {
            let keep = |words| parsed(words).unwrap().keep();
            other_bounds(&keep(old), &keep(new)).collect::<Vec<_>>()
        };
        let all = "-o logs --keep-bytes 20G --keep-days 7 --keep-free 5G";
        assert_eq!(names(all, "-o logs"), KEEP_OPTIONS);
        assert_eq!(names("-o logs", all), KEEP_OPTIONS);
        assert_eq!(
            names(all, "-o logs --keep-bytes 20G --keep-days 8"),
            ["keep-days", "keep-free"]
        );
        assert_eq!(names(all, all), [""; 0]);
    }

    #[test]
    fn logs_roll_as_told() {
        let hour = Some(Duration::from_secs(3600));
        assert_eq!(roll(""), Ok(Roll::default()));
        assert_eq!(roll("-o logs --roll 1h"), Ok(Roll { every: hour, size: None }));
        assert_eq!(roll("-o logs --roll 3600"), Ok(Roll { every: hour, size: None }));
        let both = Roll { every: Some(Duration::from_secs(86_400)), size: Some(1 << 30) };
        assert_eq!(roll("-o logs --roll 1d --roll-size 1G"), Ok(both));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (words, said) in [
            ("-o logs --roll 0", "0 is no span of time"),
            ("-o logs --roll soon", "expected a number"),
            ("-o logs --roll-size 4095", "4096 bytes are the least"),
            ("-o logs --roll-size 1X", "unknown unit"),
            ("--roll 1h", "--output"),
            ("--roll-size 1G", "--output"),
            ("--keep-bytes 1G", "--output"),
            ("--keep-days 1", "--output"),
            ("--keep-free 1G", "--output"),
            ("-o logs --keep-bytes 1023k", "1M is the least"),
            ("-o logs --keep-days 0", "1 is the least"),
            ("-o logs --keep-free 0", "expected some bytes"),
        ] {
            let error = roll(words).unwrap_err();
            assert!(error.contains(said), "{words}: {error}");
        }
    }
}
