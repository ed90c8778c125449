//! Buffers in bytes, packets and milliseconds (PAPERS B3, B4, B7).

use serde::Serialize;

/// Bytes that a frame takes on an Ethernet beside itself: preamble, start and gap (IEEE 802.3).
const ON_WIRE: u64 = 20;

/// Bytes of the frame check sequence.
const FCS: u64 = 4;

/// The shortest frame, and the mean one of CAIA-TR-051004A, in bytes with the frame check sequence.
pub const SHORTEST: u64 = 64;
/// See [`SHORTEST`].
pub const MEAN: u64 = 870 + FCS;

/// Frames of a size that a link carries in a second.
#[must_use]
pub const fn frames_per_second(megabits: u64, size: u64) -> u64 {
    megabits * 1_000_000 / ((size + ON_WIRE) * 8)
}

/// What a buffer holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Holds {
    /// Bytes, where that is what bounds it.
    pub bytes: Option<u64>,
    /// Packets, where that is what bounds it.
    pub packets: Option<u64>,
    /// Microseconds of the shortest frames at the link's speed; `None` where that is not known.
    pub micros_shortest: Option<u64>,
    /// Likewise of frames of 874 bytes.
    pub micros_mean: Option<u64>,
}

impl Holds {
    /// A buffer of so many packets.
    #[must_use]
    pub fn packets(packets: u64, megabits: Option<u64>) -> Self {
        let micros = |size: u64| {
            let rate = frames_per_second(megabits?, size);
            packets.checked_mul(1_000_000)?.checked_div(rate)
        };
        Self {
            bytes: None,
            packets: Some(packets),
            micros_shortest: micros(SHORTEST),
            micros_mean: micros(MEAN),
        }
    }

    /// A buffer of so many bytes, in which each packet takes so many more.
    #[must_use]
    pub fn bytes(bytes: u64, more: u64, megabits: Option<u64>) -> Self {
        let micros = |size: u64| {
            let rate = frames_per_second(megabits?, size);
            (bytes / (size - FCS + more)).checked_mul(1_000_000)?.checked_div(rate)
        };
        Self {
            bytes: Some(bytes),
            packets: None,
            micros_shortest: micros(SHORTEST),
            micros_mean: micros(MEAN),
        }
    }
}

/// What was seen of some traffic, for the size of a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The most packets a second, over a tenth of one.
    pub peak_rate: u64,
    /// The most packets in a millisecond; 0 where that was not looked at.
    pub most_in_millisecond: u64,
    /// Mean bytes of a packet.
    pub mean_bytes: u64,
}

/// Bytes that a ring takes for a packet beside it: its description, and alignment (kernel: packet_mmap).
const BESIDE: u64 = 96;

/// Milliseconds that a ring is to hold of the highest rate that was seen, and of the busiest millisecond, if all were like it.
const HOLD: (u64, u64) = (500, 100);

/// Bounds of a ring, in bytes: beyond the last one it costs caches and saves nothing where the mean rate is too high.
const RING: (u64, u64) = (8 << 20, 1 << 30);

/// Bytes of a ring for such traffic (PAPERS D5): a power of two that holds half a second of the highest rate, and a burst of a
/// tenth of a second as dense as the busiest millisecond, in an eighth of the free memory. Where nothing came, a tenth of a
/// second of the link; `None` where that has no speed either.
#[must_use]
pub fn ring_bytes(seen: &Seen, megabits: Option<u64>, free: Option<u64>) -> Option<u64> {
    let wanted = if seen.peak_rate == 0 {
        frames_per_second(megabits?, MEAN) / 10 * (MEAN + BESIDE)
    } else {
        let packets = (seen.peak_rate * HOLD.0 / 1000).max(seen.most_in_millisecond * HOLD.1);
        packets * (seen.mean_bytes + BESIDE)
    };
    let most = free.map_or(RING.1, |free| (free / 8).clamp(RING.0, RING.1));
    let size = wanted.clamp(RING.0, RING.1).next_power_of_two();
    // A power of two that fits.
    Some(if size > most { 1 << most.ilog2() } else { size })
}

/// What libpcap on BSD gets of the kernel's buffer for captures, in bytes (CAIA-TR-051027A; libpcap before 1.0): it asks for
/// the default, at least 32 KiB, and the kernel clips that to the most that it allows.
///
/// `default` is `debug.bpf_bufsize`, `most` is `debug.bpf_maxbufsize`. There are two of this size: the kernel fills one while the
/// application reads the other.
#[must_use]
pub const fn bpf_buffer(default: u64, most: u64) -> u64 {
    let wanted = if default > 32_768 { default } else { 32_768 };
    if wanted < most { wanted } else { most }
}

/// Microseconds until one of both buffers is full, at so many megabits a second of link.
#[must_use]
pub const fn fill_micros(bytes: u64, megabits: u64) -> u64 {
    match (bytes * 8).checked_div(megabits) {
        Some(micros) => micros,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_carry_what_the_standard_says() {
        assert_eq!(frames_per_second(1000, 64), 1_488_095);
        assert_eq!(frames_per_second(1000, 1518), 81_274);
        assert_eq!(frames_per_second(10_000, 64), 14_880_952);
    }

    #[test]
    fn buffers_hold_what_fits() {
        let ring = Holds::packets(512, Some(10_000));
        assert_eq!((ring.micros_shortest, ring.micros_mean), (Some(34), Some(366)));
        assert_eq!(Holds::packets(512, None).micros_mean, None);
        assert_eq!(Holds::packets(512, Some(0)).micros_mean, None);
        let bytes = Holds::bytes(64 << 20, 80, Some(1000));
        assert_eq!(bytes.micros_shortest, Some(322_122));
    }

    #[test]
    fn rings_hold_rates_and_bursts_and_fit_into_memory() {
        let of = |peak_rate, most_in_millisecond, free: u64| {
            let seen = Seen { peak_rate, most_in_millisecond, mean_bytes: 404 };
            ring_bytes(&seen, Some(1000), Some(free)).unwrap()
        };
        assert_eq!(of(100, 1, 8 << 30), 8 << 20, "little still has a ring");
        // 100,000 packets of 500 bytes are half a second, and 30,000 of them a burst.
        assert_eq!(of(200_000, 300, 8 << 30), 64 << 20);
        assert_eq!(of(20_000, 1480, 8 << 30), 128 << 20, "a burst needs more than the rate");
        assert_eq!(of(5_000_000, 0, 64 << 30), 1 << 30);
        assert_eq!(of(5_000_000, 0, 1 << 30), 128 << 20);
        assert_eq!(of(5_000_000, 0, 1 << 20), 8 << 20);
        let nothing = Seen::default();
        assert_eq!(ring_bytes(&nothing, Some(10_000), None), Some(256 << 20));
        assert_eq!(ring_bytes(&nothing, None, None), None);
    }

    /// The examples of CAIA-TR-051027A, and its time; that of CAIA-TR-051004A is wrong there by a thousand.
    #[test]
    fn the_buffers_of_bsd_are_those_of_the_report() {
        assert_eq!(bpf_buffer(4096, 524_288), 32_768);
        assert_eq!(bpf_buffer(4096, 16_384), 16_384);
        assert_eq!(bpf_buffer(524_288, 1 << 20), 524_288);
        assert_eq!((fill_micros(524_288, 100), fill_micros(32_768, 100)), (41_943, 2621));
    }
}
