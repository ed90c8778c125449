//! ARP: which hardware addresses IP addresses have, for whoever looks through records.

use core::fmt::Write as _;

use netsniff_packet::decode::{Decoded, Layer};
use netsniff_packet::wire::arp::ArpView;
use netsniff_packet::wire::ethernet::ethertype;
use netsniff_packet::{Address, LinkType, Packet, Timestamp};

use crate::key::uid::Uid;
use crate::notice::binding::Binding;
use crate::record::{Observer, Phase, SortKey};

/// Length of an Ethernet header, and of a VLAN tag in it.
const ETHERNET: usize = 14;
const TAG: usize = 4;

/// The ARP of a frame that has nothing before it but VLAN tags.
fn body<'a>(packet: &Packet<'a>) -> Option<&'a [u8]> {
    if packet.link_type != LinkType::ETHERNET {
        return None;
    }
    let mut at = ETHERNET;
    loop {
        let kind = packet.data.get(at - 2..at)?;
        match u16::from_be_bytes([kind[0], kind[1]]) {
            ethertype::ARP => return packet.data.get(at..),
            ethertype::VLAN | ethertype::SERVICE_VLAN => at += TAG,
            _ => return None,
        }
    }
}

/// Hardware address and IP address of whoever sent an ARP for IPv4 over Ethernet. Who only asks whether an address is
/// free has none (RFC 5227, 2.1.1).
fn sender(body: &[u8]) -> Option<([u8; 6], [u8; 4])> {
    let arp = ArpView::parse(body)?;
    let [hardware, protocol, ..] = arp.addresses()?;
    let is_ordinary = arp.hardware() == 1
        && arp.protocol() == ethertype::IPV4
        && matches!(arp.operation(), 1 | 2);
    let address: [u8; 4] = protocol.try_into().ok()?;
    let is_told = is_ordinary && address != [0; 4];
    is_told.then_some((hardware.try_into().ok()?, address))
}

/// Tells whoever watches what an ARP on an interface says, with the engine time and the number of its packet.
#[cold]
pub(super) fn tell<O: Observer>(
    packet: &Packet<'_>,
    interface: u32,
    decoded: &Decoded,
    (time, ordinal): (Timestamp, u64),
    observer: &mut O,
) {
    if !decoded.layers.contains(Layer::Arp) {
        return;
    }
    let Some((hardware, address)) = body(packet).and_then(sender) else { return };
    let mut mac = String::with_capacity(17);
    for (at, byte) in hardware.iter().enumerate() {
        let separator = if at == 0 { "" } else { ":" };
        // To write into a string cannot fail.
        let _ = write!(mac, "{separator}{byte:02x}");
    }
    let binding = Binding {
        ts: time,
        interface,
        vlan: decoded.vlan,
        address: Address::from_v4(address),
        mac: &mac,
    };
    let key = SortKey { time, phase: Phase::Packet, ordinal, uid: Uid::NONE, number: 0 };
    observer.unwritten(&key, &binding);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame with ARP, whose sender has this address, behind so many VLAN tags.
    fn frame(tags: usize, operation: u8, address: [u8; 4]) -> Vec<u8> {
        let mut frame = vec![0xff; 12];
        (0..tags).for_each(|_| frame.extend_from_slice(&[0x81, 0, 0, 7]));
        frame.extend_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, operation, 2, 0, 0, 0, 0, 9]);
        frame.extend_from_slice(&address);
        frame.extend_from_slice(&[0; 10]);
        frame
    }

    fn told(data: &[u8]) -> Option<([u8; 6], [u8; 4])> {
        let (wire_len, link_type) = (data.len() as u32, LinkType::ETHERNET);
        let timestamp = Timestamp::MIN;
        body(&Packet { timestamp, wire_len, data, link_type, interface: 0 }).and_then(sender)
    }

    #[test]
    fn the_sender_of_an_arp_is_told_behind_tags_and_never_of_a_probe() {
        let expected = Some(([2, 0, 0, 0, 0, 9], [192, 0, 2, 1]));
        for tags in 0..3 {
            assert_eq!(told(&frame(tags, 1, [192, 0, 2, 1])), expected);
            assert_eq!(told(&frame(tags, 2, [192, 0, 2, 1])), expected);
        }
        assert_eq!(told(&frame(0, 1, [0; 4])), None, "a probe");
        assert_eq!(told(&frame(0, 3, [192, 0, 2, 1])), None, "not ARP, but RARP");
        let whole = frame(1, 1, [192, 0, 2, 1]);
        for len in 0..whole.len() {
            assert_eq!(told(&whole[..len]), None, "{len} bytes");
        }
    }
}
