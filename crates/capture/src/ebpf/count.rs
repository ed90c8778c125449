//! The filter of a socket that counts what it refuses, which the kernel does for no filter.

use netsniff_packet::filter::classic;

use super::assembler::{Assembler, Condition, Instruction, Register, Size, Width};
use super::filter::{self, CONTEXT, Exits, Hook, KEPT};
use super::tally::{Counter, Tally};
use super::{Error, socket};

/// Decides as the program does and counts what that refuses. With `only_sent`, packets that this machine does not
/// send are kept out before, and not counted.
///
/// # Errors
///
/// Filters that ask for what is not told here, or that are too long.
pub(crate) fn count(
    tally: Tally,
    wanted: &classic::Program,
    only_sent: bool,
) -> Result<Vec<Instruction>, Error> {
    let mut assembler = Assembler::default();
    let [accept, reject, other] = [(); 3].map(|()| assembler.label());
    assembler.set(CONTEXT, Register::R1);
    if only_sent {
        let outgoing = i32::from(libc::PACKET_OUTGOING);
        assembler.load(Size::Word, Register::R1, CONTEXT, socket::PACKET_TYPE);
        assembler.branch(Width::W32, Register::R1, Condition::NotEqual, outgoing, other);
    }
    filter::append(&mut assembler, wanted, Hook::Socket, Exits { accept, reject })?;
    assembler.here(accept);
    assembler.set(Register::R0, KEPT);
    assembler.exit();
    assembler.here(reject);
    tally.count(&mut assembler, Counter::Filtered);
    assembler.here(other);
    assembler.set(Register::R0, 0);
    assembler.exit();
    assembler.finish()
}
