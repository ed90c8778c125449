//! Rows in Avro (Apache Avro 1.12): a schema for each log, and rows in the single-object encoding, which names its schema.
//!
//! A column is a field under its name, in which a dot becomes a low line, since a name of Avro has none.

use std::collections::HashMap;
use std::sync::LazyLock;

use netsniff_analysis::record::{FieldInfo, LogType, Scalar, Shape};
use netsniff_analysis::rows::LOGS;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::identity::{RUN_END, Row};

/// What stands before the fingerprint of a schema in the single-object encoding.
const MARKER: [u8; 2] = [0xc3, 0x01];
/// The namespace of all records.
const NAMESPACE: &str = "netsniff";

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Boolean,
    Int,
    Long,
    /// Microseconds since 1970, of a log that has seconds.
    Time,
    Double,
    String,
}

impl Kind {
    const fn of(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Bool => Self::Boolean,
            Scalar::Port => Self::Int,
            Scalar::Count | Scalar::Int => Self::Long,
            Scalar::Time => Self::Time,
            Scalar::Double | Scalar::Interval => Self::Double,
            Scalar::Addr | Scalar::Enum | Scalar::String => Self::String,
        }
    }

    /// Its primitive type.
    const fn primitive(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Int => "int",
            Self::Long | Self::Time => "long",
            Self::Double => "double",
            Self::String => "string",
        }
    }

    fn schema(self) -> Value {
        match self {
            Self::Time => json!({ "type": "long", "logicalType": "timestamp-micros" }),
            other => json!(other.primitive()),
        }
    }

    /// Appends a value that JSON has; `None` where it is no such value.
    fn encode(self, json: &str, out: &mut Vec<u8>) -> Option<()> {
        match self {
            Self::Boolean => out.push(u8::from(json.parse::<bool>().ok()?)),
            Self::Int => long(json.parse::<i32>().ok()?.into(), out),
            Self::Long => long(json.parse().ok()?, out),
            Self::Time => long(micros(json)?, out),
            Self::Double => out.extend_from_slice(&json.parse::<f64>().ok()?.to_le_bytes()),
            Self::String => {
                let text: String = serde_json::from_str(json).ok()?;
                long(i64::try_from(text.len()).ok()?, out);
                out.extend_from_slice(text.as_bytes());
            }
        }
        Some(())
    }
}

/// A field of a record.
#[derive(Debug)]
struct Field {
    /// Its name in the row.
    column: &'static str,
    kind: Kind,
    form: Form,
    doc: &'static str,
}

/// How a field holds values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// One, always.
    Value,
    /// One, or `null` where the row has none.
    Option,
    /// An array, whose elements may be `null`, or `null` where the row has none.
    List,
}

impl Field {
    const fn of(info: &FieldInfo) -> Self {
        let form = match info.zeek_type.shape {
            Shape::One => Form::Option,
            Shape::Set | Shape::Vector => Form::List,
        };
        let kind = Kind::of(info.zeek_type.scalar);
        Self { column: info.name, kind, form, doc: info.doc }
    }

    const fn whole(column: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { column, kind, form: Form::Value, doc }
    }

    fn name(&self) -> String {
        self.column.replace('.', "_")
    }

    fn schema(&self) -> Value {
        let (name, kind) = (self.name(), self.kind.schema());
        match self.form {
            Form::Value => json!({ "name": name, "type": kind, "doc": self.doc }),
            Form::Option => {
                json!({ "name": name, "type": ["null", kind], "default": null, "doc": self.doc })
            }
            Form::List => {
                let list = json!({ "type": "array", "items": ["null", kind] });
                json!({ "name": name, "type": ["null", list], "default": null, "doc": self.doc })
            }
        }
    }

    /// The field in the canonical form of a schema.
    fn canonical(&self) -> String {
        let (name, kind) = (self.name(), self.kind.primitive());
        let of = match self.form {
            Form::Value => format!("\"{kind}\""),
            Form::Option => format!("[\"null\",\"{kind}\"]"),
            Form::List => {
                format!("[\"null\",{{\"type\":\"array\",\"items\":[\"null\",\"{kind}\"]}}]")
            }
        };
        format!("{{\"name\":\"{name}\",\"type\":{of}}}")
    }

