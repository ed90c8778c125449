//! Guesses from numbers: which port is a server's, which address is local.

use core::net::{IpAddr, Ipv4Addr};

use netsniff_packet::Address;
use netsniff_packet::decode::{TcpFlags, Transport};

use super::key::{TCP, UDP};
use crate::protocol::{self, Role};
use crate::record::Endpoint;
use crate::unit::DecodedDatagram;

/// TCP ports that Zeek's default scripts take for servers' (`likely_server_ports`).
const TCP_SERVERS: &[u16] = &[
    21, 22, 25, 53, 79, 80, 81, 88, 110, 135, 139, 143, 389, 443, 445, 502, 563, 585, 587, 614,
    631, 636, 989, 990, 992, 993, 995, 1080, 1434, 1883, 2811, 3128, 3268, 3306, 3389, 5222, 5223,
    5269, 5432, 6379, 6666, 6667, 6668, 6669, 8000, 8080, 8888, 20000,
];

/// UDP ports that Zeek's default scripts take for servers'.
const UDP_SERVERS: &[u16] = &[
    53, 67, 88, 123, 137, 161, 162, 389, 443, 514, 1812, 2123, 2152, 3389, 3544, 4789, 5060, 5072,
    5353, 5355, 6081, 20000,
];

/// One bit for each port.
const fn ports(list: &[u16]) -> [u64; 1024] {
    let mut bits = [0; 1024];
    let mut i = 0;
    while i < list.len() {
        bits[list[i] as usize / 64] |= 1 << (list[i] % 64);
        i += 1;
    }
    bits
}

static TCP_BITS: [u64; 1024] = ports(TCP_SERVERS);
static UDP_BITS: [u64; 1024] = ports(UDP_SERVERS);

/// Whether a port is likely a server's.
#[must_use]
pub fn is_likely_server(protocol: u8, port: u16) -> bool {
    let bits = match protocol {
        TCP => &TCP_BITS,
        UDP => &UDP_BITS,
        _ => return false,
    };
    bits[usize::from(port) / 64] & (1 << (port % 64)) != 0
}

/// Whether people type at the other end: FTP, SSH, telnet and rlogin
/// (`Conn::port_inactivity_timeouts`).
#[must_use]
pub const fn is_interactive(port: u16) -> bool {
    matches!(port, 21 | 22 | 23 | 513)
}

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
pub fn is_local(address: Address) -> bool {
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

/// Whether the first packet comes from the server, by what it says: the begin of a message of HTTP, which
/// is read in the midst of a connection, on any port. `None` where it does not tell.
pub(crate) fn speaks_as_server(unit: &DecodedDatagram, bytes: &[u8]) -> Option<bool> {
    let Transport::Tcp(tcp) = &unit.decoded.transport else { return None };
    if tcp.payload_len == 0 || tcp.flags.any(TcpFlags::SYN.with(TcpFlags::RST)) {
        return None;
    }
    protocol::speaker(unit.payload(bytes)).map(|role| role == Role::Responder)
}

/// Whether the first packet likely comes from the server, by the ports: the begin was missed.
pub(crate) fn begins_at_server(
    unit: &DecodedDatagram,
    source: Endpoint,
    destination: Endpoint,
) -> bool {
    let likely = |port| unit.ip().is_some_and(|ip| is_likely_server(ip.protocol, port));
    let flip = match &unit.decoded.transport {
        Transport::Tcp(tcp) => {
            let syn = tcp.flags.any(TcpFlags::SYN);
            let begins = syn && !tcp.flags.any(TcpFlags::ACK);
            // A SYN-ACK between two likely ports may be a scan.
            !begins
                && likely(source.port)
                && (!likely(destination.port) || (!syn && source.port < destination.port))
        }
        Transport::Udp(_) => likely(source.port) && !likely(destination.port),
        _ => false,
    };
    flip && destination.address != Address::from_v4([255; 4])
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
    fn ports_are_looked_up_per_protocol() {
        assert!(is_likely_server(TCP, 80) && !is_likely_server(UDP, 80));
        assert!(is_likely_server(UDP, 67) && !is_likely_server(UDP, 68));
        assert!(!is_likely_server(1, 80));
        assert!(is_likely_server(TCP, 20000) && !is_likely_server(TCP, 65535));
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
