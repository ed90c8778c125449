//! The command line: which command, and what its exit code means.

use std::ffi::OsString;
use std::io::{Write as _, stderr, stdout};
use std::process::ExitCode;
use std::sync::OnceLock;

use anyhow::Context as _;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use netsniff_console::printable::printable_lines;
use netsniff_console::{DONE, FAILED, USAGE, UsageError, say};
use netsniff_desk::serve::{self, ServeArgs};
use netsniff_desk::top::{self, TopArgs};
use netsniff_lab::commands::Program;

use crate::commands::help::{completions, man, schema};
use crate::commands::live::{Reloading, Reread};
use crate::commands::{
    analyze, anonymize, collect, config as config_command, delivery, doctor, extcap, extract,
    generate, info, lab, protocols, receive, record, replay, report, run as service, selftest,
    sort,
};
use crate::config::{self, ConfigArgs};
use crate::meant_command::with_command;

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
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    files: ConfigArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Analyze(Box<analyze::AnalyzeArgs>),
    Anonymize(anonymize::AnonymizeArgs),
    Collect(Box<collect::CollectArgs>),
    Deliver(delivery::DeliverArgs),
    Doctor(Box<doctor::DoctorArgs>),
    Extcap(Box<extcap::ExtcapArgs>),
    Extract(Box<extract::ExtractArgs>),
    Generate(Box<generate::GenerateArgs>),
    Index(extract::index::IndexArgs),
    Info(info::InfoArgs),
    Lab(Box<lab::LabArgs>),
    Receive(Box<receive::ReceiveArgs>),
    Record(Box<record::RecordArgs>),
    Replay(Box<replay::ReplayArgs>),
    Report(report::ReportArgs),
    Run(service::RunArgs),
    Serve(Box<ServeArgs>),
    Sort(sort::SortArgs),
    Top(Box<TopArgs>),
    Protocols(protocols::ProtocolsArgs),
    Schema(schema::SchemaArgs),
    Selftest(selftest::SelftestArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    Config(config_command::ConfigCommandArgs),
}

/// Parses words, the first of which is the name of the program.
fn parse(mut root: clap::Command, words: Vec<OsString>) -> Result<Cli, clap::Error> {
    let words = with_command(&root, words);
    let mut matches = root.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut root))
}

/// What is wrong with these arguments, of a command that is to be run later, in the first words of what it would say.
fn refusal(arguments: &[String]) -> Option<String> {
    let words = std::iter::once("netsniff").chain(arguments.iter().map(String::as_str));
    let words = words.map(OsString::from).collect();
    let error = parse(Cli::command(), words).err()?.to_string();
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
    words,
};

