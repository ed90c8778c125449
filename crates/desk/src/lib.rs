//! The desk: what people look at. It reads logs back and shows them; of packets it sees only those that
//! `netsniff extract` wrote.

pub mod logs;
mod page;
pub mod report;
pub mod sequence;
pub mod serve;
pub mod top;
mod watch;
