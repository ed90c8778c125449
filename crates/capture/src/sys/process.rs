//! Processes that have ended, and what the kernel counted of them.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::time::Duration;

/// How a process ended, and what it used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code, or the signal that ended it.
    pub status: ExitStatus,
    /// Time on processors in its own code, of all its threads.
    pub user: Duration,
    /// Time on processors in the kernel, of all its threads.
    pub system: Duration,
    /// The most resident memory that it had at once, in bytes. It is never less than what this process had when the other one
    /// began, since both shared its memory up to then.
    pub peak_bytes: u64,
}

/// Waits until a process has ended.
///
/// # Errors
///
/// Where the call fails, as for a process that was waited for before.
pub fn wait_for(child: Child) -> io::Result<Ended> {
    let pid = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    let mut status = 0;
    // SAFETY: the struct has integers alone, for which zeroes are values.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both places live during the call, and are of the types that the call writes.
        let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut used) };
        match super::check(waited) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(_) => break,
        }
    }
    Ok(Ended {
        status: ExitStatus::from_raw(status),
        user: duration(used.ru_utime),
        system: duration(used.ru_stime),
        peak_bytes: u64::try_from(used.ru_maxrss).unwrap_or(0) << 10,
    })
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_that_works_has_used_time_and_memory() {
        let of = |script: &str| {
            let child = Command::new("sh").args(["-c", script]).spawn().unwrap();
            wait_for(child).unwrap()
        };
        let idle = of("exit 3");
        assert_eq!(idle.status.code(), Some(3));
        let busy = of("n=0; while [ $n -lt 200000 ]; do n=$((n + 1)); done");
        assert!(busy.status.success());
        let time = |ended: Ended| ended.user + ended.system;
        assert!(time(busy) > time(idle) + Duration::from_millis(20), "{busy:?} {idle:?}");
        assert!(busy.peak_bytes > 100_000 && busy.peak_bytes < 1 << 40, "{busy:?}");
    }
}
