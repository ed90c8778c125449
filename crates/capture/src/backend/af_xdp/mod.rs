//! AF_XDP: packets go from the driver, or from the begin of the stack, to sockets of ours and not to the stack.
//!
//! There is a socket for each queue of the interface, with memory of its own in chunks of one packet each. The
//! kernel takes free chunks from the fill ring and returns them with packets in the receive ring; those that lie in
//! a row are lent together. An XDP program decides which packets come here, and counts those that do not; a gate in
//! its memory, which is set without a call, opens at the start and closes at the stop.
//!
//! The kernel drops a packet for want of room only when it has used up the chunks that it was given, and shows in
//! the fill ring that it has. Such drops lie before the packet that gets the first chunk given later: exactly there
//! if chunks are given when it was seen to have none, and while they are given, somewhere in as many packets as were
//! lent. A kernel that finds none at the very moment in which some are given counts the drop with those that follow.
//! Packets that are longer than a chunk are dropped, too, at any place: it is between two readings of the counters
//! ([`losses`](super::losses)).

mod queue;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use netsniff_packet::Loss;

use self::queue::{Queue, QueueIntake};
use super::af_packet::packet_socket;
use super::listing::Description;
use super::receiver::{Base, Entrance, Ring, RingReceiver};
use super::shared_tally::{self, SharedTally};
use super::xdp;
use super::{
    Backend, Gate, Intake, Lent, Path, Receiver, RingFacts, RingUnit, StampSource, XdpFacts,
};
use crate::counters::Counted;
use crate::ebpf::redirect::redirect;
use crate::ebpf::tally::Counter;
use crate::error::{CallContext as _, Error, Result};
use crate::interface::Interface;
use crate::negotiate::Negotiation;
use crate::options::{Direction, Options, Stamps};
use crate::sys::bpf::{Program, SocketMap, XdpLink, XdpMode};
use crate::sys::clock::realtime;
use crate::sys::socket::{PollSet, Socket};
use crate::sys::xdp::wake_receiver;

pub(in crate::backend) const BACKEND: Backend = Backend {
    name: "af-xdp",
    summary: "XDP sockets for all queues (AF_XDP): the system does not see the packets",
    path: Path::Bypass,
    reopens: false,
    open,
};

/// Bytes before each packet in its chunk (`XDP_PACKET_HEADROOM` of <linux/bpf.h>).
const HEADROOM: u32 = 256;

/// Sizes of chunks that the kernel takes for memory of usual pages.
const CHUNK_LENS: [u32; 2] = [2048, 4096];

fn open(interface: &Interface, options: &Options) -> Result<Box<dyn Receiver>> {
    check(interface, options)?;
    let wanted = xdp::wanted(options)?;
    let chunk_len = chunk_len(interface)?;
    let queues = interface.queues()?;
    let sockets = shared_tally::make(SocketMap::create(queues))?;
    let tally = SharedTally::make()?;
    let program = xdp::load(redirect(sockets.number(), tally.tally(), wanted.as_ref()))?;
    let share = options.ring_bytes / queues.max(1) as usize;
    let mut memory = Negotiation { wanted: 0, granted: 0, refused: Vec::new() };
    let mut opened = Vec::new();
    for number in 0..queues {
        let (queue, got) = Queue::open(interface, number, share, chunk_len, options)?;
        sockets.set(number, queue.socket.descriptor()).trying("register an XDP socket")?;
        memory.wanted += got.wanted;
        memory.granted += got.granted;
        memory.refused.extend(got.refused);
        opened.push(queue);
    }
    let promiscuous = xdp::promiscuous(interface, options)?;
    let (link, mode) = xdp::attach(&program, interface)?;
    let first = opened.first().ok_or_else(|| Error::Gone(interface.name.clone()))?;
    let facts = RingFacts {
        backend: BACKEND.name,
        interface: interface.name.clone(),
        interface_index: interface.index,
        unit: RingUnit::Frame,
        unit_bytes: chunk_len as usize,
        units: opened.iter().map(|queue| queue.chunks as usize).sum(),
        memory: Some(memory),
        snaplen: options.snaplen.min(chunk_len - HEADROOM),
        filter_len: options.filter.len(),
        counts_filtered: true,
        direction: Direction::In,
        fanout_group: None,
        stamps: StampSource::Reader,
        busy_poll: packet_socket::busy_polling(&first.socket),
        xdp: Some(XdpFacts {
            is_native: mode == XdpMode::Native,
            is_zero_copy: Some(is_zero_copy(&opened)?),
            queues: queues as usize,
        }),
    };
    let polls = PollSet::new(opened.iter().map(|queue| &*queue.socket), libc::POLLIN);
    let ring = Queues {
        _before_interface: (link, program, sockets, promiscuous),
        intake: Arc::new(QueuesIntake {
            tally,
            queues: opened.iter().map(QueueIntake::of).collect(),
        }),
        polls,
        queues: opened,
        turn: 0,
        snaplen: options.snaplen,
        polls_driver: options.busy_poll.is_some(),
    };
    let base = Base::new(facts, interface, options, Duration::ZERO);
    Ok(Box::new(RingReceiver::new(ring, base, interface)?))
}

