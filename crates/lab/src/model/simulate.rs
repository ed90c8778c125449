//! Backlog, ring and application of one processor, step by step.

use std::collections::VecDeque;

use netsniff_traffic::Random;
use statrs::distribution::{ContinuousCDF as _, Normal};

use super::Costs;
use super::stalls::Stalls;
use super::wakes::{Waiter, Wakes};
use crate::load::{BLOCK_HEADER, slot};

/// How often blocks are closed that are not full: what netsniff asks for unless told.
pub const RETIRE: f64 = 50e6;

/// Bytes of a block unless told.
pub const BLOCK: u64 = 1 << 20;

/// Blocks that netsniff's rings have at least.
const LEAST_BLOCKS: u64 = 2;

/// Bytes that a frame takes in a ring, of so many with its frame check sequence.
#[must_use]
pub fn room(size: u32) -> f64 {
    slot(size) as f64
}

/// Frames that come together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FrameArrival {
    /// When, in nanoseconds from the begin, in order.
    pub at: f64,
    /// Number of frames.
    pub frames: f64,
    /// Bytes that each takes in a ring.
    pub room: f64,
    /// What each frame costs.
    pub costs: Costs,
}

/// What frames wait in.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Queues {
    /// Frames that the processor's backlog holds.
    pub backlog: f64,
    /// Bytes of a block of the ring that frames may take.
    pub block: f64,
    /// Number of blocks of the ring.
    pub blocks: u64,
    /// Nanoseconds after which an open block is closed.
    pub retire: f64,
    /// From when they are counted.
    pub clock: Clock,
}

/// From when the kernel counts the time after which it closes a block that is not full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// Since it did so before, whatever blocks were begun since: from Linux 6.18 on, where a timer that repeats itself has
    /// taken the place of the other one (`prb_retire_rx_blk_timer_expired` in net/packet/af_packet.c).
    #[default]
    Steady,
    /// Since the block was begun.
    Block,
}

impl Clock {
    /// That of a release of the kernel, as uname(2) tells it.
    #[must_use]
    pub fn of(release: &str) -> Self {
        let mut numbers = release.split(['.', '-']).map_while(|word| word.parse::<u32>().ok());
        match (numbers.next(), numbers.next()) {
            (Some(major), Some(minor)) if (major, minor) < (6, 18) => Self::Block,
            _ => Self::Steady,
        }
    }
}

impl Queues {
    /// A ring of so many bytes behind a backlog of so many frames.
    #[must_use]
    pub fn new(ring: u64, backlog: u64, clock: Clock) -> Self {
        let blocks = (ring / BLOCK).max(LEAST_BLOCKS);
        let block = (BLOCK - BLOCK_HEADER) as f64;
        Self { backlog: backlog as f64, block, blocks, retire: RETIRE, clock }
    }

    /// Frames of so many bytes that wait while one block is read.
    #[must_use]
    pub fn frames(&self, size: u32) -> f64 {
        (self.blocks - 1) as f64 * (self.block / room(size)).floor()
    }
}

/// What came of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SimulationOutcome {
    /// Frames that arrived.
    pub frames: f64,
    /// That found the backlog full.
    pub lost_backlog: f64,
    /// That found the ring full.
    pub lost_ring: f64,
    /// When the first one was lost, in nanoseconds from the begin.
    pub first_loss: Option<f64>,
    /// The most blocks that were in use.
    pub most_blocks: u64,
}

impl SimulationOutcome {
    /// The share that was lost.
    #[must_use]
    pub fn loss(&self) -> f64 {
        (self.lost_backlog + self.lost_ring) / self.frames.max(1.0)
    }
}

/// A block that is closed, or being read.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    bytes: f64,
    /// Nanoseconds of the application that its frames need: on average until it is closed, and from then on what they do.
    work: f64,
    /// How far that may be off: the sum of the variances of its frames.
    variance: f64,
    /// When a server by time is done with them.
    until: f64,
}

/// What keeps a processor and an application from what they have to do.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    /// When the machine stands still.
    pub stalls: &'a Stalls,
    /// How long it takes until an application that sleeps reads on.
    pub wakes: &'a Wakes,
    /// Whether the application is a server by time: it takes so long for a frame from when that arrived, or when the one
    /// before was done, and makes up for what keeps it from that.
    pub is_by_time: bool,
}

