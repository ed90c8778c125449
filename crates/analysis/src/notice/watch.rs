//! What records are looked through for.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::findings::FINDINGS;
use super::findings::capture::stamps::STEP_SECONDS;
use super::intel::{Indicators, PLACES};
use super::rules::{Rule, matched};
use super::sighting::{Copying, Sighting};
use super::threshold::Thresholds;
use crate::record::{Record, Visitor};

/// The columns of a connection, which all findings read.
const OF_CONNECTION: [&str; 5] = ["uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"];

/// What records are looked through for: findings, indicators, or both.
#[derive(Debug)]
pub struct Watch {
    /// The thresholds of findings; `None` where there are to be none.
    pub(super) findings: Option<Thresholds>,
    /// What is looked for, if anything.
    pub(super) indicators: Option<Arc<RwLock<Arc<Indicators>>>>,
    /// What the user's rules look for.
    pub(super) rules: Arc<[Rule]>,
    /// The columns that findings and indicators read, by log.
    wanted: BTreeMap<&'static str, Vec<&'static str>>,
    /// The columns that records are wanted with that a rule is true of.
    of_rules: BTreeMap<&'static str, Vec<&'static str>>,
    /// Bytes that findings may remember; `None` for as much as their tables may have.
    pub(super) bytes: Option<usize>,
    /// Whether rows have pseudonyms.
    pub(super) hides: bool,
}

/// Adds columns to those that are wanted of a log.
fn want(
    wanted: &mut BTreeMap<&'static str, Vec<&'static str>>,
    log: &'static str,
    columns: &[&'static str],
) {
    let wanted = wanted.entry(log).or_insert_with(|| OF_CONNECTION.to_vec());
    for column in columns {
        if !wanted.contains(column) {
            wanted.push(column);
        }
    }
}

impl Watch {
    /// Looks for findings by `findings`, for `indicators`, and by `rules`; `None` where nothing is wanted.
    /// What they remember takes `bytes` at most, where that is set. With `hides`, rows have pseudonyms.
    #[must_use]
    pub fn new(
        findings: Option<Thresholds>,
        indicators: Option<Arc<Indicators>>,
        rules: Vec<Rule>,
        bytes: Option<usize>,
        hides: bool,
    ) -> Option<Self> {
        let mut wanted = BTreeMap::new();
        if findings.is_some() {
            for (log, columns) in FINDINGS.iter().flat_map(|finding| finding.reads) {
                want(&mut wanted, log, columns);
            }
        }
        if indicators.is_some() {
            for place in PLACES {
                want(&mut wanted, place.log, &[place.column]);
                want(&mut wanted, place.log, &["fuid", "mime_type", "host"]);
            }
        }
        let mut of_rules = BTreeMap::new();
        for rule in &rules {
            for ask in &rule.asks {
                // A record that findings read as well has one copy for both.
                let of_findings = wanted.get(ask.log.path).map_or(&[][..], Vec::as_slice);
                for columns in [of_findings, &["ts", "proto", "quality"], &ask.by, &ask.of] {
                    want(&mut of_rules, ask.log.path, columns);
                }
            }
        }
        let is_any = !wanted.is_empty() || !rules.is_empty();
        is_any.then(|| {
            let rules = rules.into();
            let indicators = indicators.map(|indicators| Arc::new(RwLock::new(indicators)));
            Self { findings, indicators, rules, wanted, of_rules, bytes, hides }
        })
    }

    /// Looks for other indicators from now on: in the records that come behind what was merged by then. Returns whether it does,
    /// which it cannot where it looked for none before.
    pub fn replace_indicators(&self, indicators: Indicators) -> bool {
        let Some(in_force) = &self.indicators else { return false };
        *in_force.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(indicators);
        true
    }

    /// Seconds from which on a jump of stamps is a step of a clock; `None` where nobody looks for findings.
    pub(crate) fn step_seconds(&self) -> Option<u64> {
        self.findings.as_ref().map(|thresholds| thresholds.get(&STEP_SECONDS))
    }

    /// A copy of what somebody reads of a record, if anybody does.
    pub fn sight<R: Record>(&self, record: &R) -> Option<Sighting> {
        let log = record.log();
        let mut visit = |mut visitor: &mut dyn Visitor| record.visit(&mut visitor);
        let rules = matched(&self.rules, log, &mut visit);
        let of = if rules.is_empty() { &self.wanted } else { &self.of_rules };
        let mut copying = Copying { wanted: of.get(log.path)?, into: Sighting::new(log) };
        record.visit(&mut copying);
        copying.into.rules = rules;
        Some(copying.into)
    }
}
