//! The command line: which command, and what its exit code means.

use std::ffi::{OsStr, OsString};
use std::io::{Write as _, stderr, stdout};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use netsniff_console::printable::printable_lines;
use netsniff_console::{DONE, FAILED, USAGE, UsageError};
use netsniff_lab::commands::Program;

use crate::commands::{
    analyze, anonymize, completions, doctor, generate, info, lab, protocols, receive, record,
    replay, schema, selftest, sort,
};

/// A network traffic analyser whose every record tells you whether you can believe it.
#[derive(Debug, Parser)]
#[command(name = "netsniff", version, about)]
#[command(override_usage = "netsniff <COMMAND>\n       \
    netsniff [-agv] [-i IFACE] [-r FILE] [-p PIDFILE] [-d DIR] [-m METHOD] [-k KEYFILE] [-s SECONDS] [FILTER]\n       \
    netsniff [OPTIONS] FILES...")]
#[command(
    after_help = "Without a command, netsniff analyses: options, and files that exist, are those of netsniff analyze.\n\n\
    Examples:\n  \
    netsniff capture.pcapng                      a summary\n  \
    netsniff capture.pcapng -o logs/             the summary, and logs in Zeek's format\n  \
    netsniff -i eth0 -d logs/ tcp port 80        logs of live traffic\n  \
    netsniff info capture.pcapng                 the facts of the file\n  \
    netsniff analyze --help                      all options of an analysis"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Analyze(Box<analyze::AnalyzeArgs>),
    Anonymize(anonymize::AnonymizeArgs),
    Doctor(Box<doctor::DoctorArgs>),
    Generate(Box<generate::GenerateArgs>),
    Info(info::InfoArgs),
    Lab(Box<lab::LabArgs>),
    Receive(Box<receive::ReceiveArgs>),
    Record(Box<record::RecordArgs>),
    Replay(Box<replay::ReplayArgs>),
    Sort(sort::SortArgs),
    Protocols(protocols::ProtocolsArgs),
    Schema(schema::SchemaArgs),
    Selftest(selftest::SelftestArgs),
    Completions(completions::CompletionsArgs),
}

/// The command that is meant where none is named.
const DEFAULT_COMMAND: &str = "analyze";

/// Options that stand before any command.
const GENERAL_OPTIONS: &[&str] = &["-h", "--help", "-V", "--version"];

/// Parses words, the first of which is the name of the program.
fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = Cli::command();
    let mut words: Vec<_> = words.into_iter().collect();
    if words.get(1).is_some_and(|first| lacks_command(&command, first)) {
        words.insert(1, DEFAULT_COMMAND.into());
    }
    let mut matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
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

/// What is wrong with these arguments, of a command that is to be run later, in the first words of what it would say.
fn refusal(arguments: &[String]) -> Option<String> {
    let words = std::iter::once("netsniff").chain(arguments.iter().map(String::as_str));
    let error = parse(words.map(OsString::from)).err()?.to_string();
    let said = error.lines().next().unwrap_or_default();
    Some(said.trim_start_matches("error: ").to_owned())
}

/// What the lab knows of this program.
const PROGRAM: Program = Program {
    revision: if env!("NETSNIFF_REVISION").is_empty() {
        None
    } else {
        Some(env!("NETSNIFF_REVISION"))
    },
    refusal,
};

/// Reads the arguments, runs the command, and reports its failure.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    let result = match cli.command {
        Command::Analyze(args) => analyze::run(&args),
        Command::Anonymize(args) => anonymize::run(&args),
        Command::Doctor(args) => doctor::run(&args, PROGRAM),
        Command::Generate(args) => generate::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Lab(args) => lab::run(&args, PROGRAM),
        Command::Receive(args) => receive::run(&args),
        Command::Record(args) => record::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Sort(args) => sort::run(&args),
        Command::Protocols(args) => written(protocols::run(&args, &mut stdout().lock())),
        Command::Schema(args) => written(schema::run(&args, &mut stdout().lock())),
        Command::Selftest(args) => selftest::run(&args),
        Command::Completions(args) => {
            written(completions::run(&args, Cli::command(), &mut stdout().lock()))
        }
    };
    let code = result.unwrap_or_else(|error| {
        // Standard error may be closed; then there is nobody to tell.
        let _ = writeln!(stderr(), "netsniff: {}", printable_lines(&format!("{error:#}")));
        if error.is::<UsageError>() { USAGE } else { FAILED }
    });
    ExitCode::from(code)
}

/// Says what is wrong with the arguments, or what they ask to be told; what stands in them must not steer the terminal.
fn refused(error: &clap::Error) -> ExitCode {
    let text = error.to_string();
    let shown = printable_lines(&text);
    let code = u8::try_from(error.exit_code()).unwrap_or(USAGE);
    let result = if shown == text { error.print() } else { stderr().write_all(shown.as_bytes()) };
    // Where nobody listens, there is nobody to tell.
    drop(result);
    ExitCode::from(code)
}

fn written(result: std::io::Result<()>) -> anyhow::Result<u8> {
    result.map(|()| DONE).context("cannot write to standard output")
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use netsniff_lab::load::Load;
    use netsniff_lab::paper::{Kind, Scale, papers};
    use netsniff_lab::tools::Tool;

    use super::*;

    #[test]
    fn arguments_are_declared_without_contradiction() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_lacks_a_command_is_told_by_its_first_word() {
        let mut command = Cli::command();
        command.build();
        for argument in command.get_arguments() {
            let short = argument.get_short().map(|letter| format!("-{letter}"));
            let long = argument.get_long().map(|name| format!("--{name}"));
            for option in short.into_iter().chain(long) {
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
        // A test runs in the folder of its crate, where `src` is.
        for word in ["-i", "-", "--", "-v", "--json", "missing.pcap", "./info", "a b", "src"] {
            assert!(lacks_command(&command, OsStr::new(word)), "{word}");
        }
        for word in ["analyse", "capture-7", "", "help"] {
            assert!(!lacks_command(&command, OsStr::new(word)), "{word:?}");
        }
    }

    #[test]
    fn every_command_shows_an_example() {
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example"), "netsniff {} --help", command.get_name());
        }
    }

    /// Our own tools and the generator have every option that an experiment of a paper gives them.
    #[test]
    fn experiments_are_taken_by_the_programs_that_run_them() {
        let frames = Scale::SIZES.map(|size| (size, 1e6)).to_vec();
        let check = |load: &Load, tool: &Tool| {
            netsniff_lab::commands::check(load, Some(tool), PROGRAM).unwrap();
        };
        for is_short in [true, false] {
            let (trace, trace_size) = (6e5, 315);
            let frames = frames.clone();
            let scale = Scale { is_short, frames, trace, trace_size, offline: None, repeat: None };
            for experiment in papers(&scale).iter().flat_map(|paper| &paper.experiments) {
                let tools = experiment.tools.iter();
                let points = match &experiment.kind {
                    Kind::Sweep(sweep) => sweep.plan(experiment, Path::new("trace")).points(),
                    Kind::Search { .. } => Vec::new(),
                };
                for tool in tools.clone() {
                    let load = Load { size: 64, time: Duration::from_secs(1), ..Load::default() };
                    check(&load, tool);
                }
                for point in points.iter().filter(|point| point.repetition == 0) {
                    let tool = tools.clone().find(|tool| tool.name == point.tool).unwrap();
                    check(&point.load, &tool.with(&point.settings).unwrap());
                }
            }
        }
    }
}
