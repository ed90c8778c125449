//! One TCP segment of a dialogue, and its frame.

use netsniff_packet::Timestamp;
use netsniff_packet::decode::TcpFlags;
use netsniff_packet::wire::tcp::TcpHeader;

use super::{Setup, Side};
use crate::frame::{Host, tcp_frame};

/// Why a segment was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The script or the protocol asked for it, for the first time.
    Said,
    /// What the other side sent asks for it again: three duplicate acknowledgements, a partial one after them
    /// (RFC 6582), or a repeated SYN.
    Fast,
    /// The retransmission timer ran out (RFC 6298).
    Timeout,
}

/// A TCP segment, apart from the options that the setup decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The side that sends it.
    pub from: Side,
    /// Its flags. SYN brings the options of a handshake.
    pub flags: TcpFlags,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Receive window in bytes, before scaling.
    pub window: u32,
    /// SACK blocks, at most 3.
    pub sack: Vec<(u32, u32)>,
    /// Time stamp, RFC 7323; set when it is sent.
    pub stamp: u32,
    /// Time stamp that it echoes.
    pub echo: u32,
    /// Bytes of payload.
    pub payload: Vec<u8>,
    /// Why it is sent.
    pub cause: Cause,
}

impl Segment {
    /// Its frame, or `None` where it does not fit one.
    pub(super) fn frame(
        &self,
        source: &Host,
        destination: &Host,
        identification: u16,
        setup: &Setup,
    ) -> Option<Vec<u8>> {
        let syn = self.flags.any(TcpFlags::SYN);
        let shift = if syn { 0 } else { setup.window_scale.unwrap_or(0).min(14) };
        let options = self.options(setup, syn);
        let header = TcpHeader {
            source_port: 0,
            destination_port: 0,
            sequence: self.sequence,
            acknowledgement: self.acknowledgement,
            flags: self.flags.0,
            window: u16::try_from(self.window >> shift).unwrap_or(u16::MAX),
            checksum: 0,
            urgent_pointer: 0,
            options: &options,
        };
        tcp_frame(source, destination, identification, &header, &self.payload)
    }

    /// The options in the order and padding of Linux.
    fn options(&self, setup: &Setup, syn: bool) -> Vec<u8> {
        let mut options = Vec::with_capacity(40);
        if syn {
            options.extend([2, 4]);
            options.extend(setup.mss.to_be_bytes());
            if setup.sack {
                options.extend([4, 2]);
            }
        }
        if setup.timestamps && !self.flags.any(TcpFlags::RST) {
            pad(&mut options, 2);
            options.extend([8, 10]);
            options.extend(self.stamp.to_be_bytes());
            options.extend(self.echo.to_be_bytes());
        }
        if let (true, Some(shift)) = (syn, setup.window_scale) {
            pad(&mut options, 3);
            options.extend([3, 3, shift]);
        }
        if setup.sack && !syn && !self.sack.is_empty() {
            pad(&mut options, 2);
            let blocks = self.sack.iter().take(3);
            options.extend([5, 2 + 8 * blocks.len() as u8]);
            for (left, right) in blocks {
                options.extend(left.to_be_bytes());
                options.extend(right.to_be_bytes());
            }
        }
        while !options.len().is_multiple_of(4) {
            options.push(1);
        }
        options
    }
}

/// Fills with no-operations until an option of `len` bytes more than a multiple of 4 ends on one.
fn pad(options: &mut Vec<u8>, len: usize) {
    while !(options.len() + len).is_multiple_of(4) {
        options.push(1);
    }
}

/// The time-stamp clock of a side: milliseconds, and the two do not start alike.
pub(super) const fn stamp(now: Timestamp, side: Side) -> u32 {
    let millis = (now.nanos() / 1_000_000) as u32;
    match side {
        Side::Client => millis,
        Side::Server => millis.wrapping_add(0x2000_0000),
    }
}
