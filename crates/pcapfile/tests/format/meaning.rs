//! What the fields of well-formed files mean.

use netsniff_packet::{Batch, LinkType, Loss, Packet, Progress, Source, Stage, Timestamp};
use netsniff_pcapfile::{
    Compression, Format, Interface, PcapngWriter, Reader, Resolution, Section,
};

use crate::bytes::{
    Bytes, classic, every_block, gzip, lz4, payload, read_whole, zstd as zstd_packed,
};

#[test]
fn classic_variants_differ_only_in_their_unit() {
    let expected = read_whole(&classic(false, 0xa1b2_c3d4));
    assert_eq!(expected.packets.len(), 10);
    assert_eq!(expected.packets[2].nanos, 1_700_000_002_999_999_000);
    assert_eq!((expected.packets[2].data.len(), expected.packets[2].wire_len), (26, 28));
    assert_eq!(read_whole(&classic(true, 0xa1b2_c3d4)).packets, expected.packets);
    for big_endian in [false, true] {
        let modified = read_whole(&classic(big_endian, 0xa1b2_cd34));
        assert_eq!(modified.packets, expected.packets);
        let nanoseconds = read_whole(&classic(big_endian, 0xa1b2_3c4d));
        assert_eq!(nanoseconds.packets[2].nanos, 1_700_000_002_000_999_999);
        assert_eq!(nanoseconds.interfaces[0].resolution, Resolution::NANOSECONDS);
    }
}

#[test]
fn old_versions_have_their_lengths_swapped() {
    let file = |version, lengths: [u32; 2]| {
        let header = Bytes::new(false).pcap_header(0xa1b2_c3d4, version, 1);
        let whole = read_whole(&header.words(&[1, 0]).words(&lengths).raw(&payload(4)).bytes);
        assert_eq!(whole.damage, []);
        (whole.packets[0].data.len(), whole.packets[0].wire_len)
    };
    assert_eq!(file([2, 4], [4, 9]), (4, 9));
    assert_eq!(file([2, 2], [9, 4]), (4, 9));
    assert_eq!(file([2, 3], [9, 4]), (4, 9));
    assert_eq!(file([2, 3], [4, 9]), (4, 9));
}

#[test]
fn the_link_type_is_told_from_the_length_of_the_check_sequence() {
    let file = Bytes::new(true).pcap_header(0xa1b2_c3d4, [2, 4], 0x2400_0001).bytes;
    let interface = &read_whole(&file).interfaces[0];
    assert_eq!((interface.link_type, interface.fcs_len), (LinkType::ETHERNET, Some(4)));
    assert_eq!(interface.snaplen, Some(65_535));
    let file = Bytes::new(true).pcap_header(0xa1b2_c3d4, [2, 4], 12).bytes;
    assert_eq!(read_whole(&file).interfaces[0].link_type, LinkType::RAW);
}

#[test]
fn every_packet_block_is_read_in_both_byte_orders() {
    let whole = read_whole(&every_block());
    assert_eq!(whole.damage, []);
    let seen = whole.packets.iter().map(|packet| {
        (packet.nanos, packet.data.len(), packet.wire_len, packet.interface, packet.link_type)
    });
    let seen: Vec<_> = seen.collect();
    let section = |first| {
        [
            (1_600_000_005_000_000_001, 61, 61, first, 1),
            (1_700_000_000_000_007_000, 0, 0, first + 1, 113),
            // The simple packet block has no time: that of the packet before.
            (1_700_000_000_000_007_000, 9, 9, first, 1),
            (1_700_000_000_000_000_000, 5, 60, first + 1, 113),
            (1_600_000_006_000_000_000, 1500, 1500, first, 1),
        ]
    };
    assert_eq!(seen, [section(0), section(2)].concat());
    assert!(whole.packets.iter().all(|packet| packet.data == payload(packet.data.len())));
}

#[test]
fn interfaces_say_what_is_known_and_nothing_else() {
    let whole = read_whole(&every_block());
    assert_eq!(whole.interfaces.len(), 4);
    let [first, second] = [&whole.interfaces[2], &whole.interfaces[3]];
    assert_eq!((first.section, first.name.as_deref()), (1, Some("eth0")));
    assert_eq!(first.filter.as_deref(), Some("tcp port 80"));
    assert_eq!((first.time_offset, first.description.as_deref()), (1_600_000_000, None));
    let counters = first.counters;
    assert_eq!((counters.received, counters.dropped_by_interface), (Some(1000), Some(10)));
    assert_eq!((counters.dropped_by_os, counters.delivered), (Some(2), None));
    assert_eq!(counters.dropped_between_packets, None);
    // 17 before an enhanced packet, 3 before a packet of the old kind.
    assert_eq!(second.counters.dropped_between_packets, Some(20));
    assert_eq!(second.counters.received, None);
}

