//! The arguments of `netsniff top`, and the analysis that they ask for.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use netsniff_console::UsageError;
use netsniff_console::quantity::{at_least_one, interval};

use super::keys;
use super::model::{Model, Origin, VIEWS};

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
    /// Watch what is captured on this interface; may be repeated
    #[arg(short, long = "interface", value_name = "IFACE")]
    pub(crate) interfaces: Vec<String>,
    /// Only packets that match, in the language of pcap-filter(7)
    #[arg(short, long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// Length of an interval, as 1s or 100ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Hosts of an interval that are told apart: those with the most bytes
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = at_least_one)]
    hosts: usize,
    /// Connections of an interval that are told apart: those with the most bytes
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = at_least_one)]
    conns: usize,
    /// End after so long, as 10s or 5min
    #[arg(long, value_name = "TIME", requires = "interfaces", value_parser = interval)]
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
    /// The title of the column by which its rows are in order at first, as sent or "lost net"
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,
    /// Only rows that meet a condition, in the language of netsniff extract --where
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    /// Further options of netsniff analyze
    #[arg(last = true, value_name = "OPTIONS")]
    options: Vec<OsString>,
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
    /// Inputs that do not go together.
    pub(crate) fn input(&self) -> Result<Input, UsageError> {
        let wrong = |said: &str| Err(UsageError(said.to_owned()));
        if self.once && !self.interfaces.is_empty() && self.duration.is_none() {
            return wrong("--once with -i needs --duration, since live traffic has no end");
        }
        let is_folder = |path: &&PathBuf| path.is_dir();
        let Some(folder) = self.inputs.iter().find(is_folder) else { return Ok(Input::Analysis) };
        if self.inputs.len() > 1 {
            return wrong("a directory of logs stands alone");
        }
        if self.filter.is_some() || !self.options.is_empty() {
            return wrong("logs are read as they are: -f and options of analyze are for packets");
        }
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
            _ if !self.interfaces.is_empty() => (self.interfaces.join(" "), Origin::Interfaces),
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
        let has_options = !self.options.is_empty();
        has_options.then_some("packets are extracted only without options behind --, which may make other connections")
    }

    /// The words of the analysis.
    pub(crate) fn analysis(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> =
            ["analyze", "-q", "-o", "-", "--format", "json"].map(OsString::from).to_vec();
        let nanos = |time: Duration| format!("{}us", time.as_micros());
        let mut add = |name: &str, value: OsString| words.extend([OsString::from(name), value]);
        add("--series", nanos(self.interval).into());
        add("--series-hosts", self.hosts.to_string().into());
        add("--series-conns", self.conns.to_string().into());
        for path in &self.inputs {
            add("-r", path.into());
        }
        for interface in &self.interfaces {
            add("-i", interface.into());
        }
        if !self.interfaces.is_empty() {
            add("--stats-interval", "1s".into());
        }
        if let Some(duration) = self.duration {
            add("--duration", nanos(duration).into());
        }
        if let Some(filter) = &self.filter {
            add("-f", filter.into());
        }
        words.extend(self.options.iter().cloned());
        words
    }

    /// The words of an extraction of what is read, but for the connection and where to write.
    pub(crate) fn extraction(&self) -> Vec<OsString> {
        let mut words = vec![OsString::from("extract"), OsString::from("-q")];
        if let Some(filter) = &self.filter {
            words.extend(["-f".into(), filter.into()]);
        }
        words
    }

    /// The words of a recording of the same packets, but for where to write.
    pub(crate) fn recording(&self) -> Vec<OsString> {
        let mut words = vec![OsString::from("record"), OsString::from("-q")];
        for interface in &self.interfaces {
            words.extend(["-i".into(), interface.into()]);
        }
        if let Some(filter) = &self.filter {
            words.extend(["-f".into(), filter.into()]);
        }
        words
    }
}
