//! Which traffic is watched: the arguments that views have in common, and the commands that these amount to.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use netsniff_console::UsageError;
use netsniff_console::quantity::{at_least_one, interval};

/// Length of an interval unless told.
const INTERVAL: Duration = Duration::from_secs(1);
/// Hosts, and connections, that are told apart unless told.
const SUBJECTS: usize = 200;

/// What is captured, and how finely it is told.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Traffic {
    /// Watch what is captured on this interface; may be repeated
    #[arg(short, long = "interface", value_name = "IFACE")]
    pub(crate) interfaces: Vec<String>,
    /// Only packets that match, in the language of pcap-filter(7)
    #[arg(short, long, value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// Length of an interval, as 100ms; 1s unless told
    #[arg(long, value_name = "TIME", value_parser = interval)]
    interval: Option<Duration>,
    /// Hosts of an interval that are told apart: those with the most bytes, 200 unless told
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    hosts: Option<usize>,
    /// Connections of an interval that are told apart: those with the most bytes, 200 unless told
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    conns: Option<usize>,
    /// Further options of netsniff analyze
    #[arg(last = true, value_name = "OPTIONS")]
    options: Vec<OsString>,
}

impl Traffic {
    /// Whether it is live.
    pub(crate) const fn is_live(&self) -> bool {
        !self.interfaces.is_empty()
    }

    /// Whether the analysis may find other connections than `netsniff extract` does.
    pub(crate) const fn has_options(&self) -> bool {
        !self.options.is_empty()
    }

    /// Refuses what has no effect on logs, since another run wrote them.
    ///
    /// # Errors
    ///
    /// That there is something of it.
    pub(crate) fn check_for_logs(&self) -> Result<(), UsageError> {
        let has_intervals = self.interval.is_some() || self.hosts.is_some() || self.conns.is_some();
        if self.filter.is_some() || has_intervals || self.has_options() {
            let said = "logs are read as they are: -f, --interval, --hosts, --conns and options of analyze are for packets, \
                        so name captures or -i";
            return Err(UsageError(said.to_owned()));
        }
        Ok(())
    }

    /// The words of an analysis of captures, or of what is captured, with options of its own.
    pub(crate) fn analysis(
        &self,
        own: impl IntoIterator<Item = OsString>,
        captures: &[PathBuf],
    ) -> Vec<OsString> {
        let mut words = vec![OsString::from("analyze")];
        words.extend(own);
        let mut add = |name: &str, value: OsString| words.extend([OsString::from(name), value]);
        add("--series", in_micros(self.interval.unwrap_or(INTERVAL)));
        add("--series-hosts", self.hosts.unwrap_or(SUBJECTS).to_string().into());
        add("--series-conns", self.conns.unwrap_or(SUBJECTS).to_string().into());
        for path in captures {
            // A name that begins with a dash is no option.
            add("--read", path.into());
        }
        if self.is_live() {
            add("--stats-interval", "1s".into());
        }
        words.extend(self.packets());
        words.extend(self.options.iter().cloned());
        words
    }

    /// The words of a recording of the same packets, but for where to write.
    pub(crate) fn recording(&self) -> Vec<OsString> {
        let mut words = ["record", "-q"].map(OsString::from).to_vec();
        words.extend(self.packets());
        words
    }

    /// The words of an extraction of the same packets from captures, with an option that says what it reports, but for the
    /// connection, the captures and where to write.
    pub(crate) fn extraction(&self, report: &str) -> Vec<OsString> {
        let mut words = ["extract", report].map(OsString::from).to_vec();
        words.extend(self.matching());
        words
    }

    /// Which packets, as all commands take it that may capture.
    fn packets(&self) -> impl Iterator<Item = OsString> {
        let interfaces = self.interfaces.iter();
        let interfaces = interfaces.flat_map(|name| [OsString::from("--interface"), name.into()]);
        interfaces.chain(self.matching())
    }

    /// Which packets of those that are captured, or in captures.
    fn matching(&self) -> impl Iterator<Item = OsString> {
        self.filter.iter().flat_map(|filter| [OsString::from("--filter"), filter.into()])
    }
}

/// A span of time as an argument.
pub(crate) fn in_micros(time: Duration) -> OsString {
    format!("{}us", time.as_micros()).into()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn joined(words: Vec<OsString>) -> String {
        words.join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn every_command_is_about_the_same_packets() {
        let live = Traffic {
            interfaces: vec!["eth0".to_owned(), "eth1".to_owned()],
            filter: Some("udp port 53".to_owned()),
            conns: Some(7),
            options: vec!["--ring".into(), "64M".into()],
            ..Traffic::default()
        };
        let packets = "--interface eth0 --interface eth1 --filter udp port 53";
        assert_eq!(
            joined(live.analysis(["-q".into()], &[])),
            format!(
                "analyze -q --series 1000000us --series-hosts 200 --series-conns 7 --stats-interval 1s {packets} --ring 64M"
            )
        );
        assert_eq!(joined(live.recording()), format!("record -q {packets}"));
        let of_file = Traffic { filter: Some("tcp".to_owned()), ..Traffic::default() };
        assert_eq!(joined(of_file.extraction("-q")), "extract -q --filter tcp");
        // What was recorded live is in files.
        assert_eq!(joined(live.extraction("--json")), "extract --json --filter udp port 53");
        let words = joined(of_file.analysis([], &["-x.pcap".into()]));
        assert!(words.ends_with("--series-conns 200 --read -x.pcap --filter tcp"), "{words}");
    }
}
