//! Time per packet of the analysis: the whole engine, and the flows alone, for packets that are all
//! decoded.
//!
//! Run with `cargo bench -p netsniff-analysis`. Each iteration gives [`PACKETS`] packets to an
//! engine that knows its flows already (a flood, whose flows are all new, to an empty one), so the
//! time of an iteration in milliseconds is the time per packet in nanoseconds; the throughput line
//! gives packets per second. Nothing here counts allocations: an allocator that counts is `unsafe`
//! code, which this project has none of.

use core::net::{IpAddr, Ipv4Addr};

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use netsniff_analysis::flow::tracker::FlowTracker;
use netsniff_analysis::ingress::Ingress;
use netsniff_analysis::{DatagramBatch, Engine, Limits, Observer, Options, Record, SortKey};
use netsniff_packet::wire::tcp::TcpHeader;
use netsniff_packet::{Batch, LinkType, Packet, Timestamp};
use netsniff_traffic::frame::{Host, tcp_frame, udp_frame};

/// Packets of one iteration. All are seen within [`GAP`] times as many nanoseconds, so that no flow
/// times out.
const PACKETS: u64 = 1_000_000;
/// Nanoseconds from packet to packet.
const GAP: u64 = 200;
/// Packets in one batch.
const BATCH: u64 = 4_096;
const SEED: u64 = 7;
const SYN: u16 = 0x02;
const ACK: u16 = 0x10;
const PUSH_ACK: u16 = 0x18;

fn main() {
    divan::main();
}

/// Takes records and does no more than a counter would.
struct Sink(u64);

impl Observer for Sink {
    fn record<R: Record>(&mut self, key: &SortKey, record: &R) {
        black_box(record);
        self.0 += black_box(key.ordinal);
    }
}

/// What the packets are.
#[derive(Clone, Copy)]
enum Traffic {
    /// Segments of 100 bytes, in turn over so many connections.
    Data { flows: u64 },
    /// A SYN of another connection each.
    Flood,
    /// Questions of 40 bytes to port 53 and their answers, over so many flows.
    Dns { flows: u64 },
}

/// Client and server of a flow.
fn ends(flow: u64, port: u16) -> (Host, Host) {
    let [.., a, b, c] = (flow as u32).to_be_bytes();
    let client = Host::new(IpAddr::V4(Ipv4Addr::new(10, a, b, c)), 40_000);
    (client, Host::new(IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1)), port))
}

fn segment(from: &Host, to: &Host, flags: u16, sequence: u64, len: usize) -> Vec<u8> {
    let header = TcpHeader {
        source_port: 0,
        destination_port: 0,
        sequence: sequence as u32,
        acknowledgement: if flags == SYN { 0 } else { 1 },
        flags,
        window: 64_000,
        checksum: 0,
        urgent_pointer: 0,
        options: &[],
    };
    tcp_frame(from, to, sequence as u16, &header, &vec![0x61; len]).expect("the segment fits")
}

/// Packets before the measured ones: handshakes.
fn opening(traffic: Traffic) -> u64 {
    match traffic {
        Traffic::Data { flows } => 3 * flows,
        Traffic::Flood | Traffic::Dns { .. } => 0,
    }
}

/// The frame with a number from 0.
fn frame(traffic: Traffic, number: u64) -> Vec<u8> {
    match traffic {
        Traffic::Flood => {
            let (client, server) = ends(number, 80);
            segment(&client, &server, SYN, 0, 0)
        }
        Traffic::Dns { flows } => {
            let (client, server) = ends(number / 2 % flows, 53);
            let [high, low] = (number as u16 / 2).to_be_bytes();
            let mut message = [0; 40];
            message[..6].copy_from_slice(&[high, low, 1, 0, 0, 1]);
            if number.is_multiple_of(2) {
                udp_frame(&client, &server, 0, &message).expect("the question fits")
            } else {
                message[2] = 0x81;
                udp_frame(&server, &client, 0, &message).expect("the answer fits")
            }
        }
        Traffic::Data { flows } => {
            let (client, server) = ends(number % flows, 443);
            match number / flows {
                0 => segment(&client, &server, SYN, 0, 0),
                1 => segment(&server, &client, SYN | ACK, 0, 0),
                2 => segment(&client, &server, ACK, 1, 0),
                turn => segment(&client, &server, PUSH_ACK, 1 + (turn - 3) * 100, 100),
            }
        }
    }
}

