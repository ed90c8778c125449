//! What a capture makes of the frames that pass it, and what somebody adds to them.

use core::fmt;

use netsniff_packet::decode::{self, Tcp, TcpFlags, Transport};
use netsniff_packet::wire::ipv4::protocol;
use netsniff_packet::{LinkType, Timestamp, checksum};
use netsniff_traffic::dialogue::{DialogueTrace, Side};

use super::Choices;

/// A frame of the capture.
#[derive(Clone)]
pub(super) struct Shot {
    pub(super) timestamp: Timestamp,
    pub(super) frame: Vec<u8>,
    from: Side,
    is_forged: bool,
}

/// What was captured.
#[derive(Default)]
pub(super) struct Tap {
    pub(super) shots: Vec<Shot>,
    /// Payload of the frames that were left out, each as often as it was sent; and their FINs, which
    /// nobody tells from payload by their acknowledgements alone.
    pub(super) dropped_bytes: u64,
    /// Whether frames stand in another order than they passed, further apart than a capture does it.
    pub(super) is_shuffled: bool,
    /// Whether frames stand in another order than they passed.
    pub(super) is_swapped: bool,
    pub(super) is_doubled: bool,
    is_holed: bool,
    /// The numbers of the frames that were left out.
    lost: Vec<u32>,
    /// What happened, for whoever reads of a failure.
    told: Vec<String>,
}

/// Farther apart than this, frames do not change places in a capture.
const SHUFFLED_NANOS: i64 = 100_000;

/// What 100 Gbit/s carry.
const BYTES_IN_TEN_NANOS: i64 = 125;

/// A number so far off that no window holds it.
const FAR: u32 = 0x5555_5555;

impl Tap {
    /// Everything that passed.
    pub(super) fn whole(story: &DialogueTrace) -> Self {
        let shots = story.seen.iter().map(|seen| Shot {
            timestamp: seen.timestamp,
            frame: seen.frame.clone(),
            from: seen.from,
            is_forged: false,
        });
        Self { shots: shots.collect(), ..Self::default() }
    }

    /// Whether something that passed is not in the capture.
    pub(super) const fn has_lost(&self) -> bool {
        self.is_holed
    }

    pub(super) fn has_forged(&self) -> bool {
        self.shots.iter().any(|shot| shot.is_forged)
    }

    /// How many frames somebody forged.
    pub(super) fn forged(&self) -> u64 {
        self.shots.iter().filter(|shot| shot.is_forged).count() as u64
    }

    /// Whether somebody forged frames of both sides: those may make a connection of their own.
    pub(super) fn has_forged_both(&self) -> bool {
        let is_forged = |side| self.shots.iter().any(|shot| shot.is_forged && shot.from == side);
        is_forged(Side::Client) && is_forged(Side::Server)
    }

    /// Whether somebody forged a frame at a time, in seconds as in the logs.
    pub(super) fn has_forged_at(&self, time: &str) -> bool {
        self.shots.iter().any(|shot| shot.is_forged && shot.timestamp.to_string() == time)
    }

    /// Whether somebody forged far numbers, in a capture with a pause in which so much can be sent.
    pub(super) fn has_forged_in_time(&self) -> bool {
        let pause = |pair: &[Shot]| pair[1].timestamp.nanos_since(pair[0].timestamp);
        let longest = self.shots.windows(2).map(pause).max().unwrap_or(0);
        self.has_forged() && longest / 10 * BYTES_IN_TEN_NANOS > i64::from(FAR)
    }

    /// Whether a forged frame stands in the place of one that was left out, so that nothing contradicts it.
    pub(super) fn has_replaced(&self) -> bool {
        let is_it = |tcp: Tcp| self.lost.contains(&tcp.sequence);
        self.shots.iter().any(|shot| shot.is_forged && shot.tcp().is_some_and(is_it))
    }

    /// Whether the first frames are those of the handshake.
    pub(super) fn has_handshake(&self) -> bool {
        let sides = [
            (Side::Client, TcpFlags::SYN),
            (Side::Server, TcpFlags::SYN),
            (Side::Client, TcpFlags::ACK),
        ];
        self.shots.len() >= sides.len()
            && self.shots.iter().zip(sides).all(|(shot, (side, flag))| {
                shot.from == side
                    && !shot.is_forged
                    && shot.tcp().is_some_and(|tcp| tcp.flags.any(flag))
            })
    }

    /// Does to some frames what the input says.
    pub(super) fn trouble(&mut self, choices: &mut Choices<'_>) {
        let mut left = 8;
        while left > 0 && choices.is_left() && !self.shots.is_empty() {
            left -= 1;
            let kind = choices.byte() % 16;
            let at = choices.below(self.shots.len() as u32) as usize;
            let value = choices.byte();
            self.told.push(format!("{kind} at {at} with {value}"));
            match kind {
                0 | 1 => self.lose(at..at + 1),
                2 => self.lose(at..at + 1 + usize::from(value % 8)),
                3 if value & 1 == 0 => self.lose(0..at),
                3 => self.lose(at..self.shots.len()),
                4 | 5 => {
                    self.is_doubled = true;
                    self.shots.insert(at + 1, self.shots[at].clone());
                }
                6 | 7 => self.swap(at, at + 1 + usize::from(value % 3)),
                _ => self.forge(kind, at, value),
            }
        }
    }

