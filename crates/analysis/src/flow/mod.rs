//! Flows: which packets belong together, and what they amount to.
//!
//! | module | concern |
//! |---|---|
//! | [`table`] | look-up, and deadlines |
//! | [`tracker`] | the flows of one worker, from packet to record |
//! | [`mod@report`] | a flow as records, and what the summary counts |
//! | [`expectations`] | connections that others announced |
//! | [`history`] | what happened, in letters |
//! | [`roles`] | which side is likely the server |
//! | [`parents`] | which tunnels a flow travelled in |
//! | [`cutoff`] | which bytes of a flow are worth keeping |
//! | [`attached`] | what few flows have: tunnels around them, sessions |
//! | [`streams`] | the streams of a TCP connection, and what is said in them |
//! | [`tcp`] | TCP connections |

pub mod attached;
pub mod capture_losses;
pub mod cutoff;
pub mod expectations;
pub mod flow_events;
pub mod history;
pub mod parents;
pub mod report;
pub mod roles;
pub mod streams;
pub mod table;
pub mod tcp;
pub mod tracker;

use core::time::Duration;

use netsniff_packet::Timestamp;

use crate::depth::FlowDepth;
use crate::key::Endpoint;
use crate::key::uid::Uid;
use crate::key::{self, FlowKey, Side};
use crate::limits::Limits;
use crate::protocol::{ProtocolId, Services};
use attached::{AppLayer, Attached, DatagramTalk};
use history::{History, Letters};
use table::wheel::Armed;
use tcp::metrics::first::First;
use tcp::{HeldSyn, TcpConnection};

/// What one side of a flow sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SentTotals {
    /// Packets; a datagram put together from fragments is one.
    pub packets: u64,
    /// Bytes by the length fields of the IP headers.
    pub ip_bytes: u64,
}

impl SentTotals {
    /// Takes back what was counted here and belongs elsewhere.
    pub const fn take_back(&mut self, other: &Self) {
        self.packets = self.packets.saturating_sub(other.packets);
        self.ip_bytes = self.ip_bytes.saturating_sub(other.ip_bytes);
    }
}

/// Payload bytes that one side sent in datagrams, by their length fields.
#[derive(Clone, Copy, Debug)]
pub struct PayloadTotals(i64);

impl PayloadTotals {
    /// Stands for the time of a packet that did not come.
    const NOTHING: i64 = i64::MIN;

    /// The bytes, negative where a length field was too small for its own header; `None` where
    /// there was no packet.
    #[must_use]
    pub const fn bytes(self) -> Option<i64> {
        if self.0 == Self::NOTHING { None } else { Some(self.0) }
    }

    /// Counts a payload. Zeek begins anew after one that was too small for its own header.
    #[inline]
    pub const fn count(&mut self, len: i64) {
        self.0 = if self.0 < 0 { len } else { self.0.saturating_add(len) };
    }
}

impl Default for PayloadTotals {
    fn default() -> Self {
        Self(Self::NOTHING)
    }
}

/// The outer and the inner VLAN id of a packet. They have 12 bits, so that a number beyond stands for none.
#[derive(Clone, Copy, Debug)]
pub struct VlanIds([u16; 2]);

impl VlanIds {
    const NONE: u16 = u16::MAX;

    /// Those of a packet with these tags.
    #[must_use]
    pub fn new(outer: Option<u16>, inner: Option<u16>) -> Self {
        Self([outer, inner].map(|id| id.unwrap_or(Self::NONE)))
    }

    /// The outer and the inner id, where there is a tag.
    #[must_use]
    pub fn ids(self) -> [Option<u16>; 2] {
        self.0.map(|id| (id != Self::NONE).then_some(id))
    }
}

/// What is known of a flow above its packets.
#[derive(Debug)]
pub enum TransportState {
    /// Datagrams of UDP, ICMP or another protocol: what each side sent, by [`Side`].
    Datagrams([PayloadTotals; 2]),
    /// A TCP connection before its first segment.
    Unopened,
    /// A TCP connection that was tried with one SYN, perhaps again and again, and no more. Most
    /// flows of a flood or a scan are this, so that it has no memory of its own.
    Opening(First),
    /// A TCP connection that was tried with SYNs with data, and no more.
    Held(Box<HeldSyn>),
    /// A TCP connection of which more than SYNs was seen.
    Connection(Box<TcpConnection>),
}

