//! This machine.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};

use netsniff_capture::ethtool::{Calls, Ethtool};
use netsniff_capture::host::{PacketSocket, Qdisc, packet_sockets, qdiscs};
use netsniff_capture::in_namespace_of;

use super::Kernel;

/// Where settings of the network are. Some are of the whole machine, and only the first network namespace shows them.
const SETTINGS: &str = "/proc/sys/net/";

/// Where control groups are; a command of ip-netns(8) has another /sys, without them.
const GROUPS: &str = "/sys/fs/cgroup";

/// Processes that may be in the namespaces in which the machine was started: the first one, and those that began this one, the
/// outermost first.
fn outer() -> Vec<u32> {
    let parent = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before may have blanks and brackets (proc(5)).
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let mut found = Vec::new();
    let mut pid = std::process::id();
    while let Some(next) = parent(pid).filter(|next| *next > 1) {
        found.push(next);
        pid = next;
    }
    found.push(1);
    found.reverse();
    found
}

/// The kernel that this process runs on, as its network namespace shows it.
#[derive(Debug)]
pub struct Here(Calls);

impl Here {
    /// Opens what questions need.
    ///
    /// # Errors
    ///
    /// Where no socket can be had.
    pub fn open() -> anyhow::Result<Self> {
        Ok(Self(Calls::open()?))
    }
}

/// Does something with a file that other namespaces may have.
fn anywhere<T: Send>(path: &str, work: impl Fn(&str) -> io::Result<T> + Sync) -> io::Result<T> {
    let error = match work(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => error,
        result => return result,
    };
    let elsewhere = |pid: u32| match path {
        // Without the right to look there, it is missing as it was.
        path if path.starts_with(SETTINGS) => {
            in_namespace_of(pid, || work(path)).and_then(|it| it).ok()
        }
        path if path.starts_with(GROUPS) => work(&format!("/proc/{pid}/root{path}")).ok(),
        _ => None,
    };
    outer().into_iter().find_map(elsewhere).ok_or(error)
}

impl Ethtool for Here {
    fn ask(&self, interface: &str, words: &mut [u32]) -> io::Result<()> {
        self.0.ask(interface, words)
    }
}

impl Kernel for Here {
    fn read(&self, path: &str) -> io::Result<String> {
        let text = anywhere(path, |path| fs::read(path))?;
        Ok(String::from_utf8_lossy(&text).trim().to_owned())
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<_> =
            fs::read_dir(path)?.map(|it| it.map(name)).collect::<Result<_, _>>()?;
        names.sort_unstable();
        Ok(names)
    }

    fn target(&self, path: &str) -> io::Result<String> {
        Ok(fs::read_link(path)?.to_string_lossy().into_owned())
    }

    fn holders(&self, wanted: &[String]) -> Vec<(u32, Vec<String>)> {
        let pids = self.list("/proc").unwrap_or_default();
        let mut pids: Vec<u32> = pids.iter().filter_map(|pid| pid.parse().ok()).collect();
        pids.sort_unstable();
        let held = |pid: u32| {
            let folder = format!("/proc/{pid}/fd");
            let files = self.list(&folder).unwrap_or_default();
            let targets =
                files.iter().filter_map(|file| self.target(&format!("{folder}/{file}")).ok());
            let held: Vec<_> = targets.filter(|to| wanted.contains(to)).collect();
            (pid != std::process::id() && !held.is_empty()).then_some((pid, held))
        };
        pids.into_iter().filter_map(held).collect()
    }

    fn packet_sockets(&self) -> io::Result<Vec<PacketSocket>> {
        const OWN: &str = "/proc/self/fd";
        let files = self.list(OWN)?;
        let own = files.iter().filter_map(|file| self.target(&format!("{OWN}/{file}")).ok());
        let own: Vec<_> = own.collect();
        let mut sockets = packet_sockets().map_err(io::Error::other)?;
        sockets.retain(|socket| !own.contains(&format!("socket:[{}]", socket.inode)));
        Ok(sockets)
    }

    fn qdiscs(&self) -> io::Result<Vec<Qdisc>> {
        qdiscs().map_err(io::Error::other)
    }

    fn write(&self, path: &str, value: &str) -> io::Result<()> {
        // In one call, as the kernel wants it; files of procfs and sysfs are never made.
        anywhere(path, |path| {
            OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
        })
    }
}
