//! `unparsed.pcapng`: packets that no layer understood, with the reasons.

mod zeek;

use std::fs;
use std::path::Path;
use std::process::Command;

use netsniff_packet::{Batch, LinkType, Packet, Progress, Source as _, Timestamp};
use netsniff_pcapfile::{Interface, PcapngWriter, Reader, Section};
use zeek::corpus::Scratch;

const OFFICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/office.pcapng");

fn analyze(capture: &Path, logs: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    command.args(["analyze", "-q"]).arg(capture).arg("-o").arg(logs);
    assert!(command.status().unwrap().success());
}

fn read(path: &Path) -> Vec<(Timestamp, LinkType, Vec<u8>)> {
    let mut reader = Reader::new(fs::File::open(path).unwrap()).unwrap();
    let (mut batch, mut packets) = (Batch::default(), Vec::new());
    let mut progress = Progress::More;
    while progress == Progress::More {
        progress = reader.read_batch(&mut batch).unwrap();
        packets.extend(batch.iter().map(|it| (it.timestamp, it.link_type, it.data.to_vec())));
    }
    packets
}

/// An Ethernet frame with a type and what follows.
fn frame(kind: [u8; 2], rest: &[u8]) -> Vec<u8> {
    [&[2; 12], kind.as_slice(), rest].concat()
}

#[test]
fn what_no_layer_understands_is_kept_with_the_reason() {
    let scratch = Scratch::new("unparsed");
    fs::create_dir_all(scratch.path()).unwrap();
    let capture = scratch.path().join("in.pcapng");
    let mut writer = PcapngWriter::new(Vec::new(), &Section::default()).unwrap();
    for link_type in [LinkType::ETHERNET, LinkType(147)] {
        writer.add_interface(&Interface::new(link_type, 0)).unwrap();
    }
    // An IPv4 header with a UDP header of which half is there, by the IP header's length, too.
    let short_udp = b"\x45\0\0\x18\0\0\0\0\x40\x11\0\0\xc0\0\x02\x01\xc0\0\x02\x02\0\x35\0\x35";
    // ARP, RFC 826: who has 192.0.2.2?
    let arp = b"\0\x01\x08\0\x06\x04\0\x01\x02\x02\x02\x02\x02\x02\xc0\0\x02\x01\0\0\0\0\0\0\xc0\0\x02\x02";
    let inputs = [
        (0, frame([0x08, 0x06], arp), None),
        (0, frame([0x88, 0xcc], &[0; 46]), Some("what follows the eth header is not known")),
        (0, frame([0x08, 0x00], short_udp), Some("truncated_header: udp header at offset 34")),
        (1, vec![1, 2, 3], Some("link type 147 is not supported")),
    ];
    for (at, (interface, data, _)) in (1..).zip(&inputs) {
        let link_type = [LinkType::ETHERNET, LinkType(147)][*interface as usize];
        let timestamp = Timestamp::from_nanos(at * 1_000_000_000);
        let (interface, wire_len) = (*interface, data.len() as u32);
        let packet = Packet { timestamp, interface, link_type, wire_len, data };
        writer.write_packet(&packet).unwrap();
    }
    fs::write(&capture, writer.finish().unwrap()).unwrap();
    let logs = scratch.path().join("logs");
    analyze(&capture, &logs);

    let path = logs.join("unparsed.pcapng");
    let kept = read(&path);
    let expected: Vec<_> = (1..)
        .zip(&inputs)
        .filter(|(_, (_, _, why))| why.is_some())
        .map(|(at, (interface, data, _))| {
            let link_type = [LinkType::ETHERNET, LinkType(147)][*interface as usize];
            (Timestamp::from_nanos(at * 1_000_000_000), link_type, data.clone())
        })
        .collect();
    assert_eq!(kept, expected);
    let bytes = fs::read(&path).unwrap();
    for why in inputs.iter().filter_map(|(_, _, why)| *why) {
        let is_there = bytes.windows(why.len()).any(|window| window == why.as_bytes());
        assert!(is_there, "no comment says: {why}");
    }

    // What an earlier run left is gone, and nothing is written where all is understood.
    analyze(Path::new(OFFICE), &logs);
    assert!(!path.exists());
}
