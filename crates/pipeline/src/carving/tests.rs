//! Fragments, SYNs within connections, losses and bounds, packet by packet.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use netsniff_analysis::key::uid::Uid;
use netsniff_analysis::{Limits, Options};
use netsniff_packet::wire::tcp::TcpHeader;
use netsniff_packet::{Batch, LinkType, Loss, Packet, Stage, Timestamp};
use netsniff_traffic::frame::{Host, tcp_frame, udp_frame};

use super::choice::{FlowChoice, PacketChoice};
use super::{Carved, Carver, CarvingStatistics, TakeCarved};

const START: i64 = 1_700_000_000_000_000_000;
const SYN: u16 = 2;
const ACK: u16 = 16;
const AMPLE: usize = 1 << 20;

/// What was taken: the place of each packet in the input, its flows, and what was lost before it.
#[derive(Default)]
struct Taken(Vec<(usize, Vec<u128>, u64)>);

impl TakeCarved for Taken {
    fn packet(&mut self, carved: &Carved<'_>) -> io::Result<()> {
        let at = (carved.packet.timestamp.nanos() - START) / 1_000_000;
        let flows = carved.flows.iter().map(|flow| flow.name).collect();
        self.0.push((at as usize, flows, carved.lost));
        Ok(())
    }
}

/// Carves frames that come every millisecond, `size` of them in a batch, with a loss before those of `lost`.
fn carve(
    frames: &[Vec<u8>],
    lost: &[usize],
    size: usize,
    flows: FlowChoice,
    most_held: usize,
) -> (Taken, CarvingStatistics, Vec<Uid>) {
    let mut taken = Taken::default();
    let (statistics, missing) = carve_into(&mut taken, frames, lost, size, flows, most_held);
    (taken, statistics, missing)
}

fn carve_into<T: TakeCarved>(
    taken: &mut T,
    frames: &[Vec<u8>],
    lost: &[usize],
    size: usize,
    flows: FlowChoice,
    most_held: usize,
) -> (CarvingStatistics, Vec<Uid>) {
    let (limits, options) = (Limits::default(), Options::default());
    let mut carver = Carver::new(flows, PacketChoice::default(), limits, options, 1, most_held);
    for (number, group) in frames.chunks(size).enumerate() {
        let mut batch = Batch::default();
        for (within, data) in group.iter().enumerate() {
            let at = number * size + within;
            let timestamp = Timestamp::from_nanos(START + at as i64 * 1_000_000);
            if lost.contains(&at) {
                let (before, after) = (Some(timestamp), timestamp);
                batch.push_loss(Loss { before, after, packets: 10, stage: Stage::Unknown });
            }
            let link_type = LinkType::ETHERNET;
            let wire_len = data.len() as u32;
            assert!(batch.push(&Packet { timestamp, data, wire_len, link_type, interface: 0 }));
        }
        carver.batch(&batch, 1, taken).unwrap();
    }
    carver.finish(taken).unwrap()
}

fn named(name: u128) -> FlowChoice {
    let mut choice = FlowChoice::default();
    choice.named([Uid::new(name)]);
    choice
}

/// The places of the packets of one flow, and of each packet its flows.
fn places(frames: &[Vec<u8>], name: u128) -> Vec<usize> {
    let whole = carve(frames, &[], frames.len(), named(name), AMPLE).0;
    for size in 1..4 {
        let parts = carve(frames, &[], size, named(name), AMPLE).0;
        assert_eq!(parts.0, whole.0, "batches of {size} packets");
    }
    assert!(whole.0.iter().all(|(_, flows, _)| *flows == [name]), "{:?}", whole.0);
    whole.0.iter().map(|(at, ..)| *at).collect()
}

/// The flows of each packet.
fn flows_of(frames: &[Vec<u8>]) -> Vec<Vec<u128>> {
    let (taken, ..) = carve(frames, &[], frames.len(), FlowChoice::default(), AMPLE);
    assert!(taken.0.iter().map(|(at, ..)| *at).eq(0..frames.len()), "all packets, in order");
    taken.0.into_iter().map(|(_, flows, _)| flows).collect()
}

