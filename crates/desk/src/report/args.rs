//! The arguments of `netsniff report`.

use std::path::PathBuf;

use netsniff_console::quantity::at_least_one;

/// Make a page of logs or captures: one file that needs no network
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff report logs/ -o report.html              the logs of a run\n  \
    netsniff report capture.pcapng -o report.html     a capture, which is analysed first\n  \
    netsniff report --compare monday/ tuesday/ -o report.html   two runs side by side\n\n\
    It begins with whether the logs can be believed. docs/report.md tells what is in it.\n\n\
    Exit code: 0 fine; 1 failed; 2 wrong usage; 3 an input or a log was damaged, and the page is of all\n\
    that could be read")]
pub struct ReportArgs {
    /// A directory of logs in the formats tsv or json, or capture files, which are one traffic
    #[arg(value_name = "IN", required = true)]
    pub(super) inputs: Vec<PathBuf>,
    /// Where to write the page; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: PathBuf,
    /// Set two inputs side by side, each a directory of logs or a capture: what is more, less, new or gone
    #[arg(long)]
    pub(super) compare: bool,
    /// The title of the page
    #[arg(long, value_name = "TEXT")]
    pub(super) title: Option<String>,
    /// Connections that have a row: those with the most bytes. All others are counted
    #[arg(long, value_name = "N", default_value = "2000", value_parser = at_least_one)]
    pub(super) connections: usize,
    /// Rows of the other tables: hosts, services, servers and so on. All others are in one row
    #[arg(long, value_name = "N", default_value = "25", value_parser = at_least_one)]
    pub(super) rows: usize,
}
