//! Application protocols: one file each, and the list of all.
//!
//! | module | concern |
//! |---|---|
//! | `list` | THE list of protocols |
//! | `carried` | connections that carry one file and nothing else |
//! | `heads` | how two streams begin, and what a protocol says of that |
//! | `session` | what a protocol makes of a conversation, and what it finds and announces |
//! | `conversation` | which protocol is spoken, and from the pieces of two streams to the calls of a session |
//! | `syntax` | lines, ASN.1, base64 and SASL, in whichever protocol |
//! | `file_transfer` | one file on its way, in whichever protocol |
//! | `mime` | messages and their parts, in whichever protocol |
//! | `x509` | certificates, and whether they were revoked, in whichever protocol |
//! | all others | one protocol each |
//!
//! A protocol names its ports itself; the flows know none. Over UDP it looks at datagrams one by
//! one, which tells who asks and who answers, and how long an exchange stays open. Over TCP it is
//! found by what is said. It makes a [`Session`] for each flow, which remembers what was said and
//! finds records.

mod carried;
mod conversation;
mod dhcp;
mod dhcpv6;
mod dns;
mod dtls;
mod file_transfer;
mod ftp;
mod heads;
mod http;
mod imap;
mod irc;
mod list;
mod mime;
mod mysql;
mod ntp;
mod pop3;
mod quic;
mod rdp;
mod session;
mod smtp;
mod snmp;
mod socks;
mod ssh;
mod syntax;
mod syslog;
mod telnet;
mod tls;
mod websocket;
mod x509;
mod xmpp;

pub use conversation::{Conversation, Event};
pub use dns::Resolution;
pub use heads::{Detection, Heads};
pub(crate) use http::speaker;
pub use list::{PROTOCOLS, ProtocolId, ProtocolSet, Services};
pub use session::expected::{Announcement, Expected, ExpectedTransfer, Kind};
pub use session::findings::{Finding, Findings, MAX_ODDITIES};
pub use session::{
    Bytes, Counted, Datagram, DatagramVerdict, GapAction, MissingBytes, Progress, Role, Session,
    SessionContext, SideEnd, Successor,
};

use core::ops::RangeInclusive;
use core::time::Duration;
use std::sync::Arc;

use crate::correlator::MakeJoin;
use crate::record::LogType;

/// An application protocol: how it is recognised, read and logged.
pub trait Protocol: Sync {
    /// The name, as Zeek's `service` column has it.
    fn name(&self) -> &'static str;

    /// The name, as the column `source` of the log `weird` has it.
    fn analyzer(&self) -> &'static str;

    /// The logs that its sessions write.
    fn logs(&self) -> &'static [&'static LogType];

    /// The joins of what its sessions tell, each in the list of one protocol.
    fn joins(&self) -> &'static [MakeJoin] {
        &[]
    }

    /// UDP ports of its servers: a hint where to look first, no proof.
    fn udp_ports(&self) -> &'static [u16] {
        &[]
    }

    /// TCP ports of its servers: a hint where to look first, no proof.
    fn tcp_ports(&self) -> &'static [u16] {
        &[]
    }

    /// Which side sent a datagram to or from a server's `port`, where its header alone tells.
    fn sender(&self, _port: u16, _payload: &[u8]) -> Option<Role> {
        None
    }

    /// Whether datagrams tell nothing of each other, so that one that is not of this protocol takes back
    /// nothing and keeps no other from being read.
    fn is_datagram_alone(&self) -> bool {
        false
    }

    /// Whether the port alone tells that datagrams are of this protocol, be it behind one that is not.
    fn is_known_by_port(&self) -> bool {
        false
    }

    /// First bytes of the datagrams that [`Self::detect_datagram`] may know, which is asked of no others.
    fn datagram_heads(&self) -> &'static [RangeInclusive<u8>] {
        &[]
    }

    /// Whether a datagram on any port is surely of this protocol.
    fn detect_datagram(&self, _payload: &[u8]) -> bool {
        false
    }

    /// Whether two streams that begin so are of this protocol. What is decided must stay so, however
    /// the streams go on.
    fn detect(&self, _heads: &Heads<'_>) -> Detection {
        Detection::No
    }

    /// Whether two streams on one of its TCP ports that begin with this line of the originator's are read
    /// as this protocol whatever else they are found to be, as Zeek does.
    fn begins_by_port(&self, _line: &[u8]) -> bool {
        false
    }

    /// When an exchange over UDP is over; `None` where UDP's own time-out rules.
    fn exchange(&self) -> Option<ExchangeTiming> {
        None
    }

    /// A session for a conversation that begins.
    fn session(&self, context: &SessionContext<'_>) -> Box<dyn Session>;

    /// A session for a conversation that another session announced.
    fn errand(&self, context: &SessionContext<'_>, _: Arc<ExpectedTransfer>) -> Box<dyn Session> {
        self.session(context)
    }
}

/// How the end of an exchange is found: a look at every `interval` from its begin, which ends it
/// after `silence`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeTiming {
    /// Time between two looks.
    pub interval: Duration,
    /// Silence that ends it.
    pub silence: Duration,
}
