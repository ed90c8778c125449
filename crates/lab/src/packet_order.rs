//! The order of time in which a tool has packets, and how its threads share them (PAPERS C15, E-9).

use netsniff_packet::Timestamp;

/// How far packets are out of the order of their stamps, as netsniff's own books tell it of rings: a packet is where its
/// stamp is earlier than that of any before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PacketOrder {
    /// Packets that came behind a later one.
    pub inversions: u64,
    /// By how many nanoseconds at most; 0 where none is.
    pub deepest_ns: u64,
}

/// Looks at one packet after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    latest: Timestamp,
    order: PacketOrder,
}

impl Default for Watch {
    fn default() -> Self {
        Self { latest: Timestamp::MIN, order: PacketOrder::default() }
    }
}

impl Watch {
    /// The next packet has this stamp.
    pub(crate) fn see(&mut self, stamp: Timestamp) {
        if stamp < self.latest {
            self.order.inversions += 1;
            let depth = self.latest.nanos_since(stamp).unsigned_abs();
            self.order.deepest_ns = self.order.deepest_ns.max(depth);
        }
        self.latest = self.latest.max(stamp);
    }

    /// How those were that were seen.
    pub(crate) const fn order(&self) -> PacketOrder {
        self.order
    }
}

/// The share of the busiest of threads in all of their packets; `None` where there are none.
pub(crate) fn largest_share(threads: &[u64]) -> Option<f64> {
    let all: u64 = threads.iter().sum();
    let most = threads.iter().max()?;
    (all > 0).then(|| *most as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(stamps: &[i64]) -> PacketOrder {
        let mut watch = Watch::default();
        stamps.iter().for_each(|nanos| watch.see(Timestamp::from_nanos(*nanos)));
        watch.order()
    }

    #[test]
    fn what_is_behind_a_later_packet_is_out_of_order() {
        assert_eq!(order(&[1, 2, 2, 9]), PacketOrder::default());
        // 3 and 4 are both behind 9, though 4 is not behind 3.
        assert_eq!(order(&[1, 9, 3, 4, 9, 10]), PacketOrder { inversions: 2, deepest_ns: 6 });
        assert_eq!(order(&[]), PacketOrder::default());
    }

    #[test]
    fn shares_are_of_all_threads() {
        assert_eq!(largest_share(&[1, 2, 1]), Some(0.5));
        assert_eq!(largest_share(&[7, 0]), Some(1.0));
        assert_eq!((largest_share(&[]), largest_share(&[0, 0])), (None, None));
    }
}
