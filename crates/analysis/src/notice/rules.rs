//! Rules that the user writes: findings of their own.

use core::fmt::Debug;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use netsniff_packet::Timestamp;
use sha2::{Digest as _, Sha256};

use super::bounded::Bounded;
use super::finding::{Found, MOST_UIDS, Note};
use super::setting::{Setting, UIDS_BYTES};
use super::sighting::Sighting;
use crate::log::Confidence;
use crate::record::{LogType, Visitor};

/// Asks something of a record. Who writes rules down knows how; here they are only asked.
pub trait RecordTest: Debug + Send + Sync {
    /// Whether it is true of the record whose columns `visit` shows.
    fn holds(&self, visit: &mut dyn FnMut(&mut dyn Visitor)) -> bool;
}

/// A finding of the user's own.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// The log whose records it asks.
    pub log: &'static LogType,
    /// What it asks of each.
    pub test: Arc<dyn RecordTest>,
    /// How sure it is.
    pub confidence: Confidence,
    /// What was found, in a sentence that names nobody.
    pub msg: String,
    /// What to do.
    pub advice: String,
    /// Of how many records it must be true, from 1 to [`MOST_COUNT`].
    pub count: usize,
    /// Nanoseconds of time within which they belong; `None` for any time.
    pub within: Option<u64>,
    /// The columns whose values they have in common.
    pub by: Vec<&'static str>,
}

/// Most records that a rule may count.
pub const MOST_COUNT: usize = 1_000;

/// The columns that records are counted by unless told, where their log has them.
pub const USUAL: [&str; 3] = ["id.orig_h", "id.resp_h", "id.resp_p"];

/// Logs that findings are written to, and those that come from no packet: no rule can ask for their records.
pub const NOT_ASKED: [&str; 3] = ["notice", "intel", "capture"];

/// Columns that joins set behind the merge of all workers' rows, where no rule sees them: whether content was kept, and
/// the DNS answer that a connection followed.
pub const LATE: [&str; 6] =
    ["dns_uid", "dns_rtt", "dns_age", "extracted", "extracted_cutoff", "extracted_size"];

/// Counts the records that rules are true of.
#[derive(Debug)]
pub(super) struct Rules {
    rules: Arc<[Rule]>,
    counted: Vec<Bounded<[u8; 32], Counted>>,
}

/// The records of one group of a rule.
#[derive(Debug, Default)]
struct Counted {
    times: VecDeque<Timestamp>,
    uids: VecDeque<String>,
}

impl Counted {
    /// Takes a record. Whether they are enough now, which empties them.
    fn add(&mut self, now: Timestamp, uid: Option<&str>, rule: &Rule) -> bool {
        self.times.push_back(now);
        self.uids.extend(uid.map(str::to_owned));
        if self.uids.len() > MOST_UIDS {
            self.uids.pop_front();
        }
        if let Some(within) = rule.within {
            let is_old = |time: &Timestamp| now.nanos().abs_diff(time.nanos()) > within;
            while self.times.pop_front_if(|time| is_old(time)).is_some() {}
        }
        // Those of records that are too old now.
        while self.uids.len() > self.times.len() {
            self.uids.pop_front();
        }
        self.times.len() >= rule.count
    }
}

impl Rules {
    /// Rules that nothing was counted for.
    pub(super) fn new(rules: Arc<[Rule]>, setting: &Setting<'_>) -> Self {
        let part = setting.of_rules(rules.len());
        let elsewhere = |rule: &Rule| 2 * rule.count * size_of::<Timestamp>() + UIDS_BYTES;
        let counted = rules.iter().map(|rule| part.table(elsewhere(rule))).collect();
        Self { rules, counted }
    }

    /// Takes a record that rules are true of, at engine time `now`.
    pub(super) fn sighted(&mut self, now: Timestamp, sighting: &Sighting, out: &mut Vec<Found>) {
        for at in sighting.rules.iter().copied().map(usize::from) {
            let (Some(rule), Some(counted)) = (self.rules.get(at), self.counted.get_mut(at)) else {
                continue;
            };
            let group = group(rule, sighting);
            let records = counted.entry(&group, Counted::default);
            if records.add(now, sighting.word("uid"), rule) {
                let records = core::mem::take(records);
                out.push(found(rule, sighting, records).told_by(group.to_vec()));
            }
        }
    }

    /// How many groups were given up for lack of room.
    pub(super) fn given_up(&self) -> u64 {
        self.counted.iter().map(Bounded::given_up).sum()
    }
}

/// What records have in common. Values may be as long as what the traffic says.
fn group(rule: &Rule, sighting: &Sighting) -> [u8; 32] {
    let values: Vec<_> = rule.by.iter().map(|column| sighting.get(column)).collect();
    Sha256::digest(format!("{values:?}")).into()
}

fn found(rule: &Rule, sighting: &Sighting, records: Counted) -> Found {
    let found = Found::new(&OF_USER, rule.confidence, sighting, rule.msg.clone());
    let mut found = found.counting(records.times.len() as u64);
    found.row.note = Cow::Owned(rule.name.clone());
    found.row.advice = Cow::Owned(rule.advice.clone());
    if rule.count == 1 {
        return found;
    }
    // What the last of several records has need not be true of the others.
    let is_common = |column| rule.by.contains(&column);
    let row = &mut found.row;
    row.src = row.src.filter(|_| is_common("id.orig_h"));
    row.dst = row.dst.filter(|_| is_common("id.resp_h"));
    row.p = row.p.filter(|_| is_common("id.resp_p"));
    row.proto = row.proto.filter(|_| is_common("proto"));
    found.of_many(records.uids.into())
}

/// What stands where a rule has its own words.
static OF_USER: Note = Note { name: "", doc: "", confidence: "", advice: "" };

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Always;

    impl RecordTest for Always {
        fn holds(&self, _: &mut dyn FnMut(&mut dyn Visitor)) -> bool {
            true
        }
    }

    fn rule(count: usize, within: Option<u64>) -> Rule {
        Rule {
            name: "Mine".to_owned(),
            log: crate::log::Conn::LOG,
            test: Arc::new(Always),
            confidence: Confidence::Low,
            msg: String::new(),
            advice: String::new(),
            count,
            within,
            by: Vec::new(),
        }
    }

    #[test]
    fn records_count_within_the_time_of_the_rule() {
        let rule = rule(3, Some(10));
        let mut counted = Counted::default();
        let mut at = |nanos| counted.add(Timestamp::from_nanos(nanos), Some("C1"), &rule);
        assert!(!at(0) && !at(5), "two");
        assert!(!at(11), "the first is too old");
        assert!(at(15), "from 5 to 15");
        assert!(counted.uids.len() <= counted.times.len());
    }
}
