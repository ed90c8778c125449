//! What a record tells of a flow. A value that it does not tell is unset.

use netsniff_packet::{Address, Timestamp};

use crate::sampling::Sampling;

/// What was sent in one direction, as the exporter counted it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets.
    pub packets: Option<u64>,
    /// Bytes of IP, headers included.
    pub octets: Option<u64>,
    /// Bytes behind the transport header.
    pub payload_octets: Option<u64>,
    /// TCP flags of all packets together.
    pub tcp_flags: Option<u16>,
    /// Time of the first packet.
    pub start: Option<Timestamp>,
    /// Time of the last packet.
    pub end: Option<Timestamp>,
}

/// Who of a flow was said to have begun it (`biflowDirection`, RFC 5103).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The source.
    Initiator,
    /// The destination.
    ReverseInitiator,
}

/// Why an exporter told of a flow (`flowEndReason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Nothing came of it for some time.
    Idle,
    /// It had lasted for some time, and goes on.
    Active,
    /// Its end was seen.
    Ended,
    /// The exporter was stopped or told to.
    Forced,
    /// The exporter had no room.
    Resources,
}

impl EndReason {
    /// The reason of this number, if it has a meaning.
    pub(crate) const fn of(number: u64) -> Option<Self> {
        Some(match number {
            1 => Self::Idle,
            2 => Self::Active,
            3 => Self::Ended,
            4 => Self::Forced,
            5 => Self::Resources,
            _ => return None,
        })
    }
}

/// A flow as one record tells of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// The address that packets came from.
    pub source: Address,
    /// The address that they went to.
    pub destination: Address,
    /// Source port; 0 for protocols without ports.
    pub source_port: u16,
    /// Destination port; 0 for protocols without ports.
    pub destination_port: u16,
    /// Protocol number of the IP header.
    pub protocol: u8,
    /// Type and code, of ICMP.
    pub icmp: Option<(u8, u8)>,
    /// From source to destination.
    pub forward: Sent,
    /// From destination to source, where the record tells of both (RFC 5103).
    pub reverse: Option<Sent>,
    /// Who began it, if somebody says so.
    pub direction: Option<Direction>,
    /// Why it was told.
    pub end_reason: Option<EndReason>,
    /// Which share of the packets the exporter looked at.
    pub sampling: Sampling,
    /// VLAN.
    pub vlan: Option<u16>,
    /// Index of the interface where packets came in.
    pub ingress: Option<u32>,
    /// Index of the interface where packets went out.
    pub egress: Option<u32>,
    /// The template that described the record; unset for NetFlow 5, which has none.
    pub template: Option<u16>,
    /// Whether sequence numbers say that something of the exporter was lost since the flow began.
    pub is_touched: bool,
}

impl Flow {
    /// Time of the first packet in either direction.
    #[must_use]
    pub fn start(&self) -> Option<Timestamp> {
        [Some(&self.forward), self.reverse.as_ref()]
            .into_iter()
            .flatten()
            .filter_map(|it| it.start)
            .min()
    }

    /// Time of the last packet in either direction.
    #[must_use]
    pub fn end(&self) -> Option<Timestamp> {
        [Some(&self.forward), self.reverse.as_ref()]
            .into_iter()
            .flatten()
            .filter_map(|it| it.end)
            .max()
    }
}
