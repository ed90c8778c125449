//! Captures that have every packet twice.

use netsniff_packet::Timestamp;

use crate::log::Confidence;
use crate::notice::finding::{Finding, FindingType, Found, MOST_UIDS, Note};
use crate::notice::setting::Setting;
use crate::notice::sighting::Sighting;
use crate::notice::threshold::Threshold;

static DOUBLED: Note = Note {
    name: "Netsniff::Doubled_Capture",
    doc: "Of the last `doubled_connections` TCP connections, more than half have at least a third of the packets of a side \
          twice. The copies are told by their IP identification, so they were made behind the sender.",
    confidence: "High where it is true of nine of ten connections; else medium: some paths may be mirrored twice.",
    advice: "Let the mirror copy each port in one direction, or one VLAN, or remove the copies with `editcap -d`.",
};

const CONNECTIONS: Threshold = Threshold {
    name: "doubled_connections",
    doc: "TCP connections that are judged together for whether the capture has packets twice.",
    default: 20,
};

/// Packets below which a side says nothing.
const LEAST_PACKETS: i128 = 4;

pub(in crate::notice::findings) const TYPE: FindingType = FindingType {
    notes: &[&DOUBLED],
    reads: &[(
        "tcp",
        &[
            "orig_duplicates",
            "resp_duplicates",
            "orig_data_segments",
            "resp_data_segments",
            "orig_pure_acks",
            "resp_pure_acks",
        ],
    )],
    thresholds: &[CONNECTIONS],
    make: |setting: &Setting<'_>| {
        Box::new(Doubled { many: setting.get(&CONNECTIONS), seen: Seen::default() })
    },
};

/// The connections of the capture.
#[derive(Debug)]
struct Doubled {
    many: u64,
    seen: Seen,
}

/// Connections that are judged together.
#[derive(Debug, Default)]
struct Seen {
    all: u64,
    doubled: u64,
    uids: Vec<String>,
}

/// Whether a side has packets twice: the copies are among its segments, or beside them. `None` where it said too little.
fn is_doubled(sighting: &Sighting, [duplicates, data, acks]: [&str; 3]) -> Option<bool> {
    let of = |column| sighting.number(column).unwrap_or(0);
    let (copies, packets) = (of(duplicates), of(data) + of(acks));
    (packets >= LEAST_PACKETS).then(|| copies * 3 >= packets)
}

impl Finding for Doubled {
    fn sighted(&mut self, _: Timestamp, sighting: &Sighting, out: &mut Vec<Found>) {
        let sides = [
            ["orig_duplicates", "orig_data_segments", "orig_pure_acks"],
            ["resp_duplicates", "resp_data_segments", "resp_pure_acks"],
        ];
        let told = sides.map(|columns| is_doubled(sighting, columns));
        if told == [None, None] {
            return;
        }
        self.seen.all += 1;
        if told.contains(&Some(true)) {
            self.seen.doubled += 1;
            if self.seen.uids.len() < MOST_UIDS {
                self.seen.uids.extend(sighting.word("uid").map(str::to_owned));
            }
        }
        if self.seen.all < self.many {
            return;
        }
        let Seen { all, doubled, uids } = core::mem::take(&mut self.seen);
        if doubled * 2 <= all {
            return;
        }
        let is_nearly_all = doubled * 10 >= all * 9;
        let confidence = if is_nearly_all { Confidence::High } else { Confidence::Medium };
        let said = format!("{doubled} of {all} TCP connections have packets twice");
        let found = Found::new(&DOUBLED, confidence, sighting, said);
        out.push(found.counting(doubled).of_many(uids).of_capture());
    }
}
