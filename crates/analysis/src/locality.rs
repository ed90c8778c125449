//! Which address is local.

use core::net::{IpAddr, Ipv4Addr};

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

/// Whether an address is not routed globally, as Zeek's `Site::private_address_space` has it:
/// the IPv4 blocks, the same as 6to4 addresses (RFC 3056), and those of IPv6.
#[must_use]
pub(crate) fn is_local(address: Address) -> bool {
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
