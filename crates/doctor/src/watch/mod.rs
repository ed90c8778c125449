//! What changes in some time: stages at both ends of it, and looks between them.

mod packets;

use std::collections::BTreeMap;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use netsniff_capture::host::Softnet;
use serde::Serialize;

use crate::look::{Capture, Look, Processor, captures, processors, siblings, softnet};
use crate::stage::{Stage, StageId};

pub use packets::{Elephant, PacketWatch, Packets};

/// Time between two looks.
pub const TICK: Duration = Duration::from_millis(100);

/// What was seen in some time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Watched {
    /// Nanoseconds between both ends.
    pub nanos: u64,
    /// When it was looked between, in nanoseconds since the begin.
    #[serde(skip)]
    pub ticks: Vec<u64>,
    /// The stages at the end, with what changed.
    pub stages: Vec<Stage>,
    /// The busiest look of each processor.
    pub busy: Vec<Busy>,
    /// Processors that share their core with others, with those (hyperthreads).
    pub siblings: BTreeMap<u32, Vec<u32>>,
    /// The most packets a second that a look has seen, and their mean; `None` where they cannot be counted.
    pub peak_rate: Option<u64>,
    /// Packets a second that the interface received, on the whole.
    pub rate: Option<u64>,
    /// Processes that captured at the end.
    pub captures: Vec<Capture>,
    /// What packets themselves tell; `None` where they were not looked at.
    pub packets: Option<Packets>,
}

/// How busy a processor was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Busy {
    /// Number of the processor.
    pub processor: u32,
    /// The share of all the time that it was not idle.
    pub mean: f64,
    /// The share that it received in, in all the time.
    pub softirq: f64,
    /// The share of its busiest look.
    pub peak: f64,
    /// The share that other virtual machines took, in all the time.
    pub steal: f64,
    /// Packets that it received; `None` where nobody counts them.
    pub packets: Option<u64>,
}

/// A look between.
#[derive(Clone, Debug)]
struct Pulse {
    /// Nanoseconds since the first one.
    at: u64,
    processors: Vec<Processor>,
    packets: Option<u64>,
}

fn pulse(look: &Look<'_>, at: u64) -> Pulse {
    Pulse {
        at,
        processors: processors(look.kernel),
        packets: look.kernel.number(&look.file("statistics/rx_packets")),
    }
}

/// What is watched beside the kernel's counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Counters alone.
    Counters,
    /// Packets, too, which takes some time of a processor for each.
    Packets {
        /// Whether the interface is made to take packets for others, too, as captures do.
        is_promiscuous: bool,
    },
}

/// Watches for so long. `is_over` ends it before; what stands in the way of looking at packets is told to `say`.
///
/// # Errors
///
/// Where the interface is gone.
pub fn watch(
    look: &Look<'_>,
    time: Duration,
    depth: Depth,
    is_over: &dyn Fn() -> bool,
    say: &mut dyn FnMut(String),
) -> io::Result<Watched> {
    let packets = match depth {
        Depth::Packets { is_promiscuous } => {
            Some(PacketWatch::begin(look.interface, is_promiscuous))
        }
        Depth::Counters => None,
    };
    let packets = packets.and_then(|begun| {
        begun.map_err(|why| say(format!("packets are not looked at: {why}"))).ok()
    });
    let begin = Instant::now();
    let nanos = || u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let mut tick = || {
        let left = time.saturating_sub(begin.elapsed());
        if left.is_zero() || is_over() {
            return None;
        }
        thread::sleep(TICK.min(left));
        Some(nanos())
    };
    let mut watched = observe(look, &mut tick);
    look.kernel.read(&look.file("ifindex"))?;
    watched.packets = match packets.map(PacketWatch::end) {
        Some(Ok(packets)) => Some(packets),
        Some(Err(why)) => {
            say(format!("packets were not looked at to the end: {why}"));
            None
        }
        None => None,
    };
    Ok(watched)
}

/// What was watched once, from recorded answers: at these times, and with what packets told then.
#[must_use]
pub fn replay(look: &Look<'_>, ticks: &[u64], packets: Option<Packets>) -> Watched {
    let mut ticks = ticks.iter().copied();
    Watched { packets, ..observe(look, &mut || ticks.next()) }
}

