//! A tool while it captures.

use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use super::PATIENCE;
use super::failure::{Failure, saying};
use super::scratch::Scratch;
use crate::testbed::Testbed;
use crate::tools::Tool;

/// How long a tool gets that does not say when it captures, and every other one in addition.
const MOMENT: Duration = Duration::from_millis(1500);
const SETTLE: Duration = Duration::from_millis(200);

/// A tool that captures, which is killed with this value.
pub(super) struct Running(pub(super) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts a tool and waits until it captures.
    ///
    /// # Errors
    ///
    /// [`Failure`], where it cannot be started, ends at once, or does not say that it captures.
    pub(super) fn start(
        bed: &Testbed,
        tool: &Tool,
        words: &[String],
        scratch: &Scratch,
    ) -> anyhow::Result<Self> {
        let mut command = bed.capture(words);
        command
            .stdin(Stdio::null())
            .stdout(scratch.file("output")?)
            .stderr(scratch.file("errors")?);
        let child = command
            .spawn()
            .map_err(|why| Failure::unable(format!("cannot start {}: {why}", tool.name)))?;
        let mut running = Self(child);
        bed.restrict(running.0.id())?;
        let end = Instant::now() + PATIENCE;
        let begin = Instant::now();
        loop {
            if let Some(status) = running.0.try_wait().context("cannot wait for a tool")? {
                let (_, errors) = scratch.said();
                let what = format!("{} ended at once ({status})", tool.name);
                bail!(Failure::unable(saying(what, &errors)));
            }
            let is_ready = match tool.ready {
                Some(words) => scratch.said().1.contains(words),
                None => begin.elapsed() >= MOMENT,
            };
            if is_ready {
                thread::sleep(SETTLE);
                return Ok(running);
            }
            ensure!(
                Instant::now() < end,
                Failure::unable(format!("{} does not say that it captures", tool.name))
            );
            thread::sleep(SETTLE / 10);
        }
    }
}
