//! Ranges of addresses that stay what they are, wholly or in their first bits.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

/// Addresses that have leading bits in common: `192.0.2.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    len: u8,
}

/// The addresses that stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Whether loopback, multicast, link-local and other special ranges stay.
    pub special: bool,
    /// Further ranges whose addresses stay.
    pub ranges: Vec<Cidr>,
}

impl Default for Keep {
    fn default() -> Self {
        Self { special: true, ranges: Vec::new() }
    }
}

/// A range of one IP version, its bits at the upper end.
#[derive(Clone, Copy, Debug)]
struct Range {
    prefix: u128,
    len: u32,
    /// Leading bits that stay of an address inside; never less than `len`.
    kept: u32,
}

/// The ranges of one IP version.
#[derive(Clone, Debug)]
pub(super) struct Ranges(Vec<Range>);

/// IPv4 ranges that say what an address is for, not whose it is (RFC 6890, RFC 5771), with the bits
/// that stay inside. Groups of 233/8 and 234/8 have the number of a network in them (RFC 3180, RFC
/// 6034), and the hosts of 169.254/16 are somebody's.
const SPECIAL_V4: &[(Ipv4Addr, u32, u32)] = &[
    (Ipv4Addr::UNSPECIFIED, 32, 32),
    (Ipv4Addr::new(127, 0, 0, 0), 8, 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16, 16),
    (Ipv4Addr::new(224, 0, 0, 0), 4, 32),
    (Ipv4Addr::new(233, 0, 0, 0), 8, 8),
    (Ipv4Addr::new(234, 0, 0, 0), 8, 8),
    (Ipv4Addr::BROADCAST, 32, 32),
];

/// The same for IPv6 (RFC 4291, RFC 7346). The prefix of Teredo stays, since packets are known by it.
/// Link-local addresses, solicited-node groups and groups that are not assigned for good have a MAC
/// address, a host's bits or a network in them.
const SPECIAL_V6: &[(Ipv6Addr, u32, u32)] = &[
    (Ipv6Addr::UNSPECIFIED, 128, 128),
    (Ipv6Addr::LOCALHOST, 128, 128),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, 32),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, 10),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 64, 64),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, 16),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 12, 128),
    (SOLICITED_NODE, 104, 104),
];

/// The prefix of the groups by which a host is asked for its MAC address (RFC 4291, 2.7.1).
pub(super) const SOLICITED_NODE: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 0);

/// IPv4-mapped addresses (RFC 4291, 2.5.5.2). An [`Address`](crate::Address) of them is one of IPv4, so whatever is kept, no other
/// address may come to lie among them.
const V4_MAPPED: Range = Range { prefix: 0xffff << 32, len: 96, kept: 96 };

impl Ranges {
    pub(super) fn v4(keep: &Keep) -> Self {
        let special = SPECIAL_V4.iter().filter(|_| keep.special).map(|&(address, len, kept)| {
            Range { prefix: u128::from(address.to_bits()) << 96, len, kept }
        });
        let chosen = keep.ranges.iter().filter_map(|range| match range.address {
            IpAddr::V4(address) => Some(Range {
                prefix: u128::from(address.to_bits()) << 96,
                len: range.len.into(),
                kept: 32,
            }),
            IpAddr::V6(_) => None,
        });
        Self(special.chain(chosen).collect())
    }

    pub(super) fn v6(keep: &Keep) -> Self {
        let special = SPECIAL_V6
            .iter()
            .filter(|_| keep.special)
            .map(|&(address, len, kept)| Range { prefix: address.to_bits(), len, kept });
        let chosen = keep.ranges.iter().filter_map(|range| match range.address {
            IpAddr::V6(address) => {
                Some(Range { prefix: address.to_bits(), len: range.len.into(), kept: 128 })
            }
            IpAddr::V4(_) => None,
        });
        Self(special.chain(chosen).chain([V4_MAPPED]).collect())
    }

