//! Exchanges in progress, bounded, with the looks that end them.

use core::any::TypeId;
use core::fmt::Debug;
use std::collections::{BTreeMap, BTreeSet};

use netsniff_packet::Timestamp;

use super::{Bound, GivenUp, Join, JoinOutput};
use crate::key::uid::Uid;
use crate::limits::Limits;
use crate::record::{Connection, Fact, Interval, Phase, Row, SortKey};

/// Messages that belong together and become one record.
pub trait MessageExchange: Debug + Send {
    /// What tells it apart from others.
    type Name: Clone + Debug + Ord + Send;
    /// One message of an exchange, as its session hands it over.
    type Message: Fact;
    /// The row that a whole exchange becomes.
    type Row: Row + 'static;

    /// What several at a time are called, where their bound is told.
    const PLURAL: &'static str;

    /// The exchange that a message belongs to.
    fn name_of(message: &Self::Message) -> Self::Name;

    /// An exchange that begins with this message, which [`Self::take`] gets next.
    fn begun(message: &Self::Message) -> Self;

    /// Adds a message of the same exchange.
    fn take(&mut self, connection: &Connection, message: &Self::Message);

    /// How it went so far.
    fn course(&self) -> &ExchangeProgress;

    /// Bytes that it and its name hold outside themselves.
    fn heap_bytes(&self) -> usize;

    /// The row of an exchange to which nothing more is added.
    fn row(self) -> Self::Row;
}

/// How an exchange went.
#[derive(Debug)]
pub struct ExchangeProgress {
    begun: Timestamp,
    last: Timestamp,
    uids: Vec<Uid>,
    kinds: Vec<u8>,
}

impl ExchangeProgress {
    /// It begins at `time`.
    #[must_use]
    pub const fn begun(time: Timestamp) -> Self {
        Self { begun: time, last: time, uids: Vec::new(), kinds: Vec::new() }
    }

