//! Packets that tell their number, and reading recordings back.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use netsniff_packet::{Batch, LinkType, Loss, Packet, Progress, Source as _, Timestamp};
use netsniff_pcapfile::{Damage, Interface, Reader};
use netsniff_pipeline::recording::options::Options;
use netsniff_testing::{Need, skip};

/// When the first packet is seen: 2026-11-22 13:00:00 UTC.
pub(crate) const START: i64 = 1_795_352_400_000_000_000;
/// Nanoseconds from packet to packet.
pub(crate) const GAP: i64 = 1_000_000;

/// A folder that is removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("netsniff-recording-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Its files in the order of their names.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The bytes of the packet of this number: 40 to 1039 of them, which begin with the number.
pub(crate) fn bytes(number: u64) -> Vec<u8> {
    let len = 40 + (number.wrapping_mul(7919) % 1000) as usize;
    let mut bytes = number.to_be_bytes().repeat(len.div_ceil(8));
    bytes.truncate(len);
    bytes
}

pub(crate) fn packet(number: u64, data: &[u8]) -> Packet<'_> {
    Packet {
        timestamp: Timestamp::from_nanos(START + number as i64 * GAP),
        data,
        wire_len: data.len() as u32,
        link_type: LinkType::ETHERNET,
        interface: 0,
    }
}

pub(crate) fn start() -> Timestamp {
    Timestamp::from_nanos(START)
}

/// One interface, small buffers.
pub(crate) fn options(output: PathBuf) -> Options {
    let interface =
        Interface { name: Some("eth7".to_owned()), ..Interface::new(LinkType::ETHERNET, 0) };
    // A buffer is never smaller than a packet can be.
    let snaplen = 2000;
    Options { buffer_bytes: 65_536, buffers: 4, snaplen, ..Options::new(output, vec![interface]) }
}

/// What a file holds.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// The numbers of its packets.
    pub(crate) numbers: Vec<u64>,
    /// What was lost, each with the number of packets before it.
    pub(crate) losses: Vec<(usize, Loss)>,
    pub(crate) captured: u64,
    pub(crate) wire: u64,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) damage: Vec<Damage>,
}

/// Reads a recording of numbered packets, and holds each packet's bytes and time against its number.
pub(crate) fn read(path: &Path) -> Found {
    let file = fs::File::open(path).unwrap();
    let mut reader = match Reader::new(file) {
        Ok(reader) => reader,
        // Killed before the first bytes were out.
        Err(netsniff_pcapfile::Error::Empty) => return Found::default(),
        Err(error) => panic!("{}: {error}", path.display()),
    };
    let (mut found, mut batch) = (Found::default(), Batch::default());
    loop {
        let progress = reader.read_batch(&mut batch).unwrap();
        let before = found.numbers.len();
        found.losses.extend(batch.losses.iter().map(|(at, loss)| (before + *at as usize, *loss)));
        for read in batch.iter() {
            let number = u64::from_be_bytes(*read.data.first_chunk().unwrap());
            let data = bytes(number);
            assert_eq!(read.wire_len as usize, data.len());
            assert!(data.starts_with(read.data), "packet {number} of {}", path.display());
            assert_eq!(read.timestamp, packet(number, &data).timestamp);
            found.numbers.push(number);
            found.captured += read.data.len() as u64;
            found.wire += u64::from(read.wire_len);
        }
        if progress == Progress::End {
            break;
        }
    }
    found.interfaces = reader.interfaces().to_vec();
    found.damage = reader.damage().to_vec();
    found
}

/// Runs a program of others; `None`, and a line that says so, where it is missing.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Option<std::process::Output> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => Some(output),
        Err(_) => {
            skip(Need::Program(program), "it is not installed");
            None
        }
    }
}
