//! Network namespaces, for tests and the testbed.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use super::check;

/// Moves the calling thread to the network namespace that ip-netns(8) knows by this name. Sockets that it
/// opened before stay where they were.
///
/// # Errors
///
/// Where there is none, or without the right (`CAP_SYS_ADMIN`).
pub fn enter_namespace(name: &str) -> io::Result<()> {
    let namespace = File::open(Path::new("/run/netns").join(name))?;
    // SAFETY: only numbers are passed, and the descriptor is open.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) })?;
    Ok(())
}
