//! The books of a live capture in a summary.

use netsniff_console::number::{bytes, count, duration, exact, files};
use netsniff_pipeline::books::{BooksLine, BooksScope};
use netsniff_pipeline::recording::books::Statistics;
use serde::Serialize;

use super::cut_headers::CutHeaderBooks;
use super::layout::{Look, Page, Style};

/// What became of the packets of an interface, of a ring, or on the host; `None` where nobody can tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CaptureBooks {
    /// What it is about.
    pub name: String,
    /// The number of the ring, where it is about one.
    pub ring: Option<usize>,
    /// Whether people want to see it: the only ring of an interface says the same as that.
    #[serde(skip)]
    pub is_shown: bool,
    /// Packets that came to the interface.
    pub arrived: Option<u64>,
    /// Packets that the interface had no room for.
    pub lost_interface: Option<u64>,
    /// Packets that the kernel dropped before the sockets, of all interfaces.
    pub lost_backlog: Option<u64>,
    /// Packets that the filter of the kernel refused.
    pub filtered: Option<u64>,
    /// Packets for which the ring had no room.
    pub ring_dropped: Option<u64>,
    /// Nanoseconds after the first packet, between which the first one was lost at the ring; `None` where none was, or
    /// nobody tells when.
    pub first_drop_ns: Option<[u64; 2]>,
    /// Packets that came out of the ring.
    pub delivered: Option<u64>,
    /// Packets that are still in the ring.
    pub in_ring: Option<u64>,
    /// Packets that arrived and stand nowhere.
    pub unexplained: Option<i64>,
    /// By how much that may be off, since counters cannot be read at one moment.
    pub unexplained_bound: Option<u64>,
    /// Share of those that arrived that were lost before the socket.
    pub kernel_loss: Option<f64>,
    /// Share of those that came to the socket that were lost there.
    pub application_loss: Option<f64>,
    /// Whether the capture can be believed.
    pub verdict: Option<String>,
    /// The most units of the ring that were in use, and how many it has.
    pub ring_high_water: Option<(u32, u32)>,
    /// Number of calls of poll(2).
    pub polls: Option<u64>,
    /// Those that ended since packets came.
    pub wakeups: Option<u64>,
    /// Groups of packets that came out of the ring.
    pub groups: Option<u64>,
    /// Packets whose stamp is earlier than that of one before out of the same ring.
    pub inversions: Option<u64>,
    /// By how many nanoseconds at most; 0 where there is none.
    pub deepest_inversion_ns: Option<u64>,
    /// Packets that came to the analysis behind a later one: they waited for none, or not long enough. `None` where
    /// nothing is analysed.
    pub late: Option<u64>,
    /// Packets whose headers the snap length cut; `None` where it cut nothing, or nobody looked.
    pub cut_headers: Option<CutHeaderBooks>,
    /// Times that the kernel's time to receive was spent.
    pub time_squeezes: Option<u64>,
}

impl CaptureBooks {
    /// One line of the books. Rings are shown to people where there are several.
    #[must_use]
    pub fn of(entry: &BooksLine, with_rings: bool) -> Self {
        let report = entry.report.as_ref();
        let counters = report.map(|report| &report.counters);
        let (name, ring) = match &entry.place {
            BooksScope::Interface(name) => (name.clone(), None),
            BooksScope::Ring(name, ring) => (format!("{name} ring {ring}"), Some(*ring)),
            BooksScope::Host => ("host".to_owned(), None),
        };
        Self {
            name,
            ring,
            is_shown: ring.is_none() || with_rings,
            arrived: entry.arrived,
            lost_interface: entry.lost_interface,
            lost_backlog: entry.lost_backlog,
            filtered: entry.filtered,
            ring_dropped: entry.ring_dropped(),
            first_drop_ns: report.and_then(|report| report.onset.after_first()),
            delivered: entry.delivered(),
            in_ring: entry.in_ring(),
            unexplained: entry.unexplained(),
            unexplained_bound: entry.bound,
            kernel_loss: entry.kernel_loss(),
            application_loss: entry.application_loss(),
            verdict: entry.verdict().map(|verdict| verdict.name().to_owned()),
            ring_high_water: counters
                .filter(|_| ring.is_some())
                .map(|counters| (counters.occupancy.high_water, counters.occupancy.capacity)),
            polls: counters.map(|counters| counters.waiting.polls),
            wakeups: counters.map(|counters| counters.waiting.wakeups),
            groups: counters.map(|counters| counters.waiting.groups),
            inversions: counters.map(|counters| counters.inversions),
            deepest_inversion_ns: counters.map(|counters| counters.deepest_inversion),
            late: report.filter(|report| report.analysed.is_some()).map(|report| report.late),
            cut_headers: report.and_then(|report| CutHeaderBooks::of(&report.cut_headers)),
            time_squeezes: entry.time_squeezes,
        }
    }
}

