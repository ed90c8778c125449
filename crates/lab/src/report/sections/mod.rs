//! What was measured, as sections of reports.

mod damage;
mod lossless;
mod offline;
mod paper;
mod predictions;
mod sweep;
mod unproven;

pub use self::damage::damage;
pub use self::lossless::lossless;
pub use self::offline::offline;
pub use self::paper::{paper, scorecard};
pub use self::predictions::predictions;
pub use self::sweep::sweep;
pub(crate) use self::unproven::{NOTE_ON_FAULTS, RUN_COLUMNS, counts_for};

use super::Stage;
use super::{Chart, Part, Plot, Waterfall, number};
use crate::host::machine::Machine;
use crate::testbed::{Layout, Sender};
use crate::trial::Trial;

/// Facts of a machine, and of a testbed, where there is one.
#[must_use]
pub fn facts(
    command: &[String],
    machine: &Machine,
    layout: Option<&Layout>,
) -> Vec<(String, String)> {
    let mut facts = vec![("command".to_owned(), command.join(" "))];
    let mut fact = |name: &str, value: Option<String>| {
        let value = value.unwrap_or_else(|| "unavailable".to_owned());
        facts.push((name.to_owned(), value));
    };
    fact("kernel", machine.kernel.clone());
    fact("processor", machine.processor.clone());
    fact("processors", Some(machine.processors.to_string()));
    fact("memory", machine.memory.map(|bytes| format!("{:.1} GB", bytes as f64 / 1e9)));
    if let Some(hypervisor) = &machine.hypervisor {
        fact("runs in", Some(hypervisor.clone()));
    }
    fact("clock", machine.clocksource.clone());
    if let Some(files) = &machine.files {
        fact("files", Some(files.words()));
    }
    if let Some(layout) = layout {
        fact("testbed", Some(testbed(layout)));
    }
    for nic in &machine.interfaces {
        fact(&format!("driver of {}", nic.interface), nic.driven());
        fact(&format!("offloads of {}", nic.interface), nic.offloaded());
    }
    for (name, value) in machine.sysctls.iter().chain(&machine.versions) {
        fact(name, Some(value.clone()));
    }
    facts
}

/// Facts of another machine that sends.
#[must_use]
pub fn sender(sender: &Sender) -> Vec<(String, String)> {
    let Sender { netsniff, kernel, processor, driver } = sender;
    let all = [Some(netsniff), kernel.as_ref(), processor.as_ref(), driver.as_ref()];
    let names = ["netsniff", "kernel", "processor", "driver"];
    let fact = |(name, value): (&str, Option<&String>)| {
        let value = value.map_or("unavailable", String::as_str);
        (format!("{name} of the sender"), value.to_owned())
    };
    names.into_iter().zip(all).map(fact).collect()
}

fn testbed(layout: &Layout) -> String {
    let quota = layout.quota.map(|share| format!(", {} % of its processor", share * 100.0));
    let memory = layout.memory.map(|bytes| format!(", {} MiB of memory", bytes >> 20));
    let processors =
        (layout.processors > 1).then(|| format!(", capture on {} processors", layout.processors));
    let neighbours = (layout.neighbours > 0)
        .then(|| format!(", {} busy neighbours on each processor of it", layout.neighbours));
    let receivers = layout.receivers.map(|number| format!(", receiving on {number} processors"));
    let queues = (layout.queues > 1).then(|| format!(", {} queues", layout.queues));
    let changed = layout.sysctls.iter().map(|it| format!(", {}={}", it.name, it.value));
    let tap = layout.tap.map(|tap| format!(", {}", tap.words()));
    let disk = layout.disk.map(|disk| format!(", files on {}", disk.words()));
    let given = quota.into_iter().chain(memory).chain(processors);
    let more = given
        .chain(receivers)
        .chain(neighbours)
        .chain(queues)
        .chain(tap)
        .chain(disk)
        .chain(changed)
        .collect::<String>();
    match &layout.wire {
        None => format!(
            "two network namespaces joined by a veth pair (driver veth; offloads, ARP and IPv6 off), placement {}{more}",
            layout.placement.name()
        ),
        Some(wire) => wire.words() + &more,
    }
}

