//! How fast stored packets are processed: rates, costs of stages, and what options and workers change.

use crate::offline::StoredOutcome;
use crate::offline::figures::{Change, Figures, Mean, Spread, StageCost};
use crate::offline::subject::{OfflineSubject, Role, Stage};
use crate::report::number::{exact, whole};
use crate::report::{Axis, Bars, Chart, Part, Plot, Section, Table, Value};

/// Sections about a file.
#[must_use]
pub fn offline(outcome: &StoredOutcome) -> Vec<Section> {
    let name = outcome.capture.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let figures: Vec<_> = outcome
        .subjects
        .iter()
        .filter_map(|subject| Some((subject, outcome.figures(subject)?)))
        .collect();
    let mut parts = vec![Part::Text(about(outcome)), Part::Table(rates(outcome, &figures))];
    parts.extend(drawn_rates(&figures).map(Part::Plot));
    let mut sections = vec![Section { title: format!("Rates of {name}"), parts }];
    let stages = outcome.stages();
    if !stages.is_empty() {
        let parts = vec![Part::Table(costs(&stages)), Part::Plot(drawn_costs(&stages))];
        sections.push(Section { title: format!("Costs of stages, {name}"), parts });
    }
    let changes = outcome.changes();
    if !changes.is_empty() {
        let parts = vec![Part::Table(compared(&changes))];
        sections.push(Section { title: format!("Options and workers, {name}"), parts });
    }
    sections
}

/// The file, and what else a reader has to know of it.
fn about(outcome: &StoredOutcome) -> String {
    let capture = &outcome.capture;
    let mean = capture.wire_bytes as f64 / capture.packets.max(1) as f64;
    let mut text = format!(
        "{}: {} packets of {mean:.0} bytes on average, {} bytes on the wire, {} of them captured; the file has {} bytes. ",
        capture.path.display(),
        exact(capture.packets),
        exact(capture.wire_bytes),
        exact(capture.captured_bytes),
        exact(capture.file_bytes),
    );
    text += &format!(
        "{} rounds count; one before them fills the page cache and counts for nothing. Every run is a process of its own.",
        outcome.runs.iter().map(|run| run.round).max().unwrap_or(0)
    );
    for place in &capture.damage {
        text +=
            &format!("\nThe file is damaged, and is measured as far as it can be read: {place}.");
    }
    if let Some(why) = &outcome.ended {
        text += &format!("\nEnded before all of {} rounds were done: {why}.", outcome.rounds);
    }
    text
}

fn columns(names: &[(&str, bool)]) -> Vec<(String, bool)> {
    names.iter().map(|&(name, is_number)| (name.to_owned(), is_number)).collect()
}

fn rates(outcome: &StoredOutcome, figures: &[(&OfflineSubject, Figures)]) -> Table {
    let mut rows = Vec::new();
    for subject in &outcome.subjects {
        let found = figures.iter().find(|(of, _)| *of == subject);
        rows.push(match found {
            Some((_, figures)) => row(outcome, subject, figures),
            None => {
                let why = outcome.failure(subject).unwrap_or("no round that counts");
                let mut row = vec!["-".to_owned(); 11];
                row[0] = label(subject);
                row[10] = why.to_owned();
                row
            }
        });
    }
    Table {
        columns: columns(&[
            ("program", false),
            ("ms", true),
            ("least to most", true),
            ("packets/s", true),
            ("Gbit/s", true),
            ("ns/packet", true),
            ("CPU ms", true),
            ("CPU ns/packet", true),
            ("peak MB", true),
            ("packets it read", true),
            ("", false),
        ]),
        rows,
        note: Some(
            "Medians of the rounds; peak MB is the most of any. The rate of netsniff up to a stage is that of a whole run which \
             ends there. Bits are those on the wire. What a program does not tell is -; of memory that is less than the lab's own only \
             that is known. Programs do different work: a ratio tells how long a user waits."
                .to_owned(),
        ),
    }
}

