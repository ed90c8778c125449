//! What to change: values for settings, with the reason, who says so, and what it costs.

use super::findings::{FULL, MUCH};
use super::{Finding, Level};
use crate::setting::Setting;
use crate::stage::{Knob, Loss, StageId};
use crate::watch::{Busy, Watched};

const SCALING: &str = "kernel: Documentation/networking/scaling.rst";
const SYSCTL: &str = "kernel: Documentation/admin-guide/sysctl/net.rst";
const NAPI: &str = "kernel: Documentation/networking/napi.rst";
const ETHTOOL: &str = "ethtool(8); kernel: Documentation/networking/ethtool-netlink.rst";
const OFFLOADS: &str = "kernel: Documentation/networking/segmentation-offloads.rst";

/// The most frames that are advised for a ring of an interface: beyond, packets leave the cache before they are read.
const MOST_RING: u64 = 4096;

/// Bounds of what is advised for a backlog: packets.
const BACKLOG: (u64, u64) = (4000, 250_000);

/// Bounds of what is advised for the budget: packets, and microseconds.
const BUDGET: (u64, u64) = (4800, 32_000);

/// Milliseconds of packets that a backlog should hold.
const HOLD_MS: u64 = 40;

/// What advice depends on.
struct Seen<'a> {
    watched: &'a Watched,
    findings: &'a [Finding],
    /// Processors that are full of receiving.
    full: Vec<u32>,
    /// Those that have time, the idlest first.
    idle: Vec<u32>,
}

/// Puts advice to the settings of what was watched.
pub(super) fn advise(watched: &mut Watched, findings: &[Finding], megabits: Option<u64>) {
    let mut stages = core::mem::take(&mut watched.stages);
    let full = watched.busy.iter().filter(|busy| busy.peak >= FULL && busy.softirq >= MUCH);
    let full: Vec<_> = full.map(|busy| busy.processor).collect();
    let has_time = |busy: &&Busy| busy.mean < 0.7 && !full.contains(&busy.processor);
    let mut idle: Vec<_> = watched.busy.iter().filter(has_time).collect();
    idle.sort_by(|one, other| one.mean.total_cmp(&other.mean));
    let seen =
        Seen { idle: idle.iter().map(|busy| busy.processor).collect(), full, watched, findings };
    for stage in &mut stages {
        let lost = stage.lost().unwrap_or_default() > 0;
        let ever = stage.counters.iter().any(|it| it.loss == Loss::Packets && it.total > Some(0));
        let grew = stage.counters.iter().any(|it| it.loss == Loss::Sign && it.during > Some(0));
        for knob in &mut stage.knobs {
            match stage.id {
                StageId::NicRing => ring(knob, &seen, megabits),
                StageId::Coalescing => coalescing(knob, &seen),
                StageId::Offloads => offload(knob, &seen),
                StageId::Queues => queues(knob, &seen),
                StageId::Napi => napi(knob, grew, &seen),
                StageId::Backlog => backlog(knob, lost, ever, &seen),
                StageId::Processors => governor(knob, &seen),
                StageId::Interrupts => interrupt(knob, &seen),
                _ => {}
            }
        }
    }
    watched.stages = stages;
}

impl Seen<'_> {
    /// Whether a stage loses, or is near it.
    fn has(&self, stage: StageId, level: Level) -> bool {
        self.findings.iter().any(|it| it.stage == stage && it.level <= level)
    }

    /// Whether several flows came, so that spreading helps; `true` where that is not known.
    fn is_spreadable(&self) -> bool {
        let elephant = self.watched.packets.as_ref().and_then(|packets| packets.elephant.as_ref());
        elephant.is_none_or(|elephant| elephant.share < 0.9)
    }
}

