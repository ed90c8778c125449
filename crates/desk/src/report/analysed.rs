//! Captures to logs, by this program itself: as a process, so that an analysis ends with all of its memory.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use netsniff_console::unfinished::Unfinished;
use netsniff_console::{DAMAGED, DONE, UsageError};

use super::material::{Material, SUMMARY};
use super::stamps;

/// A directory for logs that goes when it is no longer needed.
#[derive(Debug)]
pub(super) struct Analysed {
    directory: Unfinished,
    name: String,
}

/// Spans of a picture of traffic over time, about.
const SPANS: i64 = 120;
/// Lengths of intervals in milliseconds that people can read.
const LENGTHS: [i64; 21] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000, 600_000,
    1_800_000, 3_600_000, 21_600_000, 86_400_000,
];

impl Analysed {
    /// Analyses captures as one traffic; also returns the exit code of the analysis.
    pub(super) fn of(captures: &[PathBuf]) -> anyhow::Result<(Self, u8)> {
        for capture in captures {
            // A pipe would be empty when it is read for the second time.
            if !capture.is_file() || netsniff_console::paths::is_stdin(capture) {
                let name = capture.display();
                let said =
                    format!("{name} is no file: captures must be files, which are read twice");
                return Err(UsageError(said).into());
            }
        }
        let span =
            stamps::ends(captures).map_or(0, |(first, last)| last.nanos().abs_diff(first.nanos()));
        let interval = length(span as f64 / 1e9);
        let scratch = Self { directory: scratch()?, name: name_of(captures) };
        let summary = File::create_new(scratch.directory.path().join(SUMMARY))
            .context("cannot write the summary of the analysis")?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        command.arg("analyze");
        for capture in captures {
            // A name that begins with a dash is no option.
            command.arg("--read").arg(capture);
        }
        command.arg("--output").arg(scratch.directory.path());
        command
            .args(["--format", "tsv", "--json", "--notices", "--series"])
            .arg(format!("{interval}ms"));
        let status = command.stdin(Stdio::null()).stdout(summary).status();
        match status.context("cannot run the analysis")?.code() {
            Some(0) => Ok((scratch, DONE)),
            Some(code) if code == i32::from(DAMAGED) => Ok((scratch, DAMAGED)),
            _ => bail!("the analysis failed"),
        }
    }

    /// Its logs.
    pub(super) fn material(&self) -> anyhow::Result<Material> {
        let material = Material::of(self.directory.path())?;
        Ok(Material { name: self.name.clone(), is_fresh: true, ..material })
    }
}

/// The captures, for the title.
fn name_of(captures: &[PathBuf]) -> String {
    let name = |path: &PathBuf| {
        path.file_name().unwrap_or(OsStr::new("capture")).to_string_lossy().into_owned()
    };
    match captures {
        [one] => name(one),
        [first, others @ ..] => format!("{} and {} more", name(first), others.len()),
        [] => String::new(),
    }
}

/// A new directory that nobody else can read: logs tell much.
fn scratch() -> anyhow::Result<Unfinished> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let name = format!("netsniff-report-{}-{now}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let made = DirBuilder::new().mode(0o700).create(&directory);
    made.with_context(|| format!("cannot make the directory {}", directory.display()))?;
    Ok(Unfinished::new(directory))
}

/// Milliseconds of an interval with which captures of so many seconds have about as many as a picture shows.
fn length(seconds: f64) -> i64 {
    let least = (seconds * 1000.0 / SPANS as f64) as i64;
    LENGTHS.into_iter().find(|length| *length >= least).unwrap_or(LENGTHS[LENGTHS.len() - 1])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn intervals_are_as_long_as_a_picture_needs() {
        for (seconds, expected) in [
            (0.0, 1),
            (0.5, 5),
            (22.0, 200),
            (3600.0, 30_000),
            (86_400.0, 1_800_000),
            (1e12, 86_400_000),
        ] {
            assert_eq!(length(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn a_scratch_directory_is_private_and_goes() {
        use std::os::unix::fs::PermissionsExt as _;
        let (directory, other) = (scratch().unwrap(), scratch().unwrap());
        assert_ne!(directory.path(), other.path());
        assert_eq!(fs::metadata(directory.path()).unwrap().permissions().mode() & 0o777, 0o700);
        let path = directory.path().to_owned();
        drop(Analysed { directory, name: String::new() });
        assert!(!path.exists());
    }

    #[test]
    fn names_are_short() {
        let paths = ["a/b.pcap", "c.pcap"].map(PathBuf::from);
        assert_eq!(name_of(&paths[..1]), "b.pcap");
        assert_eq!(name_of(&paths), "b.pcap and 1 more");
    }
}
