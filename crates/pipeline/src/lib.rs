//! From packets to logs: reading, sharing out, analysing, merging.
//!
//! One thread reads and decodes ([`DecodeStage`](netsniff_analysis::engine::decoding::DecodeStage)) and shares the
//! datagrams out by their addresses. Each worker has a [`Shard`](netsniff_analysis::engine::shard::Shard) with flows of its own, and
//! renders their records. One thread merges the rows of all workers by their keys. All of them move
//! in rounds: a round of packets goes to every worker, empty where none is its own, and comes back
//! as sorted rows that are complete up to a watermark. So the output does not depend on the number
//! of workers. With one worker everything runs in the calling thread, without any hand-off.

pub mod books;
pub mod live;
pub mod receiving;
pub mod recording;
pub mod run;
pub mod sending;
pub mod shedding;
mod threads;

pub use run::{AnalysisOutcome, Attend, Settings, read_size, run};
pub use threads::share_of;
