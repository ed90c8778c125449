//! What ways through packet sockets have in common.

use crate::error::{CallContext as _, Result, Right, permitted};
use crate::interface::Interface;
use crate::sys::socket::Socket;

/// Opens a packet socket that sends past the queueing discipline, and receives nothing; the caller binds it.
pub(super) fn open() -> Result<Socket> {
    let opened = Socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0);
    let socket = permitted(opened, "open a packet socket", Right::RAW)?;
    socket
        .set(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1)
        .trying("go past the queueing discipline")?;
    Ok(socket)
}

/// Binds it to an interface, for sending alone.
pub(super) fn bind(socket: &Socket, interface: &Interface) -> Result<()> {
    // Protocol 0 receives nothing.
    let bound = socket.bind_packet(interface.index, 0);
    bound.trying(format!("bind a packet socket to {}", interface.name))
}
