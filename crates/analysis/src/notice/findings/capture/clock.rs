//! A clock of the capture that differs from those of time servers and of web servers.

use std::collections::BTreeMap;

use netsniff_packet::{Address, Timestamp};

use crate::log::Confidence;
use crate::notice::finding::{Finding, FindingType, Found, MOST_UIDS, Note, identifier};
use crate::notice::setting::Setting;
use crate::notice::sighting::Sighting;
use crate::notice::threshold::Threshold;

static CAPTURE: Note = Note {
    name: "Netsniff::Wrong_Capture_Clock",
    doc: "Several servers agree that the stamps of the capture are off by `clock_seconds` or more, and they are more than \
          those that say otherwise. Two are enough; where only web servers say that the capture is ahead, three, because \
          what was made before looks the same. Servers are those of NTP, and web servers by the field `Date` of the first \
          response of a connection, where no cache tells of itself (`Age`, `Via`). 100 of each are asked.",
    confidence: "Medium: the servers may go by one wrong clock themselves.",
    advice: "Set the clock of the machine that captures. Until then validity of certificates is judged by a wrong time.",
};
static TIME_SERVER: Note = Note {
    name: "Netsniff::NTP_Server_Off",
    doc: "The time of an NTP server differs by `clock_seconds` or more from the stamps of the capture.",
    confidence: "Low: which of both clocks is wrong does not show. A second server that agrees with one of them tells.",
    advice: "Compare the clock of the machine that captures with another server.",
};
static WEB_SERVER: Note = Note {
    name: "Netsniff::HTTP_Server_Off",
    doc: "A web server dates its response `clock_seconds` or more later than the stamps of the capture. What is dated \
          earlier may have been made before.",
    confidence: "Low: which of both clocks is wrong does not show.",
    advice: "Compare the clock of the server, and that of the machine that captures, with another one.",
};

const SECONDS: Threshold = Threshold {
    name: "clock_seconds",
    doc: "Seconds by which the time of an NTP server or a web server must differ from the stamps of the capture.",
    default: 60,
};

/// Servers of a kind whose times are kept.
const MOST_SERVERS: usize = 100;
/// Nanoseconds within which web servers agree. Their times have no fractions.
const OF_WEB_SERVERS: u64 = 10_000_000_000;

pub(in crate::notice::findings) const TYPE: FindingType = FindingType {
    notes: &[&CAPTURE, &TIME_SERVER, &WEB_SERVER],
    reads: &[("ntp", &["ts", "mode", "stratum", "xmt_time"]), ("http_date", &["ts", "date"])],
    thresholds: &[SECONDS],
    make: |setting: &Setting<'_>| {
        Box::new(Clocks {
            bound: setting.get(&SECONDS).saturating_mul(1_000_000_000),
            servers: BTreeMap::new(),
        })
    },
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Time,
    Web,
}

/// How far the clocks of servers are before that of the capture.
#[derive(Debug)]
struct Clocks {
    /// Nanoseconds from which on a difference is told.
    bound: u64,
    servers: BTreeMap<(Kind, Address), (i64, String)>,
}

/// What a server says: which it is, and by how much its clock is before that of the capture.
#[derive(Clone, Copy, Debug)]
struct Said {
    kind: Kind,
    server: Address,
    difference: i64,
}

impl Said {
    /// Both directions are one connection, whose responder is the server. A time server that is not synchronised does not
    /// know the time.
    fn of(sighting: &Sighting) -> Option<Self> {
        let (kind, time) = if sighting.log.path == "ntp" {
            let is_server = sighting.number("mode") == Some(4);
            let is_synchronised = matches!(sighting.number("stratum"), Some(1..=15));
            let sent = sighting.nanos("xmt_time").filter(|sent| *sent > 0)?;
            (Kind::Time, (is_server && is_synchronised).then_some(sent)?)
        } else {
            (Kind::Web, sighting.nanos("date")?)
        };
        let difference = time.checked_sub(sighting.nanos("ts")?)?;
        Some(Self { kind, server: sighting.address("id.resp_h")?, difference })
    }

    /// What one server alone shows.
    fn found(self, sighting: &Sighting, said: &str) -> Option<Found> {
        let (note, server) = match self.kind {
            Kind::Time => (&TIME_SERVER, "a server"),
            Kind::Web if self.difference > 0 => (&WEB_SERVER, "a web server"),
            Kind::Web => return None,
        };
        let seconds = self.difference.unsigned_abs() / 1_000_000_000;
        let said = format!("{said} the time of {server}");
        let mut found = Found::new(note, Confidence::Low, sighting, said).counting(seconds);
        found.row.src = None;
        Some(found.told_by(identifier(&[Some(self.server)], None)))
    }
}

impl Clocks {
    /// Takes what a server says; `false` where there is no room for it.
    fn keep(&mut self, said: Said, uid: &str) -> bool {
        let key = (said.kind, said.server);
        let of_kind = self.servers.keys().filter(|(kind, _)| *kind == said.kind).count();
        let has_room = of_kind < MOST_SERVERS || self.servers.contains_key(&key);
        if has_room {
            self.servers.insert(key, (said.difference, uid.to_owned()));
        }
        has_room
    }

    /// Connections of the servers that differ as much as this one, where these are enough.
    fn agreeing(&self, said: Said) -> Option<Vec<String>> {
        let within = |kind| match (kind, said.kind) {
            (Kind::Time, Kind::Time) => self.bound,
            _ => self.bound.min(OF_WEB_SERVERS),
        };
        let agrees = |kind, other: i64| other.abs_diff(said.difference) < within(kind);
        let all = || self.servers.iter().map(|(&(kind, _), (other, uid))| (kind, *other, uid));
        let agreeing = || all().filter(|&(kind, other, _)| agrees(kind, other));
        let contradicting = all().filter(|(_, other, _)| other.unsigned_abs() < self.bound).count();
        let has_time_server = agreeing().any(|(kind, ..)| kind == Kind::Time);
        let least = if has_time_server || said.difference > 0 { 2 } else { 3 };
        let uids: Vec<_> = agreeing().map(|(.., uid)| uid.clone()).collect();
        (uids.len() >= least && uids.len() > contradicting).then_some(uids)
    }
}

impl Finding for Clocks {
    fn sighted(&mut self, _: Timestamp, sighting: &Sighting, out: &mut Vec<Found>) {
        let Some(said) = Said::of(sighting) else { return };
        let uid = sighting.word("uid").unwrap_or_default();
        if !self.keep(said, uid) || said.difference.unsigned_abs() < self.bound {
            return;
        }
        let seconds = said.difference.unsigned_abs() / 1_000_000_000;
        let way = if said.difference > 0 { "behind" } else { "before" };
        let text = format!("the stamps of the capture are {seconds} s {way}");
        let Some(mut uids) = self.agreeing(said) else {
            out.extend(said.found(sighting, &text));
            return;
        };
        let text = format!("{text} the time of {} servers", uids.len());
        uids.truncate(MOST_UIDS);
        let found = Found::new(&CAPTURE, Confidence::Medium, sighting, text);
        out.push(found.counting(seconds).of_many(uids).of_capture());
    }
}
