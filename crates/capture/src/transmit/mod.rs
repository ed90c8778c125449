//! Sending frames: THE list of ways, and what they have in common.
//!
//! A [`Transmitter`] lends room for one frame after the other, and hands what was filled to the kernel when
//! it is told to. Frames that the kernel has no room for are offered again, never dropped by us.

mod af_xdp;
mod packet_socket;
mod send_messages;
mod tx_ring;

use crate::error::Result;
use crate::interface::Interface;

/// A way to send whole frames on an interface.
pub trait Transmitter: Send {
    /// The entry of [`WAYS`] that made it.
    fn way(&self) -> &'static str;

    /// Bytes of the longest frame that it has room for. Whether the interface takes it is another matter:
    /// [`Interface::takes`].
    fn longest(&self) -> usize;

    /// Room for the next frame, with the number of the buffer that it is in; `None` while there is none,
    /// which [`Self::flush`] changes. What was put in a buffer before is still there.
    fn room(&mut self) -> Option<(usize, &mut [u8])>;

    /// Takes the first `len` bytes of the room as a frame that is to be sent.
    fn fill(&mut self, len: usize);

    /// Hands what was filled to the kernel and returns how many frames it took since the last call.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses for another reason than lack of room.
    fn flush(&mut self) -> Result<usize>;

    /// Frames that were filled and not yet taken.
    fn pending(&mut self) -> usize;

    /// How often the kernel had no room.
    fn refusals(&self) -> u64;

    /// Frames that were taken and lost, since the interface refused them. Ways that offer such frames again lose none.
    fn lost(&self) -> u64 {
        0
    }

    /// Numbers of buffers, which [`Self::room`] returns in a fixed cycle: a frame that repeats needs to be
    /// made once for each.
    fn buffers(&self) -> usize;
}

/// One way to send.
#[derive(Clone, Copy, Debug)]
pub struct SendMethod {
    /// Its name on the command line.
    pub name: &'static str,
    /// One sentence for the documentation.
    pub summary: &'static str,
    open: fn(&Interface, u32) -> Result<Box<dyn Transmitter>>,
}

impl SendMethod {
    /// Opens it for a queue of an interface.
    ///
    /// # Errors
    ///
    /// Missing rights, and what the kernel refuses.
    pub fn open(&self, interface: &Interface, queue: u32) -> Result<Box<dyn Transmitter>> {
        (self.open)(interface, queue)
    }
}

/// THE list, the fastest first, as `docs/measurements/2026-11-23-live-send.md` has it for a veth pair.
pub const WAYS: &[SendMethod] = &[af_xdp::WAY, tx_ring::WAY, send_messages::WAY];