    /// Notes a message of the type `kind`, seen at `time` in the flow `uid`.
    pub fn note(&mut self, time: Timestamp, uid: Uid, kind: u8) {
        // Messages may be captured in the wrong order.
        self.last = self.last.max(time);
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
    pub fn into_uids(self) -> Vec<Uid> {
        self.uids
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

    /// Bytes that it holds outside itself.
    #[must_use]
    pub const fn heap_bytes(&self) -> usize {
        self.uids.capacity() * size_of::<Uid>() + self.kinds.capacity()
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

/// Exchanges that wait for further messages, by their key.
#[derive(Debug)]
pub struct PendingExchanges<E: MessageExchange> {
    waiting: BTreeMap<E::Name, Waiting<E>>,
    /// When each may be looked at next: a look behind that counts.
    looks: BTreeSet<(SortKey, E::Name)>,
    /// No look counts before this: several may look at one traffic.
    next_look: Timestamp,
    /// Bytes that exchanges and names hold outside themselves.
    held_bytes: usize,
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
    /// Bytes that it held outside itself when that was last counted.
    held_bytes: usize,
}

/// What tells the record of an exchange that is told for want of room from the one that the same
/// message may complete.
const EVICTED: u32 = 1 << 31;
/// More than one message can push out: what it holds is no more than some hundred exchanges are.
const MOST_EVICTED: u32 = 4096;

impl<E: MessageExchange + 'static> PendingExchanges<E> {
    /// The join that makes such exchanges.
    #[must_use]
    pub fn join(limits: &Limits) -> Box<dyn Join> {
        Box::new(Self::new(limits))
    }
}

impl<E: MessageExchange> PendingExchanges<E> {
    const fn new(limits: &Limits) -> Self {
        Self {
            waiting: BTreeMap::new(),
            looks: BTreeSet::new(),
            next_look: Timestamp::MIN,
            held_bytes: 0,
            limits: *limits,
            cut_short: 0,
        }
    }

    /// Bytes of one exchange without what it holds outside itself. Both trees have room for up to
    /// twice what they hold.
    const BYTES: usize = 2 * (size_of::<(E::Name, Waiting<E>)>() + size_of::<(SortKey, E::Name)>());

    /// Bytes of all of them.
    fn bytes(&self) -> usize {
        self.waiting.len() * Self::BYTES + self.held_bytes
    }

    /// Takes a message at `key` into its exchange, which may begin with it. Returns whether that is
    /// full then.
    fn take(&mut self, key: &SortKey, connection: &Connection, message: &E::Message) -> bool {
        let looks = &mut self.looks;
        let first = self.limits.exchange_first_look;
        let name = E::name_of(message);
        let waiting = self.waiting.entry(name.clone()).or_insert_with(|| {
            // The message's ordinal tells exchanges apart whose looks come at the same time.
            let look = SortKey { time: key.time + first, phase: Phase::Timer, number: 0, ..*key };
            looks.insert((look, name));
            let exchange = E::begun(message);
            Waiting { exchange, begun: key.time, last: key.time, look, held_bytes: 0 }
        });
        waiting.last = key.time;
        waiting.exchange.take(connection, message);
        self.held_bytes -= waiting.held_bytes;
        waiting.held_bytes = waiting.exchange.heap_bytes();
        self.held_bytes += waiting.held_bytes;
        waiting.exchange.course().is_full(&self.limits)
    }

    /// Takes out the exchange that would be looked at first, where there are too many.
    fn make_room(&mut self) -> Option<E> {
        let Limits { exchanges, exchange_bytes, .. } = self.limits;
        if self.waiting.len() <= exchanges.max(1) && self.bytes() <= exchange_bytes {
            return None;
        }
        let (_, name) = self.looks.first().cloned()?;
        self.cut_short += 1;
        self.remove(&name)
    }

    /// Tells those that were silent for long enough or have taken too long, of those that may be looked at.
    fn look_at_all(&mut self, key: &SortKey, out: &mut JoinOutput) {
        if key.time < self.next_look {
            return;
        }
        self.next_look = key.time + self.limits.look_interval;
        let Limits { exchange_look_interval, exchange_silence, exchange_longest, .. } = self.limits;
        let mut number = key.number;
        while self.looks.first().is_some_and(|(look, _)| look.time < key.time)
            && let Some((look, name)) = self.looks.pop_first()
        {
            let Some(waiting) = self.waiting.get_mut(&name) else { continue };
            let is_over = key.time > waiting.last + exchange_silence
                || key.time > waiting.begun + exchange_longest;
            if is_over {
                if let Some(over) = self.remove(&name) {
                    out.row(SortKey { number, ..*key }, over.row());
                }
                number = number.saturating_add(1);
                continue;
            }
            waiting.look = SortKey { time: key.time + exchange_look_interval, ..look };
            self.looks.insert((waiting.look, name));
        }
    }

    fn remove(&mut self, name: &E::Name) -> Option<E> {
        let waiting = self.waiting.remove(name)?;
        self.looks.remove(&(waiting.look, name.clone()));
        self.held_bytes -= waiting.held_bytes;
        Some(waiting.exchange)
    }
}

impl<E: MessageExchange> Join for PendingExchanges<E> {
    fn takes(&self) -> &'static [TypeId] {
        const { &[TypeId::of::<E::Message>()] }
    }

    fn fact(
        &mut self,
        key: &SortKey,
        connection: &Connection,
        fact: &dyn Fact,
        out: &mut JoinOutput,
    ) {
        let Some(message) = fact.downcast_ref::<E::Message>() else { return };
        if self.take(key, connection, message)
            && let Some(full) = self.remove(&E::name_of(message))
        {
            out.row(*key, full.row());
        }
        let mut number = EVICTED.saturating_add(key.number.saturating_mul(MOST_EVICTED));
        while let Some(evicted) = self.make_room() {
            out.row(SortKey { number, ..*key }, evicted.row());
            number = number.saturating_add(1);
        }
    }

    fn look(&mut self, key: &SortKey, out: &mut JoinOutput) {
        self.look_at_all(key, out);
    }

    fn finish(&mut self, now: Timestamp, out: &mut JoinOutput) {
        self.looks.clear();
        self.held_bytes = 0;
        for (_, waiting) in core::mem::take(&mut self.waiting) {
            let key = SortKey { time: now, phase: Phase::Join, ..waiting.look };
            out.row(key, waiting.exchange.row());
        }
    }

    fn given_up(&self) -> Option<GivenUp> {
        let (bound, of) = (Bound::Number(self.limits.exchanges), E::PLURAL);
        Some(GivenUp { bound, of, count: self.cut_short, what: "were told early" })
    }
}
