//! Testbeds and tools with changes, and THE list of what is tried.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use netsniff_doctor::change::{self, Change, journal::Journal};
use netsniff_doctor::diagnosis::Diagnosis;
use netsniff_doctor::kernel::Here;
use netsniff_doctor::look::{Look, falsified_by};
use netsniff_doctor::watch::{Depth, watch};

use super::{Bench, Candidate, Loss, Note, What};
use crate::load::Load;
use crate::testbed::{Layout, Testbed};
use crate::tools::{Setting, Tool};
use crate::trial::{Trial, attempt};

/// How often a run is repeated that proves nothing.
const REPEATS: usize = 3;

/// How often it is looked whether frames come.
const STEP: Duration = Duration::from_millis(50);

/// The share of the rate that a sender may come to.
const NEAR: f64 = 0.95;

/// THE list: what is tried of the host, unless it is so already.
const HOST: [(&str, &str); 14] = [
    ("placement", "none"),
    ("placement", "rps"),
    ("placement", "thread"),
    ("placement", "napi"),
    ("queues", "2"),
    ("receivers", "all"),
    ("processors", "all"),
    ("quota", "100"),
    ("neighbours", "0"),
    ("net.core.netdev_max_backlog", "16000"),
    ("net.core.netdev_budget", "1200"),
    ("net.core.netdev_budget_usecs", "16000"),
    ("net.core.dev_weight", "256"),
    ("profile", "skopko64"),
];

/// Likewise of the tool.
const TOOL: [(&str, &str); 5] =
    [("ring", "64M"), ("ring", "256M"), ("wait", "poll"), ("wait", "busy"), ("block", "256K")];

/// What may be tried: candidates of the lists that a testbed and a tool take, what a diagnosis advises for an interface that
/// is there, and what the user has added; with notes on what a loss under this load does not tell of them.
#[must_use]
pub fn candidates(
    (layout, tool): (&Layout, &Tool),
    load: &Load,
    advised: &[Change],
    more: &[Setting],
) -> Vec<Candidate> {
    let candidate = |name: String, what: What| Candidate { name, note: note(&what, load), what };
    let setting =
        |&(name, value): &(&str, &str)| Setting { name: name.to_owned(), value: value.to_owned() };
    let host = HOST.iter().map(setting).filter(|setting| is_new(layout, setting));
    let own = TOOL.iter().map(setting);
    let of_tool =
        |setting: Setting| tool.with(std::slice::from_ref(&setting)).is_ok().then_some(setting);
    let named = |setting: &Setting| format!("{}={}", setting.name, setting.value);
    let machine = advised.iter().map(|change| {
        candidate(change.setting.command(&change.after), What::Machine(change.clone()))
    });
    let host =
        host.chain(more.iter().filter(|it| layout.with(std::slice::from_ref(it)).is_ok()).cloned());
    let host = host.map(|it| candidate(named(&it), What::Host(vec![it])));
    let tools =
        own.chain(more.iter().filter(|it| layout.with(std::slice::from_ref(it)).is_err()).cloned());
    let tools = tools
        .filter_map(of_tool)
        .map(|it| candidate(format!("--{}", named(&it)), What::Tool(vec![it])));
    machine.chain(host).chain(tools).collect()
}

/// What a loss under a load does not tell of a candidate.
fn note(what: &What, load: &Load) -> Option<Note> {
    if load.flows() == Some(1) && what.spreads_flows() {
        return Some(Note::OneFlow);
    }
    let What::Machine(change) = what else { return None };
    falsified_by(&change.setting).map(Note::Content)
}

/// Whether a layout takes a setting, and is another one with it.
fn is_new(layout: &Layout, setting: &Setting) -> bool {
    layout.with(std::slice::from_ref(setting)).is_ok_and(|with| with != *layout)
}

/// Runs a tool on testbeds that are made for each run.
pub struct Beds<'a> {
    /// This program.
    pub netsniff: &'a Path,
    /// What removes testbeds.
    pub warden: &'a [String],
    /// The testbed without changes.
    pub layout: Layout,
    /// The tool without changes.
    pub tool: Tool,
    /// What is sent, but for its rate.
    pub load: Load,
    /// Where changes of the machine stand while they are tried.
    pub journal: Option<Journal>,
}