    /// Appends the value that JSON has, if any; `None` where it does not fit.
    fn encode(&self, json: Option<&str>, out: &mut Vec<u8>) -> Option<()> {
        match (self.form, json) {
            (Form::Value, json) => self.kind.encode(json?, out),
            (_, json) if json.is_none_or(|json| json == "null") => {
                long(0, out);
                Some(())
            }
            (Form::Option, json) => {
                long(1, out);
                self.kind.encode(json?, out)
            }
            (Form::List, json) => {
                let elements: Vec<&RawValue> = serde_json::from_str(json?).ok()?;
                long(1, out);
                if !elements.is_empty() {
                    long(i64::try_from(elements.len()).ok()?, out);
                }
                for element in elements.iter().map(|element| element.get()) {
                    let is_set = element != "null";
                    long(is_set.into(), out);
                    if is_set {
                        self.kind.encode(element, out)?;
                    }
                }
                long(0, out);
                Some(())
            }
        }
    }
}

/// The schema of a log.
#[derive(Debug)]
pub struct Schema {
    log: &'static str,
    doc: &'static str,
    /// Behind those that say which row it is.
    fields: Vec<Field>,
    fingerprint: u64,
}

/// What tells a row from all others, in its order.
fn identity() -> [Field; 4] {
    [
        Field::whole("sensor", Kind::String, "Who made the row."),
        Field::whole("run", Kind::String, "The run of the sensor that made the row."),
        Field::whole("log", Kind::String, "The log that the row belongs to."),
        Field::whole(
            "seq",
            Kind::Long,
            "Number of the row among those of its sensor, run and log, from 0 without gaps.",
        ),
    ]
}

static SCHEMAS: LazyLock<Vec<Schema>> = LazyLock::new(|| {
    let of = |log: &&'static LogType| {
        Schema::new(log.path, log.doc, log.fields.iter().map(Field::of).collect())
    };
    let end = vec![
        Field::whole("of", Kind::String, "A log of the run."),
        Field::whole("rows", Kind::Long, "How many rows it has."),
    ];
    let end = Schema::new(RUN_END, "How many rows of each log a run made.", end);
    LOGS.iter().map(of).chain([end]).collect()
});

static BY_LOG: LazyLock<HashMap<&str, &Schema>> =
    LazyLock::new(|| SCHEMAS.iter().map(|schema| (schema.log, schema)).collect());

/// The schemas of all logs, and of the rows that end a run.
#[must_use]
pub fn schemas() -> &'static [Schema] {
    &SCHEMAS
}

impl Schema {
    fn new(log: &'static str, doc: &'static str, fields: Vec<Field>) -> Self {
        let mut schema = Self { log, doc, fields, fingerprint: 0 };
        schema.fingerprint = fingerprint(schema.canonical().as_bytes());
        schema
    }

    /// The schema of a log.
    #[must_use]
    pub fn of_log(log: &str) -> Option<&'static Self> {
        BY_LOG.get(log).copied()
    }

    /// The log.
    #[must_use]
    pub const fn log(&self) -> &'static str {
        self.log
    }

    /// The schema as Avro writes it, with what columns mean.
    #[must_use]
    pub fn json(&self) -> Value {
        let fields = identity();
        let fields: Vec<_> = fields.iter().chain(&self.fields).map(Field::schema).collect();
        json!({
            "type": "record",
            "name": self.log,
            "namespace": NAMESPACE,
            "doc": self.doc,
            "fields": fields,
        })
    }

    /// The parsing canonical form of the schema, by which it is told from others.
    fn canonical(&self) -> String {
        let fields = identity();
        let fields: Vec<_> = fields.iter().chain(&self.fields).map(Field::canonical).collect();
        let (log, fields) = (self.log, fields.join(","));
        format!("{{\"name\":\"{NAMESPACE}.{log}\",\"type\":\"record\",\"fields\":[{fields}]}}")
    }
}

/// A row in the single-object encoding.
///
/// # Errors
///
/// A sentence where the row is of no log that is known, or has a value that Avro cannot have, such as a count beyond 63 bits.
pub fn encode(row: &Row<'_>) -> Result<Vec<u8>, String> {
    let log = row.log;
    let schema = Schema::of_log(log).ok_or_else(|| format!("there is no schema of {log}"))?;
    let members: HashMap<&str, &RawValue> = serde_json::from_slice(row.json)
        .map_err(|error| format!("a row of {log} is no object: {error}"))?;
    let mut out = Vec::with_capacity(row.json.len());
    out.extend_from_slice(&MARKER);
    out.extend_from_slice(&schema.fingerprint.to_le_bytes());
    for text in [&row.identity.sensor, &row.identity.run, log] {
        long(text.len() as i64, &mut out);
        out.extend_from_slice(text.as_bytes());
    }
    let seq = i64::try_from(row.seq).map_err(|_| format!("{} is no long of Avro", row.seq))?;
    long(seq, &mut out);
    for field in &schema.fields {
        let json = members.get(field.column).map(|value| value.get());
        field.encode(json, &mut out).ok_or_else(|| {
            let (column, kind) = (field.column, field.kind.primitive());
            format!("{} of {log}.{column} is no {kind} of Avro", json.unwrap_or("nothing"))
        })?;
    }
    Ok(out)
}

