//! The syntax tree of a filter: what was asked, before any link type is known.
//!
//! Nodes lie in one vector, children before their parents, in the order in which they were
//! written. Nothing walks them by recursion, so a filter of ten thousand hosts needs no deep stack.

use core::net::Ipv6Addr;
use core::ops::Range;

/// A protocol as a qualifier, a primitive of its own, or the base of `proto[offset]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Link,
    Ip,
    Ip6,
    Arp,
    Rarp,
    Tcp,
    Udp,
    Sctp,
    Icmp,
    Icmp6,
    Igmp,
    Igrp,
    Pim,
    Vrrp,
    Carp,
    Ah,
    Esp,
    Atalk,
    Aarp,
    Decnet,
    Lat,
    Sca,
    Moprc,
    Mopdl,
    Iso,
    Esis,
    Isis,
    Clnp,
    Stp,
    Ipx,
    Netbeui,
}

/// Which of two addresses or ports must match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Direction {
    /// No qualifier: either.
    #[default]
    Any,
    Source,
    Destination,
    /// `src or dst`.
    Either,
    /// `src and dst`.
    Both,
}

/// An address under a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Network {
    V4 { address: u32, mask: u32 },
    V6 { address: u128, mask: u128 },
}

impl Network {
    pub(super) const fn host6(address: Ipv6Addr) -> Self {
        Self::V6 { address: address.to_bits(), mask: u128::MAX }
    }
}

/// A transport protocol with ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    Udp,
    Sctp,
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// Which IEEE 802.2 LLC frames are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LlcKind {
    Any,
    Information,
    Supervisory,
    Unnumbered,
    /// A supervisory frame with this control byte.
    SupervisoryCommand(u8),
    /// An unnumbered frame with this control byte.
    UnnumberedCommand(u8),
}

/// An operation on 32-bit numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

/// One element of an arithmetic expression in postfix order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Term {
    Number(u32),
    /// The length of the packet on the wire.
    Length,
    /// Replaces an offset by the 1, 2 or 4 bytes at it, counted from the header of the protocol.
    Load {
        protocol: Protocol,
        size: u8,
    },
    Binary(Operator),
    Negate,
}

/// What a filter asks about one packet at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Primitive {
    Protocol(Protocol),
    Host { protocol: Option<Protocol>, direction: Direction, network: Network },
    EtherHost { direction: Direction, address: [u8; 6] },
    Ports { transport: Option<Transport>, direction: Direction, first: u16, last: u16 },
    ProtocolNumber { layer: Option<Protocol>, number: u32 },
    LengthAtMost(u32),
    LengthAtLeast(u32),
    Byte { offset: u32, relation: Relation, value: u32 },
    Broadcast(Option<Protocol>),
    Multicast(Option<Protocol>),
    Vlan(Option<u32>),
    Mpls(Option<u32>),
    PppoeDiscovery,
    PppoeSession(Option<u32>),
    Inbound,
    Outbound,
    InterfaceIndex(u32),
    Llc(LlcKind),
    Relation { relation: Relation, left: Range<usize>, right: Range<usize> },
}

/// A node; its operands are indices of earlier nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Primitive { primitive: Primitive, position: usize },
    Not(usize),
    And(usize, usize),
    Or(usize, usize),
}

/// A parsed filter. The last node is the root; a tree without nodes matches every packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) terms: Vec<Term>,
}
