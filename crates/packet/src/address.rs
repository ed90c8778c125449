//! IP addresses of both versions in one 16-byte shape that compares and hashes fast.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IPv4 address, mapped to `::ffff:a.b.c.d` (RFC 4291, 2.5.5.2), or an IPv6 address.
///
/// Ordered by its bytes as they stand in a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    high: u64,
    low: u64,
}

/// The upper half of the low word of an IPv4-mapped address.
const MAPPED: u64 = 0x0000_ffff_0000_0000;

impl Address {
    /// From the four bytes of an IPv4 header.
    #[must_use]
    #[inline]
    pub const fn from_v4(bytes: [u8; 4]) -> Self {
        Self { high: 0, low: MAPPED | u32::from_be_bytes(bytes) as u64 }
    }

    /// From the sixteen bytes of an IPv6 header.
    #[must_use]
    #[inline]
    pub const fn from_v6(bytes: [u8; 16]) -> Self {
        let value = u128::from_be_bytes(bytes);
        Self { high: (value >> 64) as u64, low: value as u64 }
    }

    /// Whether this is an IPv4 address.
    #[must_use]
    #[inline]
    pub const fn is_v4(self) -> bool {
        self.high == 0 && self.low & !0xffff_ffff == MAPPED
    }

    /// The two halves, most significant first, for hashing.
    #[must_use]
    #[inline]
    pub const fn words(self) -> [u64; 2] {
        [self.high, self.low]
    }

    /// The address as the standard library has it.
    #[must_use]
    pub const fn to_ip(self) -> IpAddr {
        if self.is_v4() {
            IpAddr::V4(Ipv4Addr::from_bits(self.low as u32))
        } else {
            IpAddr::V6(Ipv6Addr::from_bits(((self.high as u128) << 64) | self.low as u128))
        }
    }
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => Self::from_v4(v4.octets()),
            IpAddr::V6(v6) => Self::from_v6(v6.octets()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_ip().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_round_trip() {
        for text in ["0.0.0.0", "192.0.2.255", "::", "2001:db8::1", "fe80::ffff:1.2.3.4"] {
            let ip: IpAddr = text.parse().unwrap();
            assert_eq!(Address::from(ip).to_ip(), ip);
            assert_eq!(Address::from(ip).is_v4(), ip.is_ipv4());
        }
    }
}
