//! TPACKET_V3: a ring of blocks that the kernel copies packets into, many to a wake-up.

use std::time::Duration;

use netsniff_packet::{PacketRecord, Timestamp};

use super::block::{BlockHead, BlockSums, Shape, walk};
use super::losses::{Losses, RingState};
use super::packet_socket::{self, LinkState, LinkWatch};
use super::{Arrival, Backend, Lent, Receiver, RingFacts};
use crate::counters::RingCounters;
use crate::error::{Context as _, Error, Result};
use crate::host::available_memory;
use crate::interface::Interface;
use crate::negotiate::{Negotiation, negotiate};
use crate::options::Options;
use crate::sys::block_ring::BlockRing;
use crate::sys::clock::{monotonic, realtime};
use crate::sys::socket::Socket;
use crate::wait::{Step, Waiter};

pub(super) const BACKEND: Backend = Backend {
    name: "af-packet",
    summary: "a ring of blocks shared with the kernel (TPACKET_V3)",
    open: |interface, options| Ok(Box::new(AfPacket::open(interface, options)?)),
};

/// The least ring: with one block, the kernel could not fill one while another is read.
const LEAST_BLOCKS: usize = 2;

/// Room that the kernel is told a frame needs. It only checks that blocks are a multiple of it.
const FRAME: usize = 2048;

/// How much later than its time a block may be closed, on a machine under load.
const RETIRE_MARGIN: Duration = Duration::from_millis(20);

/// How far ahead of the clock a stamp may be.
const CLOCK_MARGIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct AfPacket {
    link: LinkWatch,
    options: Options,
    /// Before the socket, since the memory goes first.
    ring: BlockRing,
    socket: Socket,
    facts: RingFacts,
    shape: Shape,
    /// The number of the block that comes next, from the start.
    next: u64,
    /// Blocks from the next one on that are known to be there.
    ahead: usize,
    is_lent: bool,
    /// When the open block is closed at the latest, once nothing is taken any more.
    stops_at: Option<u64>,
    losses: Losses,
    latest: Timestamp,
    waiter: Waiter,
    was_empty: bool,
    counters: RingCounters,
    /// `tp_packets` without drops, which start anew at each reading.
    accepted: u64,
    dropped: u64,
    freezes: u64,
    packets: Vec<PacketRecord>,
}

impl AfPacket {
    fn open(interface: &Interface, options: &Options) -> Result<Self> {
        let block_bytes = options.block_bytes;
        if block_bytes < 4096 || !block_bytes.is_multiple_of(4096) || block_bytes > 1 << 30 {
            return Err(Error::Invalid(format!(
                "a block of {block_bytes} bytes cannot be: it must be a multiple of 4096"
            )));
        }
        let socket = packet_socket::open()?;
        socket
            .set(
                libc::SOL_PACKET,
                libc::PACKET_VERSION,
                &(libc::tpacket_versions::TPACKET_V3 as i32),
            )
            .trying("choose TPACKET_V3")?;
        let hardware_stamps = packet_socket::stamp(&socket, interface, options.stamps)?;
        let (ring, memory) = make_ring(&socket, options)?;
        packet_socket::bind(&socket, interface, options)?;
        let (fanout_group, busy_poll) = packet_socket::read_back(&socket, options);
        let facts = RingFacts {
            backend: BACKEND.name,
            interface: interface.name.clone(),
            unit_bytes: block_bytes,
            units: ring.blocks(),
            memory: Some(memory),
            snaplen: options.snaplen,
            filter_len: packet_socket::filter_len(options),
            refuses: packet_socket::refuses(options),
            fanout_group,
            hardware_stamps,
            busy_poll,
        };
        let mut counters = RingCounters::default();
        let ring_blocks = ring.blocks();
        counters.occupancy.capacity = ring_blocks as u32;
        Ok(Self {
            // A tag and the Ethernet header come on top of the MTU.
            shape: Shape {
                link_type: interface.link_type,
                largest_frame: interface.mtu.saturating_add(14 + 4),
            },
            link: LinkWatch::new(interface)?,
            options: options.clone(),
            ring,
            socket,
            facts,
            next: 0,
            ahead: 0,
            is_lent: false,
            stops_at: None,
            losses: Losses::new(ring_blocks),
            latest: Timestamp::MIN,
            waiter: Waiter::new(options.wait),
            was_empty: false,
            counters,
            accepted: 0,
            dropped: 0,
            freezes: 0,
            packets: Vec::new(),
        })
    }

