//! The arguments of `netsniff top`, and the analysis that they ask for.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use netsniff_console::UsageError;
use netsniff_console::quantity::interval;

use super::keys;
use super::model::{Model, Origin, VIEWS};
use crate::watch::traffic::{Traffic, in_micros};

/// Watch traffic in the terminal: hosts, services, connections, and where packets are lost
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff top -i eth0                               live traffic\n  \
    netsniff top capture.pcapng                        a capture\n  \
    netsniff top logs/                                 the logs of a run that goes on, or has ended\n  \
    netsniff top -i eth0 -f 'tcp port 443' -- --ring 64M\n                                                     \
    with further options of netsniff analyze\n  \
    netsniff top capture.pcapng --once --view connections --where \"id.resp_p = 443\"\n                                                     \
    one screen as text\n\n\
    Keys: ? tells them. docs/top.md has all of it.\n\n\
    Exit code: 0 fine; 1 failed; 2 wrong usage. With --once also that of the analysis, as 3 where an input was\n\
    damaged or some of the logs could not be read")]
pub struct TopArgs {
    /// Capture files, pcap or pcapng, or a directory of logs that were written with --series; `-` for standard input
    #[arg(
        value_name = "FILES",
        conflicts_with = "interfaces",
        required_unless_present = "interfaces"
    )]
    pub(crate) inputs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) traffic: Traffic,
    /// End the live traffic after so long, as 10s or 5min
    // Where files stand in place of interfaces, the parser lets it pass that these are required.
    #[arg(
        long,
        value_name = "TIME",
        requires = "interfaces",
        conflicts_with = "inputs",
        value_parser = interval
    )]
    duration: Option<Duration>,
    /// Print one screen as text, once all is read, and end. Of live traffic with --duration
    #[arg(long)]
    pub(crate) once: bool,
    /// Columns and rows of that screen
    #[arg(long, value_name = "COLSxROWS", requires = "once", default_value = "80x24", value_parser = size)]
    pub(crate) size: (u16, u16),
    /// The view at first
    #[arg(long, value_enum, default_value_t)]
    view: ViewArg,
    /// The title of the column by which its rows are in order at first, as sent or "new conns"
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,
    /// Only rows that meet a condition, in the language of netsniff extract --where
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
}

/// The view at first.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum ViewArg {
    /// Hosts
    #[default]
    Hosts,
    /// Services, as the content of connections shows them
    Services,
    /// Connections
    Connections,
    /// Where packets and bytes are lost
    Losses,
    /// Processes of this host that have the sockets of connections, where traffic is live
    Processes,
}

/// Where rows come from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A directory of logs.
    Folder(PathBuf),
    /// An analysis.
    Analysis,
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let number = |text: &str| text.parse::<u16>().ok().filter(|it| (10..=1000).contains(it));
    let parts = text.split_once('x').and_then(|(cols, rows)| number(cols).zip(number(rows)));
    parts.ok_or_else(|| "columns and rows, each 10 to 1000, as 80x24".to_owned())
}

impl TopArgs {
    /// Where rows come from.
    ///
    /// # Errors
    ///
    /// Arguments that do not go together.
    pub(crate) fn input(&self) -> Result<Input, UsageError> {
        let wrong = |said: &str| Err(UsageError(said.to_owned()));
        let is_live = self.traffic.is_live();
        if self.once && is_live && self.duration.is_none() {
            return wrong("--once with -i needs --duration, since live traffic has no end");
        }
        if matches!(self.view, ViewArg::Processes) && !is_live {
            return wrong(
                "no file tells processes: --view processes is for live traffic, so name -i",
            );
        }
        let is_folder = |path: &&PathBuf| path.is_dir();
        let Some(folder) = self.inputs.iter().find(is_folder) else { return Ok(Input::Analysis) };
        if self.inputs.len() > 1 {
            return wrong("a directory of logs stands alone");
        }
        self.traffic.check_for_logs()?;
        Ok(Input::Folder(folder.clone()))
    }

    /// The model before any row came.
    ///
    /// # Errors
    ///
    /// A column that does not exist, or a condition that cannot be understood.
    pub(crate) fn model(&self, input: &Input) -> Result<Model, UsageError> {
        let names = |paths: &[PathBuf]| {
            let name = |path: &PathBuf| path.file_name().unwrap_or(path.as_os_str()).to_owned();
            let names = paths.iter().map(|path| name(path).to_string_lossy().into_owned());
            names.collect::<Vec<_>>().join(" ")
        };
        let (title, origin) = match input {
            _ if self.traffic.is_live() => (self.traffic.interfaces.join(" "), Origin::Interfaces),
            Input::Folder(_) => (names(&self.inputs), Origin::Logs),
            Input::Analysis => (names(&self.inputs), Origin::Files(self.keeps_packets_back())),
        };
        let mut model = Model::new(title, origin);
        let at = self.view as usize;
        VIEWS.get(at).into_iter().for_each(|(_, view)| model.show(view.clone()));
        if let Some(column) = &self.sort {
            keys::sort_by(&mut model, column).map_err(UsageError)?;
        }
        if let Some(condition) = &self.condition {
            keys::set_condition(&mut model, condition).map_err(UsageError)?;
        }
        Ok(model)
    }

    /// Why `netsniff extract` would not read the connections that are shown.
    fn keeps_packets_back(&self) -> Option<&'static str> {
        if self.inputs.iter().any(|path| path.as_os_str() == "-") {
            return Some(
                "standard input can be read only once: write it to a file for its packets",
            );
        }
        self.traffic.has_options().then_some("packets are extracted only without options behind --, which may make other connections")
    }

    /// The words of the analysis.
    pub(crate) fn analysis(&self) -> Vec<OsString> {
        let mut own = ["-q", "-o", "-", "--format", "json"].map(OsString::from).to_vec();
        if let Some(duration) = self.duration {
            own.extend(["--duration".into(), in_micros(duration)]);
        }
        self.traffic.analysis(own, &self.inputs)
    }
}
