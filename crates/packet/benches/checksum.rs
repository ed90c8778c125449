//! Bytes per second of the Internet checksum, over bytes that stay in the cache.
//!
//! Run with `cargo bench -p netsniff-packet --bench checksum`.

mod builder;

use builder::Builder;
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use netsniff_packet::decode::{self, Decoded};
use netsniff_packet::wire::ipv4::protocol;
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
    let packet = Builder::raw().ipv4(protocol::TCP, len - 20).tcp(&[]).payload(len - 40);
    let decoded = decode::packet(LinkType::RAW, &packet, len as u32);
    (packet, decoded)
}
