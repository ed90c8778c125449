//! What was read of a machine, for somebody else to look at.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use netsniff_doctor::diagnosis::Diagnosis;
use netsniff_doctor::kernel::Answers;
use netsniff_doctor::look::Look;
use netsniff_doctor::watch::{Packets, Watched, replay};
use serde::{Deserialize, Serialize};

/// A file of `--save`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Saved {
    interface: String,
    ticks: Vec<u64>,
    packets: Option<Packets>,
    pub(super) answers: Answers,
}

impl Saved {
    pub(super) fn new(interface: &str, watched: &Watched, answers: Answers) -> Self {
        let (ticks, packets) = (watched.ticks.clone(), watched.packets.clone());
        Self { interface: interface.to_owned(), ticks, packets, answers }
    }

    /// Reads a file of `--save`.
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        let about = || file.display().to_string();
        let text = fs::read(file).with_context(about)?;
        serde_json::from_slice(&text)
            .with_context(|| format!("{}: it is no file of netsniff doctor --save", about()))
    }
}

/// Diagnoses it as it was diagnosed there.
pub(super) fn diagnose(saved: &Saved) -> Diagnosis {
    let kernel = super::replayed(saved);
    let look = Look { kernel: &kernel, interface: &saved.interface };
    let watched = replay(&look, &saved.ticks, saved.packets.clone());
    Diagnosis::of(&saved.interface, look.megabits(), watched)
}
