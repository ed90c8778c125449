//! A [`Receiver`] over any kind of ring: waiting, the state of the interface, stopping, counters.

use std::time::Duration;
use std::{fmt, io};

use netsniff_packet::{Loss, PacketRecord, Timestamp};

use super::link::{LinkState, LinkWatch};
use super::listing::{PacketListBuilder, STAMP_MARGIN, Shape};
use super::{Gate, Lent, Received, Receiver, RingFacts};
use crate::counters::{Occupancy, RingCounters};
use crate::error::{CallContext as _, Result};
use crate::interface::{Interface, LinkCounters};
use crate::options::{Options, Wait};
use crate::sys::clock::{monotonic, realtime};
use crate::wait::{WaitStep, Waiter};

/// How much later than it should a packet may be seen, on a machine under load.
const MARGIN: Duration = Duration::from_millis(20);

/// Where packets wait: what differs from backend to backend.
pub(super) trait Ring: Send + fmt::Debug {
    /// What they come in by.
    fn entrance(&mut self) -> &mut dyn Entrance;

    /// What shuts it, from any thread.
    fn gate(&self) -> Gate;

    /// Finds out whether something is there, and notes how full the ring is.
    fn look(&mut self, base: &mut Base) -> Result<bool>;

    /// Lends what comes next, of which there is some.
    fn lend<'a>(&'a mut self, base: &'a mut Base) -> Result<Lent<'a>>;

    /// Takes what was lent back, and returns how many units of the ring that was.
    fn release(&mut self, base: &mut Base) -> Result<u32>;

    /// Reads the kernel's counters, and finds places for new drops.
    fn read_statistics(&mut self, base: &mut Base) -> Result<()>;

    /// Units that may still come before something is lost.
    fn room(&self, base: &Base) -> u32 {
        base.counters.occupancy.room()
    }

    /// What was lost and has no packets behind it.
    fn rest(&mut self, base: &Base) -> Option<Loss>;
}

/// What packets come in by: a socket, several, or a program with its ring.
pub(super) trait Entrance {
    /// Lets the wanted packets in.
    fn admit(&mut self) -> Result<()>;

    /// Waits until packets are there or an error is pending, at most so long, and returns the events of
    /// poll(2).
    fn poll(&mut self, time: Duration) -> io::Result<libc::c_short>;

    /// Takes the error that is pending, if any.
    fn pending_error(&self) -> io::Result<Option<io::Error>>;
}

/// What belongs to every ring.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) facts: RingFacts,
    pub(super) counters: RingCounters,
    /// Where the packets lie that are lent.
    pub(super) packets: Vec<PacketRecord>,
    shape: Shape,
    latest: Timestamp,
    /// When the ring was empty last, by the monotonic clock: what it holds came later, but for what the kernel
    /// kept to itself.
    emptied: u64,
    /// How long the kernel may keep a packet to itself.
    lag: Duration,
    wait: Wait,
}

impl Base {
    /// For a ring of these facts, whose kernel may keep a packet to itself for `lag`.
    pub(super) fn new(
        facts: RingFacts,
        interface: &Interface,
        options: &Options,
        lag: Duration,
    ) -> Self {
        let mut counters = RingCounters::default();
        counters.occupancy.capacity = u32::try_from(facts.units).unwrap_or(u32::MAX);
        Self {
            facts,
            counters,
            packets: Vec::new(),
            shape: Shape {
                link_type: interface.link_type,
                largest_frame: interface.longest_frame(),
            },
            latest: Timestamp::MIN,
            emptied: monotonic(),
            lag,
            wait: options.wait,
        }
    }

    /// A stamp for what is found at this moment, by the clock. Where that goes back a little, stamps do not.
    pub(super) fn stamp(&self) -> Timestamp {
        let now = realtime();
        if self.latest <= now + STAMP_MARGIN { now.max(self.latest) } else { now }
    }

    /// Lists a group of packets by `list`, and counts them.
    pub(super) fn list(&mut self, list: impl FnOnce(&mut PacketListBuilder<'_>)) {
        let now = realtime();
        let waited = Duration::from_nanos(monotonic().saturating_sub(self.emptied));
        let limit = now + STAMP_MARGIN;
        let mut listing =
            PacketListBuilder::new(self.shape, &mut self.latest, limit, &mut self.packets);
        listing.began(now - waited - self.lag - MARGIN);
        list(&mut listing);
        listing.add_to(&mut self.counters);
    }
}

/// A ring with all that makes it a [`Receiver`].
#[derive(Debug)]
pub(super) struct RingReceiver<R> {
    ring: R,
    base: Base,
    link: LinkWatch,
    waiter: Waiter,
    was_empty: bool,
    /// When it was looked last, in vain, by the monotonic clock.
    looked: u64,
    /// When all is there that was taken before the stop.
    stops_at: Option<u64>,
    /// The same, before the stop or the end of the interface.
    complete_at: Option<u64>,
}

impl<R: Ring> RingReceiver<R> {
    /// A receiver that has not started.
    pub(super) fn new(ring: R, base: Base, interface: &Interface) -> Result<Self> {
        Ok(Self {
            ring,
            link: LinkWatch::new(interface)?,
            waiter: Waiter::new(base.wait),
            base,
            was_empty: false,
            looked: monotonic(),
            stops_at: None,
            complete_at: None,
        })
    }

