//! Filters as classic BPF, which the kernel runs before it copies a packet.
//!
//! ```
//! use core::num::NonZeroU32;
//! use netsniff_packet::filter::classic::{Metadata, Options, Target};
//! use netsniff_packet::{Filter, LinkType};
//!
//! let filter = Filter::parse("vlan 100 and tcp port 80").unwrap();
//! let snaplen = NonZeroU32::new(262_144).unwrap();
//! let options = Options { target: Target::Kernel, snaplen, sample: None };
//! let program = filter.compile(LinkType::ETHERNET, &options).unwrap();
//! assert_eq!(program.run(&[0; 60], &Metadata::default()), 0);
//! ```
//!
//! A program decides exactly as [`Filter::matches`] does on the whole frame; what classic BPF cannot say
//! so is an [`Error`], and such a filter must be run where the packets arrive. Frames are those that
//! the capture hands on: a VLAN tag that the kernel took out of a frame is part of it again. That is
//! where libpcap differs, in whose live filters `ip` also finds the packets whose tag was taken out,
//! but not those whose tag was left in or that it reads from a file.
//!
//! [`Program`] is checked as the kernel checks what it is given, and can be [run](Program::run).
//! [`steering`] makes the programs that tell which of several rings gets a packet.

mod assembler;
mod check;
mod emit;
mod expression;
mod interpreter;
mod opcode;
mod steering;
mod view;

use core::fmt;
use core::num::NonZeroU32;

use super::program::Program as Bound;
use super::{Filter, FilterError, bind};
use crate::LinkType;
use assembler::Assembler;
use emit::{Exits, emit};
use opcode as op;
use view::View;

pub use check::{MAX_INSTRUCTIONS, Rejection};
pub use interpreter::{Metadata, VlanTag};
pub use steering::steering;

/// One instruction, with the layout and the meaning of `struct sock_filter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    /// The opcode.
    pub code: u16,
    /// How many instructions a branch skips if its condition holds.
    pub jt: u8,
    /// How many instructions a branch skips if its condition does not hold.
    pub jf: u8,
    /// A constant, an offset or a distance.
    pub k: u32,
}

impl Instruction {
    const fn new(code: u16, k: u32) -> Self {
        Self { code, jt: 0, jf: 0, k }
    }
}

/// Instructions that the kernel takes: it ends, stays within its bounds, and reads no scratch word
/// that it did not write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(Box<[Instruction]>);

impl Program {
    /// Checks instructions as the kernel does.
    ///
    /// # Errors
    ///
    /// The first fault. Beside what the kernel refuses these are questions that it would answer and
    /// [`Metadata`] does not.
    pub fn new(instructions: impl Into<Box<[Instruction]>>) -> Result<Self, Rejection> {
        let instructions = instructions.into();
        check::check(&instructions)?;
        Ok(Self(instructions))
    }

    /// The instructions, at least one.
    #[must_use]
    pub const fn instructions(&self) -> &[Instruction] {
        &self.0
    }
}

/// What a program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Frames as they lie in a file: every VLAN tag among the bytes.
    File,
    /// Packets as a packet socket of Linux has them when its filter runs: the outermost VLAN tag
    /// beside the bytes, and no bytes where [`LinkType::LINUX_SLL`] and [`LinkType::LINUX_SLL2`] have
    /// their header (`SOCK_DGRAM`). The tag of a cooked packet belongs before the protocol of its
    /// header of version 1, as libpcap puts it; version 2 has no place for it.
    Kernel,
}

/// How a filter is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What the program reads.
    pub target: Target,
    /// How many bytes of a packet that passes the kernel keeps: the value that the program returns. A
    /// tag that the capture puts back into the frame comes on top.
    pub snaplen: NonZeroU32,
    /// Of the pairs of addresses, only one in this many passes; see [`steering`].
    pub sample: Option<NonZeroU32>,
}

/// Why a filter cannot be run by the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The filter has no meaning for the link type.
    Filter(FilterError),
    /// The filter asks for a byte of a header that the capture makes, and that the kernel does not have.
    HeaderByte {
        /// Whose header it is.
        link_type: LinkType,
        /// Offset of the byte in the header.
        offset: u32,
    },
    /// An arithmetic expression holds more values at once than classic BPF has scratch words.
    Scratch,
    /// Pairs of addresses cannot be found in packets of this link type.
    NoAddresses(LinkType),
    /// The kernel would not take the program.
    Program(Rejection),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter(error) => error.fmt(f),
            Self::HeaderByte { link_type, offset } => {
                write!(f, "the kernel does not have byte {offset} of the {link_type} header")
            }
            Self::Scratch => {
                write!(f, "an expression holds more than {} values at once", op::SCRATCH_WORDS)
            }
            Self::NoAddresses(link_type) => {
                write!(f, "the addresses in packets of link type {link_type} cannot be found")
            }
            Self::Program(rejection) => rejection.fmt(f),
        }
    }
}

impl core::error::Error for Error {}

impl From<Rejection> for Error {
    fn from(rejection: Rejection) -> Self {
        Self::Program(rejection)
    }
}

impl Filter {
    /// The filter as a program for packets of one link type.
    ///
    /// # Errors
    ///
    /// Where the filter has no meaning for the link type, or none in classic BPF, or is too long.
    pub fn compile(&self, link_type: LinkType, options: &Options) -> Result<Program, Error> {
        let bound = bind::bind(&self.tree, &self.text, link_type).map_err(Error::Filter)?;
        let mut assembler = Assembler::default();
        let exits = Exits { accept: assembler.label(), reject: assembler.label() };
        tests(&mut assembler, &bound, link_type, options.target, exits)?;
        assembler.here(exits.accept);
        if let Some(sample) = options.sample.filter(|sample| sample.get() > 1) {
            steering::sample(&mut assembler, link_type, sample, exits.reject)?;
        }
        assembler.plain(op::RET_K, options.snaplen.get());
        if assembler.leads_to(exits.reject) {
            assembler.here(exits.reject);
            assembler.plain(op::RET_K, 0);
        }
        Ok(Program::new(assembler.finish())?)
    }
}

/// The tests of a filter: once, or for frames without and with a tag beside them.
fn tests(
    assembler: &mut Assembler,
    bound: &Bound,
    link_type: LinkType,
    target: Target,
    exits: Exits,
) -> Result<(), Error> {
    let (plain, stripped) = match target {
        Target::File => (View::of_file(link_type), None),
        Target::Kernel => View::of_kernel(link_type),
    };
    let program = plain.specialise(bound);
    let stripped = stripped
        .map(|view| (view, view.specialise(bound)))
        .filter(|(view, other)| *other != program || !view.is_transparent(other));
    let Some((view, other)) = stripped else {
        return emit(assembler, &program, plain, exits);
    };
    let (untagged, tagged) = (assembler.label(), assembler.label());
    let entry = |program, label| match view::constant(program) {
        Some(true) => exits.accept,
        Some(false) => exits.reject,
        None => label,
    };
    assembler.plain(op::sized(op::LD_ABS_W, 1), op::ancillary::VLAN_TAG_PRESENT);
    assembler.branch(op::JEQ, 1, entry(&other, tagged), entry(&program, untagged));
    if view::constant(&program).is_none() {
        assembler.here(untagged);
        emit(assembler, &program, plain, exits)?;
    }
    if view::constant(&other).is_none() {
        assembler.here(tagged);
        emit(assembler, &other, view, exits)?;
    }
    Ok(())
}
