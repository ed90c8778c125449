//! Proxies that connections go through, SOCKS and HTTP CONNECT: rows of the `tunnel` log, as Zeek has
//! them.
//!
//! A client opens a connection for each that it wants to have, so all of them to one port of a server
//! are one tunnel, which has no port of the client and no end but by silence.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use netsniff_packet::{Address, Timestamp};

use super::{Content, Fact, Join, JoinStatistics, Joined, Told};
use crate::limits::Limits;
use crate::log::tunnel::{Tunnel, TunnelAction, TunnelType};
use crate::protocol::Connection;
use crate::record::{Phase, Port, SortKey};
use crate::uid::Uid;

/// A connection through a proxy was asked for, or granted.
#[derive(Clone, Copy, Debug)]
pub struct Proxied {
    /// When.
    pub time: Timestamp,
    /// How: [`TunnelType::Socks`] or [`TunnelType::Http`].
    pub kind: TunnelType,
}

/// Client, server and its port.
type Ends = (Address, Address, u16);

#[derive(Clone, Copy, Debug)]
struct Proxy {
    kind: TunnelType,
    /// The connection that showed it, which keeps rows of one time apart.
    uid: Uid,
    deadline: Timestamp,
}

/// The proxies that are in use.
#[derive(Debug)]
pub struct Proxies {
    most: usize,
    silence: Duration,
    known: BTreeMap<Ends, Proxy>,
    deadlines: BTreeSet<(Timestamp, Ends)>,
}

impl Proxies {
    /// The join, which knows of none.
    #[must_use]
    pub fn join(limits: &Limits) -> Box<dyn Join> {
        Box::new(Self {
            most: limits.proxies.max(1),
            silence: limits.tunnel_expiration,
            known: BTreeMap::new(),
            deadlines: BTreeSet::new(),
        })
    }

    fn take(&mut self, key: &SortKey, connection: &Connection, seen: Proxied, told: &mut Told) {
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
        told.push((*key, row(seen.time, ends, seen.kind, TunnelAction::Discover)));
    }
}

fn row(ts: Timestamp, ends: Ends, tunnel_type: TunnelType, action: TunnelAction) -> Joined {
    let (id_orig_h, id_resp_h, port) = ends;
    Joined::Tunnel(Tunnel {
        ts,
        uid: None,
        id_orig_h,
        id_orig_p: Port(0),
        id_resp_h,
        id_resp_p: Port(port),
        tunnel_type,
        action,
    })
}

impl Join for Proxies {
    fn fact(&mut self, key: &SortKey, fact: Fact, told: &mut Told) -> Option<Fact> {
        let Fact { connection, content } = fact;
        let Content::Proxied(seen) = content else { return Some(Fact { connection, content }) };
        self.take(key, &connection, seen, told);
        None
    }

    fn due(&self) -> Option<SortKey> {
        let (deadline, ends) = self.deadlines.first()?;
        let uid = self.known.get(ends)?.uid;
        Some(SortKey { time: *deadline, phase: Phase::Timer, ordinal: 0, uid, number: 0 })
    }

    fn look(&mut self, told: &mut Told) {
        let (Some(key), Some((deadline, ends))) = (self.due(), self.deadlines.pop_first()) else {
            return;
        };
        if let Some(proxy) = self.known.remove(&ends) {
            told.push((key, row(deadline, ends, proxy.kind, TunnelAction::Expire)));
        }
    }

    fn count(&self, _: &mut JoinStatistics) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::key::Endpoint;
    use crate::log::conn::Proto;

    /// What is told of connections from hosts at these times, in seconds.
    fn told(most: usize, seen: &[(i64, u8)]) -> Vec<(i64, TunnelAction)> {
        let mut join = Proxies::join(&Limits { proxies: most, ..Limits::default() });
        let mut told = Told::new();
        for &(seconds, host) in seen {
            let time = Timestamp::from_secs_nanos(seconds, 0);
            let end = |last, port| Endpoint { address: Address::from_v4([10, 0, 0, last]), port };
            let connection = Connection {
                uid: Uid::NONE,
                originator: end(host, 40_000 + u16::from(host)),
                responder: end(1, 1080),
                proto: Proto::Tcp,
                start: None,
            };
            while join.due().is_some_and(|due| due.time < time) {
                join.look(&mut told);
            }
            let content = Content::Proxied(Proxied { time, kind: TunnelType::Socks });
            join.fact(&SortKey::first_at(time), Fact { connection, content }, &mut told);
        }
        let line = |(_, joined): (SortKey, Joined)| match joined {
            Joined::Tunnel(row) => (row.ts.nanos() / 1_000_000_000, row.action),
            other => panic!("{other:?}"),
        };
        told.into_iter().map(line).collect()
    }

    #[test]
    fn a_proxy_is_told_once_and_expires_by_silence() {
        use TunnelAction::{Discover, Expire};
        assert_eq!(told(9, &[(0, 2), (5, 2), (3_604, 2)]), [(0, Discover)]);
        assert_eq!(
            told(9, &[(0, 2), (4, 3), (4_000, 2)]),
            [(0, Discover), (4, Discover), (3_600, Expire), (3_604, Expire), (4_000, Discover)]
        );
        assert_eq!(told(1, &[(0, 2), (1, 3), (2, 2)]).len(), 3, "what has no room is told anew");
    }
}
