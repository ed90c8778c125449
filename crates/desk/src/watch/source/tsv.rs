//! Rows of Zeek's own format, as rows of a stream.

use netsniff_analysis::record::{FieldInfo, LogType, Scalar, Shape};
use serde_json::{Map, Value as Json};

use crate::watch::data::row::log_named;

/// The columns of a log file, as its head tells them.
#[derive(Debug)]
pub(crate) struct Columns {
    log: &'static LogType,
    fields: Vec<Option<&'static FieldInfo>>,
    /// Whether the file has its last line.
    pub(crate) is_closed: bool,
}

impl Columns {
    /// Those of the log with this name; `None` where that is not known.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(Self { log: log_named(name)?, fields: Vec::new(), is_closed: false })
    }

    /// A line of the file as a row of a stream; `None` for what is no row.
    pub(crate) fn row(&mut self, line: &str) -> Option<String> {
        if let Some(rest) = line.strip_prefix('{') {
            return Some(format!("{{\"_path\":\"{}\",{rest}", self.log.path));
        }
        if line.starts_with('#') {
            self.head(line);
            return None;
        }
        let mut cells = Map::new();
        for (cell, field) in line.split('\t').zip(&self.fields) {
            if let (Some(field), true) = (field, cell != "-") {
                cells.insert(field.name.to_owned(), value(cell, field));
            }
        }
        if cells.is_empty() {
            return None;
        }
        let cells = Json::Object(cells).to_string();
        Some(format!("{{\"_path\":\"{}\",{}", self.log.path, cells.strip_prefix('{')?))
    }

    fn head(&mut self, line: &str) {
        if let Some(names) = line.strip_prefix("#fields\t") {
            let field = |name: &str| self.log.fields.iter().find(|field| field.name == name);
            self.fields = names.split('\t').map(field).collect();
        }
        self.is_closed = line.starts_with("#close");
    }
}

/// A cell as JSON has it.
fn value(cell: &str, field: &FieldInfo) -> Json {
    let one = |text: &str| match field.zeek_type.scalar {
        Scalar::Bool => Json::from(text == "T"),
        Scalar::Count | Scalar::Port => text.parse::<u64>().map_or(Json::Null, Json::from),
        Scalar::Int => text.parse::<i64>().map_or(Json::Null, Json::from),
        Scalar::Double | Scalar::Time | Scalar::Interval => {
            text.parse::<f64>().map_or(Json::Null, Json::from)
        }
        Scalar::Addr | Scalar::Enum | Scalar::String => Json::from(text),
    };
    match field.zeek_type.shape {
        Shape::One => one(cell),
        _ if cell == "(empty)" => Json::Array(Vec::new()),
        _ => cell.split(',').map(one).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::data::row::LogRow;

    #[test]
    fn both_formats_give_the_same_row() {
        let mut columns = Columns::of("conn").unwrap();
        assert_eq!(columns.row("#fields\tts\tuid\tid.orig_p\tlocal_orig\tservice\tnew"), None);
        let row = columns.row("1.5\tC1\t80\tT\t-\tx").unwrap();
        let row = LogRow::read(&row).unwrap();
        assert_eq!((row.text("uid"), row.count("id.orig_p")), (Some("C1"), Some(80)));
        assert_eq!((row.nanos("ts"), row.is("local_orig")), (Some(1_500_000_000), true));
        assert_eq!(row.text("service"), None);
        let other = columns.row("{\"ts\":1.5,\"uid\":\"C1\"}").unwrap();
        assert_eq!(LogRow::read(&other).unwrap().text("uid"), Some("C1"));
        assert!(!columns.is_closed);
        assert_eq!(columns.row("#close\t2026-11-28-22-10-00"), None);
        assert!(columns.is_closed);
    }
}