#[test]
fn every_resolution_is_read() {
    for (resolution, ticks, nanos) in [
        (0, 3, 3_000_000_000),
        (3, 3_001, 3_001_000_000),
        (9, 5, 5),
        (12, 5_000, 5),
        (0x80 | 1, 3, 1_500_000_000),
        (0x80 | 32, 1 << 31, 500_000_000),
    ] {
        let file = Bytes::new(false).section();
        let file = file.interface(1, |body| body.option(9, &[resolution]).end_of_options());
        let packets = read_whole(&file.packet(0, ticks, &[]).bytes).packets;
        assert_eq!(packets[0].nanos, nanos, "resolution {resolution:#x}");
    }
}

#[test]
fn absurd_times_saturate() {
    let file = Bytes::new(false).section().interface(1, |body| body);
    let packets = read_whole(&file.packet(0, u64::MAX, &[]).bytes).packets;
    assert_eq!(packets[0].nanos, Timestamp::MAX.nanos());
}

#[test]
fn sections_say_what_wrote_them() {
    let bytes = every_block();
    let mut reader = Reader::new(&*bytes).unwrap();
    assert_eq!(reader.format(), Format::Pcapng { big_endian: false });
    let mut batch = Batch::default();
    while reader.read_batch(&mut batch).unwrap() == Progress::More {}
    assert_eq!(reader.sections().len(), 2);
    assert_eq!(reader.sections()[1].application.as_deref(), Some("tests"));
    assert_eq!(reader.untimed(), 2);
}

#[test]
fn packed_files_read_as_their_content() {
    let plain = every_block();
    let expected = read_whole(&plain);
    let (first, second) = plain.split_at(700);
    let members = |pack: fn(&[u8]) -> Vec<u8>| [pack(first), pack(second)].concat();
    let mut skippable = vec![0x53, 0x2a, 0x4d, 0x18, 5, 0, 0, 0, 1, 2, 3, 4, 5];
    skippable.extend(zstd_packed(&plain));
    let files = [
        members(gzip),
        members(zstd_packed),
        members(lz4),
        skippable,
        gzip(&zstd_packed(&plain)),
        lz4(&gzip(&plain)),
    ];
    for (index, file) in files.iter().enumerate() {
        assert_eq!(read_whole(file), expected, "file {index}");
    }
    let nested = Reader::new(&*files[5]).unwrap();
    assert!(nested.compression().eq([Compression::Lz4, Compression::Gzip]));
    let deeper = Reader::new(&*gzip(&files[5])).unwrap_err().to_string();
    assert!(deeper.starts_with("gzip data"), "{deeper}");
}

#[test]
fn losses_stand_between_the_packets_that_tell_of_them() {
    let whole = read_whole(&every_block());
    // Of the first section; the second says the same.
    let found: Vec<_> =
        whole.losses.iter().take(4).map(|(at, l)| (*at, l.packets, l.stage)).collect();
    let expected = [
        (1, 17, Stage::Unknown),
        (3, 3, Stage::Unknown),
        (4, 10, Stage::Interface),
        (4, 2, Stage::System),
    ];
    assert_eq!(found, expected);
    assert_eq!(whole.losses.len(), 8);
    let [(_, first), (_, second), ..] = whole.losses[..] else { panic!("{:?}", whole.losses) };
    // The first packet of its interface, and the one behind it.
    assert_eq!((first.before, second.before), (None, Some(first.after)));
}

#[test]
fn what_the_writer_says_was_lost_is_read() {
    let mut writer = PcapngWriter::new(Vec::new(), &Section::default()).unwrap();
    writer.add_interface(&Interface::new(LinkType::RAW, 0)).unwrap();
    let link_type = LinkType::RAW;
    for (seconds, lost) in [(1, None), (2, Some(5)), (3, Some(0))] {
        let timestamp = Timestamp::from_secs_nanos(seconds, 0);
        let packet = Packet { timestamp, data: b"odd", wire_len: 3, link_type, interface: 0 };
        match lost {
            Some(lost) => writer.write_packet_after_loss(&packet, lost).unwrap(),
            None => writer.write_packet(&packet).unwrap(),
        }
    }
    let whole = read_whole(&writer.finish().unwrap());
    let at = |seconds| Timestamp::from_secs_nanos(seconds, 0);
    let loss = Loss { before: Some(at(1)), after: at(2), packets: 5, stage: Stage::Unknown };
    assert_eq!((whole.losses, whole.packets.len()), (vec![(1, loss)], 3));
    assert_eq!(whole.interfaces[0].counters.dropped_between_packets, Some(5));
    assert!(whole.damage.is_empty());
}
