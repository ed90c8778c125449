//! Which options of which commands a file may set, as the declarations of the command line have it.

use clap::{Arg, ArgAction, Command};

/// The command that tells of files, and is set by none.
const OF_FILES: &str = "config";

/// A group of arguments that say what a command works on. Those that are typed replace all that files say of it.
pub const INPUTS: &str = "inputs";

/// A table of the file: a command with options.
pub(super) struct Table<'c> {
    pub(super) path: Vec<String>,
    pub(super) command: &'c Command,
}

/// How an option takes values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is given or not.
    Flag,
    One,
    /// It may be repeated, or has several values.
    List,
}

/// How an option takes values; `None` for what no file can set.
pub(super) fn kind(arg: &Arg) -> Option<Kind> {
    match arg.get_action() {
        ArgAction::SetTrue => Some(Kind::Flag),
        ArgAction::Append => Some(Kind::List),
        ArgAction::Set => {
            let most = arg.get_num_args().map_or(1, |range| range.max_values());
            let is_list = most > 1 || arg.get_value_delimiter().is_some();
            Some(if is_list { Kind::List } else { Kind::One })
        }
        _ => None,
    }
}

/// Arguments that are no options of the command itself: what it works on, what others have as well, and what is not shown.
pub(super) fn is_option(arg: &Arg) -> bool {
    !arg.is_positional() && !arg.is_hide_set() && !arg.is_global_set()
}

/// The options of a command, with how they take values.
pub(super) fn options(command: &Command) -> impl Iterator<Item = (&Arg, &str, Kind)> {
    command.get_arguments().filter(|arg| is_option(arg)).filter_map(|arg| {
        let (long, kind) = arg.get_long().zip(kind(arg))?;
        Some((arg, long, kind))
    })
}

/// Commands below one that may have tables.
pub(super) fn below(command: &Command) -> impl Iterator<Item = &Command> {
    let is_shown = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    command.get_subcommands().filter(is_shown)
}

/// All tables, each behind the one that it lies in.
pub(super) fn tables(root: &Command) -> Vec<Table<'_>> {
    let mut found = Vec::new();
    let mut open: Vec<_> = below(root).map(|command| (Vec::new(), command)).collect();
    open.reverse();
    while let Some((above, command)) = open.pop() {
        let path = [above, vec![command.get_name().to_owned()]].concat();
        let mut inner: Vec<_> = below(command).map(|inner| (path.clone(), inner)).collect();
        inner.reverse();
        open.extend(inner);
        if takes_settings(&path, command) {
            found.push(Table { path, command });
        }
    }
    found
}

/// Whether a file can set anything of a command.
pub(super) fn takes_settings(path: &[String], command: &Command) -> bool {
    path.first().is_some_and(|name| name != OF_FILES)
        && !command.is_hide_set()
        && options(command).next().is_some()
}
