//! Lines of JSON as they are, as Vector and Fluent Bit take them.

use super::Form;
use crate::identity::Row;

/// Lines of JSON.
pub(super) struct Ndjson;

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
}
