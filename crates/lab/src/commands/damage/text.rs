//! Damaged flows as text and as CSV.

use std::fmt::Write as _;

use netsniff_console::number::exact;
use netsniff_console::terminal::table::{Align, Table};

use super::Subject;
use crate::commands::csv::{known, line};
use crate::damage::{Damage, DamageOutcome, shown};

/// Whose flows they are, in a sentence.
pub(super) fn about(subject: &Subject) -> String {
    let Subject { flows, packets, without_flow, lengths: [shortest, middle, longest], .. } =
        subject;
    let mean = *packets as f64 / (*flows).max(1) as f64;
    let [flows, packets, shortest, middle, longest] =
        [flows, packets, shortest, middle, longest].map(|number| exact((*number).into()));
    let without = match without_flow {
        0 => String::new(),
        number => format!(" {} packets are of no flow.", exact((*number).into())),
    };
    format!(
        "{flows} flows of {packets} packets: {mean:.1} on average, {shortest} to {longest}, {middle} in the middle.{without}"
    )
}

/// All that was asked.
pub(super) fn text(
    subject: &Subject,
    outcomes: &[DamageOutcome],
    tolerable: &[(f64, f64)],
) -> String {
    let mut text = about(subject) + "\n";
    if !outcomes.is_empty() {
        text += &table(subject, outcomes);
    }
    for (number, (share, loss)) in tolerable.iter().enumerate() {
        if number == 0 {
            text += "\n";
        }
        // A String takes everything.
        let _ = writeln!(
            text,
            "for {} % damaged flows ({:.1}) {} % of the packets may be lost",
            shown(share * 100.0),
            subject.flows as f64 * share,
            shown(loss * 100.0)
        );
    }
    text
}

fn table(subject: &Subject, outcomes: &[DamageOutcome]) -> String {
    let heads = [
        "loss %",
        "packets lost",
        "expected",
        "+-",
        "%",
        "counted",
        "least to most",
        "sigma",
        "rounds",
    ];
    let mut table = Table::new(&heads.map(|head| (head, Align::Right)));
    for outcome in outcomes {
        let lost = outcome.counted(|damage| damage.lost);
        let flows = outcome.counted(|damage| damage.flows);
        let one = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
        let ends = flows.map(|[least, _, most]| format!("{least:.0} to {most:.0}"));
        table.row([
            shown(outcome.loss * 100.0).to_string(),
            one(lost.map(|[_, mean, _]| mean)),
            format!("{:.1}", outcome.expected.flows),
            format!("{:.1}", outcome.expected.deviation),
            format!("{:.3}", outcome.expected.flows / subject.flows.max(1) as f64 * 100.0),
            one(flows.map(|[_, mean, _]| mean)),
            ends.unwrap_or_else(|| "-".to_owned()),
            outcome.sigmas.map_or("-".to_owned(), |off| format!("{off:+.2}")),
            outcome.rounds.len().to_string(),
        ]);
    }
    let mut text = format!("\n{}", table.text());
    text += "Damaged flows: with at least one packet lost. Expected: 1 - (1 - p)^n, summed over all flows, and its standard\n\
             deviation in one round; counted: the mean of all rounds, and by how many standard deviations that is off.\n";
    text
}

const COLUMNS: &str = "loss,round,packets,without_flow,lost,flows,damaged,expected,deviation\n";

/// Every round, a line for each; a loss that was never tried has one without a round.
pub(super) fn csv(subject: &Subject, outcomes: &[DamageOutcome]) -> String {
    let mut text = COLUMNS.to_owned();
    for DamageOutcome { loss, expected, rounds, .. } in outcomes {
        let mut add = |round: Option<usize>, damage: Option<&Damage>| {
            text += &line([
                loss.to_string(),
                known(round),
                subject.packets.to_string(),
                subject.without_flow.to_string(),
                known(damage.map(|damage| damage.lost)),
                subject.flows.to_string(),
                known(damage.map(|damage| damage.flows)),
                expected.flows.to_string(),
                expected.deviation.to_string(),
            ]);
        };
        for (round, damage) in (1..).zip(rounds) {
            add(Some(round), Some(damage));
        }
        if rounds.is_empty() {
            add(None, None);
        }
    }
    text
}