    /// Returns the block that was lent to the kernel.
    fn release(&mut self) {
        if core::mem::take(&mut self.is_lent) {
            self.ring.give_back(self.slot(0));
            self.next += 1;
            self.ahead = self.ahead.saturating_sub(1);
        }
    }

    const fn slot(&self, ahead: usize) -> usize {
        ((self.next + ahead as u64) % self.facts.units as u64) as usize
    }

    /// Counts the blocks that are there, and returns whether there is one.
    fn look(&mut self) -> bool {
        while self.ahead < self.ring.blocks() && self.ring.is_ready(self.slot(self.ahead)) {
            self.ahead += 1;
        }
        self.counters.occupancy.note(self.ahead as u32);
        self.ahead > 0
    }

    /// Reads and adds up the kernel's counters, which start anew at each reading.
    fn read_statistics(&mut self) -> Result<()> {
        let new: libc::tpacket_stats_v3 = self
            .socket
            .option(libc::SOL_PACKET, libc::PACKET_STATISTICS)
            .trying("read the counters of the ring")?;
        let drops = u64::from(new.tp_drops);
        // What was dropped is among the packets, too.
        self.accepted += u64::from(new.tp_packets).saturating_sub(drops);
        self.dropped += drops;
        self.freezes += u64::from(new.tp_freeze_q_cnt);
        // After the reading, since what was dropped before it lies before what is not there yet.
        self.look();
        let first_open = self.next + self.ahead as u64;
        let new_blocks = self.losses.previous.first_open.max(self.next)..first_open;
        let first_telling = new_blocks.filter(|_| drops > 0).find(|block| {
            self.ring.status((block % self.facts.units as u64) as usize) & libc::TP_STATUS_LOSING
                != 0
        });
        self.losses.note(drops, RingState { next: self.next, first_open, first_telling });
        Ok(())
    }

    fn lend(&mut self) -> Result<Arrival<'_>> {
        let slot = self.slot(0);
        let head = self.ring.block(slot).and_then(|block| BlockHead::parse(block));
        let Some(head) = head else {
            return Err(Error::Invalid("a block of the ring vanished".to_owned()));
        };
        // A full ring may be dropping now; told at once, the drops have a narrow place.
        if head.tells_of_losses() || self.ahead == self.ring.blocks() {
            self.read_statistics()?;
        }
        let limit = realtime() + CLOCK_MARGIN;
        let Some(block) = self.ring.block(slot) else {
            return Err(Error::Invalid("a block of the ring vanished".to_owned()));
        };
        let packets = &mut self.packets;
        let sums = walk(block, &head, self.shape, &mut self.latest, limit, packets);
        let loss = match (self.packets.first(), self.packets.last()) {
            (Some(first), Some(last)) => {
                self.losses.take(self.next, first.timestamp, last.timestamp)
            }
            _ => None,
        };
        add(&mut self.counters, self.packets.len(), &sums);
        self.is_lent = true;
        let data = self.ring.block(slot).unwrap_or_default();
        Ok(Arrival::Packets(Lent {
            data,
            packets: &self.packets,
            loss,
            occupancy: self.counters.occupancy,
        }))
    }

    /// Waits as it was told to. `None` where it is time to look again.
    fn wait(&mut self, patience: Duration) -> Result<Option<Arrival<'static>>> {
        if !core::mem::replace(&mut self.was_empty, true) {
            self.counters.waiting.empty += 1;
        }
        let now = monotonic();
        if let Some(stops_at) = self.stops_at
            && now >= stops_at
        {
            // Looked at once more, since it may have come after the last look.
            return Ok((!self.look()).then_some(Arrival::End));
        }
        let room = self.counters.occupancy.room();
        match self.waiter.next(now, room, patience) {
            Some(Step::Look) => std::hint::spin_loop(),
            Some(Step::Sleep(time)) => {
                self.counters.waiting.naps += 1;
                std::thread::sleep(time);
            }
            Some(Step::Poll(time)) => return self.poll(time),
            None => {
                if self.look() {
                    return Ok(None);
                }
                return Ok(Some(match self.link.while_idle(now)? {
                    // What came before this was in a block that is closed by now, and there is none.
                    LinkState::Up => {
                        Arrival::Nothing(realtime() - self.options.retire - RETIRE_MARGIN)
                    }
                    LinkState::Down => Arrival::Down,
                    LinkState::Gone => Arrival::Gone,
                }));
            }
        }
        Ok(None)
    }

    fn poll(&mut self, time: Duration) -> Result<Option<Arrival<'static>>> {
        self.counters.waiting.polls += 1;
        let events = self.socket.poll(libc::POLLIN, time).trying("wait for packets")?;
        if events & libc::POLLIN != 0 {
            self.counters.waiting.wakeups += 1;
        }
        if events & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0 && !self.look() {
            return Ok(match self.link.after_error(&self.socket, monotonic())? {
                LinkState::Up => None,
                LinkState::Down => Some(Arrival::Down),
                LinkState::Gone => Some(Arrival::Gone),
            });
        }
        Ok(None)
    }
}