fn ring(knob: &mut Knob, seen: &Seen<'_>, megabits: Option<u64>) {
    let (Some(now), Some(most)) =
        (knob.number(), knob.most.as_ref().and_then(|it| it.parse::<u64>().ok()))
    else {
        return;
    };
    let wanted = most.min(MOST_RING);
    let is_losing = seen.has(StageId::Wire, Level::Near);
    // NAPI may come a jiffy late where the processor is busy.
    let is_short = megabits.is_some()
        && knob.holds.and_then(|it| it.micros_shortest).is_some_and(|it| it < 300);
    if wanted <= now || !(is_losing || is_short && now < 1024) {
        return;
    }
    let time =
        |micros: Option<u64>| micros.map_or("an unknown time".to_owned(), |it| format!("{it} µs"));
    let holds = knob.holds.unwrap_or_default();
    let reason = format!(
        "{now} frames are {} of the shortest ones and {} of ones of 874 bytes: that long a processor may be late",
        time(holds.micros_shortest),
        time(holds.micros_mean)
    );
    let cost = "memory of the driver, and caches: packets may leave the cache before they are read; most drivers take the link down for a moment";
    knob.advise(wanted.to_string(), reason, ETHTOOL, cost);
}

fn coalescing(knob: &mut Knob, seen: &Seen<'_>) {
    let is_each = knob.value.as_deref() == Some("adaptive-rx off rx-usecs 0 rx-frames 1")
        || knob.value.as_deref() == Some("adaptive-rx off rx-usecs 0 rx-frames 0");
    if is_each && !seen.full.is_empty() {
        let reason =
            "an interrupt comes for each frame, and a processor that receives is full".to_owned();
        let cost = "frames are seen up to 50 µs later";
        knob.advise("adaptive-rx off rx-usecs 50 rx-frames 0".to_owned(), reason, ETHTOOL, cost);
    }
}

/// Merging falsifies captures. Where nobody captures it helps, and so it does where a processor is full of receiving.
fn offload(knob: &mut Knob, seen: &Seen<'_>) {
    let Setting::Feature { name, .. } = &knob.setting else { return };
    if seen.watched.captures.is_empty() || !seen.full.is_empty() {
        return;
    }
    let is_merging = ["rx-lro", "rx-gro-hw", "rx-gro"].contains(&name.as_str());
    if is_merging && knob.value.as_deref() == Some("on") && !knob.is_fixed {
        let reason = "captures then see packets as they were on the wire: sizes, times and counts of segments are right".to_owned();
        let cost = "the stack of this machine works more for TCP that it receives itself";
        knob.advise("off".to_owned(), reason, OFFLOADS, cost);
    }
}

fn queues(knob: &mut Knob, seen: &Seen<'_>) {
    let (Some(now), Some(most)) =
        (knob.number(), knob.most.as_ref().and_then(|it| it.parse::<u64>().ok()))
    else {
        return;
    };
    let wanted = most.min(seen.watched.busy.len() as u64);
    if wanted > now && !seen.full.is_empty() && seen.is_spreadable() {
        let reason =
            format!("a processor that receives is full, and {now} queues use {now} processors");
        let cost = "other processors are interrupted; both directions of a connection may come to two queues";
        knob.advise(wanted.to_string(), reason, SCALING, cost);
    }
}

fn napi(knob: &mut Knob, grew: bool, seen: &Seen<'_>) {
    let Some(now) = knob.number() else { return };
    match &knob.setting {
        Setting::Sysctl { name }
            if grew && (name.ends_with("_budget") || name.ends_with("_usecs")) =>
        {
            let most = if name.ends_with("_usecs") { BUDGET.1 } else { BUDGET.0 };
            let wanted = now.saturating_mul(4).min(most);
            if wanted > now {
                let reason =
                    "time_squeeze grows: the processor stops receiving although packets wait"
                        .to_owned();
                let cost = "programs on that processor wait longer for their turn";
                knob.advise(wanted.to_string(), reason, SYSCTL, cost);
            }
        }
        Setting::Interface { file, .. } if file == "threaded" && now == 0 => {
            let is_in_the_way = seen.watched.captures.iter().any(|capture| {
                capture.threads.iter().any(|thread| {
                    thread.allowed.parse::<u32>().is_ok_and(|it| seen.full.contains(&it))
                })
            });
            if is_in_the_way && !seen.idle.is_empty() {
                let reason = "a capture can run only where packets are received; a thread that receives can be moved by the scheduler".to_owned();
                let cost = "a switch of threads for each turn; the thread competes with programs";
                knob.advise("1".to_owned(), reason, NAPI, cost);
            }
        }
        _ => {}
    }
}