impl TransportState {
    /// A connection of which more than SYNs was seen.
    fn connection(tcp: TcpConnection) -> Self {
        let mut tcp = Box::new(tcp);
        tcp.recount();
        Self::Connection(tcp)
    }
}

/// A flow in progress.
///
/// What every packet needs stands first, in two cache lines of 64 bytes; few need the third.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Flow {
    /// Addresses, ports and protocol.
    pub key: FlowKey,
    /// Engine time of the last packet: stamps may lie, but silence is told by this.
    pub seen: Timestamp,
    /// Time of the last packet that counts for the duration.
    pub last: Timestamp,
    /// When its timer comes up.
    pub armed: Armed,
    /// What happened, one bit for each kind.
    pub kinds: u32,
    /// What each side sent, by [`Side`].
    pub sent: [SentTotals; 2],
    /// What is known above the packets.
    pub exchange: TransportState,
    /// Which side is the originator.
    pub originator: Side,
    /// Whether people type here, so that long pauses are normal.
    pub interactive: bool,
    /// Whether a message of `protocol` was seen; over TCP, whether the streams are followed.
    pub spoken: bool,
    /// Whether the last message cannot be one of that protocol; over TCP, whether nothing that is
    /// said is of interest any more. So it is from the begin where flows are analysed less deep.
    pub contradicted: bool,
    /// Whether it was ever tunnelled.
    pub is_tunnelled: bool,
    /// Whether it goes on; otherwise this is only a place for another flow.
    pub is_alive: bool,
    /// How deep it is analysed.
    pub depth: FlowDepth,
    /// The application protocol that its port hints at, until its content contradicts.
    pub protocol: Option<ProtocolId>,
    /// Tunnels around it, and what is said in it.
    pub attached: Option<Box<Attached>>,
    /// Time of the first packet.
    pub start: Timestamp,
    /// What happened, in letters.
    pub letters: Letters,
    /// Hash that names it: 96 bits.
    pub name: [u32; 3],
    /// How many losses of the capture there had been when it began.
    pub losses: u32,
    /// VLAN ids of the first packet.
    pub vlan: VlanIds,
    /// Which hosts are local, by [`Side`].
    pub local: [bool; 2],
    /// Packets of each side, by [`Side`], whose checksums were wrong; 2^32 - 1 stands for more, too.
    pub bad_checksums: [u32; 2],
}

const _: () = assert!(size_of::<Flow>() == 192, "a flow takes three cache lines");

impl Flow {
    /// The identifier that every row of the flow has.
    #[must_use]
    pub const fn uid(&self) -> Uid {
        Uid::new(self.name_bits())
    }

    /// The 96 bits that its name tells, in whose order names are.
    #[must_use]
    pub const fn name_bits(&self) -> u128 {
        let [high, middle, low] = self.name;
        (high as u128) << 64 | (middle as u128) << 32 | low as u128
    }

