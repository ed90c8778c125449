//! TCP connections: what Zeek's connection records say of them.
//!
//! | module | concern |
//! |---|---|
//! | [`sequence`] | numbers that wrap |
//! | [`assembler`] | which bytes were seen |
//! | [`endpoint`] | one side |
//! | [`machine`] | a segment's way through the connection |
//! | [`metrics`] | what path and hosts are like |
//! | [`transitions`] | how flags change the states |

pub mod assembler;
pub mod endpoint;
pub mod machine;
pub mod metrics;
pub mod sequence;
pub mod transitions;

pub use endpoint::{State, TcpEndpoint};
pub use machine::{Segment, TcpConnection};
