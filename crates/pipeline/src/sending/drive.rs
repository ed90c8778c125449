//! Frames to the wire, each when it is due.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::ensure;
use netsniff_capture::monotonic;
use netsniff_capture::transmit::Transmitter;
use netsniff_console::clock;
use netsniff_packet::Timestamp;
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

/// Before frames that are far apart the processor is kept awake for a fiftieth of the time between them, and for so long
/// at most: after a long sleep it is slow at first, by more than it wakes up late.
const AWAKE: u64 = 50;
const LONGEST_AWAKE: u64 = 20_000_000;

/// How long the kernel is left alone with frames that it had no room for, until it is asked again.
const AGAIN: u64 = 20_000;

/// From where frames come.
pub trait Frames {
    /// Moves on to the next frame.
    ///
    /// # Errors
    ///
    /// Where no more frames can be had though there should be some.
    fn advance(&mut self) -> anyhow::Result<SendStep>;

    /// Puts the frame into the room of a buffer, and returns its length. It leaves so many nanoseconds after the
    /// start.
    fn write(&mut self, buffer: usize, room: &mut [u8], sent: u64) -> usize;

    /// Whether the next frame is at hand, so that [`Self::advance`] waits for nothing.
    fn is_ready(&self) -> bool {
        true
    }

    /// Tells when the start is, by the time of day.
    fn begin(&mut self, _start: Timestamp) {}

    /// The wire that the frame leaves on: 0, or 1 where there are two.
    fn wire(&self) -> usize {
        0
    }
}

/// The next step of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendStep {
    /// A frame is to be sent.
    Frame(Outgoing),
    /// The same frames again.
    Again,
    /// There is nothing more to send.
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

/// What a sender has done.
#[derive(Debug)]
pub struct SendOutcome {
    /// Frames that the kernel took.
    pub frames: u64,
    /// The same for each wire.
    pub by_wire: Vec<u64>,
    /// Frames that were offered and not taken before it ended; bytes and times below are with them.
    pub untaken: u64,
    /// Bytes of frames, without frame check sequences.
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
    /// Frames that the kernel took, and lost since an interface refused them.
    pub lost: u64,
    /// The plan, with what it counted.
    pub plan: Option<Plan>,
    /// Whether a signal ended it.
    pub is_interrupted: bool,
    /// Why it ended before its time.
    pub failure: Option<anyhow::Error>,
}

/// Sends frames on one wire or two until there are no more, the orders end it, or `stop` is set. What goes wrong
/// meanwhile is in [`SendOutcome`], with what was sent before.
///
/// # Errors
///
/// An interface that is gone before anything is sent.
pub fn drive(
    frames: &mut impl Frames,
    orders: Orders,
    wires: &mut [Wire],
    stop: &AtomicBool,
) -> anyhow::Result<SendOutcome> {
    // Sleeping and waking is done once for practice, and tells how late this machine wakes up.
    let margin = wake_up_margin();
    let start = monotonic() + 1_000_000;
    let end = orders.duration.map_or(u64::MAX, |duration| {
        start.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    });
    // What was sent and counted before is another's business.
    wires.iter_mut().try_for_each(Wire::begin)?;
    frames.begin(clock::now().offset(start.wrapping_sub(monotonic()).cast_signed()));
    let mut driver = Driver {
        sides: wires.iter_mut().map(WireSide::new).collect(),
        stop,
        start,
        end,
        margin,
        most: orders.most,
        plan: orders.plan,
        pacer: Pacer::new(start, orders.late),
        gaps: GapErrors::new()?,
        wire: 0,
        now: 0,
        left: None,
        planned: None,
        frames: 0,
        bytes: 0,
    };
    let failure = driver.run(frames).and_then(|()| driver.finish()).err();
    Ok(driver.sent(failure))
}

struct WireSide<'a> {
    transmitter: &'a mut dyn Transmitter,
    /// Frames that were filled, and those of them since the kernel was last called.
    frames: u64,
    unflushed: u64,
    /// Since when the kernel has taken none of those that it was offered.
    stuck: Option<u64>,
    /// What the transmitter had counted before.
    refusals: u64,
    lost: u64,
}

