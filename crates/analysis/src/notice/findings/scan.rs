//! Hosts that try many ports of a host, or one port of many hosts.

use std::collections::BTreeSet;

use netsniff_packet::{Address, Timestamp};

use crate::log::Confidence;
use crate::notice::bounded::Bounded;
use crate::notice::finding::{Finding, FindingType, Found, MOST_UIDS, Note, identifier};
use crate::notice::setting::{Setting, UIDS_BYTES};
use crate::notice::sighting::Sighting;
use crate::notice::threshold::Threshold;
use crate::record::Port;

static PORTS: Note = Note {
    name: "Scan::Port_Scan",
    doc: "A host failed to connect to `scan_ports` TCP ports of another host, within `scan_seconds`.",
    confidence: "High where so many were rejected; medium where some were; low where none was answered, because a \
                 firewall, and a capture that sees one direction, look the same. An attempt during which the capture \
                 lost packets counts only if it was rejected.",
    advice: "Find out what runs on the source. Scanners of your own can be told by their addresses.",
};
static HOSTS: Note = Note {
    name: "Scan::Address_Scan",
    doc: "A host failed to connect to one TCP port of `scan_hosts` hosts, within `scan_seconds`.",
    confidence: "As for `Scan::Port_Scan`.",
    advice: "Find out what runs on the source: a worm, a scanner, or a program that looks for peers.",
};

const MANY_PORTS: Threshold = Threshold {
    name: "scan_ports",
    doc: "Ports of one host to which attempts must fail for a port scan.",
    default: 15,
};
const MANY_HOSTS: Threshold = Threshold {
    name: "scan_hosts",
    doc: "Hosts to one port of which attempts must fail for an address scan.",
    default: 25,
};
const SECONDS: Threshold = Threshold {
    name: "scan_seconds",
    doc: "Seconds within which the attempts of a scan begin.",
    default: 300,
};

pub(super) const TYPE: FindingType = FindingType {
    notes: &[&PORTS, &HOSTS],
    reads: &[("conn", &["ts", "proto", "conn_state", "history", "quality"])],
    thresholds: &[MANY_PORTS, MANY_HOSTS, SECONDS],
    make: |setting: &Setting<'_>| {
        let many = |threshold| setting.get(threshold).min(MOST_TARGETS) as usize;
        Box::new(Scans {
            ports: setting.table(many(&MANY_PORTS) * TARGET_BYTES + UIDS_BYTES),
            hosts: setting.table(many(&MANY_HOSTS) * TARGET_BYTES + UIDS_BYTES),
            many_ports: many(&MANY_PORTS),
            many_hosts: many(&MANY_HOSTS),
            window: i64::try_from(setting.get(&SECONDS).saturating_mul(1_000_000_000))
                .unwrap_or(i64::MAX),
        })
    },
};

/// Targets of a scan that are told apart at most: a set is not to grow without a bound.
const MOST_TARGETS: u64 = 1_000;
/// Bytes of a target in two sets that may be half empty.
const TARGET_BYTES: usize = 2 * 2 * 24;

/// Failed attempts by who made them and what they have in common.
#[derive(Debug)]
struct Scans {
    ports: Bounded<(Address, Address), Attempts<u16>>,
    hosts: Bounded<(Address, u16), Attempts<Address>>,
    many_ports: usize,
    many_hosts: usize,
    /// Nanoseconds within which they begin.
    window: i64,
}

/// Failed attempts within a window.
#[derive(Debug)]
struct Attempts<T> {
    /// When the earliest and the latest of them began.
    first: i64,
    last: i64,
    targets: BTreeSet<T>,
    rejected: BTreeSet<T>,
    uids: Vec<String>,
}

/// A failed attempt.
#[derive(Clone, Copy, Debug)]
struct Attempt<'a> {
    start: i64,
    is_rejected: bool,
    uid: Option<&'a str>,
}

impl<T: Ord + Copy> Attempts<T> {
    const fn new() -> Self {
        Self {
            first: 0,
            last: 0,
            targets: BTreeSet::new(),
            rejected: BTreeSet::new(),
            uids: Vec::new(),
        }
    }

