//! TCP connections: what Zeek's connection records say of them.
//!
//! | module | concern |
//! |---|---|
//! | [`sequence`] | numbers that wrap |
//! | [`segment`] | one segment |
//! | [`coverage`] | which numbers were skipped: the interval set |
//! | [`assembler`] | which bytes were seen and acknowledged, as Zeek counts |
//! | [`endpoint`] | one side |
//! | [`observed`] | what losses and metrics need of a segment |
//! | [`losses`] | what is missing, and who lost it |
//! | [`metrics`] | what path and hosts are like |
//! | [`held`] | SYNs with data that nobody has answered yet |
//! | [`connection`] | a segment's way through the connection |

pub mod assembler;
pub mod connection;
pub mod coverage;
pub mod endpoint;
pub mod held;
pub mod losses;
pub mod metrics;
pub mod observed;
pub mod segment;
pub mod sequence;

pub use connection::{Claimed, TcpConnection, Unanswered, Withdrawn};
pub use endpoint::{State, TcpEndpoint};
pub use held::HeldSyn;
pub use segment::Segment;
