//! What a file says of the interfaces on which its packets were captured.

use netsniff_packet::{LinkType, Timestamp};

/// An interface as its file describes it. Whatever the file does not say is `None`, never 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Number of its section in the file, from 0.
    pub section: u64,
    /// What the first header of its packets is.
    pub link_type: LinkType,
    /// The most bytes that were captured of a packet; `None` for no limit.
    pub snaplen: Option<u32>,
    /// Length in bytes of the frame check sequence at the end of its packets.
    pub fcs_len: Option<u8>,
    /// Units of its time stamps.
    pub resolution: Resolution,
    /// Seconds that were added to its time stamps (if_tsoffset).
    pub time_offset: i64,
    /// Bits per second (if_speed).
    pub speed: Option<u64>,
    /// `eth0` (if_name).
    pub name: Option<String>,
    /// What it is, for people (if_description).
    pub description: Option<String>,
    /// The capture filter (if_filter), where it was given as text.
    pub filter: Option<String>,
    /// The operating system of the capturing machine (if_os).
    pub os: Option<String>,
    /// The hardware (if_hardware).
    pub hardware: Option<String>,
    /// What the capture counted.
    pub counters: Counters,
}

impl Interface {
    /// Whether another file describes it in the same way: it has a name, and all that tells machines and interfaces apart
    /// is the same.
    pub(crate) fn is_described_as(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.link_type, it.fcs_len, it.speed);
        self.name.is_some()
            && of(self) == of(other)
            && [&self.name, &self.description, &self.os, &self.hardware]
                == [&other.name, &other.description, &other.os, &other.hardware]
    }

    /// An interface of which nothing else is known. A `snaplen` of 0 means no limit.
    #[must_use]
    pub const fn new(link_type: LinkType, snaplen: u32) -> Self {
        Self {
            section: 0,
            link_type,
            snaplen: if snaplen == 0 { None } else { Some(snaplen) },
            fcs_len: None,
            resolution: Resolution::MICROSECONDS,
            time_offset: 0,
            speed: None,
            name: None,
            description: None,
            filter: None,
            os: None,
            hardware: None,
            counters: Counters::NONE,
        }
    }
}

/// Counters that a pcapng file carries; classic pcap has none.
///
/// Those of interface statistics blocks are totals since the start of the capture, and the latest
/// stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that the interface received (isb_ifrecv).
    pub received: Option<u64>,
    /// Packets that the interface dropped for want of resources (isb_ifdrop).
    pub dropped_by_interface: Option<u64>,
    /// Packets that the filter accepted (isb_filteraccept).
    pub accepted_by_filter: Option<u64>,
    /// Packets that the operating system dropped (isb_osdrop).
    pub dropped_by_os: Option<u64>,
    /// Packets that were delivered to the user (isb_usrdeliv).
    pub delivered: Option<u64>,
    /// Sum of what was lost before single packets (epb_dropcount, drops count of packet blocks).
    pub dropped_between_packets: Option<u64>,
    /// Packets marked as inbound (epb_flags).
    pub inbound: Option<u64>,
    /// Packets marked as outbound (epb_flags).
    pub outbound: Option<u64>,
    /// Packets marked with a link-layer error (epb_flags).
    pub link_errors: Option<u64>,
}

impl Counters {
    /// Nothing was counted.
    pub const NONE: Self = Self {
        received: None,
        dropped_by_interface: None,
        accepted_by_filter: None,
        dropped_by_os: None,
        delivered: None,
        dropped_between_packets: None,
        inbound: None,
        outbound: None,
        link_errors: None,
    };
}

/// The unit of an interface's time stamps, as pcapng encodes it in one byte (if_tsresol): a
/// negative power of 10, or of 2 where the highest bit is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Resolution(pub u8);

impl Resolution {
    /// 10⁻⁶ s, what holds where nothing is said.
    pub const MICROSECONDS: Self = Self(6);
    /// 10⁻⁹ s.
    pub const NANOSECONDS: Self = Self(9);

