//! Rings in memory shared with the kernel: lending slots, giving them back, and the places of drops.

use core::fmt;
use core::marker::PhantomData;

use netsniff_packet::Loss;

use super::packet_socket::PacketSocket;
use crate::backend::listing::PacketListBuilder;
use crate::backend::losses::{Losses, MarkedUntil, RingState};
use crate::backend::receiver::{Base, Entrance, Ring};
use crate::backend::{Gate, Lent};
use crate::error::{Error, Result};
use crate::sys::clock::realtime;
use crate::sys::slot_ring::{Run, SlotRing};

/// What lies in the slots of a ring.
pub(super) trait Slots: Send + fmt::Debug {
    /// Where among the packets of some slots to go on.
    type Place: Copy + Send + fmt::Debug;

    /// Slots that are lent at once, at most.
    const MOST: usize;

    /// Lists packets of these slots, from the first one on or from `place` on, and returns where to go on;
    /// `None` where that was all. `starts` tells where the first slot and those behind it begin.
    fn list(
        data: &mut [u8],
        starts: impl Iterator<Item = usize>,
        place: Option<Self::Place>,
        listing: &mut PacketListBuilder<'_>,
    ) -> Option<Self::Place>;
}

/// A ring, and the drops of which it has not told yet.
#[derive(Debug)]
pub(super) struct Mapped<S: Slots> {
    /// Before the socket, since the memory goes first.
    ring: SlotRing,
    socket: PacketSocket,
    losses: Losses,
    marked_until: MarkedUntil,
    /// Slots that are lent.
    lent: usize,
    /// Where to go on with them.
    place: Option<S::Place>,
    slots: PhantomData<S>,
}

impl<S: Slots> Mapped<S> {
    /// `in_flight` slots may be on their way behind one that is not filled.
    pub(super) const fn new(ring: SlotRing, socket: PacketSocket, in_flight: usize) -> Self {
        let losses = Losses::new(ring.layout().slots(), in_flight);
        Self {
            ring,
            socket,
            losses,
            marked_until: MarkedUntil::new(),
            lent: 0,
            place: None,
            slots: PhantomData,
        }
    }

    /// Slots to lend: no further than to where something was lost, or may have been.
    fn portion(&self) -> usize {
        let next = self.ring.next();
        let cut =
            [self.losses.cut(next), self.ring.reported_drops().filter(|telling| *telling > next)];
        let cut = cut.into_iter().flatten().min().unwrap_or(u64::MAX);
        usize::try_from(cut - next).unwrap_or(usize::MAX).min(S::MOST)
    }
}

impl<S: Slots> Ring for Mapped<S> {
    fn entrance(&mut self) -> &mut dyn Entrance {
        &mut self.socket
    }

    fn gate(&self) -> Gate {
        self.socket.gate()
    }

    fn look(&mut self, base: &mut Base) -> Result<bool> {
        let ready = self.ring.look();
        base.counters.occupancy.note(u32::try_from(ready).unwrap_or(u32::MAX));
        self.marked_until.looked(self.ring.first_open(), self.socket.has_told_all());
        Ok(ready > 0)
    }

    fn lend<'a>(&'a mut self, base: &'a mut Base) -> Result<Lent<'a>> {
        let next = self.ring.next();
        // A full ring may be dropping now; told at once, the drops have a narrow place. A slot that tells
        // of drops of which no reading has heard yet was handed over since.
        let place = self.place.take();
        let has_news = || self.ring.reported_drops() == Some(next) || !self.socket.has_told_all();
        if place.is_none() && (self.ring.is_full() || has_news()) {
            self.read_statistics(base)?;
        }
        let portion = if place.is_some() { self.lent } else { self.portion() };
        let layout = self.ring.layout();
        let Some(Run { slot, slots, data }) = self.ring.run(portion) else {
            return Err(Error::Invalid("a slot of the ring vanished".to_owned()));
        };
        let begin = layout.offset(slot);
        let starts = (slot..slot + slots).map(|slot| layout.offset(slot) - begin);
        base.list(|listing| self.place = S::list(data, starts, place, listing));
        self.lent = slots;
        let loss = match (base.packets.first(), base.packets.last()) {
            (Some(first), Some(last)) => self.losses.take(next, first.timestamp, last.timestamp),
            _ => None,
        };
        let goes_on = self.place.is_some();
        Ok(Lent { data, packets: &base.packets, goes_on, loss, occupancy: base.counters.occupancy })
    }

    fn release(&mut self, base: &mut Base) -> Result<u32> {
        if self.place.is_some() {
            return Ok(0);
        }
        let lent = core::mem::take(&mut self.lent);
        if lent == 0 {
            return Ok(0);
        }
        // What was dropped up to now lies behind the last slot of the ring; once a slot is given back, that
        // is another one. The ring may also become full in between.
        let slots = self.ring.layout().slots();
        let last = self.ring.next() + (slots as u64 - 1);
        let is_full = |ring: &SlotRing| lent == slots || ring.is_ready(last);
        if is_full(&self.ring) {
            self.read_statistics(base)?;
        }
        self.ring.give_back(lent);
        if is_full(&self.ring) {
            self.read_statistics(base)?;
        }
        Ok(u32::try_from(lent).unwrap_or(u32::MAX))
    }

    fn read_statistics(&mut self, base: &mut Base) -> Result<()> {
        self.ring.look();
        let (told, marked_until) = (self.ring.take_reported_drops(), self.marked_until);
        let first_open_before = self.ring.first_open();
        let drops = self.socket.read_statistics(&mut base.counters)?;
        // What was dropped before the reading lies before what is not there yet. Slots that came during it
        // may tell of these drops or of later ones, and count for both.
        self.look(base)?;
        let state = RingState {
            next: self.ring.next(),
            first_open: self.ring.first_open(),
            first_open_before,
            first_telling: told.or(self.ring.reported_drops()),
            told_until: marked_until.bound(drops.are_marked),
        };
        self.losses.note(drops.packets, state);
        Ok(())
    }

    fn rest(&mut self, _: &Base) -> Option<Loss> {
        self.losses.rest(realtime())
    }
}
