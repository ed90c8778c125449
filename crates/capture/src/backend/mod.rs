//! Capturing packets: THE list of backends, and what they have in common.

mod af_packet;
mod af_xdp;
mod gate;
mod link;
mod listing;
mod losses;
mod receiver;
mod shared_tally;
mod xdp;
mod xdp_copy;

use std::time::Duration;

pub use gate::{Gate, Intake};
use netsniff_packet::{Loss, PacketRecord, Timestamp};

use crate::counters::{Occupancy, RingCounters};
use crate::error::Result;
use crate::interface::{Interface, LinkCounters};
use crate::negotiate::Negotiation;
use crate::options::{Direction, Options};

/// One ring, or whatever else lends packets of an interface.
///
/// Packets are lent until the next call, when their memory returns to the kernel:
///
/// ```compile_fail,E0499
/// # use std::time::Duration;
/// # use netsniff_capture::backend::Receiver;
/// fn keep(receiver: &mut dyn Receiver) {
///     let first = receiver.receive(Duration::ZERO).unwrap();
///     let second = receiver.receive(Duration::ZERO).unwrap();
///     drop(first); // the kernel may be writing to it already
///     drop(second);
/// }
/// ```
///
/// ```
/// # use std::time::Duration;
/// # use netsniff_capture::backend::{Received, Receiver};
/// fn count(receiver: &mut dyn Receiver) -> usize {
///     let mut count = 0;
///     while let Ok(Received::Packets(lent)) = receiver.receive(Duration::ZERO) {
///         count += lent.packets.len();
///     }
///     count
/// }
/// ```
pub trait Receiver: Send {
    /// Begins to take packets. Nothing that came before is in the ring.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses the filter.
    fn start(&mut self) -> Result<()>;

    /// Lends the packets that come next, and waits for them at most `patience`. A signal may end the
    /// waiting early.
    ///
    /// # Errors
    ///
    /// Failures of the calls; that an interface is down or gone is no error but a [`Received`].
    fn receive(&mut self, patience: Duration) -> Result<Received<'_>>;

    /// Takes no more packets. Those that the ring holds are still lent, then [`Received::End`] comes.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    fn stop(&mut self) -> Result<()>;

    /// What was counted so far.
    ///
    /// # Errors
    ///
    /// Where the kernel's counters cannot be read.
    fn counters(&mut self) -> Result<RingCounters>;

    /// Takes back what was lent, and tells how full the ring is at this moment.
    ///
    /// # Errors
    ///
    /// As [`Receiver::receive`].
    fn occupancy(&mut self) -> Result<Occupancy>;

    /// What was lost and has no packets behind it, once [`Received::End`] or [`Received::Gone`] came.
    fn last_loss(&mut self) -> Option<Loss>;

    /// What the ring is.
    fn facts(&self) -> &RingFacts;

    /// The way to stop it from another thread, and to read the kernel's counters. Whoever stopped it so calls
    /// [`Receiver::stop`] all the same.
    fn gate(&self) -> Gate;

    /// What its interface has counted; `None` once it is gone.
    ///
    /// # Errors
    ///
    /// Where the kernel cannot be asked.
    fn interface_counters(&mut self) -> Result<Option<LinkCounters>>;
}

/// What a look at a ring brought.
#[derive(Debug)]
pub enum Received<'a> {
    /// Packets, lent until they are given back.
    Packets(Lent<'a>),
    /// Nothing, within the time. All packets up to the given time have been lent.
    Nothing(Timestamp),
    /// The interface is down; it may come up again.
    Down,
    /// The interface is gone.
    Gone,
    /// All packets up to the stop have been lent.
    End,
}

/// Packets that lie in memory of the ring.
#[derive(Debug)]
pub struct Lent<'a> {
    /// The bytes that the packets lie in. They may be changed.
    pub data: &'a mut [u8],
    /// Where each packet lies, in the order in which they were put there.
    pub packets: &'a [PacketRecord],
    /// Whether the next call lends more packets of the same memory. What `data` holds stays as it is until
    /// the last of them were lent, in the same place.
    pub goes_on: bool,
    /// What was lost before the first of them.
    pub loss: Option<Loss>,
    /// How full the ring is, these packets included.
    pub occupancy: Occupancy,
}

