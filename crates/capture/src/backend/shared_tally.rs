//! What a program in the kernel has counted, for a process that may not call bpf(2) any more.

use std::io;

use super::gate::Intake;
use crate::counters::Counted;
use crate::ebpf::tally::{Counter, GATE, Tally};
use crate::error::{Result, Right, permitted};
use crate::host::possible_processors;
use crate::sys::bpf::SharedValue;

/// Makes a map for a program.
pub(super) fn make<T>(map: io::Result<T>) -> Result<T> {
    permitted(map, "make a BPF map", Right::XDP)
}

/// What a program has counted, and the gate that lets packets in.
#[derive(Debug)]
pub(super) struct SharedTally {
    value: SharedValue,
    processors: u32,
}

impl SharedTally {
    /// A tally of nothing, whose gate is closed.
    pub(super) fn make() -> Result<Self> {
        let processors = possible_processors()?;
        let value = make(SharedValue::create(Tally::len(processors)))?;
        Ok(Self { value, processors })
    }

    /// The tally as instructions name it.
    pub(super) fn tally(&self) -> Tally {
        Tally { map: self.value.number(), processors: self.processors }
    }

    /// Lets packets in, or keeps them out. Those that a processor has already begun with still come.
    pub(super) fn set_open(&self, is_open: bool) {
        self.value.set_word(GATE as usize, is_open.into());
    }

    /// What all processors have counted.
    pub(super) fn count(&self, counter: Counter) -> u64 {
        Tally::places(self.processors, counter).map(|place| self.value.long(place)).sum()
    }

    /// Packets that found no room.
    pub(super) fn dropped(&self) -> u64 {
        self.value.long(Tally::dropped())
    }
}

/// Of a program that puts packets into a ring itself.
impl Intake for SharedTally {
    fn shut(&self) -> Result<()> {
        self.set_open(false);
        Ok(())
    }

    fn counted(&self) -> Result<Counted> {
        Ok(Counted {
            accepted: Some(self.count(Counter::Taken)),
            dropped: Some(self.dropped()),
            filtered: Some(self.count(Counter::Filtered)),
        })
    }
}
