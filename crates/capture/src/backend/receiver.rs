//! A [`Receiver`] over any kind of packet socket: waiting, the state of the interface, stopping, counters.

use std::fmt;
use std::time::Duration;

use netsniff_packet::{Loss, PacketRecord, Timestamp};

use super::listing::{Listing, STAMP_MARGIN, Shape};
use super::packet_socket::{self, LinkState, LinkWatch};
use super::{Arrival, Lent, Receiver, RingFacts, Unit};
use crate::counters::RingCounters;
use crate::error::{Context as _, Result};
use crate::interface::Interface;
use crate::negotiate::Negotiation;
use crate::options::Options;
use crate::sys::clock::{monotonic, realtime};
use crate::sys::socket::Socket;
use crate::wait::{Step, Waiter};

/// How much later than it should a packet may be seen, on a machine under load.
const MARGIN: Duration = Duration::from_millis(20);

/// Where packets wait that came through a packet socket: what differs from backend to backend.
pub(super) trait Ring: Send + fmt::Debug {
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

/// What belongs to every ring.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) socket: Socket,
    pub(super) options: Options,
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
    /// `tp_packets` without drops, and the others, which start anew at each reading.
    accepted: u64,
    dropped: u64,
    freezes: u64,
}

/// The size of a ring.
#[derive(Debug)]
pub(super) struct Size {
    pub(super) unit: Unit,
    pub(super) unit_bytes: usize,
    pub(super) units: usize,
    pub(super) memory: Negotiation,
    /// Bytes of a packet that its memory has room for.
    pub(super) longest: usize,
}

impl Base {
    /// Binds the socket, which has its ring.
    pub(super) fn bind(
        name: &'static str,
        socket: Socket,
        interface: &Interface,
        options: &Options,
        size: Size,
        lag: Duration,
    ) -> Result<Self> {
        packet_socket::bind(&socket, interface, options)?;
        let (fanout_group, busy_poll) = packet_socket::read_back(&socket, options);
        let facts = RingFacts {
            backend: name,
            interface: interface.name.clone(),
            unit: size.unit,
            unit_bytes: size.unit_bytes,
            units: size.units,
            memory: Some(size.memory),
            snaplen: options.snaplen.min(u32::try_from(size.longest).unwrap_or(u32::MAX)),
            filter_len: packet_socket::filter_len(options),
            refuses: packet_socket::refuses(options),
            fanout_group,
            hardware_stamps: options.stamps == crate::options::Stamps::Hardware,
            busy_poll,
        };
        let mut counters = RingCounters::default();
        counters.occupancy.capacity = u32::try_from(size.units).unwrap_or(u32::MAX);
        Ok(Self {
            socket,
            options: options.clone(),
            facts,
            counters,
            packets: Vec::new(),
            shape: Shape {
                link_type: interface.link_type,
                largest_frame: packet_socket::largest_frame(interface),
            },
            latest: Timestamp::MIN,
            emptied: monotonic(),
            lag,
            accepted: 0,
            dropped: 0,
            freezes: 0,
        })
    }

