//! Inflating, in memory that bodies leave to those behind them.

use std::cell::RefCell;

use flate2::{Decompress, FlushDecompress, Status};

use super::{Outcome, Step};

/// Bytes that inflating one body takes, with its window.
pub(super) const BYTES: usize = 48 << 10;

/// Inflaters without a body that a thread keeps: making one takes as long as inflating a short body.
const SPARE: usize = 4;

thread_local! {
    static UNUSED: RefCell<Vec<Decompress>> = const { RefCell::new(Vec::new()) };
}

/// Inflates one body. Empty only while it is dropped.
#[derive(Debug)]
pub(super) struct Inflater(Option<Decompress>);

impl Inflater {
    /// Of zlib (RFC 1950), or of bare deflate (RFC 1951).
    pub(super) fn new(is_zlib: bool) -> Self {
        let unused = UNUSED.with_borrow_mut(Vec::pop);
        Self(Some(match unused {
            Some(mut inflater) => {
                inflater.reset(is_zlib);
                inflater
            }
            None => Decompress::new(is_zlib),
        }))
    }

    /// Inflates some of `data` to `out`.
    pub(super) fn step(&mut self, data: &[u8], out: &mut [u8]) -> Step {
        let Some(inflater) = &mut self.0 else {
            return Step { took: 0, gave: 0, outcome: Outcome::Broken };
        };
        let before = (inflater.total_in(), inflater.total_out());
        let result = inflater.decompress(data, out, FlushDecompress::None);
        let count = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(usize::MAX);
        let outcome = match result {
            Ok(Status::StreamEnd) => Outcome::Ended,
            Ok(_) => Outcome::Open,
            Err(_) => Outcome::Broken,
        };
        Step {
            took: count(inflater.total_in(), before.0),
            gave: count(inflater.total_out(), before.1),
            outcome,
        }
    }
}

impl Drop for Inflater {
    fn drop(&mut self) {
        let Some(inflater) = self.0.take() else { return };
        // A thread that ends has none any more.
        _ = UNUSED.try_with(|unused| {
            if let Ok(mut unused) = unused.try_borrow_mut()
                && unused.len() < SPARE
            {
                unused.push(inflater);
            }
        });
    }
}
