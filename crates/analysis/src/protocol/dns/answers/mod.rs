//! DNS answers, and which of them a connection followed.
//!
//! A connection followed the last answer before its first packet that told its originator the address
//! of its responder and was still good then. Where such answers are of different names, as where many
//! sites have one address, one of the name that the client asks the server for goes before the others.
//! What another host was answered, such as a resolver, tells nothing of this one.

mod queue;

use core::any::TypeId;
use core::hash::BuildHasher as _;
use core::num::NonZeroU32;
use core::time::Duration;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use netsniff_packet::{Address, Timestamp};

use self::queue::Numbered;
use super::Resolution;
use crate::correlator::{Bound, GivenUp, Join, JoinOutput};
use crate::key::uid::Uid;
use crate::limits::Limits;
use crate::protocol::Role;
use crate::record::{Connection, Fact, Interval, SortKey};

crate::columns! {
    /// The answer that a connection followed.
    #[derive(Default, PartialEq, Eq)]
    pub(in crate::protocol) struct Followed {
        /// Identifier of the connection in `dns` whose answer told the client the responder's address:
        /// the last one before the connection, for this name if there is one.
        dns_uid: Option<Uid> => "dns_uid", string, None, Plain, Netsniff;
        /// How long that lookup took: time from the query to the answer.
        dns_rtt: Option<Interval> => "dns_rtt", interval, Seconds, Plain, Netsniff;
        /// How old the answer was: time from it to the first packet of the connection.
        dns_age: Option<Interval> => "dns_age", interval, Seconds, Plain, Netsniff;
    }
}

/// A row, which ends with the columns of [`Followed`], wants to tell which answer its connection followed.
#[derive(Debug)]
pub(in crate::protocol) struct Following {
    /// The host that the client asks the server for, with the port if there is one.
    pub(in crate::protocol) host: Option<Box<[u8]>>,
}

impl Fact for Following {
    fn heap_bytes(&self) -> usize {
        self.host.as_ref().map_or(0, |host| host.len())
    }
}

/// Answers with the same client and address that are looked at, from the last one back. A client asks
/// again when an answer is no longer good, so that it mostly is the first or second one; crafted
/// traffic would make each look long.
const MAX_LOOKS: usize = 64;

/// Bytes of one address of an answer without the name. The table of the last ones, with a byte beside each, is between
/// seven sixteenths and seven eighths full.
const BYTES: usize = size_of::<Resolved>() + (size_of::<u64>() + 1) * 16 / 7;

/// Answers, within a bound of bytes.
#[derive(Debug)]
pub(super) struct Answers {
    /// In the order in which they came. Those that are no longer good stay as long as there is room,
    /// since a connection that began before may tell something only now.
    resolved: Numbered<Resolved>,
    /// The number of the last one for each client and address.
    last: HashTable<u64>,
    /// Protects the table from senders who aim at it, and changes no record.
    hasher: DefaultHashBuilder,
    /// Bytes of the names.
    name_bytes: usize,
    most_bytes: usize,
    least_lifetime: Duration,
    given_up: u64,
}

/// A client, and an address that it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Route {
    client: Address,
    server: Address,
}

/// One address of an answer.
#[derive(Debug)]
struct Resolved {
    route: Route,
    at: Timestamp,
    /// When it is no longer good.
    until: Timestamp,
    rtt: Option<Interval>,
    uid: Uid,
    name: Arc<[u8]>,
    /// How far back the one before with the same route is.
    back: Option<NonZeroU32>,
}

impl Answers {
    /// The join that finds them.
    #[must_use]
    pub(super) fn join(limits: &Limits) -> Box<dyn Join> {
        Box::new(Self::new(limits))
    }

    fn new(limits: &Limits) -> Self {
        Self {
            resolved: Numbered::new(),
            last: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            name_bytes: 0,
            most_bytes: limits.answer_bytes,
            least_lifetime: limits.answer_least_lifetime,
            given_up: 0,
        }
    }

    /// Learns the addresses of an answer that came in `connection`, at engine time `now`.
    fn learn(&mut self, connection: &Connection, resolution: &Resolution, now: Timestamp) {
        let client = match resolution.client {
            Role::Originator => connection.originator.address,
            Role::Responder => connection.responder.address,
        };
        if client.to_ip().is_multicast() {
            // Nobody connects from there. Whoever asked by multicast is not told by the answer.
            return;
        }
        let lifetime = u64::try_from(resolution.lifetime.nanos()).unwrap_or_default();
        let lifetime = Duration::from_nanos(lifetime).max(self.least_lifetime);
        let name = Arc::<[u8]>::from(&*resolution.name);
        for &server in &resolution.addresses {
            let route = Route { client, server };
            let back = self.note_last(route);
            self.name_bytes += name.len();
            self.resolved.push(Resolved {
                route,
                at: resolution.time,
                until: resolution.time + lifetime,
                rtt: resolution.rtt,
                uid: connection.uid,
                name: Arc::clone(&name),
                back,
            });
        }
        while self.bytes() > self.most_bytes && self.forget_first(now) {}
    }