/// What a recording came to.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct CaptureReport<'a> {
    /// The books of each interface.
    pub capture: &'a [CaptureBooks],
    /// Counts of what was recorded.
    pub recording: Option<&'a Statistics>,
}

impl CaptureReport<'_> {
    /// As text of 80 columns.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let mut page = Page::new(style);
        section(&mut page, self.capture);
        if let Some(recording) = self.recording {
            recorded(&mut page, recording);
        }
        page.into_text()
    }
}

/// The section of a live capture.
pub(super) fn section(page: &mut Page, all: &[CaptureBooks]) {
    if all.is_empty() {
        return;
    }
    page.heading("CAPTURE");
    for books in all.iter().filter(|books| books.is_shown) {
        if books.delivered.is_none() {
            let lost = known(books.lost_backlog);
            let look = if books.lost_backlog == Some(0) { Look::Good } else { Look::Warning };
            let line = page.look(look, &line("  dropped before any socket, whole host", lost));
            page.line(&line);
            continue;
        }
        interface(page, books);
    }
}

fn interface(page: &mut Page, books: &CaptureBooks) {
    let verdict = books.verdict.as_deref().unwrap_or("unknown");
    let look = match verdict {
        "good" => Look::Good,
        "unknown" => Look::Faint,
        _ => Look::Warning,
    };
    let loss = |of: Option<f64>| {
        of.map_or_else(|| "unknown".to_owned(), |share| format!("{:.3} %", share * 100.0))
    };
    let (kernel, application) = (loss(books.kernel_loss), loss(books.application_loss));
    let head = format!(
        "  {}: {verdict}; lost by kernel {kernel}, by application {application}",
        books.name
    );
    let head = page.look(look, &head);
    page.line(&head);
    let lines = [
        ("  arrived at the interface", books.arrived),
        ("    lost by the interface", books.lost_interface),
        ("    refused by the filter in the kernel", books.filtered),
        ("    dropped at the ring", books.ring_dropped),
        ("    still in the ring", books.in_ring),
        ("    delivered", books.delivered),
    ];
    // A ring has no counter of arrivals.
    let lines = lines.into_iter().filter(|(_, value)| books.arrived.is_some() || value.is_some());
    for (name, value) in lines {
        page.line(&line(name, known(value)));
    }
    if books.arrived.is_some() {
        let (value, look) = match books.unexplained {
            Some(0) => ("0".to_owned(), Look::Good),
            Some(rest) => (exact(rest.into()), Look::Warning),
            None => ("unavailable".to_owned(), Look::Faint),
        };
        let bound = books.unexplained_bound.filter(|bound| *bound > 0);
        let bound = bound.map(|bound| format!("  (counters up to {} apart)", count(bound)));
        let text = format!("{}{}", line("    unexplained", value), bound.unwrap_or_default());
        let text = page.look(look, &text);
        page.line(&text);
    }
    if let Some(cut) = books.cut_headers.as_ref().filter(|cut| cut.packets > 0) {
        let part = format!("{} of {}", exact(cut.packets.into()), exact(cut.looked_at.into()));
        let text = page.look(Look::Warning, &line("  headers cut, of cut packets looked at", part));
        page.line(&text);
    }
    if let Some([since, until]) = books.first_drop_ns {
        let after = format!("{} to {}", duration(since), duration(until));
        page.line(&line("  first drop, after the first packet", after));
    }
    if let Some((most, of)) = books.ring_high_water {
        page.line(&line("    most of the ring in use", format!("{most} of {of}")));
    }
}

