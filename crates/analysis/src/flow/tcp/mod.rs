//! TCP connections: what Zeek's connection records say of them.
//!
//! | module | concern |
//! |---|---|
//! | [`sequence`] | numbers that wrap |
//! | [`segment`] | one segment |
//! | `acceptance` | which segments are of the connection |
//! | `refusal` | why segments are not of it |
//! | `contest` | what the others said |
//! | [`coverage`] | which numbers were skipped: the interval set |
//! | [`assembler`] | which bytes were seen and acknowledged, as Zeek counts |
//! | [`endpoint`] | one side |
//! | `hearsay` | acknowledgements of what nobody saw |
//! | [`machine`] | a segment's way through the connection |
//! | `predict` | the short way of the segment that is awaited |
//! | `delivery` | what of the streams was seen, and when they are complete |
//! | `lifetime` | from an opening to a deadline |
//! | `numbers` | how far both sides have come |
//! | `observed` | what losses and metrics need of a segment |
//! | [`losses`] | what is missing, and who lost it |
//! | [`metrics`] | what path and hosts are like |
//! | [`verdict`] | what the losses amount to in the end |
//! | [`transitions`] | how flags change the states |

mod acceptance;
pub mod assembler;
mod contest;
pub mod coverage;
mod delivery;
pub mod endpoint;
mod hearsay;
mod lifetime;
pub mod losses;
pub mod machine;
pub mod metrics;
mod numbers;
pub mod observed;
mod predict;
mod refusal;
pub mod segment;
pub mod sequence;
pub mod transitions;
pub mod verdict;

pub use contest::{Claimed, Unanswered};
pub use endpoint::{State, TcpEndpoint};
pub use hearsay::Withdrawn;
pub use machine::TcpConnection;
pub use segment::Segment;
