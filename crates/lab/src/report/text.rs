//! Tables on a terminal.

use netsniff_console::terminal::table::{self, Align};

use super::{Part, Section, Table};

/// Letters of a line of notes at most.
const LINE: usize = 120;

impl Section {
    /// It for a terminal: what can be told in letters, which plots cannot.
    #[must_use]
    pub fn text(&self) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => wrap(text),
            Part::Code(text) => text.trim_end().to_owned() + "\n",
            Part::Table(table) => table.text(),
            Part::Plot(_) => String::new(),
        };
        format!("\n{}\n{}", self.title, self.parts.iter().map(part).collect::<String>())
    }
}

impl Table {
    /// It in columns, numbers at the right of theirs, with its note.
    #[must_use]
    pub fn text(&self) -> String {
        let align =
            |(_, is_number): &(_, bool)| if *is_number { Align::Right } else { Align::Left };
        let mut table = table::Table::bare(&self.columns.iter().map(align).collect::<Vec<_>>());
        table.row(self.columns.iter().map(|(name, _)| plain(name)));
        for row in &self.rows {
            table.row(row.iter().map(|cell| plain(cell)));
        }
        table.text() + &self.note.as_deref().map_or_else(String::new, wrap)
    }
}

/// Letters that every terminal has.
fn plain(text: &str) -> String {
    text.replace('\u{2265}', ">=").replace('\u{2264}', "<=").replace(['\u{201c}', '\u{201d}'], "\"")
}

/// In lines that are not too long; a text may have several.
fn wrap(text: &str) -> String {
    let mut lines = String::new();
    for paragraph in plain(text).lines() {
        let mut length = 0;
        for word in paragraph.split_whitespace() {
            let letters = word.chars().count();
            if length > 0 && length + 1 + letters > LINE {
                lines.push('\n');
                length = 0;
            } else if length > 0 {
                lines.push(' ');
                length += 1;
            }
            lines.push_str(word);
            length += letters;
        }
        lines.push('\n');
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let table = Table {
            columns: vec![("tool".into(), false), ("frames/s".into(), true), ("why".into(), false)],
            rows: vec![row(["record", "\u{2265} 612,345", ""]), row(["x", "9", "none"])],
            note: Some("a ".repeat(100)),
        };
        let section = Section { title: "Rates".into(), parts: vec![Part::Table(table)] };
        let text = section.text();
        let lines: Vec<_> = text.lines().collect();
        let head = [
            "",
            "Rates",
            "tool      frames/s  why",
            "record  >= 612,345",
            "x                9  none",
        ];
        assert_eq!(lines[..5], head);
        assert!(lines.len() == 7 && lines[5..].iter().all(|line| line.len() <= LINE), "{text}");
    }
}
