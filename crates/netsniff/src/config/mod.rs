//! The configuration file `netsniff.toml`: options of commands, kept in a file.
//!
//! Which options there are, what values they take, and which exclude or need each other is told by the declarations of
//! the command line alone. What a file sets becomes arguments, which stand before those that were typed.
//!
//! | module | concern |
//! |---|---|
//! | `schema` | which options of which commands a file may set |
//! | `places` | where files lie, and whether they can be trusted |
//! | `document`, `value` | a file, checked: what it sets, and what is wrong in it |
//! | `trial` | which options go together, as the command line has it |
//! | `overriding` | what was typed stands above what files set |
//! | `template` | a complete file, and values as TOML writes them |

mod document;
mod overriding;
mod places;
mod schema;
mod template;
mod trial;
mod value;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::{Command, FromArgMatches as _};
use netsniff_console::UsageError;

pub use self::places::VARIABLE;
pub use self::schema::INPUTS;
pub use self::template::{complete, line};

/// Which configuration files are read.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Configuration file")]
pub struct ConfigArgs {
    /// Read this configuration file and no other; see `netsniff config --help`
    #[arg(short, long, value_name = "FILE", global = true, conflicts_with = "no_config")]
    config: Option<PathBuf>,
    /// Read no configuration file
    #[arg(long, global = true)]
    no_config: bool,
}

impl ConfigArgs {
    /// The files that are read where they are there.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        let files = places::files(self.config.as_deref(), self.no_config);
        files.into_iter().map(|file| file.path).collect()
    }

    /// The same as words.
    #[must_use]
    pub fn words(&self) -> Vec<OsString> {
        let mut words = Vec::new();
        if let Some(file) = &self.config {
            words.extend(["--config".into(), file.into()]);
        }
        words.extend(self.no_config.then(|| "--no-config".into()));
        words
    }
}

/// A place in a file. Line and column count from 1; a column is a character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    file: PathBuf,
    line: usize,
    column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// What an option is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Whether a flag is set.
    Flag(bool),
    /// The value of an option, or several.
    Words(Vec<String>),
}

/// An option that a file sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The names of its command, from the outermost.
    pub command: Vec<String>,
    /// Its long name.
    pub option: String,
    /// What it is set to.
    pub value: Value,
    /// Where that stands.
    pub place: Place,
    /// Its name in the declarations.
    id: String,
    /// Whether this is what it is without any file.
    is_default: bool,
}

impl Setting {
    /// The arguments that set the same.
    fn words(&self) -> Vec<OsString> {
        match &self.value {
            Value::Flag(false) => Vec::new(),
            Value::Flag(true) => vec![format!("--{}", self.option).into()],
            Value::Words(values) => {
                values.iter().map(|value| format!("--{}={value}", self.option).into()).collect()
            }
        }
    }
}

/// What one file sets.
#[derive(Clone, Debug)]
pub struct Layer {
    /// The file.
    pub file: PathBuf,
    /// In the order of the file.
    pub settings: Vec<Setting>,
}

/// The arguments of a run, with those of files.
#[derive(Debug)]
pub struct Arguments {
    /// All words, that of the program first.
    pub words: Vec<OsString>,
    /// What files set of them.
    used: Vec<Setting>,
}

impl Arguments {
    /// Whether a setting of a file is among them, or changes nothing anyway.
    #[must_use]
    pub fn uses(&self, set: &Setting) -> bool {
        set.is_default || self.used.contains(set)
    }

    /// Long names of the options that are given otherwise than in `before`.
    #[must_use]
    pub fn changed_since(&self, before: &[OsString]) -> BTreeSet<String> {
        let words = |words: &[OsString]| {
            let mut words: Vec<_> =
                words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            words.sort_unstable();
            words
        };
        let (new, old) = (words(&self.words), words(before));
        let missing = |of: &[String], list: &[String]| -> Vec<String> {
            let times =
                |word: &String, list: &[String]| list.iter().filter(|it| *it == word).count();
            of.iter().filter(|word| times(word, of) > times(word, list)).cloned().collect()
        };
        let changed = missing(&new, &old).into_iter().chain(missing(&old, &new));
        let name = |word: String| {
            let word = word.strip_prefix("--")?;
            Some(word.split_once('=').map_or(word, |(name, _)| name).to_owned())
        };
        changed.filter_map(name).collect()
    }