impl Beds<'_> {
    fn prepared(&self, changes: &[&Candidate]) -> Result<(Layout, Tool), String> {
        let (mut layout, mut tool) = (self.layout.clone(), self.tool.clone());
        for candidate in changes {
            match &candidate.what {
                What::Host(settings) => layout = layout.with(settings)?,
                What::Tool(settings) => tool = tool.with(settings)?,
                What::Machine(_) => {}
            }
        }
        layout.suits(&tool)?;
        Ok((layout, tool))
    }

    /// Makes changes of the machine, and tells why one cannot be made.
    fn change(&mut self, changes: &[&Candidate]) -> anyhow::Result<Result<(), String>> {
        for candidate in changes {
            let (What::Machine(change), Some(journal)) = (&candidate.what, &mut self.journal)
            else {
                continue;
            };
            if let Err(why) = change::apply(&Here::open()?, journal, change) {
                return Ok(Err(format!("{why:#}")));
            }
        }
        Ok(Ok(()))
    }

    /// What a doctor advises for the interface of a wire that is there, while frames come at a rate; nothing for a testbed that
    /// is made, which the list knows.
    ///
    /// # Errors
    ///
    /// Whatever prevents a run.
    pub fn advised(&mut self, rate: f64) -> anyhow::Result<Vec<Change>> {
        let Some(wire) = self.layout.wire.clone() else { return Ok(Vec::new()) };
        let time = self.load.time;
        let is_over = AtomicBool::new(false);
        let diagnosis = thread::scope(|scope| -> anyhow::Result<Diagnosis> {
            let watched = scope.spawn(|| -> anyhow::Result<Diagnosis> {
                let kernel = Here::open()?;
                let look = Look { kernel: &kernel, interface: &wire.interface };
                let is_over = || is_over.load(Ordering::Relaxed);
                until_frames_come(&look, rate, &is_over);
                let watched = watch(&look, time, Depth::Counters, &is_over, &mut |_| {});
                let watched = watched.with_context(|| {
                    format!("there is no interface {} in /sys/class/net", wire.interface)
                })?;
                Ok(Diagnosis::of(&wire.interface, look.megabits(), watched))
            });
            let ran = self.loss(rate, &[]);
            is_over.store(true, Ordering::Relaxed);
            let watched = watched.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?;
            ran?;
            watched
        })?;
        Ok(change::advised(&diagnosis, &[]))
    }

    fn run(&self, rate: f64, layout: &Layout, tool: &Tool) -> anyhow::Result<Loss> {
        let load = Load { rate: Some(rate), ..self.load.clone() };
        let mut why = String::new();
        for _ in 0..REPEATS {
            let bed = match Testbed::make(self.warden, layout) {
                Ok(bed) => bed,
                // What cannot be made without a change, either, is no matter of that.
                Err(why) if *layout == self.layout => return Err(why),
                Err(why) => return Ok(Loss::Unable(format!("{why:#}"))),
            };
            let trial = attempt(&bed, self.netsniff, tool, &load)?;
            if let Some(failure) = &trial.failure {
                return Ok(Loss::Unable(failure.clone()));
            }
            if is_near(&trial, rate)
                && let Some(share) = trial.loss()
            {
                return Ok(Loss::Share(share));
            }
            let faults: Vec<_> = trial.faults.iter().map(|fault| fault.words()).collect();
            why = faults.join(", ");
        }
        Ok(Loss::Unknown(why))
    }
}

/// Whether a run tells of a rate: nothing is wrong with it, or its sender was held up and came near that all the same. Both
/// sides of a comparison are measured so, and what it varies by is noise that their interval has in it.
fn is_near(trial: &Trial, rate: f64) -> bool {
    let is_reached = trial.reached.is_some_and(|reached| reached >= NEAR * rate);
    trial.is_valid() || trial.is_true_at_reached() && is_reached
}

