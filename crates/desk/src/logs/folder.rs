//! Which files of a directory are which log.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use netsniff_analysis::record::LogType;
use netsniff_analysis::rows::LOGS;
use netsniff_output::Format;

/// A directory of logs.
#[derive(Clone, Debug)]
pub struct Folder {
    /// The files of each log, those of an earlier time first.
    logs: BTreeMap<&'static str, Vec<LogFile>>,
    /// Names of files that look like logs in a form that is not read here.
    pub unread: Vec<String>,
    /// Names of files that are not read since another form of the same log is, which may have the same rows.
    pub doubled: Vec<String>,
    /// Names of files that look like logs of which nothing is known.
    pub unknown: Vec<String>,
}

/// A file of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// Its name in the directory.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
}

/// What names of logs in lines of text end with.
const READ: [&str; 6] = [".log", ".json", ".log.gz", ".json.gz", ".log.zst", ".json.zst"];
/// What names of tables end with: a build may lack the formats that write them.
const TABLES: [&str; 2] = ["arrows", "parquet"];
/// How files may be packed.
const PACKED: [&str; 5] = [".gz", ".zst", ".xz", ".bz2", ".lz4"];

impl Folder {
    /// Looks for logs in a directory: `conn.log`, and rolled ones as `conn.2026-11-21-22-09-03.log`.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read.
    pub fn open(directory: &Path) -> anyhow::Result<Self> {
        let said = || format!("cannot read the directory {}", directory.display());
        let mut names = Vec::new();
        for entry in fs::read_dir(directory).with_context(said)? {
            let entry = entry.with_context(said)?;
            // A pipe would be waited for.
            if entry.path().is_file()
                && let Ok(name) = entry.file_name().into_string()
            {
                names.push(name);
            }
        }
        // Of the forms of a log, the one that comes first is read.
        names.sort_by_cached_key(|name| {
            let form = READ.iter().rposition(|end| name.ends_with(end));
            (form, name.clone())
        });
        let mut folder = Self {
            logs: BTreeMap::new(),
            unread: Vec::new(),
            doubled: Vec::new(),
            unknown: Vec::new(),
        };
        for name in names {
            let Some(log) = log_of(&name) else {
                if stem_of(&name).is_some_and(|_| name.contains(".log")) {
                    folder.unknown.push(name);
                }
                continue;
            };
            if let Some(stem) = stem_of(&name) {
                let files = folder.logs.entry(log.path).or_default();
                if files.iter().any(|file| stem_of(&file.name) == Some(stem)) {
                    folder.doubled.push(name);
                    continue;
                }
                let path = directory.join(&name);
                files.push(LogFile { name, path });
            } else if is_of_a_format(&name) {
                folder.unread.push(name);
            }
        }
        for files in folder.logs.values_mut() {
            // A log that is not rolled yet is the last one.
            files.sort_by_key(LogFile::order);
        }
        Ok(folder)
    }

    /// Names of files that are not read, each with the reason.
    pub fn left_out<'a>(&'a self) -> impl Iterator<Item = (&'a str, &'static str)> {
        let all = [
            (&self.unread, "is in a form that is not read"),
            (&self.doubled, "is not read: another form of the log is"),
            (&self.unknown, "is of a log that is not known here"),
        ];
        let named =
            |(names, why): (&'a Vec<String>, _)| names.iter().map(move |name| (name.as_str(), why));
        all.into_iter().flat_map(named)
    }

    /// Whether there is no log.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.logs.is_empty()
    }

    /// The logs that are there, with their files.
    pub fn logs(&self) -> impl Iterator<Item = (&'static str, &[LogFile])> {
        self.logs.iter().map(|(log, files)| (*log, files.as_slice()))
    }

    /// Whether a log is there.
    #[must_use]
    pub fn has(&self, log: &str) -> bool {
        self.logs.contains_key(log)
    }
}

/// The log that a name begins with.
fn log_of(name: &str) -> Option<&'static LogType> {
    let (log, _) = name.split_once('.')?;
    LOGS.iter().copied().find(|known| known.path == log)
}

/// What a name is without the form of the log; `None` where that is not read.
fn stem_of(name: &str) -> Option<&str> {
    // `.log` is no end of what ends with `.log.gz`.
    READ.iter().find_map(|end| name.strip_suffix(end))
}

