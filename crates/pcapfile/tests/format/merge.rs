//! Several files as one.

use std::io::{self, Read};

use netsniff_packet::{Batch, Progress, Source};
use netsniff_pcapfile::{Merged, Reader};

use crate::bytes::{Bytes, Random, payload};

/// A pcapng file of two interfaces with packets at the given microseconds, alternately on both.
fn file(times: &[u64]) -> Vec<u8> {
    let file = Bytes::new(false).section().interface(1, |body| body).interface(101, |body| body);
    let packet = |file: Bytes, (index, time): (usize, &u64)| {
        file.packet(index as u32 % 2, *time, &payload(index))
    };
    times.iter().enumerate().fold(file, packet).bytes
}

/// Microseconds, file, interface within it and length of every packet.
type Seen = (i64, usize, u16, usize);

fn merge(files: &[Vec<u8>]) -> Vec<Seen> {
    let reader = |file| Reader::with_read_size(file, 0).unwrap();
    let mut merged = Merged::new(files.iter().map(|file| reader(&**file)).collect());
    let mut batch = Batch::default();
    let mut seen = Vec::new();
    let mut progress = Progress::More;
    while progress == Progress::More {
        progress = merged.read_batch(&mut batch).unwrap();
        for packet in batch.iter() {
            let (input, interface) = merged.interface(packet.interface).unwrap();
            assert_eq!(interface.link_type, packet.link_type);
            assert_eq!(packet.data, payload(packet.data.len()));
            seen.push((
                packet.timestamp.nanos() / 1000,
                input,
                packet.link_type.0,
                packet.data.len(),
            ));
        }
    }
    assert_eq!(merged.readers().map(Reader::packets).sum::<u64>(), seen.len() as u64);
    seen
}

#[test]
fn packets_come_by_time_and_at_equal_times_by_file() {
    let seen = merge(&[file(&[1, 5, 9]), file(&[1, 5, 6]), file(&[]), file(&[0])]);
    let times: Vec<_> = seen.iter().map(|packet| (packet.0, packet.1)).collect();
    assert_eq!(times, [(0, 3), (1, 0), (1, 1), (5, 0), (5, 1), (6, 1), (9, 0)]);
}

#[test]
fn the_order_within_a_file_is_kept() {
    let seen = merge(&[file(&[10, 5, 11]), file(&[6, 12])]);
    let times: Vec<_> = seen.iter().map(|packet| packet.0).collect();
    assert_eq!(times, [6, 10, 5, 11, 12]);
}

#[test]
fn one_file_is_as_it_is() {
    let seen = merge(&[file(&[3, 2, 1])]);
    assert_eq!(seen, [(3, 0, 1, 0), (2, 0, 101, 1), (1, 0, 1, 2)]);
    assert_eq!(merge(&[]), []);
}

#[test]
fn many_random_files_give_a_stable_sort() {
    let mut random = Random(5);
    let mut expected = Vec::new();
    let mut files = Vec::new();
    for input in 0..7 {
        let mut times: Vec<u64> = (0..random.below(900)).map(|_| random.next() % 500).collect();
        times.sort_unstable();
        let packet = |(index, time): (usize, &u64)| {
            (*time as i64, input, if index % 2 == 0 { 1 } else { 101 }, index)
        };
        expected.extend(times.iter().enumerate().map(packet));
        files.push(file(&times));
    }
    expected.sort_by_key(|packet: &Seen| packet.0);
    assert_eq!(merge(&files), expected);
}

/// Fails after its bytes.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("a broken disk")),
            read => Ok(read),
        }
    }
}

#[test]
fn a_failing_file_ends_alone() {
    let [good, bad] = [file(&[1, 3, 5]), file(&[2, 4])];
    let inputs: Vec<Box<dyn Read>> = vec![Box::new(&*good), Box::new(Failing(&bad))];
    let mut merged =
        Merged::new(inputs.into_iter().map(|file| Reader::new(file).unwrap()).collect());
    let mut batch = Batch::default();
    let mut seen = Vec::new();
    let mut failures = Vec::new();
    loop {
        match merged.read_batch(&mut batch) {
            Ok(progress) => {
                seen.extend(batch.iter().map(|packet| packet.timestamp.nanos() / 1000));
                if progress == Progress::End {
                    break;
                }
            }
            Err(failure) => failures.push(failure.to_string()),
        }
    }
    assert_eq!(seen, [1, 2, 3, 4, 5]);
    assert_eq!(failures, ["input 1: cannot read: a broken disk"]);
}

/// Statistics at the end of a file, more than fit one read.
#[test]
fn losses_behind_the_last_packet_are_not_forgotten() {
    let with_losses = (1..=300).fold(
        Bytes::new(false).section().interface(1, |body| body).packet(0, 5, b"first"),
        |file, total| {
            file.block(5, |body| body.words(&[0, 0, 6]).option_long(5, total).end_of_options())
        },
    );
    let other = Bytes::new(false).section().interface(1, |body| body);
    let other = other.packet(0, 3, b"before").packet(0, 9, b"behind");
    for other_first in [false, true] {
        let mut files = [with_losses.bytes.clone(), other.bytes.clone()];
        if other_first {
            files.reverse();
        }
        let readers = files.iter().map(|file| Reader::with_read_size(&**file, 0).unwrap());
        let mut merged = Merged::new(readers.collect());
        let (mut batch, mut packets, mut places) = (Batch::default(), 0, Vec::new());
        let mut progress = Progress::More;
        while progress == Progress::More {
            progress = merged.read_batch(&mut batch).unwrap();
            places.extend(batch.losses.iter().map(|(at, loss)| (packets + at, loss.packets)));
            packets += batch.packets.len() as u32;
        }
        assert_eq!(packets, 3);
        assert_eq!(places, vec![(2, 1); 300], "between the second packet and the last");
    }
}

/// What files tell besides packets is handed out in pieces, as packets are, whatever its share.
#[test]
fn notes_take_no_more_memory_than_packets() {
    const MOST: usize = 2 << 20;
    let text = vec![b'x'; 60_000];
    let blocks = (0..200).fold(Bytes::new(false).section().interface(1, |body| body), |file, _| {
        file.block(0xbad, |body| body.word(9).raw(&text))
    });
    let commented =
        (0..200).fold(Bytes::new(false).section().interface(1, |body| body), |file, at| {
            file.block(6, |body| body.words(&[0, 0, at, 0, 0]).option(1, &text).end_of_options())
        });
    let other = file(&[50]);
    for (told, packets) in [(blocks, 1), (commented, 201)] {
        let files = [&told.bytes, &other];
        let readers = files.map(|file| Reader::with_read_size(&**file, 0).unwrap());
        let mut merged = Merged::new(readers.into());
        merged.keep_notes();
        let (mut batch, mut seen, mut notes) = (Batch::default(), 0, 0);
        let mut progress = Progress::More;
        while progress == Progress::More {
            progress = merged.read_batch(&mut batch).unwrap();
            let bytes: usize = batch.notes.iter().map(|(_, note)| note.len()).sum();
            assert!(bytes <= MOST, "{bytes} bytes of notes at once");
            seen += batch.packets.len();
            notes += batch.notes.len();
        }
        assert_eq!((seen, notes), (packets, 200));
    }
}
