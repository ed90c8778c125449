//! Where packets come from: files, rings, tests.

use crate::Batch;

/// What a call of [`Source::read_batch`] achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The batch holds what was read; it may hold no packet. More may follow.
    More,
    /// Nothing more will come. The batch holds the last packets, if any.
    End,
}

/// Lends packets a batch at a time.
pub trait Source {
    /// What can go wrong.
    type Error;

    /// Empties `batch` and fills it with the packets that come next.
    ///
    /// # Errors
    ///
    /// Only for failures of the source itself. Damaged content is not an error: sources report it
    /// beside the packets that could be read.
    fn read_batch(&mut self, batch: &mut Batch) -> Result<Progress, Self::Error>;
}
