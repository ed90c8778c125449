//! What a record has of a row: its key and its value.

use std::borrow::Cow;

use anyhow::bail;
use serde::Deserialize;

use crate::identity::Row;
use crate::{Address, avro};

/// How rows are written down.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// An object of JSON.
    Json,
    /// The single-object encoding of Avro.
    Avro,
}

impl Form {
    pub(super) fn of(address: &mut Address) -> anyhow::Result<Self> {
        match address.take("format").as_deref() {
            None | Some("json") => Ok(Self::Json),
            Some("avro") => Ok(Self::Avro),
            Some(other) => bail!("format={other} is no form of records; there are json and avro"),
        }
    }

    /// The value of a row; the error is why it has none.
    pub(super) fn value(&self, row: &Row<'_>) -> Result<Vec<u8>, String> {
        match self {
            Self::Avro => avro::encode(row),
            Self::Json => {
                let mut out = Vec::with_capacity(row.json.len() + 100);
                row.with_identity(&mut out);
                Ok(out)
            }
        }
    }
}

/// The columns that name a flow. Rows of one flow have one key, and stay in one partition.
#[derive(Deserialize)]
struct Flow<'a> {
    #[serde(borrow)]
    community_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    uid: Option<Cow<'a, str>>,
}

/// The key of a row: its `community_id`, which all sensors have in common, or else its `uid`.
pub(super) fn key(json: &[u8]) -> Option<String> {
    let flow: Flow<'_> = serde_json::from_slice(json).ok()?;
    flow.community_id.or(flow.uid).map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_flow_have_its_name_as_their_key() {
        for (json, expected) in [
            (r#"{"ts":1.5,"uid":"C1","community_id":"1:abc="}"#, Some("1:abc=")),
            (r#"{"ts":1.5,"uid":"C1","a":["uid"]}"#, Some("C1")),
            (r#"{"ts":1.5,"uids":["C1"]}"#, None),
            (r#"{"uid":"a\"b"}"#, Some("a\"b")),
            (r"{}", None),
            (r"{", None),
        ] {
            assert_eq!(key(json.as_bytes()).as_deref(), expected, "{json}");
        }
    }
}
