//! The arguments of `netsniff serve`, and the analysis that they ask for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use netsniff_console::UsageError;

use super::control::Control;
use super::guard::Listening;
use crate::watch::traffic::Traffic;

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
    #[command(flatten)]
    pub(super) traffic: Traffic,
    /// Keep the logs in this directory. Otherwise they go when this ends
    #[arg(short, long, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
    /// With a directory of logs: the captures that they are of, for the packets of connections; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(super) captures: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) listening: Listening,
    /// Let a browser begin and end recordings of the live traffic. Otherwise it only shows
    // Where files stand in place of interfaces, the parser lets it pass that these are required; likewise below.
    #[arg(long, requires = "interfaces", conflicts_with = "inputs")]
    control: bool,
    /// Where these recordings go
    #[arg(
        long,
        value_name = "DIR",
        requires = "control",
        conflicts_with = "inputs",
        default_value = "."
    )]
    record_to: PathBuf,
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
        if kind == Kind::Logs {
            self.traffic.check_for_logs()?;
            if self.output.is_some() {
                return wrong("logs are kept where they are: -o is for captures and -i".to_owned());
            }
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
        if !self.traffic.is_live() {
            match self.inputs.as_slice() {
                [one] => name(one),
                [first, others @ ..] => format!("{} and {} more", name(first), others.len()),
                [] => String::new(),
            }
        } else {
            self.traffic.interfaces.join(" ")
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

    /// Why packets of connections cannot be had, whatever captures there are.
    pub(super) fn keeps_packets_back(&self) -> Option<&'static str> {
        self.traffic.has_options().then_some(
            "Packets are extracted only without options behind --, which may make other connections.",
        )
    }

    /// Where packets would come from, for as long as there is no capture.
    pub(super) const fn lacks_captures(&self) -> &'static str {
        if self.traffic.is_live() {
            "Packets are in captures alone: netsniff record writes one, and netsniff serve shows it."
        } else {
            "Packets are in the captures that the logs are of: name them with --captures."
        }
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
        let words = self.traffic.recording();
        Ok(Some(Control::new(program, words, self.record_to.clone())))
    }

    /// The words of the analysis whose logs go to a directory.
    pub(super) fn analysis(&self, directory: &Path) -> Vec<OsString> {
        let own = ["--json", "--notices", "--format", "tsv", "--output"].map(OsString::from);
        self.traffic.analysis(own.into_iter().chain([directory.into()]), &self.inputs)
    }
}