    /// Takes back what was lent.
    fn release(&mut self) -> Result<()> {
        let units = self.ring.release(&mut self.base)?;
        if units > 0 {
            self.waiter.found(units, monotonic());
        }
        Ok(())
    }

    /// Waits as it was told to. `None` where it is time to look again.
    fn wait(&mut self, patience: Duration) -> Result<Option<Received<'static>>> {
        let waiting = &mut self.base.counters.waiting;
        if !core::mem::replace(&mut self.was_empty, true) {
            waiting.empty += 1;
        }
        let now = monotonic();
        // The look that found nothing came after the time of the one before, however long this thread has
        // slept in between.
        self.base.emptied = core::mem::replace(&mut self.looked, now);
        if self.stops_at.is_some_and(|stops_at| now >= stops_at) {
            // Looked at once more, since it may have come after the last look.
            if self.ring.look(&mut self.base)? {
                return Ok(None);
            }
            self.ring.read_statistics(&mut self.base)?;
            return Ok(Some(Received::End));
        }
        match self.waiter.next(now, self.ring.room(&self.base), patience) {
            Some(WaitStep::Look) => std::hint::spin_loop(),
            Some(WaitStep::Sleep(time)) => {
                self.base.counters.waiting.naps += 1;
                std::thread::sleep(time);
            }
            Some(WaitStep::Poll(time)) => return self.poll(time),
            None => {
                // What came before this is in the ring by now.
                let settled = realtime() - self.base.lag - MARGIN;
                if self.ring.look(&mut self.base)? {
                    return Ok(None);
                }
                let state = self.link.while_idle(now)?;
                let arrival = self.arrival(state)?;
                return Ok(Some(arrival.unwrap_or(Received::Nothing(settled))));
            }
        }
        Ok(None)
    }

    fn poll(&mut self, time: Duration) -> Result<Option<Received<'static>>> {
        self.base.counters.waiting.polls += 1;
        let events = self.ring.entrance().poll(time).trying("wait for packets")?;
        if events & libc::POLLIN != 0 {
            self.base.counters.waiting.wakeups += 1;
        }
        let is_told = events & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0;
        if is_told && !self.ring.look(&mut self.base)? {
            let state = self.link.after_error(self.ring.entrance(), monotonic())?;
            return self.arrival(state);
        }
        Ok(None)
    }

    /// When all is there that was taken up to the first call. A block that is open is closed when its time is
    /// over, so that nothing of it is lost.
    fn last_moment(&mut self) -> u64 {
        let last = self.base.lag + MARGIN;
        *self.complete_at.get_or_insert_with(|| monotonic() + last.as_nanos() as u64)
    }

    /// What there is to say of the interface; nothing while it is up.
    fn arrival(&mut self, state: LinkState) -> Result<Option<Received<'static>>> {
        Ok(match state {
            LinkState::Up => None,
            LinkState::Down => Some(Received::Down),
            // A block that is open is handed over when its time is over, also without its interface.
            LinkState::Gone if monotonic() < self.last_moment() => {
                std::thread::sleep(Duration::from_millis(1));
                None
            }
            LinkState::Gone => {
                if self.ring.look(&mut self.base)? {
                    return Ok(None);
                }
                self.ring.read_statistics(&mut self.base)?;
                Some(Received::Gone)
            }
        })
    }
}

impl<R: Ring> Receiver for RingReceiver<R> {
    fn start(&mut self) -> Result<()> {
        self.ring.entrance().admit()
    }

    fn receive(&mut self, patience: Duration) -> Result<Received<'_>> {
        self.release()?;
        loop {
            if self.ring.look(&mut self.base)? {
                self.was_empty = false;
                return Ok(Received::Packets(self.ring.lend(&mut self.base)?));
            }
            if let Some(arrival) = self.wait(patience)? {
                return Ok(arrival);
            }
        }
    }

    fn stop(&mut self) -> Result<()> {
        if self.stops_at.is_none() {
            self.ring.gate().shut()?;
            self.stops_at = Some(self.last_moment());
        }
        Ok(())
    }

    fn counters(&mut self) -> Result<RingCounters> {
        self.ring.read_statistics(&mut self.base)?;
        Ok(self.base.counters.clone())
    }

    fn occupancy(&mut self) -> Result<Occupancy> {
        self.release()?;
        self.ring.look(&mut self.base)?;
        Ok(self.base.counters.occupancy)
    }

    fn last_loss(&mut self) -> Option<Loss> {
        self.ring.rest(&self.base)
    }

    fn facts(&self) -> &RingFacts {
        &self.base.facts
    }

    fn gate(&self) -> Gate {
        self.ring.gate()
    }

    fn interface_counters(&mut self) -> Result<Option<LinkCounters>> {
        self.link.counters()
    }
}
