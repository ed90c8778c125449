//! The arguments of `netsniff serve`, and the analysis that they ask for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use netsniff_console::UsageError;
use netsniff_console::quantity::{at_least_one, interval};

use super::control::Control;
use super::guard::Listening;

/// Show traffic in a browser: what goes on, connections and their packets, findings, and what to believe
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff serve capture.pcapng                      a capture, which is analysed first\n  \
    netsniff serve logs/                               the logs of a run that goes on, or has ended\n  \
    netsniff serve logs/ --captures capture.pcapng     with the packets that they are of\n  \
    netsniff serve -i eth0                             live traffic\n  \
    netsniff serve -i eth0 -o logs/ -- --ring 64M      keep the logs; further options of netsniff analyze\n  \
    netsniff serve logs/ --listen 0.0.0.0:8477 --tls-self-signed\n                                                     \
    for other hosts, with the token that it prints\n\n\
    It prints the address to open, and ends by Ctrl-C. docs/serve.md has all of it.\n\n\
    Exit code: 0 fine; 1 failed; 2 wrong usage")]
pub struct ServeArgs {
    /// Capture files, pcap or pcapng, or a directory of logs
    #[arg(
        value_name = "FILES",
        conflicts_with = "interfaces",
        required_unless_present = "interfaces"
    )]
    pub(super) inputs: Vec<PathBuf>,
    /// Show what is captured on this interface; may be repeated
    #[arg(short, long = "interface", value_name = "IFACE")]
    pub(super) interfaces: Vec<String>,
    /// Only packets that match, in the language of pcap-filter(7)
    #[arg(short, long, value_name = "EXPR")]
    pub(super) filter: Option<String>,
    /// Keep the logs in this directory. Otherwise they go when this ends
    #[arg(short, long, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
    /// With a directory of logs: the captures that they are of, for the packets of connections; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(super) captures: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) listening: Listening,
    /// Let a browser begin and end recordings of the live traffic. Otherwise it only shows
    #[arg(long, requires = "interfaces")]
    control: bool,
    /// Where these recordings go
    #[arg(long, value_name = "DIR", requires = "control", default_value = ".")]
    record_to: PathBuf,
    /// Length of an interval, as 1s or 100ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Hosts of an interval that are told apart: those with the most bytes
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = at_least_one)]
    hosts: usize,
    /// Connections of an interval that are told apart: those with the most bytes
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = at_least_one)]
    conns: usize,
    /// Further options of netsniff analyze
    #[arg(last = true, value_name = "OPTIONS")]
    options: Vec<OsString>,
}

/// What is shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Logs of another run.
    Logs,
    /// Captures.
    Captures,
    /// Interfaces.
    Live,
}

impl ServeArgs {
    /// What is shown.
    ///
    /// # Errors
    ///
    /// Arguments that do not go together.
    pub(super) fn kind(&self) -> Result<Kind, UsageError> {
        let wrong = |said: String| Err(UsageError(said));
        if let Some(missing) = self.inputs.iter().chain(&self.captures).find(|path| !path.exists())
        {
            return wrong(format!("{} does not exist", missing.display()));
        }
        let folders = self.inputs.iter().filter(|path| path.is_dir()).count();
        let kind = match (folders, self.inputs.len()) {
            (0, 0) => Kind::Live,
            (0, _) => Kind::Captures,
            (1, 1) => Kind::Logs,
            _ => return wrong("a directory of logs stands alone".to_owned()),
        };
        let has_options = self.filter.is_some() || !self.options.is_empty();
        if kind == Kind::Logs && (has_options || self.output.is_some()) {
            return wrong(
                "logs are read as they are: -f, -o and options of analyze are for packets"
                    .to_owned(),
            );
        }
        // The parser lets it pass where files stand in place of interfaces.
        if kind != Kind::Live && self.control {
            return wrong("--control is for live traffic: give --interface".to_owned());
        }
        if kind != Kind::Logs && !self.captures.is_empty() {
            return wrong("--captures is for a directory of logs".to_owned());
        }
        if let Some(other) = self.files().iter().find(|path| !path.is_file()) {
            return wrong(format!(
                "{} is no file, so that it cannot be read again",
                other.display()
            ));
        }
        Ok(kind)
    }

    /// What it is, for titles.
    pub(super) fn title(&self) -> String {
        let name = |path: &PathBuf| {
            let whole = path.canonicalize().ok();
            let whole = whole.as_deref().unwrap_or(path);
            whole.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
        };
        if self.interfaces.is_empty() {
            match self.inputs.as_slice() {
                [one] => name(one),
                [first, others @ ..] => format!("{} and {} more", name(first), others.len()),
                [] => String::new(),
            }
        } else {
            self.interfaces.join(" ")
        }
    }

    /// The captures with the packets of connections.
    pub(super) fn files(&self) -> &[PathBuf] {
        if self.captures.is_empty() && !self.inputs.iter().any(|path| path.is_dir()) {
            &self.inputs
        } else {
            &self.captures
        }
    }

    /// Why packets of connections cannot be had.
    pub(super) fn keeps_packets_back(&self) -> Option<&'static str> {
        if !self.options.is_empty() {
            return Some(
                "Packets are extracted only without options behind --, which may make other connections.",
            );
        }
        if self.files().is_empty() {
            return Some(if self.interfaces.is_empty() {
                "Packets are in the captures that the logs are of: name them with --captures."
            } else {
                "Packets are in captures alone: netsniff record writes one, and netsniff serve shows it."
            });
        }
        None
    }

    /// What a browser may do.
    ///
    /// # Errors
    ///
    /// When this program cannot be found.
    pub(super) fn control(&self) -> anyhow::Result<Option<Control>> {
        if !self.control {
            return Ok(None);
        }
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut words = vec![OsString::from("record"), OsString::from("-q")];
        for interface in &self.interfaces {
            words.extend(["--interface".into(), interface.into()]);
        }
        if let Some(filter) = &self.filter {
            words.extend(["--filter".into(), filter.into()]);
        }
        Ok(Some(Control::new(program, words, self.record_to.clone())))
    }

    /// The words of the analysis whose logs go to a directory.
    pub(super) fn analysis(&self, directory: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> =
            ["analyze", "--json", "--notices", "--format", "tsv"].map(OsString::from).to_vec();
        let mut add = |name: &str, value: OsString| words.extend([OsString::from(name), value]);
        add("--output", directory.into());
        add("--series", format!("{}us", self.interval.as_micros()).into());
        add("--series-hosts", self.hosts.to_string().into());
        add("--series-conns", self.conns.to_string().into());
        for path in &self.inputs {
            // A name that begins with a dash is no option.
            add("--read", path.into());
        }
        for interface in &self.interfaces {
            add("--interface", interface.into());
        }
        if !self.interfaces.is_empty() {
            add("--stats-interval", "1s".into());
        }
        if let Some(filter) = &self.filter {
            add("--filter", filter.into());
        }
        words.extend(self.options.iter().cloned());
        words
    }
}
