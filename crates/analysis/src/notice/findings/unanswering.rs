//! Servers that do not answer.

use netsniff_packet::{Address, Timestamp};

use crate::log::Confidence;
use crate::notice::bounded::Bounded;
use crate::notice::finding::{Finding, FindingType, Found, MOST_UIDS, Note, identifier};
use crate::notice::setting::{Setting, UIDS_BYTES};
use crate::notice::sighting::Sighting;
use crate::notice::threshold::Threshold;
use crate::record::Port;

static UNANSWERING: Note = Note {
    name: "Netsniff::Unanswering_Server",
    doc: "A TCP server did not answer `unanswered_attempts` connections in a row.",
    confidence: "Medium where it answered before; low where no answer was ever seen, because a capture that sees one \
                 direction looks the same. Never high: it rests on what was not seen. Attempts during which the capture \
                 lost packets do not count.",
    advice: "Find out whether the server runs, and whether a firewall drops the connections.",
};

const MANY: Threshold = Threshold {
    name: "unanswered_attempts",
    doc: "Connections in a row that a server must leave without an answer.",
    default: 10,
};

pub(super) const TYPE: FindingType = FindingType {
    notes: &[&UNANSWERING],
    reads: &[("conn", &["proto", "conn_state", "history", "quality"])],
    thresholds: &[MANY],
    make: |setting: &Setting<'_>| {
        let servers = setting.table(UIDS_BYTES);
        Box::new(Unanswering { servers, many: setting.get(&MANY) })
    },
};

/// What is known of each server.
#[derive(Debug)]
struct Unanswering {
    servers: Bounded<(Address, u16), Server>,
    many: u64,
}

#[derive(Debug, Default)]
struct Server {
    has_answered: bool,
    unanswered: u64,
    uids: Vec<String>,
    /// Who asked last: a SYN that is sent again after a while is the same attempt, though `conn` has a row for each.
    asked: Option<(Address, u16)>,
}

/// Whether a connection shows that the server answered; `None` where it shows neither.
fn has_answered(sighting: &Sighting) -> Option<bool> {
    if sighting.word("proto") != Some("tcp") {
        return None;
    }
    let history = sighting.word("history").unwrap_or_default();
    if history.contains(['h', 'a', 'd', 'f', 'r']) {
        return Some(true);
    }
    let is_lossy = matches!(sighting.word("quality"), Some("touched" | "suspect"));
    let goes_on = history.contains(['A', 'D', 'F']);
    let is_attempt = matches!(sighting.word("conn_state"), Some("S0" | "RSTOS0"));
    (is_attempt && !goes_on && !is_lossy).then_some(false)
}

impl Finding for Unanswering {
    fn sighted(&mut self, _: Timestamp, sighting: &Sighting, out: &mut Vec<Found>) {
        let Some(has_answered) = has_answered(sighting) else { return };
        let (Some(host), Some(port)) = (sighting.address("id.resp_h"), sighting.port("id.resp_p"))
        else {
            return;
        };
        let server = self.servers.entry(&(host, port), Server::default);
        if has_answered {
            *server = Server { has_answered, ..Server::default() };
            return;
        }
        let asks = sighting.address("id.orig_h").zip(sighting.port("id.orig_p"));
        if asks.is_some() && server.asked == asks {
            return;
        }
        server.asked = asks;
        server.unanswered += 1;
        if server.uids.len() < MOST_UIDS {
            server.uids.extend(sighting.word("uid").map(str::to_owned));
        }
        if server.unanswered == self.many {
            let confidence = if server.has_answered { Confidence::Medium } else { Confidence::Low };
            let said =
                format!("a server left {} connections in a row without an answer", self.many);
            let mut found = Found::new(&UNANSWERING, confidence, sighting, said);
            // Anybody may have asked.
            found.row.src = None;
            let identifier = identifier(&[Some(host)], Some(Port(port)));
            let found = found.counting(self.many).of_many(server.uids.clone());
            out.push(found.told_by(identifier));
        }
    }

    fn given_up(&self) -> u64 {
        self.servers.given_up()
    }
}
