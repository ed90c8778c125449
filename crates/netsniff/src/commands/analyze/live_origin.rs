//! Live rings as the origin of an analysis: what its summary says of them.

use netsniff_capture::Interface;
use netsniff_console::number::{count, duration, files, things};
use netsniff_output::WriterStatistics;
use netsniff_pipeline::books::{BooksLine, BooksScope, RingPlace};

use super::origin::Origin;
use super::report::Analysis;
use crate::summary::{CaptureBooks, CaptureInterface, Input, InputSource, Part};

/// A run that has ended.
pub(super) struct Live {
    pub(super) interfaces: Vec<Interface>,
    pub(super) places: Vec<RingPlace>,
    pub(super) entries: Vec<BooksLine>,
    pub(super) filter: Option<String>,
    /// What became of the rows.
    pub(super) written: WriterStatistics,
    /// Packets that should have gone into `unparsed.pcapng` and had no room.
    pub(super) unparsed_refused: u64,
    /// Packets for which it had no room, since its size is bounded.
    pub(super) unparsed_left_out: u64,
    /// Recorded packets that stand behind later ones.
    pub(super) recorded_late: u64,
    /// Files that were being extracted, and of which no row tells.
    pub(super) untold_files: u64,
}

impl Live {
    fn of_interfaces(&self) -> impl Iterator<Item = (&str, &BooksLine)> {
        self.entries.iter().filter_map(|entry| match &entry.place {
            BooksScope::Interface(name) => Some((name.as_str(), entry)),
            _ => None,
        })
    }

    fn reports(&self) -> impl Iterator<Item = &netsniff_pipeline::live::RingReport> {
        self.of_interfaces().filter_map(|(_, entry)| entry.report.as_ref())
    }

