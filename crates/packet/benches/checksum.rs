//! Bytes per second of the Internet checksum, over bytes that stay in the cache.
//!
//! Run with `cargo bench -p netsniff-packet --bench checksum`.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use netsniff_packet::decode::{self, Decoded};
use netsniff_packet::wire::ipv4::{Ipv4Header, protocol};
use netsniff_packet::wire::tcp::TcpHeader;
use netsniff_packet::{LinkType, checksum};

fn main() {
    divan::main();
}

/// The sum alone.
#[divan::bench(args = [40, 576, 1500])]
fn sum(bencher: Bencher<'_, '_>, len: usize) {
    let data = vec![0x5a; len];
    bencher.counter(BytesCount::new(len)).bench(|| black_box(checksum::compute(black_box(&data))));
}

/// Judging a TCP segment in an IPv4 packet of `len` bytes, as is done for each packet.
#[divan::bench(args = [40, 576, 1500])]
fn segment(bencher: Bencher<'_, '_>, len: usize) {
    let (packet, decoded) = packet(len);
    bencher
        .counter(BytesCount::new(len))
        .bench(|| black_box(checksum::transport(black_box(&decoded), black_box(&packet))));
}

fn packet(len: usize) -> (Vec<u8>, Decoded) {
    let ip = Ipv4Header {
        traffic_class: 0,
        total_len: len as u16,
        identification: 1,
        reserved_flag: false,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
        ttl: 64,
        protocol: protocol::TCP,
        checksum: 0,
        source: [192, 0, 2, 1],
        destination: [192, 0, 2, 2],
        options: &[],
    };
    let tcp = TcpHeader {
        source_port: 40000,
        destination_port: 443,
        sequence: 1,
        acknowledgement: 2,
        flags: 0x10,
        window: 1000,
        checksum: 0,
        urgent_pointer: 0,
        options: &[],
    };
    let mut packet = vec![0x55; len];
    ip.emit(&mut packet).expect("an IP header fits");
    tcp.emit(&mut packet[20..]).expect("a TCP header fits");
    let decoded = decode::packet(LinkType::RAW, &packet, len as u32);
    (packet, decoded)
}
