//! The `socks` log: one row for each connection to a proxy, as Zeek writes it.

use std::borrow::Cow;

use netsniff_packet::{Address, Timestamp};

use super::message::Target;
use crate::record::Port;

crate::words! {
    /// What a client wants of a proxy, in the words of RFC 1928.
    pub(super) enum Command {
        /// A connection to a host.
        Connect => "CONNECT",
        /// A port on which the proxy waits for a connection.
        Bind => "BIND",
        /// Datagrams relayed to hosts.
        UdpAssociate => "UDP ASSOCIATE",
    }
}

crate::record! {
    /// One row for each connection in SOCKS to which the proxy replied: what the client wanted, and what
    /// it got.
    pub(super) struct Socks => "socks" {
        /// Time of the log-in, or of the request where there is none.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        connection Zeek;
        /// Version of SOCKS, 4 or 5.
        version: u8 => "version", count, None, Plain, Zeek;
        /// User that the client says it is.
        user: Option<Box<[u8]>> => "user", string, None, User, Zeek;
        /// That user's password: it is not kept.
        password: Option<Box<[u8]>> => "password", string, None, User, Zeek;
        /// What the proxy replied last.
        status: Option<Cow<'static, str>> => "status", string, None, Plain, Zeek;
        /// Address of the host that the client wants; beside a name in version 4, 0.0.0.x.
        request_host: Option<Address> => "request.host", addr, None, Address, Zeek;
        /// Name of that host.
        request_name: Option<Box<[u8]>> => "request.name", string, None, Name, Zeek;
        /// Port of that host.
        request_p: Option<Port> => "request_p", port, None, Plain, Zeek;
        /// Address that the proxy uses for the client.
        bound_host: Option<Address> => "bound.host", addr, None, Address, Zeek;
        /// Name of that address.
        bound_name: Option<Box<[u8]>> => "bound.name", string, None, Name, Zeek;
        /// Port that the proxy uses for the client.
        bound_p: Option<Port> => "bound_p", port, None, Plain, Zeek;
        /// What the client wants; unset where it came no further than the log-in.
        command: Option<Command> => "command", enum, None, Plain, Netsniff;
    }
}

impl Socks {
    /// One of which only is known when it began.
    pub(super) const fn begun(ts: Timestamp, version: u8) -> Self {
        Self {
            ts,
            version,
            user: None,
            password: None,
            status: None,
            request_host: None,
            request_name: None,
            request_p: None,
            bound_host: None,
            bound_name: None,
            bound_p: None,
            command: None,
        }
    }

    /// Takes what the client wants.
    pub(super) fn wants(&mut self, command: u8, target: Target) {
        self.command = match command {
            1 => Some(Command::Connect),
            2 => Some(Command::Bind),
            3 => Some(Command::UdpAssociate),
            _ => None,
        };
        let Target { host, name, port } = target;
        (self.request_host, self.request_name) = (host, name);
        self.request_p = Some(Port(port));
    }

    /// Takes the code of a reply.
    pub(super) fn reply(&mut self, code: u8) {
        self.status = Some(words(self.version, code));
    }

    /// Takes what the proxy uses for the client.
    pub(super) fn bound(&mut self, target: Target) {
        let Target { host, name, port } = target;
        (self.bound_host, self.bound_name) = (host, name);
        self.bound_p = Some(Port(port));
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let texts = [&self.user, &self.request_name, &self.bound_name];
        texts.into_iter().flatten().map(|text| text.len()).sum()
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
