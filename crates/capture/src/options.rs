//! How to capture.

use std::time::Duration;

use netsniff_packet::filter::classic::Instruction;

/// Choices for a ring.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of the ring that are asked for; the kernel may grant less.
    pub ring_bytes: usize,
    /// Bytes of each block of a ring that has blocks, and of each piece of memory of one that has frames.
    pub block_bytes: usize,
    /// How long a block may stay open once a packet is in it.
    pub retire: Duration,
    /// Bytes of a packet that are kept. The kernel cuts.
    pub snaplen: u32,
    /// Packets that are wanted, by the side they come from.
    pub direction: Direction,
    /// Whether packets for other hosts are wanted, too.
    pub promiscuous: bool,
    /// The filter in the kernel, which returns 0 for packets that are not wanted; empty for none.
    pub filter: Vec<Instruction>,
    /// What to do while there is nothing.
    pub wait: Wait,
    /// How long a call that waits may ask the driver itself (`SO_BUSY_POLL`).
    pub busy_poll: Option<Duration>,
    /// Who stamps the packets.
    pub stamps: Stamps,
    /// The group of rings that share the packets, if any.
    pub fanout: Option<Fanout>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            // Two thirds of a second of an Ethernet at 1 Gb/s; larger ones cost caches and save nothing
            // where the mean rate is too high.
            ring_bytes: 64 << 20,
            block_bytes: 1 << 20,
            retire: Duration::from_millis(50),
            snaplen: 262_144,
            direction: Direction::Both,
            promiscuous: true,
            filter: Vec::new(),
            wait: Wait::Adaptive,
            busy_poll: None,
            stamps: Stamps::Auto,
            fanout: None,
        }
    }
}

/// Which packets are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Those that come in.
    In,
    /// Those that this machine sends.
    Out,
    /// Packets of both directions.
    #[default]
    Both,
}

impl Direction {
    /// The word that the command line takes for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
            Self::Both => "both",
        }
    }
}

/// What to do while a ring has nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Sleep until the kernel wakes us.
    Poll,
    /// Ask again and again, which takes a whole processor.
    Busy,
    /// Ask for a moment, sleep as the rate and the room in the ring allow, then let the kernel wake us.
    #[default]
    Adaptive,
}

/// Who stamps the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stamps {
    /// The kernel. Clocks of interfaces are not known to be right unless somebody has set them.
    #[default]
    Auto,
    /// The kernel, as it puts the packet into the ring.
    Software,
    /// The interface's own clock.
    Hardware,
}

/// Several rings that share the packets of an interface.
#[derive(Clone, Debug)]
pub struct Fanout {
    /// Number of the group, which other processes may have begun; `None` for a new one, whose number the
    /// kernel chooses.
    pub group: Option<u16>,
    /// The program that picks a ring: what it returns, modulo the number of rings.
    pub program: Vec<Instruction>,
}
