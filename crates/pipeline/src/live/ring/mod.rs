//! THE hot loop of live traffic: what a ring lends is put in order and consumed, in one thread.

use std::time::{Duration, Instant};

use netsniff_capture::counters::Occupancy;
use netsniff_capture::{Received, Receiver};
use netsniff_packet::Timestamp;

use super::books::{Control, Earlier, LAG, LinkState, Moment, Return, RingReport};
use super::onset::Onset;
use super::reorder::{PacketSlice, ReorderBuffer, RingPackets};
use super::select::{Select, Wanted};

/// How long a ring is waited for before the thread looks at what else there is to do.
const PATIENCE: Duration = Duration::from_millis(50);

/// How far back time surely is known while an interface is down or gone.
const LINK_PAUSE: Duration = Duration::from_millis(100);

/// How long packets stay in the ring until the consumer is asked again whether it has room.
pub(super) const NO_ROOM_PAUSE: Duration = Duration::from_millis(1);

/// How long they may stay there once the run is to end.
const NO_ROOM_AT_STOP: Duration = Duration::from_millis(300);

/// What to do where an interface is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum IfGone {
    /// End the run
    #[default]
    End,
    /// Wait until one of its name is there, and go on with that
    Wait,
}

/// How far a consumer without room may make a ring wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backpressure {
    /// Until nothing more is left in the ring. Nothing else is done meanwhile, such as a look at the interface.
    pub time: Duration,
    /// What part of the ring packets may fill, in percent.
    pub percent: u32,
}

impl Backpressure {
    /// Its time, or what is left of that where the run is to end.
    pub(super) fn until_stop(&self, is_stopping: bool) -> Duration {
        if is_stopping { self.time.min(NO_ROOM_AT_STOP) } else { self.time }
    }
}

/// Gets the packets of a ring in order, and what was lost between them.
pub trait Consumer: Send {
    /// What to leave in the ring since there is no room here; `None` where there is.
    fn wait_for_room(&mut self) -> Option<Backpressure> {
        None
    }

    /// Takes packets, which are lent until it returns.
    fn group(&mut self, group: PacketSlice<'_>);

    /// Tells how full the ring is, at `now`.
    fn occupied(&mut self, _occupancy: Occupancy, _now: Timestamp) {}

    /// Nothing came for a while; everything up to `settled` has been handed over.
    fn idle(&mut self, settled: Timestamp);

    /// Only what is in the ring still comes: nothing is captured any more, so that waiting loses nothing.
    fn stopping(&mut self) {}

    /// Nothing more will come.
    fn finish(&mut self);

    /// Tells what was counted.
    fn fill(&self, report: &mut RingReport);

    /// What it told was handed in: peaks begin anew.
    fn reported(&mut self) {}
}

/// Opens the interface again by its name; `None` while there is none.
pub type Reopen = Box<dyn FnMut() -> Option<Box<dyn Receiver>> + Send>;

/// What one ring's thread works with.
pub struct RingWork<'a, C> {
    /// Its number among the rings.
    pub number: usize,
    /// The processor that its thread is to run on.
    pub cpu: Option<usize>,
    /// Where packets come from; started.
    pub receiver: Box<dyn Receiver>,
    /// What takes the packets of the ring.
    pub consumer: C,
    /// What the ruling thread wants.
    pub control: &'a Control,
    /// Asked for each packet whether it is wanted, where the kernel cannot tell.
    pub wanted: Option<Wanted>,
    /// How long packets wait for earlier ones.
    pub window: Duration,
    /// Packets after which the run ends, over all rings.
    pub count: Option<u64>,
    /// How to go on once the interface is gone; without it the run ends.
    pub reopen: Option<Reopen>,
}

/// What came of one ring.
#[derive(Debug)]
pub struct RingOutcome<C> {
    /// What consumed its packets.
    pub consumer: C,
    /// What was counted to the end.
    pub report: RingReport,
    /// Why the ring ended early, if so.
    pub failure: Option<String>,
}

impl<C: Consumer> RingWork<'_, C> {
    /// Captures until the run is to end or the interface is gone.
    #[must_use]
    pub fn run(self) -> RingOutcome<C> {
        // Checked with the arguments; where it fails all the same the ring runs anywhere.
        let _ = self.cpu.map(netsniff_capture::pin);
        let turn = Loop {
            number: self.number,
            receiver: Some(self.receiver),
            consumer: self.consumer,
            select: Select::new(self.wanted, self.count, self.control),
            control: self.control,
            order: ReorderBuffer::new(self.window),
            reopen: self.reopen,
            link: LinkState::Up,
            downs: 0,
            onset: Onset::default(),
            reported: 0,
            is_stopping: false,
            full_since: None,
            before: None,
            returned: None,
        };
        turn.run()
    }
}

