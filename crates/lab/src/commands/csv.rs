//! What was measured, as CSV (RFC 4180): what is not known is empty.

use netsniff_console::printable::is_active;

use crate::host::machine::Busy;
use crate::model::ledger::{Scored, exactly};
use crate::model::plan::Pace;
use crate::model::predict::Estimate;
use crate::search::lossless::{Cell, Step};
use crate::search::sweep::{Point, Run};
use crate::testbed::{CAPTURE_CPU, SENDER_CPU};
use crate::tools::Setting;
use crate::trial::{Limit, Trial};

/// Every run of searches, a line for each.
pub(super) fn steps(cells: &[Cell]) -> String {
    let mut text = format!("purpose,{COLUMNS}");
    for Step { purpose, trial } in cells.iter().flat_map(|cell| &cell.steps) {
        let purpose = format!("{purpose:?}").to_lowercase();
        text += &line([vec![purpose], columns(trial)].concat());
    }
    text
}

/// Every run of a sweep, a line for each.
pub(super) fn runs(runs: &[Run]) -> String {
    let mut text = format!("settings,send,host,repetition,{COLUMNS}");
    for Run { point, trial } in runs {
        text += &line([varied(point), columns(trial)].concat());
    }
    text
}

/// What a sweep varies beside tool, size and rate: settings of the tool, the sender and the testbed, and the repetition.
fn varied(point: &Point) -> Vec<String> {
    let options = [&point.settings, &point.load.options, &point.host];
    options.map(|of| words(of)).into_iter().chain([point.repetition.to_string()]).collect()
}

/// What every processor did in every run of a sweep, a line for each processor of each run.
pub(super) fn processors(runs: &[Run]) -> String {
    let mut text = "tool,bytes,asked,settings,send,host,repetition,processor,user,system,softirq,irq,steal,idle\n".to_owned();
    for Run { point, trial } in runs {
        for number in 0..trial.processors.len() {
            let of_run = [subject(trial), varied(point), vec![number.to_string()]].concat();
            text += &line([of_run, shares(trial, number)].concat());
        }
    }
    text
}

const PREDICTIONS: &str = "number,model,kind,bytes,rate,burst,keeps_gaps,ring,zip,delay_ns,settings,seconds,kernel,kernel_low,kernel_high,\
                           application,application_low,application_high,loss,loss_low,loss_high,lossless,lossless_low,\
                           lossless_high,first_loss,first_loss_low,first_loss_high,survived,textbook,raw,raw_median,raw_p99,valid,faulty,came,came_least,came_most,error,\
                           lossless_found,lossless_error,survived_found,survived_error,first_loss_came,first_loss_error,first_loss_within\n";

