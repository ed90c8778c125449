//! The first segment of a connection, kept in few bytes until there is more to tell.

use netsniff_packet::Timestamp;
use netsniff_packet::decode::{Tcp, TcpFlags, TcpOptions};

use super::Observed;

/// The first segment, where it had no payload, and how often it came again.
#[derive(Clone, Copy, Debug, Default)]
pub struct First {
    time: i64,
    sequence: u32,
    acknowledgement: u32,
    flags: u16,
    window: u16,
    identification: u16,
    mss: u16,
    repeats: u16,
    duplicates: u16,
    ttl: u8,
    traffic_class: u8,
    window_scale: u8,
    bits: u8,
}

const SEEN: u8 = 0x01;
const FROM_RESPONDER: u8 = 0x02;
const MSS: u8 = 0x04;
const WINDOW_SCALE: u8 = 0x08;
const SACK_PERMITTED: u8 = 0x10;
const TIMESTAMPS: u8 = 0x20;

impl First {
    /// Takes the segment, if it is the first and without payload, or a SYN that repeats the first.
    #[inline]
    pub(super) fn take(&mut self, seen: &Observed<'_>) -> bool {
        if seen.tcp.payload_len > 0 {
            return false;
        }
        if self.bits & SEEN == 0 {
            *self = Self::of(seen);
            return true;
        }
        let repeated = seen.has(TcpFlags::SYN)
            && seen.tcp.flags.0 == self.flags
            && seen.tcp.sequence == self.sequence
            && seen.tcp.acknowledgement == self.acknowledgement
            && seen.from == self.from();
        if repeated {
            if seen.identification != 0 && seen.identification == self.identification {
                self.duplicates = self.duplicates.saturating_add(1);
            } else {
                self.repeats = self.repeats.saturating_add(1);
                self.identification = seen.identification;
            }
        }
        repeated
    }

    fn of(seen: &Observed<'_>) -> Self {
        let options = &seen.tcp.options;
        let mut bits = SEEN;
        for (is_set, bit) in [
            (seen.from == 1, FROM_RESPONDER),
            (options.mss.is_some(), MSS),
            (options.window_scale.is_some(), WINDOW_SCALE),
            (options.sack_permitted, SACK_PERMITTED),
            (options.timestamps.is_some(), TIMESTAMPS),
        ] {
            if is_set {
                bits |= bit;
            }
        }
        Self {
            time: seen.time.nanos(),
            sequence: seen.tcp.sequence,
            acknowledgement: seen.tcp.acknowledgement,
            flags: seen.tcp.flags.0,
            window: seen.tcp.window,
            identification: seen.identification,
            mss: options.mss.unwrap_or(0),
            repeats: 0,
            duplicates: 0,
            ttl: seen.ttl,
            traffic_class: seen.traffic_class,
            window_scale: options.window_scale.unwrap_or(0),
            bits,
        }
    }

    pub(super) const fn flip(&mut self) {
        self.bits ^= FROM_RESPONDER;
    }

    const fn from(&self) -> usize {
        (self.bits & FROM_RESPONDER != 0) as usize
    }

    /// The segment as it was seen, to be taken again.
    pub(super) fn replay(&self) -> Option<Replay> {
        let has = |bit| self.bits & bit != 0;
        has(SEEN).then(|| Replay {
            first: *self,
            repeats: self.repeats,
            duplicates: self.duplicates,
            tcp: Tcp {
                source_port: 0,
                destination_port: 0,
                sequence: self.sequence,
                acknowledgement: self.acknowledgement,
                flags: TcpFlags(self.flags),
                window: self.window,
                payload_offset: 0,
                payload_len: 0,
                payload_captured: 0,
                options: TcpOptions {
                    mss: has(MSS).then_some(self.mss),
                    window_scale: has(WINDOW_SCALE).then_some(self.window_scale),
                    sack_permitted: has(SACK_PERMITTED),
                    timestamps: has(TIMESTAMPS).then_some((0, 0)),
                    ..TcpOptions::default()
                },
            },
        })
    }
}

/// A first segment made whole again.
pub(super) struct Replay {
    first: First,
    tcp: Tcp,
    pub(super) repeats: u16,
    pub(super) duplicates: u16,
}

impl Replay {
    pub(super) const fn from(&self) -> usize {
        self.first.from()
    }

    pub(super) const fn observed(&self) -> Observed<'_> {
        Observed {
            time: Timestamp::from_nanos(self.first.time),
            from: self.first.from(),
            tcp: &self.tcp,
            ttl: self.first.ttl,
            traffic_class: self.first.traffic_class,
            identification: self.first.identification,
            scale: 0,
        }
    }
}
