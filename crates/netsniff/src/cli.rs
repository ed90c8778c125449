//! The command line: which command, and what its exit code means.

use std::process::ExitCode;

use clap::Parser;

use crate::commands::analyze;

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
}

/// Reads the arguments, runs the command, and reports its failure.
#[must_use]
pub fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Analyze(args) => analyze::run(&args),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("netsniff: {error:#}");
            ExitCode::from(1)
        }
    }
}
