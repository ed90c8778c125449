//! Reads a capture file, of any format known here, a large piece at a time.

use std::io::{ErrorKind, Read};

use netsniff_packet::{Batch, Progress, Source};

use crate::Compression;
use crate::classic::{self, Classic, Variant};
use crate::error::{Damage, DamageKind, DamageLog, Error, Hex};
use crate::interface::Interface;
use crate::pcapng::{self, Pcapng, Section};
use crate::scan::{Scanned, Sink};
use crate::unpack::{HEAD_LEN, Unpacked};

/// The format of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Classic pcap.
    Pcap(Variant),
    /// pcapng.
    Pcapng {
        /// Numbers of the first section are stored with their most significant byte first.
        big_endian: bool,
    },
}

/// Reads packets from a capture file.
///
/// The file goes in large reads straight into the buffer of the caller's [`Batch`], and the packets
/// are places in that buffer. Only a packet that is not yet whole at the end of a read is copied, to
/// the front of the next batch. A batch that is handed in again is overwritten, not cleared, so its
/// `data` is as long as the largest read and holds more than the packets.
///
/// Memory is bounded by the read size, or by the largest record that was accepted, whatever the size
/// of the file. A pipe is read as it fills: each call returns what one `read` gave, once that holds
/// a whole record.
pub struct Reader<R: Read> {
    input: Unpacked<R>,
    scanner: Scanner,
    read_size: usize,
    /// Bytes that were read and not scanned: what follows the last whole record.
    carry: Vec<u8>,
    /// Bytes that the next record has at least.
    needed: usize,
    /// Bytes of the file that were scanned.
    position: u64,
    packets: u64,
    damage: DamageLog,
    keeps_notes: bool,
    state: State,
    /// What a decoder said when it could not go on.
    fault: Option<(Compression, String)>,
}

/// Whether there is more to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Reading,
    /// After damage that nothing helps: the rest is only counted.
    Skipping,
    Ended,
}

/// The format's own part of reading.
#[derive(Debug)]
enum Scanner {
    Classic(Box<Classic>),
    Pcapng { big_endian: bool, blocks: Pcapng },
}

impl<R: Read> Reader<R> {
    /// Bytes that are read at once, unless asked otherwise. Large enough to make system calls cheap,
    /// and small enough that the bytes are still in a core's cache when they are looked at: a file
    /// of 1.1 GB took a fifth less time than with 1 MiB.
    pub const READ_SIZE: usize = 256 << 10;
    /// The fewest bytes that are read at once.
    pub const MIN_READ_SIZE: usize = 4096;

    /// Reads the first bytes and tells the format by them.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where reading fails; the other errors say what the input is instead of a
    /// capture file.
    pub fn new(input: R) -> Result<Self, Error> {
        Self::with_read_size(input, Self::READ_SIZE)
    }

    /// Like [`Reader::new`], with the number of bytes to read at once.
    ///
    /// # Errors
    ///
    /// Those of [`Reader::new`].
    pub fn with_read_size(input: R, read_size: usize) -> Result<Self, Error> {
        let input = Unpacked::new(input)?;
        let scanner = Scanner::of(input.head())?;
        let mut reader = Self {
            input,
            scanner,
            read_size: read_size.max(Self::MIN_READ_SIZE),
            carry: Vec::new(),
            needed: 1,
            position: 0,
            packets: 0,
            damage: DamageLog::default(),
            keeps_notes: false,
            state: State::Reading,
            fault: None,
        };
        reader.skip_file_header()?;
        Ok(reader)
    }

    /// Puts into batches what the file tells besides packets: [`Batch::notes`].
    pub const fn keep_notes(&mut self) {
        self.keeps_notes = true;
    }

    /// The format of the file.
    #[must_use]
    pub fn format(&self) -> Format {
        match &self.scanner {
            Scanner::Classic(classic) => Format::Pcap(classic.variant),
            Scanner::Pcapng { big_endian, .. } => Format::Pcapng { big_endian: *big_endian },
        }
    }

    /// How the file is packed: the layers of compression, outermost first; none for a plain file.
    pub fn compression(&self) -> impl Iterator<Item = Compression> {
        self.input.compression()
    }

