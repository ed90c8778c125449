//! Predictions, and what came, as text.

use std::fmt::Write as _;

use netsniff_lab::model::ledger::{Scored, score};
use netsniff_lab::model::plan::Pace;
use netsniff_lab::model::predict::Estimate;

use crate::summary::number::exact;

/// Every prediction in a line, and how good they were.
pub(super) fn text(all: &[Scored<'_>]) -> String {
    let mut text = format!(
        "{:>4} {:<40} {:>9} {:>9} {:>23} {:>10} {:>21} {:>12} {:>9}\n",
        "",
        "bytes, frames/s, burst, ring",
        "kernel %",
        "appl. %",
        "lost % (9 of 10)",
        "first lost",
        "lossless frames/s",
        "burst",
        "came %"
    );
    for scored in all {
        let (question, prediction) = (scored.question, scored.prediction);
        let cost = match (question.cost.zip, question.cost.delay) {
            (Some(level), _) => format!(", zip {level}"),
            (None, Some(delay)) => format!(", delay {} us", delay.as_nanos() as f64 / 1e3),
            (None, None) => String::new(),
        };
        let what = format!(
            "{}, {}, {}, {}{cost}",
            question.size,
            whole(question.rate),
            question.burst,
            crate::summary::number::bytes(question.ring)
        );
        let came = scored.loss().map_or("-".to_owned(), percent);
        let first = prediction.first_loss.map_or("never".to_owned(), |at| format!("{at:.3} s"));
        let survived = prediction.survived.map_or("any".to_owned(), whole);
        let Estimate { value, low, high } = prediction.lossless;
        // A String takes everything.
        let _ = writeln!(
            text,
            "{:>4} {what:<40} {:>9} {:>9} {:>23} {first:>10} {:>21} {survived:>12} {came:>9}",
            scored.number,
            percent(prediction.kernel.value),
            percent(prediction.application.value),
            interval(prediction.total),
            format!("{} ({}-{})", thousands(value), thousands(low), thousands(high)),
        );
    }
    text + &scores(all)
}

fn percent(share: f64) -> String {
    format!("{:.3}", share * 100.0)
}

fn interval(estimate: Estimate) -> String {
    let [value, low, high] = [estimate.value, estimate.low, estimate.high].map(percent);
    format!("{value} ({low}-{high})")
}

fn thousands(rate: f64) -> String {
    format!("{:.1}k", rate / 1e3)
}

fn whole(value: f64) -> String {
    exact(value.round() as i128)
}

/// How good predictions were, those of each pace by themselves.
fn scores(all: &[Scored<'_>]) -> String {
    let mut text = String::new();
    let mut line = |name: &str, chosen: &[&Scored<'_>]| {
        let Some(score) = score(chosen.iter().copied()) else { return };
        if text.is_empty() {
            text = format!(
                "\n{:<24} {:>5} {:>9} {:>12} {:>9} {:>9} {:>9}\n",
                "mean error, % of sent",
                "runs",
                "predicted",
                "half spread",
                "\"none\"",
                "textbook",
                "within"
            );
        }
        // A String takes everything.
        let _ = writeln!(
            text,
            "{name:<24} {:>5} {:>9} {:>12} {:>9} {:>9} {:>8.0}%",
            score.number,
            percent(score.error),
            score.half_spread.map_or("-".to_owned(), percent),
            percent(score.nothing),
            percent(score.textbook),
            score.within * 100.0
        );
    };
    let of = |holds: &dyn Fn(Option<Pace>) -> bool| -> Vec<&Scored<'_>> {
        all.iter().filter(|scored| holds(scored.pace)).collect()
    };
    line("asked", &of(&|pace| pace.is_none()));
    for kind in [Pace::Below(0.0), Pace::Near(0.0), Pace::Losing(0.0)] {
        let name = kind.name();
        line(name, &of(&|pace| pace.is_some_and(|pace| pace.name() == name)));
    }
    line("all", &all.iter().collect::<Vec<_>>());
    if !text.is_empty() {
        text += "half spread: of the runs of a prediction. \"none\": error of who says that nothing is lost; textbook: of \
                 1 - rate without loss / rate.\n\
                 within: what came is in the interval, give or take half the spread.\n";
    }
    text
}
