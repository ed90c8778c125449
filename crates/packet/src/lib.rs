//! The common language of netsniff: what a packet is, when it was seen, and what its headers say.
//!
//! Every other crate speaks in these types, and this crate sees none of them. It performs no I/O,
//! reads no clock and contains no unsafe code: bytes and time are arguments.
//!
//! | module | concern |
//! |---|---|
//! | [`time`] | [`Timestamp`]: nanoseconds since the Unix epoch |
//! | [`calendar`] | days of the Gregorian calendar |
//! | [`link_type`] | [`LinkType`]: what the first header of a packet is |
//! | [`packet`] | [`Packet`]: a borrowed packet with its time and true length |
//! | [`loss`] | [`Loss`]: packets that the capture lost |
//! | [`batch`] | [`Batch`]: many packets in one buffer, the unit that is read and handed over |
//! | [`address`] | [`Address`]: IPv4 and IPv6 in one shape |
//! | [`checksum`] | the Internet checksum: computing and judging it |
//! | [`decode`] | [`Decoded`]: what the headers say |
//! | [`wire`] | one header per file: read and build it |
//! | [`filter`] | [`Filter`]: pcap-filter(7) expressions |
//! | [`fnv`] | a hash that finds damage |
//! | [`mod@anonymize`] | [`Anonymizer`]: addresses, names and packets that tell of nobody |
//! | [`source`] | [`Source`]: anything that lends packets |

pub mod address;
pub mod anonymize;
pub mod batch;
pub mod calendar;
pub mod checksum;
pub mod decode;
pub mod filter;
pub mod fnv;
pub mod link_type;
pub mod loss;
pub mod packet;
pub mod source;
pub mod time;
pub mod wire;

pub use address::Address;
pub use anonymize::Anonymizer;
pub use batch::{Batch, Note, PacketRecord};
pub use decode::Decoded;
pub use filter::{Filter, FilterError};
pub use link_type::LinkType;
pub use loss::{Loss, Stage};
pub use packet::Packet;
pub use source::{Progress, Source};
pub use time::Timestamp;
