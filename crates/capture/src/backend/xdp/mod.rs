//! What the ways to capture by an XDP program share: loading it, and putting it before an interface.

use std::io;

use netsniff_packet::filter::classic;

use super::af_packet::packet_socket;
use crate::ebpf;
use crate::ebpf::assembler::Instruction;
use crate::error::{Error, Result, Right, refused};
use crate::interface::Interface;
use crate::options::Options;
use crate::sys::bpf::{Program, ProgramKind, XdpLink, XdpMode};
use crate::sys::socket::Socket;

/// The filter that the options ask for, if any.
pub(super) fn wanted(options: &Options) -> Result<Option<classic::Program>> {
    if options.filter.is_empty() {
        return Ok(None);
    }
    let program = classic::Program::new(options.filter.clone());
    program.map(Some).map_err(|rejection| Error::Invalid(rejection.to_string()))
}

/// Makes the interface promiscuous, where that is asked for, as long as the socket is there that is returned.
pub(super) fn promiscuous(interface: &Interface, options: &Options) -> Result<Option<Socket>> {
    if !options.promiscuous {
        return Ok(None);
    }
    let socket = packet_socket::open()?;
    packet_socket::make_promiscuous(&socket, interface)?;
    Ok(Some(socket))
}

/// Has the kernel verify a program.
pub(super) fn load(
    instructions: std::result::Result<Vec<Instruction>, ebpf::Error>,
) -> Result<Program> {
    let instructions = instructions.map_err(|error| Error::Invalid(error.to_string()))?;
    let loaded = Program::load(ProgramKind::Xdp, &instructions);
    loaded.map_err(|refusal| match reason(&refusal.log) {
        // A verifier that gives a reason refuses with the code for missing rights, too.
        Some(reason) => {
            Error::Call { what: format!("load the XDP program ({reason})"), reason: refusal.source }
        }
        None => refused(refusal.source, "load the XDP program", Right::XDP),
    })
}

/// The sentence of the verifier that says why: the last one before its statistics.
fn reason(log: &str) -> Option<&str> {
    let is_reason = |line: &&str| !line.is_empty() && !line.starts_with("processed ");
    log.lines().rev().find(is_reason)
}

/// Puts a program before an interface: in the driver, or at the begin of the stack where the driver cannot.
pub(super) fn attach(program: &Program, interface: &Interface) -> Result<(XdpLink, XdpMode)> {
    let native = XdpLink::create(program, interface.index, XdpMode::Native);
    let mode =
        if native.as_ref().is_err_and(lacks_mode) { XdpMode::Generic } else { XdpMode::Native };
    let link = match mode {
        XdpMode::Native => native,
        XdpMode::Generic => XdpLink::create(program, interface.index, mode),
    };
    let link = link.map_err(|source| match source.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => Error::Invalid(format!(
            "another XDP program is at {0}; `ip link show {0}` names it",
            interface.name
        )),
        _ => refused(source, "put an XDP program before the interface", Right::XDP),
    })?;
    Ok((link, mode))
}

/// Whether the driver knows no programs, or not for packets as long as this interface may have.
fn lacks_mode(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ERANGE | libc::ENOSPC)
    )
}

#[cfg(test)]
mod tests;
