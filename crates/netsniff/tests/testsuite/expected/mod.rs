//! Expected values of logs, as `log[column=value,…].column = value`, held against what one run writes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// One row: cells by the name of their column.
type Row = BTreeMap<String, String>;

/// What a run left.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Its exit code; what ended by a signal has none.
    pub(crate) code: Option<i32>,
    /// Rows by the name of their log.
    logs: BTreeMap<String, Vec<Row>>,
}

impl Outcome {
    /// Reads the logs of a run, each row of which must have as many cells as its log has columns.
    pub(crate) fn read(code: Option<i32>, directory: &Path) -> Self {
        let mut logs = BTreeMap::new();
        for entry in fs::read_dir(directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "log") {
                let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
                let text = fs::read(&path).unwrap();
                let text = String::from_utf8(text).unwrap_or_else(|_| panic!("{name} is no UTF-8"));
                logs.insert(name.clone(), rows(&name, &text));
            }
        }
        Self { code, logs }
    }

    /// What an expectation finds instead of what it wants; `None` where it holds.
    ///
    /// - `exit = 0`
    /// - `log.# = 3`, `log[column=value].# <= 3`: so many rows
    /// - `log[column=value,other=value].column = value`: of each row so selected, at least one; `~` for a part of the
    ///   value, `!=` and `!~` for the contrary
    /// - `A | B`: one of both
    pub(crate) fn fault(&self, expectation: &str) -> Option<String> {
        match expectation.split_once(" | ") {
            Some((one, other)) => self.single_fault(one).and_then(|_| self.single_fault(other)),
            None => self.single_fault(expectation),
        }
    }

    fn single_fault(&self, expectation: &str) -> Option<String> {
        let words: Vec<&str> = expectation.splitn(3, ' ').collect();
        let &[subject, operator, wanted] = words.as_slice() else { panic!("{expectation}") };
        if subject == "exit" {
            let holds = self.code.map(|code| code.to_string()).as_deref() == Some(wanted);
            return (!holds).then(|| format!("{:?}", self.code));
        }
        let (selected, column) = self.select(subject);
        if column == "#" {
            let number = selected.len();
            let wanted: usize = wanted.parse().unwrap();
            let holds = match operator {
                "<=" => number <= wanted,
                ">=" => number >= wanted,
                _ => number == wanted,
            };
            return (!holds).then(|| format!("{number} rows"));
        }
        if selected.is_empty() {
            return Some("no such row".to_owned());
        }
        let cells =
            selected.iter().map(|row| row.get(column).map_or("no such column", String::as_str));
        let wrong = cells.clone().find(|cell| !holds(cell, operator, wanted));
        wrong.map(str::to_owned)
    }

    /// The rows that `log[column=value]` names, and the column behind it.
    fn select<'a>(&self, subject: &'a str) -> (Vec<&Row>, &'a str) {
        let (log, conditions, column) = match subject.split_once('[') {
            Some((log, rest)) => {
                let (conditions, column) = rest.split_once("].").unwrap();
                (log, conditions, column)
            }
            None => {
                let (log, column) = subject.split_once('.').unwrap();
                (log, "", column)
            }
        };
        let conditions: Vec<_> =
            conditions.split(',').filter_map(|it| it.split_once('=')).collect();
        let rows = self.logs.get(log).into_iter().flatten();
        let is_meant = |row: &&Row| {
            conditions.iter().all(|(name, value)| row.get(*name).is_some_and(|cell| cell == value))
        };
        (rows.filter(is_meant).collect(), column)
    }
}

fn holds(cell: &str, operator: &str, wanted: &str) -> bool {
    match operator {
        "=" => cell == wanted,
        "!=" => cell != wanted,
        "~" => cell.contains(wanted),
        "!~" => !cell.contains(wanted),
        _ => panic!("no operator {operator}"),
    }
}

fn rows(name: &str, text: &str) -> Vec<Row> {
    let fields = text.lines().find_map(|line| line.strip_prefix("#fields\t")).unwrap();
    let names: Vec<&str> = fields.split('\t').collect();
    // By the newline alone: what else divides lines for some readers must be escaped.
    let lines = text.split('\n').filter(|line| !line.is_empty() && !line.starts_with('#'));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        assert_eq!(names.len(), cells.len(), "{name}: {line}");
        names.iter().zip(cells).map(|(name, cell)| ((*name).to_owned(), cell.to_owned())).collect()
    };
    lines.map(row).collect()
}

/// What is expected of one file.
pub(crate) type Expected = (&'static str, &'static [&'static str]);

/// Holds two tables against the runs of their files: what stands in `right` must hold, and what stands in `open`, which
/// has `most_open` lines at most, must not, or it belongs into `right`. Returns
/// how many there are of each.
pub(crate) fn check(
    right: &[Expected],
    open: &[Expected],
    most_open: usize,
    run: impl Fn(&str) -> Outcome,
) -> String {
    let mut files: Vec<&str> = right.iter().chain(open).map(|(file, _)| *file).collect();
    files.sort_unstable();
    files.dedup();
    let of = |table: &[Expected], file: &str| -> Vec<&'static str> {
        table
            .iter()
            .filter(|(name, _)| *name == file)
            .flat_map(|(_, lines)| lines.iter().copied())
            .collect()
    };
    let (mut complaints, mut held, mut still_open) = (Vec::new(), 0, 0);
    for file in files {
        let outcome = run(file);
        for line in of(right, file) {
            match outcome.fault(line) {
                Some(found) => complaints.push(format!("{file}: {line}: but {found}")),
                None => held += 1,
            }
        }
        for line in of(open, file) {
            still_open += 1;
            if outcome.fault(line).is_none() {
                complaints.push(format!("{file}: {line}: holds now, move it from OPEN to RIGHT"));
            }
        }
    }
    assert!(still_open <= most_open, "{still_open} lines are open, there were {most_open} once");
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    format!("{held} expectations hold, {still_open} are known to be open")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        let text = "#fields\tid\turi\n1\t/a\n2\t/b\n2\t/c\n";
        let logs = BTreeMap::from([("http".to_owned(), rows("http", text))]);
        Outcome { code: Some(0), logs }
    }

    #[test]
    fn expectations_can_fail() {
        let outcome = outcome();
        for (line, holds) in [
            ("exit = 0", true),
            ("exit = 3", false),
            ("http.# = 3", true),
            ("http.# <= 2", false),
            ("http.# >= 4", false),
            ("http.# = 2 | http.# >= 3", true),
            ("http.# = 2 | http.# >= 4", false),
            ("http[id=1].uri = /a", true),
            ("http[id=1,uri=/b].# = 0", true),
            ("http[id=2].uri = /b", false),
            ("http[id=2].uri ~ /", true),
            ("http[id=2].uri !~ c", false),
            ("http[id=3].uri = /a", false),
            ("http.other = -", false),
            ("dns.query = x", false),
            ("dns.# = 0", true),
        ] {
            assert_eq!(outcome.fault(line).is_none(), holds, "{line}");
        }
    }

    #[test]
    #[should_panic(expected = "move it from OPEN to RIGHT")]
    fn what_became_right_must_not_stay_open() {
        check(&[], &[("a", &["http.# = 3"])], 1, |_| outcome());
    }

    #[test]
    #[should_panic(expected = "2 lines are open")]
    fn what_is_open_becomes_less() {
        check(&[], &[("a", &["http.# = 4", "http.# = 5"])], 1, |_| outcome());
    }
}
