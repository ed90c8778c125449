//! Stamped frames that look like traffic: UDP between many pairs of addresses.

use core::net::{IpAddr, Ipv4Addr};

use netsniff_packet::wire::ethernet::EthernetHeader;
use netsniff_packet::wire::ipv4::Ipv4Header;
use netsniff_packet::wire::udp::UdpHeader;

use crate::frame::{Host, udp_frame};
use crate::stamp;

/// Bytes of the frame check sequence, which the size of a frame includes (RFC 2544) and no capture shows.
pub const FCS_LEN: usize = 4;

/// Where the stamp of a frame lies.
pub const STAMP_AT: usize = EthernetHeader::LEN + Ipv4Header::MIN_LEN + UdpHeader::LEN;

/// The least size of a frame that has room for its stamp, with frame check sequence.
pub const LEAST_SIZE: usize = STAMP_AT + stamp::LEN + FCS_LEN;

/// Ports that the flows of one pair of addresses differ by.
const PORTS_PER_PAIR: u32 = 4;

/// A frame of `size` bytes, frame check sequence included but not made, of the flow `flow`, without its
/// stamp. Flows differ in their addresses, and four of them in their ports alone. Its UDP checksum is 0,
/// which means none, so that stamps need not be summed.
///
/// `None` where the size is below [`LEAST_SIZE`] or above what IPv4 can say.
#[must_use]
pub fn frame(size: usize, flow: u32) -> Option<Vec<u8>> {
    if size < LEAST_SIZE {
        return None;
    }
    let pair = flow / PORTS_PER_PAIR;
    let [_, a, b, c] = pair.to_be_bytes();
    let address = |net, a| IpAddr::V4(Ipv4Addr::new(net, a, b, c));
    let port = 1024 + (flow % PORTS_PER_PAIR) as u16;
    let (mut from, mut to) =
        (Host::new(address(10, a), port), Host::new(address(11, a.wrapping_add(128)), 12_345));
    // As on a mirror port, the frame is for nobody who is there.
    (from.mac, to.mac) = ([2, 0, 0, 0, 0, 0x0a], [2, 0, 0, 0, 0, 0x99]);
    let seed = flow.to_be_bytes()[3];
    let payload: Vec<u8> =
        (0..size - FCS_LEN - STAMP_AT).map(|at| (at as u8).wrapping_mul(7) ^ seed).collect();
    let mut frame = udp_frame(&from, &to, 0, &payload)?;
    let checksum = STAMP_AT - 2;
    frame[checksum..checksum + 2].fill(0);
    Some(frame)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use netsniff_packet::LinkType;
    use netsniff_packet::decode::{self, Transport};

    use super::*;
    use crate::stamp::Stamp;

    #[test]
    fn sizes_are_those_of_rfc_2544() {
        for size in [64, 65, 512, 1518] {
            assert_eq!(frame(size, 0).unwrap().len(), size - 4);
        }
        assert_eq!((LEAST_SIZE, frame(63, 0)), (64, None));
    }

    #[test]
    fn flows_differ_and_decode() {
        let mut seen = HashSet::new();
        for flow in (0..300).chain([1 << 20, 1 << 25]) {
            let mut bytes = frame(64, flow).unwrap();
            let stamp = Stamp { run: 1, stream: 2, sequence: 3, sent: 4 };
            assert!(stamp.emit(&mut bytes[STAMP_AT..]));
            let decoded = decode::packet(LinkType::ETHERNET, &bytes, 60);
            assert!(decoded.stop.is_none() && decoded.oddities.is_empty());
            let (ip, Transport::Udp(udp)) = (decoded.ip.unwrap(), decoded.transport) else {
                panic!("no UDP")
            };
            assert!(seen.insert((ip.source, ip.destination, udp.source_port)));
            assert_eq!(Stamp::parse(&bytes[STAMP_AT..]), Some(stamp));
        }
    }
}
