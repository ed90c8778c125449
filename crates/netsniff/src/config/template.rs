//! A complete file: every option with its help and its default.

use std::fmt::Write as _;

use clap::{Arg, Command};

use super::schema::{self, Kind};
use super::{Setting, Value};

const HEAD: &str = "\
# netsniff.toml: options of netsniff, a table for each command.
#
# Options have the names that they have on the command line, which overrides
# them. What has no default is commented out. Check a file with
# `netsniff config --check FILE`; docs/configuration.md says where it is read.
";

/// Columns of a comment.
const WIDTH: usize = 80;

/// The file that sets every option to its default.
#[must_use]
pub fn complete(root: &Command) -> String {
    let mut out = HEAD.to_owned();
    for schema::Table { path, command } in schema::tables(root) {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        out.push('\n');
        comment(&mut out, &about, "");
        let _ = writeln!(out, "[{}]", path.join("."));
        for (arg, long, kind) in schema::options(command) {
            option(&mut out, arg, long, kind);
        }
    }
    out
}

/// What a file sets, as a line of it.
#[must_use]
pub fn line(set: &Setting) -> String {
    let value = match &set.value {
        Value::Flag(on) => on.to_string(),
        Value::Words(words) => match words.as_slice() {
            [word] => written(word),
            words => list(words),
        },
    };
    format!("{} = {value}", set.option)
}

fn option(out: &mut String, arg: &Arg, long: &str, kind: Kind) {
    out.push('\n');
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    comment(out, &help, "");
    if kind != Kind::Flag {
        for value in arg.get_possible_values().iter().filter(|value| !value.is_hide_set()) {
            let help = value.get_help().map(|help| format!(": {help}")).unwrap_or_default();
            comment(out, &format!("- {}{help}", value.get_name()), "  ");
        }
    }
    let defaults: Vec<_> =
        arg.get_default_values().iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let _ = match (kind, defaults.as_slice()) {
        (Kind::Flag, _) => writeln!(out, "{long} = false"),
        (Kind::One, [word]) => writeln!(out, "{long} = {}", written(word)),
        (Kind::List, [_, ..]) => writeln!(out, "{long} = {}", list(&defaults)),
        _ => {
            let names = arg.get_value_names().unwrap_or_default();
            let name = names.first().map_or_else(|| long.to_uppercase(), ToString::to_string);
            let name = if kind == Kind::List { list(&[name]) } else { written(&name) };
            writeln!(out, "#{long} = {name}")
        }
    };
}

/// Writes a text as lines of comment; those behind the first are indented by `more`.
fn comment(out: &mut String, text: &str, more: &str) {
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line = format!("#{more}");
        }
        line.push(' ');
        line.push_str(word);
    }
    out.push_str(&line);
    out.push('\n');
}

fn list(words: &[String]) -> String {
    let words: Vec<_> = words.iter().map(|word| written(word)).collect();
    format!("[{}]", words.join(", "))
}

/// A value: a number where it is one, and else a basic string.
fn written(word: &str) -> String {
    if word.parse::<i64>().is_ok_and(|number| number.to_string() == word) {
        return word.to_owned();
    }
    let mut out = String::from("\"");
    for letter in word.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}