    pub(crate) fn clock(self, offset_secs: i64) -> Clock {
        let power = self.0 & 0x7f;
        let scale = match (self.0 & 0x80 != 0, power) {
            (true, _) => Scale::Shift(power),
            (false, 0..=9) => Scale::Multiply(10_u64.pow(u32::from(9 - power))),
            (false, 10..=28) => Scale::Divide(10_u64.pow(u32::from(power - 9))),
            // Even the largest stamp is less than a nanosecond.
            (false, _) => Scale::Multiply(0),
        };
        Clock { scale, offset_secs }
    }
}

/// `10^-6 s` or `2^-10 s`.
impl core::fmt::Display for Resolution {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let base = if self.0 & 0x80 == 0 { 10 } else { 2 };
        write!(f, "{base}^-{} s", self.0 & 0x7f)
    }
}

/// Turns the ticks of an interface into time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    scale: Scale,
    offset_secs: i64,
}

#[derive(Clone, Copy, Debug)]
enum Scale {
    Multiply(u64),
    Divide(u64),
    Shift(u8),
}

impl Clock {
    /// The time of `ticks` units since the epoch; saturates at the ends of [`Timestamp`].
    #[inline]
    pub(crate) fn time(self, ticks: u64) -> Timestamp {
        let nanos = match self.scale {
            Scale::Multiply(factor) => ticks.saturating_mul(factor),
            Scale::Divide(divisor) => ticks / divisor,
            Scale::Shift(bits) => {
                u64::try_from((u128::from(ticks) * 1_000_000_000) >> bits).unwrap_or(u64::MAX)
            }
        };
        if self.offset_secs == 0 {
            return Timestamp::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
        }
        let shifted = i128::from(nanos) + i128::from(self.offset_secs) * 1_000_000_000;
        let clamped = shifted.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
        Timestamp::from_nanos(clamped as i64)
    }

    /// The whole units since the epoch at `time`; `None` where they fit no counter of 64 bits.
    #[inline]
    pub(crate) fn ticks(self, time: Timestamp) -> Option<u64> {
        // What live captures have, without division.
        if let (0, Scale::Multiply(1)) = (self.offset_secs, self.scale) {
            return u64::try_from(time.nanos()).ok();
        }
        self.scaled_ticks(time)
    }

    fn scaled_ticks(self, time: Timestamp) -> Option<u64> {
        let nanos = i128::from(time.nanos()) - i128::from(self.offset_secs) * 1_000_000_000;
        let nanos = u128::try_from(nanos).ok()?;
        let ticks = match self.scale {
            Scale::Multiply(0) => return None,
            Scale::Multiply(factor) => nanos / u128::from(factor),
            Scale::Divide(divisor) => nanos.checked_mul(u128::from(divisor))?,
            // The next unit, so that reading does not lose a nanosecond.
            Scale::Shift(bits) => {
                (nanos.checked_shl(u32::from(bits)).filter(|shifted| shifted >> bits == nanos)?)
                    .div_ceil(1_000_000_000)
            }
        };
        u64::try_from(ticks).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resolution_gives_nanoseconds() {
        let nanos = |resolution, ticks| Resolution(resolution).clock(0).time(ticks).nanos();
        assert_eq!(nanos(0, 7), 7_000_000_000);
        assert_eq!(nanos(6, 1_500_000), 1_500_000_000);
        assert_eq!(nanos(9, 123), 123);
        assert_eq!(nanos(12, 5_999), 5);
        assert_eq!(nanos(28, u64::MAX), 1);
        assert_eq!(nanos(29, u64::MAX), 0);
        assert_eq!(nanos(127, u64::MAX), 0);
        assert_eq!(nanos(0x80, 3), 3_000_000_000);
        assert_eq!(nanos(0x80 | 10, 1536), 1_500_000_000);
        assert_eq!(nanos(0x80 | 127, u64::MAX), 0);
    }

    #[test]
    fn stamps_beyond_the_range_saturate() {
        assert_eq!(Resolution(0).clock(0).time(u64::MAX), Timestamp::MAX);
        assert_eq!(Resolution(0x80).clock(0).time(u64::MAX), Timestamp::MAX);
        assert_eq!(Resolution(6).clock(i64::MIN).time(0), Timestamp::MIN);
        assert_eq!(Resolution(6).clock(-2).time(500_000).nanos(), -1_500_000_000);
    }
}
