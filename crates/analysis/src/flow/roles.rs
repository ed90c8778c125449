//! Guesses from numbers: which port is a server's, which address is local.

use core::net::IpAddr;

use netsniff_packet::Address;
use netsniff_packet::decode::{TcpFlags, Transport};

use super::key::{Endpoint, TCP, UDP};
use crate::unit::Unit;

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

/// Whether an address is not routed globally: RFC 6890 and the registries that it began, which is
/// what Zeek's `Site::private_address_space` lists.
#[must_use]
pub const fn is_local(address: Address) -> bool {
    match address.to_ip() {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            matches!(
                (a, b, c),
                (0 | 10 | 127 | 240..=255, _, _)
                    | (100, 64..=127, _)
                    | (169, 254, _)
                    | (172, 16..=31, _)
                    | (192, 168, _)
                    | (192, 0, 0 | 2)
                    | (198, 18 | 19, _)
                    | (198, 51, 100)
                    | (203, 0, 113)
            )
        }
        IpAddr::V6(v6) => {
            let segments = v6.segments();
            let [a, b, c, d, ..] = segments;
            v6.is_loopback()
                || (a == 0x64 && b == 0xff9b && c == 1)
                || (a == 0x100 && b == 0 && c == 0 && d == 0)
                || (a == 0x2001 && b == 2 && c == 0)
                || (a == 0x2001 && b == 0xdb8)
                || a & 0xfe00 == 0xfc00
                || a & 0xffc0 == 0xfe80
        }
    }
}

/// Whether the first packet likely comes from the server, by the ports: the begin was missed.
pub(crate) fn begins_at_server(unit: &Unit, source: Endpoint, destination: Endpoint) -> bool {
    let likely = |port| is_likely_server(unit.ip.protocol, port);
    let flip = match &unit.transport {
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
    flip && !is_broadcast(destination.address)
}

fn is_broadcast(address: Address) -> bool {
    address == Address::from_v4([255; 4])
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
