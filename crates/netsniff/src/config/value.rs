//! A value of the file as a value of an option.

use std::ops::Range;

use clap::Command;
use clap::error::ErrorKind;
use toml::Spanned;
use toml::de::DeValue;

use super::Value;
use super::schema::Kind;

/// What is wrong with a value, and where it stands.
pub(super) type Fault = (Range<usize>, String);

/// The option that a value is for.
#[derive(Clone, Copy)]
pub(super) struct Target<'c> {
    pub(super) command: &'c Command,
    pub(super) long: &'c str,
    pub(super) kind: Kind,
}

/// The value of an option, if its own parser takes it.
pub(super) fn of(target: Target<'_>, value: &Spanned<DeValue<'_>>) -> Result<Value, Fault> {
    let said = |said: &str| (value.span(), format!("{said}, found {}", found(value.get_ref())));
    match (target.kind, value.get_ref()) {
        (Kind::Flag, DeValue::Boolean(on)) => Ok(Value::Flag(*on)),
        (Kind::Flag, _) => Err(said("expected true or false")),
        (Kind::List, DeValue::Array(list)) if list.is_empty() => {
            let why = "an empty list sets nothing: leave the option out".to_owned();
            Err((value.span(), why))
        }
        (Kind::List, DeValue::Array(list)) => {
            list.iter().map(|item| word(target, item)).collect::<Result<_, _>>().map(Value::Words)
        }
        (Kind::One, DeValue::Array(_)) => Err(said("expected one text or number")),
        _ => Ok(Value::Words(vec![word(target, value)?])),
    }
}

/// The word that stands for a text or number on the command line.
fn word(target: Target<'_>, value: &Spanned<DeValue<'_>>) -> Result<String, Fault> {
    let fault = |said: String| (value.span(), said);
    let word = match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => {
            let read = i128::from_str_radix(number.as_str(), number.radix());
            read.map_err(|_| fault("this number is too large".to_owned()))?.to_string()
        }
        DeValue::Float(number) => number.as_str().to_owned(),
        other => return Err(fault(format!("expected a text or a number, found {}", found(other)))),
    };
    if word.contains('\0') {
        return Err(fault("a value has no NUL in it".to_owned()));
    }
    judge(target, &word).map_err(fault)?;
    Ok(word)
}

/// Lets the option's own parser judge a word.
fn judge(of: Target<'_>, word: &str) -> Result<(), String> {
    let words = [of.command.get_name().to_owned(), format!("--{}={word}", of.long)];
    match of.command.clone().try_get_matches_from(words) {
        Err(error) if !is_of_others(error.kind()) => Err(said(&error)),
        _ => Ok(()),
    }
}

/// Whether it is no value that is wrong, but which arguments there are.
fn is_of_others(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::MissingRequiredArgument | ErrorKind::ArgumentConflict)
}

/// What clap says is wrong, without what would tell how to call it.
pub(super) fn said(error: &clap::Error) -> String {
    let text = error.to_string();
    let is_wanted =
        |part: &&str| !part.starts_with("Usage:") && !part.starts_with("For more information");
    let parts: Vec<_> = text.split("\n\n").map(str::trim).filter(is_wanted).collect();
    let text = parts.join("\n  ");
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

fn found(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date or time without quotes",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
