//! What is sent.

use std::path::PathBuf;
use std::time::Duration;

use crate::tools::{FLAG, Setting};

/// Bytes of the frame check sequence, which sizes of frames include (RFC 2544) and captures do not have.
pub const FCS_LEN: u32 = 4;

/// Bytes before an Ethernet frame in a ring of TPACKET_V3: header and address, so aligned that the network header is; and
/// what a packet takes in all is a multiple of this (`tpacket_rcv` and `packet_lookup_frame_in_block` in the kernel's
/// net/packet/af_packet.c).
const BEFORE: u64 = 82;
const ALIGNED: u64 = 8;

/// Bytes that a block of such a ring has before its first packet.
pub const BLOCK_HEADER: u64 = 48;

/// Bytes that a frame takes in a ring of TPACKET_V3, of so many with its frame check sequence, which is not captured.
#[must_use]
pub const fn slot(size: u32) -> u64 {
    (size.saturating_sub(FCS_LEN) as u64 + BEFORE).next_multiple_of(ALIGNED)
}

/// Options of the generator that stand unless others are given: frames that leave together, which is what a sender
/// through an XDP socket hands to the kernel with one call, and flows that frames belong to in turn.
const DEFAULTS: [(&str, &str); 2] = [("burst", "32"), (FLOWS, "256")];

const FLOWS: &str = "flows";

/// The option of `netsniff replay` that keeps recorded gaps, scaled to the rate.
pub const KEEP_GAPS: &str = "keep-gaps";

/// What is sent: stamped frames of one size, or a capture again and again, at a rate.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Load {
    /// Bytes of a frame, frame check sequence included; of a capture's frames on average.
    pub size: u32,
    /// Frames a second; `None` for as fast as possible.
    pub rate: Option<f64>,
    /// How long frames are sent.
    #[serde(rename = "seconds", with = "seconds")]
    pub time: Duration,
    /// Other options of `netsniff generate`, or of `netsniff replay` where a capture is sent.
    #[serde(default)]
    pub options: Vec<Setting>,
    /// The capture that is sent.
    #[serde(default)]
    pub capture: Option<PathBuf>,
}