    /// Makes the one that comes next the last one of its route. Returns how far back the one before is.
    fn note_last(&mut self, route: Route) -> Option<NonZeroU32> {
        let Self { resolved, last, hasher, .. } = self;
        let next = resolved.next();
        let hash = hasher.hash_one(route);
        let is_of_it = |&number: &u64| resolved.get(number).is_some_and(|it| it.route == route);
        if let Some(number) = last.find_mut(hash, is_of_it) {
            let before = core::mem::replace(number, next);
            return u32::try_from(next - before).ok().and_then(NonZeroU32::new);
        }
        last.insert_unique(hash, next, |&number| {
            hasher.hash_one(resolved.get(number).map_or(route, |it| it.route))
        });
        None
    }

    /// The number of the last one with this route.
    fn last_of(&self, route: Route) -> Option<u64> {
        let is_of_it =
            |&number: &u64| self.resolved.get(number).is_some_and(|it| it.route == route);
        self.last.find(self.hasher.hash_one(route), is_of_it).copied()
    }

    /// Bytes of all that is kept.
    fn bytes(&self) -> usize {
        self.resolved.len() * BYTES + self.name_bytes
    }

    /// Gives up the oldest; returns whether there was one.
    fn forget_first(&mut self, now: Timestamp) -> bool {
        let Some((oldest_number, oldest)) = self.resolved.pop() else { return false };
        let hash = self.hasher.hash_one(oldest.route);
        if let Ok(last) = self.last.find_entry(hash, |&number| number == oldest_number) {
            last.remove();
        }
        self.name_bytes -= oldest.name.len();
        self.given_up += u64::from(oldest.until > now);
        true
    }

    /// The answer that a connection followed whose client asked for the host `name`.
    fn followed(&self, connection: &Connection, name: Option<&[u8]>) -> Option<Followed> {
        let start = connection.start?;
        let route =
            Route { client: connection.originator.address, server: connection.responder.address };
        let mut next = self.last_of(route);
        let mut last = None;
        for _ in 0..MAX_LOOKS {
            let Some(number) = next else { break };
            let Some(resolved) = self.resolved.get(number) else { break };
            next = resolved.back.and_then(|back| number.checked_sub(u64::from(back.get())));
            if !resolved.is_good_at(start) {
                continue;
            }
            if name.is_none_or(|name| resolved.name.eq_ignore_ascii_case(name)) {
                return Some(resolved.answer(start));
            }
            last.get_or_insert(resolved);
        }
        last.map(|resolved| resolved.answer(start))
    }
}

impl Resolved {
    fn is_good_at(&self, time: Timestamp) -> bool {
        self.at <= time && time < self.until
    }

    fn answer(&self, start: Timestamp) -> Followed {
        let age = Interval::between(self.at, start);
        Followed { dns_uid: Some(self.uid), dns_rtt: self.rtt, dns_age: Some(age) }
    }
}

/// The name of a host without the port that may follow it (RFC 9110, section 7.2) and without the dot
/// of the root.
fn host_name(host: &[u8]) -> &[u8] {
    let colon = host.iter().rposition(|&byte| byte == b':');
    let name = match colon.and_then(|colon| host.split_at_checked(colon)) {
        Some((name, [_, port @ ..])) if port.iter().all(u8::is_ascii_digit) => name,
        _ => host,
    };
    name.strip_suffix(b".").unwrap_or(name)
}

impl Join for Answers {
    fn takes(&self) -> &'static [TypeId] {
        const { &[TypeId::of::<Resolution>(), TypeId::of::<Following>()] }
    }

    fn fact(
        &mut self,
        key: &SortKey,
        connection: &Connection,
        fact: &dyn Fact,
        out: &mut JoinOutput,
    ) {
        if let Some(resolution) = fact.downcast_ref() {
            self.learn(connection, resolution, key.time);
        }
        if let Some(Following { host }) = fact.downcast_ref() {
            let answer = self.followed(connection, host.as_deref().map(host_name));
            out.columns(answer.unwrap_or_default());
        }
    }

    fn given_up(&self) -> Option<GivenUp> {
        Some(GivenUp {
            bound: Bound::Bytes(self.most_bytes),
            of: "for DNS answers",
            count: self.given_up,
            what: "addresses were given up while connections could still follow them, whose columns \
                   dns_uid, dns_rtt and dns_age are unset",
        })
    }
}

#[cfg(test)]
mod tests;
