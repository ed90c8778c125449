//! The bulk requests of Elasticsearch and OpenSearch: each row a document whose name is that of the row, so that what comes
//! twice is there once.

use anyhow::ensure;
use netsniff_packet::Timestamp;
use serde::Deserialize;

use super::super::{Answer, RowAnswer, said, stamp};
use super::Form;
use crate::Address;
use crate::identity::Row;

/// The index of a row, where the address names none.
const INDEX: &str = "netsniff-{log}";

/// Bulk requests.
pub(super) struct Bulk {
    /// The index, in which `{log}` stands for the log.
    index: String,
}

impl Bulk {
    pub(super) fn new(address: &mut Address) -> anyhow::Result<Self> {
        let index = address.take("index").unwrap_or_else(|| INDEX.to_owned());
        let is_plain = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.{}".contains(&byte)
        };
        ensure!(
            !index.is_empty() && index.bytes().all(is_plain),
            "index={index} is no name of an index: it has lower letters, digits and -_. and may have {{log}}"
        );
        Ok(Self { index })
    }
}

impl Form for Bulk {
    fn content_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn path(&self) -> &'static str {
        "/_bulk"
    }

    fn body(&self, rows: &[Row<'_>], out: &mut Vec<u8>) {
        let mut document = Vec::new();
        for row in rows {
            out.extend_from_slice(b"{\"create\":{\"_index\":\"");
            out.extend_from_slice(self.index.replace("{log}", row.log).as_bytes());
            out.extend_from_slice(b"\",\"_id\":\"");
            row.name(out);
            out.extend_from_slice(b"\"}}\n{\"@timestamp\":\"");
            stamp(Timestamp::from_nanos(row.happened()), 9, out);
            out.extend_from_slice(b"\",");
            document.clear();
            row.with_identity(&mut document);
            out.extend_from_slice(document.get(1..).unwrap_or_default());
            out.push(b'\n');
        }
    }

    fn success(&self, body: &[u8], rows: usize) -> Answer {
        let Ok(told) = serde_json::from_slice::<Told>(body) else {
            return Answer::later("the answer is none of a bulk request");
        };
        if !told.errors {
            return Answer::Accepted;
        }
        if told.items.len() != rows {
            return Answer::later("the answer tells of another number of rows");
        }
        Answer::Each(told.items.into_iter().map(|item| item.create.answer()).collect())
    }
}

/// What the receiver says.
#[derive(Deserialize)]
struct Told {
    errors: bool,
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    create: Of,
}

#[derive(Deserialize)]
struct Of {
    status: u16,
    #[serde(default)]
    error: serde_json::Value,
}

impl Of {
    fn answer(&self) -> RowAnswer {
        let why = || said(&format!("HTTP {} {}", self.status, self.error));
        match self.status {
            // Conflict: there is a document of this name, which is this row.
            200..300 | 409 => RowAnswer::Accepted,
            400..500 if ![401, 403, 404, 408, 429].contains(&self.status) => {
                RowAnswer::Refused(why())
            }
            _ => RowAnswer::Later(why()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identity;

    #[test]
    fn documents_have_the_names_and_times_of_rows() {
        let identity = Identity::new("s", "r").unwrap();
        let json = br#"{"ts":1700000000.5,"a":1}"#;
        let row = Row { identity: &identity, log: "conn", seq: 3, time: 0, json };
        let mut out = Vec::new();
        Bulk { index: INDEX.to_owned() }.body(&[row], &mut out);
        let expected = concat!(
            r#"{"create":{"_index":"netsniff-conn","_id":"s:r:conn:3"}}"#,
            "\n",
            r#"{"@timestamp":"2023-11-14T22:13:20.500000000Z","sensor":"s","run":"r","log":"conn","seq":3,"#,
            r#""ts":1700000000.5,"a":1}"#,
            "\n",
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn each_row_has_its_own_answer() {
        let bulk = Bulk { index: INDEX.to_owned() };
        assert_eq!(bulk.success(br#"{"errors":false,"items":[]}"#, 2), Answer::Accepted);
        let item =
            |status: u16| format!(r#"{{"create":{{"status":{status},"error":{{"reason":"x"}}}}}}"#);
        let items = [201, 409, 429, 400, 503, 404].map(item).join(",");
        let body = format!(r#"{{"errors":true,"items":[{items}]}}"#);
        let Answer::Each(answers) = bulk.success(body.as_bytes(), 6) else { panic!() };
        let kinds = answers.iter().map(|answer| match answer {
            RowAnswer::Accepted => 'a',
            RowAnswer::Refused(_) => 'r',
            RowAnswer::Later(_) => 'l',
        });
        assert_eq!(kinds.collect::<String>(), "aalrll");
        assert!(matches!(bulk.success(body.as_bytes(), 7), Answer::Later { .. }));
        assert!(matches!(bulk.success(b"<html>", 1), Answer::Later { .. }));
    }
}
