//! `netsniff schema`: which logs and fields exist, and what they mean.

use std::fmt::Write as _;
use std::io::{self, Write};

use clap::builder::PossibleValuesParser;
use netsniff_analysis::record::{FieldInfo, LogType, Word};
use netsniff_analysis::rows::LOGS;
use netsniff_delivery::avro::{Schema, schemas};
use netsniff_output::Format;
use serde_json::{Value, json};

use super::clickhouse;

/// Print which logs and fields exist, with types, units and meaning.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "Example: netsniff schema conn")]
pub struct SchemaArgs {
    /// Logs to print; all of them if none is named.
    #[arg(value_name = "LOG", value_parser = PossibleValuesParser::new(paths()))]
    logs: Vec<String>,
    /// Print one JSON document.
    #[arg(long, conflicts_with_all = ["avro", "clickhouse", "markdown"])]
    json: bool,
    /// Print the schema of rows in Avro, as --deliver sends them to Kafka: of one log, or an array of those of several, by default of all and of run_end.
    #[arg(long, conflicts_with_all = ["clickhouse", "markdown"])]
    avro: bool,
    /// Print statements of SQL that make a table of ClickHouse for each log.
    #[arg(long, conflicts_with = "markdown")]
    clickhouse: bool,
    /// Print the page of the documentation, `docs/logs.md`.
    #[arg(long)]
    markdown: bool,
}

/// Prints the schema to `out`.
///
/// # Errors
///
/// When `out` cannot be written to.
pub fn run(args: &SchemaArgs, out: &mut impl Write) -> io::Result<()> {
    let chosen = |log: &&LogType| args.logs.is_empty() || args.logs.iter().any(|l| l == log.path);
    let logs: Vec<_> = LOGS.iter().copied().filter(chosen).collect();
    let text = if args.json {
        format!("{:#}\n", json(&logs))
    } else if args.avro {
        format!("{:#}\n", avro(&args.logs))
    } else if args.clickhouse {
        clickhouse::tables(&logs)
    } else if args.markdown {
        markdown(&logs)
    } else {
        text(&logs)
    };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Whoever reads, `head` for one, may have enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// The schemas of Avro: that of one log by itself, or else an array, which is a schema as well.
fn avro(chosen: &[String]) -> Value {
    let is_chosen =
        |schema: &&Schema| chosen.is_empty() || chosen.iter().any(|log| log == schema.log());
    let mut found: Vec<_> = schemas().iter().filter(is_chosen).map(Schema::json).collect();
    if found.len() == 1 { found.remove(0) } else { found.into() }
}

/// The names of all logs.
fn paths() -> Vec<&'static str> {
    LOGS.iter().map(|log| log.path).collect()
}

/// The type with its unit, as `interval (seconds)`.
fn type_and_unit(field: &FieldInfo) -> String {
    match field.unit.name() {
        "" => field.zeek_type.to_string(),
        unit => format!("{} ({unit})", field.zeek_type),
    }
}

/// The schema for people at a terminal of 80 columns.
fn text(logs: &[&LogType]) -> String {
    let mut out = String::new();
    for (index, log) in logs.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        let _ = writeln!(out, "{}", log.path);
        wrap(&mut out, log.doc, 2);
        for field in log.fields {
            let kind = type_and_unit(field);
            let _ = writeln!(
                out,
                "\n  {:<24}{kind:<24}{:<14}{}",
                field.name,
                field.privacy.name(),
                field.origin.name()
            );
            wrap(&mut out, field.doc, 6);
            for word in field.words {
                let _ = write!(out, "        {:<18}", word.name);
                let start = out.len();
                wrap(&mut out, word.doc, 26);
                out.replace_range(start..start + 26, "");
            }
        }
    }
    out
}