/// What became of the frames of a run.
fn waterfall(title: String, trial: &Trial) -> Part {
    let stage = |name: &str, lost| Stage { name: name.to_owned(), lost };
    let came = trial.monitored();
    // A count that is higher than what there was contradicts it: then nobody knows.
    let on_the_way = trial.offered().and_then(|offered| offered.checked_sub(came));
    let at_ring = trial.counted.dropped.filter(|dropped| *dropped <= came);
    let rest = at_ring.map(|dropped| came - dropped);
    let elsewhere =
        rest.zip(trial.counted.captured).and_then(|(rest, captured)| rest.checked_sub(captured));
    let planted = trial.planted.map(|planted| {
        [
            stage("planted before the tap", Some(planted.before)),
            stage("planted at the tap", Some(planted.at)),
            stage("planted behind the tap", Some(planted.behind)),
        ]
    });
    let others = [
        stage("on the wire, backlog", on_the_way),
        stage("at the tool's ring", at_ring),
        stage("elsewhere", elsewhere),
    ];
    let stages = planted.into_iter().flatten().chain(others).collect();
    let caption = "Each bar is what is left, or was lost, of what was sent; the numbers are exact counts, and what nobody \
                   knows is unavailable.";
    let waterfall = Waterfall {
        all: trial.sent,
        begin: "sent".to_owned(),
        stages,
        left: "captured".to_owned(),
    };
    Part::Plot(Plot::new(title, caption, Chart::Waterfall(waterfall)))
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), number::percent)
}

fn whole(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), number::whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::tap::Planted;
    use crate::tools::Counted;

    fn stages(arrived: u64, dropped: Option<u64>, captured: Option<u64>) -> Vec<Option<u64>> {
        let counted = Counted { captured, dropped, ..Counted::default() };
        lost(&Trial { sent: 1000, arrived, counted, ..Trial::default() })
    }

    fn lost(trial: &Trial) -> Vec<Option<u64>> {
        let Part::Plot(Plot { chart: Chart::Waterfall(waterfall), .. }) =
            waterfall(String::new(), trial)
        else {
            panic!("it is a waterfall");
        };
        waterfall.stages.into_iter().map(|stage| stage.lost).collect()
    }

    #[test]
    fn several_processors_are_a_fact_of_a_testbed() {
        let words = |processors| testbed(&Layout { processors, ..Layout::default() });
        assert!(words(4).ends_with("placement rps, capture on 4 processors"), "{}", words(4));
        assert!(words(1).ends_with("placement rps"), "{}", words(1));
    }

    #[test]
    fn what_contradicts_itself_is_unknown() {
        assert_eq!(stages(990, Some(40), Some(949)), [Some(10), Some(40), Some(1)]);
        assert_eq!(stages(990, Some(991), Some(0)), [Some(10), None, None]);
        assert_eq!(stages(990, None, Some(900)), [Some(10), None, None]);
        assert_eq!(stages(990, Some(40), Some(951)), [Some(10), Some(40), None]);
        assert_eq!(stages(1001, Some(0), None), [None, Some(0), None]);
    }

    #[test]
    fn planted_losses_are_stages() {
        let planted = Planted { before: 10, at: 20, copied: 965, behind: 30, monitored: 934 };
        let counted = Counted { captured: Some(900), dropped: Some(33), ..Counted::default() };
        let (sent, arrived, planted) = (1000, 995, Some(planted));
        let trial = Trial { sent, arrived, planted, counted, ..Trial::default() };
        let lost = lost(&trial);
        assert_eq!(lost, [10, 20, 30, 6, 33, 1].map(Some));
        assert_eq!(lost.into_iter().flatten().sum::<u64>() + 900, 1000);
    }
}