/// The state of everything at a time.
#[derive(Debug)]
struct Processor<'a> {
    queues: Queues,
    /// Frames in the backlog, each group with what it is made of.
    backlog: VecDeque<FrameArrival>,
    waiting: f64,
    /// When the last frames arrived.
    arrived: f64,
    /// Nanoseconds of an interrupt that are left, before the first frame is taken.
    interrupt: f64,
    /// The block that is filled; `None` where there is none.
    open: Option<Block>,
    closed: VecDeque<Block>,
    read: Option<Block>,
    next_retire: f64,
    /// When a server by time is free; `None` where it is none.
    free: Option<f64>,
    /// The application, where it has nothing to read.
    waiter: Waiter<'a>,
    /// What decides how long the frames of a block take, and waking.
    chance: Random,
    outcome: SimulationOutcome,
}

/// Lets frames come to a processor, which stands still as the machine did; `random` decides when.
#[must_use]
pub fn simulate(
    arrivals: impl Iterator<Item = FrameArrival>,
    queues: &Queues,
    held: Held<'_>,
    random: &mut Random,
) -> SimulationOutcome {
    // Stalls are the same whatever else is drawn.
    let chance = Random::new(!random.clone().next_u64());
    let mut stall = Pauses::new(held.stalls, random);
    let mut processor = Processor::new(*queues, held.wakes, chance);
    processor.free = held.is_by_time.then_some(0.0);
    // The kernel looks at blocks from time to time, and nobody knows when it began.
    processor.next_retire *= random.below(1 << 20) as f64 / f64::from(1 << 20);
    let mut now = 0.0;
    for arrival in arrivals {
        while stall.begin <= arrival.at {
            // What comes while nothing is done waits in the backlog.
            processor.run(now, stall.begin);
            now = stall.begin.max(now) + stall.length;
            stall.next(random);
        }
        if arrival.at > now {
            processor.run(now, arrival.at);
            now = arrival.at;
        }
        processor.arrive(arrival);
    }
    processor.finish(now);
    processor.outcome
}

/// When the processor stands still.
struct Pauses<'a> {
    stalls: &'a Stalls,
    begin: f64,
    length: f64,
}

impl<'a> Pauses<'a> {
    fn new(stalls: &'a Stalls, random: &mut Random) -> Self {
        let mut pauses = Self { stalls, begin: 0.0, length: 0.0 };
        pauses.next(random);
        pauses
    }

    fn next(&mut self, random: &mut Random) {
        let lengths = &self.stalls.lengths;
        if lengths.is_empty() {
            self.begin = f64::INFINITY;
            return;
        }
        self.begin += self.length + random.exponential() / self.stalls.rate();
        self.length = lengths[random.below(lengths.len() as u64) as usize] as f64;
    }
}

impl<'a> Processor<'a> {
    fn new(queues: Queues, wakes: &'a Wakes, chance: Random) -> Self {
        Self {
            queues,
            backlog: VecDeque::new(),
            waiting: 0.0,
            arrived: f64::NEG_INFINITY,
            interrupt: 0.0,
            open: Some(Block::default()),
            closed: VecDeque::new(),
            read: None,
            next_retire: queues.retire,
            free: None,
            waiter: Waiter::new(wakes, queues.blocks),
            chance,
            outcome: SimulationOutcome::default(),
        }
    }

    fn arrive(&mut self, mut arrival: FrameArrival) {
        self.outcome.frames += arrival.frames;
        let room = (self.queues.backlog - self.waiting).max(0.0);
        let lost = (arrival.frames - room).max(0.0);
        if lost > 0.0 {
            self.outcome.lost_backlog += lost;
            self.outcome.first_loss.get_or_insert(arrival.at);
            arrival.frames -= lost;
        }
        if arrival.frames > 0.0 {
            if self.backlog.is_empty() {
                let since = arrival.at - self.arrived;
                self.interrupt = arrival.costs.interrupt(since, arrival.frames);
            }
            self.waiting += arrival.frames;
            self.arrived = arrival.at;
            self.backlog.push_back(arrival);
        }
    }

