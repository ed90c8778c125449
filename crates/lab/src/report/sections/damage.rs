//! Flows that losses damage: what is expected, and what came.

use super::percent;
use crate::damage::{DamageOutcome, Mix, shown};
use crate::report::{Axis, Chart, Dot, Part, Plot, Section, Series, Table};

/// Points of the curve of what is expected.
const STEPS: u32 = 60;

/// Sections about the flows of a capture, what losses do to them, and which losses may be tolerated: pairs of a share of the
/// flows and a loss.
#[must_use]
pub fn damage(mix: &Mix, outcomes: &[DamageOutcome], tolerable: &[(f64, f64)]) -> Vec<Section> {
    let mut sections = Vec::new();
    if !outcomes.is_empty() {
        let mut parts =
            vec![Part::Plot(against_loss(mix, outcomes)), Part::Table(table(mix, outcomes))];
        if outcomes.iter().any(|outcome| !outcome.rounds.is_empty()) {
            parts.push(Part::Plot(by_length(mix, outcomes)));
        }
        sections.push(Section { title: "Damaged flows".to_owned(), parts });
    }
    if !tolerable.is_empty() {
        let parts = vec![Part::Table(tolerated(mix, tolerable))];
        sections.push(Section { title: "Losses that may be tolerated".to_owned(), parts });
    }
    let parts = vec![Part::Table(lengths(mix, outcomes))];
    sections.push(Section { title: "Flows by their length".to_owned(), parts });
    sections
}

fn columns(names: &[&str]) -> Vec<(String, bool)> {
    names.iter().map(|name| ((*name).to_owned(), true)).collect()
}

fn against_loss(mix: &Mix, outcomes: &[DamageOutcome]) -> Plot {
    let flows = mix.flows().max(1) as f64;
    let most = outcomes.iter().map(|outcome| outcome.loss).fold(0.0, f64::max);
    let expected = (0..=STEPS).map(|step| {
        let x = most * f64::from(step) / f64::from(STEPS);
        Dot { x, y: mix.expected(x).flows / flows, range: None }
    });
    let counted = outcomes.iter().filter_map(|outcome| {
        let [least, mean, most] = outcome.counted(|damage| damage.flows)?;
        Some(Dot { x: outcome.loss, y: mean / flows, range: Some((least / flows, most / flows)) })
    });
    let name =
        |name: &str, dots: Vec<Dot>, is_line| Series { name: name.to_owned(), dots, is_line };
    let series =
        [name("expected", expected.collect(), true), name("counted", counted.collect(), false)];
    let chart = Chart::Curves {
        x: Axis::share("loss of packets"),
        y: Axis::share("damaged, of all flows"),
        series: series.into_iter().filter(|series| !series.dots.is_empty()).collect(),
        marks: Vec::new(),
        has_diagonal: false,
    };
    let caption = "A flow is damaged where any of its packets is lost. The line is what the lengths of these flows let \
                   expect; points are means of rounds in which packets were lost and flows counted, and the thin lines reach \
                   from the least to the most.";
    Plot::new("Flows that miss a packet", caption, chart)
}

fn table(mix: &Mix, outcomes: &[DamageOutcome]) -> Table {
    let flows = mix.flows().max(1) as f64;
    let row = |outcome: &DamageOutcome| {
        let of = outcome.counted(|damage| damage.flows);
        let lost = outcome.counted(|damage| damage.lost);
        let one = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
        let mean = of.map(|[_, mean, _]| mean);
        let ends = of.map(|[least, _, most]| format!("{least:.0} to {most:.0}"));
        vec![
            shown(outcome.loss * 100.0).to_string(),
            one(lost.map(|[_, mean, _]| mean)),
            format!("{:.1}", outcome.expected.flows),
            format!("{:.1}", outcome.expected.deviation),
            percent(Some(outcome.expected.flows / flows)),
            one(mean),
            percent(mean.map(|mean| mean / flows)),
            ends.unwrap_or_else(|| "-".to_owned()),
            outcome.sigmas.map_or("-".to_owned(), |off| format!("{off:+.2}")),
            outcome.rounds.len().to_string(),
        ]
    };
    Table {
        columns: columns(&[
            "loss %",
            "packets lost",
            "flows expected",
            "\u{b1}",
            "expected %",
            "flows counted",
            "counted %",
            "least to most",
            "off by \u{3c3}",
            "rounds",
        ]),
        rows: outcomes.iter().map(row).collect(),
        note: Some(
            "Expected: 1 - (1 - p)^n of the flows of n packets, summed over all lengths, and the standard deviation of one \
             round. Counted: means of the rounds. \u{3c3}: standard deviations of that mean."
                .to_owned(),
        ),
    }
}

