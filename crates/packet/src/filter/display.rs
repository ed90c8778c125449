//! A filter written out in full, so that tests and users see how it was understood.

use core::fmt;

use super::Filter;
use super::tree::{
    Direction, LlcKind, Network, Node, Operator, Primitive, Protocol, Relation, Term, Transport,
    Tree,
};

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(root) = self.tree.nodes.len().checked_sub(1) else {
            return Ok(());
        };
        // What remains to be written, last first: no recursion, however long the filter is.
        let mut rest = vec![Piece::Node(root)];
        while let Some(piece) = rest.pop() {
            match piece {
                Piece::Text(text) => f.write_str(text)?,
                Piece::Node(id) => match &self.tree.nodes[id] {
                    Node::Primitive { primitive, .. } => write_primitive(f, &self.tree, primitive)?,
                    Node::Not(operand) => {
                        rest.extend([Piece::Node(*operand), Piece::Text("not ")]);
                    }
                    Node::And(left, right) => rest.extend(joined(*left, " and ", *right)),
                    Node::Or(left, right) => rest.extend(joined(*left, " or ", *right)),
                },
            }
        }
        Ok(())
    }
}

enum Piece {
    Node(usize),
    Text(&'static str),
}

const fn joined(left: usize, word: &'static str, right: usize) -> [Piece; 5] {
    [Piece::Text(")"), Piece::Node(right), Piece::Text(word), Piece::Node(left), Piece::Text("(")]
}

fn write_primitive(f: &mut fmt::Formatter<'_>, tree: &Tree, primitive: &Primitive) -> fmt::Result {
    let number = |f: &mut fmt::Formatter<'_>, word: &str, number: Option<u32>| match number {
        Some(number) => write!(f, "{word} {number}"),
        None => f.write_str(word),
    };
    match primitive {
        Primitive::Protocol(protocol) => f.write_str(protocol.name()),
        Primitive::Host { protocol, direction, network } => {
            write_qualifiers(f, *protocol, *direction)?;
            write_network(f, *network)
        }
        Primitive::EtherHost { direction, address: [a, b, c, d, e, g] } => {
            write_qualifiers(f, Some(Protocol::Link), *direction)?;
            write!(f, "host {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
        }
        Primitive::Ports { transport, direction, first, last } => {
            let protocol = transport.map(|transport| match transport {
                Transport::Tcp => Protocol::Tcp,
                Transport::Udp => Protocol::Udp,
                Transport::Sctp => Protocol::Sctp,
            });
            write_qualifiers(f, protocol, *direction)?;
            if first == last {
                write!(f, "port {first}")
            } else {
                write!(f, "portrange {first}-{last}")
            }
        }
        Primitive::ProtocolNumber { layer, number } => {
            write_qualifiers(f, *layer, Direction::Any)?;
            write!(f, "proto {number}")
        }
        Primitive::LengthAtMost(most) => write!(f, "less {most}"),
        Primitive::LengthAtLeast(least) => write!(f, "greater {least}"),
        Primitive::Byte { offset, relation, value } => {
            write!(f, "byte {offset} {} {value}", relation.symbol())
        }
        Primitive::Broadcast(protocol) => {
            write_qualifiers(f, *protocol, Direction::Any)?;
            f.write_str("broadcast")
        }
        Primitive::Multicast(protocol) => {
            write_qualifiers(f, *protocol, Direction::Any)?;
            f.write_str("multicast")
        }
        Primitive::Vlan(id) => number(f, "vlan", *id),
        Primitive::Mpls(label) => number(f, "mpls", *label),
        Primitive::PppoeDiscovery => f.write_str("pppoed"),
        Primitive::PppoeSession(session) => number(f, "pppoes", *session),
        Primitive::Inbound => f.write_str("inbound"),
        Primitive::Outbound => f.write_str("outbound"),
        Primitive::InterfaceIndex(index) => write!(f, "ifindex {index}"),
        Primitive::Llc(kind) => f.write_str(kind.words()),
        Primitive::Relation { relation, left, right } => {
            write_terms(f, tree.terms.get(left.clone()).unwrap_or_default())?;
            write!(f, " {} ", relation.symbol())?;
            write_terms(f, tree.terms.get(right.clone()).unwrap_or_default())
        }
    }
}

fn write_qualifiers(
    f: &mut fmt::Formatter<'_>,
    protocol: Option<Protocol>,
    direction: Direction,
) -> fmt::Result {
    if let Some(protocol) = protocol {
        write!(f, "{} ", protocol.name())?;
    }
    f.write_str(match direction {
        Direction::Any => "",
        Direction::Source => "src ",
        Direction::Destination => "dst ",
        Direction::Either => "src or dst ",
        Direction::Both => "src and dst ",
    })
}

fn write_network(f: &mut fmt::Formatter<'_>, network: Network) -> fmt::Result {
    match network {
        Network::V4 { address, mask } => {
            let [address, dotted] = [address, mask].map(core::net::Ipv4Addr::from_bits);
            match mask {
                u32::MAX => write!(f, "host {address}"),
                _ => write!(f, "net {address} mask {dotted}"),
            }
        }
        Network::V6 { address, mask } => {
            let address = core::net::Ipv6Addr::from_bits(address);
            match mask {
                u128::MAX => write!(f, "host {address}"),
                _ => write!(f, "net {address}/{}", mask.leading_ones()),
            }
        }
    }
}

/// Writes postfix terms with an operator between its operands. The tree of a relation is only as
/// deep as its text is long, so the pieces are joined in a vector instead of by recursion.
fn write_terms(f: &mut fmt::Formatter<'_>, terms: &[Term]) -> fmt::Result {
    // For each finished operand, the index of its first term.
    let mut starts: Vec<usize> = Vec::new();
    let mut before = vec![String::new(); terms.len()];
    let mut after = vec![String::new(); terms.len()];
    for (at, term) in terms.iter().enumerate() {
        match *term {
            Term::Number(number) => {
                after[at] = number.to_string();
                starts.push(at);
            }
            Term::Length => {
                after[at].push_str("len");
                starts.push(at);
            }
            Term::Load { protocol, size } => {
                let first = starts.last().copied().unwrap_or(at);
                before[first].insert_str(0, &format!("{}[", protocol.name()));
                after[at] = if size == 1 { "]".to_owned() } else { format!(":{size}]") };
            }
            Term::Negate => {
                let first = starts.last().copied().unwrap_or(at);
                before[first].insert_str(0, "(-");
                after[at].push(')');
            }
            Term::Binary(operator) => {
                let second = starts.pop().unwrap_or(at);
                let first = starts.last().copied().unwrap_or(at);
                before[first].insert(0, '(');
                before[second].insert_str(0, operator.symbol());
                after[at].push(')');
            }
        }
    }
    for (before, after) in before.iter().zip(&after) {
        write!(f, "{before}{after}")?;
    }
    Ok(())
}

impl Relation {
    const fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        }
    }
}

