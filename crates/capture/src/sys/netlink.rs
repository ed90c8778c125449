//! Questions to rtnetlink(7), where the kernel counts in 64 bits.

use std::io;

use super::check_size;
use super::socket::Socket;

/// Bytes of `struct nlmsghdr`, and of `struct ifinfomsg` behind it.
const HEADER: usize = 16;
const LINK: usize = 16;

/// What the kernel says of a link.
#[derive(Debug)]
pub(crate) struct Link {
    /// `IFF_UP` ….
    pub(crate) flags: u32,
    /// Attributes (`struct rtattr`), for [`attribute`].
    pub(crate) attributes: Vec<u8>,
}

/// A socket for questions about links.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Self> {
        let socket = Socket::open(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Asks for a link (`RTM_GETLINK`).
    ///
    /// # Errors
    ///
    /// `ENODEV` where there is no interface of that number.
    pub(crate) fn link(&mut self, interface: u32) -> io::Result<Link> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut question = Vec::with_capacity(HEADER + LINK);
        question.extend(((HEADER + LINK) as u32).to_ne_bytes());
        question.extend(libc::RTM_GETLINK.to_ne_bytes());
        question.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
        question.extend(self.sequence.to_ne_bytes());
        question.extend([0; 4]);
        question.extend([0; 4]);
        question.extend(interface.to_ne_bytes());
        question.extend([0; 8]);
        self.send(&question)?;
        let mut answer = vec![0; 1 << 16];
        loop {
            let len = self.receive(&mut answer)?;
            let message = answer.get(..len).unwrap_or_default();
            let (Some(kind), Some(sequence)) = (half(message, 4), word(message, 8)) else {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
            };
            if sequence != self.sequence {
                // The answer to a question whose asker has given up.
                continue;
            }
            if kind == libc::NLMSG_ERROR as u16 {
                let code = word(message, HEADER).unwrap_or_default() as i32;
                return Err(io::Error::from_raw_os_error(-code));
            }
            return Ok(Link {
                flags: word(message, HEADER + 8).unwrap_or_default(),
                attributes: message.get(HEADER + LINK..).unwrap_or_default().to_vec(),
            });
        }
    }

    fn send(&self, message: &[u8]) -> io::Result<()> {
        // SAFETY: the pointer and the length describe `message`, which the kernel only reads.
        let sent =
            unsafe { libc::send(self.socket.raw(), message.as_ptr().cast(), message.len(), 0) };
        check_size(sent).map(|_| ())
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the kernel writes at most the length of `buffer` to it.
        let got =
            unsafe { libc::recv(self.socket.raw(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        check_size(got)
    }
}

/// The value of an attribute among others (`struct rtattr`).
pub(crate) fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    while let (Some(len), Some(kind)) = (half(attributes, 0), half(attributes, 2)) {
        let len = usize::from(len);
        if kind & 0x3fff == wanted {
            return attributes.get(4..len);
        }
        attributes = attributes.get(len.max(4).next_multiple_of(4)..)?;
    }
    None
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Eight bytes of an attribute's value.
pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}
