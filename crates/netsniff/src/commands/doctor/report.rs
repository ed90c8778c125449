//! A diagnosis as a page with pictures.

use netsniff_doctor::diagnosis::{Diagnosis, Level};
use netsniff_doctor::stage::{Knob, Loss, Stage};
use netsniff_lab::commands::Program;
use netsniff_lab::report::{self, Chart, Part, Plot, Report, Section, Table, Waterfall};

/// The page.
pub(super) fn page(diagnosis: &Diagnosis, program: Program) -> Report {
    let watched = &diagnosis.watched;
    let known =
        |number: Option<u64>| number.map_or_else(|| "unavailable".to_owned(), |it| it.to_string());
    let lead = format!(
        "Watched for {:.1} s: {} packets a second, at most {} in a tenth of one.",
        watched.nanos as f64 / 1e9,
        known(watched.rate),
        known(watched.peak_rate)
    );
    let facts = vec![
        ("netsniff".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("revision".to_owned(), program.revision.unwrap_or("unavailable").to_owned()),
        ("interface".to_owned(), diagnosis.interface.clone()),
        (
            "link".to_owned(),
            diagnosis.megabits.map_or_else(|| "unavailable".to_owned(), |it| format!("{it} Mb/s")),
        ),
    ];
    let mut sections = vec![findings(diagnosis), waterfall(diagnosis)];
    sections.push(advice(diagnosis));
    sections.extend(watched.stages.iter().map(stage));
    Report {
        title: format!("Where packets of {} are lost", diagnosis.interface),
        lead: vec![lead],
        facts,
        sections,
    }
}

fn findings(diagnosis: &Diagnosis) -> Section {
    let level = |level: Level| match level {
        Level::Losing => "loses now",
        Level::Near => "near it, or suspect",
        Level::Note => "worth knowing",
    };
    let rows: Vec<_> = diagnosis
        .findings
        .iter()
        .map(|it| vec![level(it.level).to_owned(), it.text.clone()])
        .collect();
    let parts = if rows.is_empty() {
        vec![Part::Text(diagnosis.silence())]
    } else {
        let columns = vec![(String::new(), false), ("finding".to_owned(), false)];
        vec![Part::Table(Table { columns, rows, note: None })]
    };
    Section { title: "Findings".to_owned(), parts }
}

/// What came, and what each stage that counts has lost of it.
fn waterfall(diagnosis: &Diagnosis) -> Section {
    let stages = diagnosis.watched.stages.iter();
    let counting = stages.filter(|stage| stage.counters.iter().any(|it| it.loss == Loss::Packets));
    let stages: Vec<_> = counting
        .map(|stage| report::Stage { name: stage.id.name().to_owned(), lost: stage.lost() })
        .collect();
    let came = diagnosis.watched.stages.iter().find_map(|stage| stage.during("rx_packets"));
    let title = "The way of packets".to_owned();
    let Some(came) = came.filter(|came| *came > 0) else {
        let text = match came {
            Some(_) => "No packet came while it was watched.".to_owned(),
            None => "The interface does not tell how many packets came.".to_owned(),
        };
        return Section { title, parts: vec![Part::Text(text)] };
    };
    // What was lost before the interface counted is no part of what it counted.
    let before = stages.first().and_then(|stage| stage.lost).unwrap_or_default();
    let all = came.saturating_add(before);
    let waterfall = Waterfall {
        all,
        begin: "arrived".to_owned(),
        stages,
        left: "left for captures".to_owned(),
    };
    let caption = "Packets that came while it was watched, and those that each stage that counts has lost of them. Drops of the \
                   backlog are of all interfaces together.";
    Section {
        title,
        parts: vec![Part::Plot(Plot::new(
            "Packets and losses by stage",
            caption,
            Chart::Waterfall(waterfall),
        ))],
    }
}

fn advice(diagnosis: &Diagnosis) -> Section {
    let knobs = diagnosis.watched.stages.iter().flat_map(|stage| &stage.knobs);
    let row = |knob: &Knob| {
        let advice = knob.advice.as_ref()?;
        let value = knob.value.clone().unwrap_or_else(|| "unavailable".to_owned());
        let words = [&advice.reason[..], advice.cost, advice.source].map(str::to_owned);
        Some([vec![knob.setting.command(&advice.value), value], words.to_vec()].concat())
    };
    let rows: Vec<_> = knobs.filter_map(row).collect();
    let title = "What to change".to_owned();
    if rows.is_empty() {
        return Section {
            title,
            parts: vec![Part::Text("No setting is advised to be changed.".to_owned())],
        };
    }
    let columns =
        ["command", "now", "why", "what it costs", "source"].map(|name| (name.to_owned(), false));
    Section {
        title,
        parts: vec![Part::Table(Table { columns: columns.to_vec(), rows, note: None })],
    }
}

fn stage(stage: &Stage) -> Section {
    let known =
        |number: Option<u64>| number.map_or_else(|| "unavailable".to_owned(), |it| it.to_string());
    let mut parts = Vec::new();
    if !stage.counters.is_empty() {
        let columns = [
            ("counter", false),
            ("since the start", true),
            ("while watched", true),
            ("source", false),
        ];
        let rows = stage
            .counters
            .iter()
            .map(|it| vec![it.name.clone(), known(it.total), known(it.during), it.source.clone()]);
        parts.push(table(&columns, rows.collect()));
    }
    if !stage.knobs.is_empty() {
        let columns = [("setting", false), ("value", false), ("at most", false), ("rules", false)];
        let row = |knob: &Knob| {
            let value = knob.value.clone().unwrap_or_else(|| "unavailable".to_owned());
            vec![
                knob.setting.to_string(),
                value,
                if knob.is_fixed {
                    "fixed".to_owned()
                } else {
                    knob.most.clone().unwrap_or_default()
                },
                knob.rules.to_owned(),
            ]
        };
        parts.push(table(&columns, stage.knobs.iter().map(row).collect()));
    }
    parts.extend(stage.notes.iter().chain(&stage.unread).map(|note| Part::Text(note.clone())));
    Section { title: stage.id.name().to_owned(), parts }
}

fn table(columns: &[(&str, bool)], rows: Vec<Vec<String>>) -> Part {
    let columns =
        columns.iter().map(|(name, is_number)| ((*name).to_owned(), *is_number)).collect();
    Part::Table(Table { columns, rows, note: None })
}
