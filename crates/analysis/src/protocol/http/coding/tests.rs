//! Bodies that flate2 and the program brotli compressed, whole, in pieces, and broken.

use std::io::Write;

use super::*;
use crate::limits::Limits;
use crate::protocol::mime::Field;
use crate::protocol::x509::tests::unhex;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

/// `seq 1 400 | brotli -q 11 -w 10`, brotli 1.0.9: more text than its window of 1 KiB.
const NUMBERS: &str = "a1982e189192f32fbf5a24d83681ca2f1be6ae45cc7d8b9888c1606c6eb4dd60ecfb16653110c73a2d4d2f2153333425\
    0a787143c654545655d7d4d6d517408409cdb01c2f2028242c225a8c5871e22524a5a46564cb912b4fbe82a292b28a6a\
    356ad5a9d7d0d4d2d6d1ad47af3efd068646c626a6cd983567dec2d2cadac6b61dbbf6ec3b383a39bbb876e3d69d7b0f\
    4f2f6f1fdf7efcfaf30f022428d060c082032e78e0c380090b361cb8f0c00b1ffc2850a2428d062d3ae8a2873e0e9cb8\
    70e3c18b0fbef8e14f822429d264c892432e79e4d341275d74d3432f7de84b3ffa33c124534c33c32c7398cb3ce6b3c1\
    265b6cb3c32e7bd8cb3ef673c125575c73c32d77b8cb3deef3c1275f7cf3c32f7ff8cb3ffec341404241c3c0c2810b0f\
    3e062616360e2e1ebcf8f053505251d3d0d2a14b8f3e072717370f2f1fbefcf84b484a49cbc8ca912b4fbe0e9dba74eb\
    d1ab8fbefae96fc2a429d366cc9a63ae79e6dbb069cbb61dbbf6d86b9ffd2e5cba72edc6ad3beebae7be0f9fbe7cfbf1\
    eb8fbffe41fa0f022428d060c082032e78e0c380090b361cb8f0c00b1ffc2850a2428d062d3ae8a2873e0e9cb870e3c1\
    8b0fbef8e14f822429d264c892432e79e4d341275d74d3432f7de84b3ffa33c124534c33c32c7398cb3ce6b3c1265b6c\
    b3c32e7bd8cb3ef673c125575c73c32d77b8cb3deef3c1275f7cf3c32f7ff8cb3f5e04";

/// `head -c 16777216 /dev/zero | brotli -q 9 -w 24`: 16 MiB with a window of as much.
const ZEROS: &str = "cfffff7f002400e2b14072efff07";

/// `head -c 70000 /dev/zero | brotli --large_window=26`.
const LARGE_WINDOW: &str = "115abd4504fe0980782c1090921000";

/// Whatever comes, with windows of so many bytes.
fn all(window: u64) -> Budget {
    let limits = Limits::default();
    Budget::from(&Limits { http_decoded_bytes: u64::MAX, http_window_bytes: window, ..limits })
}

/// At most so many bytes.
fn most(len: u64) -> Budget {
    let limits = Limits { http_decoded_bytes: len, http_decoded_ratio: 0, ..Limits::default() };
    Budget::from(&limits)
}

/// A decoder for what a field `Content-Encoding` tells.
fn decoder(value: &str) -> Decoder {
    let mut codings = Codings::default();
    codings.content(&Field { name: b"", value: value.as_bytes() });
    Decoder::new(&codings).unwrap()
}

fn numbers() -> Vec<u8> {
    (1..=400).map(|n| format!("{n}\n")).collect::<String>().into_bytes()
}

fn text() -> Vec<u8> {
    (0..20_000_u32).flat_map(|n| (n.wrapping_mul(2_654_435_761) >> 20).to_le_bytes()).collect()
}

/// What comes out and is told, which is the same at either pace, as is what is left of the budget.
fn in_pieces(value: &str, data: &[u8], len: usize, budget: Budget) -> (Vec<u8>, Vec<Decoded>) {
    let [blocks, together] = [Pace::Blocks, Pace::Together].map(|pace| {
        let (mut decoder, mut out, mut budget) = (decoder(value), Vec::new(), budget);
        let mut take = |bytes: &[u8], _| {
            out.extend_from_slice(bytes);
            true
        };
        let pieces = data.chunks(len);
        let mut told: Vec<_> =
            pieces.map(|piece| decoder.decode(piece, pace, &mut budget, &mut take)).collect();
        told.push(decoder.finish(&mut budget, &mut take));
        told.retain(|told| *told != Decoded::Well);
        (out, told, budget)
    });
    assert!(blocks == together, "{value} in pieces of {len}");
    (blocks.0, blocks.1)
}

