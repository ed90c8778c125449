//! What loses packets, or will.

use super::{Finding, Level};
use crate::look::{BUSY, WRITTEN, falsified_by};
use crate::stage::{Loss, Stage, StageId};
use crate::watch::{Busy, Watched};

/// A processor is full that was not idle for so long.
pub(super) const FULL: f64 = 0.95;

/// The share of a processor that receiving takes where it matters.
pub(super) const MUCH: f64 = 0.3;

/// The share that receiving takes of the one processor that a capture may run on: the capture stands still meanwhile, and needs
/// at least as much for itself.
const IN_THE_WAY: f64 = 0.1;

/// A flow is an elephant that is so much of all packets, of at least so many.
const ELEPHANT: (f64, u64) = (0.5, 1000);

/// Fewer packets say nothing of a rate.
const FEW: u64 = 1000;

/// A ring that holds less may be full before its owner gets a turn: some time slices of the scheduler.
const SHORT_RING_MS: u64 = 30;

/// Bursts matter where the busiest millisecond has so many times what the mean one has.
const UNEVEN: u64 = 10;

/// The share of the watched time that a thread may wait for a processor.
const WAITED: f64 = 0.05;

/// Everything that there is to say.
pub(super) fn all(watched: &Watched) -> Vec<Finding> {
    let mut found = Vec::new();
    for stage in &watched.stages {
        losses(stage, &mut found);
    }
    throttled(watched, &mut found);
    waiting(watched, &mut found);
    busy(watched, &mut found);
    contended(watched, &mut found);
    siblings(watched, &mut found);
    disks(watched, &mut found);
    rings(watched, &mut found);
    offloads(watched, &mut found);
    packets(watched, &mut found);
    found
}

fn finding(stage: StageId, level: Level, text: String) -> Finding {
    Finding { stage, level, text, lost: None }
}

/// Stages that have lost packets while they were watched, or before.
fn losses(stage: &Stage, found: &mut Vec<Finding>) {
    for counter in &stage.counters {
        let name = &counter.name;
        let total = counter.total.unwrap_or_default();
        let during = counter.during.unwrap_or_default();
        let where_ = stage.id.name();
        match counter.loss {
            Loss::Packets if during > 0 => found.push(Finding {
                stage: stage.id,
                level: Level::Losing,
                text: format!(
                    "{where_}: {during} packets were lost while it was watched ({name})."
                ),
                lost: Some(during),
            }),
            Loss::Packets if total > 0 && counter.during.is_none() => {
                let text = format!(
                    "{where_}: {total} packets were lost ({name}); how many of them while it was watched is unavailable, since the counter was \
                     not there at the begin, or began anew."
                );
                found.push(finding(stage.id, Level::Near, text));
            }
            Loss::Packets if total > 0 => {
                let text = format!(
                    "{where_}: {total} packets were lost since the machine was started ({name}), none while it was watched."
                );
                found.push(finding(stage.id, Level::Note, text));
            }
            Loss::Maybe if during > 0 => {
                let text = format!(
                    "{where_}: {name} grew by {during}; drivers differ in what they count there."
                );
                found.push(finding(stage.id, Level::Near, text));
            }
            Loss::Sign if during > 0 && stage.id == StageId::Napi => {
                let text = format!(
                    "{where_}: a processor stopped {during} times although more packets were there, since its budget was used up (time_squeeze)."
                );
                found.push(finding(stage.id, Level::Near, text));
            }
            _ => {}
        }
    }
}

/// Captures whose control group had used up its share.
fn throttled(watched: &Watched, found: &mut Vec<Finding>) {
    for capture in &watched.captures {
        let Some(times) = capture.throttled_during.filter(|times| *times > 0) else { continue };
        let text = format!(
            "processes that capture: {} {} was kept off the processors {times} times, since its control group had used up its share \
             (nr_throttled).",
            capture.name, capture.pid
        );
        found.push(finding(StageId::Process, Level::Near, text));
    }
}