    /// The interfaces that were described so far, at the number that packets give.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        match &self.scanner {
            Scanner::Classic(classic) => &classic.interface,
            Scanner::Pcapng { blocks, .. } => &blocks.interfaces,
        }
    }

    /// What the sections (pcapng) say of the capturing machine, those of the first 1024.
    #[must_use]
    pub fn sections(&self) -> &[Section] {
        match &self.scanner {
            Scanner::Classic(_) => &[],
            Scanner::Pcapng { blocks, .. } => &blocks.sections,
        }
    }

    /// Sections (pcapng) that began so far: interfaces of each are numbered anew.
    #[must_use]
    pub fn section_count(&self) -> u64 {
        match &self.scanner {
            Scanner::Classic(_) => 0,
            Scanner::Pcapng { blocks, .. } => blocks.section_count,
        }
    }

    /// Packets that the file gives no time (simple packet blocks). They were given the time of the
    /// packet before, or the epoch where there was none.
    #[must_use]
    pub fn untimed(&self) -> u64 {
        match &self.scanner {
            Scanner::Classic(_) => 0,
            Scanner::Pcapng { blocks, .. } => blocks.untimed,
        }
    }

    /// The first places that were found damaged.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        self.damage.places()
    }

    /// How many places were found damaged, those included that are not kept.
    #[must_use]
    pub fn damage_count(&self) -> u64 {
        self.damage.count()
    }

    /// Packets that were read so far.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Bytes that were read so far from the file itself, before unpacking: for showing progress.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.input.taken()
    }

    /// Bytes that were scanned so far, after unpacking.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Lowers the number of bytes that are read at once.
    pub(crate) fn limit_read_size(&mut self, bytes: usize) {
        self.read_size = self.read_size.min(bytes).max(Self::MIN_READ_SIZE);
    }

    fn skip_file_header(&mut self) -> Result<(), Error> {
        match &self.scanner {
            // The section header is a block like others, and longer than the head: a first read of
            // the head alone would be of no use.
            Scanner::Pcapng { .. } => self.needed = HEAD_LEN + 1,
            Scanner::Classic(_) => {
                // The head holds it, so this cannot end early.
                self.input.read_exact(&mut [0; classic::FILE_HEADER_LEN])?;
                self.position = classic::FILE_HEADER_LEN as u64;
            }
        }
        Ok(())
    }

    /// Reads until `data` holds the bytes that the next record needs at least, or the input ends.
    /// Returns how many bytes of `data` are filled.
    fn fill(&mut self, data: &mut Vec<u8>) -> Result<usize, Error> {
        if data.len() < self.read_size {
            data.resize(self.read_size, 0);
        } else if data.len() > 4 * self.read_size && self.needed < self.read_size {
            // The buffer of a giant record is given back.
            data.truncate(self.read_size.max(self.carry.len()));
            data.shrink_to_fit();
        }
        let mut filled = self.carry.len();
        if filled >= data.len() {
            data.resize(filled + self.read_size, 0);
        }
        data[..filled].copy_from_slice(&self.carry);
        self.carry.clear();
        loop {
            match self.input.read(&mut data[filled..]) {
                Ok(0) => {
                    self.state = State::Ended;
                    return Ok(filled);
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    let Some(compression) = self.input.fault() else {
                        return Err(Error::Io(error));
                    };
                    self.state = State::Ended;
                    self.fault = Some((compression, error.to_string()));
                    return Ok(filled);
                }
            }
            if filled >= self.needed {
                return Ok(filled);
            }
            if filled == data.len() {
                // Grows with what arrives, since a length in a header proves nothing.
                let wanted = self.needed.min(filled.saturating_mul(2));
                data.resize(wanted.max(filled + 1), 0);
            }
        }
    }

    /// Scans the filled part of a batch and keeps what is left for the next one.
    fn scan(&mut self, batch: &mut Batch, filled: usize) {
        let data = batch.data.get(..filled).unwrap_or_default();
        let mut sink = Sink {
            packets: &mut batch.packets,
            losses: &mut batch.losses,
            notes: self.keeps_notes.then_some(&mut batch.notes),
            damage: &mut self.damage,
            packets_before: self.packets,
            bytes_before: self.position,
            at_end: self.state == State::Ended,
        };
        let Scanned { consumed, needed, stopped } = match &mut self.scanner {
            Scanner::Classic(classic) => classic.scan(data, &mut sink),
            Scanner::Pcapng { blocks, .. } => blocks.scan(data, &mut sink),
        };
        let rest = data.get(consumed..).unwrap_or_default();
        self.packets += batch.packets.len() as u64;
        self.position += consumed as u64;
        self.needed = needed;
        if stopped {
            self.skip(rest.len());
        } else if self.state == State::Ended {
            self.note_end(rest.len());
        } else {
            self.carry.extend_from_slice(rest);
        }
    }

    /// Notes why the input ended, if it should not have ended here.
    fn note_end(&mut self, left: usize) {
        let present = left as u64;
        let kind = match self.fault.take() {
            Some((compression, message)) => DamageKind::Unpack { compression, message },
            None if left == 0 => return,
            None => DamageKind::Truncated { needed: self.needed as u64, present },
        };
        let (packet, offset) = (self.packets + 1, self.position);
        self.damage.push(Damage { packet, offset, skipped: present, kind });
    }

    fn skip(&mut self, bytes: usize) {
        self.damage.skip(bytes as u64);
        self.position += bytes as u64;
        if self.state == State::Reading {
            self.state = State::Skipping;
        }
    }
}

