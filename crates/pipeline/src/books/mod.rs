//! The books of a live capture: what the kernel, the rings and the analysis have counted, side by side.
//!
//! Every column has a counter of its own; only `unexplained` is a difference, and nobody knows it while any
//! other column is not known.

mod entry;
mod keeper;
mod metrics;
mod sightings;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod watched;

pub use entry::{BooksLine, BooksScope};
pub use keeper::{BooksKeeper, LEAD, RingPlace};
pub use metrics::add_metrics;
