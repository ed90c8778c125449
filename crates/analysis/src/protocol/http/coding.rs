//! Compressed bodies, RFC 9110 section 8.4.1: gzip and deflate. Others are taken as they are, as by
//! Zeek.

use flate2::{Decompress, FlushDecompress, Status};

/// Undoes one body's compression, whose kind the first two bytes tell: servers that say deflate send
/// zlib (RFC 1950), bare deflate (RFC 1951) or gzip (RFC 1952), whichever they like.
#[derive(Debug)]
pub(super) struct Decoder {
    state: State,
    /// How many more bytes may come out.
    room: u64,
}

#[derive(Debug)]
enum State {
    /// Too few bytes to tell what it is.
    Begin(Option<u8>),
    Inflating(Box<Decompress>),
    /// Complete. What follows counts for nothing.
    Ended,
    /// Broken. What follows cannot be read.
    Failed,
    /// There would be more than may be.
    Full,
}

/// How a step of decoding ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// All is well.
    Well,
    /// The data is broken, which is told once.
    Broken,
    /// More came out than may, which is told once.
    TooMuch,
}

/// Bytes that a decoder for one body takes, with its window.
const DECODER_BYTES: usize = 48 << 10;

/// Largest window of deflate, as a power of two.
const WINDOW_BITS: u8 = 15;

impl Decoder {
    /// A decoder that gives out at most `room` bytes.
    pub(super) const fn new(room: u64) -> Self {
        Self { state: State::Begin(None), room }
    }

    /// Decodes `data`, and hands what comes out to `take`.
    pub(super) fn decode(&mut self, data: &[u8], mut take: impl FnMut(&[u8])) -> Decoded {
        match (&mut self.state, data) {
            (_, []) | (State::Ended | State::Failed | State::Full, _) => Decoded::Well,
            (State::Begin(None), &[only]) => {
                self.state = State::Begin(Some(only));
                Decoded::Well
            }
            (&mut State::Begin(None), &[first, second, ..]) => {
                self.state = State::Inflating(Box::new(inflater(first, second)));
                self.inflate(data, &mut take)
            }
            (&mut State::Begin(Some(first)), &[second, ..]) => {
                self.state = State::Inflating(Box::new(inflater(first, second)));
                match self.inflate(&[first], &mut take) {
                    Decoded::Well => self.inflate(data, &mut take),
                    other => other,
                }
            }
            (State::Inflating(_), _) => self.inflate(data, &mut take),
        }
    }

    fn inflate(&mut self, mut data: &[u8], take: &mut impl FnMut(&[u8])) -> Decoded {
        let State::Inflating(inflater) = &mut self.state else { return Decoded::Well };
        let mut out = [0; 4_096];
        loop {
            let before = (inflater.total_in(), inflater.total_out());
            let result = inflater.decompress(data, &mut out, FlushDecompress::None);
            let took = usize::try_from(inflater.total_in() - before.0).unwrap_or(usize::MAX);
            let gave = inflater.total_out() - before.1;
            data = data.get(took..).unwrap_or_default();
            let allowed = gave.min(self.room);
            self.room -= allowed;
            take(out.get(..allowed as usize).unwrap_or_default());
            if allowed < gave {
                self.state = State::Full;
                return Decoded::TooMuch;
            }
            match result {
                Ok(Status::StreamEnd) => {
                    self.state = State::Ended;
                    return Decoded::Well;
                }
                Err(_) => {
                    self.state = State::Failed;
                    return Decoded::Broken;
                }
                // Without room in `out` there may be more to come, even from no input.
                Ok(_) if (gave as usize) < out.len() && (data.is_empty() || took == 0) => {
                    return Decoded::Well;
                }
                Ok(_) => {}
            }
        }
    }

    /// Learns that bytes are missing, behind which nothing can be read.
    pub(super) fn gap(&mut self) {
        self.state = State::Failed;
    }

    /// Bytes that it takes.
    pub(super) const fn bytes(&self) -> usize {
        size_of::<Self>()
            + match self.state {
                State::Inflating(_) => DECODER_BYTES,
                _ => 0,
            }
    }
}

fn inflater(first: u8, second: u8) -> Decompress {
    let is_zlib = first & 0xf == 8
        && first >> 4 <= 7
        && u16::from_be_bytes([first, second]).is_multiple_of(31);
    if (first, second) == (0x1f, 0x8b) {
        Decompress::new_gzip(WINDOW_BITS)
    } else {
        Decompress::new(is_zlib)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn text() -> Vec<u8> {
        (0..20_000_u32).flat_map(|n| (n.wrapping_mul(2_654_435_761) >> 20).to_le_bytes()).collect()
    }

    fn in_pieces(data: &[u8], len: usize, room: u64) -> (Vec<u8>, Vec<Decoded>) {
        let (mut decoder, mut out) = (Decoder::new(room), Vec::new());
        let told =
            data.chunks(len).map(|piece| decoder.decode(piece, |b| out.extend_from_slice(b)));
        let told = told.filter(|told| *told != Decoded::Well).collect();
        (out, told)
    }

    #[test]
    fn all_three_formats_are_told_apart_however_they_are_cut() {
        let text = text();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&text).unwrap();
        zlib.write_all(&text).unwrap();
        deflate.write_all(&text).unwrap();
        let all = [gzip.finish(), zlib.finish(), deflate.finish()];
        for mut coded in all.map(Result::unwrap) {
            coded.extend_from_slice(b"trailing bytes count for nothing");
            for len in [1, 2, 7, 1_000, coded.len()] {
                assert_eq!(in_pieces(&coded, len, u64::MAX), (text.clone(), Vec::new()), "{len}");
            }
        }
    }

    #[test]
    fn broken_data_is_told_once_and_gives_the_same_however_it_is_cut() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&text()).unwrap();
        let mut coded = gzip.finish().unwrap();
        let middle = coded.len() / 2;
        for byte in &mut coded[middle..middle + 40] {
            *byte ^= 0x5a;
        }
        let whole = in_pieces(&coded, coded.len(), u64::MAX);
        assert_eq!(whole.1, [Decoded::Broken]);
        for len in [1, 3, 100] {
            assert_eq!(in_pieces(&coded, len, u64::MAX), whole);
        }
    }

    #[test]
    fn a_bomb_is_put_out() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(&vec![0; 1 << 20]).unwrap();
        let coded = gzip.finish().unwrap();
        for len in [1, coded.len()] {
            let (out, told) = in_pieces(&coded, len, 10_000);
            assert_eq!((out.len(), told), (10_000, vec![Decoded::TooMuch]));
        }
    }
}
