//! Arguments of the log `series`.

use std::time::Duration;

use netsniff_analysis::Limits;
use netsniff_analysis::series::SeriesOptions;
use netsniff_console::quantity::{at_least_one, interval};

/// One of so many parts of `--memory` is for hosts of the log at most.
const SHARE: usize = 16;

/// How traffic is told interval by interval.
#[derive(Debug, Default, clap::Args)]
pub(super) struct SeriesArgs {
    /// Write the log `series`: what passed in each interval of this length, as 1s or 1m, by the packets' own times
    #[arg(long, value_name = "TIME", requires = "rows", value_parser = series_interval)]
    series: Option<Duration>,
    /// Hosts of an interval that have rows of their own: those with the most bytes, while all others share one. 20 unless
    /// told
    #[arg(long, value_name = "N", requires = "series", value_parser = at_least_one)]
    series_hosts: Option<usize>,
    /// Write the log `series_conn`, too: what this many connections of an interval sent in it, those with the most bytes,
    /// also while they are open
    #[arg(long, value_name = "N", requires = "series", value_parser = at_least_one)]
    series_conns: Option<usize>,
}

impl SeriesArgs {
    /// What is to be told, if anything.
    pub(super) fn options(&self) -> Option<SeriesOptions> {
        let hosts = self.series_hosts.unwrap_or(SeriesOptions::HOSTS);
        self.series.map(|interval| SeriesOptions {
            interval,
            hosts,
            connections: self.series_conns.unwrap_or(0),
            interface: None,
            is_of_ring: false,
        })
    }

    /// The bounds with which the log stays within its part of `rest` bytes, and what it may take.
    pub(super) fn bound(&self, limits: Limits, rest: usize) -> (Limits, usize) {
        if self.series.is_none() {
            return (limits, 0);
        }
        let limits = limits.with_series_bytes(rest / SHARE);
        (limits, limits.series_bytes())
    }
}

/// An interval that is not too short.
fn series_interval(text: &str) -> Result<Duration, String> {
    let interval = interval(text)?;
    if interval < SeriesOptions::SHORTEST {
        return Err("an interval takes a millisecond at least".to_owned());
    }
    Ok(interval)
}
