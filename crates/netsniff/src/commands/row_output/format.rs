//! How logs are written.

use netsniff_console::UsageError;
use netsniff_output::{Extension, Format, RowStyle, TimeForm};

#[derive(Debug, Default, clap::Args)]
pub(super) struct FormatArgs {
    /// How logs are written; tsv unless told, for `-o -` and beside --deliver json
    #[arg(long, value_enum, requires = "output")]
    format: Option<Format>,
    /// How `--format json` writes points in time; epoch unless told
    #[arg(long, value_enum, value_name = "FORM", requires = "rows")]
    json_time: Option<JsonTime>,
    /// With `--format json`, begin each row with `_path`, the name of its log, and `_write_ts`, the time by the packets at which
    /// it was written
    #[arg(long, requires = "rows")]
    json_ext: bool,
}

/// How JSON writes points in time.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum JsonTime {
    /// Seconds since 1970, a number.
    Epoch,
    /// ISO 8601 in UTC with microseconds, a string.
    Iso8601,
}

impl FormatArgs {
    /// How rows are rendered where each log has a file. Rows are rendered once: those that are also delivered are JSON.
    pub(super) fn of_files(&self, delivers: bool) -> Result<RowStyle, UsageError> {
        let default = if delivers { Format::Json } else { Format::Tsv };
        self.style(default, Extension::PathAndWriteTime, delivers)
    }

    /// How rows are rendered that are one stream, which names the log of each row by itself.
    pub(super) fn of_stream(&self, delivers: bool) -> Result<RowStyle, UsageError> {
        self.style(Format::Json, Extension::WriteTime, delivers)
    }

    fn style(
        &self,
        default: Format,
        extension: Extension,
        delivers: bool,
    ) -> Result<RowStyle, UsageError> {
        let format = self.format.unwrap_or(default);
        if delivers && format != Format::Json {
            let said = "--deliver and --format: rows are delivered as json, and so are the logs beside them";
            return Err(UsageError(said.to_owned()));
        }
        let unfit = match format {
            Format::Json => None,
            _ if self.json_time.is_some() => Some("--json-time"),
            _ if self.json_ext => Some("--json-ext"),
            _ => None,
        };
        if let Some(unfit) = unfit {
            let name = format.name();
            let said = format!("{unfit} is about --format json; logs are written as {name}");
            return Err(UsageError(said));
        }
        let times = match self.json_time {
            None | Some(JsonTime::Epoch) => TimeForm::Epoch,
            Some(JsonTime::Iso8601) => TimeForm::Iso8601,
        };
        let extension = if self.json_ext { extension } else { Extension::None };
        Ok(RowStyle { format, times, extension })
    }
}