impl<'a> WireSide<'a> {
    fn new(wire: &'a mut Wire) -> Self {
        let transmitter = wire.transmitter.as_mut();
        let (refusals, lost) = (transmitter.refusals(), transmitter.lost());
        Self { transmitter, frames: 0, unflushed: 0, stuck: None, refusals, lost }
    }

    /// Frames that the kernel took.
    fn taken(&mut self) -> u64 {
        self.frames.saturating_sub(self.transmitter.pending() as u64)
    }

    /// Hands frames to the kernel that it was not offered yet.
    fn flush(&mut self) -> anyhow::Result<()> {
        if self.unflushed > 0 { self.offer() } else { Ok(()) }
    }

    /// Whether the kernel has not taken all that it was offered.
    fn is_behind(&mut self) -> bool {
        self.transmitter.pending() > 0
    }

    fn behind(&mut self) -> Option<&mut Self> {
        if self.is_behind() { Some(self) } else { None }
    }

    /// Hands frames to the kernel, once more if need be.
    fn offer(&mut self) -> anyhow::Result<()> {
        let taken = self.transmitter.flush()?;
        self.unflushed = 0;
        if taken > 0 || !self.is_behind() {
            self.stuck = None;
            return Ok(());
        }
        let now = monotonic();
        ensure!(
            now < *self.stuck.get_or_insert(now) + PATIENCE,
            "the kernel takes no more frames for {} s",
            PATIENCE / 1_000_000_000
        );
        Ok(())
    }

    /// Hands frames to the kernel until something holds.
    fn until(&mut self, holds: impl Fn(&mut dyn Transmitter) -> bool) -> anyhow::Result<()> {
        while !holds(self.transmitter) {
            self.offer()?;
        }
        Ok(())
    }
}

struct Driver<'a> {
    sides: Vec<WireSide<'a>>,
    stop: &'a AtomicBool,
    start: u64,
    end: u64,
    margin: u64,
    most: u64,
    plan: Option<Plan>,
    pacer: Pacer,
    gaps: GapErrors,
    /// The wire that the last frame left on.
    wire: usize,
    /// The clock as it was read last.
    now: u64,
    /// When the first frame left, and the last one.
    left: Option<(u64, u64)>,
    /// The same as planned.
    planned: Option<(u64, u64)>,
    frames: u64,
    bytes: u64,
}

