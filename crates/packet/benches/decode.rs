//! Time per packet of the decoder, over packets that stay in the cache.
//!
//! Run with `cargo bench -p netsniff-packet`. Each iteration decodes [`PACKETS`] packets; the
//! throughput line gives packets per second.

mod builder;

use builder::Builder;
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use netsniff_packet::LinkType;
use netsniff_packet::decode::{self, Decoded, TunnelPorts, tunnel};
use netsniff_packet::wire::ethernet::ethertype;
use netsniff_packet::wire::ipv4::protocol;
use netsniff_packet::wire::vxlan::VxlanHeader;

const PACKETS: usize = 256;
const PAYLOAD: usize = 64;

fn main() {
    divan::main();
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
    run(
        bencher,
        Builder::ethernet(ethertype::IPV4).ipv4(protocol::TCP, 84).tcp(&[]).payload(PAYLOAD),
    );
}

#[divan::bench]
fn ipv4_tcp_timestamps(bencher: Bencher<'_, '_>) {
    run(
        bencher,
        Builder::ethernet(ethertype::IPV4).ipv4(protocol::TCP, 96).tcp(TIMESTAMPS).payload(PAYLOAD),
    );
}

#[divan::bench]
fn ipv4_tcp_syn(bencher: Bencher<'_, '_>) {
    run(
        bencher,
        Builder::ethernet(ethertype::IPV4).ipv4(protocol::TCP, 104).tcp(SYN).payload(PAYLOAD),
    );
}

#[divan::bench]
fn ipv4_udp(bencher: Bencher<'_, '_>) {
    run(
        bencher,
        Builder::ethernet(ethertype::IPV4)
            .ipv4(protocol::UDP, 72)
            .udp(443, PAYLOAD)
            .payload(PAYLOAD),
    );
}

#[divan::bench]
fn vlan_ipv4_tcp(bencher: Bencher<'_, '_>) {
    let frame = Builder::ethernet(ethertype::VLAN).vlan(7, ethertype::IPV4);
    run(bencher, frame.ipv4(protocol::TCP, 84).tcp(&[]).payload(PAYLOAD));
}

#[divan::bench]
fn ipv6_tcp(bencher: Bencher<'_, '_>) {
    run(
        bencher,
        Builder::ethernet(ethertype::IPV6).ipv6(protocol::TCP, 84).tcp(&[]).payload(PAYLOAD),
    );
}

#[divan::bench]
fn ipv6_udp(bencher: Bencher<'_, '_>) {
    run(
        bencher,
        Builder::ethernet(ethertype::IPV6)
            .ipv6(protocol::UDP, 72)
            .udp(443, PAYLOAD)
            .payload(PAYLOAD),
    );
}

/// Outer and inner packet of VXLAN.
#[divan::bench]
fn vxlan(bencher: Bencher<'_, '_>) {
    let inner =
        Builder::ethernet(ethertype::IPV4).ipv4(protocol::TCP, 84).tcp(&[]).payload(PAYLOAD);
    let mut packet = Builder::ethernet(ethertype::IPV4)
        .ipv4(protocol::UDP, 16 + inner.len())
        .udp(4789, 8 + inner.len())
        .add(|buffer| VxlanHeader { vni: 9 }.emit(buffer))
        .0;
    packet.extend(inner);
    let packets = vec![packet; PACKETS];
    bencher.counter(ItemsCount::new(PACKETS)).bench(|| {
        for packet in &packets {
            let data = black_box(packet.as_slice());
            let outer = decode::packet(LinkType::ETHERNET, data, data.len() as u32);
            let tunnel = tunnel::find(&outer, data, TunnelPorts::KNOWN)
                .expect("a tunnel")
                .expect("a whole one");
            black_box(&tunnel.decode(data));
        }
    });
}

/// Whether an ordinary datagram is a tunnel.
#[divan::bench]
fn no_tunnel(bencher: Bencher<'_, '_>) {
    let packet = Builder::ethernet(ethertype::IPV4)
        .ipv4(protocol::UDP, 72)
        .udp(443, PAYLOAD)
        .payload(PAYLOAD);
    let decoded = decode::packet(LinkType::ETHERNET, &packet, packet.len() as u32);
    bencher.counter(ItemsCount::new(PACKETS)).bench(|| {
        for _ in 0..PACKETS {
            black_box(tunnel::find(black_box(&decoded), black_box(&packet), TunnelPorts::KNOWN));
        }
    });
}
