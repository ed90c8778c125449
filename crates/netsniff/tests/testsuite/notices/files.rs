//! What is found across the files of a recording that was rolled, and not across those of different interfaces.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use netsniff_packet::{LinkType, Packet};
use netsniff_pcapfile::{Interface, PcapWriter, PcapngWriter, Section};
use serde_json::Value;

use super::rows;
use super::traffic::at;
use crate::zeek::corpus::Scratch;

/// A file in which hosts say by ARP that they have one address: hardware address, and when in milliseconds.
struct File<'a> {
    said: &'a [(u8, u64)],
    /// The name of its interface; none for a file of pcap.
    interface: Option<&'a str>,
    os: &'a str,
}

fn arp(mac: u8) -> Vec<u8> {
    let mut frame = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, mac];
    frame.extend_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, mac, 192, 0, 2, 77]);
    frame.extend_from_slice(&[0; 28]);
    frame
}

fn bytes(file: &File<'_>) -> Vec<u8> {
    let frames: Vec<_> = file.said.iter().map(|&(mac, time)| (at(time), arp(mac))).collect();
    let packets = frames.iter().map(|(timestamp, data)| Packet {
        timestamp: *timestamp,
        wire_len: data.len() as u32,
        data,
        link_type: LinkType::ETHERNET,
        interface: 0,
    });
    let Some(name) = file.interface else {
        let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 65_535).unwrap();
        packets.for_each(|packet| writer.write_packet(&packet).unwrap());
        return writer.finish().unwrap();
    };
    let os = Some(file.os.to_owned());
    let mut writer = PcapngWriter::new(Vec::new(), &Section { os, ..Section::default() }).unwrap();
    let plain = Interface::new(LinkType::ETHERNET, 0);
    writer.add_interface(&Interface { name: Some(name.to_owned()), ..plain }).unwrap();
    packets.for_each(|packet| writer.write_packet(&packet).unwrap());
    writer.finish().unwrap()
}

/// How many conflicts are found in these files, which are read together in any order.
fn conflicts(files: &[File<'_>]) -> usize {
    let scratch = Scratch::new("rolled");
    fs::create_dir_all(scratch.path()).unwrap();
    let mut paths: Vec<PathBuf> = Vec::new();
    for (number, file) in files.iter().enumerate() {
        paths.push(scratch.path().join(format!("{number}.cap")));
        fs::write(paths.last().unwrap(), bytes(file)).unwrap();
    }
    let run = |paths: &[PathBuf], workers| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
        command.args(["analyze", "-q", "--notices", "-o", "-", "--workers", workers]).args(paths);
        let run = command.output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).unwrap()
    };
    let one = run(&paths, "1");
    assert!(run(&paths, "3") == one, "3 workers write something else");
    paths.reverse();
    let found = |stream: &str| {
        let is_conflict = |row: &&Value| row["note"] == "Netsniff::ARP_Conflict";
        rows(stream, "notice").iter().filter(is_conflict).count()
    };
    assert_eq!(found(&run(&paths, "1")), found(&one), "the order of the files does not matter");
    found(&one)
}

#[test]
fn a_conflict_is_found_across_the_files_of_one_interface_alone() {
    const ETH0: Option<&str> = Some("eth0");
    let files = |interfaces: [Option<&'static str>; 4], os: [&'static str; 4], times: [u64; 4]| {
        let said = times.map(|time| time * 1000);
        let said = [[(1, said[0])], [(2, said[1])], [(1, said[2])], [(2, said[3])]];
        let all = (0..4).map(|at| File { said: &said[at], interface: interfaces[at], os: os[at] });
        conflicts(&all.collect::<Vec<_>>())
    };
    let in_turn = [0, 10, 20, 30];
    assert_eq!(files([ETH0; 4], ["Linux"; 4], in_turn), 1);
    assert_eq!(files([ETH0; 4], ["Linux"; 4], [0, 0, 0, 0]), 1, "each begins as the last one ends");
    let others = [ETH0, Some("eth1"), ETH0, Some("eth1")];
    assert_eq!(files(others, ["Linux"; 4], in_turn), 0, "two interfaces");
    assert_eq!(files([ETH0; 4], ["Linux", "BSD", "Linux", "BSD"], in_turn), 0, "two machines");
    assert_eq!(files([None; 4], ["Linux"; 4], in_turn), 0, "files of pcap do not say");
}

#[test]
fn files_of_one_time_are_of_different_interfaces() {
    // Two machines of one kind, whose captures overlap.
    let says =
        |mac: u8, from: u64| -> Vec<_> { (0..9).map(|round| (mac, from + round * 1000)).collect() };
    let (first, second) = (says(1, 0), says(2, 500));
    let of = |said| File { said, interface: Some("eth0"), os: "Linux" };
    assert_eq!(conflicts(&[of(&first), of(&second)]), 0);
}
