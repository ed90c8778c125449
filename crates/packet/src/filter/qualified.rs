//! Primitives: a protocol, a direction and a type before a value, and the words that stand alone.

use super::FilterError;
use super::lexer::{Keyword, Token, Word};
use super::names::{self, look_up};
use super::parser::Parser;
use super::tree::{Direction, Network, Node, Primitive, Protocol, Transport};

/// What a value means; `and` and `or` hand it on to a bare value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Qualifiers {
    protocol: Option<Protocol>,
    direction: Direction,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Only a direction: a host.
    Default,
    Host,
    Net,
    Port,
    PortRange,
    Proto,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Default | Self::Host => "host",
            Self::Net => "net",
            Self::Port => "port",
            Self::PortRange => "portrange",
            Self::Proto => "proto",
        }
    }
}

impl Parser<'_> {
    /// One primitive. Returns the qualifiers that a bare value after it takes over.
    pub(super) fn primitive(
        &mut self,
        inherited: Option<Qualifiers>,
    ) -> Result<Option<Qualifiers>, FilterError> {
        let token = self.peek();
        let protocol = if let Word::Protocol(protocol) = token.word {
            self.advance();
            Some(protocol)
        } else {
            None
        };
        if let Some(direction) = self.direction()? {
            let kind = self.kind().unwrap_or(Kind::Default);
            if kind == Kind::Proto {
                return Err(self.error(token, "\"proto\" has no direction"));
            }
            return self.values(Qualifiers { protocol, direction, kind }).map(Some);
        }
        if let Some(kind) = self.kind() {
            let direction = Direction::Any;
            return self.values(Qualifiers { protocol, direction, kind }).map(Some);
        }
        match (protocol, self.peek().word) {
            (_, Word::Keyword(Keyword::Broadcast)) => {
                self.advance();
                self.push(Primitive::Broadcast(protocol), token);
            }
            (_, Word::Keyword(Keyword::Multicast)) => {
                self.advance();
                self.push(Primitive::Multicast(protocol), token);
            }
            (Some(Protocol::Link), _) => {
                let wanted = "\"host\", \"proto\", \"broadcast\", \"multicast\" or \"[\"";
                return Err(self.expected(wanted, self.peek()));
            }
            (Some(protocol), _) => self.push(Primitive::Protocol(protocol), token),
            (None, Word::Keyword(keyword)) => self.keyword(keyword)?,
            (None, Word::Name(_) | Word::Ipv4 { .. } | Word::Ipv6(_) | Word::Mac(_)) => {
                let Some(qualifiers) = inherited else {
                    return Err(self.bare(token));
                };
                self.value(qualifiers)?;
                return Ok(inherited);
            }
            _ => return Err(self.expected("a condition", token)),
        }
        Ok(None)
    }

    /// A value that no qualifier explains.
    fn bare(&self, token: Token<'_>) -> FilterError {
        let text = &self.text[token.start..token.end];
        match token.word {
            Word::Name(_) => self.error(token, format!("unknown word \"{text}\"")),
            Word::Mac(_) => self.error(token, format!("write \"ether host\" before \"{text}\"")),
            _ => self.error(token, format!("write \"host\" or \"net\" before \"{text}\"")),
        }
    }

    /// `src`, `dst`, `src or dst`, `src and dst`.
    fn direction(&mut self) -> Result<Option<Direction>, FilterError> {
        let (direction, other) = match self.peek().word {
            Word::Keyword(Keyword::Source) => (Direction::Source, Keyword::Destination),
            Word::Keyword(Keyword::Destination) => (Direction::Destination, Keyword::Source),
            _ => return Ok(None),
        };
        self.advance();
        let joined = match self.peek().word {
            Word::Keyword(Keyword::Or) => Direction::Either,
            Word::Keyword(Keyword::And) => Direction::Both,
            _ => return Ok(Some(direction)),
        };
        self.advance();
        let wanted = if other == Keyword::Source { "\"src\"" } else { "\"dst\"" };
        self.expect(Word::Keyword(other), wanted)?;
        Ok(Some(joined))
    }

    fn kind(&mut self) -> Option<Kind> {
        let kind = match self.peek().word {
            Word::Keyword(Keyword::Host) => Kind::Host,
            Word::Keyword(Keyword::Net) => Kind::Net,
            Word::Keyword(Keyword::Port) => Kind::Port,
            Word::Keyword(Keyword::PortRange) => Kind::PortRange,
            Word::Keyword(Keyword::Proto) => Kind::Proto,
            _ => return None,
        };
        self.advance();
        Some(kind)
    }

    /// A value after its qualifiers, or several of them in parentheses: `port (80 or 443)`.
    fn values(&mut self, qualifiers: Qualifiers) -> Result<Qualifiers, FilterError> {
        self.enter()?;
        match self.peek().word {
            Word::Keyword(Keyword::Not) => {
                self.advance();
                self.values(qualifiers)?;
                let operand = self.root();
                self.tree.nodes.push(Node::Not(operand));
            }
            Word::OpenParenthesis => {
                self.advance();
                self.values(qualifiers)?;
                loop {
                    let left = self.root();
                    let conjunction = match self.peek().word {
                        Word::Keyword(Keyword::And) => Node::And,
                        Word::Keyword(Keyword::Or) => Node::Or,
                        _ => break,
                    };
                    self.advance();
                    self.values(qualifiers)?;
                    let right = self.root();
                    self.tree.nodes.push(conjunction(left, right));
                }
                self.expect(Word::CloseParenthesis, "\"and\", \"or\" or \")\"")?;
            }
            _ => self.value(qualifiers)?,
        }
        self.leave();
        Ok(qualifiers)
    }

    fn value(&mut self, qualifiers: Qualifiers) -> Result<(), FilterError> {
        let token = self.advance();
        match token.word {
            Word::Number(number) => self.number(qualifiers, number, token),
            Word::Ipv4 { value, bits } => self.ipv4(qualifiers, value, bits, token),
            Word::Ipv6(address) => {
                let mut network = Network::host6(address);
                if let Some(length) = self.prefix_length(128, qualifiers)? {
                    let mask = leading_ones(length);
                    network = Network::V6 { address: address.to_bits(), mask };
                }
                self.network(qualifiers, network, token)
            }
            Word::Mac(address) => {
                let host = matches!(qualifiers.kind, Kind::Default | Kind::Host);
                if !host || qualifiers.protocol != Some(Protocol::Link) {
                    return Err(
                        self.error(token, "a MAC address is only valid after \"ether host\"")
                    );
                }
                let direction = qualifiers.direction;
                self.push(Primitive::EtherHost { direction, address }, token);
                Ok(())
            }
            Word::Name(name) => self.name(qualifiers, name, token),
            Word::Protocol(_) | Word::Keyword(_) => {
                let text = &self.text[token.start..token.end];
                let kind = qualifiers.kind.name();
                let mut sentence = format!("expected a value after \"{kind}\", found \"{text}\"");
                if qualifiers.kind == Kind::Proto {
                    sentence =
                        format!("\"{text}\" is a keyword: write \"\\{text}\" after \"proto\"");
                }
                Err(self.error(token, sentence))
            }
            _ => {
                Err(self.expected(&format!("a value after \"{}\"", qualifiers.kind.name()), token))
            }
        }
    }

    /// A plain number: a port, a protocol, or an address as one 32-bit number.
    pub(super) fn number(
        &mut self,
        qualifiers: Qualifiers,
        number: u32,
        token: Token<'_>,
    ) -> Result<(), FilterError> {
        match qualifiers.kind {
            Kind::Default | Kind::Host => {
                let network = Network::V4 { address: number, mask: u32::MAX };
                self.network(qualifiers, network, token)
            }
            Kind::Net => {
                // `net 10` means 10.0.0.0/8 and `net 0x0a01` means 10.1.0.0/16.
                let shift = if number == 0 { 0 } else { number.leading_zeros() / 8 * 8 };
                let network = Network::V4 { address: number << shift, mask: u32::MAX << shift };
                self.network(qualifiers, network, token)
            }
            Kind::Port | Kind::PortRange => {
                let transport = self.transport(qualifiers, None, token)?;
                let Ok(port) = u16::try_from(number) else {
                    return Err(self.error(token, format!("the port {number} is above 65535")));
                };
                let direction = qualifiers.direction;
                self.push(
                    Primitive::Ports { transport, direction, first: port, last: port },
                    token,
                );
                Ok(())
            }
            Kind::Proto => self.protocol_number(qualifiers, number, token),
        }
    }

    /// An IPv4 address or the front of one, with a mask or without.
    fn ipv4(
        &mut self,
        qualifiers: Qualifiers,
        value: u32,
        bits: u32,
        token: Token<'_>,
    ) -> Result<(), FilterError> {
        let shift = 32 - bits;
        let address = value << shift;
        let mut mask = u32::MAX << shift;
        if let Some(length) = self.prefix_length(32, qualifiers)? {
            mask = (leading_ones(length) >> 96) as u32;
        } else if self.peek().word == Word::Keyword(Keyword::Mask) {
            let token = self.advance();
            if qualifiers.kind != Kind::Net {
                return Err(self.error(token, "only \"net\" takes a mask"));
            }
            let token = self.advance();
            let Word::Ipv4 { value, bits } = token.word else {
                return Err(self.expected("a mask such as 255.255.0.0", token));
            };
            mask = value << (32 - bits);
        }
        self.network(qualifiers, Network::V4 { address, mask }, token)
    }

    /// `/length` after an address.
    fn prefix_length(
        &mut self,
        most: u32,
        qualifiers: Qualifiers,
    ) -> Result<Option<u32>, FilterError> {
        if self.peek().word != Word::Operator(super::tree::Operator::Divide) {
            return Ok(None);
        }
        self.advance();
        let token = self.peek();
        let length = self.required_number()?;
        if length > most {
            return Err(self.error(token, format!("the prefix length {length} is above {most}")));
        }
        if qualifiers.kind != Kind::Net && (most == 32 || length < most) {
            return Err(self.error(token, "only \"net\" takes a prefix length"));
        }
        Ok(Some(length))
    }

    fn network(
        &mut self,
        qualifiers: Qualifiers,
        network: Network,
        token: Token<'_>,
    ) -> Result<(), FilterError> {
        let Qualifiers { protocol, direction, kind } = qualifiers;
        let kind = match kind {
            Kind::Default | Kind::Host | Kind::Net => kind.name(),
            Kind::Port | Kind::PortRange | Kind::Proto => {
                let sentence = format!("\"{}\" does not take an address", kind.name());
                return Err(self.error(token, sentence));
            }
        };
        let (allowed, stray): (&[_], _) = match network {
            Network::V4 { address, mask } => {
                (&[Protocol::Ip, Protocol::Arp, Protocol::Rarp], address & !mask != 0)
            }
            Network::V6 { address, mask } => (&[Protocol::Ip6], address & !mask != 0),
        };
        if stray {
            return Err(self.error(token, "the address has bits outside the mask"));
        }
        if let Some(protocol) = protocol
            && !allowed.contains(&protocol)
        {
            let name = protocol.name();
            let sentence = format!("\"{name} {kind}\" does not go with this kind of address");
            return Err(self.error(token, sentence));
        }
        self.push(Primitive::Host { protocol, direction, network }, token);
        Ok(())
    }

    fn transport(
        &self,
        qualifiers: Qualifiers,
        service: Option<Transport>,
        token: Token<'_>,
    ) -> Result<Option<Transport>, FilterError> {
        let asked = match qualifiers.protocol {
            None => return Ok(service),
            Some(Protocol::Tcp) => Transport::Tcp,
            Some(Protocol::Udp) => Transport::Udp,
            Some(Protocol::Sctp) => Transport::Sctp,
            Some(protocol) => {
                let (name, kind) = (protocol.name(), qualifiers.kind.name());
                return Err(self.error(token, format!("\"{name}\" has no \"{kind}\"")));
            }
        };
        if service.is_some_and(|service| service != asked) {
            let text = &self.text[token.start..token.end];
            let sentence = format!("the service \"{text}\" does not run over this protocol");
            return Err(self.error(token, sentence));
        }
        Ok(Some(asked))
    }

    fn protocol_number(
        &mut self,
        qualifiers: Qualifiers,
        number: u32,
        token: Token<'_>,
    ) -> Result<(), FilterError> {
        use Protocol as P;
        let layer = qualifiers.protocol;
        if !matches!(layer, None | Some(P::Ip | P::Ip6 | P::Link | P::Iso | P::Isis)) {
            let name = layer.map_or("", P::name);
            return Err(self.error(token, format!("\"{name} proto\" has no meaning")));
        }
        self.push(Primitive::ProtocolNumber { layer, number }, token);
        Ok(())
    }

    /// A name: of a service or a protocol. Hosts and networks have none here.
    fn name(
        &mut self,
        qualifiers: Qualifiers,
        name: &str,
        token: Token<'_>,
    ) -> Result<(), FilterError> {
        match qualifiers.kind {
            Kind::Default | Kind::Host | Kind::Net => {
                let sentence =
                    format!("\"{name}\" is a name, and names are not looked up: write an address");
                Err(self.error(token, sentence))
            }
            Kind::Port | Kind::PortRange => {
                let Some((first, last, service)) = self.services(qualifiers.kind, name) else {
                    return Err(self.error(token, format!("unknown port \"{name}\"")));
                };
                let transport = self.transport(qualifiers, service, token)?;
                let direction = qualifiers.direction;
                self.push(Primitive::Ports { transport, direction, first, last }, token);
                Ok(())
            }
            Kind::Proto => {
                let table = match qualifiers.protocol {
                    Some(Protocol::Link) => names::ETHER_PROTOCOLS,
                    Some(Protocol::Iso) => names::ISO_PROTOCOLS,
                    _ => names::IP_PROTOCOLS,
                };
                match look_up(table, name) {
                    Some(number) => self.protocol_number(qualifiers, number, token),
                    None => Err(self.error(token, format!("unknown protocol \"{name}\""))),
                }
            }
        }
    }

    /// The ports that a name stands for, and the transport where there is only one.
    fn services(&self, kind: Kind, name: &str) -> Option<(u16, u16, Option<Transport>)> {
        if kind == Kind::Port {
            let (port, transport) = service(name)?;
            return Some((port, port, transport));
        }
        let (first, last) = name.split_once('-')?;
        let ((first, one), (last, other)) = (service(first)?, service(last)?);
        let transport = if one == other { one } else { None };
        Some((first.min(last), first.max(last), transport))
    }
}

fn service(name: &str) -> Option<(u16, Option<Transport>)> {
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some((name.parse().ok()?, None));
    }
    let entry = names::SERVICES.iter().find(|entry| entry.0 == name)?;
    Some((entry.1, entry.2))
}

/// A mask of 128 bits whose first `length` bits are set.
const fn leading_ones(length: u32) -> u128 {
    match u128::MAX.checked_shl(128 - length) {
        Some(mask) => mask,
        None => 0,
    }
}
