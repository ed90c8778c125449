//! Packets of connections, as the carver tells them, on their way into indexes.

use std::collections::BTreeMap;
use std::io::{self, Write};

use netsniff_analysis::key::community_id::CommunityId;
use netsniff_packet::Packet;

use super::format::{Postings, Writer};
use crate::carving::choice::community;
use crate::carving::{Carved, Flow, TakeCarved};

/// Bytes of numbers that are gathered before they are written.
pub(super) const MOST_BYTES: usize = 256 << 20;
/// What a connection takes beside its numbers.
const COST: usize = 128;

/// Gathers the numbers of the packets of each connection, for the captures that are analysed together.
#[derive(Debug)]
pub struct Builder<W: Write> {
    files: Vec<Gathered<W>>,
    /// The file of each interface.
    interfaces: Vec<usize>,
    bytes: usize,
}

/// What belongs into one index.
#[derive(Debug)]
pub(super) struct Gathered<W: Write> {
    writer: Writer<W>,
    /// Packets that were read, and those that are decided.
    read: u64,
    decided: u64,
    flows: BTreeMap<u128, Connection>,
}

/// What is gathered of a connection.
#[derive(Debug)]
struct Connection {
    /// A hash of its Community ID.
    community: u64,
    postings: Postings,
    /// Numbers of packets that were decided after later ones.
    late: Vec<u64>,
}

impl Connection {
    /// Of a flow of which there is no packet yet.
    fn new(flow: &Flow) -> Self {
        let id = flow.key.map(|key| community(&CommunityId::of(&key)));
        let (postings, late) = (Postings::default(), Vec::new());
        Self { community: id.unwrap_or_default(), postings, late }
    }

    /// Adds a packet. Returns the bytes of memory that it took.
    fn add(&mut self, number: u64) -> usize {
        if number < self.postings.last() {
            self.late.push(number);
            return size_of::<u64>() * 2;
        }
        let before = self.postings.len();
        self.postings.push(number);
        self.postings.len() - before
    }

    /// The numbers of all packets.
    fn postings(mut self) -> Postings {
        if self.late.is_empty() { self.postings } else { self.postings.with(&mut self.late) }
    }
}

impl<W: Write> Gathered<W> {
    /// For the index that this writer writes.
    pub(super) const fn new(writer: Writer<W>) -> Self {
        Self { writer, read: 0, decided: 0, flows: BTreeMap::new() }
    }

    /// The number of the packet that comes next in the capture.
    pub(super) const fn number(&mut self) -> u64 {
        self.read += 1;
        self.read
    }

    /// Packets that are decided.
    pub(super) const fn decided(&self) -> u64 {
        self.decided
    }

    /// Takes the flows of a packet. Returns the bytes of memory that it took.
    pub(super) fn packet(&mut self, number: u64, flows: &[Flow]) -> usize {
        self.decided += 1;
        let mut bytes = 0;
        for flow in flows {
            let connection = self.flows.entry(flow.name).or_insert_with(|| {
                bytes += COST;
                Connection::new(flow)
            });
            bytes += connection.add(number);
        }
        bytes
    }

    /// Writes what was gathered, so that its memory is free.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        for (name, connection) in core::mem::take(&mut self.flows) {
            self.writer.flow(name, connection.community, &connection.postings())?;
        }
        self.writer.flush()
    }

    /// Writes the rest and ends the index. Returns the output.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        self.writer.finish()
    }
}

impl<W: Write> Builder<W> {
    /// For captures whose indexes these writers write.
    #[must_use]
    pub fn new(writers: Vec<Writer<W>>) -> Self {
        let files = writers.into_iter().map(Gathered::new).collect();
        Self { files, interfaces: Vec::new(), bytes: 0 }
    }

    /// Tells the file that the next interface is of.
    pub fn add_interface(&mut self, file: usize) {
        self.interfaces.push(file);
    }

    /// How many interfaces were told.
    #[must_use]
    pub const fn interfaces(&self) -> usize {
        self.interfaces.len()
    }

    /// The file that a packet is of.
    fn file_of(&mut self, packet: &Packet<'_>) -> Option<&mut Gathered<W>> {
        let file = *self.interfaces.get(packet.interface as usize)?;
        self.files.get_mut(file)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.bytes = 0;
        self.files.iter_mut().try_for_each(Gathered::flush)
    }

    /// Writes the rest and ends the indexes. Returns the outputs.
    ///
    /// # Errors
    ///
    /// Those of the outputs.
    pub fn finish(self) -> io::Result<Vec<W>> {
        self.files.into_iter().map(Gathered::finish).collect()
    }
}

impl<W: Write> TakeCarved for Builder<W> {
    const NUMBERS_ONLY: bool = true;

    fn number(&mut self, packet: &Packet<'_>) -> u64 {
        self.file_of(packet).map_or(0, Gathered::number)
    }

    fn packet(&mut self, carved: &Carved<'_>) -> io::Result<()> {
        let Some(file) = self.file_of(&carved.packet) else {
            return Err(io::Error::other("a packet of an interface that no file described"));
        };
        self.bytes += file.packet(carved.number, carved.flows);
        if self.bytes > MOST_BYTES { self.flush() } else { Ok(()) }
    }
}
