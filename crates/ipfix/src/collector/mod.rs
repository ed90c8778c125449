//! Messages of all exporters, with books for each.
//!
//! | module | concern |
//! |---|---|
//! | [`books`] | what became of the messages of one exporter and domain |
//! | `stream` | one exporter and domain: templates, sequence, what waits |

pub mod books;
mod stream;

use std::collections::BTreeMap;

use netsniff_packet::{Address, Timestamp};

pub use self::books::StreamBooks;
use self::stream::{Shared, Stream};
use crate::flow::Flow;
use crate::limits::Limits;
use crate::message::{self, Protocol, Refusal};

/// How messages come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// Each in a datagram, which may be lost.
    Udp,
    /// In a connection, with which templates end.
    Tcp,
}

/// Whoever sends messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Exporter {
    /// Its address.
    pub address: Address,
    /// The port that it sends from.
    pub port: u16,
    /// How messages come.
    pub transport: Transport,
}

/// What numbers its messages and its templates alone: an exporter with a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamKey {
    /// Whoever sends.
    pub exporter: Exporter,
    /// Observation domain of IPFIX, source id of NetFlow 9; of NetFlow 5 type and number of the engine.
    pub domain: u32,
    /// The protocol.
    pub protocol: Protocol,
}

/// What every message is for, from the first to the last.
#[derive(Debug)]
pub struct Collector {
    limits: Limits,
    streams: BTreeMap<StreamKey, Stream>,
    shared: Shared,
    /// Messages by why they were not read.
    refused: BTreeMap<Refusal, u64>,
    messages: u64,
    bytes: u64,
    /// Exporters that made room for others.
    left: u64,
}

impl Collector {
    /// One that got nothing yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            streams: BTreeMap::new(),
            shared: Shared::default(),
            refused: BTreeMap::new(),
            messages: 0,
            bytes: 0,
            left: 0,
        }
    }

    /// Takes a message that came at `now`, and hands over the flows that it tells of, with those that waited for what it
    /// explains.
    ///
    /// # Errors
    ///
    /// Why it was not read. That is counted as well.
    pub fn message(
        &mut self,
        exporter: Exporter,
        now: Timestamp,
        bytes: &[u8],
        mut take: impl FnMut(&StreamKey, Flow),
    ) -> Result<(), Refusal> {
        self.messages += 1;
        self.bytes += bytes.len() as u64;
        let read = message::header(bytes).and_then(|(header, body)| {
            let key = StreamKey { exporter, domain: header.domain, protocol: header.protocol };
            self.room_for(&key, now)?;
            let stream = self.streams.entry(key).or_default();
            let hash = hash(bytes);
            stream.message(&header, body, hash, now, &self.limits, &mut self.shared, &mut |flow| {
                take(&key, flow);
            });
            stream.books.bytes += bytes.len() as u64;
            Ok(())
        });
        if let Err(refusal) = read {
            *self.refused.entry(refusal).or_default() += 1;
        }
        read
    }

    /// Makes room for one more exporter, in place of one that has been silent for long.
    fn room_for(&mut self, key: &StreamKey, now: Timestamp) -> Result<(), Refusal> {
        if self.streams.contains_key(key) || self.streams.len() < self.limits.streams {
            return Ok(());
        }
        let oldest = self.streams.iter().min_by_key(|(_, stream)| stream.books.last);
        let oldest = oldest.filter(|(_, stream)| stream.books.last + self.limits.stream_idle < now);
        let oldest = oldest.map(|(key, _)| *key).ok_or(Refusal::Room)?;
        self.forget(&oldest);
        self.left += 1;
        Ok(())
    }

    fn forget(&mut self, key: &StreamKey) {
        if let Some(stream) = self.streams.remove(key) {
            self.shared.give_back(&stream);
        }
    }

    /// Gives up what waited or held for too long. It is to be called now and then.
    pub fn expire(&mut self, now: Timestamp) {
        for (key, stream) in &mut self.streams {
            stream.expire(key.exporter.transport, now, &self.limits, &mut self.shared);
        }
    }

    /// A connection ended: its templates hold no longer, and what waits for one waits in vain.
    pub fn disconnected(&mut self, exporter: &Exporter) {
        for (key, stream) in &mut self.streams {
            if key.exporter == *exporter {
                stream.end(&mut self.shared);
            }
        }
    }

    /// The books of each exporter and domain, in the order of keys.
    pub fn books(&self) -> impl Iterator<Item = (&StreamKey, StreamBooks)> {
        self.streams.iter().map(|(key, stream)| (key, stream.books()))
    }

    /// Messages that came.
    #[must_use]
    pub const fn messages(&self) -> u64 {
        self.messages
    }

    /// Their bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Messages that were not read, by the reason.
    pub fn refused(&self) -> impl Iterator<Item = (Refusal, u64)> {
        self.refused.iter().map(|(refusal, count)| (*refusal, *count))
    }

    /// Exporters whose books ended, since others needed the room.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }
}

/// A hash by which a message that comes twice is known: FNV over words.
fn hash(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let rest = rest.iter().map(|byte| u64::from(*byte));
    let all = words.chain(rest);
    all.fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29)
    })
}
