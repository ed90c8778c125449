//! Which address is local.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr};
use core::str::FromStr;

use netsniff_packet::Address;

/// IPv4 blocks that are not routed globally: address and prefix length. RFC 6890 and the registry
/// that it began, with the multicast addresses that stay within a site (RFC 5771, RFC 2365).
const LOCAL_V4: &[([u8; 4], u32)] = &[
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 24),
    ([239, 0, 0, 0], 8),
    ([240, 0, 0, 0], 4),
];

/// The word of a list that leaves out what is local to everybody.
const ONLY: &str = "only";

/// The networks whose hosts are local, as Zeek's `Site::local_nets`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalNets {
    /// Whether addresses that are not routed globally are local.
    has_private: bool,
    /// First bits of other addresses that are, and how many there are. IPv4 addresses are those that IPv6 maps.
    nets: Vec<(u128, u32)>,
}

impl Default for LocalNets {
    /// Addresses that are not routed globally.
    fn default() -> Self {
        Self { has_private: true, nets: Vec::new() }
    }
}

/// A word of a list that names no network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoNetwork(String);

impl fmt::Display for NoNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no network: write an address and the length of its prefix, as 192.0.2.0/24 or 2001:db8::/32",
            self.0
        )
    }
}

impl core::error::Error for NoNetwork {}

impl FromStr for LocalNets {
    type Err = NoNetwork;

    /// Networks with commas between, beside those that are not routed globally; without these if one of the words is `only`.
    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let mut local = Self::default();
        for word in text.split(',').map(str::trim) {
            if word == ONLY {
                local.has_private = false;
            } else {
                local.nets.push(network(word).ok_or_else(|| NoNetwork(word.to_owned()))?);
            }
        }
        Ok(local)
    }
}

/// An address with the length of its prefix; without one the address alone.
fn network(word: &str) -> Option<(u128, u32)> {
    let (address, len) = word.split_once('/').map_or((word, None), |(net, len)| (net, Some(len)));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let len = len.map_or(Some(most), |len| len.parse().ok().filter(|len| *len <= most))?;
    Some((bits(address), 128 - most + len))
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

impl LocalNets {
    /// Whether the host with an address is local.
    #[must_use]
    pub fn has(&self, address: Address) -> bool {
        (self.has_private && is_local(address)) || self.is_named(address)
    }

    fn is_named(&self, address: Address) -> bool {
        if self.nets.is_empty() {
            return false;
        }
        let address = bits(address.to_ip());
        // A shift by all bits leaves none that could differ.
        let is_in =
            |&(net, len): &(u128, u32)| (address ^ net).checked_shr(128 - len).unwrap_or(0) == 0;
        self.nets.iter().any(is_in)
    }
}

/// Whether an address is not routed globally, as Zeek's `Site::private_address_space` has it:
/// the IPv4 blocks, the same as 6to4 addresses (RFC 3056), and those of IPv6.
fn is_local(address: Address) -> bool {
    match address.to_ip() {
        IpAddr::V4(v4) => is_local_v4(v4),
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            v6.is_unspecified()
                || v6.is_loopback()
                || (a == 0x2002
                    && is_local_v4(Ipv4Addr::from_bits(u32::from(b) << 16 | u32::from(c))))
                || (a == 0x64 && b == 0xff9b && c == 1)
                || (a == 0x100 && b == 0 && c == 0 && d == 0)
                || (a == 0x2001 && b < 0x200)
                || (a == 0x2001 && b == 0xdb8)
                || a & 0xfe00 == 0xfc00
                || a & 0xffc0 == 0xfe80
        }
    }
}

fn is_local_v4(address: Ipv4Addr) -> bool {
    LOCAL_V4
        .iter()
        .any(|&(network, len)| (address.to_bits() ^ u32::from_be_bytes(network)) >> (32 - len) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_ones_own_are_local() {
        let has = |list: &str, text: &str| {
            let address: IpAddr = text.parse().unwrap();
            list.parse::<LocalNets>().unwrap().has(address.into())
        };
        let list = "8.8.8.0/24, 2001:4860::/32,9.9.9.9";
        for (text, local) in [
            ("8.8.8.255", true),
            ("8.8.9.0", false),
            ("10.1.2.3", true),
            ("9.9.9.9", true),
            ("9.9.9.8", false),
            ("2001:4860:1::1", true),
            ("2001:4861::1", false),
            // Only what IPv6 maps is the same as an IPv4 address.
            ("::8.8.8.8", false),
        ] {
            assert_eq!(has(list, text), local, "{text}");
        }
        assert!(!has("8.8.8.8/31,only", "10.1.2.3") && has("only,8.8.8.8/31", "8.8.8.9"));
        assert!(has("0.0.0.0/0", "1.1.1.1") && !has("0.0.0.0/0", "2001:4860::1"));
        assert!(has("::/0", "2001:4860::1") && has("::/0", "1.1.1.1"));
        for list in ["", "8.8.8.8/33", "8.8.8/24", "::/129", "10.0.0.0/8,,", "here", "10.0.0.0/-1"]
        {
            let error = list.parse::<LocalNets>().unwrap_err();
            assert!(error.to_string().contains("is no network"), "{list}");
        }
    }

    #[test]
    fn local_addresses() {
        for (text, local) in [
            ("10.1.2.3", true),
            ("172.32.0.1", false),
            ("192.0.2.1", true),
            ("192.0.1.1", false),
            ("224.0.0.251", true),
            ("224.0.1.1", false),
            ("2002:a01:203::1", true),
            ("2002:808:808::1", false),
            ("::", true),
            ("8.8.8.8", false),
            ("fe80::1", true),
            ("fd00::1", true),
            ("2001:db8::1", true),
            ("2001:4860::1", false),
            ("::1", true),
            ("ff02::1", false),
        ] {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(is_local(address.into()), local, "{text}");
        }
    }
}
