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
    inside(&Path::new("/run/netns").join(name), work)
}

/// Likewise of the network namespace of a process.
///
/// # Errors
///
/// Where it is gone, or without the right (`CAP_SYS_ADMIN`, and to trace it).
pub fn in_namespace_of<T: Send>(pid: u32, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    inside(Path::new(&format!("/proc/{pid}/ns/net")), work)
}

fn inside<T: Send>(namespace: &Path, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            enter(namespace)?;
            Ok(work())
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Moves the calling thread. Sockets that it opened before stay where they were.
fn enter(namespace: &Path) -> io::Result<()> {
    let namespace = File::open(namespace)?;
    // SAFETY: only numbers are passed, and the descriptor is open.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) })?;
    Ok(())
}
