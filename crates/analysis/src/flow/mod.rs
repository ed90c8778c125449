//! Flows: which packets belong together, and what they amount to.
//!
//! | module | concern |
//! |---|---|
//! | [`key`] | identity and direction |
//! | [`table`] | look-up |
//! | [`wheel`] | deadlines |
//! | [`tracker`] | the flows of one worker, from packet to record |
//! | [`report`] | a flow as a record |
//! | [`tcp_report`] | a TCP connection's metrics as a record |
//! | [`history`] | what happened, in letters |
//! | [`roles`] | which side is likely the server, which address is local |
//! | [`parents`] | which tunnels a flow travelled in |
//! | [`tcp`] | TCP connections |

pub mod history;
pub mod key;
pub mod parents;
pub mod report;
pub mod roles;
pub mod table;
pub mod tcp;
pub mod tcp_report;
pub mod tracker;
pub mod wheel;

use core::time::Duration;

use netsniff_packet::Timestamp;

use crate::limits::Limits;
use crate::protocol::ProtocolId;
use crate::uid::Uid;
use history::History;
use key::{Endpoint, FlowKey, Side};
use parents::Parents;
use tcp::TcpConnection;

/// What one side of a flow sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    /// Packets; a datagram put together from fragments is one.
    pub packets: u64,
    /// Bytes by the length fields of the IP headers.
    pub ip_bytes: u64,
    /// Payload bytes of UDP and ICMP by their length fields; `None` until the first packet.
    pub payload: Option<i64>,
}

/// A flow in progress.
#[derive(Debug)]
pub struct Flow {
    /// Its identity.
    pub key: FlowKey,
    /// Hash of the key.
    pub hash: u32,
    /// Which side is the originator.
    pub originator: Side,
    /// Whether people type here, so that long pauses are normal.
    pub interactive: bool,
    /// The tick at which its timer comes up.
    pub armed: i64,
    /// Time of the first packet.
    pub start: Timestamp,
    /// Time of the last packet that counts for the duration.
    pub last: Timestamp,
    /// Engine time of the last packet: stamps may lie, but silence is told by this.
    pub seen: Timestamp,
    /// Hash that names it.
    pub name: [u64; 2],
    /// What each side sent, by [`Side`].
    pub sent: [Sent; 2],
    /// What happened.
    pub history: History,
    /// VLAN ids of the first packet.
    pub vlan: [Option<u16>; 2],
    /// The flows that it was tunnelled in.
    pub parents: Option<Box<Parents>>,
    /// The connection, for TCP.
    pub tcp: Option<Box<TcpConnection>>,
    /// The application protocol that its port hints at, until its content contradicts.
    pub protocol: Option<ProtocolId>,
    /// Whether a message of that protocol was seen.
    pub spoken: bool,
    /// How many losses of the capture there had been when it began.
    pub losses: u32,
}

impl Flow {
    /// Its name.
    #[must_use]
    pub const fn uid(&self) -> Uid {
        Uid::new((self.name[0] as u128) << 64 | self.name[1] as u128)
    }

    /// The two ends, originator first.
    #[must_use]
    pub const fn ends(&self) -> (Endpoint, Endpoint) {
        self.key.ends_from(self.originator)
    }

    /// What originator and responder sent.
    #[must_use]
    pub const fn sent_by_role(&self) -> (Sent, Sent) {
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
        self.history.push(b'^');
    }

    /// When it ends without further packets.
    #[must_use]
    #[inline]
    pub fn deadline(&self, limits: &Limits) -> Timestamp {
        let silence = match &self.tcp {
            Some(_) if self.interactive => limits.tcp_interactive_inactivity,
            Some(tcp) if tcp.is_established() => limits.tcp_inactivity,
            Some(_) => limits.udp_inactivity,
            None => silence_of(self.key.protocol, limits),
        };
        let inactive = self.seen + silence;
        match (&self.tcp, self.protocol) {
            (Some(tcp), _) => inactive.min(tcp.deadline(self.start, self.seen, limits)),
            (None, Some(protocol)) => inactive.min(self.end_of_exchange(protocol)),
            (None, None) => inactive,
        }
    }

    /// When an exchange of datagrams is over by the rule of its protocol.
    fn end_of_exchange(&self, protocol: ProtocolId) -> Timestamp {
        let Some(exchange) = protocol.protocol().exchange() else { return Timestamp::MAX };
        let interval = exchange.interval;
        first_look(self.start + interval, interval, self.seen + exchange.silence)
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
