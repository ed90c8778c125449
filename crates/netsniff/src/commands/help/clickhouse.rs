//! Tables of ClickHouse for logs: `netsniff schema --clickhouse`.

use std::fmt::Write as _;

use netsniff_analysis::record::{FieldInfo, LogType, Scalar, Shape};

/// What tells a row from all others, as rows have it that are sent (`--deliver`): columns before those of the log.
const IDENTITY: [(&str, &str, &str); 4] = [
    ("sensor", "LowCardinality(String)", "Who made the row."),
    ("run", "String", "The run of the sensor that made the row."),
    ("log", "LowCardinality(String)", "The log that the row belongs to."),
    (
        "seq",
        "UInt64",
        "Number of the row among those of its sensor, run and log, from 0 without gaps.",
    ),
];

/// The rows that end a run, as a receiver gets them.
const RUN_END: &str = "\
CREATE TABLE IF NOT EXISTS `run_end`
(
    sensor LowCardinality(String) COMMENT 'Who made the row.',
    run String COMMENT 'The run of the sensor that ended.',
    log LowCardinality(String) COMMENT 'Always run_end.',
    seq UInt64 COMMENT 'Number of the row among those of its run.',
    of LowCardinality(String) COMMENT 'A log of the run.',
    rows UInt64 COMMENT 'How many rows it has.'
)
ENGINE = ReplacingMergeTree
ORDER BY (sensor, run, seq)
COMMENT 'How many rows of each log a run made.';
";

/// The table of the rows that end a run, and a statement for each log, which makes a table of that name unless there is one.
///
/// A row that came twice has the same key twice, of which the engine keeps one as it merges parts, and a query with
/// `FINAL` sees one.
pub(super) fn tables(logs: &[&LogType]) -> String {
    let mut out = RUN_END.to_owned();
    for log in logs {
        let _ = writeln!(out, "\nCREATE TABLE IF NOT EXISTS {}\n(", quoted(log.path));
        for (name, kind, doc) in IDENTITY {
            let _ = writeln!(out, "    {name} {kind} COMMENT {},", text(doc));
        }
        for field in log.fields {
            let name = quoted(field.name);
            let _ = writeln!(out, "    {name} {} COMMENT {},", kind(field), text(field.doc));
        }
        // Rows without their identity would all be the same row.
        let _ = writeln!(out, "    CONSTRAINT is_told_apart CHECK sensor != '' AND run != ''");
        let _ = writeln!(out, ")\nENGINE = ReplacingMergeTree\nPARTITION BY toYYYYMM(ts)");
        let _ = writeln!(out, "ORDER BY (ts, sensor, run, seq)\nCOMMENT {};", text(log.doc));
    }
    out
}

/// The type of a column. The time that a table is sorted by is not `Nullable`: each row has one.
///
/// Arrays whose names begin alike up to a dot are columns of one `Nested` structure, which all have as many elements. What is
/// in a `Variant` is not.
fn kind(field: &FieldInfo) -> String {
    let (scalar, is_word) = match field.zeek_type.scalar {
        Scalar::Bool => ("Bool", false),
        Scalar::Count => ("UInt64", false),
        Scalar::Int => ("Int64", false),
        Scalar::Port => ("UInt16", false),
        Scalar::Double | Scalar::Interval => ("Float64", false),
        Scalar::Time => ("DateTime64(6, 'UTC')", false),
        Scalar::Enum => ("String", true),
        Scalar::Addr | Scalar::String => ("String", false),
    };
    match field.zeek_type.shape {
        Shape::Set | Shape::Vector if field.name.contains('.') => {
            format!("Variant(Array({scalar}))")
        }
        Shape::Set | Shape::Vector => format!("Array({scalar})"),
        Shape::One if field.name == "ts" => scalar.to_owned(),
        Shape::One if is_word => format!("LowCardinality(Nullable({scalar}))"),
        Shape::One => format!("Nullable({scalar})"),
    }
}

/// A name with a dot, or one that is a word of SQL, is one only in quotes.
fn quoted(name: &str) -> String {
    format!("`{name}`")
}

fn text(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use netsniff_analysis::rows::LOGS;

    use super::*;

    #[test]
    fn each_log_has_a_table_with_each_of_its_columns() {
        let all = tables(&LOGS);
        for log in LOGS.iter() {
            let own = tables(&[log]);
            let own = own.strip_prefix(RUN_END).unwrap();
            assert!(all.contains(own), "{}", log.path);
            assert_eq!(own.lines().count(), log.fields.len() + IDENTITY.len() + 9, "{own}");
            for field in log.fields {
                assert!(own.contains(&format!("\n    `{}` ", field.name)), "{}", field.name);
                assert!(IDENTITY.iter().all(|(name, ..)| *name != field.name), "{}", field.name);
            }
        }
    }

    #[test]
    fn each_log_has_the_time_that_its_table_is_sorted_by() {
        for log in LOGS.iter() {
            let ts = log.fields.iter().find(|field| field.name == "ts");
            assert_eq!(ts.map(kind).as_deref(), Some("DateTime64(6, 'UTC')"), "{}", log.path);
        }
    }

    #[test]
    fn text_ends_where_it_is_meant_to() {
        assert_eq!(text(r"it's a \"), r"'it\'s a \\'");
    }
}
