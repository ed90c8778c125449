//! The event collector of Splunk.

use serde::Deserialize;

use super::Form;
use crate::identity::Row;

/// Events, one behind the other.
pub(super) struct Hec;

/// What it answers where it takes nothing.
#[derive(Deserialize)]
struct Trouble {
    code: u32,
}

/// Codes of answers with the status 400 for which the token or the index is to be set up otherwise ("HTTP Event Collector
/// error codes" of Splunk): the index is wrong, the channel is missing or wrong, acknowledgements are off.
const SET_UP: [u32; 4] = [7, 10, 11, 14];

impl Form for Hec {
    fn content_type(&self) -> &'static str {
        "application/json"
    }

    fn path(&self) -> &'static str {
        "/services/collector/event"
    }

    fn speaks_of_rows(&self, body: &[u8]) -> bool {
        serde_json::from_slice::<Trouble>(body)
            .map_or(true, |trouble| !SET_UP.contains(&trouble.code))
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
