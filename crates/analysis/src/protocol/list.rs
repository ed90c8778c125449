//! THE list of protocols, and sets of them.

use core::fmt;
use core::num::NonZeroU8;
use std::borrow::Cow;
use std::sync::LazyLock;

use super::Protocol;

/// Every protocol. The first whose port a flow has is asked first, then the others in this order.
pub const PROTOCOLS: &[&dyn Protocol] = &[
    &super::ntp::Ntp,
    &super::dhcp::Dhcp,
    &super::dhcpv6::Dhcpv6,
    &super::http::Http,
    &super::websocket::WebSocket,
    &super::socks::Socks,
    &super::smtp::Smtp,
    &super::pop3::Pop3,
    &super::imap::Imap,
    &super::quic::Quic,
    &super::dtls::Dtls,
    &super::tls::Tls,
    &super::rdp::Rdp,
    &super::ssh::Ssh,
    &super::ftp::Ftp,
    &super::carried::FtpData,
    &super::irc::Irc,
    &super::carried::IrcDccData,
    &super::dns::Dns,
    &super::telnet::Telnet,
    &super::xmpp::Xmpp,
    &super::mysql::MySql,
    &super::syslog::Syslog,
    &super::snmp::Snmp,
];

/// A protocol's place in [`PROTOCOLS`], counted from 1, so that every flow may have one in a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolId(NonZeroU8);

impl ProtocolId {
    /// All of them, in the order of [`PROTOCOLS`].
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        (1..=PROTOCOLS.len()).filter_map(|at| NonZeroU8::new(u8::try_from(at).ok()?)).map(Self)
    }

    /// The protocol that has this identifier.
    #[must_use]
    #[inline]
    pub fn protocol(self) -> &'static dyn Protocol {
        PROTOCOLS[self.index()]
    }

    /// Its place in [`PROTOCOLS`].
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// The protocol of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|id| id.protocol().name() == name)
    }
}

/// Ports in ascending order, each of which is of one protocol.
type Ports = Vec<(u16, ProtocolId)>;

/// The UDP ports of all protocols.
static UDP_PORTS: LazyLock<Ports> = LazyLock::new(|| ports(|protocol| protocol.udp_ports()));

/// The TCP ports of all protocols.
static TCP_PORTS: LazyLock<Ports> = LazyLock::new(|| ports(|protocol| protocol.tcp_ports()));

fn ports(of: impl Fn(&dyn Protocol) -> &'static [u16]) -> Ports {
    let of_each = |id: ProtocolId| of(id.protocol()).iter().map(move |&port| (port, id));
    let mut ports: Vec<_> = ProtocolId::all().flat_map(of_each).collect();
    ports.sort_unstable_by_key(|&(port, _)| port);
    ports
}

/// By first byte, the set of the protocols whose datagrams may begin with it.
static DATAGRAM_HEADS: LazyLock<[u64; 256]> = LazyLock::new(|| {
    let mut heads = [0; 256];
    for id in ProtocolId::all() {
        for byte in id.protocol().datagram_heads().iter().cloned().flatten() {
            heads[usize::from(byte)] |= ProtocolSet::NONE.with(id).0;
        }
    }
    heads
});

/// Some of the protocols.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ProtocolSet(u64);

const _: () = assert!(PROTOCOLS.len() <= 64, "a set has a bit for each protocol");

impl ProtocolSet {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// The set of all protocols.
    pub const ALL: Self = Self(u64::MAX >> (u64::BITS as usize - PROTOCOLS.len()));

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set with one more.
    #[must_use]
    pub const fn with(self, id: ProtocolId) -> Self {
        Self(self.0 | 1 << id.index())
    }

    /// The set without one.
    #[must_use]
    pub const fn without(self, id: ProtocolId) -> Self {
        Self(self.0 & !(1 << id.index()))
    }

    /// Whether it has a protocol.
    #[must_use]
    #[inline]
    pub const fn has(self, id: ProtocolId) -> bool {
        self.0 >> id.index() & 1 == 1
    }