/// Captures that could have run and had no processor.
fn waiting(watched: &Watched, found: &mut Vec<Finding>) {
    for thread in watched.captures.iter().flat_map(|capture| &capture.threads) {
        let waited = thread.waited_during_ns.unwrap_or_default();
        let share = waited as f64 / watched.nanos.max(1) as f64;
        if share > WAITED {
            let text = format!(
                "processes that capture: thread {} {} waited for a processor in {:.0} % of the time, while others had it.",
                thread.tid,
                thread.name,
                share * 100.0
            );
            found.push(finding(StageId::Process, Level::Near, text));
        }
    }
}

/// Processors that have no time left.
fn busy(watched: &Watched, found: &mut Vec<Finding>) {
    for Busy { processor, peak, softirq, steal, .. } in &watched.busy {
        if *peak >= FULL {
            let level = if *softirq >= MUCH { Level::Near } else { Level::Note };
            let text = format!(
                "processors: {processor} had no time left for half a second; receiving took {:.0} % of it on the whole.",
                softirq * 100.0
            );
            found.push(finding(StageId::Processors, level, text));
        }
        if *steal >= 0.05 {
            let text = format!(
                "processors: other virtual machines took {:.0} % of {processor}.",
                steal * 100.0
            );
            found.push(finding(StageId::Processors, Level::Near, text));
        }
    }
}

/// Processors on which packets are received and captures can run nowhere else.
fn contended(watched: &Watched, found: &mut Vec<Finding>) {
    for (capture, thread) in
        watched.captures.iter().flat_map(|it| it.threads.iter().map(move |of| (it, of)))
    {
        let Ok(processor) = thread.allowed.parse::<u32>() else { continue };
        let receives = |busy: &&Busy| busy.processor == processor && busy.softirq >= IN_THE_WAY;
        if let Some(busy) = watched.busy.iter().find(receives) {
            let text = format!(
                "processes that capture: thread {} of {} {} may run on processor {processor} alone, where receiving takes {:.0} % of \
                 the time.",
                thread.tid,
                capture.name,
                capture.pid,
                busy.softirq * 100.0
            );
            found.push(finding(StageId::Process, Level::Near, text));
        }
    }
}

/// What a processor does for captures; `None` where it does nothing for them.
fn duty(watched: &Watched, processor: u32) -> Option<String> {
    let threads = watched.captures.iter().flat_map(|it| it.threads.iter().map(move |of| (it, of)));
    let mut bound = threads.filter(|(_, thread)| thread.allowed == processor.to_string());
    if let Some((capture, thread)) = bound.next() {
        return Some(format!("thread {} of {} {} runs", thread.tid, capture.name, capture.pid));
    }
    let mut busy = watched.busy.iter();
    let receives = busy.any(|it| it.processor == processor && it.softirq >= IN_THE_WAY);
    receives.then(|| "packets are received".to_owned())
}

/// Processors that receive or capture, and share their core with one that is full.
fn siblings(watched: &Watched, found: &mut Vec<Finding>) {
    let is_full = |sibling: &u32| {
        watched.busy.iter().any(|busy| busy.processor == *sibling && busy.peak >= FULL)
    };
    for (processor, siblings) in &watched.siblings {
        let Some(duty) = duty(watched, *processor) else { continue };
        for sibling in siblings.iter().filter(|sibling| is_full(sibling)) {
            let text = format!(
                "processors: {sibling} is a thread of the same core as {processor}, where {duty}, and had no time left for half a \
                 second: {processor} has less of the core meanwhile. Keep other work off {sibling}."
            );
            found.push(finding(StageId::Processors, Level::Near, text));
        }
    }
}