/// Refuses what this path cannot do.
fn check(interface: &Interface, options: &Options) -> Result<()> {
    let refused = |why: &str| Err(Error::Invalid(format!("{} {why}", BACKEND.name)));
    if options.direction == Direction::Out {
        return refused(
            "captures only packets that come in: leave out --direction out, or choose --path tap",
        );
    }
    if options.fanout.is_some() {
        return refused(
            "cannot share packets out so that those of two hosts stay together: a queue belongs to one \
             ring. Choose --workers 1 without --fanout-group (--apart gives the analysis a thread of its \
             own), or --path tap",
        );
    }
    if options.stamps == Stamps::Hardware {
        return refused("has no stamps of the interface: leave out --ts hw, or choose --path tap");
    }
    chunk_len(interface).map(|_| ())
}

/// The size of the chunks that the packets of an interface fit in.
fn chunk_len(interface: &Interface) -> Result<u32> {
    /// Ethernet header, and two tags.
    const HEADERS: u32 = 14 + 4 + 4;
    let longest = interface.mtu.saturating_add(HEADERS);
    let fits = |len: &u32| longest <= len - HEADROOM;
    CHUNK_LENS.into_iter().find(fits).ok_or_else(|| {
        Error::Invalid(format!(
            "{} takes packets of up to {longest} bytes (MTU {}), and a chunk of an XDP socket has room for \
             {}: lower the MTU (ip link set {0} mtu {}), or choose --path tap",
            interface.name,
            interface.mtu,
            CHUNK_LENS[1] - HEADROOM,
            CHUNK_LENS[1] - HEADROOM - HEADERS,
        ))
    })
}

