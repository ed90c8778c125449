//! Makes capture files of any shape, well-formed or not, and reads them whole.

use std::io::{self, ErrorKind, Read, Write};

use netsniff_packet::{Batch, Loss, Packet, Progress, Source};
use netsniff_pcapfile::{Damage, Interface, Reader};

/// Bytes of pcapng or classic pcap in one byte order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bytes {
    pub(crate) big_endian: bool,
    pub(crate) bytes: Vec<u8>,
}

impl Bytes {
    pub(crate) fn new(big_endian: bool) -> Self {
        Self { big_endian, bytes: Vec::new() }
    }

    pub(crate) fn short(mut self, value: u16) -> Self {
        let bytes = if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        self.bytes.extend(bytes);
        self
    }

    pub(crate) fn word(mut self, value: u32) -> Self {
        let bytes = if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
        self.bytes.extend(bytes);
        self
    }

    pub(crate) fn words(self, values: &[u32]) -> Self {
        values.iter().fold(self, |bytes, value| bytes.word(*value))
    }

    pub(crate) fn long(self, value: u64) -> Self {
        let (high, low) = ((value >> 32) as u32, value as u32);
        if self.big_endian { self.word(high).word(low) } else { self.word(low).word(high) }
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }

    pub(crate) fn pad(mut self) -> Self {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    pub(crate) fn option(self, code: u16, value: &[u8]) -> Self {
        self.short(code).short(value.len() as u16).raw(value).pad()
    }

    /// An option that is a number of 8 bytes.
    pub(crate) fn option_long(self, code: u16, value: u64) -> Self {
        self.short(code).short(8).long(value)
    }

    pub(crate) fn end_of_options(self) -> Self {
        self.word(0)
    }

    /// A block of the body that `make` writes.
    pub(crate) fn block(self, block_type: u32, make: impl FnOnce(Self) -> Self) -> Self {
        let body = make(Self::new(self.big_endian)).bytes;
        let length = body.len() as u32 + 12;
        self.word(block_type).word(length).raw(&body).word(length)
    }

    pub(crate) fn section(self) -> Self {
        let open = |body: Self| {
            let body = body.word(0x1a2b_3c4d).short(1).short(0).long(u64::MAX);
            body.option(4, b"tests").end_of_options()
        };
        self.block(0x0a0d_0d0a, open)
    }

    pub(crate) fn interface(self, link_type: u16, make: impl FnOnce(Self) -> Self) -> Self {
        self.block(1, |body| make(body.short(link_type).short(0).word(0)))
    }

    /// An enhanced packet block of a whole packet.
    pub(crate) fn packet(self, interface: u32, ticks: u64, data: &[u8]) -> Self {
        self.packet_with(interface, ticks, data, |body| body)
    }

    /// An enhanced packet block with options.
    pub(crate) fn packet_with(
        self,
        interface: u32,
        ticks: u64,
        data: &[u8],
        options: impl FnOnce(Self) -> Self,
    ) -> Self {
        let len = data.len() as u32;
        self.block(6, |body| {
            let body = body.words(&[interface, (ticks >> 32) as u32, ticks as u32, len, len]);
            options(body.raw(data).pad())
        })
    }

    /// The file header of classic pcap.
    pub(crate) fn pcap_header(self, magic: u32, version: [u16; 2], network: u32) -> Self {
        let header = self.word(magic).short(version[0]).short(version[1]);
        header.words(&[0, 0, 65_535, network])
    }
}

/// One packet, as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Read1 {
    pub(crate) nanos: i64,
    pub(crate) data: Vec<u8>,
    pub(crate) wire_len: u32,
    pub(crate) interface: u32,
    pub(crate) link_type: u16,
}

impl Read1 {
    pub(crate) fn of(packet: Packet<'_>) -> Self {
        Self {
            nanos: packet.timestamp.nanos(),
            data: packet.data.to_vec(),
            wire_len: packet.wire_len,
            interface: packet.interface,
            link_type: packet.link_type.0,
        }
    }
}

/// All that a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Whole {
    pub(crate) packets: Vec<Read1>,
    /// What was lost, with the number of packets before it.
    pub(crate) losses: Vec<(usize, Loss)>,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) damage: Vec<Damage>,
    pub(crate) position: u64,
}

