//! Which command is meant where the first word names none: one behind its options, or the one that analyses.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The command that is meant where none is named.
const DEFAULT_COMMAND: &str = "analyze";
/// The command that is meant where Wireshark asks, which runs a program by options alone.
const EXTCAP_COMMAND: &str = "extcap";
/// What its options begin with.
const EXTCAP_OPTION: &[u8] = b"--extcap-";

/// Options that stand before any command.
const GENERAL_OPTIONS: &[&str] = &["-h", "--help", "-V", "--version"];

/// The words with the command that is meant, where none is named.
pub(crate) fn with_command(root: &clap::Command, mut words: Vec<OsString>) -> Vec<OsString> {
    let at = place_of_command(&words);
    if words.get(at).is_some_and(|first| lacks_command(root, first)) {
        let command = match command_behind_options(root, &words, at) {
            _ if is_asked_by_wireshark(&words[at..]) => EXTCAP_COMMAND.into(),
            Some(place) => words.remove(place),
            None => DEFAULT_COMMAND.into(),
        };
        words.insert(at, command);
    }
    words
}

/// Whether these are words of the extcap protocol, all of whose calls have such an option, and begin with one.
fn is_asked_by_wireshark(words: &[OsString]) -> bool {
    words.first().is_some_and(|first| first.as_encoded_bytes().starts_with(b"--"))
        && words.iter().any(|word| word.as_encoded_bytes().starts_with(EXTCAP_OPTION))
}

/// Where the name of a command stands behind its options, as in `netsniff --json info FILE`; `None` where the word before it
/// takes it as a value, and where there is a file of that name.
fn command_behind_options(root: &clap::Command, words: &[OsString], at: usize) -> Option<usize> {
    let default = root.find_subcommand(DEFAULT_COMMAND);
    (at + 1..words.len()).find(|&place| {
        let Some(command) = root.find_subcommand(&words[place]) else { return false };
        let declared = [Some(command), default, Some(root)];
        // What cannot be looked at is there.
        are_options(&words[at..place], declared.into_iter().flatten())
            && !Path::new(&words[place]).try_exists().unwrap_or(true)
    })
}

/// Whether words are options with their values. The first of the commands that declares an option tells whether it has one.
fn are_options<'a>(
    words: &[OsString],
    commands: impl Iterator<Item = &'a clap::Command> + Clone,
) -> bool {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let bytes = word.as_encoded_bytes();
        if !bytes.starts_with(b"-") || bytes == b"-" || bytes == b"--" {
            return false;
        }
        if awaits_value(&word.to_string_lossy(), commands.clone()) && words.next().is_none() {
            return false;
        }
    }
    true
}

/// Whether the value of an option is the next word.
fn awaits_value<'a>(
    option: &str,
    commands: impl Iterator<Item = &'a clap::Command> + Clone,
) -> bool {
    let takes = |is_meant: &dyn Fn(&clap::Arg) -> bool| {
        let mut arguments = commands.clone().flat_map(clap::Command::get_arguments);
        arguments
            .find(|argument| is_meant(argument))
            .is_some_and(|argument| argument.get_action().takes_values())
    };
    if let Some(long) = option.strip_prefix("--") {
        return takes(&|argument| {
            argument.get_long() == Some(long)
                || argument.get_all_aliases().is_some_and(|names| names.contains(&long))
        });
    }
    // The first letter with a value has the rest of the word, if there is one.
    let mut letters = option.chars().skip(1);
    let with_value = letters.find(|letter| {
        takes(&|argument| {
            argument.get_short() == Some(*letter)
                || argument.get_all_short_aliases().is_some_and(|names| names.contains(letter))
        })
    });
    with_value.is_some() && letters.next().is_none()
}

/// Where the name of a command stands: behind the name of the program, and options that say which configuration files
/// are read.
fn place_of_command(words: &[OsString]) -> usize {
    let mut at = 1;
    loop {
        at += match words.get(at).map(|word| word.as_encoded_bytes()) {
            Some(b"--no-config") => 1,
            Some(b"--config" | b"-c") => 2,
            Some(word) if word.starts_with(b"--config=") || word.starts_with(b"-c") => 1,
            _ => return at,
        };
    }
}

/// Whether the first word begins the arguments of the command that is meant where none is named: it is an option, or a
/// file. A word that could be the name of a command is a file only where there is such a file, so that a
/// mistyped command is still told as one.
fn lacks_command(commands: &clap::Command, first: &OsStr) -> bool {
    if GENERAL_OPTIONS.iter().any(|option| first == *option) {
        return false;
    }
    let bytes = first.as_encoded_bytes();
    if bytes.starts_with(b"-") || !bytes.iter().all(|&byte| is_letter_of_command(byte)) {
        return true;
    }
    let is_command = first == "help" || commands.find_subcommand(first).is_some();
    // What cannot be looked at is there.
    !is_command && Path::new(first).try_exists().unwrap_or(true)
}

