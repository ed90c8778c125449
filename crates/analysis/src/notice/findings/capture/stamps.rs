//! Stamps of the capture that jump, or are out of order.

use netsniff_packet::Timestamp;

use crate::log::Confidence;
use crate::notice::finding::{Finding, FindingType, Found, Note};
use crate::notice::setting::Setting;
use crate::notice::sighting::Sighting;
use crate::notice::threshold::Threshold;

static STEP: Note = Note {
    name: "Netsniff::Capture_Clock_Step",
    doc: "The stamps of an interface jump by `step_seconds` or more, and the hosts' own clocks, which the timestamps of \
          TCP tell, say that no such time passed. A jump ahead without that is a pause. One back is told without that, \
          too, unless the hosts' clocks go back with it, as in files that stand one behind another.",
    confidence: "Back, high where the clocks of two hosts or more say so, and medium where one does. Ahead, medium and low: \
                 machines that were suspended together look the same. Low where no clock of a host tells.",
    advice: "Keep the clock of the machine that captures with a daemon that slews it. Durations over the step are wrong.",
};
static DISORDER: Note = Note {
    name: "Netsniff::Stamps_Out_Of_Order",
    doc: "Of the packets of an interface, `late_percent` or more, and at least 10, are stamped before an earlier one. \
          It is told at the end of the input.",
    confidence: "High: the stamps show it.",
    advice: "Capture with one queue, or let `netsniff record` bring its rings into order. Shorter times, such as round-trip \
             times, are not to be believed.",
};

pub(in crate::notice) const STEP_SECONDS: Threshold = Threshold {
    name: "step_seconds",
    doc: "Seconds by which the stamps of an interface must jump for a step of its clock.",
    default: 2,
};
const LATE: Threshold = Threshold {
    name: "late_percent",
    doc: "Percentage of the packets of an interface that must be stamped before an earlier one.",
    default: 1,
};

/// Late packets below which nothing is told.
const LEAST_LATE: i128 = 10;

pub(in crate::notice::findings) const TYPE: FindingType = FindingType {
    notes: &[&STEP, &DISORDER],
    reads: &[
        ("clock_step", &["interface", "packet", "size", "hosts", "steps"]),
        ("disorder", &["interface", "packets", "late", "deepest", "first"]),
    ],
    thresholds: &[STEP_SECONDS, LATE],
    make: |setting: &Setting<'_>| Box::new(Stamps { late_percent: setting.get(&LATE) }),
};

/// What the stamps show is told as it comes: whoever reads packets has summed it up.
#[derive(Debug)]
struct Stamps {
    late_percent: u64,
}

/// A number of nanoseconds in the unit that people use for it.
fn span(nanos: u64) -> String {
    match nanos {
        0..1_000_000 => format!("{}.{:03} µs", nanos / 1_000, nanos % 1_000),
        1_000_000..1_000_000_000 => format!("{} ms", nanos / 1_000_000),
        _ => format!("{}.{:03} s", nanos / 1_000_000_000, nanos / 1_000_000 % 1_000),
    }
}

/// How sure it is that a clock was set: by the hosts whose clocks say so.
const fn confidence(is_back: bool, hosts: i128) -> Confidence {
    match (is_back, hosts) {
        (true, 2..) => Confidence::High,
        (true, 1) | (false, 2..) => Confidence::Medium,
        _ => Confidence::Low,
    }
}

fn step(sighting: &Sighting) -> Option<Found> {
    let [interface, packet, hosts] =
        ["interface", "packet", "hosts"].map(|column| sighting.number(column));
    let (interface, packet, hosts) = (interface?, packet?, hosts?);
    let size = sighting.nanos("size")?;
    let way = if size < 0 { "back" } else { "ahead" };
    let far = span(size.unsigned_abs());
    let steps = sighting.number("steps");
    let what = match steps {
        Some(steps) => {
            format!("the stamps of interface {interface} jumped {steps} times, at most {far} {way}")
        }
        None => format!("the stamps of interface {interface} jump {far} {way}"),
    };
    let why = match hosts {
        0 => "no clock of a host tells whether it was set or another recording begins".to_owned(),
        1 => "the clock of 1 host says that no such time passed".to_owned(),
        _ => format!("the clocks of {hosts} hosts say that no such time passed"),
    };
    let said = format!("{what}, at packet {packet}; {why}");
    let found = Found::new(&STEP, confidence(size < 0, hosts), sighting, said).of_capture();
    let found = found.counting(size.unsigned_abs() / 1_000_000_000);
    Some(found.told_by(format!("{interface} {}", steps.is_some()).into_bytes()))
}

impl Stamps {
    fn disorder(&self, sighting: &Sighting) -> Option<Found> {
        let [interface, packets, late, first] =
            ["interface", "packets", "late", "first"].map(|column| sighting.number(column));
        let (interface, packets, late, first) = (interface?, packets?, late?, first?);
        let is_little = late * 100 < packets * i128::from(self.late_percent);
        if late < LEAST_LATE || is_little {
            return None;
        }
        let deepest = span(sighting.nanos("deepest")?.unsigned_abs());
        let said = format!(
            "{late} of {packets} packets of interface {interface} are stamped before an earlier one, by at most {deepest}, \
             from packet {first} on"
        );
        let found = Found::new(&DISORDER, Confidence::High, sighting, said).of_capture();
        let found = found.counting(u64::try_from(late).ok()?);
        Some(found.told_by(interface.to_be_bytes().into()))
    }
}

impl Finding for Stamps {
    fn sighted(&mut self, _: Timestamp, sighting: &Sighting, out: &mut Vec<Found>) {
        out.extend(match sighting.log.path {
            "clock_step" => step(sighting),
            _ => self.disorder(sighting),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_the_unit_that_suits_them() {
        let spans = [43_210, 12_000_000, 3_600_500_000_000].map(span);
        assert_eq!(spans, ["43.210 µs", "12 ms", "3600.500 s"]);
    }
}
