//! Captures that see one direction of the traffic.

use netsniff_packet::Timestamp;

use crate::log::Confidence;
use crate::notice::finding::{Finding, FindingType, Found, MOST_UIDS, Note};
use crate::notice::setting::Setting;
use crate::notice::sighting::Sighting;
use crate::notice::threshold::Threshold;

static ONE_WAY: Note = Note {
    name: "Netsniff::One_Way_Capture",
    doc: "Of the last `one_way_connections` TCP connections whose sides both spoke, more than half were seen in one \
          direction only. The seen side goes on after its SYN, so it got answers that the capture has not.",
    confidence: "Medium: a flood of segments without a SYN, or a burst of lost packets, can look the same.",
    advice: "Let the mirror copy both directions, or capture on the other path, too. Metrics of such connections are unset.",
};

const CONNECTIONS: Threshold = Threshold {
    name: "one_way_connections",
    doc: "TCP connections that are judged together for whether the capture sees both directions.",
    default: 20,
};

pub(in crate::notice::findings) const TYPE: FindingType = FindingType {
    notes: &[&ONE_WAY],
    reads: &[("conn", &["proto", "history", "orig_pkts", "resp_pkts"])],
    thresholds: &[CONNECTIONS],
    make: |setting: &Setting<'_>| {
        Box::new(OneWay { many: setting.get(&CONNECTIONS), seen: Seen::default() })
    },
};

/// The connections of the capture.
#[derive(Debug)]
struct OneWay {
    many: u64,
    seen: Seen,
}

/// Connections that are judged together.
#[derive(Debug, Default)]
struct Seen {
    all: u64,
    one_way: u64,
    uids: Vec<String>,
}

/// Whether a connection was seen in one direction; `None` where the other side may not have spoken.
fn is_one_way(sighting: &Sighting) -> Option<bool> {
    if sighting.word("proto") != Some("tcp") {
        return None;
    }
    let [orig, resp] = ["orig_pkts", "resp_pkts"].map(|column| sighting.number(column));
    let (orig, resp) = (orig?, resp?);
    let history = sighting.word("history").unwrap_or_default();
    // Lone ends and acknowledgements are what scans send.
    let begins = history.contains(['S', 'H', 's', 'h']);
    let goes_on = history.contains(['D', 'd']) || begins && history.contains(['A', 'F', 'a', 'f']);
    match (orig, resp) {
        (1.., 1..) => Some(false),
        // One packet is too little: it may be the first or last one of the capture.
        (2.., 0) | (0, 2..) if goes_on => Some(true),
        _ => None,
    }
}

impl Finding for OneWay {
    fn sighted(&mut self, _: Timestamp, sighting: &Sighting, out: &mut Vec<Found>) {
        let Some(is_one_way) = is_one_way(sighting) else { return };
        self.seen.all += 1;
        if is_one_way {
            self.seen.one_way += 1;
            if self.seen.uids.len() < MOST_UIDS {
                self.seen.uids.extend(sighting.word("uid").map(str::to_owned));
            }
        }
        if self.seen.all < self.many {
            return;
        }
        let Seen { all, one_way, uids } = core::mem::take(&mut self.seen);
        if one_way * 2 <= all {
            return;
        }
        let said = format!("{one_way} of {all} TCP connections were seen in one direction only");
        let found = Found::new(&ONE_WAY, Confidence::Medium, sighting, said);
        out.push(found.counting(one_way).of_many(uids).of_capture());
    }
}
