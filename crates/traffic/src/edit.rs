//! Changes that every frame of a replay gets: Ethernet addresses, VLAN tags, networks, ports.

use core::net::IpAddr;

use crate::rewrite::{AddressMap, rewrite_addresses};

/// Bytes of a VLAN tag (IEEE 802.1Q).
const TAG: usize = 4;

/// Where the type of a frame lies, and a tag before it.
const TYPE_AT: usize = 12;

/// What becomes of VLAN tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vlan {
    /// The outermost tag has this identifier; a frame without any gets one.
    Set(u16),
    /// Every tag is taken away.
    Strip,
}

/// A network, whose addresses become those of another one, host by host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkMap {
    from: IpAddr,
    to: IpAddr,
    /// Bits of the network.
    len: u32,
}

impl NetworkMap {
    /// Maps the network that `from` lies in to the one that `to` lies in, both of `len` bits. `None` where they are of
    /// different versions or have fewer bits.
    #[must_use]
    pub fn new(from: IpAddr, to: IpAddr, len: u32) -> Option<Self> {
        let bits = if from.is_ipv4() { 32 } else { 128 };
        (from.is_ipv4() == to.is_ipv4() && len <= bits).then_some(Self { from, to, len })
    }

    fn map(&self, address: IpAddr) -> Option<IpAddr> {
        match (self.from, self.to, address) {
            (IpAddr::V4(from), IpAddr::V4(to), IpAddr::V4(address)) => {
                let hosts = u32::MAX.checked_shr(self.len).unwrap_or(0);
                let [from, to, address] = [from, to, address].map(u32::from);
                let is_inside = from & !hosts == address & !hosts;
                is_inside.then(|| IpAddr::V4((to & !hosts | address & hosts).into()))
            }
            (IpAddr::V6(from), IpAddr::V6(to), IpAddr::V6(address)) => {
                let hosts = u128::MAX.checked_shr(self.len).unwrap_or(0);
                let [from, to, address] = [from, to, address].map(u128::from);
                let is_inside = from & !hosts == address & !hosts;
                is_inside.then(|| IpAddr::V6((to & !hosts | address & hosts).into()))
            }
            _ => None,
        }
    }
}

/// All changes. Checksums are made right by them, also where they were wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// The sender's Ethernet address.
    pub source: Option<[u8; 6]>,
    /// The receiver's Ethernet address.
    pub destination: Option<[u8; 6]>,
    /// What becomes of VLAN tags.
    pub vlan: Option<Vlan>,
    /// Networks; the first that an address lies in counts.
    pub networks: Vec<NetworkMap>,
    /// Ports of TCP and UDP, on either side, and what they become; the first counts.
    pub ports: Vec<(u16, u16)>,
}

impl Edit {
    /// How many tags begin at the type of a frame.
    fn tags(frame: &[u8]) -> usize {
        let tags = frame.get(TYPE_AT..).unwrap_or_default().chunks_exact(TAG);
        tags.take_while(|tag| matches!(tag[..2], [0x81, 0] | [0x88, 0xa8] | [0x91, 0])).count()
    }

    /// Whether a frame that begins so has a tag of 802.1Q afterwards, for which interfaces take four bytes more, and how
    /// long it is then, if it had `len` bytes.
    #[must_use]
    pub fn shape(&self, frame: &[u8], len: usize) -> (bool, usize) {
        let tags = Self::tags(frame);
        let is_tagged = frame.get(TYPE_AT..TYPE_AT + 2) == Some(&[0x81, 0]);
        match self.vlan {
            None => (is_tagged, len),
            Some(Vlan::Set(_)) if tags == 0 => (true, len + TAG),
            Some(Vlan::Set(_)) => (is_tagged, len),
            Some(Vlan::Strip) => (false, len.saturating_sub(tags * TAG)),
        }
    }

    /// Changes the frame in the first `len` bytes of the room, and returns its new length, which the room must have.
    #[must_use]
    pub fn apply(&mut self, room: &mut [u8], len: usize) -> usize {
        let len = self.tag(room, len);
        let Some(frame) = room.get_mut(..len) else { return len };
        for (at, address) in [(0, self.destination), (6, self.source)] {
            if let (Some(place), Some(address)) = (frame.get_mut(at..at + 6), address) {
                place.copy_from_slice(&address);
            }
        }
        if !self.networks.is_empty() || !self.ports.is_empty() {
            rewrite_addresses(frame, self);
        }
        len
    }

    fn tag(&self, room: &mut [u8], len: usize) -> usize {
        let Some(frame) = room.get(..len).filter(|frame| frame.len() >= TYPE_AT + 2) else {
            return len;
        };
        let tags = Self::tags(frame);
        match self.vlan {
            Some(Vlan::Set(id)) => {
                if tags == 0 {
                    if room.len() < len + TAG {
                        return len;
                    }
                    room.copy_within(TYPE_AT..len, TYPE_AT + TAG);
                    room[TYPE_AT..TYPE_AT + TAG].copy_from_slice(&[0x81, 0, 0, 0]);
                }
                // The priority stays.
                let [high, low] = id.to_be_bytes();
                room[TYPE_AT + 2] = room[TYPE_AT + 2] & 0xf0 | high & 0x0f;
                room[TYPE_AT + 3] = low;
                if tags == 0 { len + TAG } else { len }
            }
            Some(Vlan::Strip) => {
                room.copy_within(TYPE_AT + tags * TAG..len, TYPE_AT);
                len - tags * TAG
            }
            None => len,
        }
    }

