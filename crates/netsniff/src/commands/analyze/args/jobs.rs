//! Arguments of files that are analysed side by side.

use netsniff_analysis::Options;
use netsniff_console::UsageError;
use netsniff_console::quantity::threads;
use netsniff_pipeline::Jobs;

/// Bytes of rows that may wait of a file that is analysed before its turn, where no memory is told.
const WAITING_BYTES: usize = 256 << 20;

/// How many files are analysed at once.
#[derive(Debug, Default, clap::Args)]
pub(super) struct JobArgs {
    /// Threads that each analyse a file by itself. Pairs of hosts that go on from one file to the next are analysed in
    /// order, and the logs are the same
    #[arg(long, value_name = "N", value_parser = threads, conflicts_with_all = ["interfaces", "follow", "workers", "from", "to", "reorder"])]
    jobs: Option<usize>,
}

impl JobArgs {
    /// Threads that each analyse a file, if that is wanted.
    pub(super) const fn threads(&self) -> Option<usize> {
        self.jobs
    }

    /// Engines that share bounds.
    pub(super) fn engines(&self) -> Option<usize> {
        self.jobs.map(|threads| Jobs { threads, waiting_bytes: 0 }.engines())
    }

    /// Workers of each engine.
    pub(super) fn workers(&self) -> Option<usize> {
        self.jobs.map(|_| 1)
    }

    /// How files are to be analysed side by side, if they are; `waiting` bytes of rows may wait of one where that is bounded.
    ///
    /// # Errors
    ///
    /// Where something is wanted that looks at all packets in their order.
    pub(super) fn jobs(
        &self,
        options: &Options,
        extracts: bool,
        waiting: Option<usize>,
    ) -> Result<Option<Jobs>, UsageError> {
        let Some(threads) = self.jobs else { return Ok(None) };
        let unfit = [
            ("--series", options.series.is_some()),
            ("--notices, --intel and rules", options.watch.is_some()),
            ("--extract-files", extracts),
        ];
        if let Some((name, _)) = unfit.iter().find(|(_, is_wanted)| *is_wanted) {
            return Err(UsageError(format!("{name} cannot be combined with --jobs")));
        }
        let waiting_bytes = waiting.unwrap_or(WAITING_BYTES);
        Ok(Some(Jobs { threads, waiting_bytes }))
    }
}
