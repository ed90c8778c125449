//! What a run wrote: its logs, and the books in `capture`.

use std::fs;
use std::path::Path;

/// A log in Zeek's format.
pub(crate) struct Log {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Log {
    pub(crate) fn read(path: &Path) -> Self {
        let text =
            fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let fields = text.lines().find_map(|line| line.strip_prefix("#fields\t")).unwrap();
        assert!(text.lines().last().unwrap().starts_with("#close"), "{} is whole", path.display());
        let split = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>();
        Self {
            columns: split(fields),
            rows: text.lines().filter(|line| !line.starts_with('#')).map(split).collect(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn value(&self, row: usize, column: &str) -> &str {
        let at = self.columns.iter().position(|name| name == column).unwrap();
        &self.rows[row][at]
    }

    /// The rows that have these values.
    pub(crate) fn of(&self, values: &[(&str, &str)]) -> Vec<usize> {
        let has = |row: usize| values.iter().all(|(name, value)| self.value(row, name) == *value);
        (0..self.len()).filter(|row| has(*row)).collect()
    }
}

/// The last row of the log `capture` for the interface, or for the host.
pub(crate) struct Last(Log, usize);

impl Last {
    pub(crate) fn read(logs: &Path, scope: &str) -> Self {
        let log = Log::read(&logs.join("capture.log"));
        let rows = log.of(&[("final", "T"), ("scope", scope)]);
        assert_eq!(rows.len(), 1, "one last row for {scope}");
        Self(log, rows[0])
    }

    pub(crate) fn text(&self, column: &str) -> &str {
        self.0.value(self.1, column)
    }

    pub(crate) fn number(&self, column: &str) -> u64 {
        self.text(column).parse().unwrap_or_else(|_| panic!("{column} is {}", self.text(column)))
    }

    /// All that arrived went somewhere, and what was delivered, too.
    pub(crate) fn closes(&self) {
        assert_eq!(self.text("unexplained"), "0");
        let parts = ["lost_interface", "filtered", "ring_dropped", "delivered"];
        let sum: u64 = parts.iter().map(|column| self.number(column)).sum();
        assert_eq!(sum, self.number("arrived"));
        let parts = ["analysed", "refused", "filtered_late", "beyond_end", "in_flight"];
        let sum: u64 = parts.iter().map(|column| self.number(column)).sum();
        assert_eq!(sum, self.number("delivered"));
    }
}
