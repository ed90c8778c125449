//! Facts of a capture, gathered packet by packet: sizes, times, order, rates, bursts.

use netsniff_packet::{Packet, Timestamp, decode};

/// Windows over which bursts are measured, in nanoseconds: 1, 10 and 100 ms.
pub const WINDOWS: [i64; 3] = [1_000_000, 10_000_000, 100_000_000];

/// Sums over packets, in the order in which they are read. Memory does not grow with their number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Number of packets.
    pub packets: u64,
    /// Bytes that the capture kept of them.
    pub captured_bytes: u64,
    /// Bytes on the wire.
    pub wire_bytes: u64,
    /// Packets of which the capture kept less than the wire carried.
    pub cut: u64,
    /// Packets that say they were longer than [`LONGEST`].
    pub absurd: u64,
    /// Earliest and latest time; `None` where there is no packet.
    pub times: Option<Times>,
    /// Packets earlier than the packet before them.
    pub inversions: u64,
    /// The most nanoseconds by which a packet is earlier than the latest before it.
    pub deepest_inversion: i64,
    /// Shortest and longest packet, in bytes on the wire.
    pub sizes: Option<(u32, u32)>,
    /// Packets of each interface.
    pub by_interface: Vec<u64>,
    /// The fullest windows of each length in [`WINDOWS`].
    pub peaks: [Peak; WINDOWS.len()],
}

/// First, previous, earliest and latest time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Of the packet that was read first.
    pub first: Timestamp,
    /// Of the packet that was read last.
    pub last: Timestamp,
    /// The least of the time stamps.
    pub earliest: Timestamp,
    /// The greatest of the time stamps.
    pub latest: Timestamp,
}

/// The fullest window of one length. Windows follow each other from the first packet on; a packet
/// that comes late counts in the window that is open when it comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// The most packets in one window.
    pub packets: u64,
    /// The most bytes on the wire in one window.
    pub bytes: u64,
    window: i64,
    packets_now: u64,
    bytes_now: u64,
}

impl Peak {
    fn add(&mut self, window: i64, wire_len: u32) {
        if window > self.window {
            self.window = window;
            (self.packets_now, self.bytes_now) = (0, 0);
        }
        self.packets_now += 1;
        self.bytes_now += u64::from(wire_len);
        self.packets = self.packets.max(self.packets_now);
        self.bytes = self.bytes.max(self.bytes_now);
    }
}

/// How much fuller the fullest windows of one length are than the mean window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Length of the windows in nanoseconds.
    pub window: i64,
    /// The most packets in one window.
    pub packets: u64,
    /// The most bytes on the wire in one window.
    pub bytes: u64,
    /// The most packets over the mean number; `None` where the capture is shorter than one window.
    pub packets_to_mean: Option<f64>,
    /// The most bytes over the mean number.
    pub bytes_to_mean: Option<f64>,
}

/// Bytes that no packet of a network exceeds: super-frames of the Linux kernel have up to 512 KiB (BIG TCP). Those of other
/// buses, as USB, may be longer.
pub const LONGEST: u32 = 1 << 20;

/// Interfaces of which packets are counted apart.
const MAX_INTERFACES: usize = 65_536;

impl Facts {
    /// Adds the packet that comes next.
    pub fn add(&mut self, packet: &Packet<'_>) {
        self.packets += 1;
        self.captured_bytes += packet.data.len() as u64;
        self.wire_bytes += u64::from(packet.wire_len);
        self.cut += u64::from(packet.is_cut());
        self.absurd += u64::from(packet.wire_len > LONGEST && decode::supported(packet.link_type));
        let (shortest, longest) = self.sizes.unwrap_or((packet.wire_len, packet.wire_len));
        self.sizes = Some((shortest.min(packet.wire_len), longest.max(packet.wire_len)));
        self.add_to_interface(packet.interface as usize);
        self.add_time(packet.timestamp, packet.wire_len);
    }

    fn add_to_interface(&mut self, interface: usize) {
        if interface >= self.by_interface.len() && interface < MAX_INTERFACES {
            self.by_interface.resize(interface + 1, 0);
        }
        if let Some(packets) = self.by_interface.get_mut(interface) {
            *packets += 1;
        }
    }

    fn add_time(&mut self, time: Timestamp, wire_len: u32) {
        let times = self.times.get_or_insert(Times {
            first: time,
            last: time,
            earliest: time,
            latest: time,
        });
        if time < times.last {
            self.inversions += 1;
        }
        self.deepest_inversion = self.deepest_inversion.max(times.latest.nanos_since(time));
        times.last = time;
        times.earliest = times.earliest.min(time);
        times.latest = times.latest.max(time);
        let elapsed = time.nanos_since(times.first);
        for (peak, length) in self.peaks.iter_mut().zip(WINDOWS) {
            peak.add(elapsed / length, wire_len);
        }
    }

