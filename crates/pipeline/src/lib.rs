//! From packets to logs: reading, sharing out, analysing, merging.
//!
//! Packets are decoded ([`DecodeStage`](netsniff_analysis::engine::decoding::DecodeStage)) and shared out by their
//! addresses. Each worker is a thread with a [`Shard`](netsniff_analysis::engine::shard::Shard) of flows of its own, whose records it
//! renders; in between it reads, or merges the rows of all. They move
//! in rounds: a round of packets goes to every worker, empty where none is its own, and comes back
//! as sorted rows that are complete up to a watermark. So the output does not depend on the number
//! of workers. With one worker everything runs in the calling thread, without any hand-off.

pub mod books;
pub mod carving;
pub mod collecting;
mod files;
pub mod live;
pub mod receiving;
pub mod recording;
pub mod sending;
pub mod shedding;

pub use files::{
    AnalysisOutcome, Attend, AttendParts, Jobs, OpenPart, PartIntake, PartReading, PartSource,
    PartsOutcome, Settings, read_size, run, run_parts, share_of,
};
