//! Packets for the benchmarks, put together from their headers.

#![allow(dead_code, reason = "no benchmark needs every header")]

use netsniff_packet::wire::ethernet::EthernetHeader;
use netsniff_packet::wire::ipv4::Ipv4Header;
use netsniff_packet::wire::ipv6::Ipv6Header;
use netsniff_packet::wire::tcp::TcpHeader;
use netsniff_packet::wire::udp::UdpHeader;
use netsniff_packet::wire::vlan::VlanTag;

/// Puts one header after another.
pub(crate) struct Builder(pub(crate) Vec<u8>);

impl Builder {
    /// Nothing yet: what comes first is IP.
    pub(crate) const fn raw() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn ethernet(kind: u16) -> Self {
        let header = EthernetHeader { destination: [2; 6], source: [4; 6], ethertype: kind };
        Self::raw().add(|buffer| header.emit(buffer))
    }

    pub(crate) fn add(mut self, emit: impl FnOnce(&mut [u8]) -> Option<usize>) -> Self {
        let start = self.0.len();
        self.0.resize(start + 128, 0);
        let len = emit(&mut self.0[start..]).expect("the header fits");
        self.0.truncate(start + len);
        self
    }

    pub(crate) fn vlan(self, id: u16, kind: u16) -> Self {
        let tag = VlanTag { priority: 0, drop_eligible: false, id, ethertype: kind };
        self.add(|buffer| tag.emit(buffer))
    }

    pub(crate) fn ipv4(self, number: u8, payload_len: usize) -> Self {
        let header = Ipv4Header {
            traffic_class: 0,
            total_len: (20 + payload_len) as u16,
            identification: 1,
            reserved_flag: false,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 64,
            protocol: number,
            checksum: 0,
            source: [192, 0, 2, 1],
            destination: [192, 0, 2, 2],
            options: &[],
        };
        self.add(|buffer| header.emit(buffer))
    }

    pub(crate) fn ipv6(self, number: u8, payload_len: usize) -> Self {
        let header = Ipv6Header {
            traffic_class: 0,
            flow_label: 1,
            payload_len: payload_len as u16,
            next_header: number,
            hop_limit: 64,
            source: [0x20; 16],
            destination: [0x21; 16],
        };
        self.add(|buffer| header.emit(buffer))
    }

    pub(crate) fn tcp(self, options: &[u8]) -> Self {
        let header = TcpHeader {
            source_port: 40000,
            destination_port: 443,
            sequence: 1,
            acknowledgement: 2,
            flags: 0x10,
            window: 1000,
            checksum: 0,
            urgent_pointer: 0,
            options,
        };
        self.add(|buffer| header.emit(buffer))
    }

    pub(crate) fn udp(self, port: u16, payload_len: usize) -> Self {
        let datagram_len = (8 + payload_len) as u16;
        let header =
            UdpHeader { source_port: 40000, destination_port: port, datagram_len, checksum: 0 };
        self.add(|buffer| header.emit(buffer))
    }

    /// The packet with a payload of `len` bytes.
    pub(crate) fn payload(self, len: usize) -> Vec<u8> {
        let mut bytes = self.0;
        bytes.resize(bytes.len() + len, 0x55);
        bytes
    }
}
