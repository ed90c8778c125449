//! `unparsed.pcapng`: packets that no layer understood, with the reasons.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::zeek::corpus::Scratch;
use netsniff_packet::{Batch, LinkType, Packet, Progress, Source as _, Timestamp};
use netsniff_pcapfile::{Interface, PcapngWriter, Reader, Section};

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
        (1, vec![1, 2, 3], Some("link type 147 (USER0) is not supported")),
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

/// A capture of packets of some link types, each the only one of its second.
fn capture_of(path: &Path, packets: &[(LinkType, Vec<u8>)]) {
    let mut writer = PcapngWriter::new(Vec::new(), &Section::default()).unwrap();
    for (link_type, _) in packets {
        writer.add_interface(&Interface::new(*link_type, 0)).unwrap();
    }
    for (number, (link_type, data)) in (0..).zip(packets) {
        let timestamp = Timestamp::from_nanos(i64::from(number) * 1_000_000_000);
        let (interface, wire_len) = (number, data.len() as u32);
        let packet = Packet { timestamp, interface, link_type: *link_type, wire_len, data };
        writer.write_packet(&packet).unwrap();
    }
    fs::write(path, writer.finish().unwrap()).unwrap();
}

/// Exit code and standard error of a run.
fn run(arguments: &[&str], paths: [&Path; 2]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    let run = command.args(arguments).arg(paths[0]).arg("-o").arg(paths[1]).output().unwrap();
    (run.status.code(), String::from_utf8_lossy(&run.stderr).into_owned())
}

#[test]
fn a_run_that_can_read_nothing_fails_and_says_why() {
    let scratch = Scratch::new("unparsed-nothing");
    fs::create_dir_all(scratch.path()).unwrap();
    let (capture, logs) = (scratch.path().join("in.pcapng"), scratch.path().join("logs"));
    capture_of(&capture, &[(LinkType(195), vec![1; 40]), (LinkType(65_000), vec![2; 40])]);
    let (code, said) = run(&["analyze", "-q"], [&capture, &logs]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("nothing could be read"), "{said}");
    assert!(said.contains("195 (IEEE802_15_4_WITHFCS), 65000"), "{said}");
    // With one packet that can be read it is as any other run.
    capture_of(
        &capture,
        &[(LinkType(195), vec![1; 40]), (LinkType::ETHERNET, frame([0x88, 0xcc], &[0; 46]))],
    );
    let (code, said) = run(&["analyze", "-q"], [&capture, &logs]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn the_file_is_bounded_and_what_is_left_out_is_counted() {
    let scratch = Scratch::new("unparsed-bounded");
    fs::create_dir_all(scratch.path()).unwrap();
    let (capture, logs) = (scratch.path().join("in.pcapng"), scratch.path().join("logs"));
    let packets = vec![(LinkType::ETHERNET, frame([0x88, 0xcc], &[7; 1000])); 40];
    capture_of(&capture, &packets);
    let (code, said) = run(&["analyze", "-q", "--unparsed", "20k"], [&capture, &logs]);
    assert_eq!(code, Some(0), "{said}");
    let path = logs.join("unparsed.pcapng");
    let kept = read(&path).len();
    assert!((10..20).contains(&kept) && fs::metadata(&path).unwrap().len() <= 20 << 10);
    assert!(
        said.contains(&format!("{} packets are missing in unparsed.pcapng", 40 - kept)),
        "{said}"
    );
    let (_, said) = run(&["analyze", "-q"], [&capture, &logs]);
    assert!(read(&path).len() == 40 && !said.contains("missing"), "{said}");
}

/// With pseudonyms no address of two link types is left, whatever was not understood.
#[test]
fn pseudonyms_hold_for_what_is_kept() {
    const HOST: [u8; 6] = [0x38, 0x94, 0xed, 0x12, 0x34, 0x56];
    let scratch = Scratch::new("unparsed-anonymous");
    fs::create_dir_all(scratch.path()).unwrap();
    let (capture, logs) = (scratch.path().join("in.pcapng"), scratch.path().join("logs"));
    let hosts = HOST.repeat(3);
    // EAPOL over the air, behind radiotap and without; LLDP on a wire.
    let air = [&[0x08, 2, 0, 0][..], &hosts, &[0; 2], &[0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0x8e], &HOST];
    let air = air.concat();
    let tapped = [&[0, 0, 8, 0, 0, 0, 0, 0][..], &air].concat();
    let wired = [&HOST[..], &HOST, &[0x88, 0xcc], &HOST].concat();
    capture_of(
        &capture,
        &[
            (LinkType::IEEE802_11_RADIOTAP, tapped),
            (LinkType::IEEE802_11, air),
            (LinkType::ETHERNET, wired),
        ],
    );
    let (code, said) = run(&["analyze", "-q", "-a", "-m", "tcpdriv"], [&capture, &logs]);
    assert_eq!(code, Some(0), "{said}");
    let kept = read(&logs.join("unparsed.pcapng"));
    assert_eq!(kept.len(), 3);
    for (_, link_type, data) in kept {
        let told = data.windows(3).any(|part| part == &HOST[..3] || part == &HOST[3..]);
        assert!(!told && data.len() >= 14, "{link_type}: {data:02x?}");
    }
}
