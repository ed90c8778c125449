//! What is damaged is said, with its place, and what lies before and behind it is read.

use netsniff_pcapfile::{Compression, Damage, DamageKind};

use crate::bytes::{Bytes, classic, every_block, gzip, lz4, payload, read_whole, zstd as packed};

/// A section with an interface and three packets, and the places where the packets begin.
fn three_packets() -> (Vec<u8>, [usize; 3]) {
    let mut file = Bytes::new(false).section().interface(1, |body| body);
    let mut places = [0; 3];
    for (index, place) in places.iter_mut().enumerate() {
        *place = file.bytes.len();
        file = file.packet(0, index as u64, &payload(40 + index));
    }
    (file.bytes, places)
}

fn lengths(file: &[u8]) -> Vec<usize> {
    read_whole(file).packets.iter().map(|packet| packet.data.len()).collect()
}

#[test]
fn a_garbage_block_costs_itself() {
    let (mut file, places) = three_packets();
    file[places[1]..places[2]].fill(0x55);
    assert_eq!(lengths(&file), [40, 42]);
    let kind = DamageKind::BlockLength { block_type: 0x5555_5555, length: 0x5555_5555 };
    let (offset, skipped) = (places[1] as u64, (places[2] - places[1]) as u64);
    assert_eq!(read_whole(&file).damage, [Damage { packet: 2, offset, skipped, kind }]);
}

#[test]
fn garbage_of_any_size_is_passed_over() {
    let (file, places) = three_packets();
    for size in [1, 3, 17, 5000, 100_000] {
        let garbage: Vec<u8> = (0..size).map(|at| (at % 251) as u8 | 0x80).collect();
        let broken = [&file[..places[1]], &garbage, &file[places[1]..]].concat();
        assert_eq!(lengths(&broken), [40, 41, 42], "{size} bytes");
        let damage = &read_whole(&broken).damage;
        assert_eq!((damage.len(), damage[0].skipped), (1, size));
    }
}

#[test]
fn a_search_believes_a_block_only_by_both_its_lengths() {
    let (file, places) = three_packets();
    let mut decoy = Bytes::new(false).raw(&[0x55; 8]).packet(0, 9, &payload(8)).bytes;
    let end = decoy.len();
    decoy[end - 4..].fill(0x55);
    let broken = [&file[..places[1]], &decoy, &file[places[1]..]].concat();
    assert_eq!(lengths(&broken), [40, 41, 42]);
    let damage = &read_whole(&broken).damage;
    assert_eq!((damage.len(), damage[0].skipped), (1, end as u64));
}

#[test]
fn a_length_beyond_the_file_costs_its_block_alone() {
    let (mut file, places) = three_packets();
    file[places[1] + 6] = 1;
    assert_eq!(lengths(&file), [40, 42]);
    assert!(matches!(read_whole(&file).damage[0].kind, DamageKind::BlockLength { .. }));
}

#[test]
fn a_wrong_trailing_length_is_said_and_the_block_used() {
    let (mut file, places) = three_packets();
    for place in [places[2], file.len()] {
        file[place - 4] ^= 0xff;
    }
    let whole = read_whole(&file);
    assert_eq!(lengths(&file), [40, 41, 42]);
    assert_eq!(whole.damage.len(), 2);
    let place = whole.damage[1].offset as usize;
    assert_eq!((place, whole.damage[1].packet, whole.damage[1].skipped), (places[2], 3, 0));
    assert!(matches!(whole.damage[0].kind, DamageKind::TrailingLength { leading: 76, .. }));
}

#[test]
fn a_packet_longer_than_its_block_is_left_out() {
    let (mut file, places) = three_packets();
    file[places[0] + 20] = 41;
    assert_eq!(lengths(&file), [41, 42]);
    let damage = &read_whole(&file).damage[0];
    assert_eq!(damage.kind, DamageKind::PacketLength { captured: 41, limit: 40 });
    assert_eq!(damage.skipped, 72);
}

#[test]
fn an_unknown_interface_is_said() {
    let (mut file, places) = three_packets();
    file[places[1] + 8] = 9;
    assert_eq!(lengths(&file), [40, 42]);
    assert_eq!(read_whole(&file).damage[0].kind, DamageKind::UnknownInterface { interface: 9 });
}

#[test]
fn more_captured_than_on_the_wire_is_used_and_said() {
    let (mut file, places) = three_packets();
    file[places[0] + 24] = 10;
    let whole = read_whole(&file);
    assert_eq!((whole.packets[0].data.len(), whole.packets[0].wire_len), (40, 40));
    let kind = DamageKind::CapturedExceedsWire { captured: 40, wire: 10 };
    assert_eq!(whole.damage[0].kind, kind);
}

#[test]
fn broken_packing_keeps_what_came_before() {
    // Bytes that do not pack, so that the packed file has more than one block.
    let mut random = crate::bytes::Random(1);
    let noise: Vec<u8> = (0..1_200_000).map(|_| random.next() as u8).collect();
    let mut file = Bytes::new(false).section().interface(1, |body| body);
    for packet in noise.chunks(60_000) {
        file = file.packet(0, 0, packet);
    }
    let kinds = [
        (gzip(&file.bytes), Compression::Gzip),
        (packed(&file.bytes), Compression::Zstd),
        (lz4(&file.bytes), Compression::Lz4),
    ];
    for (file, expected) in kinds {
        let whole = read_whole(&file[..file.len() * 3 / 4]);
        assert!((12..=15).contains(&whole.packets.len()), "{expected}: {}", whole.packets.len());
        let read = whole.packets.iter().flat_map(|packet| &packet.data);
        assert!(read.zip(&noise).all(|(read, written)| read == written));
        assert_eq!(whole.damage.len(), 1);
        let DamageKind::Unpack { compression, .. } = whole.damage[0].kind else {
            panic!("{:?}", whole.damage);
        };
        assert_eq!(compression, expected);
        assert_eq!(whole.damage[0].packet, whole.packets.len() as u64 + 1);
    }
}

#[test]
fn an_lz4_file_that_ends_between_blocks_is_damaged() {
    let whole = lz4(&every_block());
    // Without the four bytes of its end mark.
    let damage = read_whole(&whole[..whole.len() - 4]).damage;
    assert!(matches!(damage[0].kind, DamageKind::Unpack { .. }), "{damage:?}");
}

#[test]
fn a_broken_member_behind_good_ones_is_said() {
    let mut file = gzip(&classic(false, 0xa1b2_c3d4));
    file.extend(b"rubbish behind the last member");
    let whole = read_whole(&file);
    assert_eq!((whole.packets.len(), whole.damage.len()), (10, 1));
    let said = whole.damage[0].to_string();
    assert!(said.starts_with("packet 11 at byte 769: the gzip data is broken"), "{said}");
}

#[test]
fn a_broken_section_header_leaves_the_byte_order_as_it_was() {
    let (first, _) = three_packets();
    let mut header = Bytes::new(true).section().bytes;
    let end = header.len();
    header[end - 4..].fill(0x11);
    // Behind the broken header: no block, then one in the order of the first section.
    let file = [&first[..], &header, &[0x99; 40], &first[48..]].concat();
    let big_endian_block = Bytes::new(true).block(5, |body| body.raw(&[0; 20])).bytes;
    let file = [&file[..], &header, &big_endian_block, &big_endian_block].concat();
    let whole = read_whole(&file);
    let pieces = crate::bytes::Pieces { rest: &file, largest: 3, random: crate::bytes::Random(0) };
    assert_eq!(crate::bytes::read(pieces), Some(whole));
}
