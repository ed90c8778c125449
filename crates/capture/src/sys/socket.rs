//! Sockets and their options.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::time::Duration;

use libc::{c_int, c_short, socklen_t};
use netsniff_packet::filter::classic::Instruction;

use super::bpf::Program;
use super::check;

/// What may be read from, and written to, the kernel byte by byte.
///
/// # Safety
///
/// Every pattern of bytes must be a value of the type.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: integers, and structs of integers that <linux/if_packet.h> and <linux/if_xdp.h> declare.
unsafe impl Plain for c_int {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above; an array of integers.
unsafe impl Plain for [u32; 9] {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_req3 {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_stats_v3 {}
// SAFETY: as above.
unsafe impl Plain for libc::packet_mreq {}
// SAFETY: as above; the address in it is only used by the kernel.
unsafe impl Plain for libc::xdp_umem_reg {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_statistics {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_options {}

#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

impl Socket {
    /// Opens a socket that is closed on exec.
    pub(crate) fn open(domain: c_int, kind: c_int, protocol: c_int) -> io::Result<Self> {
        // SAFETY: only numbers are passed.
        let descriptor =
            check(unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) })?;
        // SAFETY: the call succeeded, so the descriptor is open and nobody else's.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub(crate) fn set<T: Plain>(&self, level: c_int, name: c_int, value: &T) -> io::Result<()> {
        let len = size_of::<T>() as socklen_t;
        let value: *const T = value;
        // SAFETY: the pointer and the length describe `value`, which the kernel only reads.
        check(unsafe { libc::setsockopt(self.raw(), level, name, value.cast(), len) })?;
        Ok(())
    }

    /// Reads an option; what the kernel does not fill in is 0.
    pub(crate) fn option<T: Plain>(&self, level: c_int, name: c_int) -> io::Result<T> {
        let mut value = MaybeUninit::<T>::zeroed();
        let mut len = size_of::<T>() as socklen_t;
        // SAFETY: the kernel writes at most `len` bytes to `value`.
        check(unsafe {
            libc::getsockopt(self.raw(), level, name, value.as_mut_ptr().cast(), &raw mut len)
        })?;
        // SAFETY: all bytes were zero or written by the kernel, and any bytes are a `T` (`Plain`).
        Ok(unsafe { value.assume_init() })
    }

    /// Replaces the filter: packets for which it returns 0 do not get into the socket.
    pub(crate) fn attach_filter(&self, program: &[Instruction]) -> io::Result<()> {
        self.set_program(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, program)
    }

    /// The same with a program of kind [`ProgramKind::SocketFilter`](super::bpf::ProgramKind::SocketFilter).
    pub(crate) fn attach_program(&self, program: &Program) -> io::Result<()> {
        let descriptor = program.descriptor().as_raw_fd();
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_BPF, &descriptor)
    }

    /// Sets an option whose value is a classic BPF program.
    pub(crate) fn set_program(
        &self,
        level: c_int,
        name: c_int,
        program: &[Instruction],
    ) -> io::Result<()> {
        let mut program: Vec<_> = program
            .iter()
            .map(|i| libc::sock_filter { code: i.code, jt: i.jt, jf: i.jf, k: i.k })
            .collect();
        let len = u16::try_from(program.len())
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let value = libc::sock_fprog { len, filter: program.as_mut_ptr() };
        let size = size_of::<libc::sock_fprog>() as socklen_t;
        let value: *const libc::sock_fprog = &raw const value;
        // SAFETY: the value points to `len` instructions, which live to the end of the call; the kernel
        // copies them.
        check(unsafe { libc::setsockopt(self.raw(), level, name, value.cast(), size) })?;
        Ok(())
    }

    /// Takes the filter away, so that every packet gets into the socket.
    pub(crate) fn detach_filter(&self) -> io::Result<()> {
        match self.set::<c_int>(libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            result => result,
        }
    }

    /// Binds a packet socket to an interface and starts it; `protocol` in host byte order.
    pub(crate) fn bind_packet(&self, interface: u32, protocol: u16) -> io::Result<()> {
        // SAFETY: the struct is integers, for which zeroes are values.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = interface as c_int;
        self.bind(&address)
    }

    /// Binds a netlink socket to an address that the kernel chooses, in these groups.
    pub(crate) fn bind_netlink(&self, groups: u32) -> io::Result<()> {
        // SAFETY: the struct is integers, for which zeroes are values.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as u16;
        address.nl_groups = groups;
        self.bind(&address)
    }

    /// Binds an XDP socket to a queue of an interface.
    pub(crate) fn bind_xdp(&self, interface: u32, queue: u32, flags: u16) -> io::Result<()> {
        self.bind(&libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags,
            sxdp_ifindex: interface,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        })
    }

    fn bind<A>(&self, address: &A) -> io::Result<()> {
        let len = size_of::<A>() as socklen_t;
        let address: *const A = address;
        // SAFETY: the pointer and the length describe `address`, which the kernel only reads.
        check(unsafe { libc::bind(self.raw(), address.cast(), len) })?;
        Ok(())
    }

    /// Waits until there is something to read, an error is pending, or the time is over, in which case it
    /// returns 0. Returns the events of poll(2); a signal counts as the end of the time.
    pub(crate) fn poll(&self, events: c_short, time: Duration) -> io::Result<c_short> {
        poll(&mut [libc::pollfd { fd: self.raw(), events, revents: 0 }], time)
    }

    /// Takes the error that is pending on the socket, if any.
    pub(crate) fn pending_error(&self) -> io::Result<Option<io::Error>> {
        let code: c_int = self.option(libc::SOL_SOCKET, libc::SO_ERROR)?;
        Ok((code != 0).then(|| io::Error::from_raw_os_error(code)))
    }

    pub(super) fn raw(&self) -> c_int {
        self.0.as_raw_fd()
    }
}

/// Several sockets that are waited for together.
pub(crate) struct PollSet(Vec<libc::pollfd>);

impl PollSet {
    /// Of sockets that live at least as long.
    pub(crate) fn new<'a>(sockets: impl Iterator<Item = &'a Socket>, events: c_short) -> Self {
        let poll = |socket: &Socket| libc::pollfd { fd: socket.raw(), events, revents: 0 };
        Self(sockets.map(poll).collect())
    }

    /// [`Socket::poll`] for all of them: the events of any.
    pub(crate) fn poll(&mut self, time: Duration) -> io::Result<c_short> {
        poll(&mut self.0, time)
    }
}

impl std::fmt::Debug for PollSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PollSet({})", self.0.len())
    }
}

/// Waits at most so long, and returns the events of all; a signal counts as the end of the time.
pub(super) fn poll(sockets: &mut [libc::pollfd], time: Duration) -> io::Result<c_short> {
    let time = libc::timespec {
        tv_sec: time.as_secs().min(i32::MAX as u64) as libc::time_t,
        tv_nsec: time.subsec_nanos().into(),
    };
    let (start, count) = (sockets.as_mut_ptr(), sockets.len() as libc::nfds_t);
    // SAFETY: `count` descriptions and one timespec, all alive during the call; no signal mask.
    let result = check(unsafe { libc::ppoll(start, count, &raw const time, std::ptr::null()) });
    match result {
        Ok(_) => Ok(sockets.iter().fold(0, |events, socket| events | socket.revents)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(error),
    }
}
