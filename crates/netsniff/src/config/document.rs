//! A configuration file, checked: what it sets, and what is wrong in it.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::schema::{self, Kind};
use super::trial::Trial;
use super::value::Target;
use super::{Place, Setting, Value, value};

/// Something that is wrong in a file.
#[derive(Debug)]
pub(super) struct Fault {
    place: Place,
    said: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.said)
    }
}

/// What a file sets, in its order.
///
/// # Errors
///
/// All that is wrong in it.
pub(super) fn check(root: &Command, file: &Path, text: &str) -> Result<Vec<Setting>, Vec<Fault>> {
    let mut checker = Checker { root, file, text, settings: Vec::new(), faults: Vec::new() };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let said = error.message().trim().replace('\n', ", ");
        checker.fault(&error.span().unwrap_or_default(), said);
    }
    if errors.is_empty() {
        checker.table(root, &[], table.get_ref());
    }
    let Checker { mut settings, mut faults, .. } = checker;
    settings.sort_by_key(|set| (set.place.line, set.place.column));
    if faults.is_empty() {
        faults = contradictions(root, &settings);
    }
    faults.sort_by_key(|fault| (fault.place.line, fault.place.column));
    if faults.is_empty() { Ok(settings) } else { Err(faults) }
}

/// Options of one command that exclude each other.
fn contradictions(root: &Command, settings: &[Setting]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for table in schema::tables(root) {
        let names = std::iter::once(root.get_name()).chain(table.path.iter().map(String::as_str));
        let words: Vec<_> = names.map(Into::into).collect();
        let mut trial = Trial::new(root, &words, words.len());
        let mut accepted: Vec<&Setting> = Vec::new();
        for set in settings.iter().filter(|set| set.command == table.path && !set.is_default) {
            accepted.push(set);
            if let Err(said) = trial.missing(&accepted) {
                accepted.pop();
                faults.push(Fault { place: set.place.clone(), said });
            }
        }
    }
    faults
}

struct Checker<'a> {
    root: &'a Command,
    file: &'a Path,
    text: &'a str,
    settings: Vec<Setting>,
    faults: Vec<Fault>,
}

impl Checker<'_> {
    fn fault(&mut self, span: &Range<usize>, said: String) {
        let place = self.place(span.start);
        self.faults.push(Fault { place, said });
    }

    fn place(&self, offset: usize) -> Place {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = 1 + before.matches('\n').count();
        let column = 1 + before.rsplit('\n').next().unwrap_or_default().chars().count();
        Place { file: self.file.to_owned(), line, column }
    }

    /// The table of a command, or the whole file.
    fn table(&mut self, command: &Command, path: &[String], table: &DeTable<'_>) {
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let inner = schema::below(command).find(|inner| inner.get_name() == name);
            let path = || [path, &[name.to_owned()]].concat();
            match (value.get_ref(), inner) {
                (DeValue::Table(table), Some(inner)) if has_tables(&path(), inner) => {
                    self.table(inner, &path(), table);
                }
                (DeValue::Table(_), Some(_)) => {
                    self.fault(
                        &key.span(),
                        format!("no file sets anything of netsniff {}", path().join(" ")),
                    );
                }
                (_, Some(_)) => {
                    let said = format!(
                        "{name} is a command, whose options stand once in a table, under [{}]",
                        path().join(".")
                    );
                    self.fault(&key.span(), said);
                }
                (DeValue::Table(_), None) => {
                    let said = self.unknown_command(&path());
                    self.fault(&key.span(), said);
                }
                (_, None) => self.option(command, &path(), key.span(), value),
            }
        }
    }

    /// An option of a command, of which `path` is the last part.
    fn option(
        &mut self,
        command: &Command,
        path: &[String],
        at: Range<usize>,
        given: &Spanned<DeValue<'_>>,
    ) {
        let Some((name, of)) = path.split_last() else { return };
        let Some((arg, long, kind)) = schema::options(command).find(|(_, long, _)| long == name)
        else {
            return self.fault(&at, unknown_option(command, of, name));
        };
        let target = Target { command, long, kind };
        match value::of(target, given) {
            Ok(value) => {
                let is_default = is_default(arg, kind, &value);
                let place = self.place(at.start);
                let (id, option) = (arg.get_id().to_string(), long.to_owned());
                let command = of.to_vec();
                self.settings.push(Setting { command, option, value, place, id, is_default });
            }
            Err((span, said)) => self.fault(&span, format!("{name}: {said}")),
        }
    }

    fn unknown_command(&self, path: &[String]) -> String {
        let words = std::iter::once("netsniff").chain(path.iter().map(String::as_str));
        let error = self.root.clone().try_get_matches_from(words).err();
        let like = error.and_then(|error| likeliest(error.get(ContextKind::SuggestedSubcommand)?));
        let said = format!("there is no command netsniff {}", path.join(" "));
        said + &did_you_mean(like.as_deref())
    }
}

