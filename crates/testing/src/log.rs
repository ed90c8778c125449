//! A log in Zeek's tab-separated values.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// One row: cells by the name of their column.
pub type Row = BTreeMap<String, String>;

/// The rows of a log. A log that does not exist has none: Zeek writes no empty logs. `None` for a
/// file without the names of its columns, as `zeek-cut` leaves it.
pub fn read(path: &Path) -> Option<Vec<Row>> {
    let Ok(bytes) = fs::read(path) else { return Some(Vec::new()) };
    parse(&String::from_utf8(bytes).unwrap(), &path.display().to_string())
}

fn parse(text: &str, name: &str) -> Option<Vec<Row>> {
    let fields = text.lines().find_map(|line| line.strip_prefix("#fields\t"))?;
    let names: Vec<&str> = fields.split('\t').collect();
    let mut rows = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        assert_eq!(names.len(), cells.len(), "{name}: {line}");
        let owned = |(name, cell): (&&str, &str)| ((*name).to_owned(), cell.to_owned());
        rows.push(names.iter().zip(cells).map(owned).collect());
    }
    Some(rows)
}
