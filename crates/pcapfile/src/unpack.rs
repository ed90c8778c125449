//! gzip, zstd and lz4 streams, told by their magic and unpacked while they are read.

use core::fmt;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use flate2::bufread::MultiGzDecoder;
use lz4_flex::frame::FrameDecoder;

use crate::error::Error;

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// gzip, RFC 1952, of one or several members.
    Gzip,
    /// Zstandard, RFC 8878, of one or several frames, skippable ones included.
    Zstd,
    /// The LZ4 frame format, of one or several frames.
    Lz4,
}

impl Compression {
    /// What a file's name ends with, without the dot.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Gzip => "gz",
            Self::Zstd => "zst",
            Self::Lz4 => "lz4",
        }
    }

    /// What the name of a file tells by its suffix.
    #[must_use]
    pub fn of_suffix(suffix: &str) -> Option<Self> {
        [Self::Gzip, Self::Zstd, Self::Lz4].into_iter().find(|it| it.suffix() == suffix)
    }

    fn of(head: &[u8]) -> Option<Self> {
        match *head {
            [0x1f, 0x8b, 8, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            [0x04, 0x22, 0x4d, 0x18, ..] => Some(Self::Lz4),
            _ => None,
        }
    }
}

/// `gzip`, `zstd` or `lz4`.
impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
        })
    }
}

/// Bytes that are looked at before it is decided what they are.
pub(crate) const HEAD_LEN: usize = 24;
/// Packed bytes that are read at once.
const PACKED_READ: usize = 256 * 1024;

/// An input whose first bytes were read and are still to come.
#[derive(Debug)]
pub(crate) struct Peeked<R> {
    inner: R,
    head: [u8; HEAD_LEN],
    head_len: usize,
    /// Bytes of the head that were given out.
    given: usize,
    /// Bytes that were read from `inner`.
    taken: u64,
    /// Whether `inner` failed.
    failed: bool,
}

impl<R: Read> Peeked<R> {
    /// Reads the head; the error of `inner`, with what it was, where it fails before.
    fn new(inner: R) -> Result<Self, (R, io::Error)> {
        let head = [0; HEAD_LEN];
        let mut peeked = Self { inner, head, head_len: 0, given: 0, taken: 0, failed: false };
        let mut head = [0; HEAD_LEN];
        while peeked.head_len < HEAD_LEN {
            match peeked.read_inner(&mut head[peeked.head_len..]) {
                Ok(0) => break,
                Ok(read) => peeked.head_len += read.min(HEAD_LEN - peeked.head_len),
                Err(error) => return Err((peeked.inner, error)),
            }
        }
        peeked.head = head;
        Ok(peeked)
    }

    pub(crate) fn head(&self) -> &[u8] {
        &self.head[..self.head_len]
    }

    fn read_inner(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.inner.read(buffer) {
                Ok(read) => {
                    self.taken += read as u64;
                    return Ok(read);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failed = true;
                    return Err(error);
                }
            }
        }
    }
}

impl<R: Read> Read for Peeked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given == self.head_len {
            return self.read_inner(buffer);
        }
        let read = (&self.head[self.given..self.head_len]).read(buffer)?;
        self.given += read;
        Ok(read)
    }
}

/// An input, unpacked where it is packed.
enum Layer<R: Read> {
    Plain(Peeked<R>),
    Gzip(Box<MultiGzDecoder<BufReader<Peeked<R>>>>),
    Zstd(Box<zstd::Decoder<'static, BufReader<Peeked<R>>>>),
    Lz4(Box<Lz4<Peeked<R>>>),
}

impl<R: Read> Layer<R> {
    fn new(input: Peeked<R>) -> io::Result<Self> {
        let Some(compression) = Compression::of(input.head()) else {
            return Ok(Self::Plain(input));
        };
        let buffered = BufReader::with_capacity(PACKED_READ, input);
        Ok(match compression {
            Compression::Gzip => Self::Gzip(Box::new(MultiGzDecoder::new(buffered))),
            Compression::Zstd => Self::Zstd(Box::new(zstd::Decoder::with_buffer(buffered)?)),
            Compression::Lz4 => Self::Lz4(Box::new(Lz4::new(buffered))),
        })
    }

    fn compression(&self) -> Option<Compression> {
        match self {
            Self::Plain(_) => None,
            Self::Gzip(_) => Some(Compression::Gzip),
            Self::Zstd(_) => Some(Compression::Zstd),
            Self::Lz4(_) => Some(Compression::Lz4),
        }
    }

