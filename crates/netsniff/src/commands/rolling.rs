//! The arguments that say when the logs of a live run roll.

use std::time::Duration;

use netsniff_console::quantity::{interval, size};
use netsniff_output::Roll;

/// Bytes below which a log is not worth a file of its own: each has a header and a name.
const LEAST_SIZE: usize = 4096;

/// When logs roll.
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
}

impl RollArgs {
    /// When logs roll, by these options.
    #[must_use]
    pub const fn roll(&self) -> Roll {
        Roll { every: self.roll, size: self.roll_size }
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

    fn roll(words: &str) -> Result<Roll, String> {
        let words = ["live"].into_iter().chain(words.split_whitespace());
        let parsed = Command::try_parse_from(words).map_err(|error| error.to_string())?;
        Ok(parsed.rolling.roll())
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
        ] {
            let error = roll(words).unwrap_err();
            assert!(error.contains(said), "{words}: {error}");
        }
    }
}
