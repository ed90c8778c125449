//! Where the members of an object of JSON are in its line, as they are written: a number there has all of its digits.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::Deserializer as _;
use serde::de::{Error as _, MapAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

/// The places of members by their names.
pub(super) type Members = BTreeMap<String, Range<usize>>;

/// The members of the object that a line is; `None` where it is none.
pub(super) fn members(line: &[u8]) -> Option<Members> {
    let mut reader = Deserializer::from_slice(line);
    let members = reader.deserialize_map(Places(line)).ok()?;
    reader.end().ok()?;
    Some(members)
}

/// Finds the places of values in a line, which they are borrowed from.
struct Places<'l>(&'l [u8]);

impl<'l> Visitor<'l> for Places<'l> {
    type Value = Members;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'l>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Members::new();
        while let Some((name, value)) = map.next_entry::<String, &'l RawValue>()? {
            let begin = value.get().as_ptr().addr().checked_sub(self.0.as_ptr().addr());
            let begin = begin.ok_or_else(|| A::Error::custom("a value of another line"))?;
            members.insert(name, begin..begin + value.get().len());
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_as_they_are_written() {
        let line = br#" {"a" : 1.10 ,"b":"x\"y","c":[1, {"d":2}],"a":-3E5 } "#;
        let members = members(line).unwrap();
        let text = |name: &str| str::from_utf8(&line[members[name].clone()]).unwrap();
        assert_eq!(["a", "b", "c"].map(text), ["-3E5", r#""x\"y""#, r#"[1, {"d":2}]"#]);
        assert_eq!(members.len(), 3);
    }

    #[test]
    fn what_is_no_object_is_none() {
        let deep = [b"{\"a\":".as_slice(), &b"[".repeat(100_000)].concat();
        for line in [&b"[1]"[..], b"{\"a\":1}x", b"{\"a\":01}", b"{\"a\":1", b"1", b"", &deep] {
            assert_eq!(members(line), None);
        }
    }
}