/// The arguments of this run, with those of configuration files.
static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// The same for reports, which tell by them how to do it again.
fn words() -> Vec<String> {
    let words = WORDS.get().into_iter().flatten();
    words.map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Reads the arguments and configuration files, runs the command, and reports its failure.
#[must_use]
pub fn main() -> ExitCode {
    let root = Cli::command();
    let words = with_command(&root, std::env::args_os().collect());
    let arguments = match config::with_files(&root, words) {
        Ok(arguments) => arguments,
        Err(error) => return failed(&error),
    };
    let words = WORDS.get_or_init(|| arguments.words.clone());
    let (code, is_usage) = match parse(root, words.clone()) {
        Ok(cli) => run(cli),
        Err(error) => (refused(&error), error.use_stderr()),
    };
    if let Some(note) = arguments.note().filter(|_| is_usage) {
        say(&note);
    }
    code
}

/// Runs the command; also whether its arguments make no sense.
fn run(cli: Cli) -> (ExitCode, bool) {
    let result = match cli.command {
        Command::Analyze(args) => analyze::run(&args),
        Command::Anonymize(args) => anonymize::run(&args),
        Command::Collect(args) => collect::run(&args),
        Command::Deliver(args) => delivery::run(&args),
        Command::Doctor(args) => doctor::run(&args, PROGRAM),
        Command::Extcap(args) => extcap::run(&args),
        Command::Extract(args) => extract::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Index(args) => extract::index::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Lab(args) => lab::run(&args, PROGRAM),
        Command::Receive(args) => receive::run(&args),
        Command::Record(args) => record::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Run(args) => return run_service(&args, &cli.files),
        Command::Serve(args) => serve::run(&args),
        Command::Sort(args) => sort::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Protocols(args) => written(protocols::run(&args, &mut stdout().lock())),
        Command::Schema(args) => written(schema::run(&args, &mut stdout().lock())),
        Command::Selftest(args) => selftest::run(&args),
        Command::Completions(args) => {
            written(completions::run(&args, Cli::command(), &mut stdout().lock()))
        }
        Command::Man(args) => man::run(&args, &Cli::command()),
        Command::Config(args) => config_command::run(&args, &cli.files, &Cli::command()),
    };
    ended(result)
}

/// The exit code of a command; also whether its arguments make no sense.
fn ended(result: anyhow::Result<u8>) -> (ExitCode, bool) {
    match result {
        Ok(code) => (ExitCode::from(code), false),
        Err(error) => (failed(&error), error.is::<UsageError>()),
    }
}

/// Runs what files say; also whether they make no sense.
fn run_service(args: &service::RunArgs, files: &ConfigArgs) -> (ExitCode, bool) {
    let root = Cli::command();
    let arguments = match args.arguments(files, &root) {
        Ok(arguments) => arguments,
        Err(error) => return (failed(&error), error.is::<UsageError>()),
    };
    let (code, is_usage) = match parse(root, arguments.words.clone()) {
        Ok(_) if args.only_checks() => match service::print_command(&arguments) {
            Ok(()) => (ExitCode::from(DONE), false),
            Err(error) => (failed(&error), false),
        },
        Ok(Cli { command: Command::Analyze(analysis), .. }) => {
            let again = || read_again(args, files, &arguments.words);
            let reloading = Reloading { again: &again, files: files.paths() };
            ended(analyze::serve(&analysis, &reloading))
        }
        Ok(cli) => run(cli),
        Err(error) => (refused(&error), error.use_stderr()),
    };
    if let Some(note) = arguments.note().filter(|_| is_usage) {
        say(&note);
    }
    (code, is_usage)
}

/// What files say now of the analysis that was started by `words`.
fn read_again(
    args: &service::RunArgs,
    files: &ConfigArgs,
    words: &[OsString],
) -> anyhow::Result<Reread<analyze::AnalyzeArgs>> {
    let arguments = args.arguments(files, &Cli::command())?;
    let changed = arguments.changed_since(words);
    match parse(Cli::command(), arguments.words)? {
        Cli { command: Command::Analyze(args), .. } => Ok(Reread { args: *args, changed }),
        _ => {
            Err(UsageError("it says to run another command, which needs a restart".to_owned())
                .into())
        }
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    // Standard error may be closed; then there is nobody to tell.
    let _ = writeln!(stderr(), "netsniff: {}", printable_lines(&format!("{error:#}")));
    ExitCode::from(if error.is::<UsageError>() { USAGE } else { FAILED })
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

    /// Commands with what files can set of them, by the declarations alone: the names of each, and its long options.
    fn commands_with_options() -> Vec<(Vec<String>, Vec<String>)> {
        let mut found = Vec::new();
        let mut open = vec![(Vec::<String>::new(), Cli::command())];
        while let Some((path, command)) = open.pop() {
            for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
                open.push((
                    [path.clone(), vec![inner.get_name().to_owned()]].concat(),
                    inner.clone(),
                ));
            }
            let options = command
                .get_arguments()
                .filter(|arg| !arg.is_positional() && !arg.is_hide_set() && !arg.is_global_set());
            let name =
                |arg: &clap::Arg| arg.get_long().expect("an option without a long name").to_owned();
            let options: Vec<_> = options.map(name).collect();
            if !options.is_empty() && path != ["config"] {
                found.push((path, options));
            }
        }
        found
    }

    #[test]
    fn every_option_of_every_command_can_stand_in_a_file() {
        let file = config::complete(&Cli::command());
        let commands = commands_with_options();
        assert!(commands.len() >= 20, "{commands:?}");
        for (path, options) in commands {
            let head = format!("\n[{}]\n", path.join("."));
            let (_, table) = file.split_once(&head).unwrap_or_else(|| panic!("no table {head:?}"));
            let table = table.split("\n[").next().unwrap();
            for option in options {
                let is_set = |line: &str| {
                    line.trim_start_matches('#')
                        .split_once(" = ")
                        .is_some_and(|(key, _)| key == option)
                };
                assert!(table.lines().any(is_set), "no {option} under {head:?}");
            }
        }
    }

    #[test]
    fn a_complete_file_changes_nothing() {
        let root = Cli::command();
        let file =
            std::env::temp_dir().join(format!("netsniff-complete-{}.toml", std::process::id()));
        std::fs::write(&file, config::complete(&root)).unwrap();
        let flags: usize = commands_with_options().iter().map(|(_, options)| options.len()).sum();
        let set = config::check(&root, &file).unwrap().settings.len();
        assert!(set > 100 && set < flags, "{set} of {flags}");
        for line in [
            "analyze x.pcap",
            "analyze -i eth0 --json tcp port 80",
            "generate -i eth0 --topspeed",
            "generate hosts -w x.pcap",
            "lab certify --key k.pem -o c",
            "lab predict -o m",
            "lab sweep --rates 1k",
            "record -i eth0 -w x.pcapng",
            "replay x.pcap -i eth0 --poisson",
            "sort x.pcap y.pcap",
        ] {
            let words = ["netsniff", "--config", file.to_str().unwrap()].into_iter();
            let words: Vec<OsString> = words.chain(line.split(' ')).map(Into::into).collect();
            let arguments = config::with_files(&root, words.clone()).unwrap();
            assert_eq!(arguments.words, words);
            assert_eq!(arguments.note(), None);
            Cli::try_parse_from(words).unwrap();
        }
        std::fs::remove_file(file).unwrap();
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
                    Kind::Offline { variants, .. } => {
                        for variant in variants {
                            assert_eq!((PROGRAM.refusal)(&variant.trial_words()), None);
                        }
                        Vec::new()
                    }
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
