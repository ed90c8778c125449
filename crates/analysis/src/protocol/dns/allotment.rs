//! Which question of a message a record answers: the owner of a record is its name, RFC 1035 section
//! 3.2.1, and aliases lead from one name to another.

use netsniff_packet::{Address, Timestamp};

use super::message::{Header, Resource};
use super::rdata::RdataReading;
use super::transaction::Transaction;

/// QTYPE of an alias, and that of any type.
const CNAME: u16 = 5;
const ALL: u16 = 255;

/// Names of one message that records are looked for by. Messages over TCP have room for thousands.
const MAX_NAMES: usize = 64;

/// A transaction of the message at hand.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) transaction: Transaction,
    /// The addresses that its records tell.
    pub(super) addresses: Vec<Address>,
    /// Other names of what it asks about.
    aliases: Vec<Box<[u8]>>,
}

impl From<Transaction> for Part {
    fn from(transaction: Transaction) -> Self {
        Self { transaction, addresses: Vec::new(), aliases: Vec::new() }
    }
}

impl Part {
    fn is_about(&self, owner: &[u8]) -> bool {
        let asked = self.transaction.asked().is_some_and(|(name, _)| name == owner);
        asked || self.aliases.iter().any(|alias| **alias == *owner)
    }

    /// Whether a record of this type answers what it asks.
    fn wants(&self, kind: u16) -> bool {
        let asked = self.transaction.asked().map(|(_, kind)| kind);
        kind == CNAME || asked.is_none_or(|asked| asked == kind || asked == ALL)
    }

    fn take(&mut self, time: Timestamp, header: Header, record: &Resource, told: RdataReading) {
        self.addresses.extend(told.address);
        if let Some(text) = told.text {
            self.transaction.answer(time, header, record, text);
        }
    }
}

/// Gives a record of a reply at `time` to the transactions that it answers. Where there is one, it is
/// that one; a record that answers none begins one of its own by `begin`.
pub(super) fn allot(
    parts: &mut Vec<Part>,
    time: Timestamp,
    header: Header,
    record: &Resource,
    told: RdataReading,
    begin: impl FnOnce() -> Option<Transaction>,
) {
    if let [only] = &mut parts[..]
        && header.questions <= 1
    {
        return only.take(time, header, record, told);
    }
    let owner = record.name.as_bytes();
    let fits = |part: &&mut Part| part.is_about(owner) && part.wants(record.kind);
    let mut names = parts.iter().map(|part| 1 + part.aliases.len()).sum::<usize>();
    let mut is_taken = false;
    for part in parts.iter_mut().filter(fits) {
        is_taken = true;
        if record.kind == CNAME
            && names < MAX_NAMES
            && let Some(target) = &told.text
        {
            part.aliases.push(target.as_slice().into());
            names += 1;
        }
        part.take(time, header, record, told.clone());
    }
    if is_taken {
        return;
    }
    if let Some(part) = parts.iter_mut().find(|part| part.is_about(owner)) {
        part.take(time, header, record, told);
    } else if names < MAX_NAMES
        && let Some(transaction) = begin()
    {
        let mut part = Part::from(transaction);
        part.aliases.push(owner.into());
        part.take(time, header, record, told);
        parts.push(part);
    }
}
