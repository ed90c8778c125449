//! `netsniff man`: pages for man(1).

use std::io::{self, ErrorKind, Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use netsniff_console::{DONE, UsageError};

/// Print the page of a command for man(1), or write those of all commands to a directory
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff man doctor tune | man -l -            read one\n  \
    netsniff man -o /usr/local/share/man/man1      man netsniff-analyze finds them from then on")]
pub struct ManArgs {
    /// The command; none for netsniff itself
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
    /// Write the pages of all commands to this directory
    #[arg(short, long, value_name = "DIR", conflicts_with = "words")]
    output: Option<PathBuf>,
}

/// Writes pages about `root`, and returns the exit code.
///
/// # Errors
///
/// Where there is no such command, or a page cannot be written.
pub fn run(args: &ManArgs, root: &clap::Command) -> anyhow::Result<u8> {
    match &args.output {
        Some(directory) => {
            std::fs::create_dir_all(directory)
                .with_context(|| format!("cannot create {}", directory.display()))?;
            all(&built(root), directory)
                .with_context(|| format!("cannot write to {}", directory.display()))?;
        }
        None => match stdout().lock().write_all(&page(named(root, &args.words)?)?) {
            // Whoever reads has enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            result => result.context("cannot write to standard output")?,
        },
    }
    Ok(DONE)
}

/// The command with all that clap adds, but for the command `help`.
fn built(root: &clap::Command) -> clap::Command {
    let mut root = root.clone().disable_help_subcommand(true);
    root.build();
    root
}

/// The command that words name, called by its whole name.
fn named(root: &clap::Command, words: &[String]) -> Result<clap::Command, UsageError> {
    let root = built(root);
    let (mut command, mut name) = (&root, root.get_name().to_owned());
    for word in words {
        let found = command.find_subcommand(word);
        command = found.ok_or_else(|| UsageError(format!("{name} has no command {word}")))?;
        name = format!("{name}-{}", command.get_name());
    }
    Ok(command.clone().display_name(name))
}

/// The page of a command whose name for display is that of the page.
fn page(command: clap::Command) -> io::Result<Vec<u8>> {
    let behind =
        command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    let (options, parts) = (command.get_arguments().next(), command.get_subcommands().next());
    let (has_options, has_parts) = (options.is_some(), parts.is_some());
    let man = clap_mangen::Man::new(command);
    let (mut page, version) = (Vec::new(), env!("CARGO_PKG_VERSION"));
    let man = man.manual("User Commands").source(format!("netsniff {version}"));
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if has_options {
        man.render_options_section(&mut page)?;
    }
    if has_parts {
        man.render_subcommands_section(&mut page)?;
    }
    page.extend(sections(&behind.unwrap_or_default()).into_bytes());
    Ok(page)
}

/// What stands behind the options in a help, as sections of a page: examples stay in their lines.
fn sections(text: &str) -> String {
    let (mut page, mut is_in_notes) = (String::new(), false);
    for paragraph in text.split("\n\n") {
        let first = paragraph.split(':').next().unwrap_or_default();
        let rest = paragraph.strip_prefix(first).and_then(|rest| rest.strip_prefix(':'));
        match (first, rest) {
            ("Example" | "Examples", Some(lines)) => {
                page.push_str(".SH EXAMPLES\n.nf\n");
                let lines = lines.lines().map(str::trim_end).filter(|line| !line.trim().is_empty());
                for line in lines {
                    page.push_str(&escaped(line.strip_prefix("  ").unwrap_or(line.trim_start())));
                }
                page.push_str(".fi\n");
                is_in_notes = false;
            }
            ("Exit code", Some(codes)) => {
                page.push_str(".SH \"EXIT STATUS\"\n");
                page.push_str(&escaped(codes.trim_start()));
                is_in_notes = false;
            }
            _ => {
                page.push_str(if is_in_notes { ".PP\n" } else { ".SH NOTES\n" });
                page.push_str(&escaped(paragraph));
                is_in_notes = true;
            }
        }
    }
    page
}

/// Lines that roff(7) shows as they are, up to a line break.
fn escaped(text: &str) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        // A point or an apostrophe at the begin would be a request.
        if line.starts_with(['.', '\'']) {
            lines.push_str("\\&");
        }
        for letter in line.chars() {
            match letter {
                '\\' => lines.push_str("\\e"),
                '-' => lines.push_str("\\-"),
                '\'' => lines.push_str("\\(aq"),
                letter => lines.push(letter),
            }
        }
        lines.push('\n');
    }
    lines
}

/// Writes the pages of a command and of all below it, as far as they are shown.
fn all(root: &clap::Command, directory: &Path) -> io::Result<()> {
    for command in root.get_subcommands().filter(|command| !command.is_hide_set()) {
        all(command, directory)?;
    }
    let name = root.get_display_name().unwrap_or_else(|| root.get_name());
    std::fs::write(directory.join(format!("{name}.1")), page(root.clone())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_options_has_sections() {
        let text = "Nothing is sent.\n\nMore.\n\nExamples:\n  netsniff -a\\b 'c'   does\n  .x\n\nExit code: 0 fine";
        let expected = ".SH NOTES\nNothing is sent.\n.PP\nMore.\n.SH EXAMPLES\n.nf\nnetsniff \\-a\\eb \\(aqc\\(aq   does\n\\&.x\n.fi\n\
                        .SH \"EXIT STATUS\"\n0 fine\n";
        assert_eq!(sections(text), expected);
        assert_eq!(
            sections("Example: netsniff info a"),
            ".SH EXAMPLES\n.nf\nnetsniff info a\n.fi\n"
        );
    }
}