fn by_length(mix: &Mix, outcomes: &[DamageOutcome]) -> Plot {
    let classes = mix.classes();
    let series = |outcome: &DamageOutcome| {
        let dot = |(class, of): &(u32, Mix)| {
            let flows = of.flows() as f64;
            let counted = outcome.counted(|damage| damage.classes.get(class).copied().unwrap_or(0));
            let [least, mean, most] = counted?.map(|counted| counted / flows);
            Some(Dot {
                x: of.expected(outcome.loss).flows / flows,
                y: mean,
                range: Some((least, most)),
            })
        };
        let name = format!("loss {} %", shown(outcome.loss * 100.0));
        Series { name, dots: classes.iter().filter_map(dot).collect(), is_line: false }
    };
    let series = outcomes.iter().map(series).filter(|series| !series.dots.is_empty());
    let chart = Chart::Curves {
        x: Axis::share("damaged as expected, of the class"),
        y: Axis::share("damaged as counted"),
        series: series.collect(),
        marks: Vec::new(),
        has_diagonal: true,
    };
    let caption = "Each point is of the flows of one class of lengths (1 packet, 2 and 3, 4 to 7, and so on) at one loss. On \
                   the line as many are damaged as are expected; the thin lines reach from the least to the most of the \
                   rounds.";
    Plot::new("Short and long flows", caption, chart)
}

fn tolerated(mix: &Mix, tolerable: &[(f64, f64)]) -> Table {
    let row = |(share, loss): &(f64, f64)| {
        let flows = mix.flows() as f64 * share;
        vec![
            shown(share * 100.0).to_string(),
            format!("{flows:.1}"),
            shown(loss * 100.0).to_string(),
        ]
    };
    Table {
        columns: columns(&["damaged flows, at most %", "flows", "loss, at most %"]),
        rows: tolerable.iter().map(row).collect(),
        note: Some(
            "So many flows are expected to be damaged at this loss; in about half of all cases more are."
                .to_owned(),
        ),
    }
}

fn lengths(mix: &Mix, outcomes: &[DamageOutcome]) -> Table {
    let mut names = vec!["packets".to_owned(), "flows".to_owned()];
    for outcome in outcomes {
        let loss = shown(outcome.loss * 100.0);
        names.extend([format!("expected % at {loss} %"), format!("counted % at {loss} %")]);
    }
    let row = |(class, of): &(u32, Mix)| {
        let (first, flows) = (1_u64 << class, of.flows());
        let mut row = vec![format!("{first} to {}", first + (first - 1)), flows.to_string()];
        for outcome in outcomes {
            let counted = outcome.counted(|damage| damage.classes.get(class).copied().unwrap_or(0));
            row.push(percent(Some(of.expected(outcome.loss).flows / flows as f64)));
            row.push(percent(counted.map(|[_, mean, _]| mean / flows as f64)));
        }
        row
    };
    Table {
        columns: names.into_iter().map(|name| (name, true)).collect(),
        rows: mix.classes().iter().map(row).collect(),
        note: Some("Damaged flows, of the class.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damage::Flows;

    #[test]
    fn what_was_not_counted_is_not_shown_as_counted() {
        let flows = Flows::of(vec![Some(0), Some(0), Some(1), None]);
        let mix = flows.mix();
        let expected = [DamageOutcome::new(&mix, 0.5, Vec::new())];
        let sections = damage(&mix, &expected, &[(0.5, 0.4)]);
        assert_eq!(sections.len(), 3);
        let Part::Table(table) = &sections[0].parts[1] else { panic!("it is a table") };
        assert_eq!(
            table.rows,
            [["50", "-", "1.2", "0.7", "62.500", "-", "-", "-", "-", "0"].map(str::to_owned)]
        );
        let counted = [DamageOutcome::new(&mix, 0.5, vec![flows.damage(|at| at == 2)])];
        let sections = damage(&mix, &counted, &[]);
        assert_eq!((sections.len(), sections[0].parts.len()), (2, 3));
        let Part::Plot(Plot { chart: Chart::Curves { series, .. }, .. }) = &sections[0].parts[2]
        else {
            panic!("it is a plot");
        };
        // The flow of one packet, and that of two.
        let dots: Vec<_> = series[0].dots.iter().map(|dot| (dot.x, dot.y)).collect();
        assert_eq!(dots, [(0.5, 1.0), (0.75, 0.0)]);
        let Part::Table(lengths) = &sections[1].parts[0] else { panic!("it is a table") };
        assert_eq!(lengths.rows[1], ["2 to 3", "1", "75.000", "0.000"]);
    }
}
