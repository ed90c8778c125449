//! What it costs to find a packet: a file in memory, read in the usual pieces.

use divan::{Bencher, counter::ItemsCount};
use netsniff_packet::{Batch, LinkType, Packet, Progress, Source, Timestamp};
use netsniff_pcapfile::{Interface, Merged, PcapWriter, PcapngWriter, Reader, Section};

fn main() {
    divan::main();
}

const PACKETS: u32 = 100_000;
const SIZES: [usize; 2] = [64, 600];

fn packet(data: &[u8], index: u32) -> Packet<'_> {
    Packet {
        timestamp: Timestamp::from_nanos(i64::from(index) * 1000),
        data,
        wire_len: data.len() as u32,
        link_type: LinkType::ETHERNET,
        interface: 0,
    }
}

fn pcap(size: usize) -> Vec<u8> {
    let data = vec![0; size];
    let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 0).expect("in memory");
    (0..PACKETS).for_each(|index| writer.write_packet(&packet(&data, index)).expect("in memory"));
    writer.finish().expect("in memory")
}

fn pcapng(size: usize) -> Vec<u8> {
    let data = vec![0; size];
    let mut writer = PcapngWriter::new(Vec::new(), &Section::default()).expect("in memory");
    writer.add_interface(&Interface::new(LinkType::ETHERNET, 0)).expect("in memory");
    (0..PACKETS).for_each(|index| writer.write_packet(&packet(&data, index)).expect("in memory"));
    writer.finish().expect("in memory")
}

/// Reads all and returns the sum of the lengths on the wire.
fn drain<S: Source<Error: core::fmt::Debug>>(source: &mut S, batch: &mut Batch) -> u64 {
    let mut sum = 0;
    while source.read_batch(batch).expect("in memory") == Progress::More {
        sum += batch.packets.iter().map(|record| u64::from(record.wire_len)).sum::<u64>();
    }
    sum
}

fn bench(bencher: Bencher<'_, '_>, file: &[u8]) {
    let mut batch = Batch::default();
    bencher
        .counter(ItemsCount::new(PACKETS))
        .bench_local(|| drain(&mut Reader::new(file).expect("a capture"), &mut batch));
}

#[divan::bench(args = SIZES)]
fn classic(bencher: Bencher<'_, '_>, size: usize) {
    bench(bencher, &pcap(size));
}

#[divan::bench(args = SIZES)]
fn blocks(bencher: Bencher<'_, '_>, size: usize) {
    bench(bencher, &pcapng(size));
}

/// The copy alone: what reading from memory costs without looking for packets.
#[divan::bench(args = SIZES)]
fn copy_alone(bencher: Bencher<'_, '_>, size: usize) {
    let file = pcap(size);
    let mut buffer = vec![0; Reader::<&[u8]>::READ_SIZE];
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        for piece in file.chunks(buffer.len()) {
            buffer[..piece.len()].copy_from_slice(piece);
            divan::black_box(&mut buffer);
        }
    });
}

#[divan::bench(args = SIZES)]
fn two_files_merged(bencher: Bencher<'_, '_>, size: usize) {
    let file = pcap(size);
    let mut batch = Batch::default();
    bencher.counter(ItemsCount::new(2 * PACKETS)).bench_local(|| {
        let reader = || Reader::new(&*file).expect("a capture");
        drain(&mut Merged::new(vec![reader(), reader()]), &mut batch)
    });
}