/// Whether the interface itself writes into the memory of all queues.
fn is_zero_copy(queues: &[Queue]) -> Result<bool> {
    for queue in queues {
        let options: libc::xdp_options = queue
            .socket
            .option(libc::SOL_XDP, libc::XDP_OPTIONS)
            .trying("read the mode of an XDP socket")?;
        if options.flags & libc::XDP_OPTIONS_ZEROCOPY == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What stands before the interface while this lives: the program leaves first.
type BeforeInterface = (XdpLink, Program, SocketMap, Option<Socket>);

/// All queues of an interface.
#[derive(Debug)]
struct Queues {
    _before_interface: BeforeInterface,
    intake: Arc<QueuesIntake>,
    polls: PollSet,
    queues: Vec<Queue>,
    /// The queue that was lent from last, or is next.
    turn: usize,
    snaplen: u32,
    /// Whether a look that finds nothing polls the driver.
    polls_driver: bool,
}

/// What other threads see of all queues.
#[derive(Debug)]
struct QueuesIntake {
    tally: SharedTally,
    queues: Vec<QueueIntake>,
}

impl Intake for QueuesIntake {
    fn shut(&self) -> Result<()> {
        self.tally.shut()
    }

    fn counted(&self) -> Result<Counted> {
        let [mut accepted, mut lost] = [0_u64; 2];
        for queue in &self.queues {
            let [came, dropped] = queue.counted()?;
            accepted = accepted.saturating_add(came);
            lost = lost.saturating_add(dropped);
        }
        let filtered = Some(self.tally.count(Counter::Filtered));
        Ok(Counted { accepted: Some(accepted), dropped: Some(lost), filtered })
    }
}

impl Ring for Queues {
    fn entrance(&mut self) -> &mut dyn Entrance {
        self
    }

    fn gate(&self) -> Gate {
        Gate::new(&self.intake)
    }

    fn look(&mut self, base: &mut Base) -> Result<bool> {
        let (mut used, mut found, count) = (0_u32, None, self.queues.len());
        for step in 1..=count {
            // Each in its turn, the last one last.
            let number = (self.turn + step) % count;
            let Some(queue) = self.queues.get_mut(number) else { continue };
            let ready = queue.ready();
            used = used.saturating_add(ready).saturating_add(queue.lent.len() as u32);
            if ready > 0 {
                found = found.or(Some(number));
            } else if self.polls_driver || queue.rings.fill.needs_wakeup() {
                wake_receiver(&queue.socket);
            }
        }
        base.counters.occupancy.note(used);
        self.turn = found.unwrap_or(self.turn);
        Ok(found.is_some())
    }

    fn lend<'a>(&'a mut self, base: &'a mut Base) -> Result<Lent<'a>> {
        let vanished = || Error::Invalid("a packet of an XDP socket vanished".to_owned());
        let queue = self.queues.get_mut(self.turn).ok_or_else(vanished)?;
        // Told at once, drops have a narrow place.
        if queue.is_starved() {
            queue.read_statistics()?;
        }
        let timestamp = base.stamp();
        let first = queue.take();
        let data = queue.umem.row(&queue.lent).ok_or_else(vanished)?;
        let chunk_len = data.len() / queue.lent.len().max(1);
        base.list(|listing| {
            for (place, descriptor) in queue.lent.iter().enumerate() {
                let offset = place * chunk_len + descriptor.offset as usize;
                let description = Description {
                    timestamp,
                    offset,
                    free_from: offset,
                    captured_len: descriptor.len.min(self.snaplen),
                    wire_len: descriptor.len,
                    status: 0,
                    vlan_tci: 0,
                    vlan_tpid: 0,
                };
                if !listing.push(data, &description) {
                    listing.malformed(1);
                }
            }
        });
        let loss = queue.losses.take(first, timestamp, timestamp);
        Ok(Lent {
            data,
            packets: &base.packets,
            goes_on: false,
            loss,
            occupancy: base.counters.occupancy,
        })
    }

    fn release(&mut self, _: &mut Base) -> Result<u32> {
        self.queues.get_mut(self.turn).map_or(Ok(0), Queue::release)
    }

    fn read_statistics(&mut self, base: &mut Base) -> Result<()> {
        let (mut accepted, mut lost) = (0, 0);
        for queue in &mut self.queues {
            queue.read_statistics()?;
            accepted += queue.came;
            lost += queue.dropped();
        }
        base.counters.accepted = Some(accepted);
        base.counters.dropped = Some(lost);
        base.counters.filtered = Some(self.intake.tally.count(Counter::Filtered));
        Ok(())
    }

    fn rest(&mut self, _: &Base) -> Option<Loss> {
        let now = realtime();
        let losses = self.queues.iter_mut().filter_map(|queue| queue.losses.rest(now));
        losses.reduce(|one, other| Loss {
            before: one.before.zip(other.before).map(|(one, other)| one.min(other)),
            packets: one.packets + other.packets,
            ..one
        })
    }
}

impl Entrance for Queues {
    fn admit(&mut self) -> Result<()> {
        self.intake.tally.set_open(true);
        Ok(())
    }

    fn poll(&mut self, time: Duration) -> io::Result<libc::c_short> {
        self.polls.poll(time)
    }

    fn pending_error(&self) -> io::Result<Option<io::Error>> {
        for queue in &self.queues {
            if let Some(error) = queue.socket.pending_error()? {
                return Ok(Some(error));
            }
        }
        Ok(None)
    }
}
