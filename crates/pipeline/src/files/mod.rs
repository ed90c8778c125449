//! Analysis of files, from the first packet to the last record.
//!
//! | module | concern |
//! |---|---|
//! | [`run`] | settings, outcome, and the analysis in one thread |
//! | [`crew`] | several threads, that read, decode and merge in turns |
//! | [`parts`] | parts of the input, each analysed by a thread of its own |
//! | [`board`] | the rounds on their way, and what a thread does next |
//! | [`reading`] | the source and its decoding: pieces of input become rounds |

mod board;
mod crew;
mod parts;
mod reading;
mod run;
#[cfg(test)]
mod tests;

pub use crew::share_of;
pub use parts::{
    AttendParts, Jobs, OpenPart, PartIntake, PartReading, PartSource, PartsOutcome, run_parts,
};
pub use run::{AnalysisOutcome, Attend, Settings, read_size, run};
