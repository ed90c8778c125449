//! bpf(2): maps, programs, and what holds a program at an interface.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::sync::atomic::Ordering;

use super::check;
use super::mapping::Mapping;
use crate::ebpf::assembler::Instruction;

/// Commands (`enum bpf_cmd` of <linux/bpf.h>).
#[derive(Clone, Copy, Debug)]
enum Command {
    CreateMap = 0,
    UpdateElement = 2,
    LoadProgram = 5,
    #[cfg(test)]
    TestProgram = 10,
    CreateLink = 28,
}

/// The part of `union bpf_attr` that a command reads. The kernel takes what is not given as 0.
///
/// # Safety
///
/// The layout must be that of <linux/bpf.h>, without padding, and what the addresses in it point to must be
/// as the command asks for.
unsafe trait Attributes {}

/// Calls bpf(2).
///
/// # Safety
///
/// Addresses in the attributes must be valid during the call for what the command reads and writes there.
unsafe fn bpf<A: Attributes>(command: Command, attributes: &mut A) -> io::Result<libc::c_int> {
    let attributes: *mut A = attributes;
    // SAFETY: the pointer and the length describe the attributes, which the kernel reads and may write
    // results to; the caller vouches for what they point to.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command as libc::c_long, attributes, size_of::<A>())
    };
    check(result as libc::c_int)
}

