//! Several files as one source, in the order of their time stamps.

mod between;

use core::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::Read;

use netsniff_packet::{Batch, Loss, Note, Progress, Source, Timestamp};

use crate::error::Error;
use crate::interface::Interface;
use crate::reader::Reader;
pub use between::Head;

/// Several files read as one, by time; at equal times in the order of the files.
///
/// The order within a file is kept, also where its time goes back. Each interface of each file gets
/// a number of its own; which of them go on from an earlier file, the batch with their first packet tells
/// ([`Batch::continued`]). Packets of a file that is alone, or the only one that has not ended, are not
/// copied; of several each packet is copied once. What was read is handed out before an input is read that
/// is alone, since it may be one that waits.
#[derive(Debug)]
pub struct Merged<R: Read> {
    inputs: Vec<Input<R>>,
    /// The time of the next packet of each input that has one.
    next: BinaryHeap<Reverse<(Timestamp, usize)>>,
    /// File, and interface within it, of each interface number.
    interfaces: Vec<(usize, usize)>,
    /// Those that go on from an earlier file, with the first of the same.
    continued: BTreeMap<u32, u32>,
    /// Inputs whose first packet was just handed out.
    begun: Vec<usize>,
    /// Inputs that must be read before the next packet is known.
    unread: Vec<usize>,
    /// Whether readers are asked for notes.
    keeps_notes: bool,
    /// Bytes of what was told besides packets in the batch at hand.
    told: usize,
    /// A failure that is to be told after the packets before it.
    failure: Option<MergeError>,
    /// Whether batches end where a file begins once all before it are over.
    stops_between: bool,
}

/// A failure to read one of several files.
#[derive(Debug, thiserror::Error)]
#[error("input {input}: {source}")]
pub struct MergeError {
    /// Which one, from 0.
    pub input: usize,
    /// The error of that file.
    pub source: Error,
}

#[derive(Debug)]
struct Input<R: Read> {
    reader: Reader<R>,
    batch: Batch,
    /// Packets of the batch that were given out.
    given: usize,
    /// Losses of the batch that were given out.
    given_losses: usize,
    /// Notes of the batch that were given out.
    given_notes: usize,
    ended: bool,
    /// The stamp of the first packet that was given out, and the latest one.
    span: Option<(Timestamp, Timestamp)>,
    /// The number of each of its interfaces.
    numbers: Vec<u32>,
}

/// Bytes after which a merged batch is handed out.
const BATCH_BYTES: usize = 1 << 20;
/// Packets after which a merged batch is handed out.
const BATCH_PACKETS: usize = 16_384;
/// Bytes that the read buffers of all files may have together, if there are many files.
const ALL_BUFFERS: usize = 64 << 20;

impl<R: Read> Merged<R> {
    /// Merges files. Nothing is read before the first batch.
    #[must_use]
    pub fn new(mut readers: Vec<Reader<R>>) -> Self {
        let share = ALL_BUFFERS / readers.len().max(1);
        readers.iter_mut().for_each(|reader| reader.limit_read_size(share));
        let inputs: Vec<_> = readers.into_iter().map(Input::new).collect();
        Self {
            unread: (0..inputs.len()).rev().collect(),
            inputs,
            next: BinaryHeap::new(),
            interfaces: Vec::new(),
            continued: BTreeMap::new(),
            begun: Vec::new(),
            keeps_notes: false,
            told: 0,
            failure: None,
            stops_between: false,
        }
    }

    /// Adds a file, whose packets come behind what was handed out so far.
    pub fn push(&mut self, mut reader: Reader<R>) {
        if self.keeps_notes {
            reader.keep_notes();
        }
        self.unread.push(self.inputs.len());
        self.inputs.push(Input::new(reader));
    }

    /// Puts into batches what files tell besides packets: [`Batch::notes`].
    pub fn keep_notes(&mut self) {
        self.keeps_notes = true;
        self.inputs.iter_mut().for_each(|input| input.reader.keep_notes());
    }

    /// The files, in their order.
    pub fn readers(&self) -> impl ExactSizeIterator<Item = &Reader<R>> {
        self.inputs.iter().map(|input| &input.reader)
    }

    /// The file, counted from 0, and the interface of the number that packets give.
    #[must_use]
    pub fn interface(&self, number: u32) -> Option<(usize, &Interface)> {
        let (input, index) = *self.interfaces.get(number as usize)?;
        Some((input, self.inputs.get(input)?.reader.interfaces().get(index)?))
    }

