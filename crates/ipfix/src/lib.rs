//! Flow export: what routers and probes tell of flows, in NetFlow 5 and 9 (RFC 3954) and IPFIX (RFC 7011).
//!
//! Messages come as bytes with a time and an address, and what they tell comes out as [`Flow`]s. The other way round,
//! [`exporter`] makes messages of connections. There is no
//! socket and no clock here. Nothing that is read is trusted: lengths are checked, memory is bounded by
//! [`Limits`], and whatever is refused is counted.
//!
//! | module | concern |
//! |---|---|
//! | [`collector`] | [`Collector`]: messages of all exporters, with books for each |
//! | [`exporter`] | messages of IPFIX that tell of connections; THE list of what they tell |
//! | [`element`] | information elements, declared once |
//! | [`flow`] | [`Flow`]: what a record tells |
//! | [`framing`] | messages out of a byte stream |
//! | [`limits`] | every bound |
//! | `message` | headers and sets |
//! | `record` | records by their templates |
//! | [`sampling`] | which share of packets an exporter looked at |
//! | [`sequence`] | what sequence numbers say is missing |
//! | `template` | templates, and their memory |

mod bytes;
pub mod collector;
pub mod element;
pub mod exporter;
pub mod flow;
pub mod framing;
pub mod limits;
mod message;
mod record;
pub mod sampling;
pub mod sequence;
mod template;

pub use collector::{Collector, Exporter, StreamBooks, StreamKey, Transport};
pub use flow::{Direction, EndReason, Flow, Sent};
pub use limits::Limits;
pub use message::{Protocol, Refusal};
