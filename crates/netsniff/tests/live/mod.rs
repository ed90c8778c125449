//! What the tests of live logs share.

#![allow(dead_code, reason = "no test needs all of it")]

use std::fs;
use std::path::{Path, PathBuf};

use netsniff_analysis::log::Weird;
use netsniff_analysis::rows::LOGS;
use netsniff_analysis::{Observer as _, Phase, SortKey, Uid};
use netsniff_output::RowBuffer;
use netsniff_packet::Timestamp;

/// A directory of its own, removed at the end.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("netsniff-live-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The rows of a log in the order of its files: the rolled ones, then the one of that name. Each
    /// file must be whole.
    pub(crate) fn rows(&self, log: &str) -> Vec<String> {
        self.files(log).iter().flat_map(|path| rows_of(path)).collect()
    }

    /// The files of a log, the oldest first.
    pub(crate) fn files(&self, log: &str) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                let name = path.file_name().unwrap().to_str().unwrap();
                name.strip_prefix(log).is_some_and(|rest| rest.starts_with('.'))
            })
            .collect();
        // `conn.2011-09-30-17-02-58-12.log`: the twelfth one of its second.
        files.sort_by_key(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            let middle = &name[log.len()..name.len() - ".log".len()];
            let is_current = middle.is_empty();
            let numbers = middle.split(['.', '-']).skip(1);
            (is_current, numbers.map(|n| n.parse::<u64>().unwrap()).collect::<Vec<_>>())
        });
        files
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The rows of a file, which ends with a whole line, and is not followed by anything once closed.
pub(crate) fn rows_of(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{} ends in half a row", path.display());
    let closed = text.find("#close\t");
    assert!(
        closed.is_none_or(|at| text[at..].lines().count() == 1),
        "{} goes on behind its end",
        path.display()
    );
    text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// The place of a log in the list.
pub(crate) fn log(path: &str) -> usize {
    LOGS.iter().position(|log| log.path == path).unwrap()
}

/// Second of a clock.
pub(crate) const fn at(seconds: i64) -> Timestamp {
    Timestamp::from_secs_nanos(seconds, 0)
}

/// Adds a row of `weird` at a time in nanoseconds.
pub(crate) fn add(rows: &mut RowBuffer, nanos: i64, name: &str) {
    let time = Timestamp::from_nanos(nanos);
    let key =
        SortKey { time, phase: Phase::Packet, ordinal: nanos as u64, uid: Uid::NONE, number: 0 };
    let weird = Weird {
        ts: time,
        uid: None,
        id_orig_h: None,
        id_orig_p: None,
        id_resp_h: None,
        id_resp_p: None,
        name,
        addl: None,
        notice: false,
        peer: "netsniff",
        source: None,
    };
    rows.record(&key, &weird);
}
