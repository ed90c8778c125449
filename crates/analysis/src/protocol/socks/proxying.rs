//! What came of a client's wish: a row of the log.

use std::borrow::Cow;

use netsniff_packet::Timestamp;

use super::message::Target;
use crate::log::socks::{Command, Socks};
use crate::protocol::Connection;
use crate::record::Port;

/// What a client of a proxy wanted, and what it got.
#[derive(Debug)]
pub struct Proxying {
    /// Time of the log-in, or of the request.
    pub(super) start: Timestamp,
    /// 4 or 5.
    pub(super) version: u8,
    pub(super) user: Option<Box<[u8]>>,
    pub(super) command: Option<u8>,
    pub(super) request: Option<Target>,
    /// The code of the last reply.
    pub(super) status: Option<u8>,
    pub(super) bound: Option<Target>,
}

impl Proxying {
    /// One of which only is known when it began.
    pub(super) const fn begun(start: Timestamp, version: u8) -> Self {
        let (user, command, request, status, bound) = (None, None, None, None, None);
        Self { start, version, user, command, request, status, bound }
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let targets = [&self.request, &self.bound].into_iter().flatten();
        self.user.as_ref().map_or(0, |user| user.len())
            + targets.map(Target::heap_bytes).sum::<usize>()
    }

    /// Hands the row of the log to `take`.
    pub fn report<T>(&self, connection: &Connection, take: impl FnOnce(&Socks<'_>) -> T) -> T {
        let (request, bound) = (self.request.as_ref(), self.bound.as_ref());
        let status = self.status.map(|code| words(self.version, code));
        take(&Socks {
            ts: self.start,
            uid: connection.uid,
            id_orig_h: connection.originator.address,
            id_orig_p: Port(connection.originator.port),
            id_resp_h: connection.responder.address,
            id_resp_p: Port(connection.responder.port),
            version: self.version,
            user: self.user.as_deref(),
            password: None,
            status: status.as_deref(),
            request_host: request.and_then(|target| target.host),
            request_name: request.and_then(|target| target.name.as_deref()),
            request_p: request.map(|target| Port(target.port)),
            bound_host: bound.and_then(|target| target.host),
            bound_name: bound.and_then(|target| target.name.as_deref()),
            bound_p: bound.map(|target| Port(target.port)),
            command: self.command.and_then(|command| match command {
                1 => Some(Command::Connect),
                2 => Some(Command::Bind),
                3 => Some(Command::UdpAssociate),
                _ => None,
            }),
        })
    }
}

/// What a reply says, in Zeek's words.
fn words(version: u8, code: u8) -> Cow<'static, str> {
    Cow::Borrowed(match (version, code) {
        (4, 0x5a) | (5, 0) => "succeeded",
        (4, 0x5b) | (5, 1) => "general SOCKS server failure",
        (4, 0x5c) => "request failed because client is not running identd",
        (4, 0x5d) => {
            "request failed because client's identd could not confirm the user ID string in the request"
        }
        (5, 2) => "connection not allowed by ruleset",
        (5, 3) => "Network unreachable",
        (5, 4) => "Host unreachable",
        (5, 5) => "Connection refused",
        (5, 6) => "TTL expired",
        (5, 7) => "Command not supported",
        (5, 8) => "Address type not supported",
        _ => return Cow::Owned(format!("unknown-{code}")),
    })
}
