//! The sans-IO brain of netsniff: flows, reassembly, protocols and the records they yield.
//!
//! | module | concern |
//! |---|---|
//! | [`mod@record`] | what a record is: declared once, visited field by field, ordered by a key |
//! | [`rows`] | encoded rows on their way to whoever writes them, in one order; the list of all logs |
//! | [`log`] | the logs that no protocol makes alone, one file each |
//! | [`mod@engine`] | [`Engine`]: decoding, and the flows of one worker, in one thread |
//! | [`ingress`] | packets to datagrams: time, decoding, fragments, tunnels |
//! | [`reassembly`] | putting together what the network cut into pieces |
//! | [`mod@unit`] | [`DecodedDatagram`]: one decoded datagram, what flows are fed with |
//! | [`mod@key`] | the identity of a flow, its directions and its names |
//! | [`flow`] | which packets belong together, and what they amount to |
//! | [`mod@file`] | bodies that protocols carry |
//! | [`protocol`] | application protocols: one file each, and the list |
//! | [`locality`] | which address is local |
//! | `naming` | what flows are named by |
//! | [`series`] | what passes in each interval of time |
//! | [`notice`] | findings and indicators, of the records of all flows |
//! | [`correlator`] | records that no flow can tell by itself |
//! | [`options`] | [`Options`]: choices that change what records say |
//! | [`mod@depth`] | [`Depth`]: how deep traffic is analysed |
//! | [`limits`] | [`Limits`]: every capacity and time-out |
//! | [`weird`] | oddities by name |
//! | [`checksums`] | counts of checksums by what they say |

pub mod checksums;
pub mod correlator;
pub mod depth;
pub mod engine;
pub mod file;
pub mod flow;
pub mod ingress;
pub mod key;
pub mod limits;
pub mod locality;
pub mod log;
mod naming;
pub mod notice;
pub mod options;
mod prefetch;
pub mod protocol;
pub mod reassembly;
pub mod record;
pub mod rows;
pub mod series;
pub mod unit;
pub mod weird;

pub use depth::Depth;
pub use engine::Engine;
pub use key::uid::Uid;
pub use limits::Limits;
pub use options::{ChecksumMode, Options};
pub use record::{Observer, Phase, Record, SortKey};
pub use unit::{CaptureHole, DatagramBatch, DecodedDatagram, HoleKind};