/// Disks that had something to do all the time.
fn disks(watched: &Watched, found: &mut Vec<Finding>) {
    let Some(stage) = stage(watched, StageId::Disk) else { return };
    let seconds = watched.nanos.max(1) as f64 / 1e9;
    for counter in &stage.counters {
        let Some(name) = counter.name.strip_prefix(BUSY) else { continue };
        let Some(busy) = counter.during.map(|millis| millis as f64 / 1e3 / seconds) else {
            continue;
        };
        if busy < FULL {
            continue;
        }
        let written = stage.during(&format!("{WRITTEN}{name}"));
        let written = written.map_or_else(
            || "an unavailable number of".to_owned(),
            |bytes| format!("{:.1}", bytes as f64 / 1e6 / seconds),
        );
        let text = format!(
            "disk and page cache: {name} had something to do in {:.0} % of the time, and took {written} MB a second. A recording on it \
             may have to wait; a disk that works on many requests at a time may take more.",
            busy.min(1.0) * 100.0
        );
        // Without a capture nothing waits for it.
        let level = if watched.captures.is_empty() { Level::Note } else { Level::Near };
        found.push(finding(StageId::Disk, level, text));
    }
}

/// Rings of captures that hold little time of what comes.
fn rings(watched: &Watched, found: &mut Vec<Finding>) {
    let wire = stage(watched, StageId::Wire);
    let all = wire.and_then(|it| it.during("rx_bytes").zip(it.during("rx_packets")));
    let (Some((bytes, packets)), Some(rate)) = (all, watched.peak_rate) else { return };
    if packets < FEW {
        return;
    }
    // A frame in a ring has a description beside it, of 82 bytes at most, and is aligned (kernel: packet_mmap).
    let each = bytes / packets + 96;
    for (capture, socket) in
        watched.captures.iter().flat_map(|it| it.sockets.iter().map(move |of| (it, of)))
    {
        let millis = (socket.ring_bytes / each).saturating_mul(1000) / rate.max(1);
        if socket.ring_bytes > 0 && millis < SHORT_RING_MS {
            let text = format!(
                "sockets of captures: the ring of {} {} has {} KiB, which is {millis} ms at the rate that was seen: so long it may be \
                 late. Give it more: netsniff --ring, tcpdump -B, dumpcap -B.",
                capture.name,
                capture.pid,
                socket.ring_bytes >> 10
            );
            found.push(finding(StageId::Socket, Level::Near, text));
        }
    }
}

fn offloads(watched: &Watched, found: &mut Vec<Finding>) {
    let Some(stage) = stage(watched, StageId::Offloads) else { return };
    for knob in &stage.knobs {
        let crate::setting::Setting::Feature { name, .. } = &knob.setting else { continue };
        let effect = falsified_by(&knob.setting);
        if let Some(effect) = effect.filter(|_| knob.value.as_deref() == Some("on")) {
            found.push(finding(
                StageId::Offloads,
                Level::Note,
                format!("offloads: {name} is on: {effect}."),
            ));
        }
    }
}

/// What packets themselves tell.
fn packets(watched: &Watched, found: &mut Vec<Finding>) {
    let Some(packets) = &watched.packets else { return };
    if let Some(elephant) = &packets.elephant
        && elephant.share >= ELEPHANT.0
        && packets.seen >= ELEPHANT.1
    {
        let text = format!(
            "queues and hash: {:.0} % of the packets are of one flow, {}, which one queue and one processor take, however many there are.",
            elephant.share * 100.0,
            elephant.flow
        );
        found.push(finding(StageId::Queues, Level::Near, text));
    }
    let mean = u128::from(packets.seen) * 1_000_000 / u128::from(watched.nanos.max(1));
    if packets.most_in_millisecond >= 100
        && u128::from(packets.most_in_millisecond) > u128::from(UNEVEN) * mean.max(1)
    {
        let text = format!(
            "wire and interface: packets come in bursts: {} in the busiest millisecond, {mean} in the mean one, {} in a row less than 10 µs apart.",
            packets.most_in_millisecond, packets.longest_burst
        );
        found.push(finding(StageId::Wire, Level::Note, text));
    }
    if let Some(missed) = packets.missed.filter(|missed| *missed > 0) {
        let text = format!(
            "sockets of captures: the doctor's own ring had no room for {missed} packets, since its thread, which waits for all others, \
             got no processor in time: gaps and flows are those of the rest."
        );
        found.push(finding(StageId::Socket, Level::Note, text));
    }
}

fn stage(watched: &Watched, id: StageId) -> Option<&Stage> {
    watched.stages.iter().find(|stage| stage.id == id)
}
