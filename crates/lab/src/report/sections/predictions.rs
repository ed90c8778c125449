//! Predictions, and what came.

use super::percent;
use crate::model::ledger::{Score, Scored, bursts, exactly, first_losses, rates, score};
use crate::model::plan::Pace;
use crate::model::raw::Raw;
use crate::model::{Model, Service};
use crate::report::number::{exact, whole};
use crate::report::{Axis, Chart, Dot, Part, Plot, Section, Series, Table};
use crate::search::HighestRate;
use crate::tools::Setting;
use crate::work::Cost;

/// Sections about predictions and what they come from.
#[must_use]
pub fn predictions(model: Option<&Model>, all: &[Scored<'_>]) -> Vec<Section> {
    let mut sections = Vec::new();
    let has_runs = all.iter().any(|scored| scored.loss().is_some());
    if has_runs {
        let mut parts = vec![Part::Plot(against(all)), Part::Table(scores(all))];
        parts.extend(verdict(all).map(Part::Text));
        sections.push(Section { title: "How good they were".to_owned(), parts });
    }
    if all.iter().any(|scored| scored.rate.is_some()) {
        let parts = vec![Part::Table(found(all))];
        sections.push(Section { title: "Rates without loss".to_owned(), parts });
    }
    if all.iter().any(|scored| scored.burst.is_some()) {
        let parts = vec![Part::Table(survived(all))];
        sections.push(Section { title: "Bursts without loss".to_owned(), parts });
    }
    if all.iter().any(|scored| scored.first_loss().is_some()) {
        let parts = vec![Part::Table(first(all))];
        sections.push(Section { title: "First losses".to_owned(), parts });
    }
    let parts = vec![Part::Table(ledger(all))];
    sections.push(Section { title: "Every prediction".to_owned(), parts });
    if let Some(model) = model {
        sections.push(Section { title: "The model".to_owned(), parts: fitted(model) });
    }
    sections
}

/// The kinds of points, those that were asked for last.
const KINDS: [Option<Pace>; 4] =
    [Some(Pace::Below(0.0)), Some(Pace::Near(0.0)), Some(Pace::Losing(0.0)), None];

fn kind(pace: Option<Pace>) -> &'static str {
    pace.map_or("asked", Pace::name)
}

fn against(all: &[Scored<'_>]) -> Plot {
    let series = |pace: Option<Pace>| {
        let name = kind(pace);
        let of_kind = all.iter().filter(|scored| kind(scored.pace) == name);
        let dot = |scored: &Scored<'_>| {
            let y = scored.loss()?;
            let least = scored.losses.iter().copied().fold(f64::INFINITY, f64::min);
            let most = scored.losses.iter().copied().fold(0.0, f64::max);
            Some(Dot { x: scored.prediction.total.value, y, range: Some((least, most)) })
        };
        let dots: Vec<_> = of_kind.filter_map(dot).collect();
        Series { name: name.to_owned(), dots, is_line: false }
    };
    let series = KINDS.map(series).into_iter().filter(|series| !series.dots.is_empty());
    let chart = Chart::Curves {
        x: Axis::share("predicted loss"),
        y: Axis::share("loss that came"),
        series: series.collect(),
        marks: Vec::new(),
        has_diagonal: true,
    };
    let caption = "On the line both are the same. Each point is a prediction, and its mean of some runs; the thin lines reach \
                   from the least to the most that was lost in them.";
    let without = all.iter().filter(|scored| scored.loss().is_none()).count();
    let faulty = all.iter().map(|scored| scored.faulty).sum();
    Plot::new("What was predicted, and what came", caption, chart)
        .without(without, "predictions of which no run proves anything")
        .without(faulty, "runs that prove nothing")
}

/// Points of plans at which something may be lost: where nothing is, everybody is right.
fn hard<'a>(all: &'a [Scored<'a>]) -> Vec<&'a Scored<'a>> {
    let is_hard =
        |scored: &&Scored<'_>| matches!(scored.pace, Some(Pace::Near(_) | Pace::Losing(_)));
    all.iter().filter(is_hard).collect()
}

