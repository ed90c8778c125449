//! Rows of logs on their way to receivers: a spool on disk, a sender for each target, and books.
//!
//! A row goes through the spool always, so that a process that is killed has lost none that the spool took. Every row has
//! an identity (sensor, run, log, and its number in the log), by which a receiver knows rows that came twice and misses
//! those that did not come.
//!
//! | module | concern |
//! |---|---|
//! | [`address`] | the URL of a target, and secrets that do not stand in it |
//! | [`avro`] | rows in Avro, and the schemas of logs |
//! | [`target`] | how a batch of rows is sent, and what the receiver says; THE list of ways |
//! | [`spool`] | rows on disk, and how far they were delivered |
//! | `sender` | the thread that sends: batches, retries, what is refused |
//! | [`books`] | where every row went |
//! | [`delivery`] | a target with its spool and its sender |
//! | [`sink`] | rows as they come, beside other sinks |

pub mod address;
pub mod avro;
pub mod books;
pub mod delivery;
pub mod identity;
mod sender;
pub mod sink;
pub mod spool;
pub mod target;

pub use address::Address;
pub use books::Books;
pub use delivery::{Delivery, Settings, Target};
pub use identity::Identity;
pub use sink::{Deliveries, Delivering};
pub use spool::OnFull;
