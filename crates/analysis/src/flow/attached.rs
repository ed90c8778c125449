//! What few flows have, and no packet of the others should pay for.

use super::parents::Parents;
use super::streams::Streams;
use crate::protocol::{ProtocolId, Services, Session};
use crate::weird::Once;

/// Tunnels around a flow, and what is said in it.
#[derive(Debug, Default)]
pub struct Attached {
    /// The flows that it was tunnelled in; hardly any was.
    pub parents: Option<Box<Parents>>,
    /// What is said in it.
    pub talk: AppLayer,
    /// The protocols that its streams were found to speak.
    pub services: Services,
    /// The oddities of packets of each side, by [`Side`](crate::key::Side), that were reported.
    pub reported: [Once; 2],
}

/// What is said in a flow.
#[derive(Debug, Default)]
pub enum AppLayer {
    /// No payload so far.
    #[default]
    Silence,
    /// Datagrams, in a protocol.
    Datagrams(DatagramTalk),
    /// The two streams of a TCP connection.
    Streams(Box<Streams>),
    /// Nothing that is of interest any more.
    Over,
}

/// What is said in datagrams.
#[derive(Debug)]
pub struct DatagramTalk {
    /// Bytes that the session held when they were last counted.
    counted: u32,
    /// The protocol.
    pub id: ProtocolId,
    /// What was said.
    pub session: Box<dyn Session>,
}

impl DatagramTalk {
    /// Nothing said so far, in a session of a protocol.
    #[must_use]
    pub fn new(id: ProtocolId, session: Box<dyn Session>) -> Self {
        Self { counted: 0, id, session }
    }

    /// Counts what the session holds: after each datagram.
    pub fn recount(&mut self) {
        self.counted = u32::try_from(self.session.heap_bytes()).unwrap_or(u32::MAX);
    }

    /// Bytes that the session held when [`Self::recount`] was last called.
    #[must_use]
    pub const fn heap_bytes(&self) -> usize {
        self.counted as usize
    }
}

impl Attached {
    /// Asks for what each segment needs of the streams, if there are any, and for what was reported.
    #[inline]
    pub fn prefetch(&self) {
        self.reported.iter().for_each(Once::prefetch);
        if let AppLayer::Streams(streams) = &self.talk {
            streams.prefetch();
        }
    }

    /// Bytes that it takes, itself included.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let talk = match &self.talk {
            AppLayer::Silence | AppLayer::Over => 0,
            AppLayer::Datagrams(talk) => talk.heap_bytes(),
            AppLayer::Streams(streams) => size_of::<Streams>() + streams.heap_bytes(),
        };
        let reported: usize = self.reported.iter().map(Once::heap_bytes).sum();
        let parents = self.parents.as_ref().map_or(0, |of| size_of::<Parents>() + of.heap_bytes());
        size_of::<Self>() + parents + reported + talk
    }
}
