//! Live traffic: rings in, logs out.
//!
//! Each ring has a thread of its own, which captures and analyses: what the kernel hands over is looked at
//! where it lies. Rows go to the thread that writes, and are refused and counted where that is too slow.
//! Nothing that happens behind the rings makes a ring wait.

pub mod books;
pub mod order;
mod ring;

pub use books::{Control, LinkState, RingReport};
pub use order::{Group, WINDOW};
pub use ring::{IfGone, Reopen, RingOutcome, RingWork, TakeUnparsed, Tap, Wanted};
