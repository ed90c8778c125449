//! gzip, zstd and lz4 streams, packed while they are written.

use core::fmt;
use core::str::FromStr;
use std::io::{self, Write};

use flate2::write::GzEncoder;
use lz4_flex::frame::FrameEncoder;

use crate::unpack::Compression;

/// How to pack, and how hard to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    compression: Compression,
    /// Unused by lz4.
    level: u8,
}

impl Packing {
    /// With the level that costs least: a capture is packed while the next packets come.
    #[must_use]
    pub const fn fast(compression: Compression) -> Self {
        Self { compression, level: 1 }
    }

    /// The format of compression.
    #[must_use]
    pub const fn compression(&self) -> Compression {
        self.compression
    }
}

/// `gzip`, `zstd` or `lz4`; behind a colon a level, 0 to 9 for gzip and 1 to 22 for zstd. The error
/// is a sentence.
impl FromStr for Packing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (text, None),
        };
        let (compression, levels) = match name {
            "gzip" => (Compression::Gzip, 0..=9),
            "zstd" => (Compression::Zstd, 1..=22),
            "lz4" if level.is_none() => return Ok(Self::fast(Compression::Lz4)),
            "lz4" => return Err("lz4 has no levels here: leave the level out".to_owned()),
            _ => return Err(format!("{name:?} is none of gzip, zstd and lz4")),
        };
        let Some(level) = level else { return Ok(Self::fast(compression)) };
        let level = level.parse().ok().filter(|level| levels.contains(level));
        let level = level.ok_or_else(|| {
            format!("the level of {name} is a number from {} to {}", levels.start(), levels.end())
        })?;
        Ok(Self { compression, level })
    }
}

/// Packs what is written to it, or passes it on.
pub struct Packer<W: Write>(Layer<W>);

enum Layer<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(zstd::Encoder<'static, W>),
    Lz4(Box<FrameEncoder<W>>),
}

impl<W: Write> Packer<W> {
    /// Begins a stream; `None` does not pack.
    ///
    /// # Errors
    ///
    /// Those of the encoder: no memory.
    pub fn new(output: W, packing: Option<Packing>) -> io::Result<Self> {
        let Some(Packing { compression, level }) = packing else {
            return Ok(Self(Layer::Plain(output)));
        };
        Ok(Self(match compression {
            Compression::Gzip => {
                let level = flate2::Compression::new(level.into());
                Layer::Gzip(GzEncoder::new(output, level))
            }
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(output, level.into())?;
                encoder.include_checksum(true)?;
                Layer::Zstd(encoder)
            }
            Compression::Lz4 => Layer::Lz4(Box::new(FrameEncoder::new(output))),
        }))
    }

    /// The writer that takes the compressed bytes.
    pub fn get_ref(&self) -> &W {
        match &self.0 {
            Layer::Plain(output) => output,
            Layer::Gzip(encoder) => encoder.get_ref(),
            Layer::Zstd(encoder) => encoder.get_ref(),
            Layer::Lz4(encoder) => encoder.get_ref(),
        }
    }

    /// The output. What is written to it past the packer breaks the stream.
    pub fn get_mut(&mut self) -> &mut W {
        match &mut self.0 {
            Layer::Plain(output) => output,
            Layer::Gzip(encoder) => encoder.get_mut(),
            Layer::Zstd(encoder) => encoder.get_mut(),
            Layer::Lz4(encoder) => encoder.get_mut(),
        }
    }

    /// Ends the stream, flushes the output and returns it.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn finish(self) -> io::Result<W> {
        let mut output = match self.0 {
            Layer::Plain(output) => output,
            Layer::Gzip(encoder) => encoder.finish()?,
            Layer::Zstd(encoder) => encoder.finish()?,
            Layer::Lz4(encoder) => encoder.finish().map_err(io::Error::from)?,
        };
        output.flush()?;
        Ok(output)
    }
}

impl<W: Write> Write for Packer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Layer::Plain(output) => output.write(bytes),
            Layer::Gzip(encoder) => encoder.write(bytes),
            Layer::Zstd(encoder) => encoder.write(bytes),
            Layer::Lz4(encoder) => encoder.write(bytes),
        }
    }

    /// Hands all that was written to the output, so that a reader can unpack it though the stream
    /// goes on.
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Layer::Plain(output) => output.flush(),
            Layer::Gzip(encoder) => encoder.flush(),
            Layer::Zstd(encoder) => encoder.flush(),
            Layer::Lz4(encoder) => {
                encoder.flush()?;
                // It does not flush the output, as the others do.
                encoder.get_mut().flush()
            }
        }
    }
}

impl<W: Write> fmt::Debug for Packer<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compression = match &self.0 {
            Layer::Plain(_) => None,
            Layer::Gzip(_) => Some(Compression::Gzip),
            Layer::Zstd(_) => Some(Compression::Zstd),
            Layer::Lz4(_) => Some(Compression::Lz4),
        };
        f.debug_tuple("Packer").field(&compression).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    use crate::unpack::Unpacked;

    #[test]
    fn packings_are_told_by_name_and_level() {
        let packing = |compression, level| Ok(Packing { compression, level });
        assert_eq!("gzip".parse(), packing(Compression::Gzip, 1));
        assert_eq!("gzip:0".parse(), packing(Compression::Gzip, 0));
        assert_eq!("zstd:22".parse(), packing(Compression::Zstd, 22));
        assert_eq!("lz4".parse(), packing(Compression::Lz4, 1));
        for (text, expected) in [
            ("gzip:10", "from 0 to 9"),
            ("zstd:0", "from 1 to 22"),
            ("zstd:", "from 1 to 22"),
            ("lz4:3", "no levels"),
            ("xz", "none of gzip"),
        ] {
            let error = text.parse::<Packing>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    /// What can be unpacked of a stream, to its end or to where it breaks off.
    fn unpacked(bytes: &[u8]) -> (Vec<u8>, bool) {
        let mut found = Vec::new();
        let mut input = Unpacked::new(bytes).unwrap();
        let mut piece = [0; 1000];
        loop {
            match input.read(&mut piece) {
                Ok(0) => return (found, true),
                Ok(read) => found.extend_from_slice(&piece[..read]),
                Err(_) => return (found, false),
            }
        }
    }

    #[test]
    fn what_was_flushed_can_be_unpacked_and_all_of_it_at_the_end() {
        let data: Vec<u8> = (0..200_000_u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        for name in ["gzip", "gzip:9", "zstd", "zstd:9", "lz4"] {
            let mut packer = Packer::new(Vec::new(), Some(name.parse().unwrap())).unwrap();
            packer.write_all(&data[..300_001]).unwrap();
            packer.flush().unwrap();
            let flushed = packer.get_ref().clone();
            assert_eq!(unpacked(&flushed), (data[..300_001].to_vec(), false), "{name}");
            packer.write_all(&data[300_001..]).unwrap();
            let all = packer.finish().unwrap();
            assert!(all.len() < data.len() / 2, "{name}");
            assert_eq!(unpacked(&all), (data.clone(), true), "{name}");
        }
        let mut packer = Packer::new(Vec::new(), None).unwrap();
        packer.write_all(&data).unwrap();
        assert_eq!(packer.finish().unwrap(), data);
    }
}