/// Whether a command has options that a file sets, or others below it do.
fn has_tables(path: &[String], command: &Command) -> bool {
    let below =
        |inner: &Command| has_tables(&[path, &[inner.get_name().to_owned()]].concat(), inner);
    schema::takes_settings(path, command) || schema::below(command).any(below)
}

fn is_default(arg: &Arg, kind: Kind, value: &Value) -> bool {
    match value {
        Value::Flag(on) => kind == Kind::Flag && !on,
        Value::Words(words) => {
            let defaults = arg.get_default_values();
            words.len() == defaults.len() && words.iter().zip(defaults).all(|(a, b)| **b == **a)
        }
    }
}

/// What is said of a key that is no option.
fn unknown_option(command: &Command, of: &[String], name: &str) -> String {
    if of.is_empty() {
        return format!(
            "{name} stands outside of all tables: options stand under their command, as [analyze]"
        );
    }
    let at_hand = |what: &str| format!("{name} {what}, and stands on the command line alone");
    let command_name = format!("netsniff {}", of.join(" "));
    let mut same = name.chars();
    let letter = same.next().filter(|_| same.next().is_none());
    for arg in command.get_arguments() {
        let is_named = arg.get_id().as_str().eq_ignore_ascii_case(name)
            || arg
                .get_value_names()
                .is_some_and(|names| names.iter().any(|it| it.eq_ignore_ascii_case(name)));
        if arg.is_positional() && is_named {
            return at_hand(&format!("is what {command_name} works on"));
        }
        let is_other_name = arg.get_all_aliases().is_some_and(|names| names.contains(&name))
            || letter.is_some_and(|letter| {
                let others = arg.get_all_short_aliases().unwrap_or_default();
                arg.get_short() == Some(letter) || others.contains(&letter)
            });
        if let Some(long) = arg.get_long().filter(|_| is_other_name && schema::is_option(arg)) {
            return format!("{name} is another name of {long}: write {long}");
        }
    }
    if ["help", "version", "config", "no-config"].contains(&name) {
        return at_hand("is asked of one run");
    }
    let said = format!("{command_name} has no option {name}");
    said + &did_you_mean(like(command, name).as_deref())
}

/// The option that was probably meant.
fn like(command: &Command, name: &str) -> Option<String> {
    let dashed = name.replace('_', "-");
    if schema::options(command).any(|(_, long, _)| long == dashed) {
        return Some(dashed);
    }
    if !name.chars().all(|letter| letter.is_alphanumeric() || "-_".contains(letter)) {
        return None;
    }
    let words = [command.get_name().to_owned(), format!("--{name}")];
    let error = command.clone().try_get_matches_from(words).err()?;
    let like = likeliest(error.get(ContextKind::SuggestedArg)?)?;
    let like = like.trim_start_matches('-').to_owned();
    schema::options(command).any(|(_, long, _)| long == like).then_some(like)
}

/// What clap suggests; of several, the last is the likeliest.
fn likeliest(value: &ContextValue) -> Option<String> {
    match value {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => texts.last().cloned(),
        _ => None,
    }
}

fn did_you_mean(like: Option<&str>) -> String {
    like.map(|like| format!("; did you mean {like}?")).unwrap_or_default()
}
