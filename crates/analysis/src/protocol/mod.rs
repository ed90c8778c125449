//! Application protocols: one file each, and the list of all.
//!
//! A protocol names its ports itself; the flows know none. It looks at datagrams one by one, which
//! tells who asks and who answers, and how long an exchange stays open; and it makes a [`Session`]
//! for each flow, which remembers what was said and finds records.

mod dns;
mod ntp;
mod session;

pub use dns::Transaction;
pub use ntp::Message as NtpMessage;
pub use session::{Connection, Datagram, Findings, ProtocolRecord, Session};

use core::time::Duration;

use crate::limits::Limits;

/// Every protocol. The first whose port a flow has is asked first.
pub const PROTOCOLS: &[&dyn Protocol] = &[&dns::Dns, &ntp::Ntp];

/// An application protocol.
pub trait Protocol: Sync {
    /// The name, as Zeek's `service` column has it.
    fn name(&self) -> &'static str;

    /// The name, as the column `source` of the log `weird` has it.
    fn analyzer(&self) -> &'static str;

    /// UDP ports of its servers: a hint where to look first, no proof.
    fn udp_ports(&self) -> &'static [u16];

    /// What one datagram to or from a server's `port` shows by itself.
    fn datagram(&self, port: u16, payload: &[u8]) -> Verdict;

    /// When an exchange over UDP is over; `None` where UDP's own time-out rules.
    fn exchange(&self) -> Option<Exchange>;

    /// A session for a flow that begins, within `limits`.
    fn session(&self, limits: &Limits) -> Box<dyn Session>;
}

/// What a datagram shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is too short to tell.
    Unclear,
    /// It cannot be a message of this protocol.
    Contradicts {
        /// Whether its header, read as one of this protocol, is the side's that answers. As in Zeek,
        /// that is believed all the same.
        from_server: bool,
    },
    /// A message of a kind that the protocol does not have.
    Unknown {
        /// Whether it is of the side that answers.
        from_server: bool,
    },
    /// A message of the side that asks.
    FromClient,
    /// A message of the side that answers.
    FromServer,
}

/// How the end of an exchange is found: a look at every `interval` from its begin, which ends it
/// after `silence`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Time between two looks.
    pub interval: Duration,
    /// Silence that ends it.
    pub silence: Duration,
}

/// A protocol's place in [`PROTOCOLS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolId(u8);

impl ProtocolId {
    /// The protocol whose servers use this UDP port.
    #[must_use]
    pub fn of_udp_port(port: u16) -> Option<Self> {
        let at = PROTOCOLS.iter().position(|protocol| protocol.udp_ports().contains(&port))?;
        u8::try_from(at).ok().map(Self)
    }

    /// The protocol.
    #[must_use]
    #[inline]
    pub fn protocol(self) -> &'static dyn Protocol {
        PROTOCOLS[usize::from(self.0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ports_are_distinct() {
        for (at, protocol) in PROTOCOLS.iter().enumerate() {
            for other in &PROTOCOLS[..at] {
                assert_ne!(protocol.name(), other.name());
                let shared = protocol.udp_ports().iter().find(|p| other.udp_ports().contains(p));
                assert_eq!(shared, None, "{} and {}", protocol.name(), other.name());
            }
        }
    }
}
