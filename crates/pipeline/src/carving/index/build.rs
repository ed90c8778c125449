//! Packets of connections, as the carver tells them, on their way into indexes.

use std::collections::BTreeMap;
use std::io::{self, Write};

use netsniff_analysis::key::community_id::CommunityId;

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
    packets: u64,
    flows: BTreeMap<u128, Connection>,
}

/// What is gathered of a connection.
#[derive(Debug)]
struct Connection {
    /// A hash of its Community ID.
    community: u64,
    postings: Postings,
}

impl<W: Write> Gathered<W> {
    /// For the index that this writer writes.
    pub(super) const fn new(writer: Writer<W>) -> Self {
        Self { writer, packets: 0, flows: BTreeMap::new() }
    }

    /// Packets so far.
    pub(super) const fn packets(&self) -> u64 {
        self.packets
    }

    /// Takes the flows of the next packet. Returns the bytes of memory that it took.
    pub(super) fn packet(&mut self, flows: &[Flow]) -> usize {
        self.packets += 1;
        let mut bytes = 0;
        for flow in flows {
            let Connection { postings, .. } = self.flows.entry(flow.name).or_insert_with(|| {
                bytes += COST;
                let id = flow.key.map(|key| community(&CommunityId::of(&key)));
                Connection { community: id.unwrap_or_default(), postings: Postings::default() }
            });
            let before = postings.len();
            postings.push(self.packets);
            bytes += postings.len() - before;
        }
        bytes
    }

    /// Writes what was gathered, so that its memory is free.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        for (name, Connection { community, postings }) in core::mem::take(&mut self.flows) {
            self.writer.flow(name, community, &postings)?;
        }
        Ok(())
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
    const WANTS_BYTES: bool = false;

    fn packet(&mut self, carved: &Carved<'_>) -> io::Result<()> {
        let file = self.interfaces.get(carved.packet.interface as usize).copied();
        let Some(file) = file.and_then(|at| self.files.get_mut(at)) else {
            return Err(io::Error::other("a packet of an interface that no file described"));
        };
        self.bytes += file.packet(carved.flows);
        if self.bytes > MOST_BYTES { self.flush() } else { Ok(()) }
    }
}