/// The packets with numbers from `first` up to `end`.
fn batches(traffic: Traffic, first: u64, end: u64) -> Vec<Batch> {
    let mut batches = Vec::new();
    let mut batch = Batch::default();
    for number in first..end {
        let data = frame(traffic, number);
        let packet = Packet {
            timestamp: Timestamp::from_secs_nanos(1_000, (number * GAP) as i64),
            data: &data,
            wire_len: data.len() as u32,
            link_type: LinkType::ETHERNET,
            interface: 0,
        };
        assert!(batch.push(&packet), "a batch has room");
        if (number + 1).is_multiple_of(BATCH) {
            batches.push(core::mem::take(&mut batch));
        }
    }
    batches.push(batch);
    batches
}

fn engine(bencher: Bencher<'_, '_>, traffic: Traffic) {
    let first = opening(traffic);
    let before = batches(traffic, 0, first);
    let measured = batches(traffic, first, first + PACKETS);
    bencher
        .counter(ItemsCount::new(PACKETS))
        .with_inputs(|| {
            let mut engine = Engine::new(Limits::default(), Options::default(), SEED);
            let mut sink = Sink(0);
            before.iter().for_each(|batch| engine.batch(batch, &mut sink));
            (engine, sink)
        })
        .bench_local_values(|(mut engine, mut sink)| {
            measured.iter().for_each(|batch| engine.batch(batch, &mut sink));
            (engine, sink.0)
        });
}

/// What decoding makes of batches: their datagrams beside their bytes.
fn decoded(ingress: &mut Ingress, batches: Vec<Batch>) -> Vec<(DatagramBatch, Vec<u8>)> {
    let decode = |batch: Batch| {
        let mut units = DatagramBatch::default();
        for record in &batch.packets {
            ingress.packet(&batch.packet(record), record.range(), &mut units, &mut Sink(0));
        }
        (units, batch.data)
    };
    batches.into_iter().map(decode).collect()
}

fn tracker(bencher: Bencher<'_, '_>, traffic: Traffic) {
    let first = opening(traffic);
    let mut ingress = Ingress::new(Limits::default(), Options::default());
    let before = decoded(&mut ingress, batches(traffic, 0, first));
    let measured = decoded(&mut ingress, batches(traffic, first, first + PACKETS));
    bencher
        .counter(ItemsCount::new(PACKETS))
        .with_inputs(|| {
            let mut tracker = FlowTracker::new(Limits::default(), Options::default(), SEED);
            let mut sink = Sink(0);
            for (units, bytes) in &before {
                tracker.units(units.as_slice().iter(), bytes, &mut sink);
            }
            (tracker, sink)
        })
        .bench_local_values(|(mut tracker, mut sink)| {
            for (units, bytes) in &measured {
                tracker.units(units.as_slice().iter(), bytes, &mut sink);
            }
            (tracker, sink.0)
        });
}

const FLOWS: [u64; 3] = [1, 1_000, 1_000_000];

#[divan::bench(args = FLOWS, sample_count = 5, sample_size = 1)]
fn engine_tcp_data(bencher: Bencher<'_, '_>, flows: u64) {
    engine(bencher, Traffic::Data { flows });
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn engine_syn_flood(bencher: Bencher<'_, '_>) {
    engine(bencher, Traffic::Flood);
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn engine_dns(bencher: Bencher<'_, '_>) {
    engine(bencher, Traffic::Dns { flows: 10_000 });
}

#[divan::bench(args = FLOWS, sample_count = 5, sample_size = 1)]
fn tracker_tcp_data(bencher: Bencher<'_, '_>, flows: u64) {
    tracker(bencher, Traffic::Data { flows });
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn tracker_syn_flood(bencher: Bencher<'_, '_>) {
    tracker(bencher, Traffic::Flood);
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn tracker_dns(bencher: Bencher<'_, '_>) {
    tracker(bencher, Traffic::Dns { flows: 10_000 });
}
