//! The end of the process that started this one.

/// Whether the run ends with the process that started it.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(in crate::commands::analyze) struct ParentArgs {
    /// End in good order when the process that started this one ends, however that happens. Linux only
    #[arg(long)]
    end_with_parent: bool,
}

impl ParentArgs {
    /// Lets the kernel send SIGTERM then (`PR_SET_PDEATHSIG`, prctl(2)).
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    #[cfg(target_os = "linux")]
    pub(in crate::commands::analyze) fn heed(self) -> anyhow::Result<()> {
        use anyhow::Context as _;
        use rustix::process::{Signal, getppid, set_parent_process_death_signal};

        if self.end_with_parent {
            let parent = getppid();
            set_parent_process_death_signal(Some(Signal::TERM))
                .context("cannot ask for the end of the process that started this")?;
            // It may have ended before that was asked for.
            anyhow::ensure!(getppid() == parent, "the process that started this has ended");
        }
        Ok(())
    }

    /// Says that it cannot be done.
    ///
    /// # Errors
    ///
    /// Always where it is asked for.
    #[cfg(not(target_os = "linux"))]
    pub(in crate::commands::analyze) fn heed(self) -> anyhow::Result<()> {
        anyhow::ensure!(!self.end_with_parent, "--end-with-parent needs Linux");
        Ok(())
    }
}