impl<R: Read> Source for Reader<R> {
    type Error = Error;

    fn read_batch(&mut self, batch: &mut Batch) -> Result<Progress, Error> {
        batch.clear_packets();
        if self.state != State::Ended {
            let skipping = self.state == State::Skipping;
            let filled = self.fill(&mut batch.data)?;
            if skipping {
                self.skip(filled);
            } else {
                self.scan(batch, filled);
            }
            if self.state == State::Ended {
                self.input.close();
                self.carry = Vec::new();
            }
        }
        Ok(if self.state == State::Ended { Progress::End } else { Progress::More })
    }
}

impl<R: Read> core::fmt::Debug for Reader<R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Reader")
            .field("format", &self.format())
            .field("packets", &self.packets)
            .field("position", &self.position)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Scanner {
    /// Tells the format by the first bytes of a file.
    fn of(head: &[u8]) -> Result<Self, Error> {
        let Some(magic) = head.first_chunk::<4>() else {
            return Err(unknown(head));
        };
        if let Some(variant) = Variant::of(*magic) {
            let header = head.first_chunk().ok_or(Error::ShortHeader {
                present: head.len(),
                needed: classic::FILE_HEADER_LEN,
            })?;
            return Ok(Self::Classic(Box::new(Classic::new(variant, header))));
        }
        if let Some(big_endian) = pcapng::begins(head) {
            return Ok(Self::Pcapng { big_endian, blocks: Pcapng::default() });
        }
        Err(unknown(head))
    }
}

