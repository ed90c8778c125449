//! Rows in columns that are as wide as what stands in them, by comfy-table.

use comfy_table::{Cell, CellAlignment, ContentArrangement, presets::NOTHING};

/// Blanks between two columns.
const BETWEEN: u16 = 2;

/// At which side of its column a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// At the left, as words do.
    Left,
    /// At the right, as numbers do.
    Right,
}

/// A table without lines. Wide signs take the two columns of a terminal that they have there.
#[derive(Clone, Debug)]
pub struct Table {
    table: comfy_table::Table,
    aligns: Vec<CellAlignment>,
}

impl Table {
    /// With these columns, and no heads above them.
    #[must_use]
    pub fn bare(aligns: &[Align]) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        let of = |align: &Align| match align {
            Align::Left => CellAlignment::Left,
            Align::Right => CellAlignment::Right,
        };
        Self { table, aligns: aligns.iter().map(of).collect() }
    }

    /// With these heads.
    #[must_use]
    pub fn new(columns: &[(&str, Align)]) -> Self {
        let aligns: Vec<_> = columns.iter().map(|(_, align)| *align).collect();
        let mut table = Self::bare(&aligns);
        table.row(columns.iter().map(|(head, _)| *head));
        table
    }

    /// Adds a row.
    pub fn row<T: ToString>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells = cells.into_iter().zip(&self.aligns);
        let row: Vec<_> =
            cells.map(|(text, align)| Cell::new(text).set_alignment(*align)).collect();
        self.table.add_row(row);
    }

    /// Its lines, without blanks at their ends.
    #[must_use]
    pub fn text(&self) -> String {
        let mut table = self.table.clone();
        table.column_iter_mut().for_each(|column| {
            column.set_padding((0, BETWEEN));
        });
        table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_texts() {
        let mut table = Table::new(&[("name", Align::Left), ("packets", Align::Right)]);
        table.row(["a longer name", "1"]);
        table.row(["b", "12,345,678"]);
        let expected =
            "name              packets\na longer name           1\nb              12,345,678\n";
        assert_eq!(table.text(), expected);
    }

    #[test]
    fn wide_signs_and_what_is_missing_shift_nothing() {
        let mut table = Table::bare(&[Align::Left, Align::Left, Align::Left]);
        table.row(["網路", "x", ""]);
        table.row(["abcd", "y", "z"]);
        table.row(["e"]);
        assert_eq!(table.text(), "網路  x\nabcd  y  z\ne\n");
    }
}
