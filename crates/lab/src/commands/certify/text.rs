//! Certificates and their checks in words.

use std::fmt::Write as _;

use netsniff_console::number::exact;

use super::super::table::{came, mbps, whole};
use crate::certificate::facts::Configuration;
use crate::certificate::recheck::Checked;
use crate::certificate::{Certified, RateVerdict, Statement};
use crate::search::HighestRate;
use crate::trial::{Trial, reasons};

/// A number of searches.
pub(super) fn searches(number: usize) -> String {
    if number == 1 { "1 search".to_owned() } else { format!("{number} searches") }
}

pub(super) fn statement(statement: &Statement) -> String {
    let mut text = format!("Made {}\n", statement.made);
    text += &configuration(&statement.configuration);
    // A String takes everything.
    let _ = writeln!(
        text,
        "\n{:>5}  {:>14} {:>10} {:>17}  at {:.0} % confidence",
        "bytes",
        "frames/s",
        "Mbit/s",
        "frames, none lost",
        statement.sizes.first().map_or(0.0, |size| size.confidence * 100.0)
    );
    for size in &statement.sizes {
        text += &certified(size);
    }
    text += "\nRates without loss: all that was sent was captured. >= is the sender's limit. Mbit/s are on a wire,\n\
             preamble and gaps included. The confidence is for frames that are lost independently of each other.\n";
    text
}

fn configuration(configuration: &Configuration) -> String {
    let or_unavailable = |value: &Option<String>| value.clone().unwrap_or("unavailable".to_owned());
    let Configuration { netsniff, machine, testbed, sender, tool } = configuration;
    let quota = testbed.quota.map_or(String::new(), |share| format!(", --quota {}", share * 100.0));
    let wire = match &testbed.wire {
        None => format!("--placement {}", testbed.placement.name()),
        Some(wire) => wire.words(),
    };
    let sysctls: Vec<_> =
        machine.sysctls.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let versions: Vec<_> = machine.versions.iter().map(|(_, version)| version.as_str()).collect();
    let mut text = format!(
        "capture      {}\n\
         command      {}\n\
         netsniff     {netsniff}\n\
         kernel       {}\n\
         processors   {}, {}{}\n\
         clock source {}\n\
         testbed      {wire}{quota}\n\
         sysctls      {}\n",
        tool.name,
        tool.command.join(" "),
        or_unavailable(&machine.kernel),
        machine.processors,
        or_unavailable(&machine.processor),
        machine.hypervisor.as_ref().map_or(String::new(), |what| format!(", {what}")),
        or_unavailable(&machine.clocksource),
        sysctls.join(" "),
    );
    if let Some(files) = &machine.files {
        text += &format!("files        {}\n", files.words());
    }
    for nic in &machine.interfaces {
        let (driver, offloads) = (or_unavailable(&nic.driven()), or_unavailable(&nic.offloaded()));
        text += &format!("interface    {}, driver {driver}; {offloads}\n", nic.interface);
    }
    if let Some(sender) = sender {
        let facts = [&sender.kernel, &sender.processor, &sender.driver].map(or_unavailable);
        text += &format!("sender       {}\n", facts.join(", "));
    }
    if !versions.is_empty() {
        text += &format!("version      {}\n", versions.join(", "));
    }
    text
}

fn certified(certified: &Certified) -> String {
    let size = certified.size;
    let mut text = match (&certified.not_certified, certified.rate()) {
        (None, Some(rate)) => {
            let limit = if matches!(certified.found, HighestRate::AtLeast(_)) { ">= " } else { "" };
            let frames = exact(certified.sent.into());
            let below = certified.loss_below.map_or(String::new(), |below| {
                format!("less than {below:.1e} lost, {} runs", certified.confirmations)
            });
            let rate = [format!("{limit}{}", whole(rate)), mbps(rate, size)];
            format!("{size:>5}  {:>14} {:>10} {frames:>17}  {below}\n", rate[0], rate[1])
        }
        (why, _) => {
            let why = why.as_deref().unwrap_or("no rate was found");
            let tried = match certified.found {
                HighestRate::Below(rate) => format!(" ({} frames/s)", whole(rate)),
                _ => String::new(),
            };
            format!("{size:>5}   not certified: {why}{tried}\n")
        }
    };
    for run in &certified.repeated {
        let asked = run.asked.map_or("full speed".to_owned(), |rate| whole(rate) + " frames/s");
        let why = reasons(&run.faults, run.failure.as_deref());
        let of = if run.counts_at_reached { "only the rate reached" } else { "nothing" };
        text += &format!("       proved {of}, at {asked}: {why}\n");
    }
    text
}

/// A run of a check in a line.
pub(super) fn trial(trial: &Trial) -> String {
    let rate = trial.reached.map_or("no rate".to_owned(), |rate| whole(rate) + " frames/s");
    let frames = exact(trial.sent.into());
    let mut text = format!("{frames} frames at {rate}, {}", came(trial));
    if trial.backlog_dropped > 0 {
        let number = exact(trial.backlog_dropped.into());
        text +=
            &format!("; {number} dropped by the processor's backlog (net.core.netdev_max_backlog)");
    }
    if let Some(dropped) = trial.counted.dropped.filter(|dropped| *dropped > 0) {
        text += &format!("; {} dropped since the capture was too slow", exact(dropped.into()));
    }
    if let Some(share) = trial.ring_share.filter(|share| *share > 0.1) {
        text += &format!("; the ring holds {:.0} % of them", (share * 100.0).min(100.0));
    }
    text
}

/// The runs of a check that proved nothing, a line for each.
pub(super) fn proved_nothing(checked: &Checked) -> Vec<String> {
    let runs = checked.trials.iter().filter(|trial| !trial.is_valid());
    runs.map(|run| format!("{} bytes, a run that proved nothing: {}", checked.size, trial(run)))
        .collect()
}

/// What the check of a size came to, in a sentence.
pub(super) fn checked(checked: &Checked) -> String {
    let rate = checked.rate.map_or("no rate".to_owned(), |rate| whole(rate) + " frames/s");
    let last = checked.trials.last().map_or("nothing was run".to_owned(), trial);
    let what = format!("{} bytes at {rate}", checked.size);
    match (checked.verdict, checked.ended) {
        (RateVerdict::Holds, _) => format!("{what} holds: {last}"),
        (RateVerdict::Fails, _) => format!("{what} is lossy: {last}"),
        (RateVerdict::Open, Some(why)) => format!("{what} was not checked: {}", why.words()),
        (RateVerdict::Open, None) => {
            let runs = checked.trials.len();
            format!("{what} was not proved, by {runs} runs; the last one: {last}")
        }
    }
}
