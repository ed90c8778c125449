//! Rules that the user writes: findings of their own.

mod window;

use core::fmt::Debug;
use std::borrow::Cow;
use std::sync::Arc;

use netsniff_packet::Timestamp;
use sha2::{Digest as _, Sha256};

use self::window::{Entry, Seen, Window};
use super::bounded::Bounded;
use super::finding::{Found, Note};
use super::setting::{Setting, UIDS_BYTES};
use super::sighting::{Matched, Sighting};
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
    /// Which records it looks for.
    pub asks: Vec<Ask>,
    /// How sure it is.
    pub confidence: Confidence,
    /// What was found, in a sentence that names nobody.
    pub msg: String,
    /// What to do.
    pub advice: String,
    /// What is counted of these records.
    pub counts: Counts,
    /// How many of that there must be, from 1 to [`MOST_COUNT`].
    pub count: usize,
    /// Nanoseconds within which the stamps of these records lie; `None` for any time.
    pub within: Option<u64>,
}

/// Records of one log that a rule looks for.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The log whose records it asks.
    pub log: &'static LogType,
    /// What it asks of each.
    pub test: Arc<dyn RecordTest>,
    /// The columns whose values records of a finding have in common, in the order of the rule's other asks.
    pub by: Vec<&'static str>,
    /// The columns whose values are counted, where values are.
    pub of: Vec<&'static str>,
}

/// What a rule counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// Records that one of its asks is true of.
    Records,
    /// Different values of columns. A record counts whose columns are set.
    Values,
    /// Asks that a record was found for.
    Asks,
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

/// What is true of the record of a log that `visit` shows.
pub(super) fn matched(
    rules: &[Rule],
    log: &LogType,
    visit: &mut dyn FnMut(&mut dyn Visitor),
) -> Vec<Matched> {
    let mut all = Vec::new();
    for (rule, number) in rules.iter().zip(0..) {
        for (ask, at) in rule.asks.iter().zip(0..) {
            if ask.log.path == log.path && ask.test.holds(visit) {
                all.push(Matched { rule: number, ask: at });
                // A record is one, however many asks are true of it.
                if rule.counts == Counts::Records {
                    break;
                }
            }
        }
    }
    all
}

/// Counts the records that rules are true of.
#[derive(Debug)]
pub(super) struct Rules {
    rules: Arc<[Rule]>,
    counted: Vec<Bounded<[u8; 32], Window>>,
    /// Records that came after others were given up that they may have belonged to.
    late: u64,
}

impl Rules {
    /// Rules that nothing was counted for.
    pub(super) fn new(rules: Arc<[Rule]>, setting: &Setting<'_>) -> Self {
        let part = setting.of_rules(rules.len());
        let elsewhere = |rule: &Rule| Window::most_bytes(rule.count) + UIDS_BYTES;
        let counted = rules.iter().map(|rule| part.table(elsewhere(rule))).collect();
        Self { rules, counted, late: 0 }
    }

    /// Takes a record that rules are true of, which belongs at engine time `now`.
    pub(super) fn sighted(&mut self, now: Timestamp, sighting: &Sighting, out: &mut Vec<Found>) {
        for matched in &sighting.rules {
            let at = usize::from(matched.rule);
            let (Some(rule), Some(counted)) = (self.rules.get(at), self.counted.get_mut(at)) else {
                continue;
            };
            let Some(ask) = rule.asks.get(usize::from(matched.ask)) else { continue };
            let Some(value) = value(rule, ask, matched.ask, sighting) else { continue };
            let group = digest(&ask.by, sighting);
            let window = counted.entry(&group, Window::default);
            let entry = Entry {
                time: sighting.nanos("ts").map_or(now, Timestamp::from_nanos),
                value,
                uid: sighting.word("uid").map(Into::into),
            };
            self.late += u64::from(window.is_late(&entry, rule.within));
            if let Some(seen) = window.add(entry, rule.count, rule.within) {
                *window = Window::default();
                out.push(found(rule, sighting, seen).told_by(group.to_vec()));
            }
        }
    }

    /// How many groups, and records of groups, were given up for lack of room.
    pub(super) fn given_up(&self) -> u64 {
        self.counted.iter().map(Bounded::given_up).sum::<u64>() + self.late
    }
}

/// What counts once, however often it is seen. `None` within for what always counts; `None` where there is nothing to count.
fn value(rule: &Rule, ask: &Ask, number: u16, sighting: &Sighting) -> Option<Option<[u8; 32]>> {
    Some(match rule.counts {
        Counts::Records => None,
        Counts::Asks => {
            let mut value = [0; 32];
            value[..2].copy_from_slice(&number.to_be_bytes());
            Some(value)
        }
        Counts::Values if ask.of.iter().any(|column| sighting.get(column).is_none()) => {
            return None;
        }
        Counts::Values => Some(digest(&ask.of, sighting)),
    })
}

/// Stands for the values of some columns, which may be as long as what the traffic says.
fn digest(columns: &[&str], sighting: &Sighting) -> [u8; 32] {
    let values: Vec<_> = columns.iter().map(|column| sighting.get(column)).collect();
    Sha256::digest(format!("{values:?}")).into()
}

fn found(rule: &Rule, sighting: &Sighting, seen: Seen) -> Found {
    let found = Found::new(&OF_USER, rule.confidence, sighting, rule.msg.clone());
    let mut found = found.counting(seen.count as u64);
    found.row.note = Cow::Owned(rule.name.clone());
    found.row.advice = Cow::Owned(rule.advice.clone());
    if rule.count == 1 {
        return found;
    }
    // What the last of several records has need not be true of the others.
    let is_common = |column| rule.asks.iter().all(|ask| ask.by.contains(&column));
    let row = &mut found.row;
    row.src = row.src.filter(|_| is_common("id.orig_h"));
    row.dst = row.dst.filter(|_| is_common("id.resp_h"));
    row.p = row.p.filter(|_| is_common("id.resp_p"));
    row.proto = row.proto.filter(|_| is_common("proto"));
    found.of_many(seen.uids)
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

    fn ask(log: &'static LogType) -> Ask {
        Ask { log, test: Arc::new(Always), by: Vec::new(), of: Vec::new() }
    }

    fn rule(asks: Vec<Ask>, counts: Counts) -> Rule {
        let (name, msg, advice) = ("Mine".to_owned(), String::new(), String::new());
        let confidence = Confidence::Low;
        Rule { name, asks, confidence, msg, advice, counts, count: 2, within: None }
    }

    #[test]
    fn a_record_counts_once_where_records_are_counted() {
        let (conn, tcp) = (crate::log::Conn::LOG, crate::log::Tcp::LOG);
        let asks = || vec![ask(tcp), ask(conn), ask(conn)];
        let matched = |counts| {
            let all = matched(&[rule(asks(), counts)], conn, &mut |_| {});
            all.iter().map(|matched| matched.ask).collect::<Vec<_>>()
        };
        assert_eq!(matched(Counts::Records), [1]);
        assert_eq!(matched(Counts::Asks), [1, 2]);
    }
}
