//! Processors: how many there are, which ones a thread runs on, and how urgent it is.

use std::io;

use super::check;

/// Pins the calling thread to one processor.
pub fn pin(cpu: usize) -> io::Result<()> {
    // SAFETY: the struct is an array of integers, for which zeroes are values.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: `cpu` is within the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the set lives during the call; 0 is the calling thread.
    check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) })?;
    Ok(())
}

/// Lets the calling thread run on every processor that its process may use.
pub fn unpin() -> io::Result<()> {
    // SAFETY: the struct is an array of integers, for which any bits are values.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for cpu in 0..libc::CPU_SETSIZE as usize {
        // SAFETY: `cpu` is within the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: the set lives during the call; 0 is the calling thread. The kernel leaves out what is not allowed.
    check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) })?;
    Ok(())
}

/// Sets the nice value of the calling thread, -20 for the most urgent.
pub fn set_nice(nice: i32) -> io::Result<()> {
    // SAFETY: only numbers are passed; 0 is the calling thread.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) })?;
    Ok(())
}

/// Processors that this machine has, whether the process may use them or not.
pub(crate) fn processors() -> usize {
    // SAFETY: only a number is passed.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    usize::try_from(count).unwrap_or(1).max(1)
}
