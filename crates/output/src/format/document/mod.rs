//! Rows as JSON documents in the words of others: a [`Dialect`] says where each column stands.
//!
//! A dialect is a table. Of it and of the columns of a log a [`Plan`] is made, once. The worker renders the values of a
//! row in the order of the log, and, once all are there, writes them in the order of the plan.

mod dialect;
mod plan;
mod row;
mod write;

use std::cell::RefCell;

use netsniff_analysis::Record;
use netsniff_analysis::record::LogType;
use netsniff_packet::Timestamp;

use super::StreamLayout;

pub(super) use self::dialect::{Dialect, Document, Form, Told, derived, told, told_as};
pub(super) use self::plan::Plans;
#[cfg(test)]
pub(super) use self::plan::tests::check;
pub(super) use self::write::{Inputs, elements};

thread_local! {
    /// A document that is being written, behind the values that it is made of.
    static DOCUMENT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Begins the values of a row.
#[inline]
pub(super) fn begin<R: Record>(record: &R, time: Option<Timestamp>, out: &mut Vec<u8>) {
    row::begin(record.transport(), time, out);
}

/// Appends the values of some columns.
#[inline]
pub(super) fn columns<R: Record>(plans: &'static Plans, record: &R, out: &mut Vec<u8>) {
    let plan = plans.of(record.log());
    record.visit(&mut row::Appender::new(&plan, out));
}

/// Makes a document of the values of a row of `log`, which begin where `out` had `start` bytes.
pub(super) fn end(plans: &'static Plans, log: &'static LogType, start: usize, out: &mut Vec<u8>) {
    let plan = plans.of(log);
    DOCUMENT.with_borrow_mut(|document| {
        document.clear();
        plan.write(out.get(start..).unwrap_or_default(), document);
        out.truncate(start);
        out.extend_from_slice(document);
    });
}

/// A document tells by itself which log it is of.
pub(super) const STREAM: StreamLayout =
    StreamLayout { begin: |_, _| {}, row: |_, row, out| out.extend_from_slice(row) };
