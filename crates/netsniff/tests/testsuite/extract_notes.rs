//! `netsniff extract`: what a capture tells beside its packets comes along, the same with an index and without.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use netsniff_packet::{Batch, LinkType, Note, Packet, Progress, Source as _, Timestamp};
use netsniff_pcapfile::{Interface, PacketNotes, PcapngEncoder, Reader, Section};
use netsniff_testing::{has_program, log};
use netsniff_traffic::frame::{Host, udp_frame};

use crate::generated::Folder;

fn netsniff(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netsniff")).args(arguments).output().unwrap()
}

/// A whole block, little-endian.
fn block(block_type: u32, body: &[u8]) -> Vec<u8> {
    assert!(body.len().is_multiple_of(4));
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&block_type.to_le_bytes()[..], &length, body, &length].concat()
}

/// A name, a secret, and blocks that others define: one that may be copied, and one that must not.
fn blocks() -> [Vec<u8>; 4] {
    let name = b"\x01\0\x0e\0\xc0\0\x02\x01a.example\0\0\0\0\0\0\0";
    let secret = b"KLST\x0c\0\0\0CLIENT_RANDO";
    [
        block(4, name),
        block(10, secret),
        block(0xbad, b"\xd9\x7e\0\0mine"),
        block(0x4000_0bad, b"\xd9\x7e\0\0mine"),
    ]
}

/// Two hosts that send in turn, with comments on some packets, and a block in front of every hundredth.
fn capture(path: &Path) {
    let (mut encoder, mut out) = (PcapngEncoder::default(), Vec::new());
    encoder.section(&Section::default(), &mut out).unwrap();
    encoder.interface(&Interface::new(LinkType::ETHERNET, 0), &mut out).unwrap();
    for number in 0..900_usize {
        if number % 100 == 50 {
            out.extend(&blocks()[number / 100 % 4]);
        }
        let host = |last| Host::new([192, 0, 2, last].into(), 5000);
        // The third one is seen at the begin alone.
        let from = host(if number < 10 { 3 } else { 1 + (number % 2) as u8 });
        let data = &udp_frame(&from, &host(9), 7, &[number as u8; 700]).unwrap()[..];
        let timestamp = Timestamp::from_secs_nanos(1_700_000_000 + number as i64 / 10, 0);
        let (link_type, wire_len) = (LinkType::ETHERNET, data.len() as u32);
        let packet = Packet { timestamp, data, wire_len, link_type, interface: 0 };
        let comments: &[&str] = if number % 90 == 0 { &["seen", "by me"] } else { &[] };
        encoder.packet(&packet, PacketNotes { lost: None, comments }, &mut out).unwrap();
    }
    fs::write(path, out).unwrap();
}

/// What a capture tells beside its packets, each with the number of packets before.
fn notes(path: &Path) -> Vec<(usize, Note)> {
    let mut reader = Reader::new(fs::File::open(path).unwrap()).unwrap();
    reader.keep_notes();
    let (mut batch, mut found, mut packets) = (Batch::default(), Vec::new(), 0);
    loop {
        let progress = reader.read_batch(&mut batch).unwrap();
        found.extend(batch.notes.iter().map(|(at, note)| (packets + *at as usize, note.clone())));
        packets += batch.packets.len();
        if progress == Progress::End {
            return found;
        }
    }
}

