//! Files as parts of one analysis (`--jobs`): each is opened once more by the thread that analyses it.

use std::path::PathBuf;

use netsniff_analysis::engine::decoding::Intake;
use netsniff_analysis::ingress::Unparsed;
use netsniff_packet::{Batch, Packet, Timestamp};
use netsniff_pcapfile::{Head, Reader};
use netsniff_pipeline::{AttendParts, OpenPart, PartIntake, PartReading, PartSource};

use super::file_analysis::Attendant;
use super::selection::Selection;
use crate::commands::inputs::{Input, Inputs, open_again};

/// Bytes of packets that were not understood, of one file, that may wait until it is its turn.
const UNPARSED_BYTES: usize = 4 << 20;
/// The same as a number of packets.
const UNPARSED_PACKETS: usize = 1 << 16;

/// The files, and which packets of them are wanted.
pub(super) struct Parts {
    paths: Vec<PathBuf>,
    selection: Selection,
    read_size: usize,
    /// Whether packets that were not understood are kept.
    keeps_unparsed: bool,
}

impl Parts {
    /// The files of `inputs`, to be read in pieces of `read_size` bytes.
    pub(super) fn of(
        inputs: &Inputs,
        selection: &Selection,
        read_size: usize,
        keeps_unparsed: bool,
    ) -> Self {
        Self { paths: inputs.paths(), selection: selection.same(), read_size, keeps_unparsed }
    }
}

impl OpenPart for Parts {
    type Source = Reader<Input>;
    type Intake = Kept;

    fn open(&self, part: usize, purpose: PartReading) -> Option<(Reader<Input>, Kept)> {
        let reader = open_again(self.paths.get(part)?, self.read_size)?;
        let keeps = self.keeps_unparsed && purpose == PartReading::Analysis;
        let unparsed = keeps.then(Default::default);
        Some((reader, Kept { selection: self.selection.same(), unparsed }))
    }
}

/// What was found in the packets of one file, until it is its turn.
pub(super) struct Kept {
    selection: Selection,
    /// Packets that were not understood, with the reasons, where they are wanted.
    unparsed: Option<(Batch, Vec<Unparsed>)>,
}

impl Intake for Kept {
    #[inline]
    fn wants(&mut self, packet: &Packet<'_>) -> bool {
        self.selection.wants(packet)
    }

    fn unparsed(&mut self, packet: &Packet<'_>, why: &Unparsed) {
        if let Some((packets, reasons)) = &mut self.unparsed
            && packets.push(packet)
        {
            reasons.push(*why);
        }
    }
}

impl PartIntake for Kept {
    fn is_full(&self) -> bool {
        self.unparsed.as_ref().is_some_and(|(packets, reasons)| {
            packets.data.len() > UNPARSED_BYTES || reasons.len() > UNPARSED_PACKETS
        })
    }
}

impl PartSource<Parts> for Inputs {
    fn heads(&self) -> Vec<Head> {
        self.merged.heads()
    }

    fn next_alone(&self) -> Option<Head> {
        self.merged.next_alone()
    }

    fn go_on_with(&mut self, part: usize, source: Reader<Input>, span: (Timestamp, Timestamp)) {
        self.merged.go_on_with(part, source, span);
    }
}

impl AttendParts<Inputs, Parts> for Attendant<'_, '_> {
    fn take_over(&mut self, inputs: &Inputs, part: usize, kept: Kept) -> anyhow::Result<()> {
        let Kept { selection, unparsed } = kept;
        self.selection.add(&selection, |interface| inputs.merged.number_of(part, interface));
        let (packets, reasons) = unparsed.unwrap_or_default();
        for (packet, why) in packets.iter().zip(&reasons) {
            self.unparsed(&packet, why);
        }
        self.check()
    }
}
