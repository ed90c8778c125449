//! The program that sends packets to XDP sockets.

use super::assembler::{Assembler, AssemblyError, Instruction, Register, Size};
use super::{Action, Helper, context};

/// A packet goes to the XDP socket that the map with this descriptor has for its queue; to the stack where it
/// has none.
///
/// # Errors
///
/// None that could be met: it is short.
pub(crate) fn redirect(sockets: i32) -> Result<Vec<Instruction>, AssemblyError> {
    let mut assembler = Assembler::default();
    assembler.load(Size::Word, Register::R2, Register::R1, context::QUEUE);
    assembler.map(Register::R1, sockets);
    assembler.set(Register::R3, Action::Pass as i32);
    assembler.call(Helper::RedirectMap);
    assembler.exit();
    assembler.finish()
}
