//! Typed calls of the kernel; the only unsafe code of the project.
//!
//! Each file offers safe functions over one kind of call or one kind of shared memory. Memory that the
//! kernel writes to, too, is only lent while the kernel has said that it belongs to us.
#![allow(unsafe_code)]

pub(crate) mod bpf;
pub(crate) mod clock;
pub(crate) mod ethtool;
pub(crate) mod interface;
pub(crate) mod mapping;
pub(crate) mod message;
pub(crate) mod namespace;
pub(crate) mod netlink;
pub(crate) mod prefetch;
pub(crate) mod process;
pub(crate) mod record_ring;
pub(crate) mod scheduling;
pub(crate) mod send_ring;
pub(crate) mod slot_ring;
pub(crate) mod socket;
pub(crate) mod xdp;

use std::io;

/// The error of a call that tells failures by -1.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// [`check`] for calls that return a size.
pub(crate) fn check_size(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