/// Every prediction and what came of it, a line for each.
pub(super) fn predictions(all: &[Scored<'_>]) -> String {
    let mut text = PREDICTIONS.to_owned();
    for scored in all {
        text += &line([asked(scored), predicted(scored), came(scored)].concat());
    }
    text
}

fn asked(scored: &Scored<'_>) -> Vec<String> {
    let question = scored.question;
    // Where gaps are kept, no frames leave together.
    let burst = (!question.keeps_gaps).then_some(question.burst);
    vec![
        scored.number.to_string(),
        scored.model.to_string(),
        scored.pace.map_or("asked", Pace::name).to_owned(),
        question.size.to_string(),
        question.rate.to_string(),
        known(burst),
        question.keeps_gaps.to_string(),
        question.ring.to_string(),
        known(question.cost.zip),
        known(question.cost.delay.map(|delay| delay.as_nanos())),
        words(&question.settings),
        question.seconds.to_string(),
    ]
}

fn predicted(scored: &Scored<'_>) -> Vec<String> {
    let prediction = scored.prediction;
    let all = [prediction.kernel, prediction.application, prediction.total, prediction.lossless];
    let estimates = all.iter().flat_map(|Estimate { value, low, high }| [value, low, high]);
    let [low, high] = prediction.first_loss_within.map_or([None; 2], |within| within.map(Some));
    let first = [prediction.first_loss, low, high];
    let more = [prediction.survived, Some(scored.textbook())];
    let raw = prediction.service;
    let raw = [raw.map(|raw| raw.mean), raw.map(|raw| raw.median), raw.map(|raw| raw.p99)];
    estimates
        .map(f64::to_string)
        .chain(first.map(known))
        .chain(more.map(known))
        .chain(raw.map(known))
        .collect()
}

/// What came; the error is what was predicted less that.
fn came(scored: &Scored<'_>) -> Vec<String> {
    let losses = || scored.losses.iter().copied();
    let loss = scored.loss();
    vec![
        scored.losses.len().to_string(),
        scored.faulty.to_string(),
        known(loss),
        known(losses().reduce(f64::min)),
        known(losses().reduce(f64::max)),
        known(loss.map(|loss| scored.prediction.total.value - loss)),
        known(exactly(scored.rate)),
        known(scored.rate_error()),
        known(exactly(scored.burst)),
        known(scored.burst_error()),
        known(scored.first_loss()),
        known(scored.first_loss_error()),
        known(scored.first_loss_is_within()),
    ]
}

/// Settings in a field.
pub(super) fn words(settings: &[Setting]) -> String {
    let words = settings.iter().map(|Setting { name, value }| format!("{name}={value}"));
    words.collect::<Vec<_>>().join(" ")
}

const COLUMNS: &str = "tool,bytes,asked,seconds,reached,sent,arrived,captured,dropped,backlog_dropped,wire_dropped,\
                       planted_before,planted_at,planted_behind,monitored,loss,kernel_loss,application_loss,stalls,\
                       slipped_ns,cpu_ns,cpu_peak,capture_cpu_user,capture_cpu_system,capture_cpu_softirq,capture_cpu_irq,\
                       capture_cpu_steal,capture_cpu_idle,sender_cpu_user,sender_cpu_system,sender_cpu_softirq,\
                       sender_cpu_irq,sender_cpu_steal,sender_cpu_idle,memory_peak,memory_mean,own_peak,own_mean,polls,\
                       wakeups,groups,ring_occupancy,out_of_order,out_of_order_deepest_ns,late,first_drop_since_ns,first_drop_until_ns,threads,largest_share,\
                       ring_share,drift,is_burst,limit,faults,failure\n";

fn columns(trial: &Trial) -> Vec<String> {
    let failure = known(trial.failure.as_deref());
    let [names, counts, mut faults] = fields(trial);
    // Of what could not be run nothing was counted.
    let counts = match &trial.failure {
        None => counts,
        Some(_) => vec![String::new(); counts.len()],
    };
    // What was in the way may be known all the same.
    faults.insert(0, trial.limit.map_or("", Limit::words).to_owned());
    [names, counts, faults, vec![failure]].concat()
}

/// What was to be run: the tool, and the size and rate of frames.
fn subject(trial: &Trial) -> Vec<String> {
    vec![trial.tool.clone(), trial.load.size.to_string(), known(trial.load.rate)]
}

/// What was to be run, what was counted, and why it proves nothing.
fn fields(trial: &Trial) -> [Vec<String>; 3] {
    let books = trial.counted.books.as_ref();
    let first_drop = trial.counted.first_drop_ns;
    let book = |name: &str| known(books.and_then(|books| books[name].as_u64()));
    let faults: Vec<_> = trial.faults.iter().map(|fault| format!("{fault:?}")).collect();
    let names = [subject(trial), vec![trial.load.time.as_secs_f64().to_string()]].concat();
    let counts = vec![
        known(trial.reached),
        trial.sent.to_string(),
        trial.arrived.to_string(),
        known(trial.counted.captured),
        known(trial.counted.dropped),
        trial.backlog_dropped.to_string(),
        trial.wire_dropped.to_string(),
        known(trial.planted.map(|planted| planted.before)),
        known(trial.planted.map(|planted| planted.at)),
        known(trial.planted.map(|planted| planted.behind)),
        trial.monitored().to_string(),
        known(trial.loss()),
        known(trial.kernel_loss()),
        known(trial.application_loss()),
        trial.stalls.to_string(),
        trial.slipped_ns.to_string(),
        trial.cpu_ns.to_string(),
        known(trial.cpu_peak),
    ];
    let rest = vec![
        trial.memory_peak.to_string(),
        trial.memory_mean.to_string(),
        known(trial.own_peak),
        known(trial.own_mean),
        book("polls"),
        book("wakeups"),
        book("groups"),
        known(occupancy(books)),
        known(trial.counted.order.map(|order| order.inversions)),
        known(trial.counted.order.map(|order| order.deepest_ns)),
        known(trial.counted.late),
        known(first_drop.map(|[since, _]| since)),
        known(first_drop.map(|[_, until]| until)),
        known(trial.counted.threads.as_ref().map(Vec::len)),
        known(trial.counted.largest_share()),
        known(trial.ring_share),
        known(trial.drift),
        trial.is_burst.to_string(),
    ];
    let counts = [counts, shares(trial, CAPTURE_CPU), shares(trial, SENDER_CPU), rest].concat();
    [names, counts, vec![faults.join(" ")]]
}

/// What a processor did while frames were sent, as shares of the time.
fn shares(trial: &Trial, processor: usize) -> Vec<String> {
    let shares = |busy: &Busy| {
        let Busy { user, system, softirq, irq, steal, idle } = *busy;
        [user, system, softirq, irq, steal, idle]
    };
    let shares = trial.processors.get(processor).map(shares);
    (0..6).map(|at| known(shares.map(|shares| shares[at]))).collect()
}

/// The most of its ring that was in use, as a share.
fn occupancy(books: Option<&serde_json::Value>) -> Option<f64> {
    let most = &books?["ring_high_water"];
    let (used, all) = (most[0].as_f64()?, most[1].as_f64()?);
    (all > 0.0).then(|| used / all)
}

/// A value, if there is one.
pub(super) fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Fields as a line. Those that would not be read as one field are put in quotes.
pub(super) fn line(fields: impl IntoIterator<Item = String>) -> String {
    fields.into_iter().map(|text| field(&text)).collect::<Vec<_>>().join(",") + "\n"
}

fn field(text: &str) -> String {
    // Names that users and reports give must not steer a terminal, nor end the line.
    let text = text.replace(is_active, "\u{fffd}");
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use crate::model::raw::Raw;
    use crate::search::HighestRate;
    use std::time::Duration;

    use crate::load::Load;
    use crate::model::Costs;
    use crate::model::predict::{Prediction, Question};
    use crate::packet_order::PacketOrder;
    use crate::tools::Tool;
    use crate::work::Cost;

    use super::*;

    #[test]
    fn names_of_users_stay_in_their_field() {
        let fields = ["a", "", "x,y", "say \"x\"", "\u{1b}[2J\n=1"].map(str::to_owned);
        assert_eq!(line(fields), "a,,\"x,y\",\"say \"\"x\"\"\",\u{fffd}[2J\u{fffd}=1\n");
        let setting =
            |name: &str, value: &str| Setting { name: name.to_owned(), value: value.to_owned() };
        assert_eq!(words(&[setting("ring", "2M"), setting("wait", "poll")]), "ring=2M wait=poll");
    }

    #[test]
    fn every_processor_has_a_line_of_its_own() {
        let tool = Tool::all().remove(0);
        let busy = |user, idle| Busy { user, idle, ..Busy::default() };
        let load = Load { size: 64, rate: Some(5e4), ..Load::default() };
        let mut trial = Trial { tool: tool.name.clone(), load: load.clone(), ..Trial::default() };
        trial.processors = vec![busy(0.25, 0.5), busy(0.75, 0.125), busy(0.0, 1.0)];
        let point = Point {
            tool: tool.name,
            load,
            settings: vec![Setting { name: "ring".to_owned(), value: "2M".to_owned() }],
            host: Vec::new(),
            repetition: 2,
        };
        let text = processors(&[Run { point, trial }]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert_eq!(lines[2], "record,64,50000,ring=2M,,,2,1,0.75,0,0,0,0,0.125");
        assert!(lines.iter().all(|line| line.split(',').count() == 14), "{text}");
    }

    #[test]
    fn lines_have_as_many_fields_as_the_first_one() {
        let fields = COLUMNS.split(',').count();
        assert_eq!(columns(&Trial::default()).len(), fields);
        let (tool, why) = (&Tool::all()[0], "it has no option x".to_owned());
        let failed = columns(&Trial::unable(tool, &Load { size: 64, ..Load::default() }, why));
        assert_eq!(failed.len(), fields);
        assert_eq!(failed[..4], ["record", "64", "", "0"]);
        assert!(failed[4..fields - 2].iter().all(String::is_empty), "nothing was counted");
        assert_eq!(failed[fields - 2..], ["Unable", "it has no option x"]);
        let limit = Some(Limit::Memory);
        let starved = Trial { limit, failure: Some("killed".to_owned()), ..Trial::default() };
        assert_eq!(columns(&starved)[fields - 3..], ["memory", "", "killed"]);
        assert_eq!(known(None::<u64>), "");
        assert_eq!(known(Some(0.25)), "0.25");
    }

    #[test]
    fn order_and_threads_have_their_columns() {
        let mut trial = Trial::default();
        let of = |trial: &Trial| {
            let values = columns(trial);
            let names = COLUMNS.trim_end().split(',').zip(values);
            let wanted = names.filter(|(name, _)| {
                name.starts_with("out_of_order")
                    || name.starts_with("first_drop")
                    || ["late", "threads", "largest_share"].contains(name)
            });
            wanted.map(|(_, value)| value).collect::<Vec<_>>()
        };
        assert_eq!(of(&trial), [""; 7]);
        trial.counted.order = Some(PacketOrder { inversions: 7, deepest_ns: 9000 });
        trial.counted.late = Some(0);
        trial.counted.first_drop_ns = Some([30, 50]);
        trial.counted.threads = Some(vec![1, 3]);
        assert_eq!(of(&trial), ["7", "9000", "0", "30", "50", "2", "0.75"]);
    }

    #[test]
    fn predictions_stand_beside_what_came() {
        let question = Question {
            size: 512,
            rate: 200e3,
            burst: 32,
            keeps_gaps: false,
            ring: 1 << 20,
            cost: Cost { zip: None, delay: Some(Duration::from_micros(25)) },
            settings: vec![Setting { name: "depth".to_owned(), value: "tcp".to_owned() }],
            seconds: 2.0,
        };
        let estimate = |value: f64| Estimate { value, low: value / 2.0, high: value * 2.0 };
        let prediction = Prediction {
            raw: 5000.0,
            service: Some(Raw { p99: 7000.0, ..Raw::even(5000.0) }),
            costs: Costs { wake: 0.0, share: 1.0, frame: 2000.0, kept: 8000.0, deviation: 0.0 },
            kernel: estimate(0.125),
            application: estimate(0.25),
            total: estimate(0.5),
            first_loss: Some(0.75),
            first_loss_within: Some([0.5, 1.25]),
            lossless: estimate(100e3),
            survived: Some(6000.0),
        };
        let mut scored = Scored {
            number: 7,
            model: 2,
            pace: Some(Pace::Near(1.0)),
            question: &question,
            prediction: &prediction,
            losses: vec![0.25, 0.5],
            first_losses: vec![[1.0, 1.5]],
            rate: Some(HighestRate::AtLeast(90e3)),
            burst: Some(HighestRate::Rate(8000.0)),
            faulty: 1,
        };
        let lines = |scored: &Scored<'_>| {
            let text = predictions(std::slice::from_ref(scored));
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let [names, line] = &lines(&scored)[..] else { panic!() };
        assert_eq!(
            line,
            "7,2,near the knee,512,200000,32,false,1048576,,25000,depth=tcp,2,0.125,0.0625,0.25,0.25,0.125,0.5,0.5,0.25,1,\
             100000,50000,200000,0.75,0.5,1.25,6000,0.5,5000,5000,7000,2,1,0.375,0.25,0.5,0.125,,,8000,-0.25,1,-0.25,true"
        );
        assert_eq!(names.split(',').count(), line.split(',').count());
        scored.losses.clear();
        scored.pace = None;
        let line = &lines(&scored)[1];
        assert!(
            line.starts_with("7,2,asked,") && line.ends_with(",0,1,,,,,,,8000,-0.25,,,true"),
            "{line}"
        );
        let kept = Question { keeps_gaps: true, ..question.clone() };
        scored.question = &kept;
        assert!(lines(&scored)[1].starts_with("7,2,asked,512,200000,,true,"));
    }
}
