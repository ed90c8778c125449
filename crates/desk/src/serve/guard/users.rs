//! Which user of this host has the other end of a connection over loopback.
//!
//! The kernel lists the sockets of a network namespace with their users in `/proc/net/tcp` and `/proc/net/tcp6`. A
//! client on this host has a row there: the one whose local address is what a server sees as its peer.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The superuser, who can see everything anyway.
const ROOT: u32 = 0;

/// What the kernel writes for a user that the namespace of whoever reads has no number for.
const UNKNOWN: u32 = 65534;

/// How often a list is read: a row can be missed while others are added.
const ATTEMPTS: usize = 3;

/// The longest line of a list that is looked at.
const LONGEST: usize = 512;

/// The users who may look.
#[derive(Debug)]
pub(super) struct Users(BTreeSet<u32>);

impl Users {
    /// The user of this process, root, and who called this process as root by `sudo` or `pkexec`. `None` where
    /// the system does not tell whose a connection is.
    #[cfg(target_os = "linux")]
    pub(super) fn own() -> Option<Self> {
        let own = rustix::process::geteuid().as_raw();
        let is_told = File::open("/proc/self/net/tcp").is_ok() && own != unknown_user();
        let mut users = BTreeSet::from([own, ROOT]);
        if own == ROOT {
            // Set by these programs over whatever their caller has set; somebody else who starts a process as root is root.
            let callers = ["SUDO_UID", "PKEXEC_UID"].into_iter().filter_map(std::env::var_os);
            users.extend(callers.filter_map(|uid| uid.to_str()?.parse::<u32>().ok()));
        }
        is_told.then(|| Self::of(users))
    }

    /// Elsewhere there is no such list.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn own() -> Option<Self> {
        None
    }

    fn of(users: BTreeSet<u32>) -> Self {
        let unknown = unknown_user();
        Self(users.into_iter().filter(|user| *user != unknown).collect())
    }

    /// These users and no others.
    #[cfg(test)]
    pub(super) fn these(users: &[u32]) -> Self {
        Self::of(users.iter().copied().collect())
    }

    /// Whether one of them has the connection from `peer` to our end `local`. Reads files, and so may wait.
    pub(super) fn have(&self, peer: SocketAddr, local: SocketAddr) -> bool {
        let lists: &[List] = match peer.ip().to_canonical() {
            // A socket for both versions stands in the list of version 6.
            IpAddr::V4(_) => &[List::Tcp, List::Tcp6],
            IpAddr::V6(_) => &[List::Tcp6],
        };
        let found = (0..ATTEMPTS).flat_map(|_| lists).find_map(|list| {
            let file = File::open(list.path()).ok()?;
            owner(BufReader::new(file), &list.form(peer), &list.form(local))
        });
        found.is_some_and(|user| self.0.contains(&user))
    }
}

fn unknown_user() -> u32 {
    let told = std::fs::read_to_string("/proc/sys/kernel/overflowuid");
    told.ok().and_then(|told| told.trim().parse().ok()).unwrap_or(UNKNOWN)
}

/// A list of the kernel's.
#[derive(Clone, Copy)]
enum List {
    Tcp,
    Tcp6,
}

impl List {
    const fn path(self) -> &'static str {
        match self {
            Self::Tcp => "/proc/self/net/tcp",
            Self::Tcp6 => "/proc/self/net/tcp6",
        }
    }

    /// An address as the list has it: words of 32 bits as the processor reads them.
    fn form(self, address: SocketAddr) -> String {
        let bytes = match (self, address.ip().to_canonical()) {
            (Self::Tcp, IpAddr::V4(ip)) => ip.octets().to_vec(),
            (Self::Tcp, IpAddr::V6(_)) => Ipv4Addr::UNSPECIFIED.octets().to_vec(),
            (Self::Tcp6, IpAddr::V4(ip)) => ip.to_ipv6_mapped().octets().to_vec(),
            (Self::Tcp6, IpAddr::V6(ip)) => ip.octets().to_vec(),
        };
        let (words, _) = bytes.as_chunks::<4>();
        let words = words.iter().map(|word| format!("{:08X}", u32::from_ne_bytes(*word)));
        format!("{}:{:04X}", words.collect::<String>(), address.port())
    }
}

/// The user of the socket with these two addresses, as the list names them.
fn owner(mut list: impl BufRead, its: &str, ours: &str) -> Option<u32> {
    let mut line = Vec::with_capacity(LONGEST);
    loop {
        line.clear();
        let read = std::io::Read::take(&mut list, LONGEST as u64).read_until(b'\n', &mut line);
        if read.ok()? == 0 {
            return None;
        }
        let line = String::from_utf8_lossy(&line);
        let fields: Vec<_> = line.split_whitespace().collect();
        // sl, local, remote, state, queues, timer, retransmitted, uid, time-out, inode
        let [_, local, remote, _, _, _, _, uid, _, inode, ..] = fields[..] else { continue };
        // A socket that its process has closed has no inode, and the kernel calls root its user.
        if local == its && remote == ours && inode != "0" {
            return uid.parse().ok();
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_is_of_this_user_whatever_version_it_speaks() {
        let own = rustix::process::geteuid().as_raw();
        for (listen, connect) in [
            ("127.0.0.1:0", "127.0.0.1"),
            ("127.0.0.1:0", "[::ffff:127.0.0.1]"),
            ("[::1]:0", "[::1]"),
            ("[::]:0", "127.0.0.1"),
        ] {
            let Ok(listener) = TcpListener::bind(listen) else {
                let why = format!("no {listen} here");
                netsniff_testing::skip(netsniff_testing::Need::Kernel, why);
                continue;
            };
            let port = listener.local_addr().unwrap().port();
            let client = TcpStream::connect(format!("{connect}:{port}")).unwrap();
            let (server, peer) = listener.accept().unwrap();
            let local = server.local_addr().unwrap();
            assert!(Users::these(&[own]).have(peer, local), "{listen} {connect}");
            assert!(!Users::these(&[own + 1]).have(peer, local), "{listen} {connect}");
            drop(client);
            assert!(!Users::these(&[own, ROOT]).have(peer, local), "closed: {listen} {connect}");
        }
    }

    #[test]
    fn a_row_is_told_by_both_addresses_and_has_an_owner() {
        let rows = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:0050 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 77 1 x\n\
            1: 0100007F:0051 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 0 1 x\n\
            2: 0100007F:0050 0100007F:1F91 01 00000000:00000000 00:00000000 00000000  1002        0 78 1 x\n\
            3: 0100007F:0052\n";
        let find = |its, ours| owner(rows.as_bytes(), its, ours);
        assert_eq!(find("0100007F:0050", "0100007F:1F90"), Some(1001));
        assert_eq!(find("0100007F:0050", "0100007F:1F91"), Some(1002));
        assert_eq!(find("0100007F:0051", "0100007F:1F90"), None);
        assert_eq!(find("0100007F:0052", "0100007F:1F90"), None);
    }

    #[test]
    fn who_has_no_number_here_is_nobody_who_may_look() {
        assert!(Users::these(&[unknown_user(), 5]).0 == BTreeSet::from([5]));
    }
}
