//! How fast stored packets are processed on this machine: by stage of netsniff, by its options, and beside other programs
//! (PAPERS C22).
//!
//! | module | concern |
//! |---|---|
//! | [`subject`] | what is run: stages of netsniff, workers, variants of options |
//! | [`peers`] | THE list of other programs |
//! | [`figures`] | what runs of a file come to: pure |
//! | `running` | a process on processors of its own, with everything that it used |
//! | [`rounds`] | the rounds of a file: every subject once in each |
//!
//! Whatever is compared is run in the same rounds, so that what disturbs the machine for a while disturbs both. The cost of a
//! stage, of an option and of more workers is the mean of differences within rounds, with Student's interval of 95 %.

pub mod figures;
pub mod peers;
pub mod rounds;
mod running;
pub mod subject;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use self::subject::OfflineSubject;

/// What is in a capture file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredCapture {
    /// The file, by its whole name.
    pub path: PathBuf,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Packets in it.
    pub packets: u64,
    /// Bytes that its packets had on the wire.
    pub wire_bytes: u64,
    /// Bytes of its packets that are in the file.
    pub captured_bytes: u64,
    /// Where it is damaged or cut, in sentences; empty where it is whole.
    pub damage: Vec<String>,
}

/// A process that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfflineRun {
    /// The round, from 0, which only fills caches and counts for nothing.
    pub round: u32,
    /// The name of what was run.
    pub subject: String,
    /// Nanoseconds from its start to its end.
    pub wall_ns: u64,
    /// Nanoseconds on processors in its own code, of all its threads.
    pub user_ns: u64,
    /// Nanoseconds on processors in the kernel, of all its threads.
    pub system_ns: u64,
    /// The most resident memory that it had at once, in bytes; `None` where it had no more than the lab: a process shares the
    /// memory of the one that starts it up to its own first instruction, and the kernel counts that.
    pub peak_bytes: Option<u64>,
    /// Bytes that the most resident memory did not exceed, where it is not known.
    pub peak_below: Option<u64>,
    /// Packets that it says it has read; `None` where it does not say.
    pub packets: Option<u64>,
    /// Why it proves nothing, in a sentence; `None` where nothing is wrong.
    pub failure: Option<String>,
}

impl OfflineRun {
    /// Nanoseconds on processors.
    #[must_use]
    pub const fn cpu_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }

    /// Whether it counts for figures.
    #[must_use]
    pub const fn counts(&self) -> bool {
        self.round > 0 && self.failure.is_none()
    }
}

/// All that was measured of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredOutcome {
    /// What is in the file.
    pub capture: StoredCapture,
    /// Rounds that were asked for, without the first one.
    pub rounds: u32,
    /// What was run, in its order.
    pub subjects: Vec<OfflineSubject>,
    /// Every run.
    pub runs: Vec<OfflineRun>,
    /// Why it ended before all rounds were done, in a sentence.
    pub ended: Option<String>,
}
