//! A clock of the capture that differs from those of time servers.

use std::collections::BTreeMap;

use netsniff_packet::{Address, Timestamp};

use crate::log::Confidence;
use crate::notice::finding::{Finding, FindingType, Found, MOST_UIDS, Note, identifier};
use crate::notice::setting::Setting;
use crate::notice::sighting::Sighting;
use crate::notice::threshold::Threshold;

static CAPTURE: Note = Note {
    name: "Netsniff::Wrong_Capture_Clock",
    doc: "Two or more NTP servers agree that the stamps of the capture are off by `clock_seconds` or more.",
    confidence: "Medium: the servers may go by one wrong clock themselves.",
    advice: "Set the clock of the machine that captures. Until then validity of certificates is judged by a wrong time.",
};
static SERVER: Note = Note {
    name: "Netsniff::NTP_Server_Off",
    doc: "The time of an NTP server differs by `clock_seconds` or more from the stamps of the capture.",
    confidence: "Low: which of both clocks is wrong does not show. A second server that agrees with one of them tells.",
    advice: "Compare the clock of the machine that captures with another server.",
};

const SECONDS: Threshold = Threshold {
    name: "clock_seconds",
    doc: "Seconds by which the time of an NTP server must differ from the stamps of the capture.",
    default: 60,
};

/// Servers whose times are kept.
const MOST_SERVERS: usize = 100;

pub(in crate::notice::findings) const TYPE: FindingType = FindingType {
    notes: &[&CAPTURE, &SERVER],
    reads: &[("ntp", &["ts", "mode", "stratum", "xmt_time"])],
    thresholds: &[SECONDS],
    make: |setting: &Setting<'_>| {
        Box::new(Clocks {
            bound: setting.get(&SECONDS).saturating_mul(1_000_000_000),
            servers: BTreeMap::new(),
            given_up: 0,
        })
    },
};

/// How far the clocks of servers are before that of the capture.
#[derive(Debug)]
struct Clocks {
    /// Nanoseconds from which on a difference is told.
    bound: u64,
    servers: BTreeMap<Address, (i64, String)>,
    given_up: u64,
}

/// By how much a server's clock is before that of the capture. Servers that are not synchronised do not know the time.
fn difference(sighting: &Sighting) -> Option<(i64, Address)> {
    let is_server = sighting.number("mode") == Some(4);
    let is_synchronised = matches!(sighting.number("stratum"), Some(1..=15));
    if !is_server || !is_synchronised {
        return None;
    }
    let sent = sighting.nanos("xmt_time").filter(|sent| *sent > 0)?;
    // Both directions are one connection, whose responder is the server.
    Some((sent.checked_sub(sighting.nanos("ts")?)?, sighting.address("id.resp_h")?))
}

impl Clocks {
    /// Servers that differ as much as this one, within the bound.
    fn agreeing(&self, difference: i64) -> Vec<String> {
        let agrees = |other: i64| other.abs_diff(difference) < self.bound;
        let uids = self.servers.values().filter(|(other, _)| agrees(*other));
        uids.map(|(_, uid)| uid.clone()).collect()
    }
}

impl Finding for Clocks {
    fn sighted(&mut self, _: Timestamp, sighting: &Sighting, out: &mut Vec<Found>) {
        let Some((difference, server)) = difference(sighting) else { return };
        if self.servers.len() >= MOST_SERVERS && !self.servers.contains_key(&server) {
            self.given_up += 1;
            return;
        }
        let uid = sighting.word("uid").unwrap_or_default().to_owned();
        self.servers.insert(server, (difference, uid));
        if difference.unsigned_abs() < self.bound {
            return;
        }
        let seconds = difference.unsigned_abs() / 1_000_000_000;
        let way = if difference > 0 { "behind" } else { "before" };
        let mut uids = self.agreeing(difference);
        let count = uids.len();
        uids.truncate(MOST_UIDS);
        if count > 1 {
            let said = format!(
                "the stamps of the capture are {seconds} s {way} the time of {count} servers"
            );
            let found = Found::new(&CAPTURE, Confidence::Medium, sighting, said);
            out.push(found.counting(seconds).of_many(uids).of_capture());
        } else {
            let said =
                format!("the stamps of the capture are {seconds} s {way} the time of a server");
            let mut found = Found::new(&SERVER, Confidence::Low, sighting, said).counting(seconds);
            found.row.src = None;
            out.push(found.told_by(identifier(&[Some(server)], None)));
        }
    }

    fn given_up(&self) -> u64 {
        self.given_up
    }
}
