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

    /// The examples of CAIA-TR-051027A, and its time; that of CAIA-TR-051004A is wrong there by a thousand.
    #[test]
    fn the_buffers_of_bsd_are_those_of_the_report() {
        assert_eq!(bpf_buffer(4096, 524_288), 32_768);
        assert_eq!(bpf_buffer(4096, 16_384), 16_384);
        assert_eq!(bpf_buffer(524_288, 1 << 20), 524_288);
        assert_eq!((fill_micros(524_288, 100), fill_micros(32_768, 100)), (41_943, 2621));
    }
}