fn backlog(knob: &mut Knob, lost: bool, ever: bool, seen: &Seen<'_>) {
    match &knob.setting {
        Setting::Sysctl { name } if name == "net.core.netdev_max_backlog" && (lost || ever) => {
            let now = knob.number().unwrap_or_default();
            let rate = seen.watched.peak_rate.or(seen.watched.rate).unwrap_or_default();
            // What was lost before anybody watched tells nothing of how much is missing.
            let more = if lost { now.saturating_mul(4) } else { 0 };
            let wanted = rate.saturating_mul(HOLD_MS) / 1000;
            let wanted = wanted.max(more).clamp(BACKLOG.0, BACKLOG.1);
            if wanted > now {
                let reason = format!(
                    "a processor's backlog had no room; {wanted} packets are {HOLD_MS} ms at the rate that was seen, at least {}, or four times \
                     what there is where packets are lost now",
                    BACKLOG.0
                );
                let cost =
                    "up to 2 KiB of memory for each packet that waits, and packets are seen later";
                knob.advise(wanted.to_string(), reason, SYSCTL, cost);
            }
        }
        Setting::Interface { file, .. } if file.ends_with("rps_cpus") => {
            let is_off = knob.value.as_ref().is_some_and(|now| knob.setting.is_same(now, "0"));
            let Some(other) = seen.idle.first() else { return };
            if is_off && !seen.full.is_empty() && seen.is_spreadable() {
                let mask = mask(&seen.idle);
                let reason = format!(
                    "processor {} is full of receiving, and {other} has time",
                    seen.full[0]
                );
                let cost = "an interrupt between processors, and packets of a flow change caches";
                knob.advise(mask, reason, SCALING, cost);
            }
        }
        _ => {}
    }
}

fn governor(knob: &mut Knob, seen: &Seen<'_>) {
    let is_slow = knob.value.as_deref().is_some_and(|value| value != "performance");
    let is_losing = seen.findings.iter().any(|it| it.level == Level::Losing);
    if is_slow && (is_losing || !seen.full.is_empty()) {
        let reason = "a processor that must speed up first loses what comes until then".to_owned();
        let cost = "power, also when nothing comes";
        knob.advise(
            "performance".to_owned(),
            reason,
            "kernel: Documentation/admin-guide/pm/cpufreq.rst",
            cost,
        );
    }
}

fn interrupt(knob: &mut Knob, seen: &Seen<'_>) {
    let Some(now) = knob.number() else { return };
    let is_captures = seen
        .watched
        .captures
        .iter()
        .flat_map(|it| &it.threads)
        .any(|thread| thread.allowed.parse::<u64>().is_ok_and(|allowed| allowed == now));
    let other = seen.idle.iter().find(|idle| u64::from(**idle) != now);
    if let Some(other) = other
        && is_captures
        && seen.full.iter().any(|full| u64::from(*full) == now)
    {
        let reason = format!(
            "a capture may run on processor {now} alone, which this interrupt fills; {other} has time"
        );
        let cost = "what runs on that processor is interrupted";
        knob.advise(
            other.to_string(),
            reason,
            "kernel: Documentation/core-api/irq/irq-affinity.rst",
            cost,
        );
    }
}

/// Processors as a mask of the kernel: words of 32 bits in hexadecimal, the highest first.
pub(crate) fn mask(processors: &[u32]) -> String {
    let highest = processors.iter().max().map_or(0, |it| it / 32);
    let word = |at: u32| {
        let bits = processors
            .iter()
            .filter(|it| **it / 32 == at)
            .fold(0_u32, |bits, it| bits | 1 << (it % 32));
        if at == highest { format!("{bits:x}") } else { format!("{bits:08x}") }
    };
    (0..=highest).rev().map(word).collect::<Vec<_>>().join(",")
}
