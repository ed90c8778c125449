//! Whole Ethernet frames of TCP and UDP between two hosts, with right lengths and checksums.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netsniff_packet::wire::ethernet::EthernetHeader;
use netsniff_packet::wire::ipv4::{Ipv4Header, protocol};
use netsniff_packet::wire::ipv6::Ipv6Header;
use netsniff_packet::wire::tcp::TcpHeader;
use netsniff_packet::wire::udp::UdpHeader;
use netsniff_packet::{Address, checksum};

/// One end of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// IP address.
    pub address: IpAddr,
    /// TCP or UDP port.
    pub port: u16,
    /// Time to live or hop limit of its packets as the tap sees them.
    pub ttl: u8,
}

impl Host {
    /// A host with a locally administered Ethernet address made from its IP address, and a time to live of 64.
    #[must_use]
    pub const fn new(address: IpAddr, port: u16) -> Self {
        let last = match address {
            IpAddr::V4(v4) => v4.octets(),
            IpAddr::V6(v6) => *v6.octets().last_chunk().expect("16 bytes have a last 4"),
        };
        Self { mac: [2, 0, last[0], last[1], last[2], last[3]], address, port, ttl: 64 }
    }
}

/// A frame with a TCP segment. Ports and checksum of `header` are set here; `identification` is for IPv4.
///
/// `None` where the segment does not fit an IP packet, the options are no multiple of 4 up to 40 bytes, or one host
/// has IPv4 and the other IPv6.
#[must_use]
pub fn tcp_frame(
    from: &Host,
    to: &Host,
    identification: u16,
    header: &TcpHeader<'_>,
    payload: &[u8],
) -> Option<Vec<u8>> {
    let header =
        TcpHeader { source_port: from.port, destination_port: to.port, checksum: 0, ..*header };
    let mut segment = vec![0; header.header_len() + payload.len()];
    let at = header.emit(&mut segment)?;
    segment[at..].copy_from_slice(payload);
    ip_frame(from, to, identification, protocol::TCP, 16, segment)
}

/// A frame with a UDP datagram; `None` as for [`tcp_frame`].
#[must_use]
pub fn udp_frame(from: &Host, to: &Host, identification: u16, payload: &[u8]) -> Option<Vec<u8>> {
    let datagram_len = u16::try_from(UdpHeader::LEN + payload.len()).ok()?;
    let header =
        UdpHeader { source_port: from.port, destination_port: to.port, datagram_len, checksum: 0 };
    let mut datagram = vec![0; usize::from(datagram_len)];
    let at = header.emit(&mut datagram)?;
    datagram[at..].copy_from_slice(payload);
    ip_frame(from, to, identification, protocol::UDP, 6, datagram)
}

fn ip_frame(
    from: &Host,
    to: &Host,
    identification: u16,
    number: u8,
    checksum_at: usize,
    mut payload: Vec<u8>,
) -> Option<Vec<u8>> {
    let (source, destination) = (Address::from(from.address), Address::from(to.address));
    let sum = checksum::compute_with_pseudo_header(source, destination, number, &payload);
    payload.get_mut(checksum_at..checksum_at + 2)?.copy_from_slice(&sum.to_be_bytes());

    let mut headers = [0; EthernetHeader::LEN + Ipv6Header::LEN];
    let (ethernet, ip) = headers.split_at_mut(EthernetHeader::LEN);
    let (ethertype, ip_len) = match (from.address, to.address) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => (
            0x0800,
            ipv4(from.ttl, source, destination, identification, number, payload.len(), ip)?,
        ),
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            (0x86dd, ipv6(from.ttl, source, destination, number, payload.len(), ip)?)
        }
        _ => return None,
    };
    EthernetHeader { destination: to.mac, source: from.mac, ethertype }.emit(ethernet)?;
    let mut frame = headers[..EthernetHeader::LEN + ip_len].to_vec();
    frame.append(&mut payload);
    Some(frame)
}

fn ipv4(
    ttl: u8,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    identification: u16,
    number: u8,
    payload_len: usize,
    out: &mut [u8],
) -> Option<usize> {
    let header = Ipv4Header {
        traffic_class: 0,
        total_len: u16::try_from(Ipv4Header::MIN_LEN + payload_len).ok()?,
        identification,
        reserved_flag: false,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
        ttl,
        protocol: number,
        checksum: 0,
        source: source.octets(),
        destination: destination.octets(),
        options: &[],
    };
    let len = header.emit(out)?;
    let sum = checksum::compute(&out[..len]);
    out[10..12].copy_from_slice(&sum.to_be_bytes());
    Some(len)
}

fn ipv6(
    hop_limit: u8,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    next_header: u8,
    payload_len: usize,
    out: &mut [u8],
) -> Option<usize> {
    let header = Ipv6Header {
        traffic_class: 0,
        flow_label: 0,
        payload_len: u16::try_from(payload_len).ok()?,
        next_header,
        hop_limit,
        source: source.octets(),
        destination: destination.octets(),
    };
    header.emit(out)
}

#[cfg(test)]
mod tests {
    use netsniff_packet::checksum::ChecksumVerdict;
    use netsniff_packet::decode::{self, Transport};
    use netsniff_packet::{Decoded, LinkType};

    use super::*;

    fn decoded(frame: &[u8]) -> Decoded {
        let decoded = decode::packet(LinkType::ETHERNET, frame, frame.len() as u32);
        assert_eq!(checksum::transport(&decoded, frame), ChecksumVerdict::Good);
        assert!(decoded.stop.is_none(), "{:?}", decoded.stop);
        decoded
    }

    #[test]
    fn frames_decode_to_what_was_asked() {
        for (one, other) in [("192.0.2.1", "198.51.100.2"), ("2001:db8::1", "2001:db8::2")] {
            let from = Host::new(one.parse().unwrap(), 40_000);
            let to = Host::new(other.parse().unwrap(), 53);
            let frame = udp_frame(&from, &to, 7, b"question").unwrap();
            let Transport::Udp(udp) = decoded(&frame).transport else { panic!("no UDP") };
            assert_eq!((udp.source_port, udp.destination_port, udp.payload_len), (40_000, 53, 8));

            let header = TcpHeader {
                source_port: 0,
                destination_port: 0,
                sequence: 5,
                acknowledgement: 6,
                flags: 0x18,
                window: 100,
                checksum: 0,
                urgent_pointer: 0,
                options: &[1, 1, 1, 0],
            };
            let frame = tcp_frame(&to, &from, 8, &header, b"answer").unwrap();
            let decoded = decoded(&frame);
            assert_eq!(decoded.ip.unwrap().source.to_string(), other);
            let Transport::Tcp(tcp) = decoded.transport else { panic!("no TCP") };
            assert_eq!(
                (tcp.source_port, tcp.sequence, tcp.flags.0, tcp.payload_len),
                (53, 5, 0x18, 6)
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let v4 = Host::new("192.0.2.1".parse().unwrap(), 1);
        let v6 = Host::new("2001:db8::1".parse().unwrap(), 1);
        assert_eq!(udp_frame(&v4, &v6, 0, &[]), None);
        assert_eq!(udp_frame(&v4, &v4, 0, &[0; 65_535]), None);
    }
}