#[test]
fn what_may_be_decoded_is_the_same_however_it_comes() {
    let coded = gzip(&text(), Compression::best());
    let (len, ratio) = (text().len() as u64, 1);
    for floor in (0..2 * len).step_by(4_999) {
        let limits =
            Limits { http_decoded_bytes: floor, http_decoded_ratio: ratio, ..Limits::default() };
        let budget = || Budget::from(&limits);
        let whole = in_pieces("gzip", &coded, coded.len(), budget());
        for len in [100, 256, 1_000, 1_448] {
            assert!(in_pieces("gzip", &coded, len, budget()) == whole, "{floor} {len}");
        }
    }
    let is_together = |limits: &Limits| {
        let (mut decoder, mut budget) = (decoder("gzip"), Budget::from(limits));
        let mut pieces = 0;
        decoder.decode(&coded, Pace::Together, &mut budget, &mut |_, _| {
            pieces += 1;
            true
        });
        pieces
    };
    let enough = Limits { http_decoded_bytes: 1 << 30, ..Limits::default() };
    let scarce = Limits { http_decoded_bytes: 2 * len, ..Limits::default() };
    assert!(4 * is_together(&enough) < is_together(&scarce), "more comes out at once");
}

fn gzip(text: &[u8], level: Compression) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), level);
    gzip.write_all(text).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn all_kinds_of_deflate_are_told_apart_however_they_are_cut() {
    let text = text();
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::fast());
    zlib.write_all(&text).unwrap();
    deflate.write_all(&text).unwrap();
    let coded =
        [gzip(&text, Compression::fast()), zlib.finish().unwrap(), deflate.finish().unwrap()];
    for mut coded in coded {
        coded.extend_from_slice(b"trailing bytes count for nothing");
        for len in [1, 2, 7, 1_000, coded.len()] {
            let decoded = in_pieces("deflate", &coded, len, all(16 << 20));
            assert_eq!(decoded, (text.clone(), Vec::new()), "{len}");
        }
    }
}

#[test]
fn br_is_decoded_however_it_is_cut() {
    let mut coded = unhex(NUMBERS);
    coded.extend_from_slice(b"trailing bytes count for nothing");
    for len in 1..=coded.len() {
        let decoded = in_pieces("br", &coded, len, all(16 << 20));
        assert_eq!(decoded, (numbers(), Vec::new()), "{len}");
    }
}

#[test]
fn broken_data_is_told_once_and_gives_the_same_however_it_is_cut() {
    let mut coded = gzip(&text(), Compression::fast());
    let middle = coded.len() / 2;
    for byte in &mut coded[middle..middle + 40] {
        *byte ^= 0x5a;
    }
    let whole = in_pieces("gzip", &coded, coded.len(), all(16 << 20));
    assert_eq!(whole.1, [Decoded::Broken("inflate_failed")]);
    for len in [1, 3, 100] {
        assert_eq!(in_pieces("deflate", &coded, len, all(16 << 20)), whole);
    }
}

#[test]
fn broken_br_gives_the_same_however_it_is_cut() {
    let sound = unhex(NUMBERS);
    let (mut broken, mut begun) = (0, 0);
    for at in 1..sound.len() {
        for mask in [0x01, 0x10, 0x5a, 0xff] {
            let mut coded = sound.clone();
            coded[at] ^= mask;
            let whole = in_pieces("br", &coded, coded.len(), all(16 << 20));
            for len in [1, 3, 100] {
                assert_eq!(
                    in_pieces("br", &coded, len, all(16 << 20)),
                    whole,
                    "{at} {mask:x} {len}"
                );
            }
            if !whole.1.is_empty() {
                assert_eq!(whole.1, [Decoded::Broken("brotli_failed")]);
                broken += 1;
                begun += usize::from(!whole.0.is_empty());
            }
        }
    }
    assert!(broken > 500 && begun > 200, "{broken} broken, of which {begun} not at once");
}

#[test]
fn nothing_is_decoded_behind_a_gap() {
    let coded = unhex(NUMBERS);
    let (mut decoder, mut budget, mut out) = (decoder("br"), all(16 << 20), Vec::new());
    decoder.decode(&coded[..300], Pace::Blocks, &mut budget, &mut |bytes, _| {
        out.extend_from_slice(bytes);
        true
    });
    decoder.finish(&mut budget, &mut |bytes, _| {
        out.extend_from_slice(bytes);
        true
    });
    assert!(!decoder.gap(), "what is behind does not count");
    let before = out.len();
    assert!(before > 100 && numbers().starts_with(&out), "{before}");
    let told =
        decoder.decode(&coded[310..], Pace::Blocks, &mut budget, &mut |_, _| panic!("decoded"));
    assert_eq!(told, Decoded::Well);
}

