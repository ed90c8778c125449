//! Conditions on the rows of a log, in the words of SQL: `id.resp_p = 443 AND orig_bytes > 1e6`.
//!
//! | module | concern |
//! |---|---|
//! | `words` | text to words, with their places |
//! | `parser` | words to a tree of tests |
//! | `test` | one test of a column, whose type says what it may be compared with |
//! | `number` | numbers as they are written, without rounding |
//! | `error` | [`ConditionError`] |
//!
//! As in SQL, a test of a column that is not set is neither true nor false, and neither is its negation: such a row is
//! not chosen, unless `IS NULL` asks for it.

mod error;
mod number;
mod parser;
mod test;
#[cfg(test)]
mod tests;
mod words;

use netsniff_analysis::Record;
use netsniff_analysis::notice::rules::RecordTest;
use netsniff_analysis::record::{FieldInfo, LogType, Value, Visitor};

pub use self::error::ConditionError;
use self::parser::Node;
use self::test::Test;

/// Which rows of a log are wanted.
#[derive(Clone, Debug)]
pub struct Condition {
    log: &'static LogType,
    root: Node,
    /// The tests of `root`, by their numbers in it.
    tests: Vec<Test>,
}

impl Condition {
    /// Parses a condition on the rows of a log.
    ///
    /// # Errors
    ///
    /// What cannot be understood, and where.
    pub fn parse(text: &str, log: &'static LogType) -> Result<Self, ConditionError> {
        let (root, tests) = parser::parse(text, log)?;
        Ok(Self { log, root, tests })
    }

    /// Whether a row is wanted. Those of other logs are not.
    pub fn matches<R: Record>(&self, record: &R) -> bool {
        let mut visit = |mut visitor: &mut dyn Visitor| record.visit(&mut visitor);
        record.log().path == self.log.path && self.holds(&mut visit)
    }

    /// The columns that it asks for.
    pub fn columns(&self) -> impl Iterator<Item = &'static str> {
        let fields = self.log.fields;
        self.tests.iter().filter_map(|test| fields.get(test.column)).map(|field| field.name)
    }
}

impl RecordTest for Condition {
    fn holds(&self, visit: &mut dyn FnMut(&mut dyn Visitor)) -> bool {
        let mut outcome = Outcome { tests: &self.tests, told: vec![None; self.tests.len()] };
        visit(&mut outcome);
        self.root.holds(&outcome.told) == Some(true)
    }
}

/// What the tests say of a row: nothing where a column is not set.
struct Outcome<'c> {
    tests: &'c [Test],
    told: Vec<Option<bool>>,
}

impl Visitor for Outcome<'_> {
    fn field(&mut self, index: usize, _: &'static FieldInfo, value: Value<'_>) {
        for (test, told) in self.tests.iter().zip(&mut self.told) {
            if test.column == index {
                *told = test.holds(&value);
            }
        }
    }
}
