//! Sending through a ring that the kernel reads (`PACKET_TX_RING`), past the queueing discipline.

use super::packet_socket::{bind, open};
use super::{SendMethod, Transmitter};
use crate::error::{CallContext as _, Error, Result};
use crate::interface::Interface;
use crate::sys::message::{Kicked, kick};
use crate::sys::send_ring::{FRAME_AT, SendRing};
use crate::sys::slot_ring::Layout;
use crate::sys::socket::Socket;

pub(super) const WAY: SendMethod = SendMethod {
    name: "tx-ring",
    summary: "a packet socket with a ring that the kernel reads (PACKET_TX_RING)",
    open: |interface, _| Ok(Box::new(TxRing::open(interface)?)),
};

/// Slots, where they are small. The kernel sends from the pages of the ring, and some interfaces (veth) give a slot
/// back while the frame still waits at the receiver: a slot must not be filled again before that is over. The
/// receiver's backlog is `net.core.netdev_max_backlog`, 1000 frames unless somebody changed it.
const SLOTS: usize = 4096;

/// The fewest: the receiver's backlog, as it is by default.
const FEWEST: usize = 1024;

/// Bytes of a piece of the ring: slots do not cross its end.
const PIECE: usize = 1 << 17;

/// Bytes of the ring at most.
const MOST: usize = 32 << 20;

#[derive(Debug)]
struct TxRing {
    socket: Socket,
    ring: SendRing,
    /// Frames that were handed over, and those of them that the kernel was known to have taken at the last call.
    handed: u64,
    taken: u64,
    refusals: u64,
}

impl TxRing {
    fn open(interface: &Interface) -> Result<Self> {
        let socket = open()?;
        let version = libc::tpacket_versions::TPACKET_V2 as i32;
        socket.set(libc::SOL_PACKET, libc::PACKET_VERSION, &version).trying("choose TPACKET_V2")?;
        let layout = layout(interface.longest_frame() as usize);
        if layout.slots() < FEWEST {
            return Err(Error::Invalid(format!(
                "a ring for frames of {} bytes has {} slots, too few to be safe",
                interface.longest_frame(),
                layout.slots()
            )));
        }
        let request = libc::tpacket_req {
            tp_block_size: layout.piece_len as u32,
            tp_block_nr: layout.pieces as u32,
            tp_frame_size: layout.slot_len as u32,
            tp_frame_nr: layout.slots() as u32,
        };
        let made = socket.set(libc::SOL_PACKET, libc::PACKET_TX_RING, &request);
        made.trying(format!(
            "make a ring of {} bytes to send from",
            layout.pieces * layout.piece_len
        ))?;
        let ring = SendRing::map(&socket, layout).trying("map the ring to send from")?;
        bind(&socket, interface)?;
        Ok(Self { socket, ring, handed: 0, taken: 0, refusals: 0 })
    }
}

/// A ring for frames of so many bytes.
fn layout(longest: usize) -> Layout {
    let slot_len = (FRAME_AT + longest).next_multiple_of(16);
    let per_piece = (PIECE / slot_len).max(1);
    let piece_len = (per_piece * slot_len).next_multiple_of(4096).next_power_of_two();
    let pieces = SLOTS.div_ceil(per_piece).min(MOST / piece_len).max(1);
    Layout { status_at: 0, slot_len, per_piece, piece_len, pieces }
}

impl Transmitter for TxRing {
    fn way(&self) -> &'static str {
        WAY.name
    }

    fn longest(&self) -> usize {
        self.ring.longest()
    }

    fn room(&mut self) -> Option<(usize, &mut [u8])> {
        self.ring.room()
    }

    fn fill(&mut self, len: usize) {
        self.ring.hand_over(len);
        self.handed += 1;
    }

    fn flush(&mut self) -> Result<usize> {
        let kicked = if self.ring.untaken() > 0 { kick(&self.socket) } else { Ok(Kicked::Took) };
        // Also where the call failed, it may have taken some.
        self.ring.look().trying("send a frame through the ring")?;
        self.refusals += u64::from(kicked.trying("send through the ring")? != Kicked::Took);
        let taken = self.handed - self.ring.untaken() as u64;
        let new = taken - self.taken;
        self.taken = taken;
        Ok(new as usize)
    }

    fn pending(&mut self) -> usize {
        self.ring.untaken()
    }

    fn refusals(&self) -> u64 {
        self.refusals
    }

    fn buffers(&self) -> usize {
        self.ring.slots()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_have_room_for_the_longest_frame() {
        let usual = layout(1518);
        assert_eq!((usual.slot_len, usual.per_piece, usual.piece_len), (1552, 84, 1 << 17));
        assert!(usual.slots() >= SLOTS);
        let loopback = layout(65_536 + 18);
        assert_eq!(
            (loopback.slot_len, loopback.per_piece, loopback.piece_len),
            (65_600, 1, 1 << 17)
        );
        assert_eq!(loopback.slots() * loopback.piece_len, MOST);
    }
}
