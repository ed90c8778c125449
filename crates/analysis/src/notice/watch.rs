//! What records are looked through for.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::findings::FINDINGS;
use super::intel::{Indicators, PLACES};
use super::sighting::{Copying, Sighting};
use super::threshold::Thresholds;
use crate::record::{LogType, Record};

/// The columns of a connection, which all findings read.
const OF_CONNECTION: [&str; 5] = ["uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"];

/// What records are looked through for: findings, indicators, or both.
#[derive(Debug)]
pub struct Watch {
    /// The thresholds of findings; `None` where there are to be none.
    pub(super) findings: Option<Thresholds>,
    /// What is looked for, if anything.
    pub(super) indicators: Option<Arc<Indicators>>,
    /// The columns that somebody reads, by log.
    wanted: BTreeMap<&'static str, Vec<&'static str>>,
    /// Whether rows have pseudonyms.
    pub(super) hides: bool,
}

impl Watch {
    /// Looks for findings by `findings`, and for `indicators`; `None` where neither is wanted. With `hides`, rows have
    /// pseudonyms.
    #[must_use]
    pub fn new(
        findings: Option<Thresholds>,
        indicators: Option<Arc<Indicators>>,
        hides: bool,
    ) -> Option<Self> {
        let mut watch = Self { findings, indicators, wanted: BTreeMap::new(), hides };
        if watch.findings.is_some() {
            for (log, columns) in FINDINGS.iter().flat_map(|finding| finding.reads) {
                watch.want(log, columns);
            }
        }
        if watch.indicators.is_some() {
            for place in PLACES {
                watch.want(place.log, &[place.column]);
                watch.want(place.log, &["fuid", "mime_type", "host"]);
            }
        }
        (!watch.wanted.is_empty()).then_some(watch)
    }

    fn want(&mut self, log: &'static str, columns: &[&'static str]) {
        let wanted = self.wanted.entry(log).or_insert_with(|| OF_CONNECTION.to_vec());
        for column in columns {
            if !wanted.contains(column) {
                wanted.push(column);
            }
        }
    }

    /// Whether somebody reads this log.
    #[must_use]
    pub fn wants(&self, log: &LogType) -> bool {
        self.wanted.contains_key(log.path)
    }

    /// A copy of what somebody reads of a record, if anybody does.
    pub fn sight<R: Record>(&self, record: &R) -> Option<Sighting> {
        let log = record.log();
        let mut copying = Copying { wanted: self.wanted.get(log.path)?, into: Sighting::new(log) };
        record.visit(&mut copying);
        Some(copying.into)
    }
}
