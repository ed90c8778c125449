//! Scripted dialogues as a recording: the truth of the script, and a capture file of what the capture kept.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::Duration;

use netsniff_packet::{LinkType, Packet, Timestamp};
use netsniff_pcapfile::PcapWriter;
use netsniff_traffic::Random;
use netsniff_traffic::dialogue::{Dialogue, DialogueTrace, Setup, Side};
use netsniff_traffic::frame::{Host, udp_frame};
use netsniff_traffic::impair::{Captured, Impairment, impair};

use super::recording::{Event, Recording};
use super::segment::Segment;
use super::{Place, Places};

/// What becomes of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fate {
    /// Probability of a loss before the tap.
    pub before: f64,
    /// Probability of a loss behind it.
    pub behind: f64,
    /// What the capture does.
    pub capture: Impairment,
    /// Probability that a frame is late on its way to the tap, and behind it.
    pub reordering: (f64, f64),
    /// Probability that the network doubles a frame before the tap.
    pub duplication: f64,
    /// By how much late ones and doubles are later, at most.
    pub jitter: Duration,
}

/// Plays `count` dialogues that depend on nothing but the seed, and writes what was captured of them to a file.
pub fn play(count: u16, fate: &Fate, seed: u64, capture: &Path) -> Recording {
    let mut random = Random::new(seed);
    let mut recording = Recording::default();
    // A SYN that the capture lost at its very begin may as well have come before.
    let begin = datagram();
    let mut frames = vec![(Setup::default().start, begin)];
    for number in 0..count {
        let (setup, story) = dialogue(number, fate, &mut random);
        let times: Vec<_> = story.seen.iter().map(|seen| seen.timestamp).collect();
        let outcome = impair(&times, &fate.capture, random.next_u64());
        add_truth(&mut recording, &setup, &story, &outcome.lost);
        for Captured { timestamp, index, .. } in outcome.captured {
            frames.push((timestamp, story.seen[index].frame.clone()));
        }
    }
    recording.sort();
    frames.sort_by_key(|(timestamp, _)| *timestamp);
    let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 65_535).unwrap();
    for (timestamp, frame) in &frames {
        writer.write_packet(&packet(*timestamp, frame)).unwrap();
    }
    fs::write(capture, writer.finish().unwrap()).unwrap();
    recording
}

/// A frame of no connection.
fn datagram() -> Vec<u8> {
    let host = |last| Host::new([192, 0, 2, last].into(), 9);
    udp_frame(&host(1), &host(80), 1, b"begin").unwrap()
}

/// One dialogue: short or long, of either version of IP, with or without SACK and time stamps.
fn dialogue(number: u16, fate: &Fate, random: &mut Random) -> (Setup, DialogueTrace) {
    let mut pick = |bound| random.below(bound);
    let host = |is_v6: bool, last: u8, port| {
        let v4 = IpAddr::from(Ipv4Addr::new(192, 0, 2, last));
        let v6 = IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into()));
        Host::new(if is_v6 { v6 } else { v4 }, port)
    };
    let is_v6 = pick(2) == 0;
    let setup = Setup {
        client: host(is_v6, 1 + pick(3) as u8, 20_000 + number),
        server: host(is_v6, 80 + pick(3) as u8, 80),
        start: Setup::default().start + Duration::from_millis(5_000 + pick(20_000)),
        delay: (
            Duration::from_micros(200 + pick(5_000)),
            Duration::from_micros(200 + pick(40_000)),
        ),
        loss_around_tap: (fate.before, fate.behind),
        reordering: fate.reordering.0,
        reordering_behind: fate.reordering.1,
        duplication: fate.duplication,
        jitter: fate.jitter,
        mss: [536, 1220, 1460][pick(3) as usize],
        window_scale: [None, Some(7)][pick(2) as usize],
        sack: pick(4) > 0,
        timestamps: pick(3) > 0,
        window: 65_535,
        initial_sequence: (pick(1 << 32) as u32, pick(1 << 32) as u32 | 0xffff_0000),
        seed: pick(u64::MAX),
        ..Setup::default()
    };
    let mut dialogue = Dialogue::new(setup.clone());
    dialogue.connect();
    for _ in 0..1 + pick(4) {
        let side = [Side::Client, Side::Server][pick(2) as usize];
        let most = [300, 3_000, 60_000][pick(3) as usize];
        dialogue.say(side, &vec![number as u8; 1 + pick(most) as usize]);
    }
    let side = [Side::Client, Side::Server][pick(2) as usize];
    match pick(10) {
        0 => {}
        1 => drop(dialogue.reset(side).pause(Duration::ZERO)),
        _ => drop(dialogue.close(side).close(side.other()).pause(Duration::ZERO)),
    }
    (setup, dialogue.finish())
}

/// Adds what happened to each frame of a dialogue.
fn add_truth(
    recording: &mut Recording,
    setup: &Setup,
    story: &DialogueTrace,
    not_captured: &[usize],
) {
    let mut template = None;
    for (index, seen) in story.seen.iter().enumerate() {
        let segment = Segment::of(&packet(seen.timestamp, &seen.frame)).unwrap();
        // A host needs time for each frame, so that side and time are those of one frame only.
        let is_behind = story
            .lost
            .iter()
            .any(|lost| lost.seen() && (lost.at_tap, lost.from) == (seen.timestamp, seen.from));
        let mut lost = Places::new();
        if not_captured.binary_search(&index).is_ok() {
            lost.insert(Place::Capture);
        }
        if is_behind {
            lost.insert(Place::Behind);
        }
        template.get_or_insert_with(|| segment.clone());
        recording.push(Event { segment, lost, is_doubled: seen.is_doubled });
    }
    let client = (setup.client.address, setup.client.port);
    let Some(template) = template else { return };
    for lost in story.lost.iter().filter(|lost| !lost.seen()) {
        let is_first = template.flow[0] == client;
        let segment = Segment {
            time: lost.at_tap,
            from: usize::from(is_first != (lost.from == Side::Client)),
            sequence: lost.sequence,
            payload: lost.len,
            flags: lost.flags,
            sack: Vec::new(),
            ..template.clone()
        };
        recording.push(Event { segment, lost: [Place::Before].into(), is_doubled: false });
    }
}

fn packet(timestamp: Timestamp, frame: &[u8]) -> Packet<'_> {
    let wire_len = frame.len() as u32;
    Packet { timestamp, data: frame, wire_len, link_type: LinkType::ETHERNET, interface: 0 }
}