    /// How many interfaces were described so far.
    #[must_use]
    pub fn interface_count(&self) -> usize {
        self.interfaces.len()
    }

    /// Reads the next packets of an input. Where it has none yet, what it tells is handed out, and it is read again.
    fn refill(&mut self, index: usize, batch: &mut Batch) {
        let Some(input) = self.inputs.get_mut(index) else { return };
        (input.given, input.given_losses, input.given_notes) = (0, 0, 0);
        input.batch.clear_packets();
        match input.reader.read_batch(&mut input.batch) {
            Ok(progress) => input.ended = progress == Progress::End,
            Err(source) => {
                input.ended = true;
                input.batch.clear_packets();
                self.failure = Some(MergeError { input: index, source });
            }
        }
        number(&mut self.interfaces, index, input);
        if let Some(packet) = input.batch.packets.first() {
            self.next.push(Reverse((packet.timestamp, index)));
            return;
        }
        self.told += input.give_told(batch);
        if input.ended {
            input.batch = Batch::default();
        } else {
            self.unread.push(index);
        }
    }

    /// Whether a batch has enough to be handed out.
    const fn is_full(&self, batch: &Batch) -> bool {
        batch.data.len() + self.told >= BATCH_BYTES || batch.packets.len() >= BATCH_PACKETS
    }

    /// Copies packets in the order of their time until one input must be read again.
    fn merge(&mut self, batch: &mut Batch) {
        while !self.is_full(batch) {
            let Some(mut top) = self.next.peek_mut() else { return };
            let Reverse((time, index)) = &mut *top;
            let Some(input) = self.inputs.get_mut(*index) else { return };
            self.told += input.give_told(batch);
            if let Some(record) = input.batch.packets.get(input.given) {
                let mut packet = input.batch.packet(record);
                packet.interface = input.number_of(packet.interface);
                batch.push(&packet);
                let time = packet.timestamp;
                if input.note_given(time) {
                    self.begun.push(*index);
                }
            }
            input.given += 1;
            if let Some(following) = input.batch.packets.get(input.given) {
                *time = following.timestamp;
            } else {
                self.told += input.give_told(batch);
                self.unread.push(*index);
                PeekMut::pop(top);
                return;
            }
        }
    }

    /// The only input that has not ended, if everything else of the others was handed out.
    fn alone(&self) -> Option<usize> {
        let &[index] = self.unread.as_slice() else { return None };
        (self.next.is_empty() && self.failure.is_none()).then_some(index)
    }

    /// Reads the only input that has not ended: its packets need not be copied.
    fn read_alone(&mut self, index: usize, batch: &mut Batch) -> Result<Progress, MergeError> {
        let Some(input) = self.inputs.get_mut(index) else { return Ok(Progress::End) };
        let progress = if input.ended { Ok(Progress::End) } else { input.reader.read_batch(batch) };
        input.ended = !matches!(progress, Ok(Progress::More));
        if progress.is_err() {
            batch.clear_packets();
        }
        number(&mut self.interfaces, index, input);
        if input.ended {
            self.unread.clear();
        }
        if self.inputs.len() > 1
            && let Some(input) = self.inputs.get_mut(index)
        {
            for packet in &mut batch.packets {
                packet.interface = input.number_of(packet.interface);
                if input.note_given(packet.timestamp) {
                    self.begun.push(index);
                }
            }
            self.note_continued(batch);
        }
        progress.map_err(|source| MergeError { input: index, source })
    }
}

impl<R: Read> Merged<R> {
    /// Finds out which interfaces of the inputs that just began go on from an input before, as those of a recording that was
    /// rolled: one file is over before the other begins, and each has one interface of that description.
    fn note_continued(&mut self, batch: &mut Batch) {
        for index in core::mem::take(&mut self.begun) {
            let Some(input) = self.inputs.get(index) else { continue };
            for (local, &number) in input.numbers.iter().enumerate() {
                let before = self.inputs.iter().filter(|other| other.is_over_before(input));
                let same = before.filter_map(|other| {
                    input.is_alone_with(local).then(|| other.same_as(input, local))?.zip(other.span)
                });
                let Some((same, _)) = same.max_by_key(|&(number, (_, last))| (last, number)) else {
                    continue;
                };
                let first = self.continued.get(&same).copied().unwrap_or(same);
                self.continued.insert(number, first);
                batch.continued.push((number, first));
            }
        }
    }
}