/// Whether they are as good as they are meant to be.
fn verdict(all: &[Scored<'_>]) -> Option<String> {
    let score = score(hard(all).into_iter())?;
    let is = if score.is_good() { "are" } else { "are not" };
    Some(format!(
        "Predictions of points near the knee and of losing ones {is} as good as they are meant to be: off by two points at \
         most, beside half the spread, and by half as much as each of the other rules."
    ))
}

/// Predicted rates without loss, and those that were found by trying.
fn found(all: &[Scored<'_>]) -> Table {
    let row = |scored: &Scored<'_>| {
        let (lossless, found) = (scored.prediction.lossless, scored.rate?);
        Some(vec![
            scored.number.to_string(),
            exact(scored.question.size.into()),
            exact(scored.question.burst.into()),
            work(scored),
            whole(lossless.value),
            format!("{} to {}", whole(lossless.low), whole(lossless.high)),
            tried(found),
            off_by(scored.rate_error()),
        ])
    };
    Table {
        columns: columns(&[
            "prediction",
            "bytes",
            "burst",
            "work",
            "predicted",
            "9 of 10",
            "found",
            "off by %",
        ]),
        rows: all.iter().filter_map(row).collect(),
        note: rates(all).map(median),
    }
}

/// What was found by trying.
fn tried(found: HighestRate) -> String {
    match found {
        HighestRate::Rate(value) => whole(value),
        HighestRate::AtLeast(value) => format!("\u{2265} {}", whole(value)),
        HighestRate::Below(value) => format!("< {}", whole(value)),
        HighestRate::Ended => "-".to_owned(),
    }
}

fn off_by(part: Option<f64>) -> String {
    part.map_or("-".to_owned(), |off| format!("{:+.1}", off * 100.0))
}

fn median((off, number): (f64, usize)) -> String {
    format!("Median of how far off they were: {:.1} %, of {number}.", off * 100.0)
}

/// Predicted bursts without loss, and those that were found by trying.
fn survived(all: &[Scored<'_>]) -> Table {
    let row = |scored: &Scored<'_>| {
        let found = scored.burst?;
        let predicted = scored.prediction.survived;
        let ratio = predicted.zip(exactly(Some(found))).map(|(one, other)| one / other);
        Some(vec![
            scored.number.to_string(),
            exact(scored.question.size.into()),
            exact(scored.question.ring >> 10),
            work(scored),
            predicted.map_or("any".to_owned(), whole),
            tried(found),
            ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}")),
            off_by(scored.burst_error()),
        ])
    };
    Table {
        columns: columns(&[
            "prediction",
            "bytes",
            "ring KiB",
            "work",
            "predicted frames",
            "found",
            "predicted / found",
            "off by %",
        ]),
        rows: all.iter().filter_map(row).collect(),
        note: bursts(all).map(median),
    }
}

/// When the first frame was predicted to be lost, and when it was.
fn first(all: &[Scored<'_>]) -> Table {
    let seconds = |at: f64| format!("{at:.3}");
    let interval = |[since, until]: [f64; 2]| format!("{} to {}", seconds(since), seconds(until));
    let row = |scored: &Scored<'_>| {
        let since = scored.first_losses.iter().map(|[since, _]| *since).reduce(f64::min)?;
        let until = scored.first_losses.iter().map(|[_, until]| *until).reduce(f64::max)?;
        Some(vec![
            scored.number.to_string(),
            exact(scored.question.size.into()),
            whole(scored.question.rate),
            exact(scored.question.burst.into()),
            exact(scored.question.ring >> 10),
            work(scored),
            scored.prediction.first_loss.map_or("never".to_owned(), seconds),
            scored.prediction.first_loss_within.map_or("-".to_owned(), interval),
            scored.first_loss().map_or("-".to_owned(), seconds),
            interval([since, until]),
            scored
                .first_loss_is_within()
                .map_or("-", |is| if is { "yes" } else { "no" })
                .to_owned(),
            format!("{} of {}", scored.first_losses.len(), scored.losses.len()),
            off_by(scored.first_loss_error()),
        ])
    };
    Table {
        columns: columns(&[
            "prediction",
            "bytes",
            "frames/s",
            "burst",
            "ring KiB",
            "work",
            "predicted s",
            "9 of 10",
            "came s",
            "in all runs",
            "within",
            "runs",
            "off by %",
        ]),
        rows: all.iter().filter_map(row).collect(),
        note: first_losses(all).map(|of| {
            format!(
                "Seconds after the first frame. The ring tells between which two packets the first hole lies: came is what of \
                 that is nearest to the prediction, the median of runs, where at least half of them lost something. Within: at least half of the runs that tell may \
                 have lost the first frame in the interval for 9 of 10. {}",
                median(of)
            )
        }),
    }
}

