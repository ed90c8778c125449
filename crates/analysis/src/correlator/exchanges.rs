//! Exchanges in progress, bounded, with the looks that end them.

use core::fmt::Debug;
use std::collections::{BTreeMap, BTreeSet};

use netsniff_packet::Timestamp;

use super::{Content, Fact, Join, JoinStatistics, Joined, Told};
use crate::limits::Limits;
use crate::protocol::Connection;
use crate::record::{Interval, Phase, SortKey};
use crate::uid::Uid;

/// Messages that belong together and become one record.
pub trait Exchange: Debug + Send {
    /// What tells it apart from others.
    type Name: Clone + Debug + Ord + Send;
    /// A message.
    type Message;

    /// The message that a fact is, if it is one of these.
    fn message_of(content: &Content) -> Option<&Self::Message>;

    /// The exchange that a message belongs to.
    fn name_of(message: &Self::Message) -> Self::Name;

    /// An exchange that begins with this message, which [`Self::take`] gets next.
    fn begun(message: &Self::Message) -> Self;

    /// Takes a message.
    fn take(&mut self, connection: &Connection, message: &Self::Message);

    /// How it went so far.
    fn course(&self) -> &Course;

    /// The record.
    fn joined(self) -> Joined;
}

/// How an exchange went.
#[derive(Debug)]
pub struct Course {
    begun: Timestamp,
    last: Timestamp,
    uids: Vec<Uid>,
    kinds: Vec<u8>,
}

impl Course {
    /// It begins at `time`.
    #[must_use]
    pub const fn begun(time: Timestamp) -> Self {
        Self { begun: time, last: time, uids: Vec::new(), kinds: Vec::new() }
    }

    /// Notes a message of the type `kind`, seen at `time` in the flow `uid`.
    pub fn note(&mut self, time: Timestamp, uid: Uid, kind: u8) {
        self.last = time;
        self.kinds.push(kind);
        if !self.uids.contains(&uid) {
            self.uids.push(uid);
        }
    }

    /// Time of the first message.
    #[must_use]
    pub const fn start(&self) -> Timestamp {
        self.begun
    }

    /// Time from the first message to the last.
    #[must_use]
    pub const fn duration(&self) -> Interval {
        Interval::in_micros(self.begun, self.last)
    }

    /// The flows that the messages came in, each once, in the order in which they were seen.
    #[must_use]
    pub fn uids(&self) -> &[Uid] {
        &self.uids
    }

    /// The types of the messages in their order, as `names` has them from 1 on.
    #[must_use]
    pub fn kinds(&self, names: &[&str]) -> Vec<String> {
        let name = |&kind: &u8| {
            let name = usize::from(kind).checked_sub(1).and_then(|at| names.get(at));
            name.map_or_else(|| format!("unknown-message-type-{kind}"), |&name| name.to_owned())
        };
        self.kinds.iter().map(name).collect()
    }

    /// Whether it has as many flows or messages as a record may tell.
    const fn is_full(&self, limits: &Limits) -> bool {
        self.uids.len() >= limits.exchange_flows || self.kinds.len() >= limits.exchange_messages
    }
}

/// Keeps what a message tells, and else what was known before.
pub fn learn<T: Clone>(known: &mut Option<T>, told: &Option<T>) {
    if told.is_some() {
        known.clone_from(told);
    }
}

/// Exchanges in progress.
#[derive(Debug)]
pub struct Exchanges<E: Exchange> {
    waiting: BTreeMap<E::Name, Waiting<E>>,
    /// Where the next look at each belongs.
    looks: BTreeSet<(SortKey, E::Name)>,
    limits: Limits,
    cut_short: u64,
}

/// An exchange in progress.
#[derive(Debug)]
struct Waiting<E> {
    exchange: E,
    /// Engine time of its first message and of its last one.
    begun: Timestamp,
    last: Timestamp,
    look: SortKey,
}