    /// Takes an attempt. Whether they are so many now, for the first time in their window.
    fn add(&mut self, target: T, attempt: Attempt<'_>, many: usize, window: i64) -> bool {
        let start = attempt.start;
        if self.targets.is_empty() || start.saturating_sub(self.first) > window {
            *self = Self { first: start, last: start, ..Self::new() };
        } else if self.last.saturating_sub(start) > window {
            return false;
        }
        (self.first, self.last) = (self.first.min(start), self.last.max(start));
        // Behind a scan that was told, they are counted no more until the window ends.
        if self.targets.len() >= many {
            return false;
        }
        if attempt.is_rejected {
            self.rejected.insert(target);
        }
        let is_new = self.targets.insert(target);
        if is_new && self.uids.len() < MOST_UIDS {
            self.uids.extend(attempt.uid.map(str::to_owned));
        }
        is_new && self.targets.len() == many
    }

    /// What was found, of which the port and the hosts are still those of its last attempt.
    fn found(&self, note: &'static Note, sighting: &Sighting, what: &str) -> Found {
        let (all, rejected) = (self.targets.len(), self.rejected.len());
        let confidence = match rejected {
            0 => Confidence::Low,
            _ if rejected == all => Confidence::High,
            _ => Confidence::Medium,
        };
        let said = format!(
            "a host failed to connect to {all} {what}; {rejected} rejected it, {} did not answer",
            all - rejected
        );
        let found = Found::new(note, confidence, sighting, said).counting(all as u64);
        found.of_many(self.uids.clone())
    }
}

/// The attempt of a connection that failed. What an originator said after its SYN shows that it got an answer,
/// which the capture did not see.
fn failed(sighting: &Sighting) -> Option<Attempt<'_>> {
    if sighting.word("proto") != Some("tcp") {
        return None;
    }
    let is_rejected = match sighting.word("conn_state")? {
        "REJ" => true,
        "S0" | "RSTOS0" => false,
        _ => return None,
    };
    let history = sighting.word("history").unwrap_or_default();
    let goes_on = history.contains(['A', 'D', 'F']);
    let is_lossy = matches!(sighting.word("quality"), Some("touched" | "suspect"));
    if !is_rejected && (goes_on || is_lossy) {
        return None;
    }
    Some(Attempt { start: sighting.nanos("ts")?, is_rejected, uid: sighting.word("uid") })
}

impl Finding for Scans {
    fn sighted(&mut self, _: Timestamp, sighting: &Sighting, out: &mut Vec<Found>) {
        let Some(attempt) = failed(sighting) else { return };
        let (Some(from), Some(to), Some(port)) = (
            sighting.address("id.orig_h"),
            sighting.address("id.resp_h"),
            sighting.port("id.resp_p"),
        ) else {
            return;
        };
        let ports = self.ports.entry(&(from, to), Attempts::new);
        if ports.add(port, attempt, self.many_ports, self.window) {
            let mut found = ports.found(&PORTS, sighting, "ports of another host");
            found.row.p = None;
            out.push(found.told_by(identifier(&[Some(from), Some(to)], None)));
        }
        let hosts = self.hosts.entry(&(from, port), Attempts::new);
        if hosts.add(to, attempt, self.many_hosts, self.window) {
            let mut found = hosts.found(&HOSTS, sighting, "hosts at one port");
            found.row.dst = None;
            out.push(found.told_by(identifier(&[Some(from)], Some(Port(port)))));
        }
    }

    fn given_up(&self) -> u64 {
        self.ports.given_up() + self.hosts.given_up()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64, is_rejected: bool) -> Attempt<'static> {
        Attempt { start: second * 1_000_000_000, is_rejected, uid: Some("C1") }
    }

    const WINDOW: i64 = 300 * 1_000_000_000;

    #[test]
    fn a_scan_is_told_once_and_only_within_its_window() {
        let mut attempts = Attempts::new();
        let mut told = |target: u16, second| attempts.add(target, at(second, true), 3, WINDOW);
        assert!(!told(1, 0) && !told(1, 1) && !told(2, 2));
        assert!(told(3, 300), "three targets within the window");
        assert!(!told(4, 300), "told before");
        assert!(!told(5, 301) && !told(6, 601), "the third comes too late");
        assert!(!told(7, 602) && !told(8, 603) && told(9, 604));
    }
}
