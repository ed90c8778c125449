//! Bytes of a file or pipe as they were before gzip or zstd packed them. What ends may grow: it is read on from there.

use std::io::{self, ErrorKind, Read, Write as _};

use flate2::write::MultiGzDecoder;
use zstd::stream::raw::{DParameter, Decoder, Operation as _};

/// Bytes read at once.
const READ_SIZE: usize = 64 << 10;
/// Bytes at the begin by which a file is known to be the same still.
const HEAD: usize = 256;
/// What gzip begins with (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// What a frame of zstd begins with (RFC 8878, 3.1.1).
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// What one begins with that is passed over, but for the first byte, which is 0x50 to 0x5f (3.1.2).
const PASSED_OVER: [u8; 3] = [0x2a, 0x4d, 0x18];
/// Binary logarithm of the bytes that zstd may look back, which are held in memory: RFC 8878 (3.1.1.1.2) asks of whoever
/// unpacks for no more than 8 MiB, and `zstd -19` needs as many. Dozens of logs are read side by side.
const WINDOW_LOG: u32 = 23;

/// An input that may be packed, which its first bytes tell.
pub(super) struct Unpacked {
    input: Box<dyn Read + Send>,
    form: Form,
    head: Vec<u8>,
    /// What was read last, as it is packed, and how much of that was unpacked.
    packed: Vec<u8>,
    done: usize,
    taken: u64,
}

/// How it is packed.
enum Form {
    /// Too few bytes came to tell.
    Unknown,
    Plain,
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    Zstd(Frames),
}

/// Frames of zstd, one after the other.
struct Frames {
    decoder: Decoder<'static>,
    /// Whether one has begun that has not ended.
    is_within: bool,
    /// Whether there was no room for all that was unpacked.
    has_more: bool,
}

impl Unpacked {
    pub(super) fn new(input: impl Read + Send + 'static) -> Self {
        Self {
            input: Box::new(input),
            form: Form::Unknown,
            head: Vec::new(),
            packed: Vec::new(),
            done: 0,
            taken: 0,
        }
    }

    /// The first bytes of the input, as packed as they are.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Bytes of the input that were read, as packed as they are.
    pub(super) const fn taken(&self) -> u64 {
        self.taken
    }

    /// Reads what comes next. Nothing where there is no more by now.
    ///
    /// # Errors
    ///
    /// When it cannot be read or unpacked. Nothing more can be, then.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let rest = self.packed.get(self.done..).unwrap_or_default();
            let is_all = rest.is_empty();
            let (read, taken) = match &mut self.form {
                Form::Unknown if !self.packed.is_empty() => {
                    self.form = Form::of(&self.packed)?;
                    (0, 0)
                }
                Form::Unknown => (0, 0),
                Form::Plain if is_all => {
                    (self.packed, self.done) = (Vec::new(), 0);
                    let read = retried(|| self.input.read(into))?;
                    self.taken += read as u64;
                    return Ok(read);
                }
                form => form.unpack(rest, into)?,
            };
            self.done += taken;
            if read > 0 {
                return Ok(read);
            }
            let is_undecided = matches!(self.form, Form::Unknown);
            if (is_undecided || is_all) && !self.refill()? {
                return Ok(0);
            }
        }
    }

    /// Reads packed bytes. Returns whether there are any.
    fn refill(&mut self) -> io::Result<bool> {
        self.packed.drain(..self.done);
        self.done = 0;
        let before = self.packed.len();
        self.packed.resize(before + READ_SIZE, 0);
        let place = self.packed.get_mut(before..).unwrap_or_default();
        let read = retried(|| self.input.read(place));
        self.packed.truncate(before + *read.as_ref().unwrap_or(&0));
        if self.taken < HEAD as u64 && matches!(self.form, Form::Unknown) {
            self.head = self.packed.iter().take(HEAD).copied().collect();
        }
        let read = read?;
        self.taken += read as u64;
        Ok(read > 0)
    }

    /// Ends the reading.
    ///
    /// # Errors
    ///
    /// When a part of what is packed is missing, or has changed.
    pub(super) fn end(&mut self) -> io::Result<()> {
        let is_cut = match &mut self.form {
            Form::Unknown => !self.packed.is_empty(),
            Form::Plain => false,
            Form::Gzip(decoder) => return decoder.try_finish(),
            Form::Zstd(frames) => frames.is_within,
        };
        let error = || io::Error::new(ErrorKind::UnexpectedEof, "incomplete frame");
        if is_cut { Err(error()) } else { Ok(()) }
    }
}

impl Form {
    /// The form of what begins so.
    fn of(head: &[u8]) -> io::Result<Self> {
        let begins = |magic: &[u8]| head.iter().zip(magic).all(|(byte, other)| byte == other);
        let is_passed_over = matches!(head.first(), Some(0x50..=0x5f))
            && head.iter().skip(1).zip(PASSED_OVER).all(|(byte, other)| *byte == other);
        Ok(if begins(&GZIP) {
            if head.len() < GZIP.len() {
                return Ok(Self::Unknown);
            }
            Self::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))
        } else if begins(&ZSTD) || is_passed_over {
            if head.len() < ZSTD.len() {
                return Ok(Self::Unknown);
            }
            let mut decoder = Decoder::new()?;
            decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
            Self::Zstd(Frames { decoder, is_within: false, has_more: false })
        } else {
            Self::Plain
        })
    }

    /// Unpacks what there is room for. Returns how many bytes came of that, and of how many.
    fn unpack(&mut self, packed: &[u8], into: &mut [u8]) -> io::Result<(usize, usize)> {
        match self {
            Self::Unknown => Ok((0, 0)),
            Self::Plain => {
                let mut rest = packed;
                let read = rest.read(into)?;
                Ok((read, read))
            }
            Self::Gzip(decoder) => {
                let mut taken = 0;
                if decoder.get_ref().is_empty() {
                    // Each call unpacks a bounded number of bytes.
                    match packed {
                        [] => decoder.flush()?,
                        packed => taken = decoder.write(packed)?,
                    }
                }
                let unpacked = decoder.get_mut();
                let read = unpacked.as_slice().read(into)?;
                unpacked.drain(..read);
                Ok((read, taken))
            }
            Self::Zstd(frames) => frames.unpack(packed, into),
        }
    }
}

