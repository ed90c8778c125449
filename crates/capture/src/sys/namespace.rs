//! Network namespaces, for tests and the testbed.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::thread;

use super::check;

/// Runs something in a thread of the network namespace that ip-netns(8) knows by this name. Its panics become
/// the caller's.
///
/// # Errors
///
/// Where there is none, or without the right (`CAP_SYS_ADMIN`).
pub fn in_namespace<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            enter(name)?;
            Ok(work())
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Moves the calling thread. Sockets that it opened before stay where they were.
fn enter(name: &str) -> io::Result<()> {
    let namespace = File::open(Path::new("/run/netns").join(name))?;
    // SAFETY: only numbers are passed, and the descriptor is open.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) })?;
    Ok(())
}
