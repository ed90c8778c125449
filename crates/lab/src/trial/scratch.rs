//! Where a tool says and writes what is counted after a run.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::disk::{Drain, Written};
use crate::testbed::{SENDER_CPU, Testbed};
use crate::tools::{Counted, Tool};

/// Directories that go with this value: for what a tool says, in memory, and for what it writes, which may be the same.
pub(super) struct Scratch {
    said: PathBuf,
    /// For the files of the tool.
    pub(super) files: PathBuf,
}

impl Scratch {
    /// Makes them, for one run.
    pub(super) fn make(bed: &Testbed) -> anyhow::Result<Self> {
        use std::os::unix::fs::PermissionsExt as _;
        let [said, files] = [&bed.scratch(), bed.files()].map(|at| at.join("run"));
        let scratch = Self { said, files };
        for path in scratch.paths() {
            fs::create_dir(path).context("cannot make a directory for scratch files")?;
            // Tools give their rights up.
            fs::set_permissions(path, fs::Permissions::from_mode(0o777))
                .context("cannot open a directory to tools")?;
        }
        Ok(scratch)
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        let other = (self.files != self.said).then_some(&*self.files);
        std::iter::once(&*self.said).chain(other)
    }

    /// A file for `output` or `errors` of the tool.
    pub(super) fn file(&self, name: &str) -> anyhow::Result<File> {
        File::create(self.said.join(name)).with_context(|| format!("cannot write {name}"))
    }

    /// What is in these two.
    pub(super) fn said(&self) -> (String, String) {
        let said = |name| fs::read(self.said.join(name)).unwrap_or_default();
        ["output", "errors"].map(|name| String::from_utf8_lossy(&said(name)).into_owned()).into()
    }

    /// The planted disk under the tool's file, where the bed has one.
    pub(super) fn drain(&self, bed: &Testbed, tool: &Tool) -> anyhow::Result<Option<Drain>> {
        let open = |disk| Drain::open(disk, &tool.file(&self.files), bed.processors(), SENDER_CPU);
        bed.disk().map(open).transpose()
    }

    /// What a tool that has ended captured, and what the planted disk has of it.
    pub(super) fn count(
        &self,
        tool: &Tool,
        disk: Option<Drain>,
    ) -> anyhow::Result<(Counted, Option<Written>)> {
        let (output, errors) = self.said();
        let written = disk.map(Drain::finish).transpose()?;
        let counted = match &written {
            None => tool.counted(&output, &errors, &self.files)?,
            Some(written) => {
                tool.counted_by(&output, &errors, || (written.packets, written.order))?
            }
        };
        Ok((counted, written))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for path in self.paths() {
            let _ = fs::remove_dir_all(path);
        }
    }
}
