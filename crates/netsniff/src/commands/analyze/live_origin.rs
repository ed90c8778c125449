//! Live rings as the origin of an analysis: what its summary says of them.

use netsniff_capture::Interface;

use super::origin::Origin;
use super::report::Analysis;
use crate::books::{Entry, Place, RingPlace};
use crate::output::WriterStatistics;
use crate::summary::number::{count, duration, files};
use crate::summary::{CaptureBooks, CaptureInterface, Input, InputSource, Part};

/// A run that has ended.
pub(super) struct Live {
    pub(super) interfaces: Vec<Interface>,
    pub(super) places: Vec<RingPlace>,
    /// The last books.
    pub(super) entries: Vec<Entry>,
    pub(super) filter: Option<String>,
    /// What became of the rows.
    pub(super) written: WriterStatistics,
    /// Packets that should have gone into `unparsed.pcapng` and had no room.
    pub(super) unparsed_refused: u64,
    /// Files that were being extracted, and of which no row tells.
    pub(super) untold_files: u64,
}

impl Live {
    fn of_interfaces(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().filter_map(|entry| match &entry.place {
            Place::Interface(name) => Some((name.as_str(), entry)),
            _ => None,
        })
    }

    fn reports(&self) -> impl Iterator<Item = &crate::pipeline::live::RingReport> {
        self.of_interfaces().filter_map(|(_, entry)| entry.report.as_ref())
    }

    /// A ring that gets much more than its share: a pair of hosts that talks much goes to one of them.
    fn uneven(&self) -> Option<String> {
        let rings = self.entries.iter().filter_map(|entry| match &entry.place {
            Place::Ring(name, ring) => {
                Some((name, ring, entry.delivered()? + entry.ring_dropped()?))
            }
            _ => None,
        });
        let rings: Vec<_> = rings.collect();
        let total: u64 = rings.iter().map(|(.., packets)| packets).sum();
        let (name, ring, most) = rings.iter().max_by_key(|(.., packets)| *packets)?;
        // With few packets chance alone is uneven.
        let is_uneven = rings.len() > 1 && total > 10_000 && most * rings.len() as u64 > 2 * total;
        is_uneven.then(|| {
            format!(
                "ring {ring} of {name} got {} of {} packets: all of a pair of hosts go to one ring, and \
                 a heavy pair loads it alone",
                count(*most),
                count(total)
            )
        })
    }

    fn total(&self, of: impl Fn(&Entry) -> Option<u64>) -> Option<u64> {
        self.of_interfaces().map(|(_, entry)| of(entry)).sum()
    }
}

impl Origin for Live {
    fn packets(&self) -> u64 {
        self.reports().map(|report| report.counters.delivered).sum()
    }

    fn has_filter(&self) -> bool {
        self.filter.is_some()
    }

    fn input(&self, analysis: &Analysis<'_>) -> Input {
        let packets = &analysis.outcome.packets;
        let source = |(name, entry): (&str, &Entry)| {
            let interface = self.interfaces.iter().find(|of| of.name == name);
            let backend = entry.facts.as_ref().map_or("", |facts| facts.backend);
            InputSource {
                name: analysis.text(name).to_owned(),
                format: format!("live, {backend}"),
                packets: entry.delivered().unwrap_or(0),
                interfaces: vec![CaptureInterface {
                    name: Some(analysis.text(name).to_owned()),
                    link_type: interface.map(|of| of.link_type.to_string()).unwrap_or_default(),
                    dropped_by_interface: entry.lost_interface,
                    dropped_by_os: entry.ring_dropped(),
                    dropped_between_packets: None,
                }],
                ..InputSource::default()
            }
        };
        Input {
            sources: self.of_interfaces().map(source).collect(),
            filters: self.filter.iter().map(|text| analysis.text(text).to_owned()).collect(),
            packets: self.packets(),
            wanted_packets: packets.total.packets,
            wire_bytes: self.reports().map(|report| report.counters.delivered_bytes).sum(),
            wanted_bytes: packets.total.bytes,
            captured_bytes: packets.captured_bytes,
            first: packets.span.map(|span| span.0),
            last: packets.span.map(|span| span.1),
            is_live: true,
            elapsed_nanos: Some(analysis.elapsed_nanos),
        }
    }

    fn parts(&self) -> Vec<Part> {
        let beyond: u64 = self.reports().map(|report| report.beyond_end).sum();
        let part = |name: &str, packets| Part { name: name.to_owned(), packets: Some(packets) };
        (beyond > 0).then(|| part("behind the last one wanted", beyond)).into_iter().collect()
    }

    fn lost(&self) -> Vec<Part> {
        let part = |name: &str, packets| Part { name: name.to_owned(), packets };
        vec![
            part("lost by the interface", self.total(|entry| entry.lost_interface)),
            part("lost at the ring", self.total(Entry::ring_dropped)),
        ]
    }

    fn known_lost(&self) -> Option<u64> {
        let lost = self.total(Entry::ring_dropped)?;
        Some(lost.saturating_add(self.total(|entry| entry.lost_interface).unwrap_or(0)))
    }

    fn capture(&self) -> Vec<CaptureBooks> {
        self.entries.iter().map(|of| CaptureBooks::of(of, self.places.len() > 1)).collect()
    }

    fn notes(&self, _: &Analysis<'_>) -> Vec<String> {
        let mut notes = Vec::new();
        let sum = |of: fn(&crate::pipeline::live::RingReport) -> u64| -> u64 {
            self.reports().map(of).sum()
        };
        let inversions = sum(|report| report.counters.inversions);
        if inversions > 0 {
            let deepest = self.reports().map(|report| report.counters.deepest_inversion).max();
            let late = sum(|report| report.late);
            notes.push(format!(
                "{} packets came out of a ring behind later ones, by at most {}; {} of them too late \
                 to be put in order",
                count(inversions),
                duration(deepest.unwrap_or(0)),
                count(late)
            ));
        }
        let super_frames = sum(|report| report.counters.super_frames);
        if super_frames > 0 {
            notes.push(format!(
                "{} packets are larger than the MTU: offloading merged segments, and packets of the \
                 wire are more",
                count(super_frames)
            ));
        }
        let wrong = sum(|report| report.counters.wrong_stamps);
        if wrong > 0 {
            notes.push(format!(
                "{} packets had a stamp more than a second off the system's clock, and got that of a neighbour",
                count(wrong)
            ));
        }
        let split = sum(|report| report.flow_split.unwrap_or(0));
        if split > 0 {
            notes.push(format!(
                "{} flows came to two rings, and have a row of each: their directions travel in different tunnels",
                count(split)
            ));
        }
        for (name, report) in
            self.of_interfaces().filter_map(|(n, e)| Some((n, e.report.as_ref()?)))
        {
            if report.downs > 0 {
                notes.push(format!("{name} went down {} times", count(report.downs)));
            }
        }
        notes.extend(self.uneven());
        let refused = self.written.refused.total();
        if refused > 0 {
            notes.push(format!(
                "{} rows of logs could not be written in time, or at all, and are missing",
                count(refused)
            ));
        }
        if self.unparsed_refused > 0 {
            notes.push(format!(
                "{} packets are missing in unparsed.pcapng: they came faster than it could be written",
                count(self.unparsed_refused)
            ));
        }
        if self.untold_files > 0 {
            notes.push(format!(
                "{} not kept, since no row of the log files tells of them: rows were refused",
                files(self.untold_files)
            ));
        }
        notes
    }
}
