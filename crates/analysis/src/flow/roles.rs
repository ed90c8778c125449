//! Which side is likely the server, by ports and by what is said.

use netsniff_packet::Address;
use netsniff_packet::decode::{TcpFlags, Transport};

use crate::key::Endpoint;
use crate::key::{TCP, UDP};
use crate::protocol::{self, Role};
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
}
