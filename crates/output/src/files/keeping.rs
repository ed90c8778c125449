//! Removing what is not to stay of files that have ended.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;
use netsniff_console::{clock, number};
use netsniff_packet::Timestamp;

use super::earlier::rolled_files;
use super::removing::remove;
use super::{HOUR, LogFiles};
use crate::log_file::LogFile;
use crate::manifest::Manifest;
use crate::retention::{
    EndedFile, EndedFiles, Keep, KeepBound, OpenFiles, free_bytes, most_free_bytes,
};
use crate::rolled::Schedule;

/// The part of all bytes that one file may have, since a file that is written cannot be removed.
const SHARE: u64 = 8;

impl LogFiles {
    /// The same files of a run that goes on for long, of which those stay that `keep` says; also of those that earlier runs left
    /// in the directory. Nothing else there is removed. Where nobody said when files roll, they do so each hour.
    ///
    /// # Errors
    ///
    /// When it cannot be told which files are there, or how much room, and where so much can never be free.
    pub fn keeping(mut self, keep: Keep, now: Timestamp) -> anyhow::Result<Self> {
        self.set_keep(keep, now)?;
        Ok(self)
    }

    /// Keeps files within these bounds from now on.
    pub(super) fn set_keep(&mut self, keep: Keep, now: Timestamp) -> anyhow::Result<()> {
        let directory = &self.directory;
        if keep.free.is_some() && free_bytes(directory).is_none() {
            anyhow::bail!("nobody tells how much room there is where {} lies", directory.display());
        }
        if let (Some(least), Some(most)) = (keep.free, most_free_bytes(directory))
            && least >= most
        {
            anyhow::bail!(
                "{} can never be free where {} lies, which has room for {}: keep less free",
                number::bytes(least),
                directory.display(),
                number::bytes(most)
            );
        }
        match &mut self.ended {
            Some(ended) => ended.set_bounds(keep),
            None if !keep.is_on() => return Ok(()),
            None => {
                let earlier = rolled_files(directory)
                    .with_context(|| format!("cannot look through {}", directory.display()))?;
                let mut ended = EndedFiles::new(keep);
                earlier.into_iter().for_each(|file| ended.add(file));
                self.ended = Some(ended);
            }
        }
        if self.schedule.is_none() && self.most_asked == u64::MAX {
            self.schedule = Some(Schedule::new(HOUR, now));
        }
        self.most = self.most_asked.min(keep.bytes.map_or(u64::MAX, |bytes| bytes / SHARE));
        self.remove_excess(now)
    }

    /// Takes note of a file that has ended.
    pub(super) fn keep_ended(&mut self, path: &Path, file: &LogFile) {
        if let Some(ended) = &mut self.ended {
            let now = EndedFile::new(path.to_owned(), file.rows.size(), clock::now());
            ended.add(EndedFile { identity: file.identity, ..now });
        }
    }

    /// Removes files that have ended until the bounds are held.
    pub(super) fn remove_excess(&mut self, now: Timestamp) -> anyhow::Result<()> {
        let Some(ended) = &mut self.ended else { return Ok(()) };
        let own = self.logs.iter().filter_map(|log| log.file.as_ref());
        let own = own.filter(|file| file.identity.is_some());
        let open = own.fold(OpenFiles::default(), |sum, file| OpenFiles {
            files: sum.files + 1,
            bytes: sum.bytes.saturating_add(file.size()),
        });
        let excess = ended.take_excess(now, open, || free_bytes(&self.directory));
        if excess.is_empty() {
            return Ok(());
        }
        let mut result = forget(self.manifest.as_mut(), &excess);
        for (file, bound) in excess {
            let removed = ended.note(&file, bound, remove(&self.directory, &file));
            if removed.is_ok() {
                (self.tell)(&file.farewell(bound));
            }
            let removed = removed.with_context(|| format!("cannot remove {}", file.path.display()));
            result = result.and(removed);
        }
        result
    }
}