#[test]
fn bombs_are_put_out() {
    let coded = gzip(&vec![0; 1 << 20], Compression::best());
    for (coding, coded) in [("gzip", coded), ("br", unhex(ZEROS))] {
        for len in [1, coded.len()] {
            let (out, told) = in_pieces(coding, &coded, len, most(10_000));
            assert_eq!((out.len(), told), (10_000, vec![Decoded::TooMuch]));
        }
    }
    let (out, told) = in_pieces("br", &unhex(ZEROS), 100, all(16 << 20));
    assert_eq!((out.len(), told), (16 << 20, Vec::new()));
}

#[test]
fn memory_is_what_comes_out_and_counted() {
    let held = |coded: &[u8]| {
        let (mut decoder, mut budget) = (decoder("br"), all(16 << 20));
        decoder.decode(&coded[..coded.len() - 1], Pace::Blocks, &mut budget, &mut |_, _| true);
        decoder.finish(&mut budget, &mut |_, _| true);
        decoder.bytes()
    };
    let (small, large) = (held(&unhex(NUMBERS)), held(&unhex(ZEROS)));
    assert!((10_000..100_000).contains(&small), "{small}");
    assert!((16 << 20..20 << 20).contains(&large), "{large}");
}

#[test]
fn what_needs_too_large_a_window_is_taken_as_it_is() {
    let (zeros, large) = (unhex(ZEROS), unhex(LARGE_WINDOW));
    for (coded, window) in [(&zeros, (16 << 20) - 1), (&large, 16 << 20)] {
        for len in [1, 5, coded.len()] {
            let (out, told) = in_pieces("br", coded, len, all(window));
            assert_eq!((&out, told), (coded, vec![Decoded::TooLargeWindow]));
        }
    }
}

#[test]
fn the_first_byte_tells_the_window() {
    // RFC 7932, section 9.1: what the first bits say, and what follows them.
    for (first, bits) in [
        (0b0000_0000, 16),
        (0b0000_0001, 17),
        (0b0000_0011, 18),
        (0b0000_1101, 23),
        (0b0000_1111, 24),
        (0b0010_0001, 10),
        (0b0111_0001, 15),
        (0b1110_0001, 14),
    ] {
        assert_eq!(brotli::window(first), Some(1 << bits), "{first:b}");
    }
    assert_eq!((brotli::window(0x11), brotli::window(0x91)), (None, None));
}

#[test]
fn several_codings_are_undone_however_the_body_is_cut() {
    let (text, best) = (text(), Compression::best());
    let twice = gzip(&gzip(&text, best), best);
    let thrice = gzip(&twice, best);
    for (value, coded) in [("gzip, x-gzip", &twice), ("gzip,identity,deflate,gzip", &thrice)] {
        for len in [1, 2, 700, coded.len()] {
            let decoded = in_pieces(value, coded, len, all(16 << 20));
            assert_eq!(decoded, (text.clone(), Vec::new()), "{value} {len}");
        }
    }
    let outer = gzip(&unhex(NUMBERS), best);
    assert_eq!(in_pieces("br, gzip", &outer, 3, all(16 << 20)), (numbers(), Vec::new()));
}

/// What goes from one coding to the other counts, too, and where it ends does not depend on cuts.
#[test]
fn codings_share_what_may_be_decoded() {
    let coded = gzip(&gzip(&vec![0; 8 << 20], Compression::best()), Compression::best());
    let mut limits = Limits { http_decoded_bytes: 1 << 20, ..Limits::default() };
    for ratio in [0, 100] {
        limits.http_decoded_ratio = ratio;
        let whole = in_pieces("gzip,gzip", &coded, coded.len(), Budget::from(&limits));
        assert_eq!(whole.1, [Decoded::TooMuch]);
        assert!((900_000..1_100_000).contains(&whole.0.len()), "{}", whole.0.len());
        for len in [1, 7, 100] {
            let cut = in_pieces("gzip,gzip", &coded, len, Budget::from(&limits));
            assert!(cut == whole, "{ratio} {len}: {} {}", cut.0.len(), whole.0.len());
        }
    }
}

