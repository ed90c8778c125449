//! What the capture thread pays for recording a packet: encoding alone, and the recorder with its
//! hand-over, whose thread writes to `/dev/null`.
//!
//! Each iteration records [`PACKETS`] packets, so its time in milliseconds is the time per packet in
//! nanoseconds. The bytes of the packets are in the caches, as those of a ring are that were just
//! captured.

use core::time::Duration;
use std::path::PathBuf;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use netsniff_packet::{LinkType, Packet, Timestamp};
use netsniff_pcapfile::{Interface, PacketNotes, PcapngEncoder, Resolution, Section};
use netsniff_pipeline::recording::Recorder;
use netsniff_pipeline::recording::naming::CaptureFormat;
use netsniff_pipeline::recording::options::{BUFFER_BYTES, Options};

/// Packets of one iteration.
const PACKETS: u64 = 1_000_000;
/// Bytes of a packet without its frame check sequence.
const SIZES: [usize; 3] = [60, 508, 1514];

fn main() {
    divan::main();
}

fn packet(data: &[u8], number: u64) -> Packet<'_> {
    Packet {
        timestamp: Timestamp::from_nanos(1_795_352_400_000_000_000 + number as i64 * 700),
        data,
        wire_len: data.len() as u32,
        link_type: LinkType::ETHERNET,
        interface: 0,
    }
}

fn interface() -> Interface {
    let resolution = Resolution::NANOSECONDS;
    Interface { resolution, ..Interface::new(LinkType::ETHERNET, 0) }
}

/// Blocks into a buffer that is emptied when it is full.
#[divan::bench(args = SIZES, sample_count = 10, sample_size = 1)]
fn encode(bencher: Bencher<'_, '_>, size: usize) {
    let data = vec![7; size];
    let (mut encoder, mut out) = (PcapngEncoder::default(), Vec::with_capacity(BUFFER_BYTES));
    encoder.section(&Section::default(), &mut out).expect("short");
    encoder.interface(&interface(), &mut out).expect("short");
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        for number in 0..PACKETS {
            if out.capacity() - out.len() < size + PcapngEncoder::PACKET_OVERHEAD {
                black_box(&out);
                out.clear();
            }
            let packet = packet(black_box(&data), number);
            encoder.packet(&packet, PacketNotes::default(), &mut out).expect("of this interface");
        }
    });
}

fn record(bencher: Bencher<'_, '_>, size: usize, options: &Options) {
    let data = vec![7; size];
    let mut recorder =
        Recorder::start(options, Timestamp::EPOCH).expect("/dev/null can be written");
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        for number in 0..PACKETS {
            recorder.packet(&packet(black_box(&data), number));
        }
    });
    let finished = recorder.finish(Duration::from_secs(10));
    // Refusing costs less than recording.
    let statistics = finished.statistics;
    let share = statistics.refused.packets as f64 / statistics.delivered.packets as f64;
    assert!(share < 0.01, "{:.1} % were refused", share * 100.0);
}

fn options() -> Options {
    Options::new(PathBuf::from("/dev/null"), vec![interface()])
}

/// The whole recorder.
#[divan::bench(args = SIZES, sample_count = 10, sample_size = 1)]
fn pcapng(bencher: Bencher<'_, '_>, size: usize) {
    record(bencher, size, &options());
}

/// The same in the other format.
#[divan::bench(args = SIZES, sample_count = 10, sample_size = 1)]
fn pcap(bencher: Bencher<'_, '_>, size: usize) {
    record(bencher, size, &Options { format: CaptureFormat::Pcap, ..options() });
}

/// With a cut-off, which decodes each packet.
#[divan::bench(args = SIZES, sample_count = 10, sample_size = 1)]
fn flow_cutoff(bencher: Bencher<'_, '_>, size: usize) {
    record(bencher, size, &Options { flow_cutoff: Some(1 << 40), ..options() });
}