    /// Whether no packet is earlier than the one before it.
    #[must_use]
    pub const fn in_time_order(&self) -> bool {
        self.inversions == 0
    }

    /// Nanoseconds from the earliest to the latest packet.
    #[must_use]
    pub fn duration(&self) -> i64 {
        self.times.map_or(0, |times| times.latest.nanos_since(times.earliest))
    }

    /// Mean packets per second; `None` where no time passes.
    #[must_use]
    pub fn packet_rate(&self) -> Option<f64> {
        self.per_second(self.packets)
    }

    /// Mean bits on the wire per second; `None` where no time passes.
    #[must_use]
    pub fn bit_rate(&self) -> Option<f64> {
        self.per_second(self.wire_bytes).map(|bytes| bytes * 8.0)
    }

    /// Mean bytes of a packet on the wire; `None` where there is no packet.
    #[must_use]
    pub fn mean_size(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.wire_bytes as f64 / self.packets as f64)
    }

    /// How bursty the traffic is, for each length in [`WINDOWS`].
    #[must_use]
    pub fn bursts(&self) -> [Burst; WINDOWS.len()] {
        let mut window = 0;
        self.peaks.map(|peak| {
            let length = WINDOWS[window];
            window += 1;
            let windows = self.duration() as f64 / length as f64;
            let over_mean = |peak: u64, sum: u64| {
                (windows >= 1.0 && sum > 0).then(|| peak as f64 * windows / sum as f64)
            };
            Burst {
                window: length,
                packets: peak.packets,
                bytes: peak.bytes,
                packets_to_mean: over_mean(peak.packets, self.packets),
                bytes_to_mean: over_mean(peak.bytes, self.wire_bytes),
            }
        })
    }

    fn per_second(&self, sum: u64) -> Option<f64> {
        let seconds = self.duration() as f64 / 1e9;
        (seconds > 0.0).then(|| sum as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netsniff_packet::LinkType;

    /// The facts of packets given as nanoseconds and bytes on the wire.
    fn facts(packets: &[(i64, u32)]) -> Facts {
        let mut facts = Facts::default();
        for &(nanos, wire_len) in packets {
            facts.add(&Packet {
                timestamp: Timestamp::from_nanos(nanos),
                data: &[0; 60],
                wire_len,
                link_type: LinkType::ETHERNET,
                interface: 2,
            });
        }
        facts
    }

    #[test]
    fn sums_sizes_and_rates() {
        let facts = facts(&[(0, 60), (1_000_000_000, 100), (2_000_000_000, 1500)]);
        assert_eq!((facts.packets, facts.captured_bytes, facts.wire_bytes), (3, 180, 1660));
        assert_eq!((facts.cut, facts.sizes), (2, Some((60, 1500))));
        assert_eq!((facts.packet_rate(), facts.bit_rate()), (Some(1.5), Some(6640.0)));
        assert_eq!(facts.by_interface, [0, 0, 3]);
        assert!(facts.in_time_order());
    }

    #[test]
    fn inversions_are_counted_and_measured_from_the_latest() {
        let facts = facts(&[(100, 60), (90, 60), (95, 60), (95, 60), (40, 60), (200, 60)]);
        assert_eq!((facts.inversions, facts.deepest_inversion), (2, 60));
        assert_eq!(facts.duration(), 160);
        assert!(!facts.in_time_order());
    }

    #[test]
    fn peaks_are_those_of_windows_from_the_first_packet_on() {
        const MS: i64 = 1_000_000;
        let start = 123_456_789;
        let at = |nanos| (start + nanos, 1000);
        // Three in the second millisecond, one late, and one at the end.
        let facts = facts(&[at(0), at(MS), at(MS + 1), at(2 * MS - 1), at(MS - 1), at(10 * MS)]);
        let [one, ten, hundred] = facts.bursts();
        assert_eq!((one.packets, one.bytes), (4, 4000));
        assert_eq!((ten.packets, ten.packets_to_mean), (5, Some(5.0 / 6.0)));
        assert_eq!(one.packets_to_mean, Some(4.0 * 10.0 / 6.0));
        assert_eq!((hundred.packets, hundred.packets_to_mean), (6, None));
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        let facts = facts(&[(i64::MAX, 1), (i64::MIN, 1), (0, 1)]);
        assert_eq!((facts.deepest_inversion, facts.duration()), (i64::MAX, i64::MAX));
    }
}