    /// Its history, to change it.
    #[inline]
    pub const fn history(&mut self) -> History<'_> {
        History { seen: &mut self.kinds, letters: &mut self.letters, grown: 0 }
    }

    /// The two ends, originator first.
    #[must_use]
    pub const fn ends(&self) -> (Endpoint, Endpoint) {
        self.key.ends_from(self.originator)
    }

    /// Whether originator and responder are local.
    #[must_use]
    pub const fn local_by_role(&self) -> [bool; 2] {
        let [low, high] = self.local;
        match self.originator {
            Side::Low => [low, high],
            Side::High => [high, low],
        }
    }

    /// What originator and responder sent.
    #[must_use]
    pub const fn sent_by_role(&self) -> (SentTotals, SentTotals) {
        match self.originator {
            Side::Low => (self.sent[0], self.sent[1]),
            Side::High => (self.sent[1], self.sent[0]),
        }
    }

    /// Makes the responder the originator.
    pub fn flip(&mut self) {
        self.originator = match self.originator {
            Side::Low => Side::High,
            Side::High => Side::Low,
        };
        self.letters.push(b'^');
        // What was seen of each side, but for the kind that either side has.
        let of_both = self.kinds & history::UNKNOWN;
        self.kinds = (self.kinds ^ of_both).rotate_left(u16::BITS) | of_both;
    }

    /// The TCP connection, where there is one beyond its opening.
    #[must_use]
    #[inline]
    pub const fn tcp(&self) -> Option<&TcpConnection> {
        match &self.exchange {
            TransportState::Connection(tcp) => Some(tcp),
            _ => None,
        }
    }

    /// The application protocols that its content showed. Datagrams that contradict take back what
    /// came before, as in Zeek.
    #[must_use]
    pub fn services(&self) -> Services {
        let mut services = Services::default();
        let Some(attached) = &self.attached else { return services };
        match &attached.talk {
            AppLayer::Datagrams(DatagramTalk { session, .. }) => {
                if let Some(id) = self.protocol.filter(|_| !self.contradicted)
                    && session.is_confirmed()
                {
                    services.add(id);
                }
                services
            }
            AppLayer::Streams(streams) => *streams.conversation().services(),
            AppLayer::Silence | AppLayer::Over => attached.services,
        }
    }

    /// Makes a connection of an opening without data, with all that the record of a connection tells.
    pub fn unfold(&mut self, limits: &Limits) {
        if let TransportState::Opening(first) = &self.exchange {
            let seen = [self.start, self.last];
            let tcp = TcpConnection::reopened(first, seen, self.depth.now(), limits);
            self.exchange = TransportState::connection(tcp);
        }
    }

    /// Gives back the memory outside itself.
    pub fn release(&mut self) {
        self.exchange = TransportState::Unopened;
        self.attached = None;
        self.letters = Letters::default();
    }

    /// Engine time at which it began. Its own stamps may have run back since, or have been behind
    /// already then: what passed by them counts from there.
    const fn begun(&self) -> Timestamp {
        let passed = self.last.nanos_since(self.start);
        if passed > 0 { self.seen.offset(-passed) } else { self.seen }
    }

    /// When it ends without further packets.
    #[must_use]
    #[inline]
    pub fn deadline(&self, limits: &Limits) -> Timestamp {
        match &self.exchange {
            TransportState::Connection(tcp) => {
                let silence = if self.interactive {
                    limits.tcp_interactive_inactivity
                } else if tcp.is_established() {
                    limits.tcp_inactivity
                } else {
                    limits.udp_inactivity
                };
                (self.seen + silence).min(tcp.deadline(self.begun(), self.seen, limits))
            }
            TransportState::Opening(_) | TransportState::Held(_) | TransportState::Unopened => {
                (self.seen + limits.udp_inactivity).min(self.begun() + limits.tcp_attempt)
            }
            TransportState::Datagrams(_) => {
                let inactive = self.seen + silence_of(self.key.protocol, limits);
                self.protocol.map_or(inactive, |id| inactive.min(self.end_of_exchange(id)))
            }
        }
    }

    /// When an exchange of datagrams is over by the rule of its protocol.
    fn end_of_exchange(&self, protocol: ProtocolId) -> Timestamp {
        let Some(exchange) = protocol.protocol().exchange() else { return Timestamp::MAX };
        let interval = exchange.interval;
        first_look(self.begun() + interval, interval, self.seen + exchange.silence)
    }
}

/// The first of the looks at `first`, and every `interval` from there, that does not come before
/// `due`.
fn first_look(first: Timestamp, interval: Duration, due: Timestamp) -> Timestamp {
    if first >= due {
        return first;
    }
    let interval = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX).max(1);
    let passed = (due.nanos_since(first) - 1) / interval + 1;
    first.offset(passed.saturating_mul(interval))
}

/// The silence that ends a flow that is no TCP connection.
#[inline]
pub(crate) const fn silence_of(protocol: u8, limits: &Limits) -> Duration {
    match protocol {
        key::UDP => limits.udp_inactivity,
        key::ICMP | key::ICMPV6 => limits.icmp_inactivity,
        _ => limits.other_inactivity,
    }
}