/// What a file is that is no capture.
fn unknown(head: &[u8]) -> Error {
    const KNOWN: [(&[u8], &str); 10] = [
        (b"\x1f\x8b", "gzip data, packed in a way not supported here"),
        (b"\x28\xb5\x2f\xfd", "zstd data, packed more than twice"),
        (b"\x04\x22\x4d\x18", "lz4 data, packed more than twice"),
        (b"\xfd7zXZ\0", "xz data"),
        (b"BZh", "bzip2 data"),
        (b"PK\x03\x04", "a zip archive"),
        (b"snoop\0\0\0", "a snoop capture"),
        (b"\x7fELF", "a program (ELF)"),
        (b"RTSS", "a NetMon capture"),
        (b"TRSNIFF", "a Sniffer capture"),
    ];
    if head.is_empty() {
        return Error::Empty;
    }
    if let Some((_, name)) = KNOWN.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Error::Other(name);
    }
    let printable = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n');
    if head.iter().all(printable) {
        return Error::Text(String::from_utf8_lossy(head).into_owned());
    }
    Error::UnknownMagic(Hex::new(head))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// A little-endian microsecond file of packets with the given captured and wire lengths.
    fn file(packets: &[(u32, u32)]) -> Vec<u8> {
        let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([0, 0, 4, 0, 1, 0, 0, 0]);
        for (index, &(captured, wire)) in packets.iter().enumerate() {
            for word in [1_700_000_000 + index as u32, 5, captured, wire] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend((0..captured).map(|byte| byte as u8));
        }
        bytes
    }

    /// The captured lengths of all packets, and the reader after its end.
    fn read(input: impl Read) -> (Vec<u32>, Reader<impl Read>) {
        let mut reader = Reader::with_read_size(input, 0).unwrap();
        let mut batch = Batch::default();
        let mut lengths = Vec::new();
        loop {
            let progress = reader.read_batch(&mut batch).unwrap();
            for packet in batch.iter() {
                assert!(packet.data.iter().enumerate().all(|(at, byte)| *byte == at as u8));
                lengths.push(packet.data.len() as u32);
            }
            if progress == Progress::End {
                return (lengths, reader);
            }
        }
    }

    #[test]
    fn packets_larger_than_a_read_are_whole() {
        let bytes = file(&[(60, 60), (262_144, 300_000), (0, 0), (9000, 9000)]);
        let (lengths, reader) = read(&*bytes);
        assert_eq!(lengths, [60, 262_144, 0, 9000]);
        assert_eq!((reader.position(), reader.damage_count()), (bytes.len() as u64, 0));
    }

    /// An input whose end others see.
    struct Watched(
        std::io::Cursor<Vec<u8>>,
        #[expect(dead_code, reason = "it is counted")] Arc<()>,
    );

    impl Read for Watched {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(buffer)
        }
    }

    #[test]
    fn behind_the_end_nothing_is_open_and_all_is_known() {
        let plain = file(&[(60, 60), (100, 100)]);
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packer, &plain).unwrap();
        for (bytes, layers) in [(plain, 0), (packer.finish().unwrap(), 1)] {
            let (open, len) = (Arc::new(()), bytes.len() as u64);
            let (lengths, mut reader) =
                read(Watched(std::io::Cursor::new(bytes), Arc::clone(&open)));
            assert_eq!((lengths.as_slice(), Arc::strong_count(&open)), (&[60, 100][..], 1));
            assert_eq!((reader.bytes_read(), reader.packets()), (len, 2));
            assert_eq!(reader.compression().count(), layers);
            let mut batch = Batch::default();
            assert_eq!(reader.read_batch(&mut batch).unwrap(), Progress::End);
            assert!(batch.packets.is_empty());
        }
    }

    /// Gives one piece at each read.
    struct OneByOne<'a>(std::vec::IntoIter<&'a [u8]>);

    impl Read for OneByOne<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0.next().unwrap_or_default().read(buffer)
        }
    }

    #[test]
    fn a_pipe_gives_each_packet_as_it_comes() {
        let bytes = file(&[(60, 60), (61, 61)]);
        let (header, packets) = bytes.split_at(24);
        let (first, second) = packets.split_at(76);
        // What does not complete a packet is waited for, not handed out as one empty batch a piece.
        let pieces = vec![header, first, &second[..30], &second[30..40], &second[40..]];
        let mut reader = Reader::new(OneByOne(pieces.into_iter())).unwrap();
        let mut batch = Batch::default();
        for expected in [vec![60], vec![], vec![61]] {
            assert_eq!(reader.read_batch(&mut batch).unwrap(), Progress::More);
            let lengths: Vec<_> = batch.iter().map(|packet| packet.data.len()).collect();
            assert_eq!(lengths, expected);
        }
        assert_eq!(reader.read_batch(&mut batch).unwrap(), Progress::End);
        assert_eq!(reader.read_batch(&mut batch).unwrap(), Progress::End);
        assert!(batch.packets.is_empty());
    }

    #[test]
    fn a_failing_input_is_an_error_behind_its_packets() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("a broken disk"))
            }
        }
        let bytes = file(&[(60, 60)]);
        let mut reader = Reader::new(Read::chain(&*bytes, Failing)).unwrap();
        let mut batch = Batch::default();
        assert_eq!(reader.read_batch(&mut batch).unwrap(), Progress::More);
        assert_eq!(batch.packets.len(), 1);
        let error = reader.read_batch(&mut batch).unwrap_err().to_string();
        assert_eq!(error, "cannot read: a broken disk");
    }

    #[test]
    fn a_cut_packet_is_left_out_and_said() {
        let bytes = file(&[(60, 60), (60, 60)]);
        let (lengths, reader) = read(&bytes[..bytes.len() - 1]);
        assert_eq!(lengths, [60]);
        let damage = &reader.damage()[0];
        assert_eq!((damage.packet, damage.offset, damage.skipped), (2, 24 + 76, 75));
        assert_eq!(
            damage.to_string(),
            "packet 2 at byte 100: the file ends within it (75 of at least 76 bytes); \
             it was left out"
        );
    }

    #[test]
    fn an_impossible_length_stops_and_the_rest_is_counted() {
        let mut bytes = file(&[(60, 60), (0, 0)]);
        let at = bytes.len() - 8;
        bytes[at..at + 4].fill(0xff);
        bytes.extend([0; 10_000]);
        let (lengths, reader) = read(&*bytes);
        assert_eq!(lengths, [60]);
        let kind = DamageKind::CapturedLength { captured: u32::MAX, limit: 262_144 };
        assert_eq!(reader.damage(), [Damage { packet: 2, offset: 100, skipped: 10_016, kind }]);
    }

    #[test]
    fn what_is_no_capture_is_named() {
        let said = |bytes: &[u8]| Reader::new(bytes).unwrap_err().to_string();
        assert_eq!(said(b""), "the file is empty");
        assert!(said(b"Hello, world\n").starts_with("a text file"));
        assert!(said(&[1, 2, 3, 0xff]).ends_with("begins with the bytes 01 02 03 ff"));
        assert!(said(b"PK\x03\x04\0\0").starts_with("a zip archive"));
        assert!(said(&file(&[])[..20]).starts_with("the file ends after 20 bytes"));
    }
}
