//! pcap and pcapng capture files: told by their magic, unpacked on the fly, read in large pieces.
//!
//! Nothing here opens a path, starts a thread or reads a clock: an input is any [`std::io::Read`].
//! Damaged content is no error. What can be read before it (and, in pcapng, after it) is read, and
//! [`Reader::damage`] tells where and what.
//!
//! | module | concern |
//! |---|---|
//! | [`reader`] | [`Reader`]: a file as a source of packets |
//! | [`interface`] | [`Interface`]: what a file says of where its packets come from |
//! | [`merge`] | [`Merged`]: several files as one, by time |
//! | [`writer`] | [`PcapWriter`], [`PcapngWriter`] |
//! | [`facts`] | [`Facts`]: what a capture holds, gathered packet by packet |
//! | [`error`] | [`Error`] and [`Damage`] |

mod classic;
pub mod error;
pub mod facts;
pub mod interface;
pub mod merge;
mod pcapng;
pub mod reader;
mod scan;
mod unpack;
pub mod writer;

pub use classic::Variant;
pub use error::{Damage, DamageKind, Error};
pub use facts::{Burst, Facts};
pub use interface::{Counters, Interface, Resolution};
pub use merge::{MergeError, Merged};
pub use pcapng::Section;
pub use reader::{Format, Reader};
pub use unpack::Compression;
pub use writer::{PcapWriter, PcapngWriter};
