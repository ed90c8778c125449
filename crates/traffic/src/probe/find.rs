//! Finds the stamp of a frame that was received.

use netsniff_packet::decode::{self, Transport};
use netsniff_packet::{LinkType, Packet};

use super::ETHERTYPE;
use crate::stamp::Stamp;

/// Where the type of an Ethernet frame lies.
const TYPE_AT: usize = 12;

/// The stamp of a frame, if it has one: UDP or TCP to this port, over either version of IP, with tags or without, or
/// [`ETHERTYPE`]. Other traffic to the same port with payload enough is taken for stamped, too.
#[must_use]
pub fn find(packet: &Packet<'_>, port: u16) -> Option<Stamp> {
    if let Some(payload) = raw(packet) {
        return Stamp::parse(payload);
    }
    let decoded = decode::packet(packet.link_type, packet.data, packet.wire_len);
    let at = match decoded.transport {
        Transport::Udp(udp) if udp.destination_port == port => udp.payload_offset,
        Transport::Tcp(tcp) if tcp.destination_port == port => tcp.payload_offset,
        _ => return None,
    };
    Stamp::parse(packet.data.get(at as usize..)?)
}

/// What follows the Ethernet header and its tags, where it is ours.
fn raw<'p>(packet: &Packet<'p>) -> Option<&'p [u8]> {
    if packet.link_type != LinkType::ETHERNET {
        return None;
    }
    let mut rest = packet.data.get(TYPE_AT..)?;
    loop {
        let (ethertype, behind) = rest.split_first_chunk::<2>()?;
        match u16::from_be_bytes(*ethertype) {
            ETHERTYPE => return Some(behind),
            // 802.1Q and 802.1ad: two bytes of tag.
            0x8100 | 0x88a8 => rest = behind.get(2..)?,
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use netsniff_packet::Timestamp;

    use super::*;
    use crate::probe::{PORT, Probes, Settings, Shape};

    fn look(data: &[u8], port: u16) -> Option<Stamp> {
        let wire_len = data.len() as u32;
        let link_type = LinkType::ETHERNET;
        find(&Packet { timestamp: Timestamp::EPOCH, data, wire_len, link_type, interface: 0 }, port)
    }

    #[test]
    fn stamps_are_found_behind_tags_and_only_at_their_port() {
        let stamp = Stamp { run: 1, stream: 2, sequence: 3, sent: 4 };
        for shape in [Shape::Raw, Shape::Udp4, Shape::Tcp6] {
            let probes = Probes::new(&Settings::new(shape), &[128]).unwrap();
            let mut frame = vec![0; 124];
            probes.write(&mut None, &mut frame, &stamp).unwrap();
            assert_eq!(look(&frame, PORT), Some(stamp));
            assert_eq!(look(&frame, 53).is_some(), shape == Shape::Raw);
            let tagged = [&frame[..12], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6], &frame[12..]].concat();
            assert_eq!(look(&tagged, PORT), Some(stamp), "{shape:?}");
            for len in 0..shape.stamp_at() + 18 {
                assert_eq!(look(&frame[..len], PORT), None, "{len}");
            }
        }
    }
}
