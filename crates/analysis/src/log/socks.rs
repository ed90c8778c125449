//! The `socks` log: one row for each connection to a proxy, as Zeek writes it.

use netsniff_packet::{Address, Timestamp};

use crate::record::Port;
use crate::uid::Uid;

crate::words! {
    /// What a client wants of a proxy, in the words of RFC 1928.
    pub enum Command {
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
    pub struct Socks<'a> => "socks" {
        /// Time of the log-in, or of the request where there is none.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        /// Identifier of the connection, the same in every log.
        uid: Uid => "uid", string, None, Plain, Zeek;
        /// Address of the originator.
        id_orig_h: Address => "id.orig_h", addr, None, Address, Zeek;
        /// Port of the originator.
        id_orig_p: Port => "id.orig_p", port, None, Plain, Zeek;
        /// Address of the responder.
        id_resp_h: Address => "id.resp_h", addr, None, Address, Zeek;
        /// Port of the responder.
        id_resp_p: Port => "id.resp_p", port, None, Plain, Zeek;
        /// Version of SOCKS, 4 or 5.
        version: u8 => "version", count, None, Plain, Zeek;
        /// User that the client says it is.
        user: Option<&'a [u8]> => "user", string, None, User, Zeek;
        /// That user's password: it is not kept.
        password: Option<&'a [u8]> => "password", string, None, User, Zeek;
        /// What the proxy replied last.
        status: Option<&'a str> => "status", string, None, Plain, Zeek;
        /// Address of the host that the client wants; beside a name in version 4, 0.0.0.x.
        request_host: Option<Address> => "request.host", addr, None, Address, Zeek;
        /// Name of that host.
        request_name: Option<&'a [u8]> => "request.name", string, None, Name, Zeek;
        /// Port of that host.
        request_p: Option<Port> => "request_p", port, None, Plain, Zeek;
        /// Address that the proxy uses for the client.
        bound_host: Option<Address> => "bound.host", addr, None, Address, Zeek;
        /// Name of that address.
        bound_name: Option<&'a [u8]> => "bound.name", string, None, Name, Zeek;
        /// Port that the proxy uses for the client.
        bound_p: Option<Port> => "bound_p", port, None, Plain, Zeek;
        /// What the client wants; unset where it came no further than the log-in.
        command: Option<Command> => "command", enum, None, Plain, Netsniff;
    }
}