/// Takes what a command opened.
fn opened(descriptor: libc::c_int) -> OwnedFd {
    // SAFETY: the command succeeded, so the descriptor is open and nobody else's.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

#[repr(C)]
struct MapAttributes {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
}

// SAFETY: the begin of the struct for `BPF_MAP_CREATE`; no addresses.
unsafe impl Attributes for MapAttributes {}

/// Bytes of a key, and of a value that is a number.
const WORD: u32 = size_of::<u32>() as u32;

/// Makes a map, filled with zeroes.
fn create_map(mut attributes: MapAttributes) -> io::Result<OwnedFd> {
    // SAFETY: there are no addresses in the attributes.
    Ok(opened(unsafe { bpf(Command::CreateMap, &mut attributes) }?))
}

/// XDP sockets by queue (`BPF_MAP_TYPE_XSKMAP`). A socket that is closed leaves its place.
#[derive(Debug)]
pub(crate) struct SocketMap(OwnedFd);

impl SocketMap {
    /// A map with places for so many queues.
    ///
    /// # Errors
    ///
    /// `EPERM` without `CAP_BPF`; `ENOMEM`.
    pub(crate) fn create(queues: u32) -> io::Result<Self> {
        let attributes = MapAttributes {
            kind: 17,
            key_size: WORD,
            value_size: WORD,
            max_entries: queues,
            flags: 0,
        };
        create_map(attributes).map(Self)
    }

    /// Puts a socket, which is bound, in the place of its queue.
    ///
    /// # Errors
    ///
    /// `E2BIG` for a queue that there is no place for.
    pub(crate) fn set(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        let value = socket.as_raw_fd();
        let (key, value): (*const u32, *const i32) = (&raw const queue, &raw const value);
        let mut attributes = ElementAttributes {
            map: self.0.as_raw_fd().cast_unsigned(),
            padding: 0,
            key: key as u64,
            value: value as u64,
            flags: 0,
        };
        // SAFETY: the map has keys and values of one word each, which is what the addresses point to, and
        // both words live during the call.
        unsafe { bpf(Command::UpdateElement, &mut attributes) }?;
        Ok(())
    }

    /// The descriptor as instructions name it, while the map lives.
    pub(crate) fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

#[repr(C)]
struct ElementAttributes {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

// SAFETY: the struct for `BPF_MAP_*_ELEM`, with its hole filled; the one use gives the addresses.
unsafe impl Attributes for ElementAttributes {}

/// One value that programs and this process share (`BPF_MAP_TYPE_ARRAY` with `BPF_F_MMAPABLE`). It is read
/// without a call, and so in a sandbox that refuses bpf(2), too.
#[derive(Debug)]
pub(crate) struct SharedValue {
    descriptor: OwnedFd,
    mapping: Mapping,
}

impl SharedValue {
    /// A value of so many bytes, all 0.
    ///
    /// # Errors
    ///
    /// `EPERM` without `CAP_BPF`; `ENOMEM`.
    pub(crate) fn create(len: u32) -> io::Result<Self> {
        /// `BPF_F_MMAPABLE`.
        const MAPPABLE: u32 = 1 << 10;
        let attributes = MapAttributes {
            kind: 2,
            key_size: WORD,
            value_size: len,
            max_entries: 1,
            flags: MAPPABLE,
        };
        let descriptor = create_map(attributes)?;
        let mapping = Mapping::shared(descriptor.as_fd(), len as usize, 0)?;
        Ok(Self { descriptor, mapping })
    }

    /// The descriptor as instructions name it, while the value lives.
    pub(crate) fn number(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }

    /// Sets a word; the offset is a multiple of 4 in the value.
    pub(crate) fn set_word(&self, offset: usize, value: u32) {
        self.mapping.word(offset).store(value, Ordering::Release);
    }

    /// Reads eight bytes as a number; the offset is a multiple of 8 in the value.
    pub(crate) fn long(&self, offset: usize) -> u64 {
        self.mapping.long(offset).load(Ordering::Acquire)
    }
}

/// A ring that programs put records into (`BPF_MAP_TYPE_RINGBUF`).
pub(super) fn create_ring(len: u32) -> io::Result<OwnedFd> {
    create_map(MapAttributes { kind: 27, key_size: 0, value_size: 0, max_entries: len, flags: 0 })
}

/// What a program is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramKind {
    /// Filters of sockets (`BPF_PROG_TYPE_SOCKET_FILTER`).
    SocketFilter = 1,
    /// XDP (`BPF_PROG_TYPE_XDP`).
    Xdp = 6,
}

/// The licence of the programs, which is no concern of the kernel: they call nothing that asks for one.
const LICENCE: &core::ffi::CStr = c"Apache-2.0 OR MIT";

/// Bytes of the verifier's words that are read. It says the reason at the end, after each instruction that it
/// looked at, and nothing where the room does not do.
const LOG: usize = 1 << 24;

/// `BPF_F_XDP_HAS_FRAGS`: a packet may lie in several pieces, of which a program sees the first one only, and asks for
/// the others by calls.
const FRAGMENTS: u32 = 1 << 5;

#[repr(C)]
struct ProgramAttributes {
    kind: u32,
    instructions: u32,
    code: u64,
    licence: u64,
    log_level: u32,
    log_len: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

// SAFETY: the begin of the struct for `BPF_PROG_LOAD`; the one use gives the addresses.
unsafe impl Attributes for ProgramAttributes {}

/// Why a program was not loaded.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// What the call returned: `EPERM` without the right, `EACCES` or `EINVAL` by the verifier.
    pub(crate) source: io::Error,
    /// What the verifier said, line by line.
    pub(crate) log: String,
}

/// A program in the kernel. It goes when nothing holds it any more.
#[derive(Debug)]
pub(crate) struct Program(OwnedFd);

impl Program {
    /// Has the kernel verify a program and keep it.
    ///
    /// # Errors
    ///
    /// Missing rights (`CAP_BPF`, and `CAP_NET_ADMIN` for XDP), and what the verifier says.
    pub(crate) fn load(kind: ProgramKind, instructions: &[Instruction]) -> Result<Self, Refusal> {
        let refusal = |source| Refusal { source, log: String::new() };
        match Self::try_load(kind, instructions, &mut []) {
            Err(source)
                if source.kind() != io::ErrorKind::PermissionDenied
                    || source.raw_os_error() == Some(libc::EACCES) =>
            {
                // Once more, with room for the reason.
                let mut log = vec![0; LOG];
                let again = Self::try_load(kind, instructions, &mut log);
                let log = log.split(|byte| *byte == 0).next().unwrap_or_default();
                again.map_err(|source| Refusal {
                    source,
                    log: String::from_utf8_lossy(log).into_owned(),
                })
            }
            result => result.map_err(refusal),
        }
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Runs the program on bytes that are no packet of any interface, and returns what it returns.
    ///
    /// # Errors
    ///
    /// `EINVAL` for less than an Ethernet header, and for more than a packet may have.
    #[cfg(test)]
    pub(crate) fn run(&self, packet: &[u8]) -> io::Result<u32> {
        let mut attributes = TestAttributes {
            program: self.0.as_raw_fd().cast_unsigned(),
            result: 0,
            len_in: packet.len() as u32,
            len_out: 0,
            data_in: packet.as_ptr() as u64,
            data_out: 0,
            repeat: 1,
            duration: 0,
        };
        // SAFETY: the kernel reads `len_in` bytes of the packet, which live during the call.
        unsafe { bpf(Command::TestProgram, &mut attributes) }?;
        Ok(attributes.result)
    }

    fn try_load(kind: ProgramKind, code: &[Instruction], log: &mut [u8]) -> io::Result<Self> {
        let instructions =
            u32::try_from(code.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mut attributes = ProgramAttributes {
            kind: kind as u32,
            instructions,
            code: code.as_ptr() as u64,
            licence: LICENCE.as_ptr() as u64,
            log_level: u32::from(!log.is_empty()),
            log_len: log.len() as u32,
            log: if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 },
            kernel_version: 0,
            flags: if kind == ProgramKind::Xdp { FRAGMENTS } else { 0 },
        };
        // SAFETY: the addresses are those of `instructions` instructions with the layout of `struct bpf_insn`,
        // a string with its end, and `log_len` bytes that may be written, or none; all outlive the call.
        Ok(Self(opened(unsafe { bpf(Command::LoadProgram, &mut attributes) }?)))
    }
}

#[cfg(test)]
#[repr(C)]
struct TestAttributes {
    program: u32,
    result: u32,
    len_in: u32,
    len_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
}

// SAFETY: the begin of the struct for `BPF_PROG_TEST_RUN`; the one use gives the addresses.
#[cfg(test)]
unsafe impl Attributes for TestAttributes {}

/// Where in the system an XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum XdpMode {
    /// In the driver, before the packet has a buffer of the stack (`XDP_FLAGS_DRV_MODE`).
    Native = 1 << 2,
    /// At the begin of the stack, for any driver (`XDP_FLAGS_SKB_MODE`).
    Generic = 1 << 1,
}

#[repr(C)]
struct LinkAttributes {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

// SAFETY: the begin of the struct for `BPF_LINK_CREATE`; no addresses.
unsafe impl Attributes for LinkAttributes {}

/// A program at an interface. It leaves when this is dropped, or the process dies.
#[derive(Debug)]
pub(crate) struct XdpLink(#[allow(dead_code, reason = "held for what its closing does")] OwnedFd);

impl XdpLink {
    /// Puts a program of kind [`ProgramKind::Xdp`] before an interface.
    ///
    /// # Errors
    ///
    /// `EBUSY` where another program is there; `EOPNOTSUPP` or `EINVAL` where the driver has no such mode;
    /// `ERANGE` where its packets may be too long for it; `EPERM` without `CAP_NET_ADMIN`.
    pub(crate) fn create(program: &Program, interface: u32, mode: XdpMode) -> io::Result<Self> {
        /// `BPF_XDP` of `enum bpf_attach_type`.
        const XDP: u32 = 37;
        let mut attributes = LinkAttributes {
            program: program.0.as_raw_fd().cast_unsigned(),
            interface,
            attach_type: XDP,
            flags: mode as u32,
        };
        // SAFETY: there are no addresses in the attributes.
        Ok(Self(opened(unsafe { bpf(Command::CreateLink, &mut attributes) }?)))
    }
}
