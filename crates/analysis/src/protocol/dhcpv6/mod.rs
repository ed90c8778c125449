//! DHCPv6, RFC 8415, which Zeek has no log for.
//!
//! | module | concern |
//! |---|---|
//! | [`message`] | the octets of a message, out of what relays put around it |
//! | [`log`] | the log |
//! | [`exchange`] | messages that belong together: a row of the log |

mod exchange;
mod log;
mod message;

use super::{Datagram, DatagramVerdict, Findings, Protocol, Session, SessionContext};
use crate::correlator::MakeJoin;
use crate::correlator::exchanges::PendingExchanges;
use crate::record::LogType;
use exchange::Dhcpv6Exchange;
use message::Dhcpv6Message;

/// DHCPv6 over UDP (RFC 8415).
#[derive(Debug)]
pub(super) struct Dhcpv6;

impl Protocol for Dhcpv6 {
    fn name(&self) -> &'static str {
        "dhcpv6"
    }

    fn analyzer(&self) -> &'static str {
        "DHCPV6"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[log::Dhcpv6::LOG]
    }

    fn joins(&self) -> &'static [MakeJoin] {
        &[PendingExchanges::<Dhcpv6Exchange>::join]
    }

    /// Those of the client, and of the server and the relay. They alone tell who asks: a server's answer to a
    /// multicast address comes as a flow of its own.
    fn udp_ports(&self) -> &'static [u16] {
        &[546, 547]
    }

    fn is_datagram_alone(&self) -> bool {
        true
    }

    fn is_known_by_port(&self) -> bool {
        true
    }

    fn session(&self, _: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(Dhcpv6Session { is_confirmed: false, has_told: false })
    }
}

/// The messages of one flow. What belongs together may come in several.
#[derive(Debug)]
struct Dhcpv6Session {
    is_confirmed: bool,
    /// Whether a message that is none was told.
    has_told: bool,
}

impl Session for Dhcpv6Session {
    fn datagram(&mut self, datagram: &Datagram<'_>, found: &mut Findings) -> DatagramVerdict {
        let Some(message) = Dhcpv6Message::read(datagram.time, datagram.from, datagram.payload)
        else {
            if !core::mem::replace(&mut self.has_told, true) {
                found.weirds.add("DHCPv6_malformed_message");
            }
            return DatagramVerdict::Contradicts;
        };
        self.is_confirmed = true;
        found.fact(message);
        DatagramVerdict::Fits
    }

    fn end(&mut self, _: &mut Findings) {}

    fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Self>()
    }
}
