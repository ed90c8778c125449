//! What was measured, as CSV (RFC 4180): what is not known is empty.

use netsniff_lab::bed::CAPTURE_CPU;
use netsniff_lab::lossless::{Cell, Step};
use netsniff_lab::sweep::Run;
use netsniff_lab::tools::Setting;
use netsniff_lab::trial::Trial;

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
        let [settings, send, host] =
            [&point.settings, &point.load.options, &point.host].map(|of| words(of));
        let of_point = vec![settings, send, host, point.repetition.to_string()];
        text += &line([of_point, columns(trial)].concat());
    }
    text
}

/// Settings in a field.
pub(super) fn words(settings: &[Setting]) -> String {
    let words = settings.iter().map(|Setting { name, value }| format!("{name}={value}"));
    words.collect::<Vec<_>>().join(" ")
}

const COLUMNS: &str = "tool,bytes,asked,seconds,reached,sent,arrived,captured,dropped,backlog_dropped,planted_before,\
                       planted_at,planted_behind,monitored,loss,kernel_loss,\
                       application_loss,stalls,slipped_ns,cpu_ns,capture_cpu_user,capture_cpu_system,\
                       capture_cpu_softirq,memory_peak,memory_mean,polls,groups,ring_share,is_burst,faults\n";

fn columns(trial: &Trial) -> Vec<String> {
    let faults: Vec<_> = trial.faults.iter().map(|fault| format!("{fault:?}")).collect();
    let processor = trial.processors.get(CAPTURE_CPU);
    let books = trial.counted.books.as_ref();
    vec![
        trial.tool.clone(),
        trial.load.size.to_string(),
        known(trial.load.rate),
        trial.load.time.as_secs_f64().to_string(),
        known(trial.reached),
        trial.sent.to_string(),
        trial.arrived.to_string(),
        known(trial.counted.captured),
        known(trial.counted.dropped),
        trial.backlog_dropped.to_string(),
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
        known(processor.map(|busy| busy.user)),
        known(processor.map(|busy| busy.system)),
        known(processor.map(|busy| busy.softirq)),
        trial.memory_peak.to_string(),
        trial.memory_mean.to_string(),
        known(books.and_then(|books| books["polls"].as_u64())),
        known(books.and_then(|books| books["groups"].as_u64())),
        known(trial.ring_share),
        trial.is_burst.to_string(),
        faults.join(" "),
    ]
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
    let text = text.replace(char::is_control, "\u{fffd}");
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
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
    fn lines_have_as_many_fields_as_the_first_one() {
        let fields = COLUMNS.split(',').count();
        assert_eq!(columns(&Trial::default()).len(), fields);
        assert_eq!(known(None::<u64>), "");
        assert_eq!(known(Some(0.25)), "0.25");
    }
}