    /// Lists a group of packets by `list`, and counts them.
    pub(super) fn list(&mut self, list: impl FnOnce(&mut Listing<'_>)) {
        let now = realtime();
        let waited = Duration::from_nanos(monotonic().saturating_sub(self.emptied));
        let limit = now + STAMP_MARGIN;
        let mut listing = Listing::new(self.shape, &mut self.latest, limit, &mut self.packets);
        listing.began(now - waited - self.lag - MARGIN);
        list(&mut listing);
        listing.add_to(&mut self.counters);
    }

    /// Adds up the kernel's counters, which start anew at each reading, and returns the new drops.
    pub(super) fn add_statistics(&mut self) -> Result<u64> {
        // Only the third version has the last one; the others leave it 0.
        let new: libc::tpacket_stats_v3 = self
            .socket
            .option(libc::SOL_PACKET, libc::PACKET_STATISTICS)
            .trying("read the counters of the ring")?;
        let drops = u64::from(new.tp_drops);
        // What was dropped is among the packets, too.
        self.accepted += u64::from(new.tp_packets).saturating_sub(drops);
        self.dropped += drops;
        self.freezes += u64::from(new.tp_freeze_q_cnt);
        Ok(drops)
    }

    /// Packets that the kernel has dropped, as far as read.
    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// A ring with all that makes it a [`Receiver`].
#[derive(Debug)]
pub(super) struct PacketReceiver<R> {
    /// Before the socket, since the memory goes first.
    ring: R,
    base: Base,
    link: LinkWatch,
    waiter: Waiter,
    was_empty: bool,
    /// When it was looked last, in vain, by the monotonic clock.
    looked: u64,
    /// When all is there that was taken before the stop.
    stops_at: Option<u64>,
    counts_freezes: bool,
}

impl<R: Ring> PacketReceiver<R> {
    /// A receiver that has not started. `counts_freezes` where the kernel counts how often it became full.
    pub(super) fn new(
        ring: R,
        base: Base,
        interface: &Interface,
        counts_freezes: bool,
    ) -> Result<Self> {
        Ok(Self {
            ring,
            link: LinkWatch::new(interface)?,
            waiter: Waiter::new(base.options.wait),
            base,
            was_empty: false,
            looked: monotonic(),
            stops_at: None,
            counts_freezes,
        })
    }

    /// Waits as it was told to. `None` where it is time to look again.
    fn wait(&mut self, patience: Duration) -> Result<Option<Arrival<'static>>> {
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
            return Ok(Some(Arrival::End));
        }
        match self.waiter.next(now, self.ring.room(&self.base), patience) {
            Some(Step::Look) => std::hint::spin_loop(),
            Some(Step::Sleep(time)) => {
                self.base.counters.waiting.naps += 1;
                std::thread::sleep(time);
            }
            Some(Step::Poll(time)) => return self.poll(time),
            None => {
                // What came before this is in the ring by now.
                let settled = realtime() - self.base.lag - MARGIN;
                if self.ring.look(&mut self.base)? {
                    return Ok(None);
                }
                let state = self.link.while_idle(now)?;
                let arrival = self.arrival(state)?;
                return Ok(Some(arrival.unwrap_or(Arrival::Nothing(settled))));
            }
        }
        Ok(None)
    }

    fn poll(&mut self, time: Duration) -> Result<Option<Arrival<'static>>> {
        self.base.counters.waiting.polls += 1;
        let events = self.base.socket.poll(libc::POLLIN, time).trying("wait for packets")?;
        if events & libc::POLLIN != 0 {
            self.base.counters.waiting.wakeups += 1;
        }
        let is_told = events & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0;
        if is_told && !self.ring.look(&mut self.base)? {
            let state = self.link.after_error(&self.base.socket, monotonic())?;
            return self.arrival(state);
        }
        Ok(None)
    }

    /// What there is to say of the interface; nothing while it is up.
    fn arrival(&mut self, state: LinkState) -> Result<Option<Arrival<'static>>> {
        Ok(match state {
            LinkState::Up => None,
            LinkState::Down => Some(Arrival::Down),
            LinkState::Gone => {
                self.ring.read_statistics(&mut self.base)?;
                Some(Arrival::Gone)
            }
        })
    }
}

impl<R: Ring> Receiver for PacketReceiver<R> {
    fn start(&mut self) -> Result<()> {
        packet_socket::admit(&self.base.socket, &self.base.options)
    }

    fn receive(&mut self, patience: Duration) -> Result<Arrival<'_>> {
        let units = self.ring.release(&mut self.base)?;
        if units > 0 {
            self.waiter.found(units, monotonic());
        }
        loop {
            if self.ring.look(&mut self.base)? {
                self.was_empty = false;
                return Ok(Arrival::Packets(self.ring.lend(&mut self.base)?));
            }
            if let Some(arrival) = self.wait(patience)? {
                return Ok(arrival);
            }
        }
    }

    fn stop(&mut self) -> Result<()> {
        if self.stops_at.is_none() {
            packet_socket::refuse(&self.base.socket)?;
            // A block that is open is closed when its time is over, so that nothing of it is lost.
            let last = self.base.lag + MARGIN;
            self.stops_at = Some(monotonic() + last.as_nanos() as u64);
        }
        Ok(())
    }

    fn counters(&mut self) -> Result<RingCounters> {
        self.ring.read_statistics(&mut self.base)?;
        let base = &mut self.base;
        base.counters.accepted = Some(base.accepted);
        base.counters.dropped = Some(base.dropped);
        base.counters.freezes = self.counts_freezes.then_some(base.freezes);
        Ok(base.counters.clone())
    }

    fn last_loss(&mut self) -> Option<Loss> {
        self.ring.rest(&self.base)
    }

    fn facts(&self) -> &RingFacts {
        &self.base.facts
    }
}
