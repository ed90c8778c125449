//! Frames to the wire, each when it is due.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::ensure;
use netsniff_capture::monotonic;
use netsniff_capture::transmit::Transmitter;
use netsniff_traffic::pace::{Late, Pacer};
use netsniff_traffic::plan::{Outgoing, Plan};

use super::gaps::{GapErrors, Quantiles};
use super::wire::Wire;

/// The time that a frame may wait for room before the sender gives up.
const PATIENCE: u64 = 2_000_000_000;

/// Frames that are handed to the kernel together where they are due together: as many as it sends through an XDP
/// socket with one call.
const BATCH: u64 = 32;

/// The longest sleep at once: so soon a signal is noticed.
const NAP: u64 = 50_000_000;

/// From where frames come.
pub trait Frames {
    /// Moves on to the next frame.
    ///
    /// # Errors
    ///
    /// Where no more frames can be had though there should be some.
    fn advance(&mut self) -> anyhow::Result<Step>;

    /// Puts the frame into the room of a buffer, and returns its length. It leaves so many nanoseconds after the
    /// start.
    fn write(&mut self, buffer: usize, room: &mut [u8], sent: u64) -> usize;
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A frame.
    Frame(Outgoing),
    /// The same frames again.
    Again,
    /// Nothing more.
    End,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Orders {
    /// When frames are due; `None` for as fast as possible.
    pub plan: Option<Plan>,
    /// What to do about late ones.
    pub late: Late,
    /// Frames to send at most.
    pub most: u64,
    /// Time to send at most.
    pub duration: Option<Duration>,
}

/// What was done.
#[derive(Debug)]
pub struct Sent {
    /// Frames that the kernel took.
    pub frames: u64,
    /// Their bytes, without frame check sequences.
    pub bytes: u64,
    /// Nanoseconds from when the first frame left to when the last one did.
    pub span: u64,
    /// The same as planned; `None` where nothing was.
    pub planned: Option<u64>,
    /// How often frames became late.
    pub stalls: u64,
    /// Frames that left late.
    pub frames_behind: u64,
    /// Nanoseconds that the plan was moved by.
    pub slipped: u64,
    /// Nanoseconds that the latest frame was late.
    pub latest: u64,
    /// Errors of the gaps, as they were handed to the kernel.
    pub gaps: Option<Quantiles>,
    /// How often the kernel had no room.
    pub refusals: u64,
    /// The plan, with what it counted.
    pub plan: Option<Plan>,
    /// Whether a signal ended it.
    pub is_interrupted: bool,
    /// Why it ended before its time.
    pub failure: Option<anyhow::Error>,
}

/// Sends frames until there are no more, the orders end it, or `stop` is set.
///
/// # Errors
///
/// None that leave no [`Sent`] but for lack of memory.
pub fn drive(
    frames: &mut impl Frames,
    orders: Orders,
    wire: &mut Wire,
    stop: &AtomicBool,
) -> anyhow::Result<Sent> {
    // Sleeping and waking is done once for practice, and tells how late this machine wakes up.
    let margin = wake_up_margin();
    let start = monotonic() + 1_000_000;
    let end = orders.duration.map_or(u64::MAX, |duration| {
        start.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    });
    let mut driver = Driver {
        transmitter: wire.transmitter.as_mut(),
        stop,
        start,
        end,
        margin,
        most: orders.most,
        plan: orders.plan,
        pacer: Pacer::new(start, orders.late),
        gaps: GapErrors::new()?,
        left: None,
        planned: None,
        frames: 0,
        bytes: 0,
        unflushed: 0,
    };
    let failure = driver.run(frames).and_then(|()| driver.finish()).err();
    let lost = driver.transmitter.pending() as u64;
    let span = |times: Option<(u64, u64)>| times.map(|(first, last)| last - first);
    let refusals = driver.transmitter.refusals();
    Ok(Sent {
        frames: driver.frames - lost,
        bytes: driver.bytes,
        span: span(driver.left).unwrap_or(0),
        planned: span(driver.planned),
        stalls: driver.pacer.stalls(),
        frames_behind: driver.pacer.frames_behind(),
        slipped: driver.pacer.slipped(),
        latest: driver.pacer.latest(),
        gaps: driver.gaps.quantiles().filter(|_| driver.plan.is_some()),
        refusals,
        plan: driver.plan,
        is_interrupted: stop.load(Ordering::Relaxed),
        failure,
    })
}

struct Driver<'a> {
    transmitter: &'a mut dyn Transmitter,
    stop: &'a AtomicBool,
    start: u64,
    end: u64,
    margin: u64,
    most: u64,
    plan: Option<Plan>,
    pacer: Pacer,
    gaps: GapErrors,
    /// When the first frame left, and the last one.
    left: Option<(u64, u64)>,
    /// The same as planned.
    planned: Option<(u64, u64)>,
    frames: u64,
    bytes: u64,
    /// Frames that were filled since the kernel was last called.
    unflushed: u64,
}