impl Bench for Beds<'_> {
    fn loss(&mut self, rate: f64, changes: &[&Candidate]) -> anyhow::Result<Loss> {
        let (layout, tool) = match self.prepared(changes) {
            Ok(prepared) => prepared,
            Err(why) => return Ok(Loss::Unable(why)),
        };
        let result = match self.change(changes)? {
            Ok(()) => self.run(rate, &layout, &tool),
            Err(why) => Ok(Loss::Unable(why)),
        };
        if let Some(journal) = &mut self.journal {
            // Whatever came of the run.
            let reverted = change::revert(&Here::open()?, journal, false)?;
            // What is still there would be measured with all that follows.
            if let Some((change, outcome)) = reverted.iter().find(|(_, outcome)| outcome.is_left())
            {
                anyhow::bail!("{} could not be taken back: {outcome:?}", change.setting);
            }
        }
        result
    }
}

/// Waits until an interface gets at least half of so many frames a second. A testbed and a tool come first.
fn until_frames_come(look: &Look<'_>, rate: f64, is_over: &dyn Fn() -> bool) {
    let received = || look.kernel.number(&look.file("statistics/rx_packets"));
    let enough = rate * STEP.as_secs_f64() / 2.0;
    while !is_over() {
        let Some(before) = received() else { return };
        thread::sleep(STEP);
        let came = received().map_or(0, |now| now.saturating_sub(before));
        if came as f64 >= enough {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(layout: &Layout, tool: &str, more: &[Setting]) -> Vec<String> {
        let tool = Tool::all().into_iter().find(|it| it.name == tool).unwrap();
        let all = candidates((layout, &tool), &Load::default(), &[], more);
        all.into_iter().map(|it| it.name).collect()
    }

    #[test]
    fn only_what_is_not_so_already_is_tried() {
        let all = names(&Layout::default(), "record", &[]);
        assert!(
            all.contains(&"placement=none".to_owned()) && all.contains(&"--ring=256M".to_owned()),
            "{all:?}"
        );
        assert!(!all.iter().any(|name| name == "quota=100"), "{all:?}");
        let short = Layout { quota: Some(0.05), ..Layout::default() };
        assert!(names(&short, "record", &[]).contains(&"quota=100".to_owned()));
        assert!(!all.iter().any(|name| name == "neighbours=0"), "{all:?}");
        let busy = Layout { neighbours: 2, ..Layout::default() };
        assert!(names(&busy, "record", &[]).contains(&"neighbours=0".to_owned()));
        // tcpdump has a ring, and nothing of the rest.
        let tcpdump = names(&Layout::default(), "tcpdump", &[]);
        assert!(
            tcpdump.contains(&"--ring=64M".to_owned())
                && !tcpdump.iter().any(|it| it.contains("wait")),
            "{tcpdump:?}"
        );
        let more = [("queues", "4"), ("snaplen", "96")]
            .map(|(name, value)| Setting { name: name.into(), value: value.into() });
        let all = names(&Layout::default(), "record", &more);
        assert!(
            all.contains(&"queues=4".to_owned()) && all.contains(&"--snaplen=96".to_owned()),
            "{all:?}"
        );
    }

    #[test]
    fn what_a_loss_does_not_tell_is_noted() {
        let record = Tool::all().into_iter().find(|it| it.name == "record").unwrap();
        let layout = Layout::default();
        let feature = |name: &str| Change {
            setting: netsniff_doctor::setting::Setting::Feature {
                interface: "rx0".into(),
                name: name.into(),
            },
            before: "on".into(),
            after: "off".into(),
        };
        let noted = |load: &Load| -> Vec<String> {
            let advised = [feature("rx-gro"), feature("tx-nocache-copy")];
            let all = candidates((&layout, &record), load, &advised, &[]);
            let noted = all.into_iter().filter(|it| it.note.is_some());
            noted.map(|it| it.name).collect()
        };
        let gro = "ethtool -K rx0 rx-gro off";
        assert_eq!(noted(&Load::default()), [gro]);
        let one = Setting { name: "flows".into(), value: "1".into() };
        let one = Load::default().with(&[one]);
        assert_eq!(noted(&one), [gro, "queues=2", "receivers=all"]);
    }
}
