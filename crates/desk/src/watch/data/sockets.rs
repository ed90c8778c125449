//! Sockets of this host that are connected, and the processes that have them.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::row::LogRow;

/// Processes of a connection that are told apart.
const MOST: usize = 4;
/// What all further ones are.
const OTHERS: &str = "others";

/// The protocol and both ends of a connection, in whichever order: nobody knows who began it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ends {
    is_tcp: bool,
    ends: [SocketAddr; 2],
}

/// The processes that had the sockets of a connection: one, or two where both ends are of this host, or more where one
/// process came after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owners(BTreeSet<Arc<str>>);

/// Who has which sockets at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct SocketTable {
    /// The processes that have the sockets at these ends; none where they are not known.
    pub(crate) owners: HashMap<Ends, Owners>,
    /// Whether there are processes that may not be looked at.
    pub(crate) hides_processes: bool,
}

impl Ends {
    /// Those of a socket.
    pub(crate) fn new(is_tcp: bool, one: SocketAddr, other: SocketAddr) -> Self {
        let plain = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
        let mut ends = [plain(one), plain(other)];
        ends.sort_unstable();
        Self { is_tcp, ends }
    }

    /// Those of a row of `conn`; `None` for what has no sockets of this kind.
    pub(crate) fn of(row: &LogRow) -> Option<Self> {
        let is_tcp = match row.text("proto")? {
            "tcp" => true,
            "udp" => false,
            _ => return None,
        };
        let end = |host: &str, port: &str| {
            let address: IpAddr = row.text(host)?.parse().ok()?;
            Some(SocketAddr::new(address, u16::try_from(row.count(port)?).ok()?))
        };
        Some(Self::new(is_tcp, end("id.orig_h", "id.orig_p")?, end("id.resp_h", "id.resp_p")?))
    }
}

impl Owners {
    /// Adds one.
    pub(crate) fn add(&mut self, owner: &Arc<str>) {
        let has_room = self.0.len() < MOST || self.0.contains(owner);
        self.0.insert(if has_room { Arc::clone(owner) } else { OTHERS.into() });
    }

    /// Adds those who have the sockets now.
    pub(crate) fn add_all(&mut self, now: &Self) {
        now.0.iter().for_each(|owner| self.add(owner));
    }

    /// All of them; `None` where none is known.
    pub(crate) fn told(&self) -> Option<String> {
        let all: Vec<_> = self.0.iter().map(|owner| &**owner).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_the_same_from_both_sides_and_in_both_families() {
        let row = |proto: &str| {
            LogRow::read(&format!(
                "{{\"_path\":\"conn\",\"proto\":\"{proto}\",\"id.orig_h\":\"192.0.2.1\",\"id.orig_p\":4000,\
                 \"id.resp_h\":\"192.0.2.2\",\"id.resp_p\":80}}"
            ))
            .unwrap()
        };
        let mapped = ("[::ffff:192.0.2.2]:80", "[::ffff:192.0.2.1]:4000");
        let (local, remote) = (mapped.0.parse().unwrap(), mapped.1.parse().unwrap());
        let of_socket = Ends::new(true, local, remote);
        assert_eq!(Ends::of(&row("tcp")).unwrap(), of_socket);
        assert_ne!(Ends::of(&row("udp")).unwrap(), of_socket);
        assert_eq!(Ends::of(&row("icmp")), None);
    }

    #[test]
    fn all_owners_are_told_up_to_a_bound() {
        let mut owners = Owners::default();
        assert_eq!(owners.told(), None);
        for name in ["b 2", "a 1", "b 2"] {
            owners.add(&name.into());
        }
        assert_eq!(owners.told().unwrap(), "a 1, b 2");
        (0..100).for_each(|pid| owners.add(&format!("c {pid}").into()));
        assert_eq!(owners.told().unwrap(), "a 1, b 2, c 0, c 1, others");
    }
}