    /// Whether an address lies in one of them.
    pub(super) fn contain(&self, address: u128) -> bool {
        self.0.iter().any(|range| (address ^ range.prefix).leading_zeros() >= range.len)
    }

    /// How many leading bits of an address stay, so that what is inside a range stays there, and
    /// nothing else comes to lie in it: an address outside keeps its bits up to and with the first in
    /// which it differs from the range. So the mapping stays one to one, and common prefixes stay
    /// common.
    pub(super) fn kept_bits(&self, address: u128) -> u32 {
        let common = |range: &Range| (address ^ range.prefix).leading_zeros();
        let inside = self.0.iter().filter(|range| common(range) >= range.len);
        // The smallest range rules; of equal ones the one of which more stays.
        let inside =
            inside.max_by_key(|range| (range.len, range.kept)).map_or(0, |range| range.kept);
        let outside = self.0.iter().filter(|range| common(range) < range.len);
        outside.map(|range| common(range) + 1).fold(inside, u32::max)
    }
}

impl Cidr {
    /// The range of the addresses that have the first `len` bits of `address`; `None` where an
    /// address has less bits.
    #[must_use]
    pub const fn new(address: IpAddr, len: u8) -> Option<Self> {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        if len > bits { None } else { Some(Self { address, len }) }
    }

    /// Whether an address lies in it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let common = match (self.address, address) {
            (IpAddr::V4(range), IpAddr::V4(address)) => {
                (range.to_bits() ^ address.to_bits()).leading_zeros()
            }
            (IpAddr::V6(range), IpAddr::V6(address)) => {
                (range.to_bits() ^ address.to_bits()).leading_zeros()
            }
            _ => return false,
        };
        common >= u32::from(self.len)
    }
}

/// A text that is no range of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoCidr(String);

impl fmt::Display for NoCidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no range of addresses such as 192.0.2.0/24 or 2001:db8::/32", self.0)
    }
}

impl core::error::Error for NoCidr {}

impl FromStr for Cidr {
    type Err = NoCidr;

    /// An address alone is a range of one.
    fn from_str(text: &str) -> Result<Self, NoCidr> {
        let parsed = match text.split_once('/') {
            Some((address, len)) => address.parse().ok().zip(len.parse().ok()),
            None => text
                .parse()
                .ok()
                .map(|address: IpAddr| (address, if address.is_ipv4() { 32 } else { 128 })),
        };
        let range = parsed.and_then(|(address, len)| Self::new(address, len));
        range.ok_or_else(|| NoCidr(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_what_is_none_is_told() {
        let range = |text: &str| text.parse::<Cidr>();
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(range("192.0.2.0/24").unwrap().contains(ip("192.0.2.255")));
        assert!(!range("192.0.2.0/24").unwrap().contains(ip("192.0.3.0")));
        assert!(range("192.0.2.7").unwrap().contains(ip("192.0.2.7")));
        assert!(range("0.0.0.0/0").unwrap().contains(ip("192.0.2.7")));
        assert!(!range("::/0").unwrap().contains(ip("192.0.2.7")));
        for text in ["", "192.0.2.0/33", "192.0.2/24", "host", "::/129", "192.0.2.0/24/1"] {
            assert!(range(text).unwrap_err().to_string().contains("is no range"), "{text}");
        }
    }

    #[test]
    fn bits_stay_up_to_the_first_that_differs() {
        let keep = Keep { special: false, ranges: vec!["10.1.0.0/16".parse().unwrap()] };
        let kept = |text: &str| {
            let address: Ipv4Addr = text.parse().unwrap();
            Ranges::v4(&keep).kept_bits(u128::from(address.to_bits()) << 96)
        };
        assert_eq!(kept("10.1.2.3"), 32);
        assert_eq!(kept("10.0.2.3"), 16);
        assert_eq!(kept("10.128.0.0"), 9);
        assert_eq!(kept("192.0.2.1"), 1);
        let none = Keep { special: false, ranges: Vec::new() };
        assert_eq!(Ranges::v4(&none).kept_bits(0), 0);
    }
}
