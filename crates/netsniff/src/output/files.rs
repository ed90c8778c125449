//! Logs as files in a directory, `conn.log` and so on, made when their first row comes.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use netsniff_analysis::log::LOGS;
use netsniff_analysis::record::LogType;
use netsniff_packet::Timestamp;

use super::{Format, RowSink};

/// Bytes gathered before a system call writes them.
const BUFFER: usize = 256 * 1024;

/// One file for each log that has rows.
#[derive(Debug)]
pub struct LogFiles {
    directory: PathBuf,
    format: Format,
    files: Vec<Option<LogFile>>,
}

#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    writer: BufWriter<File>,
}

impl LogFiles {
    /// Files in `directory`, which is made if it is missing. Logs that are there already are
    /// removed: what an earlier run left must not lie among the logs of this one.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made, or a log in it cannot be removed.
    pub fn create(directory: &Path, format: Format) -> anyhow::Result<Self> {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot make the directory {}", directory.display()))?;
        for log in LOGS {
            let path = path_of(directory, log);
            // Links and pipes are there on purpose, for a log to go through them.
            if path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
                fs::remove_file(&path)
                    .with_context(|| format!("cannot replace the old log {}", path.display()))?;
            }
        }
        let files = LOGS.iter().map(|_| None).collect();
        Ok(Self { directory: directory.to_owned(), format, files })
    }

    /// Ends every file; `closed` is the time at which the input ended.
    ///
    /// Dropping the files instead may lose rows without a word.
    ///
    /// # Errors
    ///
    /// The first file that could not be written to its end. The others are ended all the same.
    pub fn finish(self, closed: Timestamp) -> anyhow::Result<()> {
        let mut footer = Vec::new();
        self.format.footer(closed, &mut footer);
        let mut result = Ok(());
        for mut file in self.files.into_iter().flatten() {
            let ended = file.write(&footer).and_then(|()| file.flush());
            result = result.and(ended);
        }
        result
    }

    fn open(&self, log: usize, opened: Timestamp) -> anyhow::Result<LogFile> {
        let log = LOGS.get(log).context("a row of a log that is not in the list")?;
        let path = path_of(&self.directory, log);
        let file =
            File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
        let mut file = LogFile { path, writer: BufWriter::with_capacity(BUFFER, file) };
        let mut header = Vec::new();
        self.format.header(log, opened, &mut header);
        file.write(&header)?;
        Ok(file)
    }
}

fn path_of(directory: &Path, log: &LogType) -> PathBuf {
    directory.join(format!("{}.log", log.path))
}

impl RowSink for LogFiles {
    #[inline]
    fn row(&mut self, log: usize, time: Timestamp, bytes: &[u8]) -> anyhow::Result<()> {
        if let Some(Some(file)) = self.files.get_mut(log) {
            return file.write(bytes);
        }
        let mut file = self.open(log, time)?;
        file.write(bytes)?;
        self.files[log] = Some(file);
        Ok(())
    }
}

impl LogFile {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        let result = self.writer.write_all(bytes);
        result.with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        let result = self.writer.flush();
        result.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of its own, removed at the end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let name = format!("netsniff-files-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const TIME: Timestamp = Timestamp::from_secs_nanos(1_317_402_178, 0);

    #[test]
    fn a_file_has_header_rows_and_footer() {
        let directory = Directory::new("whole");
        let mut files = LogFiles::create(&directory.0, Format::Tsv).unwrap();
        let tunnel = LOGS.iter().position(|log| log.path == "tunnel").unwrap();
        files.row(tunnel, TIME, b"first\n").unwrap();
        files.row(tunnel, TIME, b"second\n").unwrap();
        files.finish(Timestamp::from_secs_nanos(1_317_402_180, 0)).unwrap();
        let text = fs::read_to_string(directory.0.join("tunnel.log")).unwrap();
        let expected = "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n\
            #unset_field\t-\n#path\ttunnel\n#open\t2011-09-30-17-02-58\n\
            #fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\ttunnel_type\taction\n\
            #types\ttime\tstring\taddr\tport\taddr\tport\tenum\tenum\n\
            first\nsecond\n#close\t2011-09-30-17-03-00\n";
        assert_eq!(text, expected);
        let others = fs::read_dir(&directory.0).unwrap().count();
        assert_eq!(others, 1, "a log without rows has no file");
    }

    #[test]
    fn logs_of_an_earlier_run_are_gone_and_other_files_stay() {
        let directory = Directory::new("again");
        fs::create_dir_all(&directory.0).unwrap();
        for name in ["rtt.log", "conn.log", "notes.log"] {
            fs::write(directory.0.join(name), b"old\n").unwrap();
        }
        let mut files = LogFiles::create(&directory.0, Format::Json).unwrap();
        files.row(0, TIME, b"{}\n").unwrap();
        files.finish(TIME).unwrap();
        let read = |name: &str| fs::read(directory.0.join(name)).ok();
        assert_eq!(read("conn.log").as_deref(), Some(&b"{}\n"[..]));
        assert_eq!(read("notes.log").as_deref(), Some(&b"old\n"[..]));
        assert_eq!(read("rtt.log"), None);
    }

    #[test]
    fn json_files_have_rows_only() {
        let directory = Directory::new("json");
        let mut files = LogFiles::create(&directory.0, Format::Json).unwrap();
        files.row(0, TIME, b"{}\n").unwrap();
        files.finish(TIME).unwrap();
        assert_eq!(fs::read(directory.0.join("conn.log")).unwrap(), b"{}\n");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let directory = Directory::new("full");
        fs::create_dir_all(&directory.0).unwrap();
        let path = directory.0.join("conn.log");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let mut files = LogFiles::create(&directory.0, Format::Tsv).unwrap();
        files.row(0, TIME, b"a row that stays in the buffer\n").unwrap();
        let error = format!("{:#}", files.finish(TIME).unwrap_err());
        let expected =
            format!("cannot write {}: No space left on device (os error 28)", path.display());
        assert_eq!(error, expected);
    }

    #[test]
    fn a_directory_that_cannot_be_is_an_error() {
        let directory = Directory::new("blocked");
        fs::create_dir_all(&directory.0).unwrap();
        let blocked = directory.0.join("file");
        fs::write(&blocked, b"").unwrap();
        let error = LogFiles::create(&blocked, Format::Tsv).unwrap_err();
        assert!(error.to_string().starts_with("cannot make the directory"), "{error}");
    }
}