/// What a ring is, for people and for the books.
#[derive(Clone, Debug)]
pub struct RingFacts {
    /// Name of the backend, as `--backend` takes it.
    pub backend: &'static str,
    /// The interface that it is bound to.
    pub interface: String,
    /// Its number, which no other interface of the namespace ever had.
    pub interface_index: u32,
    /// What the ring is counted in.
    pub unit: RingUnit,
    /// Bytes of each of them.
    pub unit_bytes: usize,
    /// How many there are.
    pub units: usize,
    /// How the memory was negotiated; `None` where there is none of its own.
    pub memory: Option<Negotiation>,
    /// Bytes of a packet that are kept: those that were asked for, or those that the ring has room for.
    pub snaplen: u32,
    /// Instructions of the filter in the kernel; 0 without a filter.
    pub filter_len: usize,
    /// Whether what the filter refuses is counted.
    pub counts_filtered: bool,
    /// The sides that packets come from.
    pub direction: Direction,
    /// The fan-out group that it is a member of, as the kernel tells.
    pub fanout_group: Option<u16>,
    /// Who stamps the packets.
    pub stamps: StampSource,
    /// Microseconds of busy polling, as the kernel tells.
    pub busy_poll: Option<u32>,
    /// How an XDP program takes the packets, where one does.
    pub xdp: Option<XdpFacts>,
}

/// Who gives packets their time stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampSource {
    /// The kernel, one by one.
    Kernel,
    /// The interface, one by one.
    Interface,
    /// The thread that reads the ring, all at once that it finds there.
    Reader,
}

impl StampSource {
    /// What it is, in words.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Kernel => "the kernel, as it puts packets into the ring",
            Self::Interface => "the interface",
            Self::Reader => "the reader of the ring, as it finds them there",
        }
    }
}

/// How an XDP program takes packets, as the kernel tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XdpFacts {
    /// Whether the driver runs the program, before there is a buffer of the stack; otherwise the stack does.
    pub is_native: bool,
    /// Whether the interface writes packets into our memory itself; `None` where no packets pass through an
    /// XDP socket.
    pub is_zero_copy: Option<bool>,
    /// Queues of the interface.
    pub queues: usize,
}

/// What a ring is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingUnit {
    /// Blocks, each of many packets, which stay open for a time.
    Block,
    /// Frames, each of one packet.
    Frame,
    /// Bytes, as the kernel charges them.
    Byte,
}

impl RingUnit {
    /// The word for many of them.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Block => "blocks",
            Self::Frame => "frames",
            Self::Byte => "bytes",
        }
    }
}

/// The way that packets take, in the words of PF_RING's transparent modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// The system takes every packet, and a socket beside it gets a copy.
    Tap,
    /// A program before the system copies packets and passes them on.
    Both,
    /// What is captured does not come to the system.
    Bypass,
}

impl Path {
    /// Every path, in the order of the documentation.
    pub const ALL: [Self; 3] = [Self::Tap, Self::Both, Self::Bypass];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tap => "tap",
            Self::Both => "both",
            Self::Bypass => "bypass",
        }
    }

    /// What it is, in words.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Tap => "the system takes the packets, and the capture a copy",
            Self::Both => "a program before the system copies the packets, and passes them on",
            Self::Bypass => "the packets that are captured do not come to the system",
        }
    }
}

/// A kind of ring.
#[derive(Clone, Copy, Debug)]
pub struct Backend {
    /// Its name on the command line.
    pub name: &'static str,
    /// One sentence for `netsniff info`.
    pub summary: &'static str,
    /// The way that packets take.
    pub path: Path,
    /// Whether `CAP_NET_RAW` alone opens it, which is the most that a running capture keeps.
    pub reopens: bool,
    open: fn(&Interface, &Options) -> Result<Box<dyn Receiver>>,
}

impl Backend {
    /// Opens a ring, which takes nothing until it is started.
    ///
    /// # Errors
    ///
    /// Missing rights, and what the kernel refuses.
    pub fn open(&self, interface: &Interface, options: &Options) -> Result<Box<dyn Receiver>> {
        (self.open)(interface, options)
    }
}

/// THE list, the default first.
pub const BACKENDS: &[Backend] = &[
    af_packet::v3::BACKEND,
    af_packet::v2::BACKEND,
    af_packet::recvmmsg::BACKEND,
    xdp_copy::BACKEND,
    af_xdp::BACKEND,
];
