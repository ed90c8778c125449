//! `netsniff run`: what the configuration file says, as a service.
//!
//! It starts `netsniff analyze` or `netsniff record` with the options of the file, in this process. What a service needs
//! besides, both of them have: see `live/monitor`.

use std::ffi::OsString;

use anyhow::Context as _;
use clap::Command;
use netsniff_console::{UsageError, print};

use crate::config::{self, Arguments, ConfigArgs, Setting};

/// Run as a service what the configuration file says: an analysis of live traffic, a recording, or both
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff run                                    by /etc/netsniff/netsniff.toml\n  \
    netsniff run -c netsniff.toml                   by this file and no other\n  \
    netsniff run -c netsniff.toml --check           what is wrong in it, or what it would run\n\n\
    A file for it, of which netsniff config --print-default prints all options:\n  \
    [analyze]\n  \
    interface = [\"eth0\"]\n  \
    output = \"/var/log/netsniff\"\n  \
    roll = \"1h\"\n  \
    keep-bytes = \"20G\"\n\n\
    SIGTERM ends it in good order; SIGHUP rolls the logs, and reads the file again. A service manager that sets NOTIFY_SOCKET is\n\
    told when it captures, what it captures and loses, and, with WATCHDOG_USEC, that no ring hangs.\n\n\
    Exit code: 0 ended as asked; 1 failed; 2 wrong usage or configuration; 4 below --require-quality")]
pub struct RunArgs {
    /// What to run, where both tables name an interface: the analysis of [analyze], which records as well if it sets
    /// `record`, or the recording of [record]
    #[arg(long, value_enum, value_name = "WHAT")]
    command: Option<Service>,
    /// Check the configuration, print what would be run, and start nothing
    #[arg(long)]
    check: bool,
}

/// A command that can be a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Service {
    /// The analysis of live traffic
    Analyze,
    /// The recording of live traffic
    Record,
}

impl Service {
    const ALL: [Self; 2] = [Self::Analyze, Self::Record];

    const fn name(self) -> &'static str {
        match self {
            Self::Analyze => "analyze",
            Self::Record => "record",
        }
    }

    /// The option without which there is nothing that it writes.
    const fn output(self) -> &'static str {
        match self {
            Self::Analyze => "output",
            Self::Record => "write",
        }
    }
}

impl RunArgs {
    /// Whether nothing is to be started.
    #[must_use]
    pub const fn only_checks(&self) -> bool {
        self.check
    }

    /// The arguments of the command that is to be run.
    ///
    /// # Errors
    ///
    /// [`UsageError`] with all that is wrong in the files, and where they say too little or too much.
    pub fn arguments(&self, files: &ConfigArgs, root: &Command) -> anyhow::Result<Arguments> {
        let layers = config::layers(root, files)?;
        if layers.is_empty() {
            let said = "there is no configuration file, which says what to run: -c names one, and netsniff config \
                        --print-default prints one";
            return Err(UsageError(said.to_owned()).into());
        }
        let set = config::in_force(&layers);
        let service = self.service(&set)?;
        let has = |option: &str| is_set(&set, service, option);
        for (option, example) in
            [("interface", "[\"eth0\"]"), (service.output(), "\"/var/log/netsniff\"")]
        {
            if !has(option) {
                return Err(UsageError(format!(
                    "the configuration sets no {option} in [{}], as in: {option} = {example}",
                    service.name()
                ))
                .into());
            }
        }
        let words = [OsString::from("netsniff")].into_iter().chain(files.words());
        let words = words.chain([service.name().into()]).collect();
        let arguments = config::with_files(root, words)?;
        let of_service = set.iter().filter(|set| set.command == [service.name()]);
        let idle = of_service.filter(|set| !arguments.uses(set));
        let idle: Vec<_> = idle.map(|set| without_effect(set, service)).collect();
        if idle.is_empty() { Ok(arguments) } else { Err(UsageError(idle.join("\n")).into()) }
    }

    /// Which command is to be run.
    fn service(&self, set: &[&Setting]) -> Result<Service, UsageError> {
        if let Some(service) = self.command {
            return Ok(service);
        }
        let of: Vec<_> =
            Service::ALL.into_iter().filter(|of| is_set(set, *of, "interface")).collect();
        match of[..] {
            [service] => Ok(service),
            [] => Err(UsageError(
                "the configuration names no interface to capture on, in [analyze] or [record], as in: \
                 interface = [\"eth0\"]"
                    .to_owned(),
            )),
            _ => Err(UsageError(
                "both [analyze] and [record] name an interface: --command, or command in [run], tells which is to be \
                 run. An analysis records what it analyses, too, if [analyze] sets record"
                    .to_owned(),
            )),
        }
    }
}

fn is_set(set: &[&Setting], service: Service, option: &str) -> bool {
    set.iter().any(|set| set.command == [service.name()] && set.option == option)
}

/// What is said of a setting that changes nothing of a service.
fn without_effect(set: &Setting, service: Service) -> String {
    format!(
        "{}: {} has no effect here, since it needs another option that is not set, or another file stands above it: see \
         netsniff {} --help",
        set.place,
        set.option,
        service.name()
    )
}

/// Prints what would be run.
///
/// # Errors
///
/// Where nothing can be printed.
pub fn print_command(arguments: &Arguments) -> anyhow::Result<()> {
    let words = arguments.words.iter().map(|word| word.to_string_lossy());
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@,=".contains(c);
    let quoted = words.map(|word| match word.chars().all(is_plain) {
        true => word.into_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    });
    let line = quoted.collect::<Vec<_>>().join(" ");
    print(std::io::stdout(), &format!("the configuration is right; it runs:\n{line}\n"))
        .context("cannot write to standard output")
}
