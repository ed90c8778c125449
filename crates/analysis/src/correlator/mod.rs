//! Joins: records that no flow can tell by itself.
//!
//! Flows are shared out to workers by their addresses, so what several of them tell together may
//! come from several workers. Each tells [`Fact`]s, which travel with the sort keys of records. The
//! correlator stands where these are merged, gets the facts in their order, and so finds the same for
//! any number of workers. A [`Join`] takes some types of facts and makes rows of them. It stands beside the
//! protocol that tells these facts, which names it
//! ([`Protocol::joins`](crate::protocol::Protocol::joins)).
//!
//! | module | concern |
//! |---|---|
//! | [`exchanges`] | exchanges in progress, bounded, with the looks that end them |

pub mod exchanges;

use core::any::TypeId;
use core::fmt::Debug;
use std::vec;

use netsniff_packet::Timestamp;

use crate::limits::Limits;
use crate::record::{Columns, Connection, Fact, Row, SortKey, WholeRow};

/// Makes a join that has seen nothing, within some bounds.
pub type MakeJoin = fn(&Limits) -> Box<dyn Join>;

/// Makes rows of facts.
///
/// What it holds is bounded by fields of [`Limits`].
pub trait Join: Debug + Send {
    /// The types of the facts that it takes. No two joins take one type.
    fn takes(&self) -> &'static [TypeId];

    /// Takes a fact of `connection` that belongs at `key`. Of one that came with a row it sets the last columns
    /// ([`JoinOutput::columns`]), which else have no values.
    fn fact(
        &mut self,
        key: &SortKey,
        connection: &Connection,
        fact: &dyn Fact,
        out: &mut JoinOutput,
    );

    /// Looks at what waits to be over, as Zeek looks at its tables.
    fn look(&mut self, _key: &SortKey, _out: &mut JoinOutput) {}

    /// Tells all that waits, since the input ended at engine time `now`.
    fn finish(&mut self, _now: Timestamp, _out: &mut JoinOutput) {}

    /// What its bound made it give up so far.
    fn given_up(&self) -> Option<GivenUp> {
        None
    }

    /// What became of the files that it extracts.
    fn extraction(&self) -> Option<ExtractionStatistics> {
        None
    }
}

/// A row of a join, which is of no single connection.
#[derive(Debug)]
pub struct JoinedRow {
    /// Its place in the order of all rows.
    pub key: SortKey,
    /// The row, as its protocol declares it.
    pub row: Box<dyn Row>,
}

/// What joins make of one fact, of a look, or of the end.
#[derive(Debug, Default)]
pub struct JoinOutput {
    rows: Vec<JoinedRow>,
    columns: Option<Box<dyn Columns>>,
}

impl JoinedRow {
    /// The row with the columns of its connection.
    #[must_use]
    pub fn whole(&self) -> WholeRow<'_> {
        WholeRow::new(&Connection::NONE, &*self.row)
    }
}

impl JoinOutput {
    /// Adds a row that belongs at `key`.
    pub fn row(&mut self, key: SortKey, row: impl Row + 'static) {
        self.rows.push(JoinedRow { key, row: Box::new(row) });
    }

    /// Sets the last columns of the row that came with the fact.
    pub fn columns(&mut self, columns: impl Columns + 'static) {
        self.columns = Some(Box::new(columns));
    }

    /// The rows so far, which empties them.
    pub fn drain(&mut self) -> vec::Drain<'_, JoinedRow> {
        self.rows.drain(..)
    }
}

/// What joins amount to, and what their bounds made them give up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinStatistics {
    /// What joins gave up, each whose bound was reached.
    pub given_up: Vec<GivenUp>,
    /// What became of the files that were to be extracted.
    pub extraction: ExtractionStatistics,
}

/// What a join gave up, as the summary has it: "the bound of `bound` `of` was reached: `count` `what`".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// Its bound.
    pub bound: Bound,
    /// What the bound is of.
    pub of: &'static str,
    /// How much was given up.
    pub count: u64,
    /// What became of it.
    pub what: &'static str,
}

/// A bound of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// So many at a time.
    Number(usize),
    /// So many bytes for all of them.
    Bytes(usize),
}

/// What became of the files that were to be extracted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtractionStatistics {
    /// Files that were kept.
    pub files: u64,
    /// Their bytes, holes among them.
    pub bytes: u64,
    /// Those of them that were longer than a file may be.
    pub cut: u64,
    /// Files that were not kept since a bound was reached.
    pub refused: u64,
    /// Files that were not kept since they came faster than they could be written.
    pub overrun: u64,
    /// Files that could not be written.
    pub failed: u64,
}

/// All joins, with the facts that wait in them.
#[derive(Debug)]
pub struct Correlator {
    joins: Vec<Box<dyn Join>>,
    /// Which of them takes a type of facts.
    takers: Vec<(TypeId, usize)>,
    out: JoinOutput,
}

impl Correlator {
    /// These joins, of which none has seen anything.
    #[must_use]
    pub fn new(limits: &Limits, joins: impl Iterator<Item = MakeJoin>) -> Self {
        let mut correlator =
            Self { joins: Vec::new(), takers: Vec::new(), out: JoinOutput::default() };
        joins.for_each(|join| correlator.add(join(limits)));
        correlator
    }

    /// Adds a join, which has seen nothing.
    pub fn add(&mut self, join: Box<dyn Join>) {
        let at = self.joins.len();
        self.takers.extend(join.takes().iter().map(|&taken| (taken, at)));
        self.joins.push(join);
    }

    /// Takes a fact of `connection` that belongs at `key`. Facts come in the order of their keys. Returns the
    /// last columns of the row that came with it, if one did, and the rows that it makes.
    pub fn fact(
        &mut self,
        key: &SortKey,
        connection: &Connection,
        fact: &dyn Fact,
    ) -> (Option<Box<dyn Columns>>, vec::Drain<'_, JoinedRow>) {
        let id = fact.type_id();
        let taker = self.takers.iter().find(|(taken, _)| *taken == id);
        self.out.columns = None;
        if let Some(join) = taker.and_then(|&(_, at)| self.joins.get_mut(at)) {
            join.fact(key, connection, fact, &mut self.out);
        }
        (self.out.columns.take(), self.out.drain())
    }

    /// Looks at what waits to be over, at `key` among the facts.
    pub fn look(&mut self, key: &SortKey) -> vec::Drain<'_, JoinedRow> {
        for join in &mut self.joins {
            join.look(key, &mut self.out);
        }
        self.out.drain()
    }

    /// Tells all that waits, since the input ended at engine time `now`.
    pub fn finish(&mut self, now: Timestamp) -> vec::Drain<'_, JoinedRow> {
        for join in &mut self.joins {
            join.finish(now, &mut self.out);
        }
        self.out.rows.sort_by_key(|joined| joined.key);
        self.out.drain()
    }

    /// What it amounts to so far.
    #[must_use]
    pub fn statistics(&self) -> JoinStatistics {
        let given_up = self.joins.iter().filter_map(|join| join.given_up());
        let extraction = self.joins.iter().find_map(|join| join.extraction());
        JoinStatistics {
            given_up: given_up.filter(|given_up| given_up.count > 0).collect(),
            extraction: extraction.unwrap_or_default(),
        }
    }
}
