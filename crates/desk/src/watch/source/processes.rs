//! Which processes have the sockets of this host, looked up at a slow pace. The files of procfs tell it, by the crate procfs.
//!
//! A socket is known by its inode: the tables of sockets have it, and so have the links of the file descriptors of a process.
//! Only sockets of this network namespace are in the tables, and only those that are connected are looked for.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use procfs::ProcError;
use procfs::net::{tcp, tcp6, udp, udp6};
use procfs::process::{FDTarget, all_processes};

use crate::watch::data::sockets::{Ends, Owners, SocketTable};

/// Between two looks.
const PACE: Duration = Duration::from_secs(2);
/// Sockets that are looked at; of more, some have no process.
const MOST_SOCKETS: usize = 65_536;
/// File descriptors of all processes that are looked at in one look.
const MOST_DESCRIPTORS: usize = 1 << 20;

/// Looks until nobody wants to know any more.
///
/// # Errors
///
/// Where no thread can be started.
pub(crate) fn watch(
    tell: impl Fn(SocketTable) -> Option<()> + Send + 'static,
) -> std::io::Result<()> {
    let look = move || {
        let mut known = Known::default();
        while tell(known.look()).is_some() {
            thread::sleep(PACE);
        }
    };
    thread::Builder::new().name("processes".to_owned()).spawn(look).map(|_| ())
}

/// The processes of sockets that were there at the last look.
#[derive(Debug, Default)]
struct Known {
    /// By inode; `None` where none was found.
    owners: HashMap<u64, Option<Arc<str>>>,
    hides_processes: bool,
}

impl Known {
    fn look(&mut self) -> SocketTable {
        let sockets = sockets();
        let is_new = sockets.iter().any(|(inode, _)| !self.owners.contains_key(inode));
        if is_new {
            let (owners, hides_processes) = owners();
            self.hides_processes = hides_processes;
            let mut before = std::mem::take(&mut self.owners);
            for inode in sockets.keys() {
                // Who had it first is told: a socket that is handed on is still that of the same connection.
                let owner = before.remove(inode).flatten().or_else(|| owners.get(inode).cloned());
                self.owners.insert(*inode, owner);
            }
        } else {
            self.owners.retain(|inode, _| sockets.contains_key(inode));
        }
        let mut owners: HashMap<Ends, Owners> = HashMap::new();
        for (inode, ends) in sockets {
            // Where both ends are of this host, there are two sockets.
            let all = owners.entry(ends).or_default();
            self.owners.get(&inode).into_iter().flatten().for_each(|owner| all.add(owner));
        }
        SocketTable { owners, hides_processes: self.hides_processes }
    }
}

/// The connected sockets by their inodes. What cannot be read has none.
fn sockets() -> HashMap<u64, Ends> {
    let tcp = [tcp(), tcp6()].into_iter().flatten().flatten();
    let tcp = tcp.map(|it| (true, it.local_address, it.remote_address, it.inode));
    let udp = [udp(), udp6()].into_iter().flatten().flatten();
    let udp = udp.map(|it| (false, it.local_address, it.remote_address, it.inode));
    // Who is not connected has no other end, and a socket that no process has any more has no inode.
    let connected =
        tcp.chain(udp).filter(|(_, _, remote, inode)| remote.port() != 0 && *inode != 0);
    let ends = |(is_tcp, local, remote, inode)| (inode, Ends::new(is_tcp, local, remote));
    connected.take(MOST_SOCKETS).map(ends).collect()
}

/// The processes of all sockets by their inodes, and whether some may not be looked at.
fn owners() -> (HashMap<u64, Arc<str>>, bool) {
    let (mut found, mut hides, mut left) = (HashMap::new(), false, MOST_DESCRIPTORS);
    for process in all_processes().into_iter().flatten().flatten() {
        let descriptors = match process.fd() {
            Ok(descriptors) => descriptors,
            // One that has ended meanwhile has no sockets; others keep theirs to themselves.
            Err(error) => {
                hides |= matches!(error, ProcError::PermissionDenied(_));
                continue;
            }
        };
        let mut name = None;
        for descriptor in descriptors.flatten() {
            left = left.saturating_sub(1);
            let FDTarget::Socket(inode) = descriptor.target else { continue };
            let name = name.get_or_insert_with(|| {
                process.stat().ok().map(|stat| named(&stat.comm, process.pid))
            });
            // Of several, the first one that is found stands for all: they have it from each other.
            if let Some(name) = name.as_ref() {
                found.entry(inode).or_insert_with(|| Arc::clone(name));
            }
        }
        if left == 0 {
            return (found, true);
        }
    }
    (found, hides)
}

/// A process by its name, which it may choose, and its number.
fn named(name: &str, pid: i32) -> Arc<str> {
    format!("{name} {pid}").into()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    /// The process of the connection between two ends.
    fn owner(known: &mut Known, ends: &Ends) -> Option<Option<String>> {
        known.look().owners.get(ends).map(Owners::told)
    }

    #[test]
    fn sockets_of_this_process_are_its_own_while_they_are_open() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let ends = Ends::new(true, stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        let [one, other] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let [at, peer] = [&one, &other].map(|socket| socket.local_addr().unwrap());
        let mut known = Known::default();
        let of_datagrams = Ends::new(false, at, peer);
        // Nobody knows who would answer a socket that is not connected.
        assert_eq!(owner(&mut known, &of_datagrams), None);
        one.connect(peer).unwrap();
        let own = format!(" {}", std::process::id());
        for ends in [&ends, &of_datagrams] {
            let found = owner(&mut known, ends).flatten();
            assert!(found.as_ref().is_some_and(|name| name.ends_with(&own)), "{found:?}");
        }
        drop(one);
        assert_eq!(owner(&mut known, &of_datagrams), None);
        assert!(known.owners.len() <= sockets().len() + 8, "what is gone is not kept");
    }
}
