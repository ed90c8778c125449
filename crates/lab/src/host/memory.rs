//! A bound on the memory of a capture: a host with less of it (PAPERS C3), by a control group of the kernel.
//!
//! What the group may not exceed is what its processes touch: their own memory, and the pages of files that they write, those
//! in memory among them. Of the latter the kernel can take back what is on a disk; where nothing is left to take, it kills.
//! The ring of a capture is the kernel's own and does not count.

use std::path::Path;

use super::group::{Group, MEMORY, Version};
use crate::tools;

/// The smallest bound: with less no tool begins.
const LEAST: u64 = 1 << 20;

/// Bytes that a capture may have; `None` for `off`.
///
/// # Errors
///
/// A sentence, where that is no size.
pub(crate) fn parse(text: &str) -> Result<Option<u64>, String> {
    if text == "off" {
        return Ok(None);
    }
    let bytes = tools::bytes(text).filter(|bytes| *bytes >= LEAST);
    let said =
        || format!("{text:?} is no bound on memory: it is bytes, 1M or more, as 64M, or off");
    bytes.map(Some).ok_or_else(said)
}

/// A group that may have so much memory.
#[derive(Debug)]
pub(crate) struct Bound {
    group: Group,
    bytes: u64,
}

/// What has happened in a group since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pressure {
    /// How often the bound was reached.
    pub(crate) reached: u64,
    /// How many processes were killed for it.
    pub(crate) killed: u64,
}

impl Bound {
    /// One of so many bytes. What is changed beside it stands in `scratch`.
    ///
    /// # Errors
    ///
    /// Those of [`Group::make`], and where the kernel does not take the bound.
    pub(crate) fn make(name: &str, bytes: u64, scratch: &Path) -> anyhow::Result<Self> {
        let group = Group::make(&MEMORY, name, scratch)?;
        let (bound, swap) = match group.version() {
            Version::First => ("memory.limit_in_bytes", ("memory.memsw.limit_in_bytes", bytes)),
            Version::Second => ("memory.max", ("memory.swap.max", 0)),
        };
        group.set(bound, &bytes.to_string())?;
        // Kernels may not account for swap, and then have no such file.
        let _ = group.set(swap.0, &swap.1.to_string());
        Ok(Self { group, bytes })
    }

    /// Bytes that it allows.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Puts a process under it. What that has already does not count.
    ///
    /// # Errors
    ///
    /// Where it is gone.
    pub(crate) fn take(&self, pid: u32) -> anyhow::Result<()> {
        self.group.take(pid)
    }

    /// What has happened so far.
    ///
    /// # Errors
    ///
    /// Where the kernel does not tell.
    pub(crate) fn pressure(&self) -> anyhow::Result<Pressure> {
        let (reached, killed) = match self.group.version() {
            Version::First => {
                let killed = self.group.read("memory.oom_control")?;
                (
                    self.group.read("memory.failcnt")?.trim().parse().ok(),
                    number(&killed, "oom_kill"),
                )
            }
            Version::Second => {
                let events = self.group.read("memory.events")?;
                (number(&events, "max"), number(&events, "oom_kill"))
            }
        };
        let Some((reached, killed)) = reached.zip(killed) else {
            anyhow::bail!("the kernel does not tell how often the bound on memory was reached");
        };
        Ok(Pressure { reached, killed })
    }
}

/// The number behind a name at the begin of a line.
fn number(text: &str, name: &str) -> Option<u64> {
    let rest = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_sizes() {
        assert_eq!((parse("64M"), parse("off")), (Ok(Some(64 << 20)), Ok(None)));
        for wrong in ["", "0", "9", "1023K", "64Q", "all", "-1M"] {
            let said = parse(wrong).unwrap_err();
            assert!(said.starts_with(&format!("{wrong:?} is no bound on memory")), "{said}");
        }
    }

    #[test]
    fn the_kernel_names_its_numbers() {
        let events = "low 0\nhigh 3\nmax 17\noom 2\noom_kill 1\noom_group_kill 9\n";
        assert_eq!((number(events, "max"), number(events, "oom_kill")), (Some(17), Some(1)));
        let control = "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n";
        assert_eq!((number(control, "oom_kill"), number(control, "max")), (Some(4), None));
    }
}