fn host(last: u8, port: u16) -> Host {
    Host::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)), port)
}

pub(super) fn udp(from: u8, len: usize) -> Vec<u8> {
    udp_frame(&host(from, 7000), &host(99, 7001), 5, &vec![7; len]).unwrap()
}

/// A frame in two fragments, the first of `len` bytes.
pub(super) fn fragments(frame: &[u8], len: usize) -> [Vec<u8>; 2] {
    let (headers, payload) = frame.split_at(34);
    let part = |payload: &[u8], word: u16| {
        let mut frame = [headers, payload].concat();
        let total = (20 + payload.len()) as u16;
        frame[16..18].copy_from_slice(&total.to_be_bytes());
        frame[20..22].copy_from_slice(&word.to_be_bytes());
        frame[24..26].fill(0);
        let sum = netsniff_packet::checksum::compute(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame
    };
    [part(&payload[..len], 0x2000), part(&payload[len..], (len / 8) as u16)]
}

fn tcp(is_answer: bool, flags: u16, [sequence, acknowledgement]: [u32; 2]) -> Vec<u8> {
    let (client, server) = (host(1, 40_000), host(2, 80));
    let (from, to) = if is_answer { (server, client) } else { (client, server) };
    let header = TcpHeader {
        source_port: 0,
        destination_port: 0,
        sequence,
        acknowledgement,
        flags,
        window: 1000,
        checksum: 0,
        urgent_pointer: 0,
        options: &[],
    };
    tcp_frame(&from, &to, 1, &header, &[]).unwrap()
}

/// Fragments come before it is known whose they are, and others between them.
#[test]
fn all_fragments_of_a_datagram_come_in_their_order() {
    let [first, second] = fragments(&udp(1, 1000), 512);
    let [lonely, _] = fragments(&udp(3, 1000), 512);
    let frames = [udp(2, 9), second, udp(1, 9), lonely, udp(2, 9), first, udp(1, 9)];
    let flows = flows_of(&frames);
    assert_eq!(flows[3], [], "its datagram never became whole");
    assert_eq!(places(&frames, flows[6][0]), [1, 2, 5, 6]);
    assert_eq!(places(&frames, flows[0][0]), [0, 4]);
}

/// A SYN in the midst of a connection belongs to the one that begins with its answer.
#[test]
fn a_syn_within_a_connection_goes_with_its_answer() {
    let frames = [
        tcp(false, SYN, [100, 0]),
        tcp(true, SYN | ACK, [500, 101]),
        tcp(false, ACK, [101, 501]),
        tcp(false, SYN, [3_000_000_000, 0]),
        udp(9, 9),
        tcp(true, SYN | ACK, [2_000_000_000, 3_000_000_001]),
        tcp(false, ACK, [3_000_000_001, 2_000_000_001]),
    ];
    let flows = flows_of(&frames);
    assert_ne!(flows[0], flows[5]);
    assert_eq!(places(&frames, flows[0][0]), [0, 1, 2]);
    assert_eq!(places(&frames, flows[5][0]), [3, 5, 6]);
    let unanswered = [&frames[..5], &[tcp(false, ACK, [101, 501])]].concat();
    assert_eq!(places(&unanswered, flows[0][0]), [0, 1, 2, 3, 5]);
}

/// What waits is bounded: beyond that, packets are decided as they stand, and counted.
#[test]
fn little_memory_decides_early_and_says_so() {
    let [first, second] = fragments(&udp(1, 1000), 512);
    let frames = [second, udp(1, 9), first];
    let name = flows_of(&frames)[1][0];
    let (taken, statistics, _) = carve(&frames, &[], 1, named(name), 0);
    let places: Vec<_> = taken.0.iter().map(|(at, ..)| *at).collect();
    assert_eq!((places, statistics.hurried), (vec![1, 2], 1));
    let (_, statistics, _) = carve(&frames, &[], 1, named(name), AMPLE);
    assert_eq!((statistics.packets, statistics.hurried), (3, 0));
}

/// Numbers and flows, in the order in which they were decided.
#[derive(Default)]
struct Numbered {
    read: u64,
    decided: Vec<(u64, Vec<u128>, bool)>,
}

impl TakeCarved for Numbered {
    const NUMBERS_ONLY: bool = true;

    fn number(&mut self, _: &Packet<'_>) -> u64 {
        self.read += 1;
        self.read
    }

    fn packet(&mut self, carved: &Carved<'_>) -> io::Result<()> {
        let flows = carved.flows.iter().map(|flow| flow.name).collect();
        self.decided.push((carved.number, flows, carved.is_hurried));
        Ok(())
    }
}

/// The numbers of frames in batches of `size`, sorted, and how many of them were hurried.
fn numbered(frames: &[Vec<u8>], size: usize, most_held: usize) -> (Vec<(u64, Vec<u128>)>, usize) {
    let mut taken = Numbered::default();
    let statistics = carve_into(&mut taken, frames, &[], size, FlowChoice::default(), most_held).0;
    let hurried = taken.decided.iter().filter(|(.., is_hurried)| *is_hurried).count();
    assert_eq!(statistics.hurried, hurried as u64);
    taken.decided.sort();
    (taken.decided.into_iter().map(|(number, flows, _)| (number, flows)).collect(), hurried)
}

/// A fragment that waits keeps back no other packet from whoever wants only numbers.
#[test]
fn numbers_do_not_wait_for_a_lost_fragment() {
    let [first, second] = fragments(&udp(1, 1000), 512);
    let [lonely, _] = fragments(&udp(3, 1000), 512);
    let mut frames = vec![lonely, second, udp(1, 9), first];
    frames.extend((0..500).map(|at| udp(2, at)));
    let flows = flows_of(&frames);
    let expected: Vec<_> = (1..).zip(flows).collect();
    for size in [1, 2, 3, 100, 1000] {
        assert_eq!(numbered(&frames, size, 4000), (expected.clone(), 0), "batches of {size}");
    }
    let (_, statistics, _) = carve(&frames, &[], 1, FlowChoice::default(), 4000);
    assert!(statistics.hurried > 0, "in their order they wait");
}

/// Where fragments alone take more than may wait, those are told that are decided as they stand, and no others.
#[test]
fn numbers_that_are_hurried_are_told() {
    let mut frames: Vec<_> = (0..40).map(|it| fragments(&udp(it, 1000), 512)[0].clone()).collect();
    frames.push(udp(1, 9));
    let (all, hurried) = numbered(&frames, 1, 4000);
    assert!(all.iter().map(|(number, _)| *number).eq(1..=41) && (20..40).contains(&hurried));
}

/// What the capture lost between two packets that are taken is told once, before the second.
#[test]
fn losses_stand_before_the_next_packet_that_is_taken() {
    let [first, second] = fragments(&udp(1, 1000), 512);
    let [lonely, _] = fragments(&udp(3, 1000), 512);
    let frames =
        [udp(2, 9), udp(1, 9), second, udp(2, 9), lonely, first, udp(2, 9), udp(1, 9), udp(2, 9)];
    let flows = flows_of(&frames);
    for size in [1, 2, 9] {
        let choice = named(flows[1][0]);
        let taken = carve(&frames, &[0, 2, 3, 4, 6, 7, 8], size, choice, AMPLE).0;
        let lost: Vec<_> = taken.0.iter().map(|(at, _, lost)| (*at, *lost)).collect();
        assert_eq!(lost, [(1, 10), (2, 10), (5, 20), (7, 20)], "batches of {size}");
    }
}

#[test]
fn a_name_without_packets_is_missing() {
    let frames = [udp(1, 9)];
    let name = flows_of(&frames)[0][0];
    let (taken, _, missing) = carve(&frames, &[], 1, named(name ^ 1), AMPLE);
    assert_eq!((taken.0.len(), missing), (0, vec![Uid::new(name ^ 1)]));
    assert_eq!(carve(&frames, &[], 1, named(name), AMPLE).2, []);
}