/// Writes and reads durations as seconds.
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
    /// The same with more options.
    #[must_use]
    pub fn with(mut self, options: &[Setting]) -> Self {
        self.options.extend_from_slice(options);
        self
    }

    /// Frames a second that every part of a run is to have; `None` for as fast as possible, and where the recorded gaps of a
    /// capture are kept, which make parts of it faster and slower than the whole.
    #[must_use]
    pub fn even_rate(&self) -> Option<f64> {
        let keeps_gaps = self.options.iter().any(|option| option.name == KEEP_GAPS);
        self.rate.filter(|_| !keeps_gaps)
    }

    /// How many flows its frames are of in turn; `None` for those of a capture.
    #[must_use]
    pub fn flows(&self) -> Option<u32> {
        if self.capture.is_some() {
            return None;
        }
        let told = self.options.iter().rev().find(|option| option.name == FLOWS);
        let usual =
            || DEFAULTS.into_iter().find(|(name, _)| *name == FLOWS).map(|(_, value)| value);
        told.map(|option| option.value.as_str()).or_else(usual)?.parse().ok()
    }

    /// The arguments of `netsniff` that send it on an interface.
    #[must_use]
    pub fn arguments(&self, interface: &str, processor: usize) -> Vec<String> {
        let mut words = vec!["--json".to_owned()];
        let mut option = |name: &str, value: &str| {
            words.push(format!("--{name}"));
            if value != FLAG {
                words.push(value.to_owned());
            }
        };
        option("interface", interface);
        option("cpu", &processor.to_string());
        option("duration", &format!("{}us", self.time.as_micros()));
        for Setting { name, value } in &self.options {
            option(name, value);
        }
        let has = |name: &str| self.options.iter().any(|option| option.name == name);
        let (rate, burst) = match (self.rate, &self.capture) {
            (None, _) => (None, false),
            (Some(rate), None) => (Some(("rate", rate)), true),
            (Some(rate), Some(_)) => (Some(("pps", rate)), !has(KEEP_GAPS)),
        };
        match rate {
            None => option("topspeed", FLAG),
            Some((name, rate)) => option(name, &format!("{rate:.3}")),
        }
        for (name, value) in DEFAULTS {
            let is_taken = if name == "burst" { burst } else { self.capture.is_none() };
            if is_taken && !has(name) {
                option(name, value);
            }
        }
        match &self.capture {
            None => {
                option("size", &self.size.to_string());
                words.insert(0, "generate".to_owned());
            }
            Some(capture) => {
                // Time ends it.
                if !has("loop") {
                    option("loop", "0");
                }
                words.insert(0, "replay".to_owned());
                words.push(capture.display().to_string());
            }
        }
        words
    }

    /// The share of so many frames that a ring of so many bytes holds, of each of which so many bytes are kept, frame check
    /// sequence included: where it is large, a run tells of the ring alone.
    #[must_use]
    pub fn share_of_ring(kept: u32, ring: u64, frames: u64) -> f64 {
        (ring / slot(kept)) as f64 / frames.max(1) as f64
    }

    /// How long it takes until a ring of so many bytes holds at most a part of what was sent at a rate.
    #[must_use]
    pub fn long_enough(kept: u32, ring: u64, rate: f64, part: f64) -> Duration {
        let seconds = Self::share_of_ring(kept, ring, 1) / part / rate.max(1.0);
        Duration::from_secs_f64(seconds.clamp(0.0, 1e6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_of_64_mib_holds_466_thousand_small_packets() {
        let time = Duration::from_secs(1);
        let load = Load { size: 64, rate: Some(1e5), time, ..Load::default() };
        assert_eq!((Load::share_of_ring(64, 64 << 20, 1) / 1000.0).round(), 466.0);
        let long = Load::long_enough(64, 64 << 20, 466_034.0, 0.1);
        assert_eq!(long.as_secs_f64().round(), 10.0);
        let words = load.arguments("tx0", 0).join(" ");
        assert!(
            words.contains("--rate 100000.000 --burst 32")
                && words.contains("--duration 1000000us")
        );
    }

    /// Counted: of bursts of 8000, 10,000 and 12,000 frames of 512 bytes, four blocks of 1 MiB kept 7084 each time.
    #[test]
    fn blocks_hold_what_they_were_seen_to_hold() {
        assert_eq!(((1 << 20) - BLOCK_HEADER) / slot(512), 7084 / 4);
    }

    #[test]
    fn options_stand_before_what_is_usual() {
        let setting = |name: &str, value: &str| Setting { name: name.into(), value: value.into() };
        let load = Load { size: 64, rate: Some(1e5), ..Load::default() };
        let words = load.clone().with(&[setting("burst", "1000"), setting("poisson", FLAG)]);
        let words = words.arguments("tx0", 0).join(" ");
        assert!(
            words.contains("--burst 1000 --poisson --rate") && !words.contains("--burst 32"),
            "{words}"
        );
        let replayed = Load { capture: Some("c.pcap".into()), ..load.clone() };
        let words = replayed.clone().with(&[setting("hosts", "30")]).arguments("tx0", 0).join(" ");
        assert!(
            words.starts_with("replay ")
                && words.ends_with("--hosts 30 --pps 100000.000 --burst 32 --loop 0 c.pcap"),
            "{words}"
        );
        assert_eq!((load.flows(), replayed.flows()), (Some(256), None));
        assert_eq!(load.clone().with(&[setting("flows", "1")]).flows(), Some(1));
        let top = Load { rate: None, ..replayed }.arguments("tx0", 0).join(" ");
        assert!(top.ends_with("--topspeed --loop 0 c.pcap"), "{top}");
    }
}
