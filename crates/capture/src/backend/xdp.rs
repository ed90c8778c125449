//! What the ways to capture by an XDP program share: loading it, and putting it before an interface.

use std::io;

use crate::ebpf::assembler::{AssemblyError, Instruction};
use crate::error::{Error, Result, Right, permitted, refused};
use crate::interface::Interface;
use crate::sys::bpf::{Program, ProgramKind, XdpLink, XdpMode};

/// Makes a map for a program.
pub(super) fn make<T>(map: io::Result<T>) -> Result<T> {
    permitted(map, "make a BPF map", Right::XDP)
}

/// Has the kernel verify a program.
pub(super) fn load(
    instructions: std::result::Result<Vec<Instruction>, AssemblyError>,
) -> Result<Program> {
    let instructions = instructions.map_err(|error| Error::Invalid(error.to_string()))?;
    let loaded = Program::load(ProgramKind::Xdp, &instructions);
    loaded.map_err(|refusal| match reason(&refusal.log) {
        // A verifier that gives a reason refuses with the code for missing rights, too.
        Some(reason) => {
            Error::Call { what: format!("load the XDP program ({reason})"), source: refusal.source }
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
mod tests {
    use super::*;
    use crate::ebpf::assembler::{Assembler, Register};
    use crate::ebpf::redirect::redirect;
    use crate::sys::bpf::SocketMap;

    /// Whether this process may load programs; says so where it may not.
    fn may_load(test: &str) -> bool {
        match SocketMap::create(1) {
            Ok(_) => true,
            Err(error) => {
                eprintln!("SKIPPED: {test} needs the right to make BPF maps: {error}");
                false
            }
        }
    }

    #[test]
    fn the_verifier_takes_the_redirecting_program() {
        if may_load("the redirecting program") {
            let sockets = SocketMap::create(64).unwrap();
            load(redirect(sockets.number())).unwrap();
        }
    }

    #[test]
    fn what_the_verifier_says_is_told() {
        if may_load("the verifier's reason") {
            let mut assembler = Assembler::default();
            assembler.set(Register::R0, Register::R5);
            assembler.exit();
            let error = load(assembler.finish()).unwrap_err().to_string();
            assert!(error.contains("load the XDP program (R5 !read_ok)"), "{error}");
        }
    }

    #[test]
    fn missing_rights_are_named() {
        let error = make::<()>(Err(io::Error::from_raw_os_error(libc::EPERM))).unwrap_err();
        let told = error.to_string();
        assert!(told.contains("setcap cap_net_raw,cap_net_admin,cap_bpf+ep"), "{told}");
    }
}
