//! The event collector of Splunk.

use super::Form;
use crate::identity::Row;

/// Events, one behind the other.
pub(super) struct Hec;

impl Form for Hec {
    fn content_type(&self) -> &'static str {
        "application/json"
    }

    fn path(&self) -> &'static str {
        "/services/collector/event"
    }

    fn body(&self, rows: &[Row<'_>], out: &mut Vec<u8>) {
        for row in rows {
            let nanos = row.happened();
            let (sign, nanos) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
            let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
            let time = format!("{sign}{seconds}.{rest:09}");
            let (sensor, log) = (&row.identity.sensor, row.log);
            // No name has a sign that JSON escapes.
            let head = format!(
                "{{\"time\":{time},\"host\":\"{sensor}\",\"source\":\"netsniff\",\"sourcetype\":\"netsniff:{log}\",\"event\":"
            );
            out.extend_from_slice(head.as_bytes());
            row.with_identity(out);
            out.extend_from_slice(b"}\n");
        }
    }
}
