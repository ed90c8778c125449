//! pcap and pcapng capture files: told by their magic, unpacked on the fly, read in large pieces.
//!
//! Nothing here opens a path, starts a thread or reads a clock: an input is any [`std::io::Read`].
//! Damaged content is no error. What can be read before it (and, in pcapng, after it) is read, and
//! [`Reader::damage`] tells where and what.
//!
//! ```
//! use netsniff_packet::{Batch, LinkType, Packet, Progress, Source, Timestamp};
//! use netsniff_pcapfile::{PcapWriter, Reader};
//!
//! let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 65_535)?;
//! let timestamp = Timestamp::from_secs_nanos(1_700_000_000, 0);
//! let link_type = LinkType::ETHERNET;
//! writer.write_packet(&Packet { timestamp, data: &[0; 60], wire_len: 60, link_type, interface: 0 })?;
//! let file = writer.finish()?;
//!
//! let mut reader = Reader::new(&file[..file.len() - 1])?;
//! let mut batch = Batch::default();
//! while reader.read_batch(&mut batch)? == Progress::More {
//!     for packet in batch.iter() {
//!         println!("{} {} bytes", packet.timestamp, packet.wire_len);
//!     }
//! }
//! let said = reader.damage()[0].to_string();
//! assert!(said.starts_with("packet 1 at byte 24: the file ends within it"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | concern |
//! |---|---|
//! | [`reader`] | [`Reader`]: a file as a source of packets |
//! | [`interface`] | [`Interface`]: what a file says of where its packets come from |
//! | [`merge`] | [`Merged`]: several files as one, by time |
//! | [`encode`] | records and blocks as bytes in a caller's buffer |
//! | [`writer`] | [`PcapWriter`], [`PcapngWriter`]: the same into an output |
//! | [`pack`] | [`Packer`]: gzip, zstd and lz4 on the way into an output |
//! | [`facts`] | [`Facts`]: what a capture holds, gathered packet by packet |
//! | [`error`] | [`Error`] and [`Damage`] |

mod classic;
pub mod encode;
pub mod error;
pub mod facts;
pub mod interface;
pub mod merge;
pub mod pack;
mod pcapng;
pub mod reader;
mod scan;
mod unpack;
pub mod writer;

pub use classic::Variant;
pub use encode::{PacketNotes, PcapEncoder, PcapngEncoder, Statistics};
pub use error::{Damage, DamageKind, Error};
pub use facts::{Burst, Facts};
pub use interface::{Counters, Interface, Resolution};
pub use merge::{Head, MergeError, Merged};
pub use pack::{Packer, Packing};
pub use pcapng::Section;
pub use reader::{Format, Reader};
pub use unpack::Compression;
pub use writer::{PcapWriter, PcapngWriter};
