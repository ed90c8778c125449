//! Filters of packet sockets that count what they refuse, where the rights for it are there.
//!
//! The kernel counts nothing that a socket's filter refuses. The same filter as extended BPF counts by itself.
//! It is loaded when the socket is opened, and takes `CAP_BPF`; without that the classic filter does its work,
//! and what it refuses stays unknown.

use netsniff_packet::filter::classic;

use crate::backend::shared_tally::SharedTally;
use crate::ebpf::count::count;
use crate::ebpf::tally::Counter;
use crate::options::{Direction, Options};
use crate::sys::bpf::{Program, ProgramKind};

/// A program that is loaded, and what it has counted.
#[derive(Debug)]
pub(super) struct CountingFilter {
    program: Program,
    tally: SharedTally,
}

impl CountingFilter {
    /// The filter that the options ask for; `None` where the kernel does not take it from us.
    pub(super) fn load(options: &Options) -> Option<Self> {
        let wanted = classic::Program::new(options.filter.clone()).ok()?;
        let tally = SharedTally::make().ok()?;
        let only_sent = options.direction == Direction::Out;
        let instructions = count(tally.tally(), &wanted, only_sent).ok()?;
        let program = Program::load(ProgramKind::SocketFilter, &instructions).ok()?;
        Some(Self { program, tally })
    }

    /// What is attached to the socket.
    pub(super) const fn program(&self) -> &Program {
        &self.program
    }

    /// Packets that it has refused.
    pub(super) fn filtered(&self) -> u64 {
        self.tally.count(Counter::Filtered)
    }
}