/// Takes files off the list of whole files.
fn forget(
    manifest: Option<&mut Manifest>,
    excess: &[(EndedFile, KeepBound)],
) -> anyhow::Result<()> {
    let Some(manifest) = manifest else { return Ok(()) };
    let going: BTreeSet<_> = excess.iter().map(|(file, _)| file.path.as_path()).collect();
    let forgotten = manifest.forget(&going);
    forgotten.with_context(|| format!("cannot write {}", manifest.path().display()))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::PathBuf;
    use std::time::{Duration, UNIX_EPOCH};

    use netsniff_analysis::SortKey;

    use super::*;
    use crate::{Format, LiveSink as _, Roll, RowSink as _};

    /// A directory of its own, removed at the end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let name = format!("netsniff-keeping-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        /// A file of so many bytes, which was written last at that time.
        fn file(&self, name: &str, bytes: usize, seconds: u64) {
            let path = self.0.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, vec![b'x'; bytes]).unwrap();
            let file = File::options().append(true).open(path).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        }

        /// All files in it and below, by their names.
        fn names(&self) -> Vec<String> {
            fn walk(folder: &Path, above: &Path, names: &mut Vec<String>) {
                for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                    let path = entry.path();
                    if path.symlink_metadata().unwrap().is_dir() {
                        walk(&path, above, names);
                    }
                    names.push(path.strip_prefix(above).unwrap().display().to_string());
                }
            }
            let mut names = Vec::new();
            walk(&self.0, &self.0, &mut names);
            names.sort();
            names
        }

        fn bytes(&self) -> u64 {
            self.names().iter().map(|name| fs::metadata(self.0.join(name)).unwrap().len()).sum()
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const KILO: u64 = 1000;
    const HOUR: i64 = 3_600_000_000_000;

    /// So many nanoseconds from now on: files end by the clock.
    fn later(nanos: i64) -> Timestamp {
        clock::now().offset(nanos)
    }

    fn now() -> Timestamp {
        later(0)
    }

    fn live(directory: &Directory, format: Format, keep: Keep) -> LogFiles {
        let files = LogFiles::live(&directory.0, format, Roll::default(), now()).unwrap();
        files.keeping(keep, now()).unwrap()
    }

    #[test]
    fn what_earlier_runs_left_goes_and_nothing_else() {
        let directory = Directory::new("earlier");
        let old = ["conn.2026-01-01-00-00-00.log", "dns.2026-01-01-00-00-00-2.msgpack"];
        old.iter().for_each(|name| directory.file(name, 10, 1));
        let others = [
            "conn.2026-01-01-00-00-00.log.gz",
            "nolog.2026-01-01-00-00-00.log",
            "day=2026-01-01/hour=00/conn.2026-01-01-00-00-00.parquet",
            "log_name=conn/hour=00/day=2026-01-01/conn.2026-01-01-00-00-00.parquet",
            "log_name=conn/day=2026-01-01/hour=00/dns.2026-01-01-00-00-00.parquet",
            "log_name=conn/conn.2026-01-01-00-00-00.parquet",
            // The same with an extension that each build knows.
            "day=2026-01-01/hour=00/conn.2026-01-01-00-00-00.log",
            "log_name=conn/day=2026-01-01/hour=00/dns.2026-01-01-00-00-00.log",
            "log_name=conn/conn.2026-01-01-00-00-00.log",
            "notes.txt",
        ];
        others.iter().for_each(|name| directory.file(name, 10, 1));
        fs::create_dir(directory.0.join("http.2026-01-01-00-00-00.log")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("notes.txt", directory.0.join("tcp.2026-01-01-00-00-00.log"))
            .unwrap();
        let before = directory.names();
        let keep = Keep { age: Some(Duration::from_secs(1)), ..Keep::default() };
        let files = live(&directory, Format::Json, keep);
        let left = directory.names();
        let gone: Vec<_> = before.iter().filter(|name| !left.contains(name)).collect();
        assert_eq!(gone, old);
        assert_eq!(files.removed().files, [0, 0, 2, 0]);
        assert_eq!(files.removed().bytes, 20);
    }

    #[test]
    fn the_oldest_go_first_and_a_log_that_is_written_stays() {
        let directory = Directory::new("oldest");
        for (name, seconds) in [("conn", 3), ("dns", 1), ("http", 2)] {
            directory.file(&format!("{name}.2026-01-01-00-00-00.log"), 1000, seconds);
        }
        let mut files =
            live(&directory, Format::Json, Keep { bytes: Some(3 * KILO), ..Keep::default() });
        assert_eq!(files.removed().total(), 0);
        files.row(0, &SortKey::first_at(now()), b"{}\n").unwrap();
        files.flush(now()).unwrap();
        let expected = ["conn.2026-01-01-00-00-00.log", "conn.log", "http.2026-01-01-00-00-00.log"];
        assert_eq!(directory.names(), expected);
        // Rows that wait count as those that are written.
        files.row(0, &SortKey::first_at(now()), &[b' '; 1500]).unwrap();
        files.flush(now()).unwrap();
        files.flush(now()).unwrap();
        assert!(directory.bytes() <= 3 * KILO && directory.0.join("conn.log").exists());
        files.end(now()).unwrap();
    }

    #[test]
    fn logs_never_have_more_bytes_than_are_kept() {
        let directory = Directory::new("bounded");
        let keep = Keep { bytes: Some(80 * KILO), ..Keep::default() };
        let mut files = live(&directory, Format::Json, keep);
        for _ in 0..1000 {
            files.row(0, &SortKey::first_at(now()), &[b'x'; 500]).unwrap();
            assert!(directory.bytes() <= 80 * KILO, "{:?}", directory.names());
        }
        files.end(now()).unwrap();
        let books = files.books();
        assert_eq!((books.written.total(), books.refused.total()), (1000, 0));
        // A file has an eighth at most.
        assert!(directory.names().len() >= 8, "{:?}", directory.names());
        assert_eq!(files.removed().bytes + directory.bytes(), 500 * KILO);
    }

    /// What has the name of a file that was listed need not be it hours later.
    #[test]
    #[cfg(unix)]
    fn what_took_the_place_of_a_file_or_of_a_directory_stays() {
        let directory = Directory::new("replaced");
        let table = "log_name=conn/day=2026-01-01/hour=00/conn.2026-01-01-00-00-00.log";
        let (log, own) = ("dns.2026-01-01-00-00-00.log", "http.2026-01-01-00-00-00.log");
        [(table, 1), (log, 2), (own, 3)].iter().for_each(|(name, at)| directory.file(name, 9, *at));
        let keep = Keep { files: Some(3), ..Keep::default() };
        let mut files = live(&directory, Format::Json, keep);
        let at = |name: &str| directory.0.join(name);
        fs::rename(at("log_name=conn"), at("archive")).unwrap();
        std::os::unix::fs::symlink("archive", at("log_name=conn")).unwrap();
        directory.file("new", 9, 4);
        fs::rename(at("new"), at(log)).unwrap();
        let none = Keep { files: Some(0), ..Keep::default() };
        let error = format!("{:#}", files.keep(none, now()).unwrap_err());
        assert!(error.contains("cannot remove ") && error.contains("log_name=conn"), "{error}");
        assert!(at(&table.replace("log_name=conn", "archive")).exists(), "a link was followed");
        assert!(at(log).exists() && !at(own).exists());
        let removed = files.removed();
        assert_eq!((removed.files, removed.bytes, removed.failed), ([1, 0, 0, 0], 9, 2));
    }

    #[test]
    fn files_roll_each_hour_so_that_they_can_be_removed() {
        let directory = Directory::new("hourly");
        let keep = Keep { age: Some(Duration::from_secs(86_400)), ..Keep::default() };
        let mut files = live(&directory, Format::Json, keep);
        files.row(0, &SortKey::first_at(now()), b"{}\n").unwrap();
        files.flush(later(HOUR)).unwrap();
        assert!(!directory.0.join("conn.log").exists());
        assert_eq!(directory.names().len(), 1);
        files.flush(later(26 * HOUR)).unwrap();
        assert_eq!(directory.names(), [""; 0]);
    }

    #[test]
    #[cfg(unix)]
    fn room_that_there_can_never_be_is_refused_and_nothing_goes() {
        let directory = Directory::new("never");
        directory.file("conn.2026-01-01-00-00-00.log", 9, 1);
        let mut files = live(&directory, Format::Json, Keep::default());
        let keep = Keep { free: most_free_bytes(&directory.0), ..Keep::default() };
        let error = files.keep(keep, now()).unwrap_err().to_string();
        assert!(error.contains(" can never be free where "), "{error}");
        assert_eq!(directory.names(), ["conn.2026-01-01-00-00-00.log"]);
    }

    #[test]
    fn other_bounds_are_in_force_at_once() {
        let directory = Directory::new("others");
        for (name, seconds) in [("conn", 3), ("dns", 1), ("http", 2)] {
            directory.file(&format!("{name}.2026-01-01-00-00-00.log"), 1000, seconds);
        }
        let mut files = live(&directory, Format::Json, Keep::default());
        let bytes = |bytes| Keep { bytes: Some(bytes * KILO), ..Keep::default() };
        for (keep, left) in
            [(bytes(3), 3), (bytes(2), 2), (Keep::default(), 2), (bytes(1), 1), (bytes(9), 1)]
        {
            files.keep(keep, now()).unwrap();
            assert_eq!(directory.names().len(), left, "{keep:?}");
        }
        assert_eq!(directory.names(), ["conn.2026-01-01-00-00-00.log"]);
        assert_eq!(files.removed().total(), 2);
    }

    #[test]
    fn files_that_go_are_taken_off_the_list() {
        let directory = Directory::new("listed");
        let names = ["conn.2026-01-01-00-00-00.log", "dns.2026-01-01-00-00-00.log"];
        names.iter().zip(1..).for_each(|(name, seconds)| directory.file(name, 9, seconds));
        let mut files = live(&directory, Format::Json, Keep::default());
        // As of a format whose files can be read once they are whole.
        let manifest = files.manifest.insert(Manifest::of(&directory.0)).path().to_owned();
        let line = |name: &str| format!("{{\"file\":\"{name}\"}}\n");
        fs::write(&manifest, names.map(line).concat()).unwrap();
        files.keep(Keep { files: Some(1), ..Keep::default() }, now()).unwrap();
        assert_eq!(fs::read_to_string(&manifest).unwrap(), line(names[1]));
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn tables_go_with_their_directories_and_their_lines() {
        let directory = Directory::new("tables");
        let keep = Keep { files: Some(2), ..Keep::default() };
        let mut files = live(&directory, Format::Parquet, keep);
        for hour in 0..3 {
            let time = later(hour * HOUR);
            files.flush(time).unwrap();
            files.row(0, &SortKey::first_at(time), &[0; 64]).unwrap();
        }
        files.end(later(3 * HOUR)).unwrap();
        let tables: Vec<_> =
            directory.names().into_iter().filter(|it| it.ends_with(".parquet")).collect();
        let manifest = directory.0.join(crate::manifest::NAME);
        let listed = || fs::read_to_string(&manifest).unwrap();
        assert_eq!((tables.len(), listed().lines().count()), (3, 3));
        fs::write(&manifest, format!("# of somebody else\n{}", listed())).unwrap();
        let files = live(&directory, Format::Parquet, keep);
        assert_eq!(files.removed().files, [1, 0, 0, 0]);
        let text = listed();
        assert_eq!(text.lines().next(), Some("# of somebody else"));
        assert!(
            !text.contains(&tables[0]) && text.contains(&tables[1]) && text.contains(&tables[2]),
            "{text}"
        );
        let names = directory.names();
        assert!(!names.contains(&tables[0]) && names.contains(&tables[1]), "{names:?}");
        let folder = Path::new(&tables[0]).parent().unwrap();
        assert!(!directory.0.join(folder).exists(), "{folder:?} is empty");
    }
}