/// Reads a file to its end; `None` where it is no capture.
pub(crate) fn read(input: impl Read) -> Option<Whole> {
    let mut reader = Reader::with_read_size(input, 0).ok()?;
    let mut batch = Batch::default();
    let mut whole = Whole::default();
    let mut progress = Progress::More;
    while progress == Progress::More {
        progress = reader.read_batch(&mut batch).unwrap();
        let before = whole.packets.len();
        whole.losses.extend(batch.losses.iter().map(|(at, loss)| (before + *at as usize, *loss)));
        whole.packets.extend(batch.iter().map(Read1::of));
        for record in &batch.packets {
            let end = record.offset as usize + record.captured_len as usize;
            assert!(end <= batch.data.len() && record.captured_len <= record.wire_len);
        }
    }
    assert_eq!(reader.packets(), whole.packets.len() as u64);
    whole.interfaces = reader.interfaces().to_vec();
    whole.damage = reader.damage().to_vec();
    whole.position = reader.position();
    Some(whole)
}

/// Reads a file that must be a capture.
pub(crate) fn read_whole(bytes: &[u8]) -> Whole {
    read(bytes).expect("a capture file")
}

/// A small generator of random numbers (SplitMix64), the same for the same seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Gives its bytes in pieces of random sizes, with interruptions between them.
pub(crate) struct Pieces<'a> {
    pub(crate) rest: &'a [u8],
    pub(crate) largest: usize,
    pub(crate) random: Random,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.random.below(4) == 0 {
            return Err(ErrorKind::Interrupted.into());
        }
        let wanted = 1 + self.random.below(self.largest);
        let len = wanted.min(self.rest.len()).min(buffer.len());
        let (piece, rest) = self.rest.split_at(len);
        buffer[..len].copy_from_slice(piece);
        self.rest = rest;
        Ok(len)
    }
}

/// A packet of `len` bytes.
pub(crate) fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7) as u8).collect()
}

/// A classic file of ten packets.
pub(crate) fn classic(big_endian: bool, magic: u32) -> Vec<u8> {
    let mut file = Bytes::new(big_endian).pcap_header(magic, [2, 4], 1);
    for index in 0..10 {
        let data = payload(index as usize * 13);
        let len = data.len() as u32;
        file = file.words(&[1_700_000_000 + index, 999_999, len, len + index]);
        if magic == 0xa1b2_cd34 {
            file = file.words(&[0, 0]);
        }
        file = file.raw(&data);
    }
    file.bytes
}

/// A pcapng file with every block that is read, and some that are not, in two sections.
pub(crate) fn every_block() -> Vec<u8> {
    let mut file = every_block_section(false);
    file.extend(every_block_section(true));
    file
}

fn every_block_section(big_endian: bool) -> Vec<u8> {
    let file = Bytes::new(big_endian)
        .section()
        .interface(1, |body| {
            let body = body.option(2, b"eth0").option(9, &[9]).option(11, b"\0tcp port 80");
            body.option_long(14, 1_600_000_000).end_of_options()
        })
        .interface(113, |body| body)
        .packet(0, 5_000_000_001, &payload(61))
        .packet_with(1, 1_700_000_000_000_007, &payload(0), |body| {
            body.option(2, &[2, 0, 0, 0]).option_long(4, 17).end_of_options()
        });
    let file = file.block(4, |names| names.option(1, b"\x7f\0\0\x01localhost\0").end_of_options());
    let file = file.block(3, |body| body.word(9).raw(&payload(9)).pad());
    let file = file.block(2, |body| {
        let body = body.short(1).short(3).words(&[0x6_0a24, 0x181e_4000, 5, 60]);
        body.raw(&payload(5)).pad()
    });
    let file = file.block(0x0bad, |body| body.word(32473).raw(b"custom!!"));
    let file = file.block(0x7777, |body| body.raw(&payload(8)));
    let file = file.block(5, |body| {
        let body = body.words(&[0, 1, 2]).option_long(4, 1000).option_long(5, 10);
        body.option_long(7, 2).end_of_options()
    });
    file.packet(0, 6_000_000_000, &payload(1500)).bytes
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

pub(crate) fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    // The first piece sets the size of a block.
    bytes.chunks(60_000).for_each(|piece| encoder.write_all(piece).unwrap());
    encoder.finish().unwrap()
}