impl<R: Read> Input<R> {
    /// Notes that a packet is given out. Whether it is the first.
    fn note_given(&mut self, time: Timestamp) -> bool {
        match &mut self.span {
            Some((_, latest)) => {
                *latest = time.max(*latest);
                false
            }
            None => {
                self.span = Some((time, time));
                true
            }
        }
    }

    /// Whether all of it was given out before anything of another one, also by the stamps.
    fn is_over_before(&self, other: &Self) -> bool {
        let (Some((_, latest)), Some((first, _))) = (self.span, other.span) else { return false };
        self.is_given() && latest <= first
    }

    /// Whether all of it was given out.
    const fn is_given(&self) -> bool {
        self.ended && self.given >= self.batch.packets.len()
    }

    /// Whether no other interface of the file has the description of this one.
    fn is_alone_with(&self, local: usize) -> bool {
        self.same_as(self, local).is_some()
    }

    /// The number of the interface with the description of another file's, where exactly one has it.
    fn same_as(&self, other: &Self, local: usize) -> Option<u32> {
        let wanted = other.reader.interfaces().get(local)?;
        let section = |of: &Self, number: u64| {
            let section = of.reader.sections().get(usize::try_from(number).ok()?)?;
            Some([&section.hardware, &section.os, &section.application].map(Clone::clone))
        };
        let machine = section(other, wanted.section)?;
        let mut same =
            self.reader.interfaces().iter().zip(&self.numbers).filter(|(interface, _)| {
                interface.is_described_as(wanted)
                    && section(self, interface.section).as_ref() == Some(&machine)
            });
        let (_, &number) = same.next()?;
        same.next().is_none().then_some(number)
    }

    fn new(reader: Reader<R>) -> Self {
        Self {
            reader,
            batch: Batch::default(),
            given: 0,
            given_losses: 0,
            given_notes: 0,
            ended: false,
            span: None,
            numbers: Vec::new(),
        }
    }

    /// The number of an interface among those of all files.
    fn number_of(&self, local: u32) -> u32 {
        self.numbers.get(local as usize).copied().unwrap_or(local)
    }

    /// Hands out what was lost before the next packet, and what is told of it and before it. Returns the bytes of that.
    fn give_told(&mut self, batch: &mut Batch) -> usize {
        let mut bytes = 0;
        while let Some(&(at, loss)) = self.batch.losses.get(self.given_losses)
            && at as usize <= self.given
        {
            self.given_losses += 1;
            bytes += size_of::<(u32, Loss)>();
            batch.push_loss(loss);
        }
        while let Some((at, note)) = self.batch.notes.get(self.given_notes)
            && *at as usize <= self.given
        {
            self.given_notes += 1;
            bytes += size_of::<(u32, Note)>() + note.len();
            batch.push_note(note.clone());
        }
        bytes
    }
}

/// Numbers the interfaces of an input that were described since.
fn number<R: Read>(numbered: &mut Vec<(usize, usize)>, index: usize, input: &mut Input<R>) {
    for local in input.numbers.len()..input.reader.interfaces().len() {
        input.numbers.push(numbered.len() as u32);
        numbered.push((index, local));
    }
}

impl<R: Read> Source for Merged<R> {
    type Error = MergeError;

    /// Fills the batch with the packets that come next. A failure ends its own input alone: the
    /// others go on at the next call. It comes with no packet, but with what was told besides packets before it.
    fn read_batch(&mut self, batch: &mut Batch) -> Result<Progress, MergeError> {
        if let Some(index) = self.alone() {
            batch.clear_packets();
            return self.read_alone(index, batch);
        }
        batch.clear();
        self.told = 0;
        while !self.is_full(batch) {
            if let Some(failure) = self.failure.take_if(|_| batch.packets.is_empty()) {
                return Err(failure);
            }
            if self.failure.is_some() || self.alone().is_some() {
                return Ok(Progress::More);
            }
            if let Some(index) = self.unread.pop() {
                self.refill(index, batch);
                if self.stops_between && self.next_alone().is_some() {
                    return Ok(Progress::More);
                }
            } else if self.next.is_empty() {
                return Ok(Progress::End);
            } else {
                self.merge(batch);
                self.note_continued(batch);
            }
        }
        Ok(Progress::More)
    }
}