/// The state of the thread.
struct Loop<'a, C> {
    number: usize,
    /// `None` while the interface is gone.
    receiver: Option<Box<dyn Receiver>>,
    consumer: C,
    select: Select<'a>,
    control: &'a Control,
    order: ReorderBuffer,
    reopen: Option<Reopen>,
    link: LinkState,
    downs: u64,
    onset: Onset,
    /// The number of the report that was made last.
    reported: u64,
    is_stopping: bool,
    /// Since when the consumer has no room.
    full_since: Option<Instant>,
    /// What earlier rings of an interface that went away and came back had counted.
    before: Option<RingReport>,
    returned: Option<Return>,
}

/// What one turn of the loop came to.
enum RingRound {
    GoOn,
    End,
}

impl<C: Consumer> Loop<'_, C> {
    fn run(mut self) -> RingOutcome<C> {
        let failure = loop {
            match self.turn() {
                Ok(RingRound::GoOn) => {}
                Ok(RingRound::End) => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        if failure.is_some() {
            self.control.end();
        }
        self.rest();
        self.consumer.finish();
        let report = self.hand_in(u64::MAX);
        RingOutcome { consumer: self.consumer, report, failure }
    }

    /// Hands on what waits, and what was lost behind it.
    fn rest(&mut self) {
        self.flush();
        if let Some(loss) = self.receiver.as_mut().and_then(|receiver| receiver.last_loss()) {
            self.onset.note(Some(&loss), None);
            self.consumer.group(PacketSlice { data: &[], packets: &[], loss: Some(&loss) });
        }
    }

    fn flush(&mut self) {
        let (select, consumer) = (&mut self.select, &mut self.consumer);
        self.order.flush(|group| consumer.group(select.group(group)));
    }

    /// Waits for packets once and does what came.
    fn turn(&mut self) -> netsniff_capture::Result<RingRound> {
        self.control.turned(self.number);
        let patience = self.answer();
        let Some(receiver) = &mut self.receiver else { return self.come_back(patience) };
        if self.control.is_shut() && !self.is_stopping {
            self.is_stopping = true;
            receiver.stop()?;
            self.consumer.stopping();
        }
        let consumer = &mut self.consumer;
        let patience =
            match waits(&mut **receiver, consumer, &mut self.full_since, self.is_stopping)? {
                Waits::ForPackets => patience,
                // Who waits for packets is lent those that come, and they are to stay in the ring.
                Waits::ForRoom { is_empty: true } => Duration::ZERO,
                Waits::ForRoom { is_empty: false } => {
                    std::thread::sleep(NO_ROOM_PAUSE);
                    return Ok(RingRound::GoOn);
                }
            };
        match receiver.receive(patience)? {
            Received::Packets(lent) => {
                self.link = LinkState::Up;
                if let Some(last) = lent.packets.last() {
                    self.consumer.occupied(lent.occupancy, last.timestamp);
                }
                let (select, consumer) = (&mut self.select, &mut self.consumer);
                let mut each = |group: PacketSlice<'_>| consumer.group(select.group(group));
                let loss = lent.loss.as_ref();
                self.onset.note(loss, lent.packets.first().map(|first| first.timestamp));
                let group = PacketSlice { data: lent.data, packets: lent.packets, loss };
                self.order.push(RingPackets { group, goes_on: lent.goes_on }, &mut each);
            }
            Received::Nothing(_) if patience.is_zero() => {
                self.link = LinkState::Up;
                std::thread::sleep(NO_ROOM_PAUSE);
            }
            Received::Nothing(settled) => {
                self.link = LinkState::Up;
                self.flush();
                self.consumer.occupied(Occupancy::EMPTY, settled);
                self.consumer.idle(settled);
            }
            Received::Down => {
                if self.link == LinkState::Up {
                    self.downs += 1;
                }
                self.link = LinkState::Down;
                return Ok(self.pause(patience));
            }
            Received::Gone => {
                self.link = LinkState::Gone;
                return self.gone();
            }
            Received::End => return Ok(RingRound::End),
        }
        Ok(RingRound::GoOn)
    }

    /// Tells what was counted, if somebody asked and the time has come. Returns how long to wait for packets until
    /// it is to be called again.
    fn answer(&mut self) -> Duration {
        let (wanted, due) = self.control.wanted();
        if wanted == self.reported {
            return PATIENCE;
        }
        let left = Duration::from_nanos(due.saturating_sub(netsniff_capture::monotonic()));
        if left.is_zero() {
            self.hand_in(wanted);
            self.reported = wanted;
            return PATIENCE;
        }
        left.min(PATIENCE)
    }

    /// Leaves an interface alone for a while, at most `patience`; flows go on to end.
    fn pause(&mut self, patience: Duration) -> RingRound {
        self.flush();
        self.consumer.idle(netsniff_console::clock::now() - LINK_PAUSE);
        if self.is_stopping {
            return RingRound::End;
        }
        std::thread::sleep(patience);
        RingRound::GoOn
    }

    /// Lets the ring of an interface go that is gone, or fails.
    fn gone(&mut self) -> netsniff_capture::Result<RingRound> {
        if self.reopen.is_none() {
            let name = self.receiver.as_ref().map(|receiver| receiver.facts().interface.clone());
            return Err(netsniff_capture::Error::Gone(name.unwrap_or_default()));
        }
        self.rest();
        self.before = Some(self.report());
        // As long as one ring is a member of a fan-out group, the group belongs to the interface that is gone.
        self.receiver = None;
        Ok(RingRound::GoOn)
    }

    /// Goes on with an interface of the same name, once there is one.
    fn come_back(&mut self, patience: Duration) -> netsniff_capture::Result<RingRound> {
        self.is_stopping = self.control.is_shut();
        let reopened =
            if self.is_stopping { None } else { self.reopen.as_mut().and_then(|of| of()) };
        let Some(mut receiver) = reopened else { return Ok(self.pause(patience)) };
        let before = receiver.interface_counters()?.unwrap_or_default();
        receiver.start()?;
        // Where everything was shut before the gate was there, the next turn stops the ring.
        let times = self.returned.map_or(0, |returned| returned.times) + 1;
        let counted = self.before.as_ref().map(|before| before.counters.counted());
        let earlier = Earlier { times, counted: counted.unwrap_or_default() };
        self.control.put_gate(self.number, receiver.gate(), earlier);
        let at = receiver.interface_counters()?.unwrap_or_default();
        std::thread::sleep(LAG);
        let after = receiver.interface_counters()?.unwrap_or(at);
        let index = receiver.facts().interface_index;
        self.returned = Some(Return { times, index, before, at, after });
        self.receiver = Some(receiver);
        // The books go on with its counters from now on.
        self.hand_in(self.reported);
        Ok(RingRound::GoOn)
    }

    /// Hands in the report of this number.
    fn hand_in(&mut self, number: u64) -> RingReport {
        let report = self.report();
        self.consumer.reported();
        self.control.report(self.number, number, report)
    }

    fn report(&mut self) -> RingReport {
        let earlier = self.before.as_ref().map(|before| &before.counters);
        let (moment, now) = Moment::of(|| {
            self.receiver.as_mut().map(|receiver| receiver.counters().unwrap_or_default())
        });
        let counters = match (now, earlier) {
            (Some(mut now), Some(earlier)) => {
                now.add(earlier);
                now
            }
            (now, earlier) => now.or_else(|| earlier.cloned()).unwrap_or_default(),
        };
        let mut report = RingReport {
            counters,
            read: Some(moment),
            returned: self.returned,
            waiting: self.order.waiting() as u64,
            link: self.link,
            downs: self.downs,
            onset: self.onset,
            ..RingReport::default()
        };
        self.select.fill(&mut report);
        self.consumer.fill(&mut report);
        report
    }
}

/// What a turn waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    ForPackets,
    /// Behind a ring that has room for more.
    ForRoom {
        /// There is nothing in it, so that only its interface is to be looked at.
        is_empty: bool,
    },
}

/// Whether packets had better stay in the ring: while the consumer has no room and the ring has. At the stop
/// they may do so no longer than `NO_ROOM_AT_STOP`.
fn waits(
    receiver: &mut dyn Receiver,
    consumer: &mut impl Consumer,
    full_since: &mut Option<Instant>,
    is_stopping: bool,
) -> netsniff_capture::Result<Waits> {
    let Some(patience) = consumer.wait_for_room() else {
        *full_since = None;
        return Ok(Waits::ForPackets);
    };
    let time = patience.until_stop(is_stopping);
    if full_since.get_or_insert_with(Instant::now).elapsed() >= time {
        return Ok(Waits::ForPackets);
    }
    let occupancy = receiver.occupancy()?;
    let Occupancy { used, capacity, .. } = occupancy;
    let fills_part = u64::from(used) * 100 < u64::from(capacity) * u64::from(patience.percent);
    // One unit is being filled. A ring of a few large blocks that has no other has lost packets before the next look.
    Ok(match fills_part && occupancy.room() > 1 {
        true => Waits::ForRoom { is_empty: used == 0 },
        false => Waits::ForPackets,
    })
}

#[cfg(test)]
mod tests;
