//! How many rows of which log: what was written, and what was not.

use super::LOGS;

/// Numbers of rows, by log, and of facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowTally {
    rows: Vec<u64>,
    facts: u64,
}

impl Default for RowTally {
    fn default() -> Self {
        Self { rows: vec![0; LOGS.len()], facts: 0 }
    }
}

impl RowTally {
    /// Rows of the log that counts so in [`LOGS`].
    #[must_use]
    pub fn rows(&self, log: usize) -> u64 {
        self.rows.get(log).copied().unwrap_or_default()
    }

    /// Logs that have rows here, by their places in [`LOGS`], with the numbers of these.
    pub fn logs(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.rows.iter().copied().enumerate().filter(|(_, rows)| *rows > 0)
    }

    /// Rows of all logs.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.rows.iter().sum()
    }

    /// Facts of which it does not depend on them alone how many rows they make
    /// ([`Fact::log`](crate::record::Fact::log)). The others count as the row that
    /// each makes.
    #[must_use]
    pub const fn facts(&self) -> u64 {
        self.facts
    }

    /// Adds the numbers of `other`.
    pub fn add(&mut self, other: &Self) {
        for (rows, more) in self.rows.iter_mut().zip(&other.rows) {
            *rows += more;
        }
        self.facts += other.facts;
    }

    /// What is left without `other`; never below 0.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        let mut left = self.clone();
        for (rows, fewer) in left.rows.iter_mut().zip(&other.rows) {
            *rows = rows.saturating_sub(*fewer);
        }
        left.facts = left.facts.saturating_sub(other.facts);
        left
    }

    /// Counts one more row of a log.
    pub fn add_row(&mut self, log: usize) {
        self.add_rows(log, 1);
    }

    /// Counts more rows of a log.
    pub fn add_rows(&mut self, log: usize, number: u64) {
        if let Some(rows) = self.rows.get_mut(log) {
            *rows += number;
        }
    }

    pub(super) const fn add_fact(&mut self) {
        self.facts += 1;
    }
}

/// What became of the rows that a sink got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SinkBooks {
    /// Those that the system took.
    pub written: RowTally,
    /// Those that could not be written.
    pub refused: RowTally,
}