    fn network(&self, address: IpAddr) -> Option<IpAddr> {
        self.networks.iter().find_map(|network| network.map(address))
    }
}

impl AddressMap for Edit {
    fn map_v4(&mut self, address: [u8; 4]) -> [u8; 4] {
        match self.network(IpAddr::from(address)) {
            Some(IpAddr::V4(mapped)) => mapped.octets(),
            _ => address,
        }
    }

    fn map_v6(&mut self, address: [u8; 16]) -> [u8; 16] {
        match self.network(IpAddr::from(address)) {
            Some(IpAddr::V6(mapped)) => mapped.octets(),
            _ => address,
        }
    }

    fn map_port(&mut self, port: u16) -> u16 {
        self.ports.iter().find(|(from, _)| *from == port).map_or(port, |(_, to)| *to)
    }
}

#[cfg(test)]
mod tests {
    use netsniff_packet::LinkType;
    use netsniff_packet::checksum::{ChecksumVerdict, transport};
    use netsniff_packet::decode::{self, Transport};

    use super::*;
    use crate::frame::{Host, udp_frame};

    fn frame() -> Vec<u8> {
        let host = |address: &str, port| Host::new(address.parse().unwrap(), port);
        udp_frame(&host("10.1.2.3", 5000), &host("192.0.2.9", 53), 7, b"question").unwrap()
    }

    fn applied(edit: &mut Edit, frame: &[u8]) -> Vec<u8> {
        let mut room = [frame, &[0; 4]].concat();
        let (is_tagged, shape) = edit.shape(frame, frame.len());
        let len = edit.apply(&mut room, frame.len());
        room.truncate(len);
        assert_eq!((is_tagged, shape), (Edit::tags(&room) > 0, len));
        room
    }

    #[test]
    fn networks_and_ports_change_with_right_checksums() {
        let network = |from: &str, to: &str, len| {
            NetworkMap::new(from.parse().unwrap(), to.parse().unwrap(), len)
        };
        let networks = [network("10.1.0.0", "172.20.9.9", 16), network("192.0.2.9", "1.2.3.4", 32)];
        let networks = networks.map(Option::unwrap).to_vec();
        let mut edit = Edit { networks, ports: vec![(53, 5353)], ..Edit::default() };
        let changed = applied(&mut edit, &frame());
        let decoded = decode::packet(LinkType::ETHERNET, &changed, changed.len() as u32);
        let ip = decoded.ip.as_ref().unwrap();
        let ends = (ip.source.to_string(), ip.destination.to_string());
        assert_eq!(ends, ("172.20.2.3".to_owned(), "1.2.3.4".to_owned()));
        let Transport::Udp(udp) = &decoded.transport else { panic!("no UDP") };
        assert_eq!((udp.source_port, udp.destination_port), (5000, 5353));
        assert_eq!(transport(&decoded, &changed), ChecksumVerdict::Good);
        assert!(decoded.oddities.is_empty(), "{:?}", decoded.oddities);
        assert!(network("10.0.0.0", "::1", 8).is_none() && network("::", "::", 129).is_none());
        let half = network("8000::", "::", 1).unwrap();
        assert_eq!(half.map("fe80::1".parse().unwrap()), Some("7e80::1".parse().unwrap()));
        let none = network("10.1.0.0", "10.9.0.0", 16).unwrap();
        assert_eq!(none.map("10.2.0.1".parse().unwrap()), None);
    }

    #[test]
    fn tags_come_go_and_change() {
        let plain = frame();
        let mut set = Edit { vlan: Some(Vlan::Set(0x123)), ..Edit::default() };
        let tagged = applied(&mut set, &plain);
        assert_eq!(tagged, [&plain[..12], &[0x81, 0, 1, 0x23], &plain[12..]].concat());
        let mut again = Edit { vlan: Some(Vlan::Set(0xfff)), ..Edit::default() };
        let urgent = [&plain[..12], &[0x81, 0, 0xe1, 0x23], &plain[12..]].concat();
        let expected = [&plain[..12], &[0x81, 0, 0xef, 0xff], &plain[12..]].concat();
        assert_eq!(applied(&mut again, &urgent), expected, "the priority stays");
        let twice = [&plain[..12], &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2], &plain[12..]].concat();
        let mut strip = Edit { vlan: Some(Vlan::Strip), ..Edit::default() };
        assert_eq!(applied(&mut strip, &twice), plain);
        assert_eq!(applied(&mut strip, &plain), plain);
    }

    #[test]
    fn ethernet_addresses_change_and_short_frames_do_no_harm() {
        let mut edit = Edit { source: Some([1; 6]), destination: Some([2; 6]), ..Edit::default() };
        let changed = applied(&mut edit, &frame());
        assert_eq!(changed[..12], [2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1]);
        assert_eq!(changed[12..], frame()[12..]);
        for vlan in [Vlan::Set(5), Vlan::Strip] {
            let mut edit = Edit { vlan: Some(vlan), ports: vec![(1, 2)], ..edit.clone() };
            for len in 0..=frame().len() {
                let mut room = frame();
                let _ = edit.apply(&mut room[..len], len);
            }
        }
    }
}
