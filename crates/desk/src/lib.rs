//! The desk: what people look at. It reads logs back and shows them; it sees no packet.

pub mod logs;
mod page;
pub mod report;
pub mod serve;
pub mod top;
mod watch;