    /// Uses the processor from one time to another: for the kernel first, then for the application.
    fn run(&mut self, from: f64, to: f64) {
        let mut now = from;
        loop {
            // Time may have passed without anything being done.
            while self.next_retire <= now {
                let due = self.next_retire;
                self.next_retire += self.queues.retire;
                self.close(false, due);
            }
            if now >= to {
                return;
            }
            let end = to.min(self.next_retire);
            let left = self.receive(now, end - now);
            self.read(left, end);
            now = end;
        }
    }

    /// Takes frames from the backlog to the ring; returns what is left of the time.
    fn receive(&mut self, now: f64, mut time: f64) -> f64 {
        let paid = self.interrupt.min(time);
        self.interrupt -= paid;
        time -= paid;
        if self.interrupt > 0.0 {
            return 0.0;
        }
        while let Some(mut first) = self.backlog.pop_front() {
            let needed = first.frames * first.costs.frame;
            let is_enough = needed <= time;
            let frames = if is_enough { first.frames } else { time / first.costs.frame };
            self.waiting = (self.waiting - frames).max(0.0);
            self.keep(frames, first.room, first.costs, first.at.max(now));
            if !is_enough {
                first.frames -= frames;
                self.backlog.push_front(first);
                return 0.0;
            }
            time -= needed;
        }
        self.waiting = 0.0;
        time
    }

    /// Puts frames into the ring.
    fn keep(&mut self, mut frames: f64, room: f64, costs: Costs, now: f64) {
        while frames > 0.0 {
            self.reopen(now);
            let Some(open) = &mut self.open else {
                self.outcome.lost_ring += frames;
                self.outcome.first_loss.get_or_insert(now);
                return;
            };
            let fits = ((self.queues.block - open.bytes) / room).floor();
            let put = frames.min(fits.max(0.0));
            open.bytes += put * room;
            open.work += put * costs.kept;
            open.variance += put * costs.deviation.powi(2);
            if let Some(free) = &mut self.free {
                *free = free.max(now) + put * costs.kept;
                open.until = *free;
            }
            frames -= put;
            if frames > 0.0 {
                self.close(true, now);
            }
        }
    }

    fn in_use(&self) -> u64 {
        self.closed.len() as u64 + u64::from(self.open.is_some()) + u64::from(self.read.is_some())
    }

    /// Opens a block, where one is free.
    fn reopen(&mut self, now: f64) {
        if self.open.is_none() && self.in_use() < self.queues.blocks {
            self.open = Some(Block::default());
            if self.queues.clock == Clock::Block {
                self.next_retire = now + self.queues.retire;
            }
            self.outcome.most_blocks = self.outcome.most_blocks.max(self.in_use());
        }
    }

    /// Closes the open block: where it is full, or after some time where there is anything in it.
    fn close(&mut self, is_full: bool, now: f64) {
        let Some(mut block) = self.open.take_if(|open| is_full || open.bytes > 0.0) else { return };
        if block.variance > 0.0 {
            // The sum of many frames, whatever the distribution of each.
            let off = normal(&mut self.chance) * block.variance.sqrt();
            block.work = (block.work + off).max(0.0);
        }
        self.closed.push_back(block);
        self.waiter.is_ready(now, &mut self.chance);
        self.reopen(now);
    }

    /// Lets the application read for the last part of the time until `end`; a block is free once all of it was read.
    fn read(&mut self, part: f64, end: f64) {
        if self.free.is_some() {
            while let Some(block) = self.read.take().or_else(|| self.closed.pop_front()) {
                if block.until > end {
                    self.read = Some(block);
                    return;
                }
            }
            return;
        }
        let mut time = part.min(end - self.waiter.reads_from());
        while time > 0.0 {
            let Some(mut block) = self.read.take().or_else(|| self.closed.pop_front()) else {
                self.waiter.idles(end - time);
                return;
            };
            let spent = block.work.min(time);
            time -= spent;
            block.work -= spent;
            if block.work > 0.0 {
                self.read = Some(block);
            } else {
                self.waiter.has_read(end - time);
            }
        }
    }

