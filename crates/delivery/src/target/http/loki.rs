//! Grafana Loki: lines with labels, by their times.

use std::collections::BTreeMap;

use super::Form;
use crate::identity::Row;

/// Streams of lines.
pub(super) struct Loki;

impl Form for Loki {
    fn content_type(&self) -> &'static str {
        "application/json"
    }

    fn path(&self) -> &'static str {
        "/loki/api/v1/push"
    }

    fn body(&self, rows: &[Row<'_>], out: &mut Vec<u8>) {
        // Labels are few and never change; what a row is stands in its line.
        let mut streams = BTreeMap::<_, Vec<u8>>::new();
        let mut line = Vec::new();
        for row in rows {
            line.clear();
            row.with_identity(&mut line);
            let values = streams.entry(row.log).or_default();
            if !values.is_empty() {
                values.push(b',');
            }
            let quoted = serde_json::to_vec(&String::from_utf8_lossy(&line)).unwrap_or_default();
            values.extend_from_slice(format!("[\"{}\",", row.happened()).as_bytes());
            values.extend_from_slice(&quoted);
            values.push(b']');
        }
        let sensor = rows.first().map_or("", |row| &row.identity.sensor);
        out.extend_from_slice(b"{\"streams\":[");
        for (number, (log, values)) in streams.into_iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            let head = format!(
                "{comma}{{\"stream\":{{\"job\":\"netsniff\",\"sensor\":\"{sensor}\",\"log\":\"{log}\"}},\"values\":["
            );
            out.extend_from_slice(head.as_bytes());
            out.extend_from_slice(&values);
            out.extend_from_slice(b"]}");
        }
        out.extend_from_slice(b"]}");
    }
}
