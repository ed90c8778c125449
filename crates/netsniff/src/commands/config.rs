//! `netsniff config`: the configuration file, printed, checked and shown.

use std::fmt::Write as _;
use std::io::stdout;
use std::path::PathBuf;

use anyhow::Context as _;
use netsniff_console::{DONE, print};

use crate::config::{self, ConfigArgs, Setting, VARIABLE};

/// Print, check and show the configuration file netsniff.toml
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff config --print-default > netsniff.toml     all options, with help and defaults\n  \
    netsniff config --check netsniff.toml               what is wrong in it, or what it sets\n  \
    netsniff config --show                              what is in force, and where it stands\n\n\
    What is typed stands above all files. --config FILE, or else the environment variable\n\
    NETSNIFF_CONFIG, names the only file that is read; where NETSNIFF_CONFIG is empty, and with\n\
    --no-config, none is. Otherwise $XDG_CONFIG_HOME/netsniff/netsniff.toml (without the variable,\n\
    that in ~/.config) stands above /etc/netsniff/netsniff.toml, option by option.\n\n\
    Exit code: 0 fine; 2 a file has errors, or cannot be read or trusted")]
#[group(required = true, multiple = false)]
pub struct ConfigCommandArgs {
    /// Print a complete file: every option with its help and its default
    #[arg(long)]
    print_default: bool,
    /// Check this file, or without a name those that would be read, and print what they set
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "the option may stand without its value")]
    check: Option<Option<PathBuf>>,
    /// Print what is in force of the files that are read, and where it stands
    #[arg(long)]
    show: bool,
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`](netsniff_console::UsageError) with all that is wrong in files, and where nothing can be printed.
pub fn run(
    args: &ConfigCommandArgs,
    files: &ConfigArgs,
    root: &clap::Command,
) -> anyhow::Result<u8> {
    let text = match &args.check {
        _ if args.print_default => config::complete(root),
        Some(Some(file)) => checked(&[config::check(root, file)?]),
        Some(None) => checked(&config::layers(root, files)?),
        None => shown(&config::layers(root, files)?),
    };
    print(stdout(), &text).context("cannot write to standard output")?;
    Ok(DONE)
}

/// What each file sets.
fn checked(layers: &[config::Layer]) -> String {
    if layers.is_empty() {
        return none();
    }
    let mut out = String::new();
    for layer in layers {
        let count = layer.settings.len();
        let options = if count == 1 { "option" } else { "options" };
        let _ = writeln!(out, "{}: no errors, {count} {options} set", layer.file.display());
        for set in &layer.settings {
            let _ = writeln!(out, "  {}: {}", name(set), config::line(set));
        }
    }
    out
}

/// What is in force, as a file.
fn shown(layers: &[config::Layer]) -> String {
    let set = config::in_force(layers);
    if set.is_empty() {
        return none();
    }
    let mut out = String::new();
    let mut last: &[String] = &[];
    for set in set {
        if set.command != last {
            let gap = if last.is_empty() { "" } else { "\n" };
            let _ = writeln!(out, "{gap}[{}]", set.command.join("."));
            last = &set.command;
        }
        let _ = writeln!(out, "{:<40} # {}", config::line(set), set.place);
    }
    out
}

fn name(set: &Setting) -> String {
    format!("netsniff {}", set.command.join(" "))
}

fn none() -> String {
    format!("# no configuration file sets anything ({VARIABLE} and --config name one)\n")
}