    /// Which options come from files, in a sentence, for whoever is told that arguments make no sense.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let each = self.used.iter().map(|set| format!("--{} ({})", set.option, set.place));
        let list = each.collect::<Vec<_>>().join(", ");
        (!list.is_empty())
            .then(|| format!("set by configuration files: {list}; --no-config reads none"))
    }
}

/// Adds to the arguments of a run what files set for its command. Arguments that are wrong by themselves stay as they are.
///
/// # Errors
///
/// [`UsageError`] for a file that has been asked for and cannot be read, that others could have written, or that has errors.
pub fn with_files(root: &Command, words: Vec<OsString>) -> anyhow::Result<Arguments> {
    let plain = |words| Arguments { words, used: Vec::new() };
    if !may_read(&words) {
        return Ok(plain(words));
    }
    let Some(invocation) = overriding::Invocation::of(root, &words) else {
        return Ok(plain(words));
    };
    let args = ConfigArgs::from_arg_matches(&invocation.matches)?;
    let takes_settings = schema::takes_settings(&invocation.path, invocation.command);
    if !takes_settings && args.config.is_none() {
        return Ok(plain(words));
    }
    let typed = overriding::Typed::new(&invocation, words);
    if !typed.are_right(root) {
        return Ok(plain(typed.words));
    }
    let layers = layers(root, &args)?;
    let used = typed.joined_by(root, &layers);
    Ok(Arguments { words: typed.with(&used), used: used.into_iter().cloned().collect() })
}

/// Whether a file may be read for these words. Where none is, as in most runs, nothing is parsed twice.
fn may_read(words: &[OsString]) -> bool {
    let is_named = |word: &OsString| {
        let word = word.as_encoded_bytes();
        // Short options may stand behind one dash together.
        let is_short = word.starts_with(b"-") && !word.starts_with(b"--");
        word.starts_with(b"--config") || is_short && word.contains(&b'c')
    };
    // What cannot be looked at is there.
    let is_there = |file: &places::File| file.is_named || file.path.try_exists().unwrap_or(true);
    words.iter().any(is_named) || places::files(None, false).iter().any(is_there)
}

/// What files set that are read by such arguments, the one that stands above the others first.
///
/// # Errors
///
/// As [`with_files`].
pub fn layers(root: &Command, args: &ConfigArgs) -> anyhow::Result<Vec<Layer>> {
    let files = places::files(args.config.as_deref(), args.no_config);
    let layers = files.into_iter().map(|file| -> anyhow::Result<Option<Layer>> {
        let Some(text) = places::read(&file)? else { return Ok(None) };
        checked(root, &file.path, &text).map(Some)
    });
    Ok(layers.collect::<anyhow::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// What a file sets.
///
/// # Errors
///
/// [`UsageError`] where it cannot be read, or has errors, with all of them.
pub fn check(root: &Command, file: &Path) -> anyhow::Result<Layer> {
    let named = places::File::named(file);
    checked(root, file, &places::read(&named)?.unwrap_or_default())
}

fn checked(root: &Command, file: &Path, text: &str) -> anyhow::Result<Layer> {
    let settings = document::check(root, file, text).map_err(|faults| {
        let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
        UsageError(lines.join("\n"))
    })?;
    Ok(Layer { file: file.to_owned(), settings })
}

/// What is in force of all layers, by command and option.
#[must_use]
pub fn in_force(layers: &[Layer]) -> Vec<&Setting> {
    let mut found: Vec<&Setting> = Vec::new();
    for set in layers.iter().flat_map(|layer| &layer.settings) {
        let is_same = |other: &&&Setting| other.command == set.command && other.id == set.id;
        if !found.iter().any(|other| is_same(&other)) {
            found.push(set);
        }
    }
    found.sort_by(|a, b| a.command.cmp(&b.command));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_are_given_otherwise_are_named() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let before = words("netsniff --config=a analyze --roll=1h --intel=a --intel=b --quiet");
        let changed = |now: &str| {
            let changed = Arguments { words: words(now), used: Vec::new() }.changed_since(&before);
            changed.into_iter().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            changed("netsniff --config=a analyze --roll=1h --intel=a --intel=b --quiet"),
            ""
        );
        assert_eq!(
            changed("netsniff --config=a analyze --intel=b --roll=1h --intel=a --quiet"),
            ""
        );
        assert_eq!(
            changed("netsniff --config=a analyze --roll=2h --intel=a --quiet --json"),
            "intel json roll"
        );
        assert_eq!(changed("netsniff --config=a analyze --roll=1h --intel=a --intel=b"), "quiet");
    }
}
