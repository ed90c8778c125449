//! What XDP sockets that send and those that receive have in common: opening, memory, binding.

use std::thread::sleep;
use std::time::Duration;

use crate::error::{CallContext as _, Error, Result, Right, permitted};
use crate::interface::Interface;
use crate::sys::socket::Socket;

/// How long a queue stays busy after another process has left it: the kernel frees its memory later.
const BUSY: Duration = Duration::from_millis(20);
const TRIES: u32 = 50;

/// Opens an XDP socket that has neither memory nor rings.
pub(crate) fn open() -> Result<Socket> {
    permitted(Socket::open(libc::AF_XDP, libc::SOCK_RAW, 0), "open an XDP socket", Right::RAW)
}

/// Why the kernel refuses memory with `ENOBUFS`, and what to do: memory for XDP counts as locked memory, unless
/// the process may lock what it likes.
pub(crate) fn lock_refused(bytes: usize) -> String {
    format!(
        "cannot lock {} KiB for an XDP socket: raise the limit of locked memory (ulimit -l), or give \
         CAP_IPC_LOCK",
        bytes >> 10
    )
}

/// Binds a socket to a queue of an interface, with flags of <linux/if_xdp.h>.
pub(crate) fn bind(socket: &Socket, interface: &Interface, queue: u32, flags: u16) -> Result<()> {
    for _ in 0..TRIES {
        match socket.bind_xdp(interface.index, queue, flags) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => sleep(BUSY),
            result => {
                let what = format!("bind an XDP socket to queue {queue} of {}", interface.name);
                return result.trying(what);
            }
        }
    }
    Err(Error::Invalid(format!(
        "queue {queue} of {} is used by another XDP socket",
        interface.name
    )))
}
