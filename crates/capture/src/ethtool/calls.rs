//! The kernel's own answers.

use std::io;

use super::Ethtool;
use crate::error::{CallContext as _, Result};
use crate::sys::ethtool;
use crate::sys::socket::Socket;

/// Asks the kernel about interfaces of the network namespace in which this was made.
#[derive(Debug)]
pub struct Calls(Socket);

impl Calls {
    /// Opens a socket for questions.
    ///
    /// # Errors
    ///
    /// Where none can be had.
    pub fn open() -> Result<Self> {
        let socket = Socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0);
        socket.map(Self).trying("open a socket for questions to drivers")
    }
}

impl Ethtool for Calls {
    fn ask(&self, interface: &str, words: &mut [u32]) -> io::Result<()> {
        ethtool::ask(&self.0, interface, words)
    }
}