fn make_ring(socket: &Socket, options: &Options) -> Result<(BlockRing, Negotiation)> {
    let block_bytes = options.block_bytes;
    let ask = |bytes: usize| {
        let blocks = (bytes / block_bytes).max(LEAST_BLOCKS);
        let request = libc::tpacket_req3 {
            tp_block_size: block_bytes as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: (block_bytes / FRAME * blocks) as u32,
            tp_retire_blk_tov: (options.retire.as_millis() as u32).max(1),
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        socket.set(libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        Ok((blocks, blocks * block_bytes))
    };
    let most = available_memory().map(|free| free / 2);
    let got = negotiate(options.ring_bytes, LEAST_BLOCKS * block_bytes, most, ask);
    let (blocks, memory) = got.trying(format!("make a ring of {} bytes", options.ring_bytes))?;
    let ring = BlockRing::map(socket, block_bytes, blocks).trying("map the ring")?;
    Ok((ring, memory))
}

fn add(counters: &mut RingCounters, packets: usize, sums: &BlockSums) {
    counters.delivered += packets as u64;
    counters.delivered_bytes += sums.wire_bytes;
    counters.malformed += sums.malformed;
    counters.cut += sums.cut;
    counters.retagged += sums.retagged;
    counters.partial_checksums += sums.partial_checksums;
    counters.super_frames += sums.super_frames;
    counters.inversions += sums.inversions;
    counters.deepest_inversion = counters.deepest_inversion.max(sums.deepest_inversion);
    counters.wrong_stamps += sums.wrong_stamps;
    counters.waiting.groups += 1;
}

impl Receiver for AfPacket {
    fn start(&mut self) -> Result<()> {
        packet_socket::admit(&self.socket, &self.options)
    }

    fn receive(&mut self, patience: Duration) -> Result<Arrival<'_>> {
        self.release();
        loop {
            if self.look() {
                self.was_empty = false;
                self.waiter.found(1, monotonic());
                return self.lend();
            }
            if let Some(arrival) = self.wait(patience)? {
                return Ok(arrival);
            }
        }
    }

    fn stop(&mut self) -> Result<()> {
        if self.stops_at.is_none() {
            packet_socket::refuse(&self.socket)?;
            // The kernel closes the open block when its time is over, so that nothing of it is lost.
            let last = self.options.retire + RETIRE_MARGIN;
            self.stops_at = Some(monotonic() + last.as_nanos() as u64);
        }
        Ok(())
    }

    fn counters(&mut self) -> Result<RingCounters> {
        self.read_statistics()?;
        self.counters.accepted = Some(self.accepted);
        self.counters.dropped = Some(self.dropped);
        self.counters.freezes = Some(self.freezes);
        Ok(self.counters.clone())
    }

    fn last_loss(&mut self) -> Option<netsniff_packet::Loss> {
        self.losses.rest(realtime())
    }

    fn facts(&self) -> &RingFacts {
        &self.facts
    }
}