/// Servers name a coding twice, or one of the transfer that nobody undoes: what does not begin as the inner
/// one says is as it is. Of one that is named alone nothing is left then, as in Zeek.
#[test]
fn an_inner_coding_may_not_have_been_applied() {
    let text = b"X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*".to_vec();
    let coded = gzip(&text, Compression::fast());
    let told = vec![Decoded::Broken("inflate_failed")];
    for len in [1, 2, 3, 7, coded.len()] {
        for value in ["gzip, gzip", "deflate, gzip", "gzip, deflate"] {
            let decoded = in_pieces(value, &coded, len, all(16 << 20));
            assert_eq!(decoded, (text.clone(), told.clone()), "{value} {len}");
        }
        for value in ["gzip", "gzip, gzip"] {
            let decoded = in_pieces(value, &text, len, all(16 << 20));
            assert_eq!(decoded, (Vec::new(), told.clone()), "{value} {len}");
        }
        let mut codings = Codings::default();
        codings.transfer(b"gzip");
        let (mut decoder, mut out) = (Decoder::new(&codings).unwrap(), Vec::new());
        for piece in text.chunks(len) {
            let take: Take<'_> = &mut |bytes: &[u8], _| {
                out.extend_from_slice(bytes);
                true
            };
            decoder.decode(piece, Pace::Blocks, &mut all(16 << 20), take);
        }
        assert_eq!(out, text, "{len}");
    }
}

/// What flate2 makes of a member of gzip: what comes out, and whether it ended or broke.
fn oracle(data: &[u8]) -> (Vec<u8>, Outcome) {
    let mut inflater = flate2::Decompress::new_gzip(15);
    let mut out = Vec::with_capacity(1 << 20);
    let result = inflater.decompress_vec(data, &mut out, flate2::FlushDecompress::None);
    let outcome = match result {
        Ok(flate2::Status::StreamEnd) => Outcome::Ended,
        Ok(_) => Outcome::Open,
        Err(_) => Outcome::Broken,
    };
    (out, outcome)
}

/// What comes of data that comes in pieces of so many bytes.
fn stepped(data: &[u8], len: usize) -> (Vec<u8>, Outcome) {
    let (mut deflate, mut all, mut out) = (Deflate::default(), Vec::new(), [0; 700]);
    for mut piece in data.chunks(len) {
        loop {
            let step = deflate.step(piece, &mut out);
            all.extend(&out[..step.gave]);
            piece = &piece[step.took..];
            match step.outcome {
                Outcome::Open if step.gave == out.len() || step.took > 0 && !piece.is_empty() => {}
                Outcome::Open => break,
                last => return (all, last),
            }
        }
    }
    (all, Outcome::Open)
}

/// Members with all parts of a header, and with any byte of theirs changed or missing.
#[test]
fn gzip_is_read_as_zlib_reads_it() {
    let mut members = Vec::new();
    for parts in 0..8_u8 {
        let mut builder = flate2::GzBuilder::new().mtime(77);
        if parts & 1 != 0 {
            builder = builder.extra(vec![5; usize::from(parts) * 3]);
        }
        if parts & 2 != 0 {
            builder = builder.filename("a name");
        }
        if parts & 4 != 0 {
            builder = builder.comment("of this");
        }
        let mut encoder = builder.write(Vec::new(), Compression::fast());
        encoder.write_all(&numbers()[..900]).unwrap();
        let plain = encoder.finish().unwrap();
        // The same with a checksum of its header, right and wrong.
        let len = header_len(&plain);
        for wrong in [0, 1] {
            let mut summed = plain.clone();
            summed[3] |= 2;
            let sum = crc32fast::hash(&summed[..len]) as u16 ^ wrong;
            summed.splice(len..len, sum.to_le_bytes());
            members.push(summed);
        }
        members.push(plain);
    }
    for member in &members {
        for at in 0..member.len() {
            let near = at < 60 || at + 12 > member.len();
            if !near && at % 7 > 0 {
                continue;
            }
            let mut changed = member.clone();
            changed[at] ^= 1 << (at % 8);
            for data in [&changed[..], &member[..at], &[&member[..], b"more"].concat()] {
                if !data.starts_with(&gzip::MAGIC) {
                    continue;
                }
                let (expected, outcome) = oracle(data);
                for len in [1, 5, 5_000] {
                    let (found, ended) = stepped(data, len);
                    assert_eq!((&found, ended), (&expected, outcome), "{at}, by {len}: {data:?}");
                }
            }
        }
    }
}

/// Bytes of the header that the encoder of flate2 writes.
fn header_len(member: &[u8]) -> usize {
    let mut len = 10;
    if member[3] & 4 != 0 {
        len += 2 + usize::from(u16::from_le_bytes([member[10], member[11]]));
    }
    for flag in [8, 16] {
        if member[3] & flag != 0 {
            len += member[len..].iter().position(|byte| *byte == 0).unwrap() + 1;
        }
    }
    len
}