/// Whether names of commands may have this letter.
const fn is_letter_of_command(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn what_lacks_a_command_is_told_by_its_first_word() {
        let mut command = Cli::command();
        command.build();
        for argument in command.get_arguments() {
            let short = argument.get_short().map(|letter| format!("-{letter}"));
            let long = argument.get_long().map(|name| format!("--{name}"));
            for option in short.into_iter().chain(long) {
                // A command may follow.
                let words = ["netsniff", &option, "x"].map(OsString::from);
                if place_of_command(&words) > 1 {
                    continue;
                }
                assert!(GENERAL_OPTIONS.contains(&option.as_str()), "{option}");
                assert!(!lacks_command(&command, OsStr::new(&option)), "{option}");
            }
        }
        for known in command.get_subcommands() {
            let name = known.get_name();
            assert!(name.bytes().all(is_letter_of_command), "{name}");
            assert!(!lacks_command(&command, OsStr::new(name)), "{name}");
        }
        assert!(command.find_subcommand(DEFAULT_COMMAND).is_some());
        let at = |words: &[&str]| {
            let words = words.iter().map(OsString::from).collect();
            with_command(&Cli::command(), words).iter().position(|word| word == DEFAULT_COMMAND)
        };
        assert_eq!(at(&["netsniff", "--config", "a.toml", "-r", "x.pcap"]), Some(3));
        assert_eq!(at(&["netsniff", "-c", "a.toml", "-r", "x.pcap"]), Some(3));
        assert_eq!(at(&["netsniff", "-ca.toml", "run"]), None);
        assert_eq!(at(&["netsniff", "--no-config", "--config=a.toml", "x.pcap"]), Some(3));
        assert_eq!(at(&["netsniff", "--no-config", "info", "x.pcap"]), None);
        // A test runs in the folder of its crate, where `src` is.
        for word in ["-i", "-", "--", "-v", "--json", "missing.pcap", "./info", "a b", "src"] {
            assert!(lacks_command(&command, OsStr::new(word)), "{word}");
        }
        for word in ["analyse", "capture-7", "", "help"] {
            assert!(!lacks_command(&command, OsStr::new(word)), "{word:?}");
        }
    }

    #[test]
    fn a_command_may_stand_behind_its_options() {
        let meant = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            let words = with_command(&Cli::command(), words).into_iter();
            words.map(|word| word.into_string().unwrap()).collect::<Vec<_>>().join(" ")
        };
        for (typed, expected) in [
            ("netsniff -q info x.pcap", "netsniff info -q x.pcap"),
            ("netsniff --json info x.pcap", "netsniff info --json x.pcap"),
            (
                "netsniff --no-config -q -i eth0 record -w x",
                "netsniff --no-config record -q -i eth0 -w x",
            ),
            ("netsniff --snaplen 96 -qi eth0 record", "netsniff record --snaplen 96 -qi eth0"),
            ("netsniff --snaplen=96 -ieth0 record", "netsniff record --snaplen=96 -ieth0"),
            ("netsniff -q --config a.toml info x", "netsniff info -q --config a.toml x"),
            // Wireshark runs a link to the program.
            (
                "netsniff --extcap-interfaces --extcap-version=4.2",
                "netsniff extcap --extcap-interfaces --extcap-version=4.2",
            ),
            (
                "netsniff --capture --extcap-interface=netsniff-live-lo --fifo /f",
                "netsniff extcap --capture --extcap-interface=netsniff-live-lo --fifo /f",
            ),
            ("netsniff -f --extcap-x", "netsniff analyze -f --extcap-x"),
            // These are values, files and filters.
            ("netsniff -i lab -d logs", "netsniff analyze -i lab -d logs"),
            ("netsniff -qi record", "netsniff analyze -qi record"),
            ("netsniff -r info", "netsniff analyze -r info"),
            ("netsniff -o record x.pcap", "netsniff analyze -o record x.pcap"),
            ("netsniff -d logs x.pcap info", "netsniff analyze -d logs x.pcap info"),
            ("netsniff -i eth0 tcp sort", "netsniff analyze -i eth0 tcp sort"),
            ("netsniff - info", "netsniff analyze - info"),
            ("netsniff -q -- info", "netsniff analyze -q -- info"),
            ("netsniff -q x.pcap", "netsniff analyze -q x.pcap"),
        ] {
            assert_eq!(meant(typed), expected, "{typed}");
        }
    }
}
