//! Packets of connections, as the carver tells them, on their way into indexes.

use std::collections::BTreeMap;
use std::io::{self, Write};

use netsniff_packet::Packet;

use super::format::{Postings, Writer};
use crate::carving::TakeCarved;

/// Bytes of numbers that are gathered before they are written.
const MOST_BYTES: usize = 256 << 20;
/// What a connection takes beside its numbers.
const COST: usize = 120;

/// Gathers the numbers of the packets of each connection, for the captures that are analysed together.
#[derive(Debug)]
pub struct Builder<W: Write> {
    files: Vec<Gathered<W>>,
    /// The file of each interface.
    interfaces: Vec<usize>,
    bytes: usize,
    most: usize,
}

/// What belongs into one index.
#[derive(Debug)]
struct Gathered<W: Write> {
    writer: Writer<W>,
    packets: u64,
    flows: BTreeMap<u128, Postings>,
}

impl<W: Write> Builder<W> {
    /// For captures whose indexes these writers write.
    #[must_use]
    pub fn new(writers: Vec<Writer<W>>) -> Self {
        let gathered = |writer| Gathered { writer, packets: 0, flows: BTreeMap::new() };
        let files = writers.into_iter().map(gathered).collect();
        Self { files, interfaces: Vec::new(), bytes: 0, most: MOST_BYTES }
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

    /// Writes what was gathered, so that its memory is free.
    fn flush(&mut self) -> io::Result<()> {
        for file in &mut self.files {
            for (name, postings) in core::mem::take(&mut file.flows) {
                file.writer.flow(name, &postings)?;
            }
        }
        self.bytes = 0;
        Ok(())
    }

    /// Writes the rest and ends the indexes. Returns the outputs.
    ///
    /// # Errors
    ///
    /// Those of the outputs.
    pub fn finish(mut self) -> io::Result<Vec<W>> {
        self.flush()?;
        self.files.into_iter().map(|file| file.writer.finish()).collect()
    }
}

impl<W: Write> TakeCarved for Builder<W> {
    const WANTS_BYTES: bool = false;

    fn packet(&mut self, packet: &Packet<'_>, flows: &[u128], _lost: u64) -> io::Result<()> {
        let file = self.interfaces.get(packet.interface as usize).copied();
        let Some(file) = file.and_then(|at| self.files.get_mut(at)) else {
            return Err(io::Error::other("a packet of an interface that no file described"));
        };
        file.packets += 1;
        for name in flows {
            let postings = file.flows.entry(*name).or_insert_with(|| {
                self.bytes += COST;
                Postings::default()
            });
            let before = postings.len();
            postings.push(file.packets);
            self.bytes += postings.len() - before;
        }
        if self.bytes > self.most { self.flush() } else { Ok(()) }
    }
}
