//! What a pseudonym costs: of an address, of a name, of a packet.

mod builder;

use std::sync::Arc;

use builder::Builder;
use divan::{Bencher, black_box};
use netsniff_packet::anonymize::frame::{PacketAnonymizer, PayloadMode};
use netsniff_packet::anonymize::{AddressCache, Anonymizer, Keep, Key, Method};
use netsniff_packet::wire::ethernet::ethertype;
use netsniff_packet::wire::ipv4::protocol;
use netsniff_packet::{Address, LinkType};

fn main() {
    divan::main();
}

fn anonymizer() -> Anonymizer {
    let key = Key::new(core::array::from_fn(|at| at as u8));
    Anonymizer::new(Method::CryptoPan, &key, &Keep::default())
}

/// An address that is mapped for the first time.
#[divan::bench]
fn ipv4(bencher: Bencher<'_, '_>) {
    let anonymizer = anonymizer();
    bencher.bench(|| anonymizer.address(black_box(Address::from_v4([192, 0, 2, 1]))));
}

#[divan::bench]
fn ipv6(bencher: Bencher<'_, '_>) {
    let anonymizer = anonymizer();
    let address = Address::from_v6([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    bencher.bench(|| anonymizer.address(black_box(address)));
}

/// An address that was met before.
#[divan::bench]
fn remembered(bencher: Bencher<'_, '_>) {
    let mut cache = AddressCache::new(Arc::new(anonymizer()));
    bencher.bench_local(|| cache.address(black_box(Address::from_v4([192, 0, 2, 1]))));
}

#[divan::bench]
fn host_name(bencher: Bencher<'_, '_>) {
    let (anonymizer, mut out) = (anonymizer(), Vec::new());
    bencher.bench_local(|| {
        out.clear();
        anonymizer.name(black_box(b"www.example.com"), &mut out);
    });
}

/// A TCP segment of 1,000 bytes of payload between known hosts.
#[divan::bench(args = [PayloadMode::Keep, PayloadMode::Cut, PayloadMode::Hash])]
fn packet(bencher: Bencher<'_, '_>, payload: PayloadMode) {
    let mut anonymizer = PacketAnonymizer::new(Arc::new(anonymizer()), payload);
    let frame = Builder::ethernet(ethertype::IPV4).ipv4(protocol::TCP, 1020).tcp(&[]).payload(1000);
    let (mut data, wire_len) = (frame.clone(), frame.len() as u32);
    bencher.bench_local(|| {
        // Else addresses would be mapped again and again.
        data.copy_from_slice(&frame);
        anonymizer.packet(LinkType::ETHERNET, black_box(&mut data), wire_len)
    });
}
