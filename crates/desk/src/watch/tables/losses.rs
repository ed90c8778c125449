//! Where packets and bytes were lost: the way of a capture, with what nobody can explain at its bottom, and what TCP shows.

use netsniff_console::number::{bytes, exact};

use crate::watch::data::Data;
use crate::watch::data::books::Line;
use crate::watch::data::figures::Known;
use crate::watch::data::subjects::Span;

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Plain,
    Heading,
    Good,
    Warning,
    Faint,
}

/// The stages of an interface, by the columns of `capture`, in the words of the summary, and whether what is counted
/// there is lost.
const STAGES: [(&str, &str, bool); 10] = [
    ("arrived at the interface", "arrived", false),
    ("  lost by the interface", "lost_interface", true),
    ("  refused by the filter in the kernel", "filtered", false),
    ("  dropped at the ring", "ring_dropped", true),
    ("  delivered", "delivered", false),
    ("    analysed", "analysed", false),
    ("    refused by the hand-off", "refused", true),
    ("    refused by the filter behind the ring", "filtered_late", false),
    ("    in the ring and on the way", "in_flight", false),
    ("  unexplained", "unexplained", true),
];

/// The page as lines.
pub(crate) fn lines(data: &Data) -> Vec<(Look, String)> {
    let mut lines = Vec::new();
    let mut has_books = false;
    for line in data.books.lines() {
        match line.last.text("scope") {
            Some("interface") => interface(&mut lines, &line),
            Some("host") => host(&mut lines, &line),
            _ => continue,
        }
        has_books = true;
    }
    if !has_books {
        in_file(&mut lines, data);
    }
    of_tcp(&mut lines, data);
    lines
}

fn look_of(lost: Option<i64>) -> Look {
    match lost {
        None => Look::Faint,
        Some(0) => Look::Good,
        Some(_) => Look::Warning,
    }
}

fn known(value: Option<i64>) -> String {
    value.map_or_else(|| "unavailable".to_owned(), |value| exact(value.into()))
}

fn row(name: &str, [total, last]: [Option<i64>; 2]) -> String {
    format!(
        "  {name:<42}{:>16}{:>16}",
        known(total),
        last.map_or_else(String::new, |it| exact(it.into()))
    )
}

fn interface(lines: &mut Vec<(Look, String)>, line: &Line<'_>) {
    let name = line.last.text("interface").unwrap_or("?");
    let verdict = line.last.text("verdict").unwrap_or("unknown");
    let share = |column: &str| {
        let share = line.last.double(column);
        share.map_or_else(|| "unknown".to_owned(), |share| format!("{:.3} %", share * 100.0))
    };
    let look = match verdict {
        "good" => Look::Good,
        "unknown" => Look::Faint,
        _ => Look::Warning,
    };
    let (kernel, application) = (share("kernel_loss"), share("application_loss"));
    lines.push((
        look,
        format!("{name}: {verdict}; lost by kernel {kernel}, by application {application}"),
    ));
    let seconds = line.last.double("interval").unwrap_or(0.0);
    let head =
        format!("  {:<42}{:>16}{:>16}", "packets", "since start", format!("last {seconds:.1} s"));
    lines.push((Look::Heading, head));
    for (name, column, is_loss) in STAGES {
        let total = line.total(column);
        let look = if is_loss { look_of(total[0]) } else { Look::Plain };
        let mut text = row(name, total);
        if column == "unexplained"
            && let Some(bound) = line.last.count("unexplained_bound").filter(|bound| *bound > 0)
        {
            text = format!("{text}  (counters up to {bound} apart)");
        }
        lines.push((look, text));
    }
    lines.push((Look::Plain, String::new()));
}

fn host(lines: &mut Vec<(Look, String)>, line: &Line<'_>) {
    let lost = line.total("lost_backlog");
    lines.push((look_of(lost[0]), row("dropped before any socket, whole host", lost)));
    lines.push((Look::Plain, String::new()));
}

/// What a file tells of its own capture.
fn in_file(lines: &mut Vec<(Look, String)>, data: &Data) {
    let total = data.totals.over(Span::Whole);
    lines.push((Look::Heading, format!("capture: {}", total.verdict().name())));
    lines.push((Look::Plain, row("packets", [total.all.packets.0, None])));
    let dropped = if total.intervals == 0 { None } else { total.dropped.0 };
    lines.push((look_of(dropped), row("  dropped, as the capture tells", [dropped, None])));
    lines.push((Look::Plain, String::new()));
}

/// What TCP itself shows, by place. It is known when a connection ends.
fn of_tcp(lines: &mut Vec<(Look, String)>, data: &Data) {
    let total = data.totals.over(Span::Whole).flows;
    lines.push((Look::Heading, "TCP payload that is missing, by who lost it".to_owned()));
    let places = [
        ("the network", total.network_lost),
        ("the capture", total.capture_lost),
        ("unexplained", total.unknown_lost),
    ];
    for (name, Known(lost)) in places {
        let size = lost.and_then(|lost| u64::try_from(lost).ok());
        let size = size.map_or_else(|| "unavailable".to_owned(), bytes);
        lines.push((look_of(lost), format!("  {name:<42}{size:>16}")));
    }
    let again = total.retransmitted.0;
    lines.push((Look::Plain, row("segments that were sent again", [again, None])));
}
