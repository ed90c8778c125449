//! Where rows go that nobody wants.

use netsniff_analysis::SortKey;

use super::{LiveSink, RowSink, SinkBooks};

/// Takes rows and forgets them. Records are not even rendered where there is no format.
#[derive(Debug, Default)]
pub struct Nowhere(SinkBooks);

impl RowSink for Nowhere {
    type Error = anyhow::Error;

    fn row(&mut self, log: usize, _: &SortKey, _: &[u8]) -> anyhow::Result<()> {
        self.0.written.add_row(log);
        Ok(())
    }
}

impl LiveSink for Nowhere {
    fn books(&self) -> &SinkBooks {
        &self.0
    }
}
