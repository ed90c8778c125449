//! Sending a load, while a tool is watched.

use std::path::Path;
use std::time::Instant;

use anyhow::bail;
use serde::Deserialize;

use super::PATIENCE;
use super::failure::Failure;
use super::steady::CpuTime;
use crate::host::process;
use crate::load::Load;
use crate::testbed::{GeneratorOutput, Testbed};

/// What the generator says.
#[derive(Debug, Deserialize)]
pub(super) struct Sent {
    pub(super) frames: u64,
    pub(super) frames_per_second: Option<f64>,
    pub(super) stalls: u64,
    pub(super) slipped_ns: u64,
    pub(super) error: Option<String>,
}

/// A tool's memory and work, looked at again and again.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) resident: Series,
    pub(super) own: Series,
    pub(super) work: CpuTime,
}

impl Memory {
    pub(super) fn add(&mut self, usage: process::Usage) {
        self.resident.add(usage.resident);
        if let Some(own) = usage.own {
            self.own.add(own);
        }
    }
}

/// A number that changes.
#[derive(Default)]
pub(super) struct Series {
    pub(super) peak: u64,
    sum: u64,
    samples: u64,
}

impl Series {
    fn add(&mut self, value: u64) {
        self.peak = self.peak.max(value);
        self.sum += value;
        self.samples += 1;
    }

    pub(super) fn mean(&self) -> Option<u64> {
        self.sum.checked_div(self.samples)
    }
}

/// Sends a load, with an eye on the memory of a process.
pub(super) fn send(
    bed: &Testbed,
    netsniff: &Path,
    load: &Load,
    pid: u32,
) -> anyhow::Result<(Sent, Memory)> {
    let mut memory = Memory::default();
    let begin = Instant::now();
    let mut look = || {
        if let Some(usage) = process::usage(pid) {
            memory.add(usage);
            memory.work.add(begin.elapsed().as_secs_f64(), usage.cpu_ns);
        }
    };
    let GeneratorOutput { report, errors } =
        bed.send(netsniff, load, load.time + PATIENCE, &mut look)?;
    let sent: Sent = serde_json::from_str(&report)
        .map_err(|_| Failure::new(format!("the generator failed: {}", errors.trim())))?;
    if let Some(error) = &sent.error {
        bail!(Failure::new(format!("the generator failed: {error}")));
    }
    Ok((sent, memory))
}
