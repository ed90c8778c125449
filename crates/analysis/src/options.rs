//! What the user may want of the analysis besides the bounds.

use core::time::Duration;
use std::sync::Arc;

use netsniff_packet::Anonymizer;
use netsniff_packet::decode::TunnelPorts;

use crate::depth::Depth;
use crate::file::{Bodies, Extract, HashKinds};
use crate::locality::LocalNets;
use crate::notice::Watch;
use crate::protocol::ProtocolSet;
use crate::reassembly::piece::Overlap;
use crate::series::SeriesOptions;

/// Choices that change what records say.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How deep traffic is analysed at most, and as long as nobody sets a lesser depth.
    pub depth: Depth,
    /// Samples the RTT of every TCP connection into the `rtt` log, a row for each interval of this
    /// length in which there were samples. An interval of 0 counts as none.
    pub rtt_interval: Option<Duration>,
    /// Tells what passes in each interval in the log `series`.
    pub series: Option<SeriesOptions>,
    /// The capture was taken on a gateway, which is itself a hop: hop counts are one lower.
    pub gateway: bool,
    /// The UDP ports on which tunnels are looked for.
    pub tunnel_ports: Arc<TunnelPorts>,
    /// The networks whose hosts are local.
    pub local_nets: Arc<LocalNets>,
    /// What becomes of packets with wrong checksums.
    pub checksums: ChecksumMode,
    /// One in so many pairs of addresses is captured; `None` where all are, or nobody knows.
    pub sampling: Option<u64>,
    /// Which bytes of a TCP stream count where segments contradict each other.
    pub overlap: Overlap,
    /// Whether the urgent byte is a part of a TCP stream.
    pub urgent: Urgent,
    /// Which hashes of files are computed.
    pub hashes: HashKinds,
    /// How much of bodies is decoded.
    pub bodies: Bodies,
    /// Who wants the content of files, if anybody.
    pub extract: Option<Arc<dyn Extract>>,
    /// The application protocols that are looked for.
    pub protocols: ProtocolSet,
    /// Flows are named by the pseudonyms of their addresses. The other values of records are mapped
    /// where they are written: [`Anonymous`](crate::record::Anonymous).
    pub anonymizer: Option<Arc<Anonymizer>>,
    /// What records are looked through for, if anything.
    pub watch: Option<Arc<Watch>>,
}

/// Where the byte before the urgent pointer of TCP is read. The segments don't tell: the receiving
/// application decides (RFC 6093, 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Urgent {
    /// Apart from the stream, which goes on without it: what sockets do unless they are told
    /// otherwise.
    #[default]
    OutOfBand,
    /// In its place in the stream: what sockets do with `SO_OOBINLINE`, and what RFC 6093 wants.
    Inline,
}

/// What becomes of packets with wrong checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChecksumMode {
    /// They are analysed like others, and counted.
    #[default]
    Count,
    /// They are left out and counted, as Zeek does unless it is told `-C`: with a wrong IPv4 header
    /// a packet goes no further, with a wrong transport checksum it counts for nothing in its
    /// connection but for a letter in the history.
    Discard,
    /// Checksums are not looked at.
    Ignore,
}

impl ChecksumMode {
    /// Whether transport checksums of flows that are analysed so deep are looked at. They take a look at
    /// every byte, which counters alone are not worth.
    #[must_use]
    #[inline]
    pub(crate) const fn looks_at(self, depth: Depth) -> bool {
        match self {
            Self::Count => depth as u8 >= Depth::Tcp as u8,
            Self::Discard => depth as u8 >= Depth::Flows as u8,
            Self::Ignore => false,
        }
    }

    /// A word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Discard => "discard",
            Self::Ignore => "ignore",
        }
    }
}

impl Options {
    /// The deepest analysis that there is to be: without protocols to look for, it ends with TCP.
    #[must_use]
    pub fn deepest(&self) -> Depth {
        if self.protocols.is_empty() { self.depth.min(Depth::Tcp) } else { self.depth }
    }

    /// The sampling interval in nanoseconds, if there is to be sampling.
    #[must_use]
    pub fn rtt_interval_nanos(&self) -> Option<i64> {
        let nanos = i64::try_from(self.rtt_interval?.as_nanos()).unwrap_or(i64::MAX);
        (nanos > 0).then_some(nanos)
    }
}
