//! Arguments of a command out of words of another program, which runs what the command runs.

use std::ffi::OsString;

use netsniff_console::UsageError;

/// The arguments that `words` are for a command, without its name and without what configuration files set.
///
/// # Errors
///
/// What is wrong with them, in the words that the command would say.
pub fn arguments<A: clap::Args>(
    command: &'static str,
    words: impl IntoIterator<Item = OsString>,
) -> Result<A, UsageError> {
    let mut known = A::augment_args(clap::Command::new(command)).no_binary_name(true);
    let parsed = known.try_get_matches_from_mut(words).and_then(|it| A::from_arg_matches(&it));
    parsed.map_err(|error| UsageError(sentence(&error.format(&mut known))))
}

/// What an error says before it tells of other words.
fn sentence(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines: Vec<_> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::analyze::AnalyzeArgs;

    fn said(words: &[&str]) -> Option<String> {
        arguments::<AnalyzeArgs>("analyze", words.iter().map(OsString::from)).err().map(|it| it.0)
    }

    #[test]
    fn words_are_those_of_the_command_and_errors_are_sentences() {
        assert_eq!(said(&["--read=a.pcap", "--workers=2", "--output=-"]), None);
        let unknown = said(&["--read=a.pcap", "--wokers=2"]).unwrap();
        assert!(unknown.starts_with("unexpected argument '--wokers'"), "{unknown}");
        let log = said(&["--read=a.pcap", "--output=-", "--log=con"]).unwrap();
        assert!(log.contains("'con'") && log.contains("there are conn, tcp"), "{log}");
        assert!(!log.contains("--help") && !log.contains('\n'), "{log}");
        let twice = said(&["--jobs=2", "--workers=2", "a.pcap"]).unwrap();
        assert!(twice.contains("cannot be used with"), "{twice}");
    }
}