    /// What still lies in the backlog comes to the ring; what lies in the ring is read, which loses nothing.
    fn finish(&mut self, now: f64) {
        let frames = self.backlog.iter().map(|group| group.frames * group.costs.frame);
        let needed = self.interrupt + frames.sum::<f64>();
        // A little more, for what rounding left.
        self.run(now, now + needed * 1.001 + 1.0);
    }
}

/// A number from the standard normal distribution.
fn normal(chance: &mut Random) -> f64 {
    const STEPS: u64 = 1 << 32;
    Normal::standard().inverse_cdf((chance.below(STEPS) as f64 + 0.5) / STEPS as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: Stalls = Stalls { watched: 1, lengths: Vec::new() };
    const AT_ONCE: Wakes = Wakes { lengths: Vec::new() };
    const FREE: Held<'_> = Held { stalls: &NEVER, wakes: &AT_ONCE, is_by_time: false };

    /// Frames of 1000 bytes at even gaps for some seconds, eight together.
    fn even(rate: f64, seconds: f64, costs: Costs) -> impl Iterator<Item = FrameArrival> {
        let groups = (rate * seconds / 8.0) as u32;
        (0..groups).map(move |group| FrameArrival {
            at: f64::from(group) * 8e9 / rate,
            frames: 8.0,
            room: 1000.0,
            costs,
        })
    }

    fn queues(blocks: u64) -> Queues {
        Queues { backlog: 1000.0, block: 100_000.0, blocks, retire: 50e6, clock: Clock::Steady }
    }

    fn lost(rate: f64, seconds: f64, costs: Costs, blocks: u64) -> SimulationOutcome {
        simulate(even(rate, seconds, costs), &queues(blocks), FREE, &mut Random::new(1))
    }

    #[track_caller]
    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 0.01, "{value} is not {expected}");
    }

    #[test]
    fn overload_loses_what_is_not_served() {
        let costs = Costs { wake: 0.0, share: 1.0, frame: 0.0, kept: 10_000.0, deviation: 0.0 };
        for rate in [120e3, 200e3, 400e3] {
            near(lost(rate, 5.0, costs, 8).loss(), 1.0 - 100e3 / rate - 700.0 / (rate * 5.0));
        }
        assert_eq!(lost(99e3, 5.0, costs, 8).loss(), 0.0);
        // Each frame that comes slows the service of all.
        let costs = Costs { wake: 0.0, share: 1.0, frame: 2000.0, kept: 8000.0, deviation: 0.0 };
        for rate in [150e3, 250e3, 400e3, 490e3] {
            near(lost(rate, 5.0, costs, 8).loss(), 1.0 - costs.served(rate, 8) / rate);
        }
        assert_eq!(lost(99e3, 5.0, costs, 8).loss(), 0.0);
        // Beyond what the kernel alone can do, the backlog loses the rest.
        let outcome = lost(800e3, 5.0, costs, 8);
        near(outcome.lost_backlog / outcome.frames, 1.0 - 500.0 / 800.0);
        near(outcome.loss(), 1.0);
    }

    #[test]
    fn a_ring_of_one_block_stands_still_while_it_is_read() {
        let costs = Costs { wake: 0.0, share: 1.0, frame: 0.0, kept: 1e9 / 320e3, deviation: 0.0 };
        for rate in [199e3, 250e3, 299e3] {
            near(lost(rate, 5.0, costs, 1).loss(), rate / (rate + 320e3));
        }
        assert_eq!(lost(199e3, 5.0, costs, 3).loss(), 0.0);
    }

    #[test]
    fn a_burst_that_the_ring_holds_is_survived() {
        let costs = Costs { wake: 0.0, share: 1.0, frame: 0.0, kept: 10_000.0, deviation: 0.0 };
        // Blocks of 100 frames are full every 0.25 ms. The first is read from 0.25 to 1.25 ms, the second until 2.25 ms: so
        // there is room for 1000 frames until the third was read, and these have come after 2.5 ms.
        let outcome = |frames: f64| lost(400e3, frames / 400e3, costs, 8);
        assert_eq!(outcome(1000.0).loss(), 0.0);
        let outcome = outcome(2000.0);
        assert_eq!(outcome.first_loss, Some(2.5e6));
        assert_eq!(outcome.most_blocks, 8);
    }

    #[test]
    fn a_server_by_time_works_since_frames_arrive() {
        let costs = Costs { wake: 0.0, share: 1.0, frame: 0.0, kept: 10_000.0, deviation: 0.0 };
        // Blocks of 100 frames, full every 0.42 ms. The m-th is done after m ms, so that the 14th finds the sixth not done after
        // 5.46 ms; who begins when the first one is full has not done the fifth when the 13th is to begin.
        let first = |is_by_time| {
            let held = Held { is_by_time, ..FREE };
            let arrivals = even(100.0 / 0.42e-3, 10e-3, costs);
            simulate(arrivals, &queues(8), held, &mut Random::new(1)).first_loss.unwrap()
        };
        let [server, other] = [first(true), first(false)];
        assert!((5.4e6..5.5e6).contains(&server), "{server}");
        assert!((5.0e6..5.1e6).contains(&other), "{other}");
        // Half a block is done as soon as it is read where it came that slowly.
        let slow = simulate(
            even(90e3, 5.0, costs),
            &queues(2),
            Held { is_by_time: true, ..FREE },
            &mut Random::new(1),
        );
        assert_eq!(slow.loss(), 0.0);
    }

    #[test]
    fn what_comes_while_the_machine_stands_still_waits_in_the_backlog() {
        let costs = Costs { wake: 0.0, share: 1.0, frame: 500.0, kept: 500.0, deviation: 0.0 };
        // A stall of 5 ms in about 50: 500 frames wait at 100,000 a second, and at 400,000 only 1000 of 2000.
        let stalls = Stalls { watched: 500_000_000, lengths: vec![5_000_000; 10] };
        let lost = |rate| {
            let arrivals = even(rate, 20.0, costs);
            simulate(arrivals, &queues(1000), Held { stalls: &stalls, ..FREE }, &mut Random::new(7))
        };
        assert_eq!(lost(100e3).loss(), 0.0);
        let outcome = lost(400e3);
        assert_eq!(outcome.lost_ring, 0.0);
        near(outcome.loss(), 1000.0 / 400e3 / 0.05);
    }

    #[test]
    fn time_that_passed_is_gone() {
        let costs = Costs { wake: 0.0, share: 1.0, frame: 500.0, kept: 500.0, deviation: 0.0 };
        // A tenth of a second, which is longer than blocks stay open, after a second each.
        let stalls = Stalls { watched: 10_000_000_000, lengths: vec![100_000_000; 10] };
        let arrivals = even(400e3, 60.0, costs);
        let outcome = simulate(
            arrivals,
            &queues(1000),
            Held { stalls: &stalls, ..FREE },
            &mut Random::new(3),
        );
        let expected = 39_000.0 / 400e3;
        assert!((outcome.loss() - expected).abs() < 0.03, "{outcome:?}");
    }

    #[test]
    fn numbers_that_leave_a_rest_come_to_an_end() {
        for number in 1..400 {
            let costs = Costs {
                wake: 0.0,
                share: 1.0,
                frame: 1586.017 + f64::from(number) / 7.0,
                kept: 9361.3,
                deviation: 0.0,
            };
            let outcome = lost(100e3 + f64::from(number) * 1.1e3, 0.05, costs, 4);
            assert!(outcome.frames > 0.0 && outcome.loss() <= 1.0, "{outcome:?}");
        }
    }

    #[test]
    fn interrupts_leave_time_to_the_application() {
        let costs =
            Costs { wake: 8000.0, share: 0.5, frame: 1000.0, kept: 20_000.0, deviation: 0.0 };
        for rate in [40e3, 60e3, 80e3, 150e3, 300e3] {
            let arrivals = (0..(rate * 3.0) as u32).map(|number| FrameArrival {
                at: f64::from(number) * 1e9 / rate,
                frames: 1.0,
                room: 1000.0,
                costs,
            });
            let outcome = simulate(arrivals, &queues(8), FREE, &mut Random::new(1));
            near(outcome.loss(), 1.0 - (costs.served(rate, 1) * 3.0 + 700.0) / (rate * 3.0));
        }
    }

    #[test]
    fn kernels_count_from_different_times() {
        let of = ["6.18.44-fc", "7.0.1", "6.17.9-generic", "5.15.0-91-generic", "?"].map(Clock::of);
        use Clock::{Block, Steady};
        assert_eq!(of, [Steady, Steady, Block, Block, Steady]);
        let costs = Costs { share: 1.0, kept: 10_000.0, ..Costs::default() };
        // A block that was begun after 40 ms is closed at 50 ms by the one clock, and then read; by the other one at 90.
        let group = |at, frames| FrameArrival { at, frames, room: 1000.0, costs };
        let lost = |clock| {
            let queues = Queues { clock, ..queues(2) };
            let mut processor = Processor::new(queues, FREE.wakes, Random::new(1));
            for arrival in [group(0.0, 100.0), group(40e6, 90.0), group(60e6, 150.0)] {
                processor.run(processor.arrived.max(0.0), arrival.at);
                processor.arrive(arrival);
            }
            processor.finish(60e6);
            processor.outcome.lost_ring
        };
        assert_eq!((lost(Steady), lost(Block)), (0.0, 40.0));
    }

    #[test]
    fn blocks_are_closed_after_some_time() {
        let costs = Costs { wake: 0.0, share: 1.0, frame: 0.0, kept: 10_000.0, deviation: 0.0 };
        let group = |at, frames| FrameArrival { at, frames, room: 1000.0, costs };
        // Two blocks of 100 frames: what lay in the first was read long before the others come.
        let outcome = |at| {
            let arrivals = [group(0.0, 90.0), group(at, 180.0)].into_iter();
            simulate(arrivals, &queues(2), FREE, &mut Random::new(1))
        };
        assert_eq!(outcome(200e6).lost_ring, 0.0);
        assert_eq!(outcome(20e6).lost_ring, 70.0);
    }

    #[test]
    fn blocks_take_as_long_as_their_frames_do_by_chance() {
        let mut chance = Random::new(5);
        let drawn: Vec<_> = (0..10_000).map(|_| normal(&mut chance)).collect();
        let mean = drawn.iter().sum::<f64>() / 1e4;
        let variance = drawn.iter().map(|one| one * one).sum::<f64>() / 1e4;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
        // Two blocks of 100 frames, of which each takes 9 us and comes every 10: one that takes a tenth longer is too late, and
        // blocks of frames that differ by their mean are off by a tenth.
        let costs = Costs { wake: 0.0, share: 1.0, frame: 0.0, kept: 9000.0, deviation: 9000.0 };
        let alike = Costs { deviation: 0.0, ..costs };
        let of_ring = |costs, blocks| {
            let queues = Queues { retire: 1e12, ..queues(blocks) };
            simulate(even(100e3, 5.0, costs), &queues, FREE, &mut Random::new(1)).loss()
        };
        let of = |costs| of_ring(costs, 2);
        assert_eq!(of(alike), 0.0);
        assert!(of(costs) > 0.002 && of(costs) < 0.05, "{}", of(costs));
        // With room for more of them nothing is lost: they come to their mean.
        assert_eq!(of_ring(costs, 32), 0.0);
    }

    #[test]
    fn who_wakes_late_has_less_room() {
        // Blocks of 100 frames fill in 11 ms and are read in 9.9: where each is begun 2 ms late, the other one of two is full
        // before it is done; a third one is room enough.
        let costs = Costs { wake: 0.0, share: 1.0, frame: 0.0, kept: 99_000.0, deviation: 0.0 };
        let late = Wakes { lengths: vec![2_000_000] };
        let of = |wakes: &Wakes, blocks| {
            let held = Held { wakes, ..FREE };
            let arrivals = even(9090.0, 10.0, costs);
            let queues = Queues { retire: 1e12, ..queues(blocks) };
            simulate(arrivals, &queues, held, &mut Random::new(1)).loss()
        };
        assert_eq!((of(&AT_ONCE, 2), of(&late, 3)), (0.0, 0.0));
        assert!(of(&late, 2) > 0.03, "{}", of(&late, 2));
        // Who is never idle never sleeps.
        let busy = Costs { kept: 200_000.0, ..costs };
        let of = |wakes: &Wakes| {
            let held = Held { wakes, ..FREE };
            simulate(even(9090.0, 10.0, busy), &queues(4), held, &mut Random::new(1)).loss()
        };
        near(of(&late), of(&AT_ONCE));
    }
}
