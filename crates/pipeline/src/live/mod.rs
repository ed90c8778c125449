//! Live traffic: rings in, logs out.
//!
//! Each ring has a thread of its own, which captures and analyses: what the kernel hands over is looked at
//! where it lies. Rows go to the thread that writes, and are refused and counted where that is too slow.
//! Nothing that happens behind the rings makes a ring wait.

mod analysis;
mod apart;
pub mod books;
pub mod merge;
pub mod onset;
pub mod order;
mod pace;
mod recorded;
mod ring;
mod select;
pub mod splits;
#[cfg(test)]
pub(crate) mod testing;

pub use analysis::{Analyser, TakeUnparsed};
pub use apart::{OffThread, RingAnalysis};
pub use books::{Control, Earlier, LAG, LinkState, Moment, Return, RingReport};
pub use order::{PacketSlice, ReorderBuffer, RingPackets, WINDOW};
pub use recorded::{Recording, SharedRecorder};
pub use ring::{Consumer, IfGone, Reopen, RingOutcome, RingWork};
pub use select::Wanted;
pub use splits::SplitFlowDetector;
