//! DHCP, RFC 2131.
//!
//! | module | concern |
//! |---|---|
//! | [`message`] | the octets of a message and its options |
//! | [`log`] | the log |
//! | [`exchange`] | messages that belong together: a row of the log |

mod exchange;
mod log;
mod message;

pub(super) use message::colons;

use super::{Datagram, DatagramVerdict, Findings, Protocol, Session, SessionContext};
use crate::correlator::MakeJoin;
use crate::correlator::exchanges::PendingExchanges;
use crate::record::LogType;
use exchange::DhcpExchange;
use message::{DhcpDatagram, DhcpMessage};

/// DHCP over UDP (RFC 2131).
#[derive(Debug)]
pub(super) struct Dhcp;

impl Protocol for Dhcp {
    fn name(&self) -> &'static str {
        "dhcp"
    }

    fn analyzer(&self) -> &'static str {
        "DHCP"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[log::Dhcp::LOG]
    }

    fn joins(&self) -> &'static [MakeJoin] {
        &[PendingExchanges::<DhcpExchange>::join]
    }

    /// Those of the server and of the client, and that of the servers that only tell where to boot
    /// from. As in Zeek they alone tell who asks: servers broadcast, too.
    fn udp_ports(&self) -> &'static [u16] {
        &[67, 68, 4011]
    }

    fn is_datagram_alone(&self) -> bool {
        true
    }

    fn is_known_by_port(&self) -> bool {
        true
    }

    fn session(&self, _: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(DhcpSession { is_confirmed: false, has_told: false })
    }
}

/// The messages of one flow. What belongs together may come in several.
#[derive(Debug)]
struct DhcpSession {
    is_confirmed: bool,
    /// Whether a message that is none was told.
    has_told: bool,
}

impl Session for DhcpSession {
    fn datagram(&mut self, datagram: &Datagram<'_>, found: &mut Findings) -> DatagramVerdict {
        match message::read(datagram.payload) {
            DhcpDatagram::Message { options, is_typed } => {
                self.is_confirmed = true;
                if !is_typed {
                    found.weirds.add("DHCP_no_type_option");
                }
                let message = DhcpMessage::new(datagram.time, datagram.from, &options);
                found.fact(message);
                if is_typed {
                    return DatagramVerdict::Fits;
                }
            }
            _ if core::mem::replace(&mut self.has_told, true) => {}
            DhcpDatagram::NoCookie => found.weirds.add("DHCP_bad_cookie"),
            DhcpDatagram::Malformed => found.weirds.add("DHCP_malformed_message"),
        }
        DatagramVerdict::Contradicts
    }

    fn end(&mut self, _: &mut Findings) {}

    fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Self>()
    }
}
