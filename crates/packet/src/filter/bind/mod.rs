//! Tree to program: where each header lies under one link type.
//!
//! Primitives are bound in the order in which they were written, because `vlan`, `mpls` and
//! `pppoes` move the headers of everything after them, as in libpcap.

mod arithmetic;
mod encapsulation;
mod link;
mod network;

use super::FilterError;
use super::program::{ACCEPT, Comparison, Field, Program, REJECT, Step, Test};
use super::simplify::simplify;
use super::tree::{LlcKind, Node, Primitive, Protocol, Relation, Tree};
use crate::LinkType;
use link::{Layout, ether_type};

/// Most tests in a program: as many as some twenty thousand hosts need.
const MAX_TESTS: usize = 1 << 18;

/// Why a primitive has no meaning under a link type, as one sentence.
type Refusal = String;

/// Index of a node among the bound ones.
type Id = usize;

/// Binds `tree`, which was parsed from `text`, to `link_type`.
pub(super) fn bind(tree: &Tree, text: &str, link_type: LinkType) -> Result<Program, FilterError> {
    let mut binder =
        Binder { layout: Layout::new(link_type), nodes: Vec::new(), operations: Vec::new() };
    let mut ids = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let id = match node {
            Node::Primitive { primitive, position } => {
                let refuse = |sentence| FilterError::new(text, *position, sentence);
                if binder.nodes.len() > MAX_TESTS {
                    return Err(refuse("the filter is too large from here on".to_owned()));
                }
                binder.primitive(primitive, &tree.terms).map_err(refuse)?
            }
            Node::Not(operand) => binder.not(ids[*operand]),
            Node::And(left, right) => binder.and(ids[*left], ids[*right]),
            Node::Or(left, right) => binder.or(ids[*left], ids[*right]),
        };
        ids.push(id);
    }
    let mut program = binder.link_up(ids.last().copied());
    simplify(&mut program, |_| true);
    Ok(program)
}

/// A condition of tests; operands are indices of earlier nodes.
enum Bound {
    Test(Test),
    Not(Id),
    And(Id, Id),
    Or(Id, Id),
}

struct Binder {
    layout: Layout,
    nodes: Vec<Bound>,
    operations: Vec<super::program::Operation>,
}

impl Binder {
    fn primitive(
        &mut self,
        primitive: &Primitive,
        terms: &[super::tree::Term],
    ) -> Result<Id, Refusal> {
        match *primitive {
            Primitive::Protocol(protocol) => self.protocol(protocol),
            Primitive::Host { protocol, direction, network } => {
                self.host(protocol, direction, network)
            }
            Primitive::EtherHost { direction, address } => self.ether_host(direction, address),
            Primitive::Ports { transport, direction, first, last } => {
                self.ports(transport, direction, first..=last)
            }
            Primitive::ProtocolNumber { layer, number } => self.protocol_number(layer, number),
            Primitive::LengthAtMost(most) => {
                let longer = self.wire_length(Comparison::Greater, most);
                Ok(self.not(longer))
            }
            Primitive::LengthAtLeast(least) => Ok(self.wire_length(Comparison::AtLeast, least)),
            Primitive::Byte { offset, relation, value } => self.byte(offset, relation, value),
            Primitive::Broadcast(protocol) => self.broadcast(protocol),
            Primitive::Multicast(protocol) => self.multicast(protocol),
            Primitive::Vlan(number) => self.vlan(number),
            Primitive::Mpls(label) => self.mpls(label),
            Primitive::PppoeDiscovery => self.link_type(ether_type::PPPOE_DISCOVERY),
            Primitive::PppoeSession(session) => self.pppoe_session(session),
            Primitive::Inbound => {
                let outbound = self.outbound()?;
                Ok(self.not(outbound))
            }
            Primitive::Outbound => self.outbound(),
            Primitive::InterfaceIndex(index) => self.interface_index(index),
            Primitive::Llc(kind) => self.llc(kind),
            Primitive::Relation { relation, ref left, ref right } => {
                let side =
                    |range: &core::ops::Range<usize>| terms.get(range.clone()).unwrap_or_default();
                self.relation(relation, side(left), side(right))
            }
        }
    }

    fn byte(&mut self, offset: u32, relation: Relation, value: u32) -> Result<Id, Refusal> {
        let at = self.layout.link_header()?.wrapping_add(offset);
        Ok(match relation {
            Relation::Greater => self.compare(at, 1, Comparison::Greater, value),
            Relation::Less => {
                let not_less = self.compare(at, 1, Comparison::AtLeast, value);
                self.not(not_less)
            }
            _ => self.equal(at, 1, value),
        })
    }

    /// IEEE 802.2 frames: a length instead of a type, and no NetWare checksum instead of LLC.
    fn llc(&mut self, kind: LlcKind) -> Result<Id, Refusal> {
        let is_llc = self.is_llc()?;
        let control = self.layout.payload()?.wrapping_add(2);
        let kind = match kind {
            LlcKind::Any => return Ok(is_llc),
            LlcKind::Information => {
                let other = self.test(control, 1, u32::MAX, Comparison::AnyBit, 1);
                self.not(other)
            }
            LlcKind::Supervisory => self.masked(control, 1, 1, 3),
            LlcKind::Unnumbered => self.masked(control, 1, 3, 3),
            LlcKind::SupervisoryCommand(command) => self.masked(control, 1, command.into(), 0x0f),
            LlcKind::UnnumberedCommand(command) => self.masked(control, 1, command.into(), 0xef),
        };
        Ok(self.and(is_llc, kind))
    }