/// What the application does for each packet.
fn work(scored: &Scored<'_>) -> String {
    application(scored.question.cost, &scored.question.settings)
}

fn application(cost: Cost, settings: &[Setting]) -> String {
    let cost = match (cost.zip, cost.delay) {
        (Some(level), _) => Some(format!("zip {level}")),
        (None, Some(delay)) => Some(format!("{} us", delay.as_nanos() as f64 / 1e3)),
        (None, None) => None,
    };
    let all: Vec<_> = cost.into_iter().chain(words(settings)).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

/// Settings of the application; `None` where it is as it comes.
fn words(settings: &[Setting]) -> Option<String> {
    let words: Vec<_> = settings.iter().map(|one| format!("{} {}", one.name, one.value)).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn columns(names: &[&str]) -> Vec<(String, bool)> {
    names.iter().enumerate().map(|(at, name)| ((*name).to_owned(), at > 0)).collect()
}

fn scores(all: &[Scored<'_>]) -> Table {
    let row = |name: &str, chosen: &[&Scored<'_>]| {
        let Score { number, error, half_spread, nothing, textbook, within } =
            score(chosen.iter().copied())?;
        let shares = [Some(error), half_spread, Some(nothing), Some(textbook)].map(percent);
        let within = format!("{:.0} %", within * 100.0);
        Some([vec![name.to_owned(), number.to_string()], shares.to_vec(), vec![within]].concat())
    };
    let mut rows = Vec::new();
    for pace in KINDS {
        let name = kind(pace);
        let chosen: Vec<_> = all.iter().filter(|scored| kind(scored.pace) == name).collect();
        rows.extend(row(name, &chosen));
    }
    rows.extend(row("near and losing", &hard(all)));
    rows.extend(row("all", &all.iter().collect::<Vec<_>>()));
    Table {
        columns: columns(&[
            "points", "number", "error", "half the spread", "error of \u{201c}nothing is lost\u{201d}", "error of the textbook",
            "within",
        ]),
        rows,
        note: Some(
            "Mean absolute errors in percentage points of what was sent. Half the spread: of the runs of one prediction, \
             which no prediction is to be blamed for. Textbook: 1 - rate without loss / rate. Within: what came is in the \
             interval of 9 in 10, give or take half the spread."
                .to_owned(),
        ),
    }
}

fn ledger(all: &[Scored<'_>]) -> Table {
    let row = |scored: &Scored<'_>| {
        let (question, prediction) = (scored.question, scored.prediction);
        let (total, lossless) = (prediction.total, prediction.lossless);
        vec![
            format!("{} {}", scored.number, kind(scored.pace)),
            exact(question.size.into()),
            whole(question.rate),
            if question.keeps_gaps { "recorded".to_owned() } else { exact(question.burst.into()) },
            exact(question.ring >> 10),
            work(scored),
            percent(Some(prediction.kernel.value)),
            percent(Some(prediction.application.value)),
            percent(Some(total.value)),
            format!("{} to {}", percent(Some(total.low)), percent(Some(total.high))),
            prediction.first_loss.map_or("never".to_owned(), |at| format!("{at:.3}")),
            format!(
                "{} ({} to {})",
                whole(lossless.value),
                whole(lossless.low),
                whole(lossless.high)
            ),
            prediction.survived.map_or("any".to_owned(), whole),
            percent(scored.loss()),
            scored
                .loss()
                .map_or("-".to_owned(), |loss| format!("{:+.3}", (total.value - loss) * 100.0)),
            format!("{} of {}", scored.losses.len(), scored.losses.len() + scored.faulty),
        ]
    };
    Table {
        columns: columns(&[
            "prediction",
            "bytes",
            "frames/s",
            "burst",
            "ring KiB",
            "work",
            "kernel %",
            "appl. %",
            "lost %",
            "9 of 10",
            "first lost s",
            "lossless frames/s",
            "burst survived",
            "came %",
            "error",
            "runs",
        ]),
        rows: all.iter().map(row).collect(),
        note: Some(
            "Every prediction was written down before its runs; bad ones are here, too. 9 of 10: where nine of ten are to \
             be; lossless: the highest rate without loss, and from where to where it may be; came: of those of its runs \
             that prove something, of all; error: what was predicted less what came, in points."
                .to_owned(),
        ),
    }
}

fn fitted(model: &Model) -> Vec<Part> {
    let fit = &model.fit;
    let still =
        model.stalls.lengths.iter().sum::<u64>() as f64 / model.stalls.watched.max(1) as f64;
    let text = format!(
        "Of {}, fitted in {:.0} s: every frame that arrives costs the processor {:.0} ns and {:.2} ns for each byte; one \
         that is kept {:.0} ns and {:.2} ns for each byte in addition, {:.2} times what the application needs by \
         itself, and {:.2} times what it needs for the smallest frame. An interrupt, which frames that come together share, costs {:.0} ns, and all take {:.0} % at most of the \
         time that frames leave. That explains the time of the runs below to {:.1} %. The machine stood still for {:.2} % of the time, and its \
         backlog holds {} frames. {}",
        model.tool,
        model.seconds,
        fit.frame[0],
        fit.frame[1],
        fit.kept[0],
        fit.kept[1],
        fit.slower,
        fit.cold,
        fit.wake,
        fit.share * 100.0,
        fit.spread * 100.0,
        still * 100.0,
        exact(model.backlog),
        woken(model)
    );
    let mut parts = vec![Part::Text(text)];
    if model.variants.len() > 1 {
        parts.push(Part::Table(variants(model)));
    }
    parts.push(services(model));
    parts.push(Part::Table(observed(model)));
    parts
}

/// How long it takes until an application that sleeps reads on.
fn woken(model: &Model) -> String {
    let [median, p99] = [0.5, 0.99].map(|share| model.wakes.quantile(share));
    match median.zip(p99) {
        None => "How long it takes until who sleeps goes on is unavailable.".to_owned(),
        Some((median, p99)) => {
            let [median, p99] = [median, p99].map(|nanos| nanos as f64 / 1e3);
            format!(
                "Who sleeps goes on after {median:.0} us, and one in 100 after more than {p99:.0} us."
            )
        }
    }
}

/// What is kept costs, by the settings of the application.
fn variants(model: &Model) -> Table {
    let rows = model.variants.iter().map(|variant| {
        let [each, byte] = variant.fit.kept;
        let settings = words(&variant.settings).unwrap_or_else(|| "as it comes".to_owned());
        vec![settings, whole(each), format!("{byte:.2}")]
    });
    Table {
        columns: columns(&["settings", "each that is kept, ns", "each byte of it, ns"]),
        rows: rows.collect(),
        note: Some("All else is the same whatever the settings are.".to_owned()),
    }
}

/// What the application takes by itself.
fn services(model: &Model) -> Part {
    if model.services.is_empty() {
        return Part::Text(format!(
            "How long {} takes for a frame by itself, and how that is distributed, is unavailable: its frames count as alike, \
             and the intervals have what the fit leaves.",
            model.tool
        ));
    }
    let rows = model.services.iter().map(|Service { settings, cost, size, raw }| {
        let Raw { mean, median, p99, deviation, .. } = *raw;
        let of = vec![exact((*size).into()), application(*cost, settings)];
        [of, [mean, median, p99, deviation].map(whole).to_vec()].concat()
    });
    Part::Table(Table {
        columns: columns(&["bytes", "work", "mean ns", "median", "p99", "deviation"]),
        rows: rows.collect(),
        note: Some(
            "What the application takes for a frame by itself. The mean is of the faster half of many frames at a time, the \
             rest of single frames. How long a block of the ring takes is drawn by the deviation."
                .to_owned(),
        ),
    })
}

/// The runs that the fit comes from.
fn observed(model: &Model) -> Table {
    let rows = model.observations.iter().map(|one| {
        let fit = model.fit_with(&one.settings).unwrap_or(model.fit);
        let costs = fit.costs(one.size, one.raw, one.least);
        let numbers = [one.raw, one.rate, one.served, costs.served(one.rate, one.burst)];
        let settings = words(&one.settings).unwrap_or_else(|| "-".to_owned());
        let of = vec![exact(one.size.into()), exact(one.burst.into()), settings];
        [of, numbers.map(whole).to_vec()].concat()
    });
    let left_out = exact(model.left_out.into());
    let note = format!("{left_out} more runs were planned, for which there was no time.");
    Table {
        columns: columns(&[
            "bytes",
            "together",
            "settings",
            "work by itself, ns",
            "frames/s that arrived",
            "kept",
            "kept by the fit",
        ]),
        rows: rows.collect(),
        note: (model.left_out > 0).then_some(note),
    }
}
