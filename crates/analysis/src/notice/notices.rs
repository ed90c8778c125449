//! The join that makes rows of `notice` and `intel`.

use core::any::TypeId;
use std::sync::{Arc, PoisonError, RwLock};

use netsniff_packet::Timestamp;
use sha2::{Digest as _, Sha256};

use super::bounded::Bounded;
use super::finding::{Finding, FindingType, Found, MOST_ENTRIES, SUPPRESS_FOR};
use super::findings::FINDINGS;
use super::intel::Indicators;
use super::rules::Rules;
use super::setting::Setting;
use super::threshold::Thresholds;
use super::{Sighting, Watch};
use crate::correlator::{Bound, GivenUp, Join, JoinOutput};
use crate::record::{Connection, Fact, SortKey};

/// All findings and indicators.
#[derive(Debug)]
pub struct Notices {
    findings: Vec<(&'static FindingType, Box<dyn Finding>)>,
    rules: Rules,
    /// Those in force, which others may replace.
    indicators: Option<Arc<RwLock<Arc<Indicators>>>>,
    /// When the same finding was told.
    told: Bounded<[u8; 32], Told>,
    /// Bytes that all of them may remember, where these are bounded.
    bytes: Option<usize>,
    /// Whether rows have pseudonyms.
    hides: bool,
    found: Vec<Found>,
}

/// A finding that was told.
#[derive(Debug, Default)]
struct Told {
    /// Until when it has no other row; `None` where it was not told yet.
    until: Option<Timestamp>,
    /// How many times it was found since.
    again: u64,
}

impl Notices {
    /// Those that `watch` wants, of which none has seen anything.
    #[must_use]
    pub fn new(watch: &Watch) -> Self {
        let usual = Thresholds::default();
        let setting = Setting::new(watch.findings.as_ref().unwrap_or(&usual), watch.bytes);
        let wanted = if watch.findings.is_some() { FINDINGS } else { &[] };
        Self {
            findings: wanted.iter().map(|it| (it, (it.make)(&setting))).collect(),
            rules: Rules::new(Arc::clone(&watch.rules), &setting),
            indicators: watch.indicators.clone(),
            told: setting.table(0),
            bytes: watch.bytes,
            hides: watch.hides,
            found: Vec::new(),
        }
    }

    /// Tells what was found at `key`, unless it was told before.
    fn tell(&mut self, key: &SortKey, out: &mut JoinOutput) {
        for mut found in self.found.drain(..) {
            // Identifiers may be as long as what the traffic says.
            let name = Sha256::new_with_prefix(&*found.row.note).chain_update([0]);
            let name = name.chain_update(&found.identifier).finalize().into();
            let told = self.told.entry(&name, Told::default);
            if told.until.is_some_and(|until| key.time < until) {
                told.again += 1;
                continue;
            }
            found.row.suppressed = told.until.map(|_| told.again);
            *told = Told { until: Some(key.time.offset(SUPPRESS_FOR.nanos())), again: 0 };
            found.row.ts = key.time;
            if self.hides {
                // What the traffic says has the pseudonym of its own column in the row of its protocol.
                found.row.sub = None;
            }
            out.row(*key, found.row);
        }
    }
}

impl Join for Notices {
    fn takes(&self) -> &'static [TypeId] {
        const { &[TypeId::of::<Sighting>()] }
    }

    fn fact(&mut self, key: &SortKey, _: &Connection, fact: &dyn Fact, out: &mut JoinOutput) {
        let Some(sighting) = fact.downcast_ref::<Sighting>() else { return };
        for (kind, finding) in &mut self.findings {
            if kind.reads.iter().any(|(log, _)| *log == sighting.log.path) {
                finding.sighted(key.time, sighting, &mut self.found);
            }
        }
        self.rules.sighted(key.time, sighting, &mut self.found);
        if let Some(indicators) = &self.indicators {
            let indicators = Arc::clone(&indicators.read().unwrap_or_else(PoisonError::into_inner));
            for mut row in indicators.seen(key.time, sighting, &mut self.found) {
                if self.hides && !row.is_of_hosts() {
                    row.seen_indicator = None;
                }
                out.row(*key, row);
            }
        }
        self.tell(key, out);
    }

    fn given_up(&self) -> Option<GivenUp> {
        let findings = self.findings.iter().map(|(_, finding)| finding.given_up()).sum::<u64>();
        Some(GivenUp {
            bound: self.bytes.map_or(Bound::Number(MOST_ENTRIES), Bound::Bytes),
            of: if self.bytes.is_some() {
                "for findings"
            } else {
                "entries of a table of findings"
            },
            count: findings + self.rules.given_up() + self.told.given_up(),
            what: "entries were given up",
        })
    }
}
