//! The join that makes rows of `notice` and `intel`.

use core::any::TypeId;
use std::sync::Arc;

use netsniff_packet::Timestamp;
use sha2::{Digest as _, Sha256};

use super::bounded::Bounded;
use super::finding::{Finding, Found, MOST_ENTRIES, SUPPRESS_FOR};
use super::findings::FINDINGS;
use super::intel::Indicators;
use super::{Sighting, Watch};
use crate::correlator::{Bound, GivenUp, Join, JoinOutput};
use crate::record::{Connection, Fact, SortKey};

/// All findings and indicators.
#[derive(Debug)]
pub struct Notices {
    findings: Vec<Box<dyn Finding>>,
    indicators: Option<Arc<Indicators>>,
    /// Until when the same finding has no other row.
    told: Bounded<(&'static str, [u8; 32]), Timestamp>,
    /// Whether rows have pseudonyms.
    hides: bool,
    found: Vec<Found>,
}

impl Notices {
    /// Those that `watch` wants, of which none has seen anything.
    #[must_use]
    pub fn new(watch: &Watch) -> Self {
        let makes = watch
            .findings
            .iter()
            .flat_map(|thresholds| FINDINGS.iter().map(move |finding| (finding.make)(thresholds)));
        Self {
            findings: makes.collect(),
            indicators: watch.indicators.clone(),
            told: Bounded::new(MOST_ENTRIES),
            hides: watch.hides,
            found: Vec::new(),
        }
    }

    /// Tells what was found at `key`, unless it was told before.
    fn tell(&mut self, key: &SortKey, out: &mut JoinOutput) {
        for mut found in self.found.drain(..) {
            let until = key.time.offset(SUPPRESS_FOR.nanos());
            // Identifiers may be as long as what the traffic says.
            let name = (found.note.name, Sha256::digest(&found.identifier).into());
            let silent = self.told.entry(&name, || Timestamp::MIN);
            if key.time < *silent {
                continue;
            }
            *silent = until;
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
        for finding in &mut self.findings {
            finding.sighted(key.time, sighting, &mut self.found);
        }
        if let Some(indicators) = &self.indicators {
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
        let findings = self.findings.iter().map(|finding| finding.given_up()).sum::<u64>();
        Some(GivenUp {
            bound: Bound::Number(MOST_ENTRIES),
            of: "entries of a table of findings",
            count: findings + self.told.given_up(),
            what: "entries were given up",
        })
    }
}