/// Whether a name ends as those of a format do that logs are written in, packed or not.
fn is_of_a_format(name: &str) -> bool {
    let plain = PACKED.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let ends_with = |end| plain.strip_suffix(end).is_some_and(|before| before.ends_with('.'));
    let ends = Format::ALL.iter().flat_map(|format| [format.extension(), format.name()]);
    ends.chain(TABLES).any(ends_with)
}

impl LogFile {
    /// Its name without what tells its form.
    #[must_use]
    pub fn stem(&self) -> &str {
        stem_of(&self.name).unwrap_or(&self.name)
    }

    /// The date between log and ending.
    fn date(&self) -> Option<&str> {
        let (_, date) = self.stem().split_once('.')?;
        date.starts_with(|sign: char| sign.is_ascii_digit()).then_some(date)
    }

    /// Whether it has a date: it is not written any more.
    #[must_use]
    pub fn is_rolled(&self) -> bool {
        self.date().is_some()
    }

    /// Its place among the files of its log. Those of one second are numbered from the second one on.
    fn order(&self) -> (bool, String, u64, String) {
        let date = self.date().unwrap_or_default();
        let numbered = date.rsplit_once('-').filter(|(date, _)| date.matches('-').count() == 5);
        let numbered = numbered.and_then(|(date, number)| Some((date, number.parse().ok()?)));
        let (date, number) = numbered.unwrap_or((date, 1));
        (!self.is_rolled(), date.to_owned(), number, self.name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_names() {
        let directory =
            std::env::temp_dir().join(format!("netsniff-folder-{}", std::process::id()));
        fs::create_dir_all(directory.join("http.log")).unwrap();
        let names = [
            "conn.log",
            "conn.2026-11-21-22-09-03-2.log.gz",
            "conn.2026-11-21-22-09-03.log",
            "conn.2026-11-21-22-09-03-10.log",
            "conn.json",
            "conn.log.gz",
            "connections.log",
            "conn.log.zst",
            "conn.2026-11-21-22-09-04.log.zst",
            "dns.msgpack",
            "http.json.xz",
            "ssl.json",
            "notes.txt",
        ];
        names.iter().for_each(|name| fs::write(directory.join(name), "").unwrap());
        let folder = Folder::open(&directory);
        fs::remove_dir_all(&directory).unwrap();
        let folder = folder.unwrap();
        let found: Vec<_> = folder
            .logs()
            .map(|(log, files)| (log, files.iter().map(|it| it.name.as_str()).collect::<Vec<_>>()))
            .collect();
        let conn = [
            "conn.2026-11-21-22-09-03.log",
            "conn.2026-11-21-22-09-03-2.log.gz",
            "conn.2026-11-21-22-09-03-10.log",
            "conn.2026-11-21-22-09-04.log.zst",
            "conn.log",
        ];
        assert_eq!(folder.doubled, ["conn.json", "conn.log.gz", "conn.log.zst"]);
        assert_eq!(found, [("conn", conn.to_vec()), ("ssl", vec!["ssl.json"])]);
        assert_eq!(folder.unread, ["dns.msgpack", "http.json.xz"]);
        assert!(folder.has("ssl") && !folder.has("http") && !folder.is_empty());
    }

    #[test]
    fn no_format_that_is_written_goes_unsaid() {
        let directory =
            std::env::temp_dir().join(format!("netsniff-formats-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let formats = Format::ALL.iter().map(|format| format.extension()).chain(TABLES);
        let ends: std::collections::BTreeSet<_> = formats.collect();
        let packed = |end: &str| ["", ".gz", ".xz"].map(|packing| format!("conn.{end}{packing}"));
        let names: Vec<_> =
            ends.into_iter().flat_map(packed).chain(["dns.json.bz2".into()]).collect();
        for name in names {
            let path = directory.join(&name);
            fs::write(&path, "").unwrap();
            let folder = Folder::open(&directory);
            fs::remove_file(&path).unwrap();
            let folder = folder.unwrap();
            let is_read = ["conn.log", "conn.log.gz"].contains(&&*name);
            assert_eq!(
                (folder.has("conn"), folder.unread.contains(&name)),
                (is_read, !is_read),
                "{name}"
            );
        }
        fs::remove_dir_all(&directory).unwrap();
    }
}
