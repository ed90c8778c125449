//! Lines of JSON as they are, as Vector, Fluent Bit and ClickHouse (`FORMAT JSONEachRow`) take them.

use super::Form;
use crate::identity::Row;

/// Lines of JSON.
pub(super) struct Ndjson {
    /// Whether requests name their rows for ClickHouse, which takes a block of one name once
    /// (`insert_deduplication_token`).
    pub(super) has_token: bool,
}

impl Form for Ndjson {
    fn content_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn body(&self, rows: &[Row<'_>], out: &mut Vec<u8>) {
        for row in rows {
            row.with_identity(out);
            out.push(b'\n');
        }
    }

    fn token(&self, rows: &[Row<'_>]) -> Option<(&'static str, String)> {
        let (first, last) = rows.first().zip(rows.last()).filter(|_| self.has_token)?;
        let mut name = Vec::new();
        first.name(&mut name);
        name.push(b'+');
        last.name(&mut name);
        let name = String::from_utf8_lossy(&name).into_owned();
        Some(("insert_deduplication_token", format!("{name}+{}", rows.len())))
    }
}
