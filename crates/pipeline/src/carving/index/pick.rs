//! Packets of chosen connections out of excerpts, by their numbers.

use std::collections::BTreeSet;
use std::io;

use netsniff_packet::{Batch, Note};

use super::excerpt::Numbers;
use super::wanted::{InOrder, Wanted};
use crate::carving::choice::PacketChoice;
use crate::carving::{Carved, CarvingStatistics, Flow, TakeCarved, lost_before};

/// Connections that a packet may be of: with all tunnels around it, it is of few.
const MOST_FLOWS: usize = 256;

/// What is picked out of one capture.
#[derive(Debug)]
pub struct Picked {
    /// The numbers of the packets that its excerpt has.
    numbers: Numbers,
    wanted: Wanted,
    /// Those of the wanted packets that are still to come.
    order: InOrder,
}

impl Picked {
    /// Wanted packets out of an excerpt with packets of these `numbers`.
    #[must_use]
    pub fn new(numbers: Numbers, wanted: Wanted) -> Self {
        Self { numbers, order: wanted.in_order(), wanted }
    }

    /// Puts the wanted flows of the next packet into `flows`; `None` where there should be none, or they are too many.
    fn next(&mut self, flows: &mut Vec<Flow>) -> Option<()> {
        let number = self.numbers.next()?;
        flows.clear();
        while let Some(name) = self.order.next_up_to(number, &self.wanted) {
            flows.push(Flow { name, key: None });
            if flows.len() > MOST_FLOWS {
                return None;
            }
        }
        Some(())
    }
}

/// Picks packets out of captures that are read as one.
#[derive(Debug)]
pub struct Picker {
    files: Vec<Picked>,
    packets: PacketChoice,
    lost: u64,
    flows: Vec<Flow>,
    comments: Vec<String>,
    statistics: CarvingStatistics,
    /// The flows of which there was a packet.
    found: BTreeSet<u128>,
}

impl Picker {
    /// Picks those of these packets that `packets` wants.
    #[must_use]
    pub fn new(files: Vec<Picked>, packets: PacketChoice) -> Self {
        Self {
            files,
            packets,
            lost: 0,
            flows: Vec::new(),
            comments: Vec::new(),
            statistics: CarvingStatistics::default(),
            found: BTreeSet::new(),
        }
    }

    /// Takes the packets of a batch; `file_of` tells the file of an interface.
    ///
    /// # Errors
    ///
    /// Those of `taker`, and a capture that is not what its index says.
    pub fn batch<T: TakeCarved>(
        &mut self,
        batch: &Batch,
        file_of: &[usize],
        taker: &mut T,
    ) -> io::Result<()> {
        let mut losses = batch.losses.iter().peekable();
        let mut notes = batch.notes.iter().peekable();
        for (at, packet) in batch.iter().enumerate() {
            while let Some((_, loss)) = losses.next_if(|(place, _)| *place as usize <= at) {
                self.lost = self.lost.saturating_add(lost_before(loss, file_of.len()));
            }
            self.comments.clear();
            while let Some((_, note)) = notes.next_if(|(place, _)| *place as usize <= at) {
                self.note(note, taker)?;
            }
            self.statistics.read += 1;
            let file = file_of.get(packet.interface as usize);
            let file = file.and_then(|file| self.files.get_mut(*file));
            if file.and_then(|file| file.next(&mut self.flows)).is_none() {
                return Err(io::Error::other("a capture has other packets than its index says"));
            }
            self.found.extend(self.flows.iter().map(|flow| flow.name));
            if self.flows.is_empty() || !self.packets.wants(&packet) {
                continue;
            }
            self.statistics.packets += 1;
            let (flows, comments) = (&self.flows[..], &self.comments[..]);
            let (lost, is_hurried) = (core::mem::take(&mut self.lost), false);
            taker.packet(&Carved { packet, number: 0, flows, lost, comments, is_hurried })?;
        }
        for (_, loss) in losses {
            self.lost = self.lost.saturating_add(lost_before(loss, file_of.len()));
        }
        notes.try_for_each(|(_, note)| self.note(note, taker))
    }

    fn note<T: TakeCarved>(&mut self, note: &Note, taker: &mut T) -> io::Result<()> {
        match note {
            Note::Comment(text) => self.comments.push(text.clone()),
            Note::Block(block) => taker.block(block)?,
        }
        Ok(())
    }

    /// What was picked, and the flows of which there was a packet.
    ///
    /// # Errors
    ///
    /// Packets that the index has and the capture does not.
    pub fn finish(self) -> io::Result<(CarvingStatistics, BTreeSet<u128>)> {
        if self.files.iter().any(|file| !file.order.is_at_end()) {
            return Err(io::Error::other("a capture has fewer packets than its index says"));
        }
        Ok((self.statistics, self.found))
    }
}
