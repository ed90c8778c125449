//! Files: bodies that protocols carry, whichever protocol it is.
//!
//! | module | concern |
//! |---|---|
//! | [`transfer`] | one file on its way |
//! | [`mime`] | what it is, by its first bytes |
//! | [`pe`] | the headers of programs of Windows |
//! | [`digest`] | hashes of its content |
//! | [`extraction`] | its content on its way out |

pub mod digest;
pub mod extraction;
pub mod mime;
pub mod pe;
pub mod transfer;

pub use digest::{Digests, HashKinds};
pub use extraction::{Extract, Extracted, Extraction, Stored};
pub use transfer::{Carrier, FileReport, FileTransfer};
