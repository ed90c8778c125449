//! TCP connections that wait: for a receiver, or for what was lost.

use netsniff_packet::Timestamp;

use crate::log::Confidence;
use crate::notice::finding::{Finding, FindingType, Found, Note};
use crate::notice::setting::Setting;
use crate::notice::sighting::Sighting;
use crate::notice::threshold::Threshold;

static WINDOW: Note = Note {
    name: "Netsniff::Zero_Window",
    doc: "A receiver kept its window closed for `zero_window_ms` or longer in one connection, so the sender had to wait.",
    confidence: "Medium: the packets show it, but a capture that lost the opening of the window makes the time longer.",
    advice: "The network is not to blame: look at the program that reads on the host that `msg` names by its side.",
};
static RETRANSMISSIONS: Note = Note {
    name: "Netsniff::Retransmissions",
    doc: "A side of a connection sent `retransmission_percent` of its segments again, and at least 20 of them. Those that \
          the receiver had already do not count.",
    confidence: "Medium: the packets show it; where they were lost, `msg` says if the holes tell.",
    advice: "Look for losses on the side of the tap that `msg` names: a full queue, a bad link, or a duplex mismatch.",
};

const CLOSED: Threshold = Threshold {
    name: "zero_window_ms",
    doc: "Milliseconds for which a window must be closed.",
    default: 1000,
};
const PERCENT: Threshold = Threshold {
    name: "retransmission_percent",
    doc: "Percentage of its segments that a side must send again.",
    default: 10,
};
/// Segments that must be sent again, lest a few make a percentage.
const LEAST_SEGMENTS: i128 = 20;

pub(super) const TYPE: FindingType = FindingType {
    notes: &[&WINDOW, &RETRANSMISSIONS],
    reads: &[(
        "tcp",
        &[
            "orig_zero_window_time",
            "resp_zero_window_time",
            "orig_data_segments",
            "resp_data_segments",
            "orig_retx_rto",
            "resp_retx_rto",
            "orig_retx_fast",
            "resp_retx_fast",
            "orig_lost_before",
            "resp_lost_before",
            "orig_lost_behind",
            "resp_lost_behind",
        ],
    )],
    thresholds: &[CLOSED, PERCENT],
    make: |setting: &Setting<'_>| {
        Box::new(Stalls { closed_ms: setting.get(&CLOSED), percent: setting.get(&PERCENT) })
    },
};

/// Judges each connection for itself.
#[derive(Debug)]
struct Stalls {
    closed_ms: u64,
    percent: u64,
}

/// The columns of one side.
struct Columns {
    side: &'static str,
    zero_window_time: &'static str,
    data_segments: &'static str,
    retx: [&'static str; 2],
    lost_before: &'static str,
    lost_behind: &'static str,
}

const SIDES: [Columns; 2] = [
    Columns {
        side: "originator",
        zero_window_time: "orig_zero_window_time",
        data_segments: "orig_data_segments",
        retx: ["orig_retx_rto", "orig_retx_fast"],
        lost_before: "orig_lost_before",
        lost_behind: "orig_lost_behind",
    },
    Columns {
        side: "responder",
        zero_window_time: "resp_zero_window_time",
        data_segments: "resp_data_segments",
        retx: ["resp_retx_rto", "resp_retx_fast"],
        lost_before: "resp_lost_before",
        lost_behind: "resp_lost_behind",
    },
];

/// Where the network lost what a side sent, as far as the holes tell.
fn place(sighting: &Sighting, side: &Columns) -> &'static str {
    let lost = [sighting.number(side.lost_before), sighting.number(side.lost_behind)];
    match lost {
        [Some(before), Some(behind)] if before > behind => "; most were lost before the tap",
        [Some(before), Some(behind)] if before < behind => "; most were lost behind the tap",
        _ => "; where they were lost does not show",
    }
}

impl Stalls {
    fn side(&self, sighting: &Sighting, side: &Columns, out: &mut Vec<Found>) {
        let mut tell = |note, said: String, count: u64| {
            let found = Found::new(note, Confidence::Medium, sighting, said).counting(count);
            let identifier = [&found.identifier, side.side.as_bytes()].concat();
            out.push(found.told_by(identifier));
        };
        let closed = sighting.nanos(side.zero_window_time).unwrap_or(0).unsigned_abs() / 1_000_000;
        if closed >= self.closed_ms {
            let said = format!("the {} kept its window closed for {closed} ms", side.side);
            tell(&WINDOW, said, closed);
        }
        let again: i128 = side.retx.iter().filter_map(|column| sighting.number(column)).sum();
        let all = sighting.number(side.data_segments).unwrap_or(0);
        if again >= LEAST_SEGMENTS
            && again.saturating_mul(100) >= all.saturating_mul(self.percent.into())
        {
            let place = place(sighting, side);
            let said = format!("the {} sent {again} of {all} segments again{place}", side.side);
            tell(&RETRANSMISSIONS, said, u64::try_from(again).unwrap_or(u64::MAX));
        }
    }
}

impl Finding for Stalls {
    fn sighted(&mut self, _: Timestamp, sighting: &Sighting, out: &mut Vec<Found>) {
        SIDES.iter().for_each(|side| self.side(sighting, side, out));
    }
}