fn line(name: &str, value: String) -> String {
    format!("  {name:<42}{value:>14}")
}

fn known(value: Option<u64>) -> String {
    value.map_or_else(|| "unavailable".to_owned(), |value| exact(value.into()))
}

/// What became of the packets that were to be recorded.
pub(super) fn recorded(page: &mut Page, of: &Statistics) {
    page.heading("RECORDING");
    let size = format!("{} in {}", bytes(of.file_bytes), files(of.files));
    page.line(&line("  written", size));
    page.line(&line("  packets given to the recorder", exact(of.delivered.packets.into())));
    page.line(&line("    recorded", exact(of.recorded.packets.into())));
    let look = |lost: u64| if lost == 0 { Look::Good } else { Look::Warning };
    let refused = line("    refused, since writing fell behind", exact(of.refused.packets.into()));
    let refused = page.look(look(of.refused.packets), &refused);
    page.line(&refused);
    if of.in_flight > 0 {
        let left = line("    never written", exact(of.in_flight.into()));
        let left = page.look(Look::Warning, &left);
        page.line(&left);
    }
    for (name, cut) in
        [("  cut to the snaplen", of.snapped), ("  cut off behind --flow-cutoff", of.cut)]
    {
        if cut.packets > 0 {
            page.line(&line(name, exact(cut.packets.into())));
        }
    }
    if of.out_of_order > 0 {
        let late = line("  out of order, since a ring was behind", exact(of.out_of_order.into()));
        let late = page.look(Look::Warning, &late);
        page.line(&late);
    }
    if of.files_removed > 0 {
        page.line(&line("  files removed for the bounds", exact(of.files_removed.into())));
    }
    if of.stalls > 0 {
        let stalls = format!("{}, {} in all", exact(of.stalls.into()), duration(of.stalled_nanos));
        page.line(&line("  writes slower than 10 ms", stalls));
    }
    let queue = format!("{} of {}", of.queue_high_water, of.buffers);
    page.line(&line("  most buffers that waited", queue));
}

#[cfg(test)]
mod tests {
    use super::*;
    use netsniff_packet::Timestamp;

    use netsniff_pipeline::books::testing::{entry, report};
    use netsniff_pipeline::live::onset::Onset;
    use netsniff_pipeline::recording::books::Tally;

    fn text(entry: &BooksLine, recording: Option<&Statistics>) -> String {
        let capture = [CaptureBooks::of(entry, false)];
        let report = CaptureReport { capture: &capture, recording };
        report.text(Style::default())
    }