    /// A ring that gets much more than its share: a pair of hosts that talks much goes to one of them.
    fn uneven(&self) -> Option<String> {
        let rings = self.entries.iter().filter_map(|entry| match &entry.place {
            BooksScope::Ring(name, ring) => {
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

    /// Rows that nobody will read, by why.
    fn missing_rows(&self) -> Option<String> {
        let WriterStatistics { refused, refused_full, refused_failed, refused_end, .. } =
            &self.written;
        let why = [
            (refused_full, "came faster than they were written"),
            (refused_failed, "could not be written"),
            (refused_end, "were left when the end had taken too long"),
        ];
        let why = why.iter().map(|(rows, why)| (rows.total(), why)).filter(|(rows, _)| *rows > 0);
        let why: Vec<_> = why.map(|(rows, why)| format!("{} {why}", count(rows))).collect();
        let stalls = self.written.stalls;
        let longest = match stalls.count {
            0 => String::new(),
            _ => format!("; the slowest write took {}", duration(stalls.longest_nanos)),
        };
        let all = things(refused.total(), "row");
        let are = if refused.total() == 1 { "is" } else { "are" };
        (refused.total() > 0)
            .then(|| format!("{all} of logs {are} missing: {}{longest}", why.join(", ")))
    }

    fn total(&self, of: impl Fn(&BooksLine) -> Option<u64>) -> Option<u64> {
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
        let source = |(name, entry): (&str, &BooksLine)| {
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
            jobs: None,
            sources: self.of_interfaces().map(source).collect(),
            filters: self.filter.iter().map(|text| analysis.text(text).to_owned()).collect(),
            packets: self.packets(),
            wanted_packets: packets.total.packets,
            wire_bytes: self.reports().map(|report| report.counters.delivered_bytes).sum(),
            wanted_bytes: packets.total.bytes,
            captured_bytes: packets.captured_bytes,
            first: packets.span.map(|span| span.0),
            last: packets.span.map(|span| span.1),
            order: "together",
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
            part("lost at the ring", self.total(BooksLine::ring_dropped)),
        ]
    }

    fn known_lost(&self) -> Option<u64> {
        let lost = self.total(BooksLine::ring_dropped)?;
        Some(lost.saturating_add(self.total(|entry| entry.lost_interface).unwrap_or(0)))
    }

    fn capture(&self) -> Vec<CaptureBooks> {
        self.entries.iter().map(|of| CaptureBooks::of(of, self.places.len() > 1)).collect()
    }

    fn notes(&self, _: &Analysis<'_>) -> Vec<String> {
        let mut notes = self.of_rings();
        notes.extend(self.uneven());
        notes.extend(self.missing_rows());
        notes.extend(self.written.removed.said());
        notes.extend(self.of_files());
        notes
    }
}

impl Live {
    /// What is odd about the packets that came out of the rings.
    fn of_rings(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let sum = |of: fn(&netsniff_pipeline::live::RingReport) -> u64| -> u64 {
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
                notes.push(format!("{name} went down {}", things(report.downs, "time")));
            }
        }
        notes
    }

    /// What files beside the logs do not have.
    fn of_files(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.unparsed_refused > 0 {
            notes.push(format!(
                "{} packets are missing in unparsed.pcapng: they came faster than it could be written",
                count(self.unparsed_refused)
            ));
        }
        notes.extend(super::unparsed::left_out(self.unparsed_left_out));
        if self.recorded_late > 0 {
            notes.push(format!(
                "{} packets of the recording are out of order, since a ring was behind",
                count(self.recorded_late)
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

#[cfg(test)]
mod tests {
    use netsniff_analysis::correlator::{Bound, GivenUp, JoinStatistics};
    use netsniff_analysis::{Limits, Options};
    use netsniff_output::RemovedFiles;
    use netsniff_packet::Timestamp;

    use super::*;
    use crate::summary::Summary;
    use netsniff_pipeline::books::testing::entry;
    use netsniff_pipeline::{AnalysisOutcome, Settings};

    /// A run on one interface that has nothing to tell.
    fn quiet() -> Live {
        Live {
            interfaces: Vec::new(),
            places: Vec::new(),
            entries: vec![entry(Some(0), Some(0), Some(0))],
            filter: None,
            written: WriterStatistics::default(),
            unparsed_refused: 0,
            unparsed_left_out: 0,
            recorded_late: 0,
            untold_files: 0,
        }
    }

    /// Its summary, where a filter in user space refused so many packets.
    fn summary(origin: &Live, filtered: u64) -> Summary {
        summary_of(origin, filtered, JoinStatistics::default())
    }

    fn summary_of(origin: &Live, filtered: u64, joins: JoinStatistics) -> Summary {
        let settings = Settings {
            limits: Limits::default(),
            options: Options::default(),
            workers: 1,
            style: None,
            logs: netsniff_output::LogSet::ALL,
            seed: 0,
            prompt: false,
        };
        let outcome = AnalysisOutcome {
            packets: Default::default(),
            flows: Default::default(),
            filtered,
            joins,
            now: Timestamp::MIN,
        };
        let (settings, outcome) = (&settings, &outcome);
        Analysis { origin, settings, outcome, pseudonyms: None, delivered: &[], elapsed_nanos: 0 }
            .summary()
    }

    #[test]
    fn what_joins_gave_up_is_noted_with_its_bound() {
        let given_up = |bound, of, count, what| GivenUp { bound, of, count, what };
        let joins = JoinStatistics {
            given_up: vec![
                given_up(Bound::Number(4_096), "exchanges at a time", 12_345, "were told early"),
                given_up(Bound::Bytes(64 << 20), "for answers", 1, "addresses were given up"),
            ],
            ..JoinStatistics::default()
        };
        let expected = [
            "the bound of 4096 exchanges at a time was reached: 12.3 k were told early",
            "the bound of 67.1 MB for answers was reached: 1 addresses were given up",
        ];
        assert_eq!(summary_of(&quiet(), 0, joins).notes, expected);
    }

    #[test]
    fn what_must_be_known_to_believe_the_logs_is_noted() {
        assert_eq!(summary(&quiet(), 0).notes, [""; 0]);
        let mut live = quiet();
        for report in live.entries.iter_mut().filter_map(|entry| entry.report.as_mut()) {
            report.counters.inversions = 21;
            report.counters.deepest_inversion = 43_000;
            report.late = 2;
            report.counters.super_frames = 22;
            report.counters.wrong_stamps = 23;
            report.flow_split = Some(24);
            report.downs = 25;
        }
        let WriterStatistics {
            refused,
            refused_full,
            refused_failed,
            refused_end,
            stalls,
            removed,
            ..
        } = &mut live.written;
        (0..6).for_each(|_| refused.add_row(0));
        refused_full.add_row(0);
        (0..2).for_each(|_| refused_failed.add_row(0));
        (0..3).for_each(|_| refused_end.add_row(0));
        (stalls.count, stalls.longest_nanos) = (1, 2_500_000_000);
        *removed = RemovedFiles { files: [0, 3, 2, 0], bytes: 1_500_000, failed: 0 };
        live.unparsed_refused = 26;
        live.recorded_late = 28;
        live.untold_files = 27;
        let notes = summary(&live, 0).notes;
        let expected = [
            "21 packets came out of a ring behind later ones, by at most 43.0 µs; 2 of them too late to be",
            "22 packets are larger than the MTU",
            "23 packets had a stamp more than a second off",
            "24 flows came to two rings",
            "eth0 went down 25 times",
            "6 rows of logs are missing: 1 came faster than they were written, 2 could not be written, 3 were \
             left when the end had taken too long; the slowest write took 2.50 s",
            "5 files of logs (1.50 MB) removed by --keep: 3 for bytes, 2 for age",
            "26 packets are missing in unparsed.pcapng",
            "28 packets of the recording are out of order",
            "27 files not kept, since no row of the log files tells of them: rows were refused",
        ];
        assert_eq!(notes.len(), expected.len(), "{notes:?}");
        for (note, begin) in notes.iter().zip(expected) {
            assert!(note.starts_with(begin), "{note} is not {begin}");
        }
    }

    #[test]
    fn what_filters_refused_is_told_apart() {
        let part = |live: &Live, filtered| {
            let parts = summary(live, filtered).books.parts.into_iter();
            let mut of_filter = parts.filter(|part| part.name == "refused by the filter");
            of_filter.next().map(|part| part.packets)
        };
        let live = Live { entries: vec![entry(Some(0), Some(10), Some(0))], ..quiet() };
        assert_eq!(part(&live, 0), None, "there is no filter in user space");
        let live = Live { filter: Some("udp".to_owned()), ..live };
        assert_eq!(part(&live, 7), Some(Some(7)));
        let books = summary(&live, 7).capture;
        assert_eq!(books.iter().map(|of| of.filtered).collect::<Vec<_>>(), [Some(10)]);
    }
}
