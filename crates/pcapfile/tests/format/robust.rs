//! Properties that hold for any input: chunking, truncation, random damage.

use crate::bytes::{
    Pieces, Random, Whole, classic, every_block, gzip, lz4, read, read_whole, zstd as packed,
};

fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let plain = every_block();
    vec![
        ("classic", classic(false, 0xa1b2_c3d4)),
        ("classic big-endian nanoseconds", classic(true, 0xa1b2_3c4d)),
        ("classic modified", classic(false, 0xa1b2_cd34)),
        ("gzip", gzip(&plain)),
        ("zstd", packed(&plain)),
        ("lz4", lz4(&plain)),
        ("pcapng", plain),
    ]
}

fn in_pieces(bytes: &[u8], largest: usize, seed: u64) -> Option<Whole> {
    read(Pieces { rest: bytes, largest, random: Random(seed) })
}

#[test]
fn any_chunking_gives_the_same() {
    for (name, bytes) in samples() {
        let whole = read_whole(&bytes);
        for (seed, largest) in [1, 1, 2, 3, 7, 50, 1000, 5000].into_iter().enumerate() {
            assert_eq!(in_pieces(&bytes, largest, seed as u64).unwrap(), whole, "{name} {largest}");
        }
    }
}

#[test]
fn any_chunking_of_a_damaged_file_gives_the_same() {
    let mut random = Random(3);
    for round in 0..300 {
        let mut bytes = if round % 3 == 0 { classic(false, 0xa1b2_c3d4) } else { every_block() };
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len());
            bytes[at] = random.next() as u8;
        }
        let whole = read(&*bytes);
        assert_eq!(in_pieces(&bytes, 100, round), whole, "round {round}");
        assert_eq!(in_pieces(&bytes, 1, round), whole, "round {round}");
    }
}

#[test]
fn truncation_anywhere_yields_a_prefix() {
    for (name, bytes) in samples() {
        let packets = read_whole(&bytes).packets;
        for end in 0..bytes.len() {
            let Some(cut) = read(&bytes[..end]) else { continue };
            assert!(packets.starts_with(&cut.packets), "{name} cut after {end}");
            // Where no packet is missing, the file may end between two blocks.
            let whole = cut.packets.len() == packets.len();
            assert!(whole || cut.damage.len() == 1 || ends_between(&bytes, end), "{name} {end}");
        }
    }
}

/// Whether a plain file may end at `end`: a record or a block ends there.
fn ends_between(bytes: &[u8], end: usize) -> bool {
    read(&bytes[..end]).is_some_and(|cut| cut.damage.is_empty() && cut.position == end as u64)
}

#[test]
fn random_damage_is_survived() {
    let mut random = Random(7);
    for (_, original) in samples() {
        for _ in 0..3000 {
            let mut bytes = original.clone();
            for _ in 0..1 + random.below(8) {
                let at = random.below(bytes.len());
                match random.below(4) {
                    0 => bytes[at] = random.next() as u8,
                    1 => bytes[at] ^= 1 << random.below(8),
                    2 => drop(bytes.drain(at..(at + random.below(40)).min(bytes.len()))),
                    _ => drop(bytes.splice(at..at, (0..random.below(40)).map(|_| 0xff))),
                }
                if bytes.is_empty() {
                    break;
                }
            }
            if let Some(whole) = read(&*bytes) {
                let bytes_read: usize = whole.packets.iter().map(|packet| packet.data.len()).sum();
                assert!(bytes_read as u64 <= whole.position);
            }
        }
    }
}
