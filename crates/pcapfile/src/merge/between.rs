//! Where one file begins once all before it are over, and how another reader goes on for it from there.

use core::cmp::Reverse;
use std::io::Read;

use netsniff_packet::Timestamp;

use super::{Input, Merged, number};
use crate::reader::Reader;

/// The begin of a file of which nothing was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Which file, from 0.
    pub input: usize,
    /// The stamp of its first packet.
    pub first: Timestamp,
}

impl<R: Read> Merged<R> {
    /// Ends batches where a file begins once all before it are over, for [`Self::next_alone`].
    pub const fn stop_between(&mut self) {
        self.stops_between = true;
    }

    /// The files of which no packet was handed out, in the order in which they begin.
    #[must_use]
    pub fn heads(&self) -> Vec<Head> {
        let mut heads: Vec<_> = self.next.iter().filter_map(|next| self.head(next)).collect();
        heads.sort_unstable_by_key(|head| (head.first, head.input));
        heads
    }

    fn head(&self, &Reverse((first, input)): &Reverse<(Timestamp, usize)>) -> Option<Head> {
        self.inputs.get(input)?.span.is_none().then_some(Head { input, first })
    }

    /// The file that comes next, if none is begun and not over.
    #[must_use]
    pub fn next_alone(&self) -> Option<Head> {
        let is_over = |input: &Input<R>| input.span.is_none() || input.is_given();
        let is_between = self.unread.is_empty() && self.failure.is_none();
        let next = if is_between { self.next.peek() } else { None };
        next.filter(|_| self.inputs.iter().all(is_over)).and_then(|next| self.head(next))
    }

    /// Goes on with `reader` in place of a file's own, of which no packet was handed out. The packets that it has read
    /// are taken elsewhere; they begin and have their latest stamp at `span`.
    pub fn go_on_with(&mut self, input: usize, reader: Reader<R>, span: (Timestamp, Timestamp)) {
        self.next.retain(|Reverse((_, index))| *index != input);
        let Some(of) = self.inputs.get_mut(input) else { return };
        let numbers = core::mem::take(&mut of.numbers);
        *of = Input { span: Some(span), numbers, ..Input::new(reader) };
        number(&mut self.interfaces, input, of);
        self.unread.push(input);
    }

    /// The number that packets give an interface of a file, if it was described.
    #[must_use]
    pub fn number_of(&self, input: usize, interface: u32) -> Option<u32> {
        self.inputs.get(input)?.numbers.get(interface as usize).copied()
    }
}
