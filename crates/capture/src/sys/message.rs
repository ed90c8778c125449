//! Frames that go to the kernel, and come from it, by messages.

use std::io;
use std::ptr;

use super::check;
use super::socket::Socket;

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
    let sent = check(unsafe { libc::sendmmsg(socket.raw(), headers, count, 0) })?;
    Ok(sent as usize)
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