impl Frames {
    fn unpack(&mut self, packed: &[u8], into: &mut [u8]) -> io::Result<(usize, usize)> {
        // Whoever asks often without need gets an error.
        if packed.is_empty() && !self.has_more {
            return Ok((0, 0));
        }
        let status = self.decoder.run_on_buffers(packed, into)?;
        if status.bytes_read > 0 || status.bytes_written > 0 {
            self.is_within = status.remaining > 0;
        }
        self.has_more = status.bytes_written == into.len();
        Ok((status.bytes_written, status.bytes_read))
    }
}

/// Does it again where a signal came in between.
fn retried(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// What another thread may write to.
    #[derive(Clone, Default)]
    struct Growing(Arc<Mutex<VecDeque<u8>>>);

    impl Read for Growing {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.lock().unwrap().read(into)
        }
    }

    fn text() -> Vec<u8> {
        (0..60_000).flat_map(|at| format!("{{\"ts\":{at}}}\n").into_bytes()).collect()
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer.write_all(text).unwrap();
        packer.finish().unwrap()
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        let mut packer = zstd::Encoder::new(Vec::new(), 3).unwrap();
        // As the command does.
        packer.include_checksum(true).unwrap();
        packer.write_all(text).unwrap();
        packer.finish().unwrap()
    }

    fn all(input: &mut Unpacked) -> io::Result<Vec<u8>> {
        let (mut all, mut piece) = (Vec::new(), [0; 1000]);
        loop {
            match input.read(&mut piece)? {
                0 => return Ok(all),
                read => all.extend_from_slice(&piece[..read]),
            }
        }
    }

    #[test]
    fn packed_or_not_it_is_the_same_text() {
        let text = text();
        let passed_over = [&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &zstd(&text)];
        let (one, other) = text.split_at(text.len() / 3);
        for packed in [
            text.clone(),
            gzip(&text),
            zstd(&text),
            [gzip(one), gzip(other)].concat(),
            [zstd(one), zstd(other)].concat(),
            passed_over.concat(),
        ] {
            let mut whole = Unpacked::new(io::Cursor::new(packed.clone()));
            assert!(all(&mut whole).unwrap() == text);
            assert_eq!(whole.taken(), packed.len() as u64);
            whole.end().unwrap();
            assert_eq!(whole.head(), &packed[..HEAD]);
            // As it comes, in whichever pieces.
            let (file, mut read) = (Growing::default(), Vec::new());
            let mut grows = Unpacked::new(file.clone());
            for piece in [&packed[..1], &packed[1..3], &packed[3..5000], &packed[5000..]] {
                file.0.lock().unwrap().extend(piece);
                read.extend(all(&mut grows).unwrap());
                // However often it is asked in vain.
                (0..40).for_each(|_| assert_eq!(grows.read(&mut [0; 100]).unwrap(), 0));
            }
            assert!(read == text && grows.end().is_ok());
        }
    }

    #[test]
    fn all_that_was_packed_so_far_is_there() {
        let text = text();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&text).unwrap();
        gzip.flush().unwrap();
        let mut zstd = zstd::Encoder::new(Vec::new(), 3).unwrap();
        zstd.write_all(&text).unwrap();
        zstd.flush().unwrap();
        for packed in [gzip.get_ref(), zstd.get_ref()] {
            let mut begun = Unpacked::new(io::Cursor::new(packed.clone()));
            assert!(all(&mut begun).unwrap() == text);
            assert!(begun.end().is_err());
        }
    }

    #[test]
    fn what_is_cut_is_told_and_damage_is_an_error() {
        let text = text();
        for mut packed in [gzip(&text), zstd(&text)] {
            for length in [1, 3, 20, packed.len() / 2, packed.len() - 1] {
                let mut cut = Unpacked::new(io::Cursor::new(packed[..length].to_vec()));
                let read = all(&mut cut).unwrap();
                assert!(text.starts_with(&read) && cut.end().is_err(), "{length}");
            }
            let middle = packed.len() / 2;
            packed[middle..middle + 8].fill(0xff);
            let mut damaged = Unpacked::new(io::Cursor::new(packed));
            assert!(all(&mut damaged).is_err() || damaged.end().is_err());
        }
    }

    #[test]
    fn nobody_makes_it_look_back_further_than_memory_is_given() {
        let window = |log: u8| {
            // A frame of RFC 8878 (3.1.1): a window of that size, and one last block of one byte that stands for 9.
            [&ZSTD[..], &[0, (log - 10) << 3], &[1 | 1 << 1 | 9 << 3, 0, 0, b'x']].concat()
        };
        let read = |log| all(&mut Unpacked::new(io::Cursor::new(window(log))));
        assert_eq!(read(23).unwrap(), b"xxxxxxxxx");
        assert!(read(24).unwrap_err().to_string().contains("memory"), "{:?}", read(24));
    }

    #[test]
    fn short_texts_are_whole() {
        for text in ["", "#", "{}\n", "P\n", "_\n", "Q", "("] {
            let mut input = Unpacked::new(text.as_bytes());
            let read = all(&mut input).unwrap();
            assert!(read == text.as_bytes() || input.end().is_err(), "{text}");
        }
    }
}
