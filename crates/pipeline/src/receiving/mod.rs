//! What arrived of stamped frames: which are missing, how late they came, at what rate.
//!
//! | module | concern |
//! |---|---|
//! | [`stream`] | one stream of one run |
//! | [`report`] | what is told of all of them |

pub mod report;
pub mod stream;

use std::collections::BTreeMap;

use netsniff_packet::{Packet, Timestamp};
use netsniff_traffic::probe;

use self::stream::Stream;

/// Streams that are followed at most; each holds a few megabytes.
const MOST_STREAMS: usize = 64;

/// Gets packets, and follows the streams of stamped frames among them.
#[derive(Debug)]
pub struct Reception {
    port: u16,
    /// Frames a second by which gaps are judged; by the stamps where there is none.
    rate: Option<f64>,
    streams: BTreeMap<(u32, u16), Stream>,
    /// Packets without a stamp.
    others: u64,
    /// Stamped frames of streams beyond those that are followed.
    beyond: u64,
    stamped: u64,
    /// When a stamped frame came last, by its stamp of the capture.
    latest: Option<Timestamp>,
}

impl Reception {
    /// Of frames to a port, whose gaps are judged by a rate or else by their stamps.
    #[must_use]
    pub const fn new(port: u16, rate: Option<f64>) -> Self {
        let streams = BTreeMap::new();
        Self { port, rate, streams, others: 0, beyond: 0, stamped: 0, latest: None }
    }

    /// Takes the next packet.
    ///
    /// # Errors
    ///
    /// None but for lack of memory.
    pub fn packet(&mut self, packet: &Packet<'_>) -> anyhow::Result<()> {
        let Some(stamp) = probe::find(packet, self.port) else {
            self.others += 1;
            return Ok(());
        };
        self.stamped += 1;
        self.latest = Some(packet.timestamp);
        let key = (stamp.run, stamp.stream);
        if !self.streams.contains_key(&key) {
            if self.streams.len() == MOST_STREAMS {
                self.beyond += 1;
                return Ok(());
            }
            self.streams.insert(key, Stream::new(self.rate)?);
        }
        if let Some(stream) = self.streams.get_mut(&key) {
            stream.frame(&stamp, packet.timestamp, packet.wire_len);
        }
        Ok(())
    }

    /// Whether every stream that began has had so many frames, the last one among them.
    #[must_use]
    pub fn all_have(&self, expected: u64) -> bool {
        !self.streams.is_empty() && self.streams.values().all(|stream| stream.has(expected))
    }

    /// Stamped frames so far.
    #[must_use]
    pub const fn stamped(&self) -> u64 {
        self.stamped
    }
}
