//! What the fuzz targets of packets and conversations check, on what they once found and on seeded noise.

use crate::anonymity;
use crate::conversations;
use crate::decoding;
use crate::engine;
use crate::packets;
use crate::transfers;
use std::fs;
use std::path::Path;

use netsniff_analysis::protocol::ProtocolSet;
use netsniff_packet::LinkType;
use netsniff_traffic::Random;

use crate::packets::Event;

/// The inputs on which a target once failed.
fn findings(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions");
    let Ok(entries) = fs::read_dir(root.join(target)) else { return Vec::new() };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

fn noise(random: &mut Random) -> Vec<u8> {
    let len = 100 + random.below(900);
    (0..len).map(|_| random.below(256) as u8).collect()
}

#[test]
fn anonymisation_leaves_no_address_of_any_packet() {
    findings("anonymity").iter().for_each(|input| anonymity::check(input));
    let mut random = Random::new(3);
    for _ in 0..5_000 {
        anonymity::check(&noise(&mut random));
    }
}

#[test]
fn decoding_of_spoiled_packets_is_consistent() {
    findings("decode").iter().for_each(|input| decoding::check(input));
    let mut random = Random::new(1);
    let mut packets = 0;
    for _ in 0..200 {
        for event in packets::events(&noise(&mut random)) {
            let Event::Packet(made) = event else { continue };
            let packet = made.packet();
            packets += 1;
            let LinkType(link_type) = packet.link_type;
            let mut input = vec![link_type as u8, random.below(3) as u8];
            input.extend(packet.data);
            decoding::check(&input);
            // The first headers are where most of the meaning is.
            let at = 2 + random.below(90) as usize;
            if let Some(byte) = input.get_mut(at) {
                *byte = random.below(256) as u8;
            }
            decoding::check(&input);
            input.truncate(at);
            decoding::check(&input);
        }
    }
    assert!(packets > 3_000, "{packets} packets");
}

#[test]
fn the_engine_keeps_its_promises() {
    let found = findings("engine");
    assert!(!found.is_empty(), "the findings are in fuzz/regressions/engine");
    for input in found {
        engine::check(&input);
    }
    let mut random = Random::new(1);
    let mut connections = 0;
    for turn in 0..400 {
        let mut input = noise(&mut random);
        // Every kind of bounds, with every way to treat checksums.
        input[0] = (input[0] & 0xc0) | (turn % 16) as u8;
        connections += engine::check(&input);
    }
    assert!(connections > 4_000, "{connections} connections in all inputs");
}

#[test]
fn conversations_are_the_same_however_they_are_cut() {
    let found = findings("conversations");
    assert!(!found.is_empty(), "the findings are in fuzz/regressions/conversations");
    for input in found {
        conversations::check(ProtocolSet::ALL, &input);
    }
}

#[test]
fn transfers_are_told_as_they_were() {
    let found = findings("transfers");
    assert!(!found.is_empty(), "the findings are in fuzz/regressions/transfers");
    for input in found {
        transfers::check(&input);
    }
    let mut random = Random::new(5);
    let clean = (0..400).filter(|_| transfers::check(&noise(&mut random))).count();
    assert!(clean > 40, "{clean} were clean");
}
