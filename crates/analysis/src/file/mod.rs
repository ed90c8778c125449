//! Files: bodies that protocols carry, whichever protocol it is. `protocol/file_transfer.rs` takes one on its way.
//!
//! | module | concern |
//! |---|---|
//! | [`mime`] | what it is, by its first bytes |
//! | [`pe`] | the headers of programs of Windows |
//! | [`digest`] | hashes of its content |
//! | [`extraction`] | its content on its way out |
//! | `kept` | the join that tells what of it is kept |
//! | `log`, `pe_log` | the logs |

pub mod digest;
pub mod extraction;
mod kept;
pub(crate) mod log;
pub mod mime;
pub mod pe;
mod pe_log;

pub use digest::{Digests, HashKinds};
pub use extraction::{Extract, Extracted, Extraction, Stored};

use crate::correlator::MakeJoin;
use crate::record::LogType;

/// The log of files.
pub const FILES: &LogType = log::Files::LOG;
/// The log of programs among them.
pub const PE: &LogType = pe_log::Pe::LOG;

/// The joins of what files tell.
pub const JOINS: &[MakeJoin] = &[kept::Extraction::join];

/// How much of a body is decoded that was sent compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bodies {
    /// All of it.
    #[default]
    Whole,
    /// The first 4 KiB of its content, by which its kind is told. How long it is, its framing and the
    /// trailer of gzip tell.
    Head,
}
