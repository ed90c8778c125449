//! Live traffic: rings in, logs out.
//!
//! Each ring has a thread of its own, which captures and analyses: what the kernel hands over is looked at
//! where it lies. Rows go to the thread that writes, and are refused and counted where that is too slow.
//! Nothing that happens behind the rings makes a ring wait.

mod analysis;
pub mod books;
pub mod merge;
mod off_thread;
pub mod onset;
mod pace;
mod recorded;
pub mod reorder;
mod ring;
mod select;
pub mod splits;
#[cfg(test)]
pub(crate) mod testing;

pub use analysis::{Analyser, TakeUnparsed};
pub use books::{Control, Earlier, HeldBehindHoles, LAG, LinkState, Moment, Return, RingReport};
pub use off_thread::{OffThread, RingAnalysis};
pub use recorded::{Recording, SharedRecorder};
pub use reorder::{PacketSlice, ReorderBuffer, RingPackets, WINDOW};
pub use ring::{Consumer, IfGone, Reopen, RingOutcome, RingWork};
pub use select::Wanted;
pub use splits::SplitFlowDetector;