/// Appends `text` in lines of at most 80 columns, indented.
fn wrap(out: &mut String, text: &str, indent: usize) {
    let mut column = 0;
    for word in text.split_whitespace() {
        if column > 0 && column + 1 + word.chars().count() > 80 {
            out.push('\n');
            column = 0;
        }
        if column == 0 {
            out.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.chars().count();
    }
    out.push('\n');
}

/// The schema for programs.
fn json(logs: &[&LogType]) -> Value {
    let path = |format: Format, log: &LogType, at: usize| {
        let log = LOGS.iter().find(|known| known.path == log.path)?;
        format.paths(log)?.get(at).cloned()?
    };
    let field = |log: &LogType, at: usize, field: &FieldInfo| {
        let word = |word: &Word| (word.name.to_owned(), Value::from(word.doc));
        let words: serde_json::Map<_, _> = field.words.iter().map(word).collect();
        json!({
            "name": field.name,
            "type": field.zeek_type.to_string(),
            "unit": Some(field.unit.name()).filter(|unit| !unit.is_empty()),
            "privacy": field.privacy.name(),
            "origin": field.origin.name(),
            "doc": field.doc,
            "words": Some(words).filter(|words| !words.is_empty()),
            "ecs": path(Format::Ecs, log, at),
            "eve": path(Format::Eve, log, at),
        })
    };
    let log = |log: &&LogType| {
        let fields = log.fields.iter().enumerate();
        let fields: Vec<_> = fields.map(|(at, it)| field(log, at, it)).collect();
        json!({ "log": log.path, "doc": log.doc, "fields": fields })
    };
    logs.iter().map(log).collect()
}

/// Writes the page `docs/logs.md`.
fn markdown(logs: &[&LogType]) -> String {
    let mut out = String::from(
        "# Logs\n\n\
        Made from the declarations of the logs in `crates/analysis/src/`; don't edit this page. \
        `netsniff schema` prints the same.\n\n\
        *Type* is Zeek's name of the type. *Privacy* says what the value would give away, which \
        anonymisation goes by. *Origin* is who defined the column: Zeek's default scripts, a \
        policy script of Zeek, or netsniff. A value that the input does not show is unset: `-` in \
        TSV, left out in JSON.\n",
    );
    for log in logs {
        let _ = write!(out, "\n## {}\n\n{}\n\n", log.path, log.doc);
        out.push_str("| field | type | privacy | origin | meaning |\n|---|---|---|---|---|\n");
        for field in log.fields {
            let _ = writeln!(
                out,
                "| `{}` | {} | {} | {} | {} |",
                field.name,
                type_and_unit(field),
                field.privacy.name(),
                field.origin.name(),
                field.doc.replace('|', "\\|")
            );
        }
        for field in log.fields.iter().filter(|field| !field.words.is_empty()) {
            let _ = write!(out, "\nWords of `{}`:\n\n", field.name);
            for word in field.words {
                let _ = writeln!(out, "- `{}`: {}", word.name, word.doc);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use clap::Args as _;

    use super::*;

    fn printed(args: &SchemaArgs) -> String {
        let mut out = Vec::new();
        run(args, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_page_of_the_documentation_is_up_to_date() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/logs.md");
        let expected = markdown(&LOGS);
        if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
            fs::write(&path, &expected).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == expected,
            "docs/logs.md does not say what the logs' declarations say; write it anew with: \
             UPDATE_GOLDEN=1 cargo test -p netsniff up_to_date"
        );
    }

    #[test]
    fn text_fits_80_columns() {
        let text = printed(&SchemaArgs::default());
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "too wide: {line}");
        }
        assert!(text.contains("\n  duration                interval (seconds)      plain"));
        assert!(text.contains("\n        S1                Established, not ended.\n"));
        assert!(text.contains("\n      Time from the first packet to the last.\n"));
    }

    #[test]
    fn json_has_every_field() {
        let text = printed(&SchemaArgs { json: true, ..SchemaArgs::default() });
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value.as_array().unwrap().len(), LOGS.len());
        let conn = &value[0];
        assert_eq!(conn["log"], "conn");
        assert_eq!(conn["fields"].as_array().unwrap().len(), LOGS[0].fields.len());
        assert_eq!(conn["fields"][2]["privacy"], "address");
        assert_eq!(conn["fields"][2]["unit"], Value::Null);
        assert_eq!(conn["fields"][6]["words"]["icmp"], "ICMP or ICMPv6.");
        assert_eq!(conn["fields"][20]["type"], "set[string]");
    }

    #[test]
    fn a_schema_of_avro_is_of_one_log_or_of_several() {
        let of = |logs: &[&str]| -> Value {
            let logs = logs.iter().map(|log| (*log).to_owned()).collect();
            let text = printed(&SchemaArgs { avro: true, logs, ..SchemaArgs::default() });
            serde_json::from_str(&text).unwrap()
        };
        let conn = of(&["conn"]);
        assert_eq!((&conn["type"], &conn["name"]), (&"record".into(), &"conn".into()));
        assert_eq!(conn["fields"].as_array().unwrap().len(), LOGS[0].fields.len() + 4);
        assert_eq!(of(&["conn", "dns"])[0], conn);
        let all = of(&[]);
        let all = all.as_array().unwrap();
        assert_eq!(all.len(), LOGS.len() + 1);
        assert_eq!(all.last().unwrap()["name"], "run_end");
    }

    #[test]
    fn one_log_can_be_chosen() {
        let text = printed(&SchemaArgs { logs: vec!["weird".to_owned()], ..SchemaArgs::default() });
        assert!(text.starts_with("weird\n"), "{text}");
        assert!(!text.contains("\nconn\n"));
    }

    #[test]
    fn a_log_that_does_not_exist_is_an_error_of_usage() {
        let command = SchemaArgs::augment_args(clap::Command::new("schema"));
        let error = command.try_get_matches_from(["schema", "wierd"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("a similar value exists: 'weird'"), "{error}");
    }
}
