//! The program that sends packets to XDP sockets, past the stack.

use netsniff_packet::filter::classic;

use super::assembler::{Assembler, Condition, Instruction, Register, Size, Width};
use super::filter::{self, CONTEXT, Exits, Hook};
use super::tally::{Counter, Tally};
use super::{Action, Error, Helper, xdp};

/// A packet that the filter wants goes to the XDP socket that the map `sockets` has for its queue, and is counted
/// as taken; to the stack where there is none. What the filter refuses goes to the stack and is counted.
///
/// A socket without room drops the packet behind this program, and counts that itself.
///
/// # Errors
///
/// Filters that XDP cannot run, or that are too long.
pub(crate) fn redirect(
    sockets: i32,
    tally: Tally,
    wanted: Option<&classic::Program>,
) -> Result<Vec<Instruction>, Error> {
    use Register::{R0, R1, R2, R3};
    let assembler = &mut Assembler::default();
    let [accept, reject, pass] = [(); 3].map(|()| assembler.label());
    assembler.set(CONTEXT, R1);
    tally.check_gate(assembler, pass);
    if let Some(program) = wanted {
        filter::append(assembler, program, Hook::Xdp, Exits { accept, reject })?;
    }
    assembler.here(accept);
    assembler.load(Size::Word, R2, CONTEXT, xdp::QUEUE);
    assembler.map(R1, sockets);
    assembler.set(R3, Action::Pass as i32);
    assembler.call(Helper::RedirectMap);
    assembler.set(Register::R9, R0);
    assembler.branch(Width::W32, R0, Condition::NotEqual, Action::Redirect as i32, pass);
    tally.count(assembler, Counter::Taken);
    assembler.set(R0, Action::Redirect as i32);
    assembler.exit();
    assembler.here(reject);
    tally.count(assembler, Counter::Filtered);
    assembler.here(pass);
    assembler.set(R0, Action::Pass as i32);
    assembler.exit();
    core::mem::take(assembler).finish()
}
