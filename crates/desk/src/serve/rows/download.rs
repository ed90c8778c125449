//! All rows that a condition holds for, as a file of a log has them: in the order of the log as they are read, or the first
//! ones of another order.

use core::ops::ControlFlow;
use std::time::{SystemTime, UNIX_EPOCH};

use netsniff_output::{Format, OneLog};
use netsniff_packet::Timestamp;

use super::DEEPEST;
use super::order::{First, Order};
use super::pass::{GoesOn, Passed, Wanted};
use crate::logs::Folder;

/// Bytes of rows that are kept to be put in order.
const KEPT: usize = 64 << 20;

/// Which rows are wanted, and how.
#[derive(Debug)]
pub(crate) struct Download {
    pub(crate) wanted: Wanted,
    pub(crate) format: Format,
}

/// The first rows of an order.
#[derive(Debug)]
pub(crate) struct Sorted {
    /// The file, in pieces.
    pub(crate) pieces: Vec<Vec<u8>>,
    /// How many rows it has.
    pub(crate) rows: u64,
    pub(crate) passed: Passed,
}

impl Download {
    /// The rows in the order of the log. Pieces of the file of this size, or a little more, are handed to `send` until that takes
    /// no more.
    pub(crate) fn in_order_of_log(
        &self,
        folder: &Folder,
        piece: usize,
        goes_on: GoesOn<'_>,
        mut send: impl FnMut(Vec<u8>) -> bool,
    ) -> Passed {
        let (mut file, mut out) = (OneLog::new(self.format, self.wanted.log), Vec::new());
        file.begin(now(), &mut out);
        let mut passed = self.wanted.pass(folder, goes_on, |row, _| {
            file.row(row, &mut out);
            if out.len() < piece || send(std::mem::take(&mut out)) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        if !passed.is_broken_off {
            passed.is_broken_off = file.end(now(), &mut out).is_err() || !send(out);
        }
        passed
    }

    /// The first rows in another order, in pieces of this size or a little more.
    pub(crate) fn sorted(
        &self,
        folder: &Folder,
        piece: usize,
        order: Order,
        goes_on: GoesOn<'_>,
    ) -> Sorted {
        let (mut file, mut out) = (OneLog::new(self.format, self.wanted.log), Vec::new());
        file.begin(now(), &mut out);
        let mut first = First::new(DEEPEST, KEPT);
        let mut passed = self.wanted.pass(folder, goes_on, |row, number| {
            first.take(order.rank(row.row, number), || {
                let mut bytes = Vec::new();
                file.row(row, &mut bytes);
                let size = bytes.len();
                (bytes, size)
            });
            ControlFlow::Continue(())
        });
        let (mut pieces, mut rows) = (Vec::new(), 0);
        for row in first.into_rows() {
            rows += 1;
            out.extend(row);
            if out.len() >= piece {
                pieces.push(std::mem::take(&mut out));
            }
        }
        passed.is_broken_off |= file.end(now(), &mut out).is_err();
        pieces.push(out);
        Sorted { pieces, rows, passed }
    }
}

fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    Timestamp::from_nanos(i64::try_from(now).unwrap_or(i64::MAX))
}
