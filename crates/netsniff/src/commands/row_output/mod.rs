//! Arguments of the logs: where they go, in which format, and which of them.
//!
//! A command that has them makes a group `rows` of what takes rows: `output`, and `deliver` where it delivers.

mod format;

use std::path::{Path, PathBuf};

use netsniff_analysis::rows::LOGS;
use netsniff_console::UsageError;
use netsniff_output::{Format, LogSet, RowStyle};

use self::format::FormatArgs;

/// Where logs go, and how they are written.
#[derive(Debug, Default, clap::Args)]
pub struct OutputArgs {
    /// Write the logs to this directory, one file each; `-` streams the rows of all logs to standard output
    #[arg(short, long, visible_short_alias = 'd', value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArgs,
    /// Write these logs alone, as conn,dns; may be repeated. With one of them, `-o -` is that log in any format
    #[arg(long = "log", value_name = "NAME,…", requires = "rows", value_delimiter = ',', value_parser = log)]
    logs: Vec<LogSet>,
}

/// Where the logs go.
pub(super) enum Target<'a> {
    Nowhere,
    /// All of them to standard output.
    Stream(RowStyle),
    /// One of them to standard output.
    Log(RowStyle, LogSet),
    /// One file each in a directory.
    Directory(&'a Path, RowStyle),
}

impl Target<'_> {
    /// How rows are rendered; `None` where there are none.
    pub(super) const fn style(&self) -> Option<RowStyle> {
        match self {
            Self::Nowhere => None,
            Self::Stream(style) | Self::Log(style, _) | Self::Directory(_, style) => Some(*style),
        }
    }

    /// Whether rows go to standard output.
    pub(super) const fn is_stdout(&self) -> bool {
        matches!(self, Self::Stream(_) | Self::Log(..))
    }
}

impl OutputArgs {
    /// Where the logs go, unless the summary as JSON would be in their way.
    pub(super) fn target(&self, json: bool, delivers: bool) -> Result<Target<'_>, UsageError> {
        let Some(output) = &self.output else { return Ok(Target::Nowhere) };
        if output != Path::new("-") {
            return Ok(Target::Directory(output, self.format.of_files(delivers)?));
        }
        if json {
            let unfit = "-o - and --json would both write to standard output; write the logs to a directory";
            return Err(UsageError(unfit.to_owned()));
        }
        let style = self.format.of_stream(delivers)?;
        if style.format.streams() {
            return Ok(Target::Stream(style));
        }
        if self.logs().places().count() == 1 {
            return Ok(Target::Log(style, self.logs()));
        }
        let names =
            Format::ALL.iter().filter(|format| format.streams()).map(|format| format.name());
        let names = names.collect::<Vec<_>>().join(", ");
        Err(UsageError(format!(
            "-o - writes all logs into one stream, which only these can: --format {names}; name one log, as --log conn, or \
             a directory, for {}",
            style.format.name()
        )))
    }

    /// How rows are rendered, which are written to a target or delivered alone.
    pub(super) fn style(
        &self,
        target: &Target<'_>,
        delivers: bool,
    ) -> Result<Option<RowStyle>, UsageError> {
        match target.style() {
            None if delivers => self.format.of_files(true).map(Some),
            style => Ok(style),
        }
    }

    /// The logs that are wanted.
    pub(super) fn logs(&self) -> LogSet {
        self.logs.iter().copied().reduce(LogSet::and).unwrap_or_default()
    }
}

/// A log by its name.
fn log(name: &str) -> Result<LogSet, String> {
    LogSet::named(name).ok_or_else(|| {
        let names: Vec<_> = LOGS.iter().map(|log| log.path).collect();
        format!("there is no such log; there are {}", names.join(", "))
    })
}