/// What tells the record of an exchange that is told for want of room from the one that the same
/// message may complete.
const EVICTED: u32 = 1 << 31;

impl<E: Exchange + 'static> Exchanges<E> {
    /// The join that makes such exchanges.
    #[must_use]
    pub fn join(limits: &Limits) -> Box<dyn Join> {
        Box::new(Self::new(limits))
    }
}

impl<E: Exchange> Exchanges<E> {
    /// None yet.
    const fn new(limits: &Limits) -> Self {
        Self { waiting: BTreeMap::new(), looks: BTreeSet::new(), limits: *limits, cut_short: 0 }
    }

    /// The exchange of a message at `key`, which may begin with it.
    fn exchange(&mut self, key: &SortKey, message: &E::Message) -> &mut E {
        let looks = &mut self.looks;
        let first = self.limits.exchange_first_look;
        let name = E::name_of(message);
        let waiting = self.waiting.entry(name.clone()).or_insert_with(|| {
            // The message's ordinal tells exchanges apart whose looks come at the same time.
            let look = SortKey { time: key.time + first, phase: Phase::Timer, number: 0, ..*key };
            looks.insert((look, name));
            Waiting { exchange: E::begun(message), begun: key.time, last: key.time, look }
        });
        waiting.last = key.time;
        &mut waiting.exchange
    }

    /// Takes out the exchange that would be looked at first, where there is no room for another one.
    fn make_room(&mut self) -> Option<E> {
        if self.waiting.len() < self.limits.exchanges.max(1) {
            return None;
        }
        let (_, name) = self.looks.first().cloned()?;
        self.cut_short += 1;
        self.remove(&name)
    }

    fn remove(&mut self, name: &E::Name) -> Option<E> {
        let waiting = self.waiting.remove(name)?;
        self.looks.remove(&(waiting.look, name.clone()));
        Some(waiting.exchange)
    }
}

impl<E: Exchange> Join for Exchanges<E> {
    fn fact(&mut self, key: &SortKey, fact: Fact, told: &mut Told) -> Option<Fact> {
        let Some(message) = E::message_of(&fact.content) else { return Some(fact) };
        let name = E::name_of(message);
        if !self.waiting.contains_key(&name)
            && let Some(evicted) = self.make_room()
        {
            told.push((SortKey { number: key.number | EVICTED, ..*key }, evicted.joined()));
        }
        let limits = self.limits;
        let exchange = self.exchange(key, message);
        exchange.take(&fact.connection, message);
        if exchange.course().is_full(&limits)
            && let Some(full) = self.remove(&name)
        {
            told.push((*key, full.joined()));
        }
        None
    }

    fn due(&self) -> Option<SortKey> {
        self.looks.first().map(|(look, _)| *look)
    }

    /// It is told if it was silent for long enough or has taken too long.
    fn look(&mut self, told: &mut Told) {
        let Some((look, name)) = self.looks.pop_first() else { return };
        let Limits { exchange_look_interval, exchange_silence, exchange_longest, .. } = self.limits;
        let Some(waiting) = self.waiting.get_mut(&name) else { return };
        if look.time > waiting.last + exchange_silence
            || look.time > waiting.begun + exchange_longest
        {
            let over = self.waiting.remove(&name);
            told.extend(over.map(|waiting| (look, waiting.exchange.joined())));
            return;
        }
        waiting.look = SortKey { time: look.time + exchange_look_interval, ..look };
        self.looks.insert((waiting.look, name));
    }

    fn finish(&mut self, now: Timestamp, told: &mut Told) {
        self.looks.clear();
        for (_, waiting) in core::mem::take(&mut self.waiting) {
            let key = SortKey { time: now, phase: Phase::Join, ..waiting.look };
            told.push((key, waiting.exchange.joined()));
        }
    }

    fn count(&self, statistics: &mut JoinStatistics) {
        statistics.exchanges_cut_short += self.cut_short;
    }
}