/// Appends an integer: zig-zag, seven bits in a byte, the least first.
fn long(value: i64, out: &mut Vec<u8>) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Microseconds of seconds with up to six decimals.
fn micros(json: &str) -> Option<i64> {
    let (seconds, decimals) = json.split_once('.').unwrap_or((json, ""));
    let is_fit = decimals.len() <= 6 && decimals.bytes().all(|byte| byte.is_ascii_digit());
    let part: i64 = format!("{decimals:0<6}").parse().ok().filter(|_| is_fit)?;
    let part = if seconds.starts_with('-') { -part } else { part };
    seconds.parse::<i64>().ok()?.checked_mul(1_000_000)?.checked_add(part)
}

/// The fingerprint CRC-64-AVRO of a schema in its canonical form.
fn fingerprint(bytes: &[u8]) -> u64 {
    const EMPTY: u64 = 0xc15d_213a_a4d7_a795;
    bytes.iter().fold(EMPTY, |sum, &byte| {
        let mut sum = sum ^ u64::from(byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ if sum & 1 == 1 { EMPTY } else { 0 };
        }
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identity;

    #[test]
    fn integers_are_as_the_specification_has_them() {
        for (value, bytes) in [
            (0, &[0x00][..]),
            (-1, &[0x01]),
            (1, &[0x02]),
            (-64, &[0x7f]),
            (64, &[0x80, 0x01]),
            (i64::MIN, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
        ] {
            let mut out = Vec::new();
            long(value, &mut out);
            assert_eq!(out, bytes, "{value}");
        }
    }

    #[test]
    fn fingerprints_are_those_of_others() {
        // Of the tests of Apache Avro (share/test/data/schema-tests.txt).
        assert_eq!(fingerprint(b"\"null\"") as i64, 7_195_948_357_588_979_594);
        assert_eq!(fingerprint(b"\"boolean\"") as i64, -6_970_731_678_124_411_036);
    }

    #[test]
    fn stamps_keep_their_microseconds() {
        for (json, expected) in [
            ("1700000000.123456", Some(1_700_000_000_123_456)),
            ("9223372036.854775", Some(9_223_372_036_854_775)),
            ("-0.25", Some(-250_000)),
            ("-1.5", Some(-1_500_000)),
            ("3", Some(3_000_000)),
            ("1.1234567", None),
            ("1.-5", None),
            ("\"2026\"", None),
            ("1e9", None),
        ] {
            assert_eq!(micros(json), expected, "{json}");
        }
    }

    #[test]
    fn names_are_names_of_avro_and_differ() {
        for schema in schemas() {
            let identity = identity();
            let names = identity.iter().chain(&schema.fields).map(Field::name);
            let mut names: Vec<_> = names.chain([schema.log.to_owned()]).collect();
            let log = names.len() - 1;
            for name in &names {
                let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
                assert!(name.bytes().all(is_fit) && !name.as_bytes()[0].is_ascii_digit(), "{name}");
            }
            names.remove(log);
            names.sort();
            let all = names.len();
            names.dedup();
            assert_eq!(names.len(), all, "{}", schema.log);
        }
        let mut all: Vec<_> = schemas().iter().map(|schema| schema.fingerprint).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), LOGS.len() + 1);
    }

    #[test]
    fn a_row_that_avro_cannot_have_is_an_error_that_names_it() {
        let identity = Identity::new("s", "r").unwrap();
        let of = |json: &'static str| {
            encode(&Row {
                identity: &identity,
                log: "conn",
                seq: 0,
                time: 0,
                json: json.as_bytes(),
            })
        };
        assert!(of(r#"{"ts":1.5,"orig_bytes":9223372036854775807}"#).is_ok());
        for (json, part) in [
            (r#"{"orig_bytes":9223372036854775808}"#, "9223372036854775808 of conn.orig_bytes"),
            (r#"{"id.orig_p":"80"}"#, "conn.id.orig_p is no int"),
            (r#"{"ts":1e9}"#, "conn.ts"),
            ("[]", "no object"),
        ] {
            let why = of(json).unwrap_err();
            assert!(why.contains(part), "{json}: {why}");
        }
        let end =
            Row { identity: &identity, log: RUN_END, seq: 1, time: 0, json: b"{\"of\":\"a\"}" };
        assert!(encode(&end).unwrap_err().contains("nothing of run_end.rows"));
    }
}