impl Driver<'_> {
    fn run(&mut self, frames: &mut impl Frames) -> anyhow::Result<()> {
        // What nothing else delays is not to leave before the start, which its stamps count from.
        while monotonic() < self.start {
            core::hint::spin_loop();
        }
        while self.frames < self.most {
            if !frames.is_ready() {
                self.flush()?;
            }
            let frame = match frames.advance()? {
                SendStep::Frame(frame) => frame,
                SendStep::Again => {
                    self.plan.iter_mut().for_each(Plan::again);
                    continue;
                }
                SendStep::End => break,
            };
            let planned = self.plan.as_mut().map(|plan| plan.due(&frame));
            if !self.wait(planned)? {
                break;
            }
            self.send(frames, planned)?;
        }
        Ok(())
    }

    /// Waits until a frame is due; `false` where it is over before that.
    fn wait(&mut self, planned: Option<u64>) -> anyhow::Result<bool> {
        let Some(planned) = planned else { return Ok(self.is_on()) };
        self.now = monotonic();
        let due = self.pacer.due(planned);
        if self.now < due {
            self.flush()?;
            self.now = monotonic();
        }
        let mut again = self.now;
        let margin = self.margin.max((due.saturating_sub(self.now) / AWAKE).min(LONGEST_AWAKE));
        while self.now < due && !self.is_over() {
            let left = due.min(self.end) - self.now;
            let is_behind = self.sides.iter_mut().any(WireSide::is_behind);
            if is_behind && self.now >= again {
                // What it had no room for is not to wait for the next frame.
                self.sides.iter_mut().filter_map(WireSide::behind).try_for_each(WireSide::offer)?;
                again = monotonic() + AGAIN;
            } else if left > margin && !is_behind {
                thread::sleep(Duration::from_nanos((left - margin).min(NAP)));
            } else {
                core::hint::spin_loop();
            }
            self.now = monotonic();
        }
        Ok(!self.is_over())
    }

    /// Where nothing is due at any time, whether it goes on: the clock is read once for each batch.
    fn is_on(&mut self) -> bool {
        if self.frames.is_multiple_of(BATCH) {
            self.now = monotonic();
        }
        !self.is_over()
    }

    fn is_over(&self) -> bool {
        self.now >= self.end || self.stop.load(Ordering::Relaxed)
    }

    fn send(&mut self, frames: &mut impl Frames, planned: Option<u64>) -> anyhow::Result<()> {
        let wire = frames.wire();
        if wire != self.wire {
            // What the other side answers is not to overtake the question.
            self.sides[self.wire].flush()?;
            self.wire = wire;
        }
        let side = &mut self.sides[wire];
        if side.transmitter.room().is_none() {
            side.flush()?;
            side.until(|transmitter| transmitter.room().is_some())?;
            self.now = monotonic();
        }
        if self.left.is_none()
            && let Some(planned) = planned
        {
            // The plan begins with the first frame.
            self.pacer = self.pacer.begun_at(self.now.saturating_sub(planned));
        }
        let (now, sent) = (self.now, self.now.saturating_sub(self.start));
        let Some((buffer, room)) = side.transmitter.room() else { return Ok(()) };
        let len = frames.write(buffer, room, sent);
        side.transmitter.fill(len);
        side.frames += 1;
        side.unflushed += 1;
        if let Some(planned) = planned {
            self.gaps.note(planned, now);
            self.pacer.leaves(planned, now);
            let (first, last) = self.planned.get_or_insert((planned, planned));
            *last = planned.max(*first);
        }
        self.left.get_or_insert((now, now)).1 = now;
        (self.frames, self.bytes) = (self.frames + 1, self.bytes + len as u64);
        if side.unflushed >= BATCH { side.flush() } else { Ok(()) }
    }

    fn sent(mut self, failure: Option<anyhow::Error>) -> SendOutcome {
        let span = |times: Option<(u64, u64)>| times.map(|(first, last)| last - first);
        let by_wire: Vec<u64> = self.sides.iter_mut().map(WireSide::taken).collect();
        let frames = by_wire.iter().sum();
        let sides = self.sides.iter();
        let refusals = sides.clone().map(|side| side.transmitter.refusals() - side.refusals).sum();
        SendOutcome {
            frames,
            by_wire,
            untaken: self.frames - frames,
            bytes: self.bytes,
            span: span(self.left).unwrap_or(0),
            planned: span(self.planned),
            stalls: self.pacer.stalls(),
            frames_behind: self.pacer.frames_behind(),
            slipped: self.pacer.slipped(),
            latest: self.pacer.latest(),
            gaps: self.gaps.quantiles().filter(|_| self.plan.is_some()),
            refusals,
            lost: sides.map(|side| side.transmitter.lost() - side.lost).sum(),
            plan: self.plan,
            is_interrupted: self.stop.load(Ordering::Relaxed),
            failure,
        }
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.sides.iter_mut().try_for_each(WireSide::flush)
    }

    /// Hands over what is left.
    fn finish(&mut self) -> anyhow::Result<()> {
        self.flush()?;
        let is_behind = self.sides.iter_mut().any(WireSide::is_behind);
        let empty = |side: &mut WireSide<'_>| side.until(|transmitter| transmitter.pending() == 0);
        self.sides.iter_mut().try_for_each(empty)?;
        if (is_behind || self.plan.is_none())
            && let Some((_, last)) = &mut self.left
        {
            *last = monotonic();
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
