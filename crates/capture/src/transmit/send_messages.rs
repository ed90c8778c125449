//! Sending through a packet socket, many frames with one sendmmsg(2), past the queueing discipline.

use super::packet_socket::{bind, open};
use super::{SendMethod, Transmitter};
use crate::error::{CallContext as _, Result};
use crate::interface::Interface;
use crate::sys::message::{MessageRoom, send_frames};
use crate::sys::socket::Socket;

pub(super) const WAY: SendMethod = SendMethod {
    name: "sendmmsg",
    summary: "a packet socket, many frames with one call",
    open: |interface, _| Ok(Box::new(SendMessages::open(interface)?)),
};

/// Frames that are collected at most.
const FRAMES: usize = 64;

#[derive(Debug)]
struct SendMessages {
    socket: Socket,
    longest: usize,
    buffers: Vec<Box<[u8]>>,
    /// Lengths of the frames that are filled and not sent: those of the buffers from `first` on.
    lens: std::collections::VecDeque<usize>,
    first: usize,
    messages: MessageRoom,
    refusals: u64,
}

impl SendMessages {
    fn open(interface: &Interface) -> Result<Self> {
        let socket = open()?;
        bind(&socket, interface)?;
        let longest = interface.longest_frame() as usize;
        Ok(Self {
            socket,
            longest,
            buffers: vec![vec![0; longest].into_boxed_slice(); FRAMES],
            lens: std::collections::VecDeque::with_capacity(FRAMES),
            first: 0,
            messages: MessageRoom::default(),
            refusals: 0,
        })
    }
}

impl Transmitter for SendMessages {
    fn way(&self) -> &'static str {
        WAY.name
    }

    fn longest(&self) -> usize {
        self.longest
    }

    fn room(&mut self) -> Option<(usize, &mut [u8])> {
        if self.lens.len() == FRAMES {
            return None;
        }
        let buffer = (self.first + self.lens.len()) % FRAMES;
        Some((buffer, &mut self.buffers[buffer]))
    }

    fn fill(&mut self, len: usize) {
        if self.lens.len() < FRAMES {
            self.lens.push_back(len.min(self.longest));
        }
    }

    fn flush(&mut self) -> Result<usize> {
        if self.lens.is_empty() {
            return Ok(0);
        }
        let frames: Vec<&[u8]> = (self.first..)
            .zip(&self.lens)
            .map(|(buffer, len)| &self.buffers[buffer % FRAMES][..*len])
            .collect();
        match send_frames(&self.socket, &frames, &mut self.messages) {
            Ok(sent) => {
                self.lens.drain(..sent);
                self.first = (self.first + sent) % FRAMES;
                Ok(sent)
            }
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::ENOBUFS | libc::EAGAIN | libc::EINTR)
                ) =>
            {
                self.refusals += 1;
                Ok(0)
            }
            Err(error) => Err(error).trying("send through a packet socket"),
        }
    }

    fn pending(&mut self) -> usize {
        self.lens.len()
    }

    fn refusals(&self) -> u64 {
        self.refusals
    }

    fn buffers(&self) -> usize {
        FRAMES
    }
}
