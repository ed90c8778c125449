//! A row of a log as it was read back: what stands in it, typed by the log's declaration.

use std::net::IpAddr;

use netsniff_analysis::Record;
use netsniff_analysis::record::{Elements, Interval, LogType, Scalar, Shape, Value, Visitor};
use netsniff_analysis::rows::LOGS;
use netsniff_packet::{Address, Timestamp};
use serde_json::{Map, Value as Json};

/// What begins each row of a stream of logs.
const BEGIN: &str = "{\"_path\":\"";

/// A row of a log.
#[derive(Clone, Debug)]
pub(crate) struct LogRow {
    log: &'static LogType,
    cells: Map<String, Json>,
}

/// The log that a row of a stream belongs to; `None` for what is no row of a log that is known.
pub(crate) fn log_of(line: &str) -> Option<&'static LogType> {
    let name = line.strip_prefix(BEGIN)?.split('"').next()?;
    log_named(name)
}

/// The log with this name.
pub(crate) fn log_named(name: &str) -> Option<&'static LogType> {
    LOGS.iter().find(|log| log.path == name).copied()
}

impl LogRow {
    /// Reads a row of a stream. `None` for what is none.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let log = log_of(line)?;
        Some(Self { log, cells: serde_json::from_str(line).ok()? })
    }

    /// A row that was never written, of what is known.
    pub(crate) fn of(log: &'static LogType, cells: Map<String, Json>) -> Self {
        Self { log, cells }
    }

    /// The log.
    pub(crate) const fn log(&self) -> &'static LogType {
        self.log
    }

    /// A cell as it was written.
    pub(crate) fn cell(&self, column: &str) -> Option<&Json> {
        self.cells.get(column)
    }

    /// Text of a column; `None` where it is unset.
    pub(crate) fn text(&self, column: &str) -> Option<&str> {
        self.cells.get(column)?.as_str()
    }

    /// A count; `None` where it is unset.
    pub(crate) fn count(&self, column: &str) -> Option<u64> {
        self.cells.get(column)?.as_u64()
    }

    /// A number with a sign.
    pub(crate) fn int(&self, column: &str) -> Option<i64> {
        self.cells.get(column)?.as_i64()
    }

    /// A number with a fraction.
    pub(crate) fn double(&self, column: &str) -> Option<f64> {
        self.cells.get(column)?.as_f64()
    }

    /// Seconds of a column as nanoseconds.
    pub(crate) fn nanos(&self, column: &str) -> Option<i64> {
        self.double(column).and_then(nanos)
    }

    /// Whether a flag is set.
    pub(crate) fn is(&self, column: &str) -> bool {
        self.cells.get(column).and_then(Json::as_bool) == Some(true)
    }

    /// About how many bytes of memory it takes.
    pub(crate) fn size(&self) -> usize {
        self.cells.iter().map(|(name, cell)| name.len() + size(cell)).sum()
    }

    /// The columns that are set, in their order, as people read them.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.log.fields.iter().filter_map(|field| {
            let cell = self.cells.get(field.name)?;
            Some((field.name, shown(cell)))
        })
    }
}

/// Seconds as nanoseconds. A double has seven digits of a second of our time. `None` for what is beyond all times.
fn nanos(seconds: f64) -> Option<i64> {
    let nanos = (seconds * 1e9).round();
    // Beyond it, `as` would give the nearest number that there is.
    (nanos.abs() < i64::MAX as f64).then_some(nanos as i64)
}

/// About how many bytes of memory a cell takes.
fn size(cell: &Json) -> usize {
    let inside: usize = match cell {
        Json::String(text) => text.len(),
        Json::Array(list) => list.iter().map(size).sum(),
        Json::Object(cells) => cells.iter().map(|(name, cell)| name.len() + size(cell)).sum(),
        Json::Null | Json::Bool(_) | Json::Number(_) => 0,
    };
    size_of::<Json>() + inside
}

/// A cell as people read it.
fn shown(cell: &Json) -> String {
    match cell {
        Json::String(text) => text.clone(),
        Json::Array(list) => {
            let parts: Vec<_> = list.iter().map(shown).collect();
            parts.join(",")
        }
        Json::Bool(is) => if *is { "T" } else { "F" }.to_owned(),
        other => other.to_string(),
    }
}

/// The values of a list.
struct List<'a>(Vec<Value<'a>>);

impl Elements for List<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn element(&self, index: usize) -> Value<'_> {
        self.0.get(index).copied().unwrap_or(Value::Unset)
    }
}

/// A cell as conditions compare it.
fn value(cell: &Json, scalar: Scalar) -> Value<'_> {
    let known = match scalar {
        Scalar::Bool => cell.as_bool().map(Value::Bool),
        Scalar::Count => cell.as_u64().map(Value::Count),
        Scalar::Int => cell.as_i64().map(Value::Int),
        Scalar::Double => cell.as_f64().map(Value::Double),
        Scalar::Time => {
            let time = cell.as_f64().and_then(nanos);
            time.map(|time| Value::Time(Timestamp::from_nanos(time)))
        }
        Scalar::Interval => {
            let span = cell.as_f64().and_then(nanos);
            span.map(|span| Value::Interval(Interval::from_nanos(span)))
        }
        Scalar::Addr => {
            let address = cell.as_str().and_then(|text| text.parse::<IpAddr>().ok());
            address.map(|address| Value::Addr(Address::from(address)))
        }
        Scalar::Port => cell.as_u64().and_then(|port| u16::try_from(port).ok()).map(Value::Port),
        Scalar::Enum | Scalar::String => cell.as_str().map(Value::Str),
    };
    known.unwrap_or(Value::Unset)
}

impl Record for LogRow {
    fn log(&self) -> &'static LogType {
        self.log
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) {
        for (index, field) in self.log.fields.iter().enumerate() {
            let scalar = field.zeek_type.scalar;
            match self.cells.get(field.name) {
                None => visitor.field(index, field, Value::Unset),
                Some(Json::Array(cells)) if field.zeek_type.shape != Shape::One => {
                    let list = List(cells.iter().map(|cell| value(cell, scalar)).collect());
                    visitor.field(index, field, Value::List(&list));
                }
                Some(cell) => visitor.field(index, field, value(cell, scalar)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use netsniff_output::condition::Condition;

    use super::*;

    #[test]
    fn conditions_hold_for_rows_that_were_read_back() {
        let row = LogRow::read(
            "{\"_path\":\"conn\",\"ts\":1.5,\"uid\":\"C1\",\"id.orig_h\":\"10.1.2.3\",\"id.resp_p\":443,\
             \"proto\":\"tcp\",\"duration\":0.25,\"local_orig\":true,\"orig_bytes\":7}",
        )
        .unwrap();
        let holds = |text: &str| Condition::parse(text, row.log()).unwrap().matches(&row);
        for condition in [
            "id.orig_h IN '10.0.0.0/8'",
            "id.resp_p = 443 AND proto = 'tcp'",
            "duration > 0.2 AND duration < 0.3",
            "local_orig",
            "service IS NULL",
            "orig_bytes = 7",
            "ts = 1.5",
        ] {
            assert!(holds(condition), "{condition}");
        }
        for condition in ["id.resp_p = 80", "resp_bytes < 5", "NOT resp_bytes < 5"] {
            assert!(!holds(condition), "{condition}");
        }
    }

    #[test]
    fn what_is_no_row_is_none() {
        for line in ["", "{", "{\"_path\":\"conn\"", "{\"_path\":\"nothing\",\"ts\":1}", "[1]"] {
            assert!(LogRow::read(line).is_none(), "{line}");
        }
    }
}
