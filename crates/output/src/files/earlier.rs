//! Files that earlier runs left in the directory: they have names that only runs give.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

use netsniff_analysis::rows::LOGS;
use netsniff_console::clock;

use super::extensions;
use crate::descriptors::Identity;
use crate::retention::EndedFile;
use crate::rolled::{PARTITIONS, parts_of};

/// Files in `directory` that have rolled, and tables in directories by log, day and hour below it, the oldest first. Links are
/// not followed, and whatever has another name is none of ours.
pub(super) fn rolled_files(directory: &Path) -> io::Result<Vec<EndedFile>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_file() => found.extend(file_of_log(&entry, is_log)),
            kind if kind.is_dir() => {
                if let Some(log) = value_of(&entry, 0).filter(|log| is_log(log)) {
                    find_tables(&entry.path(), &log, 1, &mut found)?;
                }
            }
            _ => {}
        }
    }
    found.sort_by(|a, b| (a.ended, &a.path).cmp(&(b.ended, &b.path)));
    Ok(found)
}

/// Finds the tables of a log below one of its directories; `depth` is the place in [`PARTITIONS`] of those that lie in it.
fn find_tables(
    folder: &Path,
    log: &str,
    depth: usize,
    found: &mut Vec<EndedFile>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_file() && depth == PARTITIONS.len() => {
                found.extend(file_of_log(&entry, |of| of == log));
            }
            kind if kind.is_dir() && value_of(&entry, depth).is_some() => {
                find_tables(&entry.path(), log, depth + 1, found)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// What the name of a directory says of a column: `conn` for `log_name=conn`.
fn value_of(entry: &DirEntry, depth: usize) -> Option<String> {
    let name = entry.file_name().into_string().ok()?;
    let (column, value) = name.split_once('=')?;
    (PARTITIONS.get(depth) == Some(&column)).then(|| value.to_owned())
}

/// A file with the name of a log that has ended. One that vanishes meanwhile is none.
fn file_of_log(entry: &DirEntry, is_wanted: impl Fn(&str) -> bool) -> Option<EndedFile> {
    let name = entry.file_name().into_string().ok()?;
    let (log, extension) = parts_of(&name)?;
    if !is_wanted(log) || !extensions().contains(extension) {
        return None;
    }
    let metadata = entry.metadata().ok()?;
    let ended = clock::timestamp(metadata.modified().ok()?);
    let identity = Some(Identity::of(&metadata));
    Some(EndedFile { identity, ..EndedFile::new(entry.path(), metadata.len(), ended) })
}

fn is_log(name: &str) -> bool {
    LOGS.iter().any(|log| log.path == name)
}