    /// What stands behind a name in the only line that begins with it; `None` without such a line.
    fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
        let mut lines = text.lines().filter_map(|line| line.trim_start().strip_prefix(name));
        let found = lines.next().map(str::trim);
        assert_eq!(lines.next(), None, "{name} twice in {text}");
        found
    }

    #[test]
    fn people_see_every_column_of_the_books() {
        let mut known = entry(Some(2), Some(10), Some(8));
        known.arrived = Some(103);
        known.report.iter_mut().for_each(|report| report.counters.accepted = Some(81));
        for (name, expected) in [
            ("arrived at the interface", "103"),
            ("lost by the interface", "2"),
            ("refused by the filter in the kernel", "10"),
            ("dropped at the ring", "8"),
            ("still in the ring", "1"),
            ("delivered", "80"),
            ("unexplained", "2"),
        ] {
            assert_eq!(value(&text(&known, None), name), Some(expected), "{name}");
        }
    }

    #[test]
    fn order_and_rings_are_told_to_programs() {
        let told = report(100);
        let place = BooksScope::Ring("eth0".to_owned(), 1);
        let of = |report| {
            let place = place.clone();
            CaptureBooks::of(&BooksLine { place, report, ..entry(None, None, None) }, true)
        };
        let books = of(Some(told.clone()));
        assert_eq!((books.ring, books.delivered), (Some(1), Some(told.counters.delivered)));
        assert_eq!(books.inversions, Some(told.counters.inversions));
        assert_eq!(books.deepest_inversion_ns, Some(told.counters.deepest_inversion));
        assert_eq!(books.late, Some(told.late));
        assert_eq!(books.first_drop_ns, told.onset.after_first());
        assert!(books.first_drop_ns.is_some());
        let unread = of(Some(netsniff_pipeline::live::RingReport { analysed: None, ..told }));
        assert_eq!((unread.late, of(None).inversions), (None, None));
        assert_eq!(of(None).first_drop_ns, None);
        let interface = CaptureBooks::of(&entry(None, None, None), true);
        assert_eq!(interface.ring, None);
    }

    #[test]
    fn people_see_when_packets_began_to_be_lost() {
        let name = "first drop, after the first packet";
        let mut entry = entry(Some(0), Some(0), Some(8));
        assert_eq!(value(&text(&entry, None), name), None);
        entry.report.iter_mut().for_each(|report| {
            report.onset = Onset {
                first_packet: Some(Timestamp::from_nanos(1_000)),
                hole: Some((
                    Some(Timestamp::from_nanos(1_030_001_000)),
                    Timestamp::from_nanos(1_100_001_000),
                )),
            };
        });
        assert_eq!(value(&text(&entry, None), name), Some("1.03 s to 1.10 s"));
    }

    #[test]
    fn people_and_programs_see_that_headers_are_cut() {
        let name = "headers cut, of cut packets looked at";
        let mut entry = entry(Some(0), Some(0), Some(0));
        assert_eq!(value(&text(&entry, None), name), None);
        assert_eq!(CaptureBooks::of(&entry, false).cut_headers, None, "nothing was cut");
        let cut = netsniff_pipeline::books::testing::cut_headers(3);
        entry.report.iter_mut().for_each(|report| report.cut_headers = cut.clone());
        assert_eq!(value(&text(&entry, None), name), Some("3 of 6"));
        let told = CaptureBooks::of(&entry, false).cut_headers.unwrap();
        assert_eq!((told.looked_at, told.packets, told.enough), (6, 3, 34));
        let of_layer = told.by_layer.iter().map(|of| (of.name.as_str(), of.count));
        assert_eq!(of_layer.collect::<Vec<_>>(), [("ip", 3)]);
    }

    #[test]
    fn what_nobody_knows_is_unavailable_and_no_number() {
        let text = text(&entry(Some(2), None, Some(8)), None);
        for name in ["refused by the filter in the kernel", "unexplained"] {
            assert_eq!(value(&text, name), Some("unavailable"), "{name}");
        }
    }

    #[test]
    fn people_see_what_became_of_recorded_packets() {
        let packets = |packets| Tally { packets, bytes: 5000 };
        let all = Statistics {
            delivered: packets(70),
            recorded: packets(41),
            refused: packets(23),
            in_flight: 6,
            snapped: packets(31),
            cut: packets(32),
            out_of_order: 4,
            files: 9,
            files_removed: 7,
            file_bytes: 5000,
            stalls: 3,
            queue_high_water: 11,
            buffers: 12,
            ..Statistics::default()
        };
        let entry = entry(Some(0), Some(0), Some(0));
        let said = text(&entry, Some(&all));
        for (name, expected) in [
            ("packets given to the recorder", "70"),
            ("recorded", "41"),
            ("refused, since writing fell behind", "23"),
            ("never written", "6"),
            ("cut to the snaplen", "31"),
            ("cut off behind --flow-cutoff", "32"),
            ("out of order, since a ring was behind", "4"),
            ("files removed for the bounds", "7"),
            ("most buffers that waited", "11 of 12"),
        ] {
            assert_eq!(value(&said, name), Some(expected), "{name}");
        }
        let in_order = Statistics { out_of_order: 0, ..all };
        assert_eq!(value(&text(&entry, Some(&in_order)), "out of order"), None);
    }
}
