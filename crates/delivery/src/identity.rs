//! Who made a row, and which of its log it is.

use anyhow::ensure;

/// The log of the last rows of a run: how many rows of each log there are.
pub const RUN_END: &str = "run_end";

/// What a sensor and a run are called. Both stand in names of documents and in text of many syntaxes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The machine, or what it watches.
    pub sensor: String,
    /// The analysis.
    pub run: String,
}

/// Bytes of a name at most: RFC 5424 allows a host no more than 255, and an application 48.
const LONGEST: usize = 48;

impl Identity {
    /// Of these names.
    ///
    /// # Errors
    ///
    /// Where one is empty, too long, or has a sign beside letters, digits, `.`, `_` and `-`.
    pub fn new(sensor: &str, run: &str) -> anyhow::Result<Self> {
        for (what, name) in [("sensor", sensor), ("run", run)] {
            ensure!(
                is_name(name),
                "the name of a {what} has 1 to {LONGEST} letters, digits, dots, hyphens and low lines, and {name:?} has not"
            );
        }
        Ok(Self { sensor: sensor.to_owned(), run: run.to_owned() })
    }

    /// The nearest name to some text.
    #[must_use]
    pub fn nearest_name(text: &str) -> String {
        let fit = |sign: char| if is_name(sign.encode_utf8(&mut [0; 4])) { sign } else { '-' };
        let name: String = text.chars().take(LONGEST).map(fit).collect();
        if name.is_empty() { "netsniff".to_owned() } else { name }
    }
}

fn is_name(text: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(is_fit)
}

/// A row on its way.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Who made it.
    pub identity: &'a Identity,
    /// The log that it is of.
    pub log: &'a str,
    /// Its number among the rows of this log and run, from 0 on.
    pub seq: u64,
    /// When it was made, in nanoseconds since 1970, by the time of the packets.
    pub time: i64,
    /// An object of JSON, without the end of its line.
    pub json: &'a [u8],
}

impl Row<'_> {
    /// Appends the row with its identity before its own members, without the end of a line.
    pub fn with_identity(&self, out: &mut Vec<u8>) {
        // Names have no sign that JSON escapes.
        out.extend_from_slice(b"{\"sensor\":\"");
        out.extend_from_slice(self.identity.sensor.as_bytes());
        out.extend_from_slice(b"\",\"run\":\"");
        out.extend_from_slice(self.identity.run.as_bytes());
        out.extend_from_slice(b"\",\"log\":\"");
        out.extend_from_slice(self.log.as_bytes());
        out.extend_from_slice(b"\",\"seq\":");
        out.extend_from_slice(itoa::Buffer::new().format(self.seq).as_bytes());
        let members = self.json.strip_prefix(b"{").unwrap_or(self.json);
        if !members.starts_with(b"}") {
            out.push(b',');
        }
        out.extend_from_slice(members);
    }

    /// Appends the name of the row: what two rows have in common only if they are one.
    pub fn name(&self, out: &mut Vec<u8>) {
        for part in [&self.identity.sensor, &self.identity.run, self.log] {
            out.extend_from_slice(part.as_bytes());
            out.push(b':');
        }
        out.extend_from_slice(itoa::Buffer::new().format(self.seq).as_bytes());
    }

    /// When what it tells of happened, in nanoseconds since 1970: its column `ts`, or else when it was made.
    #[must_use]
    pub fn happened(&self) -> i64 {
        self.stamp().unwrap_or(self.time)
    }

    /// The column `ts`, which is the first one of logs that have it, in seconds with decimals.
    fn stamp(&self) -> Option<i64> {
        let text = self.json.strip_prefix(b"{\"ts\":")?;
        let end = text.iter().position(|byte| b",}".contains(byte))?;
        let text = core::str::from_utf8(text.get(..end)?).ok()?;
        nanos(text)
    }
}

/// Nanoseconds of a number of seconds with decimals, of which there are nine at most.
pub(crate) fn nanos(text: &str) -> Option<i64> {
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, ""));
    let nanos: i64 = format!("{decimals:0<9.9}").parse().ok()?;
    let sign = if seconds.starts_with('-') { -1 } else { 1 };
    seconds.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(sign * nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_any_syntax() {
        assert!(Identity::new("sensor-1.example_org", "2026").is_ok());
        for (sensor, run) in [("", "a"), ("a", ""), ("a b", "a"), ("a", "a\""), ("ä", "a")] {
            assert!(Identity::new(sensor, run).is_err(), "{sensor:?} {run:?}");
        }
        assert!(Identity::new(&"a".repeat(49), "a").is_err());
        assert_eq!(Identity::nearest_name("my host:ä"), "my-host--");
        assert_eq!(Identity::nearest_name(""), "netsniff");
    }

    #[test]
    fn a_row_has_its_identity_before_its_members() {
        let identity = Identity::new("s", "r").unwrap();
        let row =
            |json: &'static [u8]| Row { identity: &identity, log: "conn", seq: 7, time: 5, json };
        let text = |json| {
            let mut out = Vec::new();
            row(json).with_identity(&mut out);
            String::from_utf8(out).unwrap()
        };
        let head = r#"{"sensor":"s","run":"r","log":"conn","seq":7"#;
        assert_eq!(text(br#"{"ts":1.5}"#), format!(r#"{head},"ts":1.5}}"#));
        assert_eq!(text(b"{}"), format!("{head}}}"));
        let mut name = Vec::new();
        row(b"{}").name(&mut name);
        assert_eq!(name, b"s:r:conn:7");
    }

    #[test]
    fn a_row_happened_at_its_stamp() {
        let identity = Identity::new("s", "r").unwrap();
        for (json, nanos) in [
            (&br#"{"ts":1.5,"a":1}"#[..], 1_500_000_000),
            (br#"{"ts":1700000000.123456}"#, 1_700_000_000_123_456_000),
            (br#"{"ts":-0.25}"#, -250_000_000),
            (br#"{"ts":-2.25}"#, -2_250_000_000),
            (br#"{"ts":3}"#, 3_000_000_000),
            (br#"{"ts":"2026"}"#, 42),
            (br#"{"ts":99999999999999}"#, 42),
            (b"{}", 42),
        ] {
            let row = Row { identity: &identity, log: "conn", seq: 0, time: 42, json };
            assert_eq!(row.happened(), nanos, "{}", String::from_utf8_lossy(json));
        }
    }
}