impl Driver<'_> {
    fn run(&mut self, frames: &mut impl Frames) -> anyhow::Result<()> {
        while self.frames < self.most {
            let frame = match frames.advance()? {
                Step::Frame(frame) => frame,
                Step::Again => {
                    self.plan.iter_mut().for_each(Plan::again);
                    continue;
                }
                Step::End => break,
            };
            let planned = self.plan.as_mut().map(|plan| plan.due(&frame));
            let Some(now) = self.wait(planned)? else { break };
            self.send(frames, planned, now)?;
        }
        Ok(())
    }

    /// Waits until a frame is due, and returns the time; `None` where it is over before that.
    fn wait(&mut self, planned: Option<u64>) -> anyhow::Result<Option<u64>> {
        let mut now = monotonic();
        let due = self.pacer.due(planned.unwrap_or(0));
        if now < due {
            self.flush()?;
            now = monotonic();
        }
        while now < due && now < self.end && !self.stop.load(Ordering::Relaxed) {
            let left = due.min(self.end) - now;
            if left > self.margin {
                thread::sleep(Duration::from_nanos((left - self.margin).min(NAP)));
            } else {
                core::hint::spin_loop();
            }
            now = monotonic();
        }
        let is_over = now >= self.end || self.stop.load(Ordering::Relaxed);
        Ok((!is_over).then_some(now))
    }

    fn send(
        &mut self,
        frames: &mut impl Frames,
        planned: Option<u64>,
        now: u64,
    ) -> anyhow::Result<()> {
        if self.transmitter.room().is_none() {
            self.flush()?;
            self.until(|transmitter| transmitter.room().is_some())?;
        }
        let Some((buffer, room)) = self.transmitter.room() else { return Ok(()) };
        let len = frames.write(buffer, room, now.saturating_sub(self.start));
        self.transmitter.fill(len);
        if let Some(planned) = planned {
            self.gaps.note(planned, now);
            self.pacer.leaves(planned, now);
            let (first, last) = self.planned.get_or_insert((planned, planned));
            *last = planned.max(*first);
        }
        self.left.get_or_insert((now, now)).1 = now;
        (self.frames, self.bytes) = (self.frames + 1, self.bytes + len as u64);
        self.unflushed += 1;
        if self.unflushed >= BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        if self.unflushed > 0 {
            self.transmitter.flush()?;
            self.unflushed = 0;
        }
        Ok(())
    }

    /// Hands over what is left.
    fn finish(&mut self) -> anyhow::Result<()> {
        self.flush()?;
        self.until(|transmitter| transmitter.pending() == 0)
    }

    /// Hands frames to the kernel until something holds.
    fn until(&mut self, holds: impl Fn(&mut dyn Transmitter) -> bool) -> anyhow::Result<()> {
        let mut since = None;
        while !holds(self.transmitter) {
            self.transmitter.flush()?;
            let now = monotonic();
            ensure!(
                now < *since.get_or_insert(now) + PATIENCE,
                "the kernel takes no more frames for {} s",
                PATIENCE / 1_000_000_000
            );
        }
        Ok(())
    }
}

/// How much earlier than needed to wake up: twice what this machine is late by.
fn wake_up_margin() -> u64 {
    const SLEEP: u64 = 100_000;
    let late = (0..8).map(|_| {
        let before = monotonic();
        thread::sleep(Duration::from_nanos(SLEEP));
        (monotonic() - before).saturating_sub(SLEEP)
    });
    (2 * late.max().unwrap_or_default()).clamp(50_000, 2_000_000)
}
