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

impl Link {
    /// Reads a message about a link (`struct ifinfomsg` behind `struct nlmsghdr`).
    fn parse(message: &[u8]) -> Self {
        Self {
            flags: word(message, HEADER + 8).unwrap_or_default(),
            attributes: message.get(HEADER + LINK..).unwrap_or_default().to_vec(),
        }
    }
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

    /// A socket to which the kernel tells what becomes of all links (`RTNLGRP_LINK`).
    pub(crate) fn listen() -> io::Result<Self> {
        let netlink = Self::open()?;
        netlink.socket.bind_netlink(libc::RTMGRP_LINK as u32)?;
        Ok(netlink)
    }

    /// What a link was when it was removed (`RTM_DELLINK`), if that was told by now. What is told of others, and of
    /// what else became of it, is passed over.
    pub(crate) fn removed(&mut self, interface: u32) -> Option<Link> {
        let mut told = vec![0; 1 << 16];
        let mut failures = 0;
        loop {
            let len = match self.receive_with(&mut told, libc::MSG_DONTWAIT) {
                Ok(len) => len,
                // More was told than there was room for: what is there comes with the next call.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) && failures < 2 => {
                    failures += 1;
                    continue;
                }
                Err(_) => return None,
            };
            let message = told.get(..len).unwrap_or_default();
            // A bridge tells of ports that leave it in the same words, as another family.
            let is_removal = half(message, 4) == Some(libc::RTM_DELLINK)
                && message.get(HEADER) == Some(&(libc::AF_UNSPEC as u8));
            if is_removal && word(message, HEADER + 4) == Some(interface) {
                return Some(Link::parse(message));
            }
        }
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
            return Ok(Link::parse(message));
        }
    }

    /// A socket for questions about sockets (sock_diag(7)).
    pub(crate) fn of_sockets() -> io::Result<Self> {
        let socket = Socket::open(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_SOCK_DIAG)?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Asks for all packet sockets of the network namespace: for each one its inode and attributes
    /// (`struct packet_diag_msg` of <linux/packet_diag.h>, and `PACKET_DIAG_…` behind it).
    ///
    /// # Errors
    ///
    /// `ENOENT` where the kernel has no `CONFIG_PACKET_DIAG`.
    pub(crate) fn packet_sockets(&mut self) -> io::Result<Vec<(u32, Vec<u8>)>> {
        /// `SOCK_DIAG_BY_FAMILY`, and `PACKET_SHOW_INFO | PACKET_SHOW_RING_CFG | PACKET_SHOW_FANOUT | PACKET_SHOW_MEMINFO`.
        const BY_FAMILY: u16 = 20;
        const SHOW: u32 = 1 | 4 | 8 | 16;
        /// Bytes of `struct packet_diag_msg`, with the inode at 4.
        const SOCKET: usize = 16;
        let mut question = vec![libc::AF_PACKET as u8, 0, 0, 0];
        question.extend(0_u32.to_ne_bytes());
        question.extend(SHOW.to_ne_bytes());
        question.extend([0; 8]);
        let mut sockets = Vec::new();
        self.dump((BY_FAMILY, BY_FAMILY), &question, &mut |message| {
            let inode = word(message, 4).unwrap_or_default();
            sockets.push((inode, message.get(SOCKET..).unwrap_or_default().to_vec()));
        })?;
        Ok(sockets)
    }

    /// Asks for all queueing disciplines of the network namespace: for each one its interface and attributes (`struct tcmsg`
    /// of <linux/rtnetlink.h>, and `TCA_…` behind it).
    ///
    /// # Errors
    ///
    /// Those of the call, and what the kernel answers.
    pub(crate) fn qdiscs(&mut self) -> io::Result<Vec<(u32, Vec<u8>)>> {
        /// Bytes of `struct tcmsg`, with the interface at 4.
        const MESSAGE: usize = 20;
        let kinds = (libc::RTM_GETQDISC, libc::RTM_NEWQDISC);
        let mut all = Vec::new();
        self.dump(kinds, &[0; MESSAGE], &mut |message| {
            let interface = word(message, 4).unwrap_or_default();
            all.push((interface, message.get(MESSAGE..).unwrap_or_default().to_vec()));
        })?;
        Ok(all)
    }

    /// Asks for all there is of a kind, and hands over what follows the header of each answer of another kind.
    fn dump(
        &mut self,
        (asked, answered): (u16, u16),
        question: &[u8],
        each: &mut dyn FnMut(&[u8]),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut message = Vec::with_capacity(HEADER + question.len());
        message.extend(((HEADER + question.len()) as u32).to_ne_bytes());
        message.extend(asked.to_ne_bytes());
        message.extend(((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
        message.extend(self.sequence.to_ne_bytes());
        message.extend([0; 4]);
        message.extend(question);
        self.send(&message)?;
        let mut answer = vec![0; 1 << 16];
        loop {
            let len = self.receive(&mut answer)?;
            let mut rest = answer.get(..len).unwrap_or_default();
            while let (Some(len), Some(kind)) = (word(rest, 0), half(rest, 4)) {
                let message = rest.get(..len as usize).unwrap_or(rest);
                match kind {
                    kind if kind == answered => each(message.get(HEADER..).unwrap_or_default()),
                    kind if kind == libc::NLMSG_DONE as u16 => return Ok(()),
                    kind if kind == libc::NLMSG_ERROR as u16 => {
                        let code = word(message, HEADER).unwrap_or_default() as i32;
                        return Err(io::Error::from_raw_os_error(-code));
                    }
                    _ => {}
                }
                rest =
                    rest.get((len as usize).max(HEADER).next_multiple_of(4)..).unwrap_or_default();
            }
        }
    }

    fn send(&self, message: &[u8]) -> io::Result<()> {
        // SAFETY: the pointer and the length describe `message`, which the kernel only reads.
        let sent =
            unsafe { libc::send(self.socket.raw(), message.as_ptr().cast(), message.len(), 0) };
        check_size(sent).map(|_| ())
    }

    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive_with(buffer, 0)
    }

    fn receive_with(&self, buffer: &mut [u8], flags: i32) -> io::Result<usize> {
        let (start, len) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: the kernel writes at most the length of `buffer` to it.
        let got = unsafe { libc::recv(self.socket.raw(), start, len, flags) };
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

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Eight bytes of an attribute's value.
pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}
