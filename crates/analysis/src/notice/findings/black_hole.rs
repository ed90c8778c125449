//! Paths that let small segments pass and lose large ones without a word.

use netsniff_packet::{Address, Timestamp};

use crate::log::Confidence;
use crate::notice::bounded::Bounded;
use crate::notice::finding::{Finding, FindingType, Found, Note, identifier};
use crate::notice::setting::{Setting, UID_BYTES};
use crate::notice::sighting::Sighting;
use crate::notice::threshold::Threshold;

static BLACK_HOLE: Note = Note {
    name: "Netsniff::MTU_Black_Hole",
    doc: "A side of a connection sent the same large segment again `black_hole_repeats` times, and no acknowledgement of \
          it was seen, though the small packets of the handshake passed. A segment is large from `black_hole_bytes` on. \
          A capture on the sender's side of the hole shows this. Behind the hole no large segment ever comes, which looks \
          like a sender that stopped, so nothing is told there.",
    confidence: "Medium where this happened to two connections of the same hosts, or a router had told the sender by \
                 ICMP that its packets were too large; else low, because a host that went away, or a \
                 filter that drops what is said, looks the same.",
    advice: "Compare the MTU of all links and tunnels on the path, and let ICMP of type 3 (IPv6: 2) pass the firewalls. \
             To clamp the MSS helps, too.",
};

const REPEATS: Threshold = Threshold {
    name: "black_hole_repeats",
    doc: "How often a side must send the same large segment again for a black hole.",
    default: 4,
};
const BYTES: Threshold = Threshold {
    name: "black_hole_bytes",
    doc: "Bytes of payload from which on a segment is large.",
    default: 1000,
};

pub(super) const TYPE: FindingType = FindingType {
    notes: &[&BLACK_HOLE],
    reads: &[
        ("gaps", &["is_orig", "what", "cause", "start", "end", "bytes"]),
        ("conn", &["proto"]),
    ],
    thresholds: &[REPEATS, BYTES],
    make: |setting: &Setting<'_>| {
        Box::new(BlackHoles {
            sides: setting.table(2 * UID_BYTES),
            paths: setting.table(UID_BYTES),
            told: setting.table(0),
            repeats: setting.get(&REPEATS),
            bytes: setting.get(&BYTES).into(),
        })
    },
};

/// Segments that are lost again and again.
#[derive(Debug)]
struct BlackHoles {
    /// By connection and side, which range was lost last, and how often in a row.
    sides: Bounded<(Box<str>, bool), Lost>,
    /// By sender and receiver, the first connection that was stuck.
    paths: Bounded<(Address, Address), String>,
    /// Senders that a router told of a smaller MTU.
    told: Bounded<Address, ()>,
    repeats: u64,
    bytes: i128,
}

#[derive(Debug, Default)]
struct Lost {
    range: (i128, i128),
    times: u64,
}

/// Whether it is a message that packets were too large: RFC 792, RFC 4443, 3.2.
fn is_too_big(sighting: &Sighting) -> bool {
    let Some(host) = sighting.address("id.resp_h") else { return false };
    let kind = (sighting.port("id.orig_p"), sighting.port("id.resp_p"));
    let is_one = if host.is_v4() { kind == (Some(3), Some(4)) } else { kind.0 == Some(2) };
    is_one && sighting.word("proto") == Some("icmp")
}

impl BlackHoles {
    /// How often the range of a row of `gaps` was lost in a row, with who sent it to whom.
    fn lost(&mut self, sighting: &Sighting) -> Option<(u64, bool, Address, Address)> {
        // What the receiver acknowledged at last was no black hole, nor what the capture lost.
        let is_unknown = sighting.word("cause") == Some("unknown");
        let is_large = sighting.number("bytes")? >= self.bytes;
        if sighting.word("what") != Some("data") || !is_unknown || !is_large {
            return None;
        }
        let is_orig = sighting.flag("is_orig")?;
        let range = (sighting.number("start")?, sighting.number("end")?);
        let side = (sighting.word("uid")?.into(), is_orig);
        let lost = self.sides.entry(&side, Lost::default);
        if lost.range != range {
            *lost = Lost { range, times: 0 };
        }
        lost.times += 1;
        let (orig, resp) = (sighting.address("id.orig_h")?, sighting.address("id.resp_h")?);
        let (from, to) = if is_orig { (orig, resp) } else { (resp, orig) };
        Some((lost.times, is_orig, from, to))
    }
}

impl Finding for BlackHoles {
    fn sighted(&mut self, _: Timestamp, sighting: &Sighting, out: &mut Vec<Found>) {
        if sighting.log.path == "conn" {
            if let Some(host) = sighting.address("id.resp_h").filter(|_| is_too_big(sighting)) {
                self.told.entry(&host, || ());
            }
            return;
        }
        let Some((times, is_orig, from, to)) = self.lost(sighting) else { return };
        if times != self.repeats {
            return;
        }
        let uid = sighting.word("uid").unwrap_or_default();
        let first = self.paths.entry(&(from, to), || uid.to_owned());
        let is_second = first != uid;
        let was_told = self.told.get(&from).is_some();
        let is_sure = is_second || was_told;
        let confidence = if is_sure { Confidence::Medium } else { Confidence::Low };
        let (bytes, side) = (
            sighting.number("bytes").unwrap_or(0),
            if is_orig { "originator" } else { "responder" },
        );
        let icmp =
            if was_told { "; a router had told it that its packets are too large" } else { "" };
        let said = format!(
            "the {side} sent {bytes} bytes in vain {} times{icmp}",
            times.saturating_add(1)
        );
        let mut found = Found::new(&BLACK_HOLE, confidence, sighting, said).counting(times);
        (found.row.src, found.row.dst) = (Some(from), Some(to));
        if is_second {
            let uids = vec![first.clone(), uid.to_owned()];
            found.row.uids = uids;
        }
        let mut name = identifier(&[Some(from), Some(to)], None);
        name.push(u8::from(is_sure));
        out.push(found.told_by(name));
    }

    fn given_up(&self) -> u64 {
        self.sides.given_up() + self.paths.given_up() + self.told.given_up()
    }
}
