//! The verdict: what speaks for the logs, what against them, and what nobody can tell.

use netsniff_console::number::{exact, percent};

use super::{NOT_TOLD, Trust, things};
use crate::page::{Reason, Verdict};
use crate::report::material::{SUMMARY, Summary};
use crate::report::sections::About;

/// How much speaks against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    /// Something to know, which speaks neither for nor against.
    Note,
    Good,
    Unknown,
    Warn,
    Bad,
}

impl Level {
    const fn look(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Good => "good",
            Self::Unknown => "unknown",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

/// Reasons with their levels.
type Reasons = Vec<(Level, String)>;

/// The verdict on logs.
pub(super) fn judge(trust: &Trust, about: &About<'_>) -> Verdict {
    let mut reasons = Reasons::new();
    books(trust, &mut reasons);
    reasons.extend(few_packets(trust).map(|said| (Level::Unknown, said)));
    if let Some(said) = &about.material.no_summary {
        reasons.push((Level::Unknown, format!("The file {SUMMARY} is left out: {said}.")));
    }
    if let Some(summary) = &about.material.summary {
        match other_run(trust, summary, about.reading.rows("conn")) {
            None => of_summary(summary, &mut reasons),
            Some(said) => reasons.push((Level::Warn, said)),
        }
    } else if trust.books.lines().next().is_none() {
        let said = "No books are among the logs: nothing tells whether packets were lost before the analysis.";
        reasons.push((Level::Unknown, said.to_owned()));
    }
    qualities(trust, &mut reasons);
    reading(about, &mut reasons);
    reasons.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
    let worst = reasons.iter().map(|(level, _)| *level).max().unwrap_or(Level::Unknown);
    let is_any_good = reasons.iter().any(|(level, _)| *level == Level::Good);
    let title = match worst {
        Level::Good => "Nothing shows a loss by the capture",
        Level::Note => "Nobody can tell",
        Level::Unknown if is_any_good => {
            "No loss by the capture is seen, but not everything can be told"
        }
        Level::Unknown => "Nobody can tell",
        Level::Warn => "Some of it is incomplete",
        Level::Bad => "Too much is missing to rely on it",
    };
    let reasons = reasons.into_iter().map(|(level, text)| Reason { look: level.look(), text });
    Verdict {
        of: None,
        look: worst.look(),
        title: title.to_owned(),
        reasons: reasons.collect(),
        tiles: Vec::new(),
    }
}

/// What the books of a live capture say.
fn books(trust: &Trust, reasons: &mut Reasons) {
    for (name, line) in trust.books.lines() {
        let (level, meaning) = match line.verdict.as_deref() {
            Some("good") => (Level::Good, "hardly anything was lost"),
            Some("degraded") => (Level::Warn, "statistics of some flows are wrong"),
            Some("bad") => (Level::Bad, "most statistics of long flows are wrong"),
            _ => (Level::Unknown, "nobody can tell what was lost"),
        };
        let verdict = line.verdict.as_deref().unwrap_or("unknown");
        reasons.push((level, format!("The capture on {name} is {verdict}: {meaning}.")));
        for (lost, what) in [
            (line.lost_interface, "the interface had no room for"),
            (line.ring_dropped, "the ring had no room for"),
            (line.refused, "the analysis had no room for"),
        ] {
            if let Some(lost) = lost.filter(|lost| *lost > 0) {
                let packets = things(lost, "packet", "packets");
                reasons.push((Level::Warn, format!("On {name}, {what} {packets}.")));
            }
        }
        if let Some(rows) = line.refused_rows.filter(|rows| *rows > 0) {
            let rows = things(rows, "row of the logs was", "rows of the logs were");
            reasons.push((Level::Warn, format!("{rows} not written on {name}: sums are too low.")));
        }
        if !line.is_final {
            let said = format!(
                "The books of {name} are not closed: the run goes on, or was ended without its last row."
            );
            reasons.push((Level::Warn, said));
        }
    }
    if trust.books.left_out > 0 {
        let said = "There are more interfaces and runs in the books than are told apart.";
        reasons.push((Level::Unknown, said.to_owned()));
    }
}

/// What is to be said where connections have less than half of the packets that the books tell were analysed. Fewer may
/// well be: ARP and the like are in no connection.
fn few_packets(trust: &Trust) -> Option<String> {
    let mut analysed: Option<u128> = None;
    for (_, line) in trust.books.lines() {
        analysed = Some(analysed.unwrap_or(0).saturating_add(line.analysed?.into()));
    }
    let (analysed, packets) = (analysed?, trust.packets.told()?);
    let is_few = trust.packets.untold() == 0 && packets.saturating_mul(2) < analysed;
    let show = |number: u128| exact(i128::try_from(number).unwrap_or(i128::MAX));
    is_few.then(|| {
        let (analysed, packets) = (show(analysed), show(packets));
        format!("The books tell of {analysed} packets that were analysed, and rows of conn have {packets}: the others are of no connection, or rows are missing.")
    })
}

/// Why the summary is not that of these logs, or these are not all: then it says nothing for them.
fn other_run(trust: &Trust, summary: &Summary, rows: u64) -> Option<String> {
    let meaning = "rows are missing, or the summary is that of another run, and nothing it says is counted as good";
    let total = summary.flows.total?;
    if total != rows {
        let (told, rows) = (things(total, "connection", "connections"), exact(rows.into()));
        return Some(format!("The summary tells of {told}, and conn has {rows}: {meaning}."));
    }
    // Both are rounded to a microsecond, or less.
    let nanos = |seconds: f64| (seconds * 1e9) as i64;
    let (first, last) = (nanos(summary.input.first?), nanos(summary.input.last?));
    let (begin, end) = trust.span?;
    let is_within = begin >= first.saturating_sub(SLACK) && end <= last.saturating_add(SLACK);
    (!is_within).then(|| format!("Connections lie outside of the time of the summary: {meaning}."))
}

/// Nanoseconds by which rounded times may differ.
const SLACK: i64 = 1_000_000;

/// What the summary of a run says.
fn of_summary(summary: &Summary, reasons: &mut Reasons) {
    for source in summary.input.sources.iter() {
        if let Some(places) = source.damage_count.filter(|places| *places > 0) {
            let places = things(places, "place", "places");
            let first =
                source.damage.first().map(|it| format!(" The first: {it}.")).unwrap_or_default();
            reasons.push((Level::Warn, format!("{} is damaged at {places}.{first}", source.name)));
        }
    }
    for line in &summary.books.lost {
        match line.packets {
            Some(0) => {}
            Some(packets) => {
                let packets = things(packets, "packet was", "packets were");
                reasons
                    .push((Level::Warn, format!("{packets} {}, as the capture tells.", line.name)));
            }
            None => reasons.push((
                Level::Unknown,
                format!("The capture does not tell how many packets were {}.", line.name),
            )),
        }
    }
    if !summary.books.lost.is_empty() && summary.books.lost.iter().all(|it| it.packets == Some(0)) {
        reasons.push((Level::Good, "The capture tells that no packet was lost.".to_owned()));
    }
    if let Some(left) = summary.books.unexplained.filter(|left| *left != 0) {
        let said = format!("{} packets are unexplained.", exact(left.into()));
        reasons.push((Level::Bad, said));
    }
    if !summary.input.filters.is_empty() {
        let said = "A filter chose the packets: the logs tell of those alone.";
        reasons.push((Level::Warn, said.to_owned()));
    }
    parts(summary, reasons);
    reasons.extend(summary.notes.iter().map(|note| (Level::Note, format!("{note}."))));
}

/// Packets that came in and of which no log tells, or not all, by the words of the summary.
fn parts(summary: &Summary, reasons: &mut Reasons) {
    const UNTOLD: [(&str, Level); 4] = [
        ("of a link type not supported", Level::Warn),
        ("with headers malformed or cut", Level::Unknown),
        ("carrying what is not known", Level::Unknown),
        ("left out for a wrong IP checksum", Level::Unknown),
    ];
    for part in &summary.books.parts {
        let known = UNTOLD.iter().find(|(name, _)| *name == part.name);
        if let (Some((name, level)), Some(packets)) = (known, part.packets.filter(|it| *it > 0)) {
            let packets = things(packets, "packet was read", "packets were read");
            reasons.push((*level, format!("{packets} {name}: their flows are not known.")));
        }
    }
}

/// What connections say of themselves.
fn qualities(trust: &Trust, reasons: &mut Reasons) {
    let [clean, touched, suspect] =
        ["clean", "touched", "suspect"].map(|it| trust.words("quality", it));
    let would_show = clean + touched + suspect;
    let untold = trust.words("quality", NOT_TOLD);
    if trust.connections > untold && untold > 0 {
        let (untold, all) = (exact(untold.into()), exact(trust.connections.into()));
        let said = format!("Of {all} connections {untold} do not tell their quality.");
        reasons.push((Level::Unknown, said));
    }
    if trust.connections == 0 {
        reasons.push((Level::Unknown, "There is no row of conn.".to_owned()));
    } else if untold == trust.connections {
        let said = "The log conn does not tell the quality of connections: it is not of this program, or of an old one.";
        reasons.push((Level::Unknown, said.to_owned()));
    } else if would_show == 0 {
        let said = "No connection would show a loss: none is a TCP connection that was seen from its begin on both sides.";
        reasons.push((Level::Unknown, said.to_owned()));
    } else if touched + suspect == 0 {
        let (clean, all) = (exact(clean.into()), exact(trust.connections.into()));
        let said = format!("Connections that would show a loss: {clean} of {all}, all clean.");
        reasons.push((Level::Good, said));
    } else {
        let said = format!(
            "Connections that would show a loss: {} of {}; of these {} are touched by one of the capture and {} suspect, {} clean.",
            exact(would_show.into()),
            exact(trust.connections.into()),
            exact(touched.into()),
            exact(suspect.into()),
            percent(clean, would_show)
        );
        reasons.push((Level::Warn, said));
    }
    if trust.sampled > 0 {
        let rows = things(trust.sampled, "connection stands", "connections stand");
        let said = format!("The capture took a sample: {rows} for others that were not captured.");
        reasons.push((Level::Warn, said));
    }
    let deep = trust.words("depth", "protocols") + trust.words("depth", NOT_TOLD);
    let shallow = trust.connections.saturating_sub(deep);
    if shallow > 0 {
        let many = things(shallow, "connection", "connections");
        reasons.push((Level::Unknown, format!("{many} were not looked at with all protocols.")));
    }
}

/// What reading the logs showed.
fn reading(about: &About<'_>, reasons: &mut Reasons) {
    let (reading, folder) = (about.reading, &about.material.folder);
    for file in &reading.files {
        let name = &file.name;
        if let Some(error) = &file.faults.stopped {
            reasons.push((Level::Bad, format!("{name} could not be read to its end: {error}.")));
        }
        if file.faults.lines > 0 {
            let lines = things(file.faults.lines, "line", "lines");
            reasons
                .push((Level::Warn, format!("{lines} of {name} are no rows: sums are too low.")));
        }
        if file.faults.values > 0 {
            let values = things(file.faults.values, "value", "values");
            reasons
                .push((Level::Warn, format!("{values} in {name} are not of their column's type.")));
        }
    }
    let open: Vec<_> =
        reading.files.iter().filter(|it| it.faults.is_open).map(|it| it.name.as_str()).collect();
    if !open.is_empty() {
        let said =
            "do not end with the line that closes a log: the run goes on, or was interrupted.";
        reasons.push((Level::Warn, format!("{} {said}", open.join(", "))));
    }
    endless(about, reasons);
    let (unread, doubled) = (folder.unread.join(", "), folder.doubled.join(", "));
    if !unread.is_empty() {
        reasons.push((Level::Warn, format!("Logs in other forms were not read: {unread}.")));
    }
    if !doubled.is_empty() {
        let said = "Another form of the same log was read, and rows count once. Not read:";
        reasons.push((Level::Warn, format!("{said} {doubled}.")));
    }
}

/// Logs of which nobody can tell whether they are whole, since their form has no last line.
fn endless(about: &About<'_>, reasons: &mut Reasons) {
    let files = about.reading.files.iter().filter(|file| file.faults.is_endless);
    let names: Vec<_> = files.map(|file| file.name.as_str()).collect();
    if !names.is_empty() {
        let said = "have no line that closes a log: nobody can tell whether rows are missing.";
        reasons.push((Level::Unknown, format!("{} {said}", names.join(", "))));
    }
}
