//! The names of files: of logs of an earlier run, of files that have ended, and of tables, which have theirs only then.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use netsniff_analysis::rows::LOGS;
use netsniff_packet::Timestamp;

use super::{Log, LogFiles, is_own};
use crate::log_file::LogFile;
use crate::rolled;

impl LogFiles {
    /// Gives a log that is there already a name with its own time.
    pub(super) fn set_aside(&mut self, at: usize, extension: &str) -> anyhow::Result<()> {
        let path = self.path_of(at, extension);
        if !is_own(&path) {
            return Ok(());
        }
        let mut rename = || {
            let changed = fs::symlink_metadata(&path)?.modified()?;
            self.rename((at, extension), &path, netsniff_console::clock::timestamp(changed))
        };
        let renamed = rename();
        let renamed =
            renamed.with_context(|| format!("cannot rename the old log {}", path.display()))?;
        (self.tell)(&format!("{} of an earlier run is {}", path.display(), renamed.display()));
        Ok(())
    }

    /// Gives the ended file of a log, of which the first row belongs at `opened`, the name by which it is found.
    fn rename_ended(&mut self, at: usize, path: &Path, opened: Timestamp) -> io::Result<PathBuf> {
        let extension = self.format.extension();
        if !self.format.is_read_whole() {
            return self.rename((at, extension), path, opened);
        }
        if !self.is_live {
            let name = self.path_of(at, extension);
            return fs::rename(path, &name).map(|()| name);
        }
        let (Some(log), Some(known)) = (self.logs.get_mut(at), LOGS.get(at)) else {
            return Ok(path.to_owned());
        };
        let part = rolled::partition(known.path, opened);
        make_folders(&self.directory, &part)?;
        let name = |time, number| part.join(rolled::name(known.path, time, number, extension));
        let renamed = log.renamer.rename(&self.directory, name, path, opened, rolled::rename_whole);
        let is_kept_in = |error: &io::Error| error.kind() == io::ErrorKind::CrossesDevices;
        if !renamed.as_ref().is_err_and(is_kept_in) {
            return renamed;
        }
        // The first Landlock lets nobody move a file into another directory (Linux 5.13 to 5.18).
        let name = |time, number| rolled::name(known.path, time, number, extension);
        log.renamer.rename(&self.directory, name, path, opened, rolled::rename_whole)
    }

    fn rename(
        &mut self,
        (at, extension): (usize, &str),
        path: &Path,
        time: Timestamp,
    ) -> io::Result<PathBuf> {
        let (Some(log), Some(known)) = (self.logs.get_mut(at), LOGS.get(at)) else {
            return Ok(path.to_owned());
        };
        let name = |time, number| rolled::name(known.path, time, number, extension);
        log.renamer.rename(&self.directory, name, path, time, rolled::rename_reserved)
    }

    /// Ends the file of a log and renames it; one that is not renamed goes on.
    pub(super) fn roll_log(&mut self, at: usize, closed: Timestamp) -> anyhow::Result<()> {
        let is_own = |log: &Log| log.file.as_ref().is_some_and(|file| file.identity.is_some());
        self.write_out(at)?;
        if !self.logs.get(at).is_some_and(is_own) {
            return Ok(());
        }
        let Some(log) = self.logs.get_mut(at) else { return Ok(()) };
        let Some(file) = &mut log.file else { return Ok(()) };
        let (ended, footer) = file.end(closed);
        let ended = ended.with_context(|| format!("cannot write {}", file.path.display()));
        let (path, opened, said) = (file.path.clone(), file.opened, file.summary());
        // Whoever took it away, as logrotate(8) does, has seen to its name.
        let is_there = file.is_there();
        log.rest_after(&ended);
        ended?;
        let renamed =
            if is_there { self.rename_ended(at, &path, opened) } else { Ok(path.clone()) };
        let Some(log) = self.logs.get_mut(at) else { return Ok(()) };
        let mut listed = Ok(());
        match &renamed {
            Ok(name) => {
                let file = log.file.take();
                (self.tell)(&format!("rolled {said}, now {}", name.display()));
                if let Some(file) = file.filter(|_| is_there) {
                    listed = self.list(at, name, &file, closed);
                    self.keep_ended(name, &file);
                }
            }
            Err(_) => {
                if let Some(file) = &mut log.file {
                    file.rows.cut_frame(footer);
                    file.is_staying = true;
                }
            }
        }
        renamed.with_context(|| format!("cannot rename {}", path.display()))?;
        listed
    }

    /// Gives the last file of a log its name, where it has none yet by which it is found.
    pub(super) fn name_last(
        &mut self,
        at: usize,
        file: &mut LogFile,
        closed: Timestamp,
    ) -> anyhow::Result<()> {
        if !self.format.is_read_whole() || file.identity.is_none() || !file.is_there() {
            return Ok(());
        }
        let named = self.rename_ended(at, &file.path, file.opened);
        file.path = named.with_context(|| format!("cannot rename {}", file.path.display()))?;
        self.list(at, &file.path, file, closed)
    }

    /// Puts a file that has ended on the list of whole files.
    fn list(
        &mut self,
        at: usize,
        path: &Path,
        file: &LogFile,
        closed: Timestamp,
    ) -> anyhow::Result<()> {
        let (Some(manifest), Some(known)) = (&mut self.manifest, LOGS.get(at)) else {
            return Ok(());
        };
        let name = path.strip_prefix(&self.directory).unwrap_or(path);
        let all = self.books.refused.rows(at);
        let before = self.logs.get_mut(at).map(|log| core::mem::replace(&mut log.refused, all));
        let refused = all.saturating_sub(before.unwrap_or_default());
        let listed = manifest.add(known.path, name, file, refused, closed);
        listed.with_context(|| format!("cannot write {}", manifest.path().display()))
    }

    /// Puts files on the list that could not be put there when they ended.
    pub(super) fn list_waiting(&mut self) -> anyhow::Result<()> {
        let Some(manifest) = &mut self.manifest else { return Ok(()) };
        let listed = manifest.write_waiting();
        listed.with_context(|| format!("cannot write {}", manifest.path().display()))
    }
}

/// Makes directories below one; a link in place of one of them is not followed.
fn make_folders(directory: &Path, below: &Path) -> io::Result<()> {
    let mut folder = directory.to_owned();
    for part in below {
        folder.push(part);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ if folder.symlink_metadata()?.is_dir() => {}
            _ => return Err(io::Error::other(format!("{} is no directory", folder.display()))),
        }
    }
    Ok(())
}
