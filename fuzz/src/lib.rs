//! What the fuzz targets check.

pub mod anonymity;
pub mod conversations;
pub mod decoding;
pub mod dialogues;
pub mod engine;
pub mod packets;
pub mod transfers;

use std::io::{self, Read};

use netsniff_packet::{Batch, LinkType, Progress, Source};
use netsniff_pcapfile::{Damage, Reader};

/// One packet: time, interface, link type, length on the wire, bytes.
type Seen = (i64, u32, LinkType, u32, Vec<u8>);

/// Reads a file at once and in pieces of `piece` bytes: the packets and the damage are the same,
/// and no packet holds more than the file.
///
/// # Panics
///
/// Where that is not so.
pub fn read_both_ways(file: &[u8], piece: usize) {
    let at_once = read(file);
    assert_eq!(at_once, read(Pieces { rest: file, piece: piece.max(1) }));
    if let Some((packets, _)) = at_once {
        let bytes: usize = packets.iter().map(|packet| packet.4.len()).sum();
        assert!(bytes <= file.len());
    }
}

/// All packets of a file; `None` where it is no capture.
///
/// # Panics
///
/// Where memory fails.
#[must_use]
pub fn batches(input: impl Read) -> Option<Vec<Batch>> {
    let mut reader = Reader::with_read_size(input, 0).ok()?;
    let mut batches = Vec::new();
    loop {
        let mut batch = Batch::default();
        let progress = reader.read_batch(&mut batch).expect("memory does not fail");
        batches.push(batch);
        if progress == Progress::End {
            return Some(batches);
        }
    }
}

/// The packets and the damage of a file, or `None` where it is no capture.
fn read(input: impl Read) -> Option<(Vec<Seen>, Vec<Damage>)> {
    let mut reader = Reader::with_read_size(input, 0).ok()?;
    let mut batch = Batch::default();
    let mut packets = Vec::new();
    loop {
        let progress = reader.read_batch(&mut batch).expect("memory does not fail");
        packets.extend(batch.iter().map(|packet| {
            let nanos = packet.timestamp.nanos();
            (nanos, packet.interface, packet.link_type, packet.wire_len, packet.data.to_vec())
        }));
        if progress == Progress::End {
            return Some((packets, reader.damage().to_vec()));
        }
    }
}

struct Pieces<'a> {
    rest: &'a [u8],
    piece: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.piece.min(buffer.len());
        let (piece, _) = buffer.split_at_mut(len);
        self.rest.read(piece)
    }
}