    fn source(&self) -> &Peeked<R> {
        match self {
            Self::Plain(source) => source,
            Self::Gzip(decoder) => decoder.get_ref().get_ref(),
            Self::Zstd(decoder) => decoder.get_ref().get_ref(),
            Self::Lz4(decoder) => decoder.frames.get_ref().inner.get_ref(),
        }
    }
}

impl<R: Read> Read for Layer<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(source) => source.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
            Self::Zstd(decoder) => decoder.read(buffer),
            Self::Lz4(decoder) => decoder.read(buffer),
        }
    }
}

/// LZ4 frames, one after the other, the last of which must be whole.
struct Lz4<R: Read> {
    frames: FrameDecoder<WithTail<BufReader<R>>>,
}

/// An input that is followed by zeros when it is told so.
struct WithTail<R> {
    inner: R,
    tail: usize,
}

impl<R: BufRead> Read for WithTail<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.tail == 0 {
            return self.inner.read(buffer);
        }
        let read = self.tail.min(buffer.len());
        buffer[..read].fill(0);
        self.tail -= read;
        Ok(read)
    }
}

impl<R: Read> Lz4<R> {
    fn new(input: BufReader<R>) -> Self {
        Self { frames: FrameDecoder::new(WithTail { inner: input, tail: 0 }) }
    }

    /// Whether the input ended between frames. The decoder does not tell: it calls an end before a
    /// block an end of the frame. So it is fed zeros: inside a frame it takes four of them as the
    /// end mark and maybe four as a checksum; between frames it takes seven as a header.
    fn is_complete(&mut self) -> bool {
        const TAIL: usize = 11;
        self.frames.get_mut().tail = TAIL;
        let _ = self.frames.read(&mut [0]);
        let taken = TAIL - self.frames.get_ref().tail;
        self.frames.get_mut().tail = 0;
        taken == 7
    }
}

impl<R: Read> Read for Lz4<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.frames.read(buffer)? {
                0 if !self.frames.get_mut().inner.fill_buf()?.is_empty() => {}
                0 if self.is_complete() => return Ok(0),
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => return Ok(read),
            }
        }
    }
}

/// A file of which at most two layers of compression are taken off.
pub(crate) struct Unpacked<R: Read> {
    /// `None` behind the end: of many files that were read nothing is kept that only reading needs.
    input: Option<Box<Peeked<Layer<Layer<R>>>>>,
    compression: [Option<Compression>; 2],
    /// Bytes that were read from the file itself up to its end.
    taken: u64,
}

impl<R: Read> Unpacked<R> {
    pub(crate) fn new(input: R) -> Result<Self, Error> {
        let input = Peeked::new(input).map_err(|(_, error)| Error::Io(error))?;
        let outer = Layer::new(input)?;
        let outer = Peeked::new(outer).map_err(|(layer, error)| classify(fault(&layer), error))?;
        let inner = Layer::new(outer)?;
        let input = Peeked::new(inner).map_err(|(layer, error)| classify(fault2(&layer), error))?;
        let inner = &input.inner;
        let compression = [inner.source().inner.compression(), inner.compression()];
        Ok(Self { input: Some(Box::new(input)), compression, taken: 0 })
    }

    /// The first bytes, unpacked.
    pub(crate) fn head(&self) -> &[u8] {
        self.input.as_ref().map_or(&[], |input| input.head())
    }

    /// The layers of compression, outermost first.
    pub(crate) fn compression(&self) -> impl Iterator<Item = Compression> {
        self.compression.into_iter().flatten()
    }

    /// Bytes that were read from the file itself.
    pub(crate) fn taken(&self) -> u64 {
        self.input.as_ref().map_or(self.taken, |it| it.inner.source().inner.source().taken)
    }

    /// Which decoder failed, after a failure to read; `None` where it was the file itself.
    pub(crate) fn fault(&self) -> Option<Compression> {
        fault2(&self.input.as_ref()?.inner)
    }

    /// Closes the file, of which nothing more is read.
    pub(crate) fn close(&mut self) {
        self.taken = self.taken();
        self.input = None;
    }
}

impl<R: Read> Read for Unpacked<R> {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.as_mut().map_or(Ok(0), |input| input.read(buffer))
    }
}

fn fault<R: Read>(layer: &Layer<R>) -> Option<Compression> {
    if layer.source().failed { None } else { layer.compression() }
}

fn fault2<R: Read>(layer: &Layer<Layer<R>>) -> Option<Compression> {
    if layer.source().failed { fault(&layer.source().inner) } else { layer.compression() }
}

fn classify(fault: Option<Compression>, source: io::Error) -> Error {
    match fault {
        Some(compression) => Error::Unpack { compression, source },
        None => Error::Io(source),
    }
}
