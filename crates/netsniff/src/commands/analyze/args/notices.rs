//! Arguments of findings and indicators.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use netsniff_analysis::Options;
use netsniff_analysis::depth::Depth;
use netsniff_analysis::notice::Watch;
use netsniff_analysis::notice::findings::thresholds;
use netsniff_analysis::notice::intel::Indicators;
use netsniff_analysis::notice::rules::Rule;
use netsniff_analysis::notice::threshold::Thresholds;
use netsniff_analysis::protocol::ProtocolId;
use netsniff_analysis::record::LogType;
use netsniff_console::UsageError;

use super::{rules, sigma};

/// One of so many parts of `--memory` is for what findings remember.
const SHARE: usize = 16;

/// What records are looked through for.
#[derive(Debug, Default, clap::Args)]
pub(in crate::commands::analyze) struct NoticeArgs {
    /// Look through all records for what deserves a look, and write it to the log `notice`; docs/notices.md has the list
    #[arg(long, requires = "rows")]
    notices: bool,
    /// Thresholds of --notices, as scan_ports=30,certificate_days=14; docs/notices.md has all names and defaults
    #[arg(long, value_name = "NAME=NUMBER,…", requires = "notices", value_parser = parse)]
    notice_thresholds: Option<Thresholds>,
    /// Look for findings of your own by the rules of this file, in TOML, and write them to the log `notice`; docs/notices.md
    /// has the form; may be repeated
    #[arg(long, value_name = "FILE", requires = "rows")]
    notice_rules: Vec<PathBuf>,
    /// Look for findings by the rules of Sigma in this file, or in the files *.yml below this directory, and write them to
    /// the log `notice`: rules for Zeek, and for DNS, proxies, web servers and firewalls of any product; may be repeated
    #[arg(long, value_name = "FILE|DIR", requires = "rows")]
    sigma: Vec<PathBuf>,
    /// Look for the indicators of this file, which has Zeek's format, and write what is seen to the log `intel`; may
    /// be repeated
    #[arg(long, value_name = "FILE", requires = "rows")]
    intel: Vec<PathBuf>,
}

fn parse(text: &str) -> Result<Thresholds, String> {
    Thresholds::parse(text, &thresholds())
}

/// The option without which an analysis makes no such log.
fn lacks(log: &LogType, options: &Options) -> Option<&'static str> {
    let is_of = |id: &ProtocolId| id.protocol().logs().iter().any(|its| its.path == log.path);
    let mut owners = ProtocolId::all().filter(is_of).peekable();
    let series = options.series.as_ref();
    match log.path {
        "rtt" if options.rtt_interval.is_none() => Some("--rtt-interval"),
        "series" if series.is_none() => Some("--series"),
        "series_conn" if series.is_none_or(|series| series.connections == 0) => {
            Some("--series-conns")
        }
        "conn" if options.depth < Depth::Flows => Some("--depth flows"),
        "tcp" if options.depth < Depth::Tcp => Some("--depth tcp"),
        _ if owners.peek().is_none() => None,
        _ if options.depth < Depth::Protocols => Some("--depth protocols"),
        _ if !owners.any(|id| options.protocols.has(id)) => Some("its protocol in --protocols"),
        _ => None,
    }
}

impl NoticeArgs {
    /// What records are looked through for in an analysis with `options`, if anything; within `bytes`, where these are
    /// bounded. With `hides`, rows have pseudonyms.
    pub(super) fn watch(
        &self,
        bytes: Option<usize>,
        hides: bool,
        options: &Options,
    ) -> Result<Option<Arc<Watch>>, UsageError> {
        let findings = self.notices.then(|| self.notice_thresholds.clone().unwrap_or_default());
        let indicators = self.indicators()?.map(Arc::new);
        let mut rules = self.rules()?;
        for (rule, ask) in
            rules.iter().flat_map(|rule| rule.asks.iter().map(move |ask| (rule, ask)))
        {
            if let Some(option) = lacks(ask.log, options) {
                return Err(UsageError(format!(
                    "--notice-rules: the rule {} asks the log {}, which is not made without {option}",
                    rule.name, ask.log.path
                )));
            }
        }
        rules.extend(sigma::rules(&self.sigma, |log| lacks(log, options))?);
        // Sightings name rules by numbers of 16 bits.
        if rules.len() > usize::from(u16::MAX) {
            return Err(UsageError("there are more than 65,535 rules".to_owned()));
        }
        Ok(Watch::new(findings, indicators, rules, bytes, hides).map(Arc::new))
    }

    /// Bytes of `rest` that findings may remember.
    pub(super) fn bytes(&self, rest: usize) -> usize {
        if self.notices || !self.notice_rules.is_empty() || !self.sigma.is_empty() {
            rest / SHARE
        } else {
            0
        }
    }

    /// The rules of all files.
    fn rules(&self) -> Result<Vec<Rule>, UsageError> {
        let mut all: Vec<Rule> = Vec::new();
        for path in &self.notice_rules {
            let fail = |said: String| UsageError(format!("--notice-rules {said}"));
            let text = fs::read_to_string(path)
                .map_err(|error| fail(format!("{}: {error}", path.display())))?;
            let rules = rules::rules(path, &text).map_err(|fault| fail(fault.to_string()))?;
            let is_known = |rule: &&Rule| all.iter().any(|other| other.name == rule.name);
            if let Some(rule) = rules.iter().find(is_known) {
                return Err(fail(format!(
                    "{}: two files have a rule {}",
                    path.display(),
                    rule.name
                )));
            }
            all.extend(rules);
        }
        Ok(all)
    }

    /// The files of indicators.
    pub(in crate::commands::analyze) fn intel(&self) -> &[PathBuf] {
        &self.intel
    }

    /// The indicators of all files.
    pub(in crate::commands::analyze) fn indicators(
        &self,
    ) -> Result<Option<Indicators>, UsageError> {
        let mut indicators = Indicators::default();
        for path in &self.intel {
            let name = path.display();
            let text = fs::read_to_string(path)
                .map_err(|error| UsageError(format!("--intel {name}: {error}")))?;
            let error = |error| UsageError(format!("--intel {name}: {error}"));
            if indicators.read(&text).map_err(error)? == 0 {
                return Err(UsageError(format!("--intel {name}: it has no indicator")));
            }
        }
        Ok((!self.intel.is_empty()).then_some(indicators))
    }
}