    /// What `tcp`, `arp` and so on mean alone.
    fn protocol(&mut self, protocol: Protocol) -> Result<Id, Refusal> {
        use Protocol as P;
        match protocol {
            P::Link => Err("\"ether\" is no condition by itself".to_owned()),
            P::Ip => self.link_type(ether_type::IPV4),
            P::Ip6 => self.link_type(ether_type::IPV6),
            P::Arp => self.link_type(ether_type::ARP),
            P::Rarp => self.link_type(ether_type::RARP),
            P::Atalk => self.link_type(ether_type::ATALK),
            P::Aarp => self.link_type(ether_type::AARP),
            P::Decnet => self.link_type(ether_type::DECNET),
            P::Lat => self.link_type(ether_type::LAT),
            P::Sca => self.link_type(ether_type::SCA),
            P::Moprc => self.link_type(ether_type::MOP_RC),
            P::Mopdl => self.link_type(ether_type::MOP_DL),
            P::Iso => self.link_type(link::lsap::ISO),
            P::Stp => self.link_type(link::lsap::STP),
            P::Ipx => self.link_type(link::lsap::IPX),
            P::Netbeui => self.link_type(link::lsap::NETBEUI),
            P::Tcp => self.protocol_number(None, 6),
            P::Udp => self.protocol_number(None, 17),
            P::Sctp => self.protocol_number(None, 132),
            P::Pim => self.protocol_number(None, 103),
            P::Esp => self.protocol_number(None, 50),
            P::Ah => self.protocol_number(None, 51),
            P::Icmp => self.protocol_number(Some(P::Ip), 1),
            P::Igmp => self.protocol_number(Some(P::Ip), 2),
            P::Igrp => self.protocol_number(Some(P::Ip), 9),
            P::Vrrp | P::Carp => self.protocol_number(Some(P::Ip), 112),
            P::Icmp6 => self.protocol_number(Some(P::Ip6), 58),
            P::Clnp => self.protocol_number(Some(P::Iso), 0x81),
            P::Esis => self.protocol_number(Some(P::Iso), 0x82),
            P::Isis => self.protocol_number(Some(P::Iso), 0x83),
        }
    }

    fn push(&mut self, bound: Bound) -> Id {
        self.nodes.push(bound);
        self.nodes.len() - 1
    }

    fn not(&mut self, operand: Id) -> Id {
        self.push(Bound::Not(operand))
    }

    fn and(&mut self, left: Id, right: Id) -> Id {
        self.push(Bound::And(left, right))
    }

    fn or(&mut self, left: Id, right: Id) -> Id {
        self.push(Bound::Or(left, right))
    }

    fn constant(&mut self, outcome: bool) -> Id {
        self.push(Bound::Test(Test::Constant(outcome)))
    }

    fn wire_length(&mut self, comparison: Comparison, value: u32) -> Id {
        self.push(Bound::Test(Test::WireLength { comparison, value }))
    }

    fn equal(&mut self, offset: u32, size: u8, value: u32) -> Id {
        self.test(offset, size, u32::MAX, Comparison::Equal, value)
    }

    fn compare(&mut self, offset: u32, size: u8, comparison: Comparison, value: u32) -> Id {
        self.test(offset, size, u32::MAX, comparison, value)
    }

    fn masked(&mut self, offset: u32, size: u8, value: u32, mask: u32) -> Id {
        self.test(offset, size, mask, Comparison::Equal, value)
    }

    fn test(&mut self, offset: u32, size: u8, mask: u32, comparison: Comparison, value: u32) -> Id {
        self.field(Field { offset, size, after_ipv4: None }, mask, comparison, value)
    }

    fn field(&mut self, field: Field, mask: u32, comparison: Comparison, value: u32) -> Id {
        if mask == 0 {
            // Nothing is left to load, so nothing can lie outside the packet: libpcap's optimiser
            // removes the load, and `net 0.0.0.0/0` holds for cut packets too.
            return self.constant(comparison.holds(0, value));
        }
        self.push(Bound::Test(Test::Field { field, mask, comparison, value }))
    }

    /// Turns the condition `root` into steps with exits.
    fn link_up(self, root: Option<Id>) -> Program {
        let Some(root) = root else {
            return Program { start: ACCEPT, steps: Vec::new(), operations: Vec::new() };
        };
        // Children come before parents: the first test of each node forwards, its exits backwards.
        let mut entries: Vec<u32> = Vec::with_capacity(self.nodes.len());
        let mut count = 0;
        for node in &self.nodes {
            entries.push(match node {
                Bound::Test(_) => {
                    count += 1;
                    count - 1
                }
                Bound::Not(first) | Bound::And(first, _) | Bound::Or(first, _) => entries[*first],
            });
        }
        let mut exits = vec![(REJECT, REJECT); self.nodes.len()];
        exits[root] = (ACCEPT, REJECT);
        for (id, node) in self.nodes.iter().enumerate().rev() {
            let (on_true, on_false) = exits[id];
            match *node {
                Bound::Test(_) => {}
                Bound::Not(operand) => exits[operand] = (on_false, on_true),
                Bound::And(left, right) => {
                    exits[right] = (on_true, on_false);
                    exits[left] = (entries[right], on_false);
                }
                Bound::Or(left, right) => {
                    exits[right] = (on_true, on_false);
                    exits[left] = (on_true, entries[right]);
                }
            }
        }
        let mut steps = Vec::with_capacity(count as usize);
        for (node, (on_true, on_false)) in self.nodes.into_iter().zip(exits) {
            if let Bound::Test(test) = node {
                steps.push(Step { test, on_true, on_false });
            }
        }
        Program { start: entries[root], steps, operations: self.operations }
    }
}
