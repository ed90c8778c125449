//! Proxies that connections go through, SOCKS and HTTP CONNECT: rows of the `tunnel` log, as Zeek has
//! them.
//!
//! A client opens a connection for each that it wants to have, so all of them to one port of a server
//! are one tunnel, which has no port of the client and no end but by silence.

use core::any::TypeId;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use netsniff_packet::{Address, Timestamp};

use crate::correlator::{Join, JoinOutput};
use crate::key::uid::Uid;
use crate::limits::Limits;
use crate::log::tunnel::{Tunnel, TunnelAction, TunnelType};
use crate::record::{Connection, Fact, Port, SortKey};

/// A connection through a proxy was asked for, or granted.
#[derive(Clone, Copy, Debug)]
pub(in crate::protocol) struct Proxied {
    pub(in crate::protocol) time: Timestamp,
    /// How: [`TunnelType::Socks`] or [`TunnelType::Http`].
    pub(in crate::protocol) kind: TunnelType,
}

impl Fact for Proxied {
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// Client, server and its port.
type ProxyEnds = (Address, Address, u16);

#[derive(Clone, Copy, Debug)]
struct Proxy {
    kind: TunnelType,
    /// The connection that showed it, which keeps rows of one time apart.
    uid: Uid,
    deadline: Timestamp,
}

/// The proxies that are in use.
#[derive(Debug)]
pub(super) struct Proxies {
    most: usize,
    silence: Duration,
    known: BTreeMap<ProxyEnds, Proxy>,
    /// When each has been silent for so long that a look finds it over.
    deadlines: BTreeSet<(Timestamp, ProxyEnds)>,
}

impl Proxies {
    /// The join, which knows of none.
    pub(super) fn join(limits: &Limits) -> Box<dyn Join> {
        Box::new(Self {
            most: limits.proxies.max(1),
            silence: limits.tunnel_expiration,
            known: BTreeMap::new(),
            deadlines: BTreeSet::new(),
        })
    }

    fn take(
        &mut self,
        key: &SortKey,
        connection: &Connection,
        seen: Proxied,
        out: &mut JoinOutput,
    ) {
        let Connection { originator, responder, uid, .. } = *connection;
        let ends = (originator.address, responder.address, responder.port);
        let deadline = key.time + self.silence;
        if let Some(proxy) = self.known.get_mut(&ends) {
            self.deadlines.remove(&(proxy.deadline, ends));
            proxy.deadline = deadline;
            self.deadlines.insert((deadline, ends));
            return;
        }
        if self.known.len() >= self.most
            && let Some((_, oldest)) = self.deadlines.pop_first()
        {
            // It is told anew if it is used again.
            self.known.remove(&oldest);
        }
        self.known.insert(ends, Proxy { kind: seen.kind, uid, deadline });
        self.deadlines.insert((deadline, ends));
        out.row(*key, row(seen.time, ends, seen.kind, TunnelAction::Discover));
    }

    /// Tells those that were silent for long enough.
    fn look_at_all(&mut self, key: &SortKey, out: &mut JoinOutput) {
        let mut number = key.number;
        while self.deadlines.first().is_some_and(|(deadline, _)| *deadline < key.time)
            && let Some((_, ends)) = self.deadlines.pop_first()
        {
            let Some(proxy) = self.known.remove(&ends) else { continue };
            let key = SortKey { uid: proxy.uid, number, ..*key };
            out.row(key, row(key.time, ends, proxy.kind, TunnelAction::Expire));
            number = number.saturating_add(1);
        }
    }
}

fn row(ts: Timestamp, ends: ProxyEnds, tunnel_type: TunnelType, action: TunnelAction) -> Tunnel {
    let (id_orig_h, id_resp_h, port) = ends;
    Tunnel {
        ts,
        uid: None,
        id_orig_h,
        id_orig_p: Port(0),
        id_resp_h,
        id_resp_p: Port(port),
        tunnel_type,
        action,
    }
}

impl Join for Proxies {
    fn takes(&self) -> &'static [TypeId] {
        const { &[TypeId::of::<Proxied>()] }
    }

    fn fact(
        &mut self,
        key: &SortKey,
        connection: &Connection,
        fact: &dyn Fact,
        out: &mut JoinOutput,
    ) {
        if let Some(seen) = fact.downcast_ref() {
            self.take(key, connection, *seen, out);
        }
    }

    fn look(&mut self, key: &SortKey, out: &mut JoinOutput) {
        self.look_at_all(key, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Endpoint;
    use crate::record::{FieldInfo, Proto, Row, Value, Visitor};

    /// Time and action of a row, in seconds and Zeek's words.
    #[derive(Default)]
    struct Seen(i64, String);

    impl Visitor for Seen {
        fn field(&mut self, _: usize, info: &'static FieldInfo, value: Value<'_>) {
            match (info.name, value) {
                ("ts", Value::Time(time)) => self.0 = time.nanos() / 1_000_000_000,
                ("action", Value::Word(word)) => self.1 = String::from_utf8_lossy(word).into(),
                _ => {}
            }
        }
    }

    /// What is told of connections from hosts at these times, in seconds, where host 0 is a look.
    fn reported(most: usize, seen: &[(i64, u8)]) -> Vec<(i64, String)> {
        let mut join = Proxies::join(&Limits { proxies: most, ..Limits::default() });
        let mut out = JoinOutput::default();
        for &(seconds, host) in seen {
            let time = Timestamp::from_secs_nanos(seconds, 0);
            let end = |last, port| Endpoint { address: Address::from_v4([10, 0, 0, last]), port };
            let connection = Connection {
                uid: Uid::NONE,
                originator: end(host, 40_000 + u16::from(host)),
                responder: end(1, 1080),
                proto: Proto::Tcp,
                start: None,
                local: [false; 2],
            };
            let key = SortKey::first_at(time);
            if host == 0 {
                join.look(&key, &mut out);
                continue;
            }
            let fact = Proxied { time, kind: TunnelType::Socks };
            join.fact(&key, &connection, &fact, &mut out);
        }
        let seen = |row: &dyn Row| {
            let mut seen = Seen::default();
            row.visit(&Connection::NONE, &mut seen);
            (seen.0, seen.1)
        };
        out.drain().map(|joined| seen(&*joined.row)).collect()
    }

    #[test]
    fn a_proxy_is_told_once_and_expires_by_silence() {
        let [discover, expire] = [TunnelAction::Discover, TunnelAction::Expire]
            .map(|action| move |seconds: i64| (seconds, action.name().to_owned()));
        assert_eq!(reported(9, &[(0, 2), (5, 2), (3_604, 0), (3_604, 2)]), [discover(0)]);
        assert_eq!(reported(9, &[(0, 2), (3_600, 0), (4_000, 2)]), [discover(0)]);
        assert_eq!(
            reported(9, &[(0, 2), (4, 3), (3_601, 0), (3_610, 0), (4_000, 2)]),
            [discover(0), discover(4), expire(3_601), expire(3_610), discover(4_000)]
        );
        assert_eq!(
            reported(1, &[(0, 2), (1, 3), (2, 2)]).len(),
            3,
            "what has no room is told anew"
        );
    }
}