    /// Its protocols, in the order of [`PROTOCOLS`].
    pub fn iter(self) -> impl Iterator<Item = ProtocolId> + Clone {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let place = u8::try_from(left.trailing_zeros()).ok().filter(|_| left != 0)?;
            left &= left - 1;
            NonZeroU8::new(place + 1).map(ProtocolId)
        })
    }

    /// The protocol whose servers use this UDP port.
    #[must_use]
    pub fn of_udp_port(self, port: u16) -> Option<ProtocolId> {
        self.of_port(&UDP_PORTS, port)
    }

    /// The protocol whose servers use this TCP port.
    #[must_use]
    pub fn of_tcp_port(self, port: u16) -> Option<ProtocolId> {
        self.of_port(&TCP_PORTS, port)
    }

    fn of_port(self, ports: &Ports, port: u16) -> Option<ProtocolId> {
        let at = ports.binary_search_by_key(&port, |&(port, _)| port).ok()?;
        ports.get(at).map(|&(_, id)| id).filter(|&id| self.has(id))
    }

    /// The protocol that a datagram without a known port is of, by its content.
    #[must_use]
    pub fn of_datagram(self, payload: &[u8]) -> Option<ProtocolId> {
        let candidates = Self(DATAGRAM_HEADS[usize::from(*payload.first()?)] & self.0);
        if candidates.is_empty() {
            return None;
        }
        candidates.iter().find(|id| id.protocol().detect_datagram(payload))
    }
}

impl Default for ProtocolSet {
    fn default() -> Self {
        Self::ALL
    }
}

impl fmt::Debug for ProtocolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|id| id.protocol().name())).finish()
    }
}

/// The protocols that a conversation was found to speak, in the order in which that was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Services([Option<ProtocolId>; Self::MAX]);

impl Services {
    /// More in one conversation tell nothing new.
    const MAX: usize = 4;

    /// Adds a protocol to the set.
    pub fn add(&mut self, id: ProtocolId) {
        if !self.0.contains(&Some(id))
            && let Some(slot) = self.0.iter_mut().find(|slot| slot.is_none())
        {
            *slot = Some(id);
        }
    }

    /// Takes one back, since its content contradicts.
    pub fn remove(&mut self, id: ProtocolId) {
        if let Some(at) = self.0.iter().position(|&slot| slot == Some(id)) {
            self.0[at..].rotate_left(1);
            self.0[Self::MAX - 1] = None;
        }
    }

    /// Takes over what changed in those of a part of the conversation.
    pub(super) fn follow(&mut self, before: Self, after: Self) {
        if before != after {
            let is_gone = |id: &ProtocolId| !after.0.contains(&Some(*id));
            before.iter().filter(is_gone).for_each(|id| self.remove(id));
            after.iter().for_each(|id| self.add(id));
        }
    }

    /// The protocols of the set, in the order of the list.
    pub fn iter(self) -> impl Iterator<Item = ProtocolId> {
        self.0.into_iter().flatten()
    }

    /// Their names with commas between, as Zeek's `service` has them; `None` for none.
    #[must_use]
    pub fn names(&self) -> Option<Cow<'static, str>> {
        let mut names = self.iter().map(|id| id.protocol().name());
        let mut all = Cow::Borrowed(names.next()?);
        for name in names {
            let all = all.to_mut();
            all.push(',');
            all.push_str(name);
        }
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_distinct() {
        for (at, protocol) in PROTOCOLS.iter().enumerate() {
            for other in &PROTOCOLS[..at] {
                let udp = protocol.udp_ports().iter().find(|p| other.udp_ports().contains(p));
                assert_eq!(udp, None, "{} and {}", protocol.name(), other.name());
                let tcp = protocol.tcp_ports().iter().find(|p| other.tcp_ports().contains(p));
                assert_eq!(tcp, None, "{} and {}", protocol.name(), other.name());
            }
        }
    }

    #[test]
    fn every_port_tells_its_protocol() {
        for id in ProtocolId::all() {
            for &port in id.protocol().udp_ports() {
                assert_eq!(ProtocolSet::ALL.of_udp_port(port), Some(id), "{port}");
                assert_eq!(ProtocolSet::ALL.without(id).of_udp_port(port), None, "{port}");
            }
            for &port in id.protocol().tcp_ports() {
                assert_eq!(ProtocolSet::ALL.of_tcp_port(port), Some(id), "{port}");
                assert_eq!(ProtocolSet::ALL.without(id).of_tcp_port(port), None, "{port}");
            }
        }
        assert_eq!(ProtocolSet::ALL.of_udp_port(0), None);
        assert_eq!(ProtocolSet::ALL.of_tcp_port(0), None);
    }

    #[test]
    fn every_protocol_is_found_by_its_name() {
        for id in ProtocolId::all() {
            assert_eq!(ProtocolId::named(id.protocol().name()), Some(id));
            assert!(ProtocolSet::NONE.with(id).iter().eq([id]));
        }
    }
}
