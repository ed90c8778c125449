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

use super::json::Objects;
use super::{LogEncoder, RowFormat, RowStyle, StreamLayout};

pub(super) use self::dialect::{Dialect, Document, Form, Told, derived, told, told_as};
pub(super) use self::plan::Plans;
#[cfg(test)]
pub(super) use self::plan::tests::check;
pub(super) use self::write::{Inputs, elements};

thread_local! {
    /// A document that is being written, behind the values that it is made of.
    static DOCUMENT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A format whose rows are documents of a dialect.
pub(super) trait Documents {
    /// What the names of its files end with, behind a dot.
    const EXTENSION: &'static str;

    /// The plans of its dialect.
    const PLANS: fn() -> &'static Plans;
}

impl<D: Documents> RowFormat for D {
    const EXTENSION: &'static str = D::EXTENSION;

    #[inline]
    fn begin_row<R: Record>(_: RowStyle, record: &R, time: Option<Timestamp>, out: &mut Vec<u8>) {
        row::begin(record.transport(), time, out);
    }

    #[inline]
    fn columns<R: Record>(_: RowStyle, record: &R, out: &mut Vec<u8>) {
        let plan = (D::PLANS)().of(record.log());
        record.visit(&mut row::Appender::new(&plan, out));
    }

    fn end_row(log: &'static LogType, start: usize, out: &mut Vec<u8>) {
        let plan = (D::PLANS)().of(log);
        DOCUMENT.with_borrow_mut(|document| {
            document.clear();
            plan.write(out.get(start..).unwrap_or_default(), document);
            out.truncate(start);
            out.extend_from_slice(document);
        });
    }

    fn encoder(_: &'static LogType) -> Box<dyn LogEncoder> {
        Box::new(Objects)
    }

    fn paths(log: &'static LogType) -> Option<Vec<Option<String>>> {
        Some((D::PLANS)().paths(log))
    }

    /// A document tells by itself which log it is of.
    const STREAM: Option<StreamLayout> =
        Some(StreamLayout { begin: |_, _| {}, row: |_, row, out| out.extend_from_slice(row) });
}
