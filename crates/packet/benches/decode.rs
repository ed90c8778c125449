//! Time per packet of the decoder, over packets that stay in the cache.
//!
//! Run with `cargo bench -p netsniff-packet`. Each iteration decodes [`PACKETS`] packets; the
//! throughput line gives packets per second.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use netsniff_packet::LinkType;
use netsniff_packet::decode::{self, Decoded, tunnel};
use netsniff_packet::wire::ethernet::{EthernetHeader, ethertype};
use netsniff_packet::wire::ipv4::{Ipv4Header, protocol};
use netsniff_packet::wire::ipv6::Ipv6Header;
use netsniff_packet::wire::tcp::TcpHeader;
use netsniff_packet::wire::udp::UdpHeader;
use netsniff_packet::wire::vlan::VlanTag;
use netsniff_packet::wire::vxlan::VxlanHeader;

const PACKETS: usize = 256;
const PAYLOAD: usize = 64;

fn main() {
    divan::main();
}

/// Puts one header after another.
struct Builder(Vec<u8>);

impl Builder {
    fn ethernet(kind: u16) -> Self {
        let header = EthernetHeader { destination: [2; 6], source: [4; 6], ethertype: kind };
        Self(Vec::new()).add(|buffer| header.emit(buffer))
    }

    fn add(mut self, emit: impl FnOnce(&mut [u8]) -> Option<usize>) -> Self {
        let start = self.0.len();
        self.0.resize(start + 128, 0);
        let len = emit(&mut self.0[start..]).expect("the header fits");
        self.0.truncate(start + len);
        self
    }

    fn vlan(self, id: u16, kind: u16) -> Self {
        let tag = VlanTag { priority: 0, drop_eligible: false, id, ethertype: kind };
        self.add(|buffer| tag.emit(buffer))
    }

    fn ipv4(self, number: u8, payload_len: usize) -> Self {
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

    fn ipv6(self, number: u8, payload_len: usize) -> Self {
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

    fn tcp(self, options: &[u8]) -> Vec<u8> {
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
        self.add(|buffer| header.emit(buffer)).payload()
    }

    fn udp_header(self, port: u16, payload_len: usize) -> Self {
        let datagram_len = (8 + payload_len) as u16;
        let header =
            UdpHeader { source_port: 40000, destination_port: port, datagram_len, checksum: 0 };
        self.add(|buffer| header.emit(buffer))
    }

    fn udp(self) -> Vec<u8> {
        self.udp_header(443, PAYLOAD).payload()
    }

    fn payload(self) -> Vec<u8> {
        let mut bytes = self.0;
        bytes.resize(bytes.len() + PAYLOAD, 0x55);
        bytes
    }
}

const TIMESTAMPS: &[u8] = &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
const SYN: &[u8] = &[2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];

fn run(bencher: Bencher<'_, '_>, packet: Vec<u8>) {
    let packets = vec![packet; PACKETS];
    let mut decoded = Decoded::default();
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        for packet in &packets {
            let data = black_box(packet.as_slice());
            decode::packet_into(LinkType::ETHERNET, data, data.len() as u32, &mut decoded);
            black_box(&decoded);
        }
    });
}

#[divan::bench]
fn ipv4_tcp(bencher: Bencher<'_, '_>) {
    run(bencher, Builder::ethernet(ethertype::IPV4).ipv4(protocol::TCP, 84).tcp(&[]));
}

#[divan::bench]
fn ipv4_tcp_timestamps(bencher: Bencher<'_, '_>) {
    run(bencher, Builder::ethernet(ethertype::IPV4).ipv4(protocol::TCP, 96).tcp(TIMESTAMPS));
}

#[divan::bench]
fn ipv4_tcp_syn(bencher: Bencher<'_, '_>) {
    run(bencher, Builder::ethernet(ethertype::IPV4).ipv4(protocol::TCP, 104).tcp(SYN));
}

#[divan::bench]
fn ipv4_udp(bencher: Bencher<'_, '_>) {
    run(bencher, Builder::ethernet(ethertype::IPV4).ipv4(protocol::UDP, 72).udp());
}

#[divan::bench]
fn vlan_ipv4_tcp(bencher: Bencher<'_, '_>) {
    let frame = Builder::ethernet(ethertype::VLAN).vlan(7, ethertype::IPV4);
    run(bencher, frame.ipv4(protocol::TCP, 84).tcp(&[]));
}

#[divan::bench]
fn ipv6_tcp(bencher: Bencher<'_, '_>) {
    run(bencher, Builder::ethernet(ethertype::IPV6).ipv6(protocol::TCP, 84).tcp(&[]));
}

#[divan::bench]
fn ipv6_udp(bencher: Bencher<'_, '_>) {
    run(bencher, Builder::ethernet(ethertype::IPV6).ipv6(protocol::UDP, 72).udp());
}

/// Outer and inner packet of VXLAN.
#[divan::bench]
fn vxlan(bencher: Bencher<'_, '_>) {
    let inner = Builder::ethernet(ethertype::IPV4).ipv4(protocol::TCP, 84).tcp(&[]);
    let mut packet = Builder::ethernet(ethertype::IPV4)
        .ipv4(protocol::UDP, 16 + inner.len())
        .udp_header(4789, 8 + inner.len())
        .add(|buffer| VxlanHeader { vni: 9 }.emit(buffer))
        .0;
    packet.extend(inner);
    let packets = vec![packet; PACKETS];
    bencher.counter(ItemsCount::new(PACKETS)).bench(|| {
        for packet in &packets {
            let data = black_box(packet.as_slice());
            let outer = decode::packet(LinkType::ETHERNET, data, data.len() as u32);
            let tunnel = tunnel::find(&outer, data).expect("a tunnel").expect("a whole one");
            black_box(&tunnel.decode(data));
        }
    });
}

/// Whether an ordinary datagram is a tunnel.
#[divan::bench]
fn no_tunnel(bencher: Bencher<'_, '_>) {
    let packet = Builder::ethernet(ethertype::IPV4).ipv4(protocol::UDP, 72).udp();
    let decoded = decode::packet(LinkType::ETHERNET, &packet, packet.len() as u32);
    bencher.counter(ItemsCount::new(PACKETS)).bench(|| {
        for _ in 0..PACKETS {
            black_box(tunnel::find(black_box(&decoded), black_box(&packet)));
        }
    });
}
