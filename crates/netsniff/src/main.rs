//! The `netsniff` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    netsniff::cli::main()
}
