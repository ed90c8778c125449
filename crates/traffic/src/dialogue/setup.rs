//! The hosts and the path of a dialogue before it, and the story of it afterwards.

use std::time::Duration;

use netsniff_packet::Timestamp;
use netsniff_packet::decode::TcpFlags;

use super::Cause;
use crate::frame::Host;

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The one that connects; the near one.
    Client,
    /// The side that answers.
    Server,
}

impl Side {
    /// The side that is not this one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// A part of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Leg {
    /// Between client and tap.
    Near,
    /// Between tap and server.
    Far,
}

/// The hosts and the path.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The host that connects.
    pub client: Host,
    /// The host that answers.
    pub server: Host,
    /// When the script begins.
    pub start: Timestamp,
    /// Delay of the near leg and of the far leg, one way.
    pub delay: (Duration, Duration),
    /// Time that a host needs for a frame: the least from one of its frames to the next.
    pub gap: Duration,
    /// Probability that the near leg and the far leg lose a TCP segment or datagram.
    pub loss: (f64, f64),
    /// Probability that a TCP segment or datagram is lost before the tap and behind it, whoever sends it, beside the
    /// losses of the legs.
    pub loss_around_tap: (f64, f64),
    /// Probability that a TCP segment or datagram takes longer to the tap than others, so that it comes behind them.
    pub reordering: f64,
    /// Probability that it takes longer from the tap to its receiver than others.
    pub reordering_behind: f64,
    /// Probability that the network doubles it before the tap.
    pub duplication: f64,
    /// By how much late ones and doubles are later, at most.
    pub jitter: Duration,
    /// The seed of losses, delays and doubles.
    pub seed: u64,
    /// Maximum segment size that both announce; segments with time stamps carry 12 bytes less.
    pub mss: u16,
    /// Window scale shift that both announce.
    pub window_scale: Option<u8>,
    /// Whether both permit SACK.
    pub sack: bool,
    /// Whether both use time stamps.
    pub timestamps: bool,
    /// Receive window of both, in bytes.
    pub window: u32,
    /// Bytes that a sender has under way at most; it does not change.
    pub in_flight: u32,
    /// Whether only every second full segment that is in order is acknowledged, and the last of what is said.
    pub delays_acknowledgements: bool,
    /// First retransmission time-out; doubles with each.
    pub timeout: Duration,
    /// Initial sequence numbers of client and server.
    pub initial_sequence: (u32, u32),
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            client: Host::new([192, 0, 2, 1].into(), 40_000),
            server: Host::new([198, 51, 100, 1].into(), 80),
            start: Timestamp::from_secs_nanos(1_767_225_600, 0),
            delay: (Duration::from_millis(1), Duration::from_millis(10)),
            gap: Duration::from_micros(12),
            loss: (0.0, 0.0),
            loss_around_tap: (0.0, 0.0),
            reordering: 0.0,
            reordering_behind: 0.0,
            duplication: 0.0,
            jitter: Duration::from_millis(1),
            seed: 1,
            mss: 1460,
            window_scale: Some(7),
            sack: true,
            timestamps: true,
            window: 1 << 20,
            in_flight: 14_600,
            delays_acknowledgements: false,
            timeout: Duration::from_millis(200),
            initial_sequence: (1000, 0xffff_f000),
        }
    }
}

/// A frame that passed the tap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When it passes the tap.
    pub timestamp: Timestamp,
    /// The side that sent it.
    pub from: Side,
    /// Why it was sent.
    pub cause: Cause,
    /// The Ethernet frame.
    pub frame: Vec<u8>,
    /// Whether the network made two of it; the second copy is the later one.
    pub is_doubled: bool,
}

/// A segment or datagram that a leg lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// When it was sent.
    pub sent: Timestamp,
    /// When it passed the tap, or would have.
    pub at_tap: Timestamp,
    /// The side that sent it.
    pub from: Side,
    /// Where it was lost.
    pub leg: Leg,
    /// TCP sequence number; 0 for UDP.
    pub sequence: u32,
    /// TCP flags; none for UDP.
    pub flags: TcpFlags,
    /// Bytes of payload.
    pub len: u32,
}

impl Lost {
    /// Whether the tap saw it before it was lost.
    #[must_use]
    pub fn seen(&self) -> bool {
        (self.from == Side::Client) == (self.leg == Leg::Far)
    }
}

/// What happened in a dialogue, as the truth to compare with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DialogueTrace {
    /// What passed the tap, in order of time.
    pub seen: Vec<Seen>,
    /// What the legs lost, in the order in which it was lost.
    pub lost: Vec<Lost>,
    /// Whether an end gave up after too many time-outs.
    pub given_up: bool,
}
