//! What packets come into a packet socket by: its filter, and the counters that start anew at each reading.
//!
//! Two threads read these counters: that of the ring, which finds places for drops, and that which keeps the books.
//! Both add to the same totals.

use std::sync::{Arc, Mutex, PoisonError};

use super::counting::CountingFilter;
use super::packet_socket::{REFUSE, refuses};
use crate::backend::gate::Intake;
use crate::counters::Counted;
use crate::error::{CallContext as _, Result};
use crate::options::Options;
use crate::sys::socket::Socket;

/// The filter of a packet socket, and what it has let in.
#[derive(Debug)]
pub(super) struct PacketIntake {
    socket: Arc<Socket>,
    /// The filter, where it can count what it refuses.
    counting: Option<CountingFilter>,
    /// What is refused where no filter counts it; `None` where nobody knows.
    uncounted: Option<u64>,
    totals: Mutex<Totals>,
}

/// Sums over all readings.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    accepted: u64,
    dropped: u64,
    freezes: u64,
    /// Drops that were read for others than the ring, since that was told last.
    untold: u64,
}

/// What a reading for the ring comes to.
#[derive(Debug)]
pub(super) struct Statistics {
    pub(super) counted: Counted,
    /// How often the ring became full.
    pub(super) freezes: u64,
    pub(super) new_drops: NewDrops,
}

/// Drops since the ring was told of some last.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewDrops {
    pub(super) packets: u64,
    /// Whether all slots say so that were handed over since the first of them. The kernel forgets drops that another
    /// thread has read.
    pub(super) are_marked: bool,
}

impl PacketIntake {
    /// Nothing has come in yet.
    pub(super) fn new(socket: Arc<Socket>, options: &Options) -> Self {
        let refuses = refuses(options);
        Self {
            socket,
            counting: refuses.then(|| CountingFilter::load(options)).flatten(),
            // The kernel does not count what a classic filter refuses.
            uncounted: (!refuses).then_some(0),
            totals: Mutex::default(),
        }
    }

    /// The filter, where it counts.
    pub(super) const fn counting(&self) -> Option<&CountingFilter> {
        self.counting.as_ref()
    }

    /// Whether the ring was told of all drops that were read, and nobody else is reading.
    pub(super) fn has_reported_all(&self) -> bool {
        self.totals.try_lock().is_ok_and(|totals| totals.untold == 0)
    }

    /// Reads the counters for the ring.
    pub(super) fn read_for_ring(&self) -> Result<Statistics> {
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        let new = self.read(&mut totals)?;
        let untold = core::mem::take(&mut totals.untold);
        let new_drops = NewDrops { packets: new.saturating_add(untold), are_marked: untold == 0 };
        Ok(Statistics { counted: self.count(&totals), freezes: totals.freezes, new_drops })
    }

    /// Adds what is new, and returns the new drops.
    fn read(&self, totals: &mut Totals) -> Result<u64> {
        // Only the third version has the last one; the others leave it 0.
        let new: libc::tpacket_stats_v3 = self
            .socket
            .option(libc::SOL_PACKET, libc::PACKET_STATISTICS)
            .trying("read the counters of the ring")?;
        let drops = u64::from(new.tp_drops);
        // What was dropped is among the packets, too.
        totals.accepted += u64::from(new.tp_packets).saturating_sub(drops);
        totals.dropped += drops;
        totals.freezes += u64::from(new.tp_freeze_q_cnt);
        Ok(drops)
    }

    fn count(&self, totals: &Totals) -> Counted {
        let filtered = self.counting.as_ref().map(CountingFilter::filtered);
        Counted {
            accepted: Some(totals.accepted),
            dropped: Some(totals.dropped),
            filtered: filtered.or(self.uncounted),
        }
    }
}

impl Intake for PacketIntake {
    fn shut(&self) -> Result<()> {
        self.socket.attach_filter(&REFUSE).trying("attach a filter")
    }

    fn counted(&self) -> Result<Counted> {
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        totals.untold += self.read(&mut totals)?;
        Ok(self.count(&totals))
    }
}
