//! Hosts that contend for an IP address by ARP.

use std::collections::VecDeque;

use netsniff_packet::{Address, Timestamp};

use crate::log::Confidence;
use crate::notice::bounded::Bounded;
use crate::notice::finding::{Finding, FindingType, Found, Note, identifier};
use crate::notice::setting::Setting;
use crate::notice::sighting::Sighting;
use crate::notice::threshold::Threshold;

static CONFLICT: Note = Note {
    name: "Netsniff::ARP_Conflict",
    doc: "An IP address changed its hardware address `arp_changes` times within `arp_seconds`, by the senders of ARP, \
          and came back to one that it had before. Interfaces and VLANs count apart. An interface of several \
          files is one where these follow each other, as those of a rolled recording, and describe it in the same way, with \
          a name; those of pcap count apart. Only Ethernet is looked at.",
    confidence: "Medium: the two routers of a pair that cannot hear each other, and a bond whose links take turns, look \
                 the same. A single change, as of a new card or of a router that takes over, is none.",
    advice: "Find the hosts by their hardware addresses in `sub`: two have one address, or one stands between others.",
};

const CHANGES: Threshold = Threshold {
    name: "arp_changes",
    doc: "How often an IP address must change its hardware address, at least 2.",
    default: 3,
};
const SECONDS: Threshold =
    Threshold { name: "arp_seconds", doc: "Seconds within which it must change.", default: 300 };

/// Changes that are kept of one address.
const MOST_CHANGES: u64 = 100;
/// Bytes of a change with its hardware address, twice as many as are in use.
const CHANGE_BYTES: usize = 96;

pub(super) const TYPE: FindingType = FindingType {
    notes: &[&CONFLICT],
    reads: &[("arp", &["interface", "vlan", "address", "mac"])],
    thresholds: &[CHANGES, SECONDS],
    make: |setting: &Setting<'_>| {
        let changes = setting.get(&CHANGES).clamp(2, MOST_CHANGES) as usize;
        let window = setting.get(&SECONDS).saturating_mul(1_000_000_000);
        Box::new(Conflicts { owners: setting.table((changes + 2) * CHANGE_BYTES), changes, window })
    },
};

/// Who has which address.
#[derive(Debug)]
struct Conflicts {
    /// By interface, VLAN and address.
    owners: Bounded<(i128, Option<i128>, Address), Owners>,
    changes: usize,
    /// Nanoseconds within which the changes lie.
    window: u64,
}

/// The hardware addresses of an IP address.
#[derive(Debug, Default)]
struct Owners {
    now: Box<str>,
    /// When the address changed, and what it had before.
    changes: VecDeque<(Timestamp, Box<str>)>,
}

impl Owners {
    /// Takes what a host says. Whether the address has changed so often now, which forgets the changes, with two that
    /// it had.
    fn say(&mut self, now: Timestamp, mac: &str, most: usize, window: u64) -> Option<String> {
        if *self.now == *mac {
            return None;
        }
        let before = core::mem::replace(&mut self.now, mac.into());
        if before.is_empty() {
            return None;
        }
        self.changes.push_back((now, before));
        let is_old = |(time, _): &(Timestamp, _)| now.nanos().abs_diff(time.nanos()) > window;
        while self.changes.pop_front_if(|change| is_old(change)).is_some() {}
        let comes_back = self.changes.iter().any(|(_, before)| **before == *mac);
        if self.changes.len() < most || !comes_back {
            // One that goes on to others is kept bounded as well.
            while self.changes.len() > most {
                self.changes.pop_front();
            }
            return None;
        }
        let other = self.changes.back().map(|(_, before)| before.clone()).unwrap_or_default();
        self.changes.clear();
        Some(format!("{mac} {other}"))
    }
}

impl Finding for Conflicts {
    fn sighted(&mut self, now: Timestamp, sighting: &Sighting, out: &mut Vec<Found>) {
        let (Some(address), Some(mac), Some(interface)) =
            (sighting.address("address"), sighting.word("mac"), sighting.number("interface"))
        else {
            return;
        };
        let vlan = sighting.number("vlan");
        let owners = self.owners.entry(&(interface, vlan, address), Owners::default);
        let Some(both) = owners.say(now, mac, self.changes, self.window) else { return };
        let said = format!("an address changed its hardware address {} times", self.changes);
        let mut found = Found::new(&CONFLICT, Confidence::Medium, sighting, said);
        found.row.src = Some(address);
        found = found.saying(Some(both.as_bytes())).counting(self.changes as u64);
        let mut name = identifier(&[Some(address)], None);
        name.extend(interface.to_be_bytes());
        name.extend(vlan.unwrap_or(-1).to_be_bytes());
        out.push(found.told_by(name));
    }

    fn given_up(&self) -> u64 {
        self.owners.given_up()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(says: &[(i64, &str)]) -> Vec<String> {
        let mut owners = Owners::default();
        let say = |&(at, mac): &(i64, &str)| owners.say(Timestamp::from_nanos(at), mac, 3, 100);
        says.iter().filter_map(say).collect()
    }

    #[test]
    fn an_address_that_goes_to_and_fro_is_told_and_one_that_moves_is_not() {
        assert_eq!(told(&[(0, "a"), (1, "b"), (2, "a"), (3, "a"), (4, "b")]), ["b a"]);
        assert!(told(&[(0, "a"), (1, "b"), (2, "b")]).is_empty(), "it moved");
        assert!(
            told(&[(0, "a"), (1, "b"), (2, "c"), (3, "d"), (4, "e")]).is_empty(),
            "it moves on"
        );
        assert!(
            told(&[(0, "a"), (1, "b"), (102, "a"), (203, "b"), (304, "a")]).is_empty(),
            "slowly"
        );
    }
}
