//! The list of files that are whole, for readers that must not meet one that is still written.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use netsniff_console::unlinked;
use netsniff_packet::Timestamp;

use crate::format::digits;
use crate::log_file::LogFile;

/// The name of the list, in the directory of the logs.
pub(super) const NAME: &str = "manifest.jsonl";

/// What stands before the name of a file in its line.
const FILE: &str = "\"file\":\"";

/// Bytes of lines that may wait until they can be written: far more than files end while a disk is full.
const MOST_WAITING: usize = 1 << 20;

/// A line of JSON for each file that has ended, written once the file has its name.
#[derive(Debug)]
pub(super) struct Manifest {
    path: PathBuf,
    /// Lines that could not be written yet.
    waiting: String,
    /// The list ends with half a line, which could not be cut off.
    is_torn: bool,
}

impl Manifest {
    pub(super) fn of(directory: &Path) -> Self {
        Self { path: directory.join(NAME), waiting: String::new(), is_torn: false }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a file of a log, which ended at `closed` and is found as `name` in the directory. So many rows of the log were refused
    /// since the file before. A line that cannot be written waits for [`Self::write_waiting`].
    ///
    /// # Errors
    ///
    /// When it cannot be written yet.
    pub(super) fn add(
        &mut self,
        log: &str,
        name: &Path,
        file: &LogFile,
        refused: u64,
        closed: Timestamp,
    ) -> io::Result<()> {
        // Names are made of those of logs, digits and signs that JSON needs no escapes for.
        let line = format!(
            "{{\"log\":\"{log}\",{FILE}{}\",\"rows\":{},\"refused\":{refused},\"bytes\":{},\"opened\":{},\"closed\":{}}}\n",
            name.display(),
            file.written,
            file.rows.size(),
            seconds(file.opened),
            // The time of the traffic may stand before that of rows which tell of the run itself.
            seconds(closed.max(file.opened)),
        );
        if self.waiting.len() + line.len() > MOST_WAITING {
            return Err(io::Error::other(
                "too many lines wait to be written: the file is on no list",
            ));
        }
        self.waiting += &line;
        self.write_waiting()
    }

    /// Writes the lines that could not be written before.
    ///
    /// # Errors
    ///
    /// When they cannot be written now either; they wait on.
    pub(super) fn write_waiting(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut list = self.open()?;
        let before = list.metadata()?.len();
        let end = if self.is_torn { "\n" } else { "" };
        let written = list.write_all(format!("{end}{}", self.waiting).as_bytes());
        if written.is_ok() {
            self.waiting.clear();
            self.is_torn = false;
        } else {
            // Half a line would spoil the next one.
            self.is_torn |= list.set_len(before).is_err();
        }
        written
    }

    /// Takes those files off the list that are about to go, and those that are gone: whoever reads it finds each of its files.
    pub(super) fn forget(&mut self, going: &BTreeSet<&Path>) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let stays = |line: &&str| {
            let file = line.split_once(FILE).and_then(|(_, rest)| rest.split_once('"'));
            // A line of somebody else is none of our business.
            file.is_none_or(|(file, _)| {
                let file = folder.join(file);
                !going.contains(file.as_path()) && file.symlink_metadata().is_ok()
            })
        };
        self.waiting = self.waiting.split_inclusive('\n').filter(stays).collect();
        let text = match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            text => text?,
        };
        let rest: String = text.split_inclusive('\n').filter(stays).collect();
        if rest == text {
            return Ok(());
        }
        // A run that was killed may have left one.
        let new = self.path.with_extension("jsonl.new");
        let written = unlinked::replace(&new).and_then(|mut file| file.write_all(rest.as_bytes()));
        written.and_then(|()| fs::rename(&new, &self.path)).inspect_err(|_| {
            // The old list stays, and half a new one is of no use.
            let _ = fs::remove_file(&new);
        })
    }

    /// Opens the list, which is made where there is none.
    pub(super) fn open(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.append(true);
        match self.path.symlink_metadata() {
            Ok(_) => unlinked::open(&mut options, &self.path, true),
            Err(_) => options.create_new(true).open(&self.path),
        }
    }
}

/// Seconds since 1970 as the logs have them.
fn seconds(time: Timestamp) -> String {
    let mut text = Vec::new();
    digits::seconds(&mut text, digits::time_micros(time));
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use netsniff_analysis::rows::LOGS;

    use super::*;
    use crate::Format;
    use crate::row_file::RowFile;

    /// A directory of its own with these files in it, removed at the end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str, files: &[&str]) -> Self {
            let name = format!("netsniff-manifest-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            files.iter().for_each(|name| fs::write(path.join(name), b"").unwrap());
            Self(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn line(file: &str) -> String {
        format!("{{{FILE}{file}\"}}\n")
    }

    #[test]
    fn half_a_new_list_of_a_killed_run_is_no_part_of_the_next() {
        let directory = Directory::new("stale", &["a", "b"]);
        let mut manifest = Manifest::of(&directory.0);
        fs::write(manifest.path(), line("a") + &line("b")).unwrap();
        let stale = directory.0.join("manifest.jsonl.new");
        fs::write(&stale, line("b").repeat(9)).unwrap();
        manifest.forget(&BTreeSet::from([directory.0.join("a").as_path()])).unwrap();
        assert_eq!(fs::read_to_string(manifest.path()).unwrap(), line("b"));
        assert!(!stale.exists());
    }

    #[test]
    fn lines_that_could_not_be_written_are_before_the_next() {
        let directory = Directory::new("waiting", &["a", "b", "c"]);
        let mut manifest = Manifest::of(&directory.0);
        // What is no file cannot be written.
        fs::create_dir(manifest.path()).unwrap();
        let time = Timestamp::EPOCH;
        let rows = RowFile::new(File::open(directory.0.join("a")).unwrap(), None);
        let encoder = Format::Json.encoder(LOGS[0]);
        let file = LogFile::new(directory.0.join("a"), rows, encoder, None);
        let add = |manifest: &mut Manifest, name: &str, refused| {
            manifest.add("conn", Path::new(name), &file, refused, time)
        };
        for (name, refused) in [("a", 7), ("b", 0)] {
            add(&mut manifest, name, refused).unwrap_err();
        }
        manifest.write_waiting().unwrap_err();
        fs::remove_dir(manifest.path()).unwrap();
        // A file that goes meanwhile is on no list.
        manifest.forget(&BTreeSet::from([directory.0.join("b").as_path()])).unwrap();
        add(&mut manifest, "c", 1).unwrap();
        manifest.write_waiting().unwrap();
        let text = fs::read_to_string(manifest.path()).unwrap();
        let begins = ["a", "c"].map(|name| format!("{{\"log\":\"conn\",{FILE}{name}\""));
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.lines().zip(begins).all(|(line, begin)| line.starts_with(&begin)), "{text}");
        assert!(text.contains("\"refused\":7,") && text.contains("\"refused\":1,"), "{text}");
    }
}
