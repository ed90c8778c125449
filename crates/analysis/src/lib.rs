//! The sans-IO brain of netsniff: flows, reassembly, protocols and the records they yield.
//!
//! | module | concern |
//! |---|---|
//! | [`record`] | what a record is: declared once, visited field by field, ordered by a key |
//! | [`log`] | the logs: one file each, and the list of all |
//! | [`uid`] | [`Uid`]: the name of a flow |

pub mod log;
pub mod record;
pub mod uid;

pub use record::{Observer, Phase, Record, SortKey};
pub use uid::Uid;
