//! What was typed stands above what files set.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use super::schema::{self, Kind};
use super::trial::{Trial, join};
use super::{Layer, Setting};

/// Which command is to be run.
pub(super) struct Invocation<'c> {
    /// Its names, from the outermost.
    pub(super) path: Vec<String>,
    pub(super) command: &'c Command,
    /// What is understood of the words, be others wrong.
    pub(super) matches: ArgMatches,
    /// Where the words behind its names begin.
    after: usize,
}

impl<'c> Invocation<'c> {
    /// `None` where there is none, or it is only asked for help.
    pub(super) fn of(root: &'c Command, words: &[OsString]) -> Option<Self> {
        let matches = leniently(root, words)?;
        let (mut path, mut command, mut after) = (Vec::new(), root, 1);
        let mut level = &matches;
        while let Some((name, below)) = level.subcommand() {
            command = command.find_subcommand(name)?;
            while words.get(after)? != command.get_name() {
                after += if words[after] == "--config" || words[after] == "-c" { 2 } else { 1 };
            }
            after += 1;
            path.push(name.to_owned());
            level = below;
        }
        (!path.is_empty()).then_some(Self { path, command, matches, after })
    }
}

fn leniently(root: &Command, words: &[OsString]) -> Option<ArgMatches> {
    root.clone().ignore_errors(true).try_get_matches_from(words).ok()
}

/// The words of the command line.
pub(super) struct Typed<'i> {
    invocation: &'i Invocation<'i>,
    /// Without flags that are switched off.
    pub(super) words: Vec<OsString>,
    /// Flags that are switched off.
    off: BTreeSet<String>,
}

impl<'i> Typed<'i> {
    /// Takes `--FLAG=false` and `--FLAG=true` for what they say: what a file sets can be switched off.
    pub(super) fn new(invocation: &'i Invocation<'i>, words: Vec<OsString>) -> Self {
        let mut off = BTreeSet::new();
        let mut is_over = false;
        let mut at = 0;
        let mut kept = |word: OsString| {
            at += 1;
            is_over |= word == "--";
            if at <= invocation.after || is_over {
                return Some(word);
            }
            match switch(invocation.command, &word) {
                None => Some(word),
                Some((id, _, false)) => {
                    off.insert(id);
                    None
                }
                Some((_, flag, true)) => Some(flag),
            }
        };
        let words = words.into_iter().filter_map(&mut kept).collect();
        Self { invocation, words, off }
    }

    /// Whether the words are right by themselves, but for what files may add.
    pub(super) fn are_right(&self, root: &Command) -> bool {
        match root.clone().try_get_matches_from(&self.words) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::MissingRequiredArgument,
        }
    }

    /// What files add to them, the uppermost file first.
    pub(super) fn joined_by<'l>(&self, root: &Command, layers: &'l [Layer]) -> Vec<&'l Setting> {
        let inputs: BTreeSet<String> = self.inputs();
        let mut told = self.told(root);
        told.extend(self.off.iter().cloned());
        let mut open = Vec::new();
        for layer in layers {
            let has_inputs = !inputs.is_disjoint(&told);
            let of_command =
                layer.settings.iter().filter(|set| set.command == self.invocation.path);
            let is_free = |set: &&Setting| {
                !(told.contains(&set.id) || has_inputs && inputs.contains(&set.id))
            };
            let free: Vec<_> = of_command.filter(is_free).collect();
            told.extend(free.iter().map(|set| set.id.clone()));
            open.extend(free.into_iter().filter(|set| !set.is_default));
        }
        if open.is_empty() {
            return open;
        }
        Trial::new(root, &self.words, self.invocation.after).fitting(open)
    }

    /// The words with what files add.
    pub(super) fn with(&self, added: &[&Setting]) -> Vec<OsString> {
        join(&self.words, self.invocation.after, added)
    }

    /// Arguments that were typed, by their names in the declarations.
    fn told(&self, root: &Command) -> BTreeSet<String> {
        let Some(matches) = leniently(root, &self.words) else { return BTreeSet::new() };
        let mut level = &matches;
        while let Some((_, below)) = level.subcommand() {
            level = below;
        }
        let is_typed =
            |id: &&clap::Id| level.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        level.ids().filter(is_typed).map(ToString::to_string).collect()
    }

    /// The arguments that say what the command works on.
    fn inputs(&self) -> BTreeSet<String> {
        let mut groups = self.invocation.command.get_groups();
        let inputs = groups.find(|group| group.get_id() == schema::INPUTS);
        inputs.into_iter().flat_map(clap::ArgGroup::get_args).map(ToString::to_string).collect()
    }
}

/// A flag that a word switches on or off: its name in the declarations, the flag itself, and which.
fn switch(command: &Command, word: &OsString) -> Option<(String, OsString, bool)> {
    let (name, state) = word.to_str()?.strip_prefix("--")?.split_once('=')?;
    let is_on = state.parse().ok()?;
    let mut options = schema::options(command);
    let (arg, ..) = options.find(|(_, long, kind)| *long == name && *kind == Kind::Flag)?;
    Some((arg.get_id().to_string(), format!("--{name}").into(), is_on))
}
