//! Frames that go to the kernel, and come from it, by messages.

use std::io;
use std::ptr;

use super::socket::Socket;
use super::{check, check_size};

/// Sends whole frames through a bound packet socket with one call (sendmmsg(2)) and returns how many of
/// them the kernel took.
pub(crate) fn send_frames(
    socket: &Socket,
    frames: &[&[u8]],
    messages: &mut MessageRoom,
) -> io::Result<usize> {
    messages.vectors.clear();
    messages.headers.clear();
    messages.vectors.extend(frames.iter().map(|frame| libc::iovec {
        // sendmmsg does not write to it.
        iov_base: frame.as_ptr().cast_mut().cast(),
        iov_len: frame.len(),
    }));
    for vector in &mut messages.vectors {
        // SAFETY: the struct is integers and pointers, for which zeroes are values.
        let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
        header.msg_hdr.msg_iov = ptr::from_mut(vector);
        header.msg_hdr.msg_iovlen = 1;
        messages.headers.push(header);
    }
    let (headers, count) = (messages.headers.as_mut_ptr(), messages.headers.len() as u32);
    // SAFETY: `count` headers, each with one vector over a frame; all of them live during the call.
    let sent = check(unsafe { libc::sendmmsg(socket.raw(), headers, count, libc::MSG_DONTWAIT) })?;
    Ok(sent as usize)
}

/// What the kernel says where it is made to look at a ring of frames that are to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kicked {
    /// The kernel took frames.
    Took,
    /// It has no room, and should be asked again.
    Full,
    /// The interface refused a frame. A packet ring still has it; an XDP socket has lost it, and the kernel stops behind
    /// each of these (`__xsk_generic_xmit` in `net/xdp/xsk.c`).
    Refused,
}

/// Makes the kernel look at the ring of frames that are to be sent.
pub(crate) fn kick(socket: &Socket) -> io::Result<Kicked> {
    // SAFETY: no buffer and no address are passed.
    let sent =
        unsafe { libc::sendto(socket.raw(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0) };
    match check_size(sent) {
        Ok(_) => Ok(Kicked::Took),
        Err(error) => match error.raw_os_error() {
            Some(libc::EBUSY) => Ok(Kicked::Refused),
            Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => Ok(Kicked::Full),
            _ => Err(error),
        },
    }
}

/// Room that [`send_frames`] uses again and again.
#[derive(Default)]
pub(crate) struct MessageRoom {
    headers: Vec<libc::mmsghdr>,
    vectors: Vec<libc::iovec>,
}

// SAFETY: the pointers in it are only used within one call, which sets them first.
unsafe impl Send for MessageRoom {}

impl std::fmt::Debug for MessageRoom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MessageRoom({})", self.headers.capacity())
    }
}

/// Bytes for the control messages of one packet: its auxiliary data, stamp and count of drops.
const CONTROL: usize = 128;

/// Takes packets from a socket with one call (recvmmsg(2)), without waiting, and returns how many there were.
/// Each goes to a slot of `slot_len` bytes of `data`, `headroom` bytes behind its begin.
///
/// # Errors
///
/// What the kernel says, but for nothing being there and for a signal, which are 0 packets.
pub(crate) fn receive_packets(
    socket: &Socket,
    data: &mut [u8],
    slot_len: usize,
    headroom: usize,
    received: &mut ReceiveRoom,
) -> io::Result<usize> {
    let slots = data.len().checked_div(slot_len).unwrap_or_default();
    received.control.resize(slots * CONTROL, 0);
    received.vectors.clear();
    received.headers.clear();
    let packets = data.chunks_exact_mut(slot_len.max(1));
    received.vectors.extend(packets.map(|slot| {
        let slot = slot.get_mut(headroom..).unwrap_or_default();
        libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() }
    }));
    let controls = received.control.chunks_exact_mut(CONTROL);
    for (vector, control) in received.vectors.iter_mut().zip(controls) {
        // SAFETY: the struct is integers and pointers, for which zeroes are values.
        let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
        header.msg_hdr.msg_iov = ptr::from_mut(vector);
        header.msg_hdr.msg_iovlen = 1;
        header.msg_hdr.msg_control = control.as_mut_ptr().cast();
        header.msg_hdr.msg_controllen = control.len() as _;
        received.headers.push(header);
    }
    let (headers, count) = (received.headers.as_mut_ptr(), received.headers.len() as u32);
    // SAFETY: `count` headers, each with one vector over a slot and with its own control bytes; the slots do
    // not overlap, and all of them live, borrowed mutably by this call, until it returns.
    let got = check(unsafe {
        libc::recvmmsg(socket.raw(), headers, count, libc::MSG_DONTWAIT as _, ptr::null_mut())
    });
    match got {
        Ok(packets) => Ok(packets as usize),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
        {
            Ok(0)
        }
        Err(error) => Err(error),
    }
}

/// What [`receive_packets`] has received besides the packets; used again and again.
#[derive(Default)]
pub(crate) struct ReceiveRoom {
    headers: Vec<libc::mmsghdr>,
    vectors: Vec<libc::iovec>,
    control: Vec<u8>,
}

impl ReceiveRoom {
    /// The length of each packet that was received, and its control messages (`struct cmsghdr`).
    pub(crate) fn messages(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.headers.iter().zip(self.control.chunks_exact(CONTROL)).map(|(header, control)| {
            // Its type differs from C library to C library.
            let len: usize = header.msg_hdr.msg_controllen as _;
            (header.msg_len, control.get(..len).unwrap_or_default())
        })
    }
}

// SAFETY: the pointers in it are only used within one call, which sets them first.
unsafe impl Send for ReceiveRoom {}

impl std::fmt::Debug for ReceiveRoom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReceiveRoom({})", self.headers.capacity())
    }
}
