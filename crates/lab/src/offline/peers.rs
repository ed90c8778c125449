//! THE list of other programs that read capture files, with how each is started, and what it says of the packets.

use std::path::Path;
use std::process::Command;

use crate::tools::on_path;

/// A program that reads a capture file.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its name in tables, and in `--peers`.
    pub name: &'static str,
    /// Its command, with FILE for the capture and OUT for a directory that it may write to.
    pub words: &'static str,
    /// The option that makes it tell its version.
    version: &'static str,
    /// How it says how many packets it has read, on standard output or standard error.
    counted: fn(&str) -> Option<u64>,
}

/// All of them. Each does what it is made for, and writes what it writes to memory or a scratch directory:
/// the work is not the same, so that ratios tell what a user waits for, not which code is better.
pub const PEERS: [Peer; 7] = [
    Peer {
        name: "tcpdump",
        words: "tcpdump -Z root -r FILE -w /dev/null",
        version: "--version",
        counted: |_| None,
    },
    Peer {
        name: "tshark",
        words: "tshark -n -r FILE -q -z io,stat,0",
        version: "--version",
        counted: tshark,
    },
    Peer {
        name: "softflowd",
        words: "softflowd -d -6 -r FILE -m 4000000 -p OUT/pid -c none",
        version: "-h",
        counted: |said| number_behind(said, "Packets processed: "),
    },
    Peer {
        name: "nfpcapd",
        words: "nfpcapd -r FILE -w OUT",
        version: "-V",
        counted: |said| number_behind(said, "Total: Processed: "),
    },
    Peer { name: "argus", words: "argus -r FILE -w OUT/argus", version: "-V", counted: |_| None },
    Peer {
        name: "suricata",
        words: "suricata -r FILE -l OUT -S /dev/null",
        version: "-V",
        counted: |said| number_behind(said, "read 1 file, "),
    },
    Peer { name: "zeek", words: "zeek -C -r FILE", version: "--version", counted: |_| None },
];

impl Peer {
    /// That of a name.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static Self> {
        PEERS.iter().find(|peer| peer.name == name)
    }

    /// Whether it is installed.
    #[must_use]
    pub fn is_here(&self) -> bool {
        on_path(self.name)
    }

    /// The line in which it tells its version; `None` where it does not.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        let out =
            Command::new(self.name).arg(self.version).current_dir(Path::new("/")).output().ok()?;
        let said = [out.stdout, out.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        let is_version = |line: &&str| line.chars().any(|letter| letter.is_ascii_digit());
        said.lines().map(str::trim).find(is_version).map(str::to_owned)
    }

    /// Packets that it says it has read; `None` where it does not say.
    #[must_use]
    pub fn counted(&self, said: &str) -> Option<u64> {
        (self.counted)(said)
    }
}

/// The number behind some words.
fn number_behind(said: &str, words: &str) -> Option<u64> {
    let rest = said.split_once(words)?.1;
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// `|  0.0 <> 96.0 |   4090 | 1523452 |`, which is the only line with an interval of time.
fn tshark(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("<>") && line.starts_with('|'))?;
    line.split('|').nth(2)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_peers_say_of_packets_is_understood() {
        let of = |name: &str, said: &str| Peer::of(name).unwrap().counted(said);
        let said = "Number of active flows: 0\nPackets processed: 4090\nFragments: 0\n";
        assert_eq!(of("softflowd", said), Some(4090));
        let said = "Total: Processed: 4089, skipped: 1, short caplen: 0, unknown: 0\n";
        assert_eq!(of("nfpcapd", said), Some(4089));
        let said = "i: pcap: read 1 file, 4090 packets, 1523452 bytes\n";
        assert_eq!(of("suricata", said), Some(4090));
        let said = "| Interval       | Frames |  Bytes  |\n|----\n|   0.0 <> 96.8  |   4090 | 1523452 |\n====\n";
        assert_eq!(of("tshark", said), Some(4090));
        for name in PEERS.map(|peer| peer.name) {
            assert_eq!(of(name, "nothing 1 of this"), None, "{name}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_has_no_version() {
        let nobody = Peer { name: "netsniff-no-such-program", ..PEERS[0] };
        assert!(!nobody.is_here() && nobody.version().is_none());
        let shell = Peer { name: "sh", version: "-c", ..PEERS[0] };
        assert!(shell.is_here());
    }
}