/// Looks at both ends, and between at each time that `tick` waits for and tells.
fn observe(look: &Look<'_>, tick: &mut dyn FnMut() -> Option<u64>) -> Watched {
    let softnet_before = softnet(look.kernel);
    let before = look.stages();
    let captures_before = captures(look);
    let mut pulses = vec![pulse(look, 0)];
    let mut ticks = Vec::new();
    while let Some(at) = tick() {
        ticks.push(at);
        pulses.push(pulse(look, at));
    }
    let nanos = ticks.last().copied().unwrap_or_default();
    let mut stages = look.stages();
    let softnet_after = softnet(look.kernel);
    for (stage, before) in stages.iter_mut().zip(&before) {
        stage.since(before);
    }
    let received = |number: u32| {
        let one = |it: &&Softnet| it.processor == number as usize;
        let of = |all: &Option<Vec<Softnet>>| Some(all.as_ref()?.iter().find(one)?.processed);
        let (now, then) = of(&softnet_after).zip(of(&softnet_before))?;
        now.checked_sub(then)
    };
    let wire = stages.iter().find(|stage| stage.id == StageId::Wire);
    let all = wire.and_then(|stage| stage.during("rx_packets"));
    Watched {
        nanos,
        busy: busy(&pulses, received),
        siblings: siblings(look.kernel),
        peak_rate: peak_rate(&pulses),
        rate: all.and_then(|all| per_second(all, nanos)),
        captures: captures(look).into_iter().map(|it| it.since(&captures_before)).collect(),
        packets: None,
        ticks,
        stages,
    }
}

fn per_second(count: u64, nanos: u64) -> Option<u64> {
    u64::try_from(u128::from(count) * 1_000_000_000 / u128::from(nanos.max(1))).ok()
}

fn peak_rate(pulses: &[Pulse]) -> Option<u64> {
    let rate = |pair: &[Pulse]| {
        let count = pair[1].packets?.checked_sub(pair[0].packets?)?;
        let nanos = pair[1].at.checked_sub(pair[0].at)?;
        // A look that came much too early says nothing of a second.
        (nanos > 10_000_000).then(|| per_second(count, nanos)).flatten()
    };
    pulses.windows(2).filter_map(rate).max()
}

/// A share of ticks; nothing of none.
fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

fn busy(pulses: &[Pulse], received: impl Fn(u32) -> Option<u64>) -> Vec<Busy> {
    let (Some(first), Some(last)) = (pulses.first(), pulses.last()) else { return Vec::new() };
    let of = |pulse: &Pulse, number: u32| {
        pulse.processors.iter().find(|it| it.number == number).copied()
    };
    let spent = |from: &Pulse, to: &Pulse, number: u32| {
        let (from, to) = (of(from, number)?, of(to, number)?);
        Some(to.since(&from))
    };
    let one = |processor: &Processor| {
        let number = processor.number;
        let whole = spent(first, last, number)?;
        // Ticks are 1 to 10 ms: fewer than ten say little.
        let peaks = pulses.windows(6).filter_map(|some| spent(some.first()?, some.last()?, number));
        let peaks =
            peaks.filter(|spent| spent.all() >= 10).map(|it| 1.0 - share(it.idle(), it.all()));
        let mean = if whole.all() == 0 { 0.0 } else { 1.0 - share(whole.idle(), whole.all()) };
        Some(Busy {
            processor: number,
            mean,
            softirq: share(whole.softirq(), whole.all()),
            peak: peaks.fold(mean, f64::max),
            steal: share(whole.steal(), whole.all()),
            packets: received(number),
        })
    };
    last.processors.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64, processors: &[[u64; 4]], packets: u64) -> Pulse {
        let processor = |(number, [work, softirq, steal, idle]): (usize, &[u64; 4])| Processor {
            number: number as u32,
            ticks: [0, 0, *work, *idle, 0, 0, *softirq, *steal],
        };
        Pulse {
            at: millis * 1_000_000,
            processors: processors.iter().enumerate().map(processor).collect(),
            packets: Some(packets),
        }
    }

    #[test]
    fn the_busiest_half_second_and_rate_are_found() {
        let mut pulses = vec![at(0, &[[0, 0, 0, 0]], 0)];
        // Idle for a second, then receiving all the time for half of one.
        for step in 1..=10 {
            pulses.push(at(step * 100, &[[0, 0, 0, step * 10]], 0));
        }
        for step in 1..=5 {
            pulses.push(at(1000 + step * 100, &[[0, step * 10, 0, 100]], step * 5000));
        }
        let busy = busy(&pulses, |_| Some(25_000));
        assert_eq!((busy.len(), busy[0].packets), (1, Some(25_000)));
        assert!(
            (busy[0].peak - 1.0).abs() < 1e-9 && (busy[0].mean - 1.0 / 3.0).abs() < 1e-9,
            "{busy:?}"
        );
        assert!((busy[0].softirq - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(peak_rate(&pulses), Some(50_000));
        assert_eq!(per_second(25_000, 1_500_000_000), Some(16_666));
    }

    #[test]
    fn nothing_is_made_of_nothing() {
        assert!(busy(&[], |_| None).is_empty());
        let still = [at(0, &[[1, 1, 1, 1]], 5), at(5, &[[1, 1, 1, 1]], 5)];
        assert!(busy(&still, |_| None)[0].mean.abs() < 1e-9);
        assert_eq!(peak_rate(&still), None);
    }
}