fn row(outcome: &StoredOutcome, subject: &OfflineSubject, figures: &Figures) -> Vec<String> {
    let Spread { median, least, most } = figures.seconds;
    let middle = |spread: Option<Spread>| spread.map(|spread| spread.median);
    let known = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let reads = subject.role != Role::Stage(Stage::Start);
    let each = |spread: Spread| known(reads.then(|| format!("{:.1}", spread.median)));
    let note = match outcome.failure(subject) {
        Some(why) => format!("{} runs alone: {why}", figures.runs),
        None => String::new(),
    };
    vec![
        label(subject),
        milliseconds(median),
        format!("{} to {}", milliseconds(least), milliseconds(most)),
        known(middle(figures.packets_per_second).map(whole)),
        known(middle(figures.bits_per_second).map(|bits| format!("{:.3}", bits / 1e9))),
        each(figures.ns_per_packet),
        milliseconds(figures.cpu_seconds.median),
        each(figures.cpu_ns_per_packet),
        known(peak(figures)),
        known(figures.packets.map(exact)),
        note,
    ]
}

/// The most memory in megabytes, or what it did not exceed.
fn peak(figures: &Figures) -> Option<String> {
    let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    let bound = figures.peak_below.map(|bytes| format!("\u{2264} {}", megabytes(bytes)));
    figures.peak_bytes.map(megabytes).or(bound)
}

/// The name of a subject in tables: netsniff's stages are runs up to them.
fn label(subject: &OfflineSubject) -> String {
    match subject.role {
        Role::Stage(Stage::Start) => "netsniff, start alone".to_owned(),
        Role::Stage(Stage::Read) => "netsniff, read".to_owned(),
        Role::Stage(Stage::Rows) => "netsniff, all, + rows".to_owned(),
        Role::Stage(stage) => format!("netsniff, + {}", stage.name()),
        Role::Workers(_) | Role::Variant => format!("netsniff, {}", subject.name),
        Role::Peer => subject.name.clone(),
    }
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.1}", seconds * 1e3)
}

fn drawn_rates(figures: &[(&OfflineSubject, Figures)]) -> Option<Plot> {
    let known: Vec<_> = figures
        .iter()
        .filter_map(|(subject, figures)| {
            let rate = figures.packets_per_second?;
            Some((subject.name.clone(), rate.median))
        })
        .collect();
    let (names, values): (Vec<_>, Vec<_>) = known.into_iter().unzip();
    let values = values.into_iter().map(Value::Exactly).collect();
    let bars = Bars {
        y: Axis::new("packets a second"),
        groups: ("program".to_owned(), names),
        series: vec![("median of the rounds".to_owned(), values)],
    };
    let caption = "Whole runs, from the start of the process to its end: of netsniff up to each stage, then with other \
                   workers and options, and of other programs.";
    let plot = Plot::new("Packets a second from a file", caption, Chart::Bars(bars));
    (!figures.is_empty()).then_some(plot)
}

fn costs(stages: &[StageCost]) -> Table {
    let all: f64 = stages.iter().map(|cost| cost.ns.value).sum();
    let row = |cost: &StageCost| {
        vec![
            cost.stage.name().to_owned(),
            format!("{:.1}", cost.ns.value),
            interval(&cost.ns, "", 1),
            format!("{:.1}", cost.ns.value / all * 100.0),
            format!("{:.1}", cost.cpu_ns.value),
            interval(&cost.cpu_ns, "", 1),
            cost.stage.definition().to_owned(),
        ]
    };
    Table {
        columns: columns(&[
            ("stage", false),
            ("ns/packet", true),
            ("95 %", true),
            ("share %", true),
            ("CPU ns/packet", true),
            ("95 %", true),
            ("what it is", false),
        ]),
        rows: stages.iter().map(row).collect(),
        note: Some(
            "The cost of a stage is the time of a run up to it less that of the run before, in the same round: the mean of \
             the rounds, with its interval of 95 % (Student's t of the differences). All runs have one worker. An interval \
             that has 0 in it proves no cost."
                .to_owned(),
        ),
    }
}

