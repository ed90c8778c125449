//! What is sent.

use std::time::Duration;

/// Bytes of the frame check sequence, which sizes of frames include (RFC 2544) and captures do not have.
const FCS_LEN: u64 = 4;

/// Bytes that a ring of TPACKET_V3 needs for a packet beside its own: header, address, and on average what aligns it.
const RING_OVERHEAD: u64 = 92;

/// Frames that leave together: what a sender through an XDP socket hands to the kernel with one call.
const BURST: &str = "32";

/// Flows that frames belong to in turn.
const FLOWS: &str = "256";

/// Stamped frames of one size at a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Load {
    /// Bytes of a frame, frame check sequence included.
    pub size: u32,
    /// Frames a second; `None` for as fast as possible.
    pub rate: Option<f64>,
    /// For how long.
    #[serde(rename = "seconds", with = "seconds")]
    pub time: Duration,
}

/// Times as seconds.
mod seconds {
    use std::time::Duration;

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64())
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(D::Error::custom)
    }
}

impl Load {
    /// The arguments of `netsniff` that send it on an interface.
    #[must_use]
    pub fn arguments(&self, interface: &str, processor: usize) -> Vec<String> {
        let mut words: Vec<String> =
            ["generate", "--json", "--flows", FLOWS].map(str::to_owned).to_vec();
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        option("-i", interface.to_owned());
        option("--cpu", processor.to_string());
        option("--size", self.size.to_string());
        option("--duration", format!("{}ms", self.time.as_millis()));
        match self.rate {
            None => words.push("--topspeed".to_owned()),
            Some(rate) => {
                option("--rate", format!("{rate:.3}"));
                option("--burst", BURST.to_owned());
            }
        }
        words
    }

    /// The share of the frames that a ring of so many bytes holds: where it is large, a run tells of the ring alone.
    #[must_use]
    pub fn share_of_ring(&self, ring: u64, frames: u64) -> f64 {
        let held = ring / (u64::from(self.size).saturating_sub(FCS_LEN) + RING_OVERHEAD);
        held as f64 / frames.max(1) as f64
    }

    /// How long it takes until a ring of so many bytes holds at most a part of what was sent at a rate.
    #[must_use]
    pub fn long_enough(size: u32, ring: u64, rate: f64, part: f64) -> Duration {
        let load = Self { size, rate: None, time: Duration::ZERO };
        let seconds = load.share_of_ring(ring, 1) / part / rate.max(1.0);
        Duration::from_secs_f64(seconds.clamp(0.0, 1e6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_of_64_mib_holds_441_thousand_small_packets() {
        let load = Load { size: 64, rate: Some(1e5), time: Duration::from_secs(1) };
        assert_eq!((load.share_of_ring(64 << 20, 1) / 1000.0).round(), 442.0);
        let long = Load::long_enough(64, 64 << 20, 441_505.0, 0.1);
        assert_eq!(long.as_secs_f64().round(), 10.0);
        let words = load.arguments("tx0", 0).join(" ");
        assert!(
            words.contains("--rate 100000.000 --burst 32") && words.contains("--duration 1000ms")
        );
    }
}
