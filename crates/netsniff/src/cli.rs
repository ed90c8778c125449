//! The command line: which command, and what its exit code means.

use std::io::stdout;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;

use crate::commands::{analyze, info, schema};

/// A network traffic analyser whose every record tells you whether you can believe it.
#[derive(Debug, Parser)]
#[command(name = "netsniff", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Analyze(analyze::AnalyzeArgs),
    Info(info::InfoArgs),
    Schema(schema::SchemaArgs),
}

/// Reads the arguments, runs the command, and reports its failure.
#[must_use]
pub fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Analyze(args) => analyze::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Schema(args) => schema::run(&args, &mut stdout().lock())
            .map(|()| 0)
            .context("cannot write to standard output"),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("netsniff: {error:#}");
            ExitCode::from(1)
        }
    }
}