impl Operator {
    const fn symbol(self) -> &'static str {
        match self {
            Self::Add => " + ",
            Self::Subtract => " - ",
            Self::Multiply => " * ",
            Self::Divide => " / ",
            Self::Modulo => " % ",
            Self::And => " & ",
            Self::Or => " | ",
            Self::Xor => " ^ ",
            Self::ShiftLeft => " << ",
            Self::ShiftRight => " >> ",
        }
    }
}

impl LlcKind {
    const fn words(self) -> &'static str {
        match self {
            Self::Any => "llc",
            Self::Information => "llc i",
            Self::Supervisory => "llc s",
            Self::Unnumbered => "llc u",
            Self::SupervisoryCommand(0x01) => "llc rr",
            Self::SupervisoryCommand(0x05) => "llc rnr",
            Self::SupervisoryCommand(_) => "llc rej",
            Self::UnnumberedCommand(0x03) => "llc ui",
            Self::UnnumberedCommand(0x0f) => "llc dm",
            Self::UnnumberedCommand(0x43) => "llc disc",
            Self::UnnumberedCommand(0x63) => "llc ua",
            Self::UnnumberedCommand(0x6f) => "llc sabme",
            Self::UnnumberedCommand(0x87) => "llc frmr",
            Self::UnnumberedCommand(0xaf) => "llc xid",
            Self::UnnumberedCommand(_) => "llc test",
        }
    }
}