fn drawn_costs(stages: &[StageCost]) -> Plot {
    let of = |mean: fn(&StageCost) -> Mean| {
        stages.iter().map(|cost| Value::Exactly(mean(cost).value)).collect()
    };
    let bars = Bars {
        y: Axis::new("nanoseconds for a packet"),
        groups: (
            "stage".to_owned(),
            stages.iter().map(|cost| cost.stage.name().to_owned()).collect(),
        ),
        series: vec![
            ("start to end".to_owned(), of(|cost| cost.ns)),
            ("on a processor".to_owned(), of(|cost| cost.cpu_ns)),
        ],
    };
    let caption = "What each stage takes beyond the one before, for each packet of the file.";
    Plot::new("Cost of a packet by stage", caption, Chart::Bars(bars))
}

fn compared(changes: &[Change]) -> Table {
    let row = |change: &Change| {
        vec![
            change.subject.clone(),
            format!("{:.3}", change.times.value),
            interval(&change.times, "", 3),
            format!("{:.3}", change.cpu_times.value),
            interval(&change.cpu_times, "", 3),
            format!("{:+.1}", change.cpu_ns.value),
            interval(&change.cpu_ns, "+", 1),
            change.times.rounds.to_string(),
        ]
    };
    Table {
        columns: columns(&[
            ("netsniff with", false),
            ("time, times", true),
            ("95 %", true),
            ("CPU, times", true),
            ("95 %", true),
            ("CPU ns/packet more", true),
            ("95 %", true),
            ("rounds", true),
        ]),
        rows: changes.iter().map(row).collect(),
        note: Some(
            "Beside netsniff with all stages, one worker and no other option, in the same round: 1 is no difference, less is \
             faster. Geometric means of the ratios, with Student's interval of 95 %."
                .to_owned(),
        ),
    }
}

fn interval(mean: &Mean, sign: &str, digits: usize) -> String {
    let end = |end: f64| match sign {
        "+" => format!("{end:+.digits$}"),
        _ => format!("{end:.digits$}"),
    };
    mean.interval.map_or("-".to_owned(), |[low, high]| format!("{} to {}", end(low), end(high)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offline::figures::tests::outcome;

    fn tables(sections: &[Section]) -> Vec<&Table> {
        let parts = sections.iter().flat_map(|section| &section.parts);
        parts
            .filter_map(|part| match part {
                Part::Table(table) => Some(table),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn a_file_has_rates_costs_and_changes() {
        let sections = offline(&outcome());
        let titles: Vec<_> = sections.iter().map(|section| section.title.as_str()).collect();
        assert_eq!(
            titles,
            ["Rates of a.pcap", "Costs of stages, a.pcap", "Options and workers, a.pcap"]
        );
        let tables = tables(&sections);
        assert_eq!(tables[0].rows.len(), 10);
        let tcpdump = tables[0].rows.last().unwrap();
        let cells = ["tcpdump", "0.0", "0.0 to 0.0", "20,000,000", "3.200", "50.0", "0.0", "40.0"];
        assert_eq!(tcpdump[..8], cells);
        let start = &tables[0].rows[0];
        assert_eq!((start[3].as_str(), start[5].as_str()), ("-", "-"), "it reads no packet");
        let shares: f64 = tables[1].rows.iter().map(|row| row[3].parse::<f64>().unwrap()).sum();
        assert!((shares - 100.0).abs() < 0.5, "{shares}");
        let full = &tables[2].rows[1];
        assert_eq!((full[0].as_str(), full[5].as_str(), full[7].as_str()), ("full", "+12.0", "3"));
    }

    #[test]
    fn failures_damage_and_an_early_end_are_told() {
        let mut outcome = outcome();
        for run in outcome.runs.iter_mut().filter(|run| run.subject == "tcpdump") {
            run.failure = Some("it failed (exit status: 1): no".to_owned());
        }
        outcome.capture.damage = vec!["cut".to_owned()];
        outcome.ended = Some("a signal".to_owned());
        let sections = offline(&outcome);
        let Part::Text(about) = &sections[0].parts[0] else { panic!("it is a text") };
        assert!(about.contains("as far as it can be read: cut."), "{about}");
        assert!(about.contains("Ended before all of 3 rounds were done: a signal."), "{about}");
        let row = tables(&sections)[0].rows.last().unwrap();
        assert_eq!((row[1].as_str(), row[10].as_str()), ("-", "it failed (exit status: 1): no"));
        outcome.runs.clear();
        assert_eq!(tables(&offline(&outcome)).len(), 1, "there is nothing of stages");
    }
}
