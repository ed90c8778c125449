//! How many rows of which log: what was written, and what was not.

/// Numbers of rows, by log, and of facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowTally {
    rows: [u64; MOST_LOGS],
    facts: u64,
}

/// At least as many as there are logs: a tally goes between threads under a lock, where nothing is to be allocated.
pub(super) const MOST_LOGS: usize = 64;

impl Default for RowTally {
    fn default() -> Self {
        Self { rows: [0; MOST_LOGS], facts: 0 }
    }
}

impl RowTally {
    /// Rows of the log that counts so in [`LOGS`](super::LOGS).
    #[must_use]
    pub fn rows(&self, log: usize) -> u64 {
        self.rows.get(log).copied().unwrap_or_default()
    }

    /// Logs that have rows here, by their places in [`LOGS`](super::LOGS), with the numbers of these.
    pub fn logs(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.rows.iter().copied().enumerate().filter(|(_, rows)| *rows > 0)
    }

    /// Rows of all logs.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.rows.iter().sum()
    }

    /// Facts that came without a row: how many rows they make depends on others. Those that came with one
    /// count as that row.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::LOGS;

    #[test]
    fn there_is_room_for_every_log() {
        let mut tally = RowTally::default();
        (0..LOGS.len()).for_each(|log| tally.add_row(log));
        assert_eq!(tally.total(), LOGS.len() as u64);
    }
}
