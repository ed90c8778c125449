//! The rows that the tables of `docs/differences-from-zeek.md` take out of the comparison.

use super::compare::{Columns, Comparison, Difference};
use super::whole;

const PAGE: &str = include_str!("../../../../../docs/differences-from-zeek.md");

/// One line of a table.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    /// The capture, or the baseline below it.
    pub(crate) file: String,
    /// The row, by its name; or [`WHOLE`].
    pub(crate) row: String,
    /// `only in Zeek`, `only in netsniff` or the columns, in the order of the log; of a capture as a whole the reason
    /// ([`whole`](super::whole)).
    pub(crate) what: String,
}

/// The lines of the page's table for the log named `log`, if it has one: each of which must point to a section that
/// tells why. Those of the second corpus are left out.
pub(crate) fn listed(log: &str, columns: Columns) -> Vec<Listed> {
    let mut listed = table(log, columns);
    listed.retain(|listed| !listed.file.starts_with(SECOND));
    listed
}

/// What the name of a file of the second corpus begins with on the page.
const SECOND: &str = "captures2/";

/// The lines of the page's table for the log named `log` that are of the second corpus.
pub(crate) fn listed_of_second(log: &str, columns: Columns) -> Vec<Listed> {
    let mut listed = table(log, columns);
    listed.retain_mut(|listed| match listed.file.strip_prefix(SECOND) {
        Some(file) => {
            listed.file = file.to_owned();
            true
        }
        None => false,
    });
    listed
}

fn table(log: &str, columns: Columns) -> Vec<Listed> {
    let header = format!("| file | row of `{log}` | what differs | why |");
    let lines = PAGE.lines().skip_while(|line| *line != header).skip(2);
    lines.take_while(|line| line.starts_with('|')).map(|line| parse(columns, line)).collect()
}

fn parse(columns: Columns, line: &str) -> Listed {
    let cells: Vec<&str> =
        line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect();
    let &[file, row, what, why] = cells.as_slice() else { panic!("not four cells: {line}") };
    let is_known = |column: &str| columns.compared.contains(&column);
    if row == WHOLE {
        assert!(whole::REASONS.contains(&what), "{what}");
    } else {
        assert_eq!(row.split(' ').count(), columns.key.len(), "{row}");
        assert!(
            ["only in Zeek", "only in netsniff"].contains(&what) || what.split(", ").all(is_known),
            "{what}"
        );
    }
    let section = why.split_once("](#").and_then(|(_, rest)| rest.strip_suffix(')'));
    let section = section.unwrap_or_else(|| panic!("no link to a section: {why}"));
    assert!(
        PAGE.lines().any(|line| line.strip_prefix("## ").is_some_and(|h| anchor(h) == section)),
        "no section {section}"
    );
    Listed { file: file.to_owned(), row: row.to_owned(), what: what.to_owned() }
}

/// What stands for all rows of a capture.
const WHOLE: &str = "*";

/// For which reasons the page lists a capture as a whole, first the one that changes rows; these lines are used then.
pub(crate) fn whole(file: &str, unused: &mut Vec<Listed>) -> Vec<String> {
    let is_it = |listed: &Listed| listed.file == file && listed.row == WHOLE;
    let mut reasons: Vec<String> =
        unused.iter().filter(|listed| is_it(listed)).map(|listed| listed.what.clone()).collect();
    reasons.sort_by_key(|reason| reason != "time");
    unused.retain(|listed| !is_it(listed));
    reasons
}

/// The name by which GitHub links to a heading.
fn anchor(heading: &str) -> String {
    heading
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
            _ => None,
        })
        .collect()
}

/// Takes the listed rows of a file out of a comparison, and returns how many there were. Listed
/// rows that do not differ in just the way that the page tells stay in `unused`.
pub(crate) fn leave_out(
    file: &str,
    comparison: &mut Comparison,
    unused: &mut Vec<Listed>,
) -> usize {
    let before = comparison.differences.len();
    let differing = comparison.differing();
    comparison.differences.retain(|(key, difference)| {
        let what = match difference {
            Difference::Missing => "only in Zeek".to_owned(),
            Difference::Extra => "only in netsniff".to_owned(),
            Difference::Cells(cells) => {
                cells.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ")
            }
        };
        let is_it =
            |listed: &Listed| listed.file == file && listed.row == *key && listed.what == what;
        let Some(at) = unused.iter().position(is_it) else { return true };
        unused.swap_remove(at);
        false
    });
    let left = comparison.differences.len();
    // A missing and an extra row count as one.
    let out = if left == 0 { differing } else { (before - left).min(differing) };
    comparison.rows -= out;
    out
}