#[test]
fn comments_names_secrets_and_custom_blocks_come_along_in_their_order() {
    let folder = Folder::new("extract-notes");
    let (input, output) = (folder.path("in.pcapng"), folder.path("out.pcapng"));
    capture(&input);
    let logs = folder.path("logs");
    let words = [&input, &output, &logs].map(|path| path.to_str().unwrap());
    assert!(netsniff(&["analyze", "-q", words[0], "-o", words[2]]).status.success());
    let rows = log::read(&logs.join("conn.log")).unwrap();
    let row = rows.iter().find(|row| row["id.orig_h"] == "192.0.2.1").unwrap();
    let (uid, community) = (row["uid"].as_str(), row["community_id"].as_str());
    let extract = |inputs: &[&str], more: &[&str]| {
        let run = netsniff(&[&["extract", "-w", words[1], "--json"], inputs, more].concat());
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(run.status.success() && !said.contains("all of it is read"), "{said}");
        let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        (fs::read(&output).unwrap(), report["packets_read"].as_u64().unwrap())
    };
    let (whole, _) = extract(&[words[0]], &["--uid", uid, "--no-index"]);
    let told = notes(&output);
    let block_at = |(at, note): &(usize, Note)| match note {
        Note::Block(block) => Some((*at, block.to_vec())),
        Note::Comment(_) => None,
    };
    let found: Vec<_> = told.iter().filter_map(block_at).collect();
    // Every second packet was chosen, of those behind the first ten; what must not be copied is not there.
    let expected = (0..9).filter(|number| number % 4 != 3);
    let expected: Vec<_> =
        expected.map(|number| (number * 50 + 20, blocks()[number % 4].clone())).collect();
    assert_eq!(found, expected);
    let comments = |at: usize| {
        let here = told.iter().filter(move |(place, _)| *place == at);
        let text = |(_, note): &(usize, Note)| match note {
            Note::Comment(text) => Some(text.clone()),
            Note::Block(_) => None,
        };
        here.filter_map(text).collect::<Vec<_>>()
    };
    let added = format!("uid={uid}");
    assert_eq!(comments(40), ["seen", "by me", &added]);
    assert_eq!(comments(41), [added.as_str()]);
    // Extracted once more, nothing is doubled.
    let again = folder.path("again.pcapng");
    fs::copy(&output, &again).unwrap();
    assert!(extract(&[again.to_str().unwrap()], &["--uid", uid]).0 == whole);
    // By its index the same comes, also with the Community ID, and other captures keep their notes when merged.
    assert!(netsniff(&["index", "-q", words[0]]).status.success());
    assert!(extract(&[words[0]], &["--uid", uid]).0 == whole);
    let (by_id, _) = extract(&[words[0]], &["--community-id", community]);
    assert!(by_id == whole, "not the same by Community ID");
    // Blocks that have no packet of it are read for what stands in them.
    let rare = rows.iter().find(|row| row["id.orig_h"] == "192.0.2.3").unwrap();
    let (whole_of_rare, all) = extract(&[words[0]], &["--uid", &rare["uid"], "--no-index"]);
    let (by_index, read) = extract(&[words[0]], &["--uid", &rare["uid"]]);
    assert!(by_index == whole_of_rare, "what stands beside the packets is not there by an index");
    assert!(read < all && notes(&output).iter().filter_map(block_at).count() == expected.len());
    let (merged, _) = extract(&[words[0], again.to_str().unwrap()], &["--uid", uid, "--no-index"]);
    let count = |bytes: &[u8]| bytes.windows(12).filter(|it| it == b"CLIENT_RANDO").count();
    assert_eq!((count(&whole), count(&merged)), (2, 4));
}

#[test]
fn tshark_knows_the_names_that_come_along() {
    if !has_program("tshark", "names that extract carries over were not read by others") {
        return;
    }
    let folder = Folder::new("extract-names");
    let (input, output) = (folder.path("in.pcapng"), folder.path("out.pcapng"));
    capture(&input);
    let words = [&input, &output].map(|path| path.to_str().unwrap());
    let run = netsniff(&["extract", "-q", words[0], "-w", words[1], "-f", "host 192.0.2.1"]);
    assert!(run.status.success());
    let words = ["-r", words[1], "-N", "n", "-T", "fields", "-e", "ip.src_host"];
    let run = Command::new("tshark").args(words).output().unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(text.contains("a.example"), "{text} {}", String::from_utf8_lossy(&run.stderr));
}
