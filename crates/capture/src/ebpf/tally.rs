//! What a program shares with the process that loaded it: whether it is to work, and what it has counted.
//!
//! It lies in one value that both map (`BPF_F_MMAPABLE`), so that it can be set and read where bpf(2) is
//! forbidden. The first line has what belongs to all processors; behind it each processor has a line of its own,
//! so that none waits for another. Additions are atomic: on kernels with `PREEMPT_RT` one program may interrupt
//! another.

use super::Helper;
use super::assembler::{Assembler, Condition, Label, Operation, Register, Size, Width};

/// Bytes of a line of a processor's cache, on the machines that have the longest usual ones.
const LINE: u32 = 64;

/// Where the first line has a word that is not 0 while the program is to work.
pub(crate) const GATE: u32 = 0;

/// Where the first line has the number of packets that were wanted and found no room.
const DROPPED: u32 = 8;

/// What each processor counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counter {
    /// Packets that the filter refused.
    Filtered = 0,
    /// Packets that went to user space.
    Taken = 1,
}

/// A value that was made for so many processors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    /// The descriptor of its map.
    pub(crate) map: i32,
    /// One more than the highest number of a processor that may ever be there.
    pub(crate) processors: u32,
}

impl Tally {
    /// Bytes that the value of a tally has.
    pub(crate) const fn len(processors: u32) -> u32 {
        LINE.saturating_mul(processors.saturating_add(1))
    }

    /// Where all places of a counter lie in the value.
    pub(crate) fn places(processors: u32, counter: Counter) -> impl Iterator<Item = usize> {
        (1..=processors).map(move |line| (line * LINE) as usize + 8 * counter as usize)
    }

    /// Where the number of dropped packets lies in the value.
    pub(crate) const fn dropped() -> usize {
        DROPPED as usize
    }

    /// Goes to a label unless the program is to work. Spoils R1.
    pub(crate) fn check_gate(self, assembler: &mut Assembler, closed: Label) {
        assembler.map_value(Register::R1, self.map);
        assembler.load(Size::Word, Register::R1, Register::R1, GATE as i16);
        assembler.branch(Width::W32, Register::R1, Condition::Equal, 0, closed);
    }

    /// Counts a packet on this processor. Spoils R0 to R5.
    pub(crate) fn count(self, assembler: &mut Assembler, counter: Counter) {
        use Register::{R0, R1, R2};
        let uncounted = assembler.label();
        assembler.call(Helper::Processor);
        // The verifier does not know how many there are, and this many are all that can be.
        assembler.branch(Width::W32, R0, Condition::AtLeast, self.processors, uncounted);
        assembler.compute(Width::W32, Operation::Move, R0, R0);
        assembler.compute(Width::W64, Operation::Multiply, R0, LINE);
        assembler.map_value(R1, self.map);
        assembler.compute(Width::W64, Operation::Add, R1, R0);
        assembler.set(R2, 1);
        assembler.atomic_add(R1, LINE as i16 + 8 * counter as i16, R2);
        assembler.here(uncounted);
    }

    /// Counts a packet that found no room. Spoils R1 and R2.
    pub(crate) fn count_drop(self, assembler: &mut Assembler) {
        assembler.map_value(Register::R1, self.map);
        assembler.set(Register::R2, 1);
        assembler.atomic_add(Register::R1, DROPPED as i16, Register::R2);
    }

    /// `to =` the packets that found no room so far.
    pub(crate) fn load_drops(self, assembler: &mut Assembler, to: Register) {
        assembler.map_value(to, self.map);
        assembler.load(Size::Double, to, to, DROPPED as i16);
    }
}
