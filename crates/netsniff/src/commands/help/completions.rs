//! `netsniff completions`: what a shell needs to complete our arguments.

use std::io::{self, ErrorKind, Write};

use clap_complete::Shell;

/// Print the completion script of a shell
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example: netsniff completions bash > \
    ~/.local/share/bash-completion/completions/netsniff")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script for `command` to `out`.
///
/// # Errors
///
/// When `out` cannot be written to.
pub fn run(
    args: &CompletionsArgs,
    mut command: clap::Command,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "netsniff", &mut script);
    match out.write_all(&script).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