    fn lose(&mut self, range: core::ops::Range<usize>) {
        let range = range.start..range.end.min(self.shots.len());
        self.is_holed |= !range.is_empty();
        for shot in self.shots.drain(range) {
            let Some(tcp) = shot.tcp() else { continue };
            self.lost.push(tcp.sequence);
            self.dropped_bytes += u64::from(tcp.payload_len);
            self.dropped_bytes += u64::from(tcp.flags.any(TcpFlags::FIN));
        }
    }

    /// A frame is captured behind another one that came after it.
    fn swap(&mut self, at: usize, to: usize) {
        let Some(time) = self.shots.get(to).map(|shot| shot.timestamp) else { return };
        let mut shot = self.shots.remove(at);
        self.is_swapped = true;
        self.is_shuffled |= time.nanos_since(shot.timestamp) > SHUFFLED_NANOS;
        shot.timestamp = time;
        self.shots.insert(to, shot);
    }

    /// Adds a frame that was never sent by whom it says, before or behind another one.
    fn forge(&mut self, kind: u8, at: usize, value: u8) {
        let mut shot = self.shots[at].clone();
        shot.is_forged = true;
        let flags = match value >> 5 {
            0 => TcpFlags::RST,
            1 => TcpFlags::FIN.with(TcpFlags::ACK),
            2 => TcpFlags::SYN,
            3 => TcpFlags::SYN.with(TcpFlags::ACK),
            _ => TcpFlags::ACK,
        };
        let done = match kind {
            // Other bytes, which die before they arrive, or never had a right sum.
            8..=10 => shot.edit(|_, payload| {
                if let Some(byte) = payload.get_mut(usize::from(value) * 5) {
                    *byte ^= 0x20;
                }
            }),
            // Other numbers.
            11 | 12 => shot.edit(|header, _| {
                add(header, 4, FAR);
                header[13] = flags.0 as u8;
            }),
            13 => shot.edit(|header, _| {
                add(header, 4, FAR);
                add(header, 8, FAR);
            }),
            14 => shot.edit(|header, _| add(header, 8, FAR)),
            _ => shot.edit(|header, _| header[13] = flags.0 as u8),
        };
        if !done {
            return;
        }
        if kind == 9 {
            shot.spoil_sum();
        } else if value & 1 == 0 {
            shot.die();
        }
        let at = if value & 2 == 0 { at } else { at + 1 };
        self.shots.insert(at, shot);
    }
}

fn add(header: &mut [u8], at: usize, what: u32) {
    if let Some(field) = header.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *field = u32::from_be_bytes(*field).wrapping_add(what).to_be_bytes();
    }
}

impl Shot {
    fn tcp(&self) -> Option<Tcp> {
        let decoded = decode::packet(LinkType::ETHERNET, &self.frame, self.frame.len() as u32);
        match decoded.transport {
            Transport::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }

    /// Changes TCP header and payload, and mends the sum. Returns whether anything is another.
    fn edit(&mut self, change: impl Fn(&mut [u8], &mut [u8])) -> bool {
        let before = self.frame.clone();
        let decoded = decode::packet(LinkType::ETHERNET, &self.frame, self.frame.len() as u32);
        let (Some(ip), Transport::Tcp(tcp)) = (decoded.ip, decoded.transport) else { return false };
        let segment = &mut self.frame[ip.payload_offset as usize..];
        let (header, payload) =
            segment.split_at_mut((tcp.payload_offset - ip.payload_offset) as usize);
        change(header, payload);
        segment[16..18].fill(0);
        let sum =
            checksum::compute_with_pseudo_header(ip.source, ip.destination, protocol::TCP, segment);
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
        before != self.frame
    }

    /// A time to live that ends before the other side.
    fn die(&mut self) {
        if self.frame[12] == 0x86 {
            self.frame[21] = 1;
            return;
        }
        self.frame[22] = 1;
        self.frame[24..26].fill(0);
        let sum = checksum::compute(&self.frame[14..34]);
        self.frame[24..26].copy_from_slice(&sum.to_be_bytes());
    }

    fn spoil_sum(&mut self) {
        let at = if self.frame[12] == 0x86 { 54 } else { 34 } + 16;
        self.frame[at] ^= 0x55;
    }
}

impl fmt::Display for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{:?}, left out: {:?}", self.told, self.lost)?;
        for shot in &self.shots {
            let Some(tcp) = shot.tcp() else { continue };
            let Tcp { sequence, acknowledgement, payload_len, flags, .. } = tcp;
            let forged = if shot.is_forged { "forged " } else { "" };
            write!(
                f,
                "\n{} {:?} {forged}{sequence} +{payload_len} ack {acknowledgement} {:#x}",
                shot.timestamp, shot.from, flags.0
            )?;
        }
        Ok(())
    }
}
