//! Where the page goes: never over what it is made of, and with its name only when it is whole.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use netsniff_console::paths::{is_same_file, is_stdin};
use netsniff_console::unfinished::Unfinished;
use netsniff_console::{UsageError, unlinked};

use super::material::SUMMARY;
use crate::logs::Folder;

/// Refuses an output that is an input, or a file of a directory that is one.
pub(super) fn refuse_inputs(inputs: &[PathBuf], output: &Path) -> anyhow::Result<()> {
    for input in inputs {
        if is_same_file(input, output) || is_read_in(input, output)? {
            let same = output.display();
            let said = format!("{same} is both read and written: name another file to write to");
            return Err(UsageError(said).into());
        }
    }
    Ok(())
}

/// Whether a directory of logs has the file under a name of those that are looked at.
fn is_read_in(directory: &Path, output: &Path) -> anyhow::Result<bool> {
    if !directory.is_dir() {
        return Ok(false);
    }
    let folder = Folder::open(directory)?;
    let logs = folder.logs().flat_map(|(_, files)| files).map(|file| file.path.clone());
    let others = folder.unread.iter().chain(&folder.doubled).map(|name| directory.join(name));
    let mut all = logs.chain(others).chain([directory.join(SUMMARY)]);
    Ok(all.any(|path| is_same_file(&path, output)))
}

/// Writes the page; `-` is standard output, where whoever reads may have enough.
pub(super) fn write(path: &Path, html: &str) -> anyhow::Result<()> {
    let said = || format!("cannot write {}", path.display());
    if is_stdin(path) {
        let mut to = io::stdout().lock();
        return match to.write_all(html.as_bytes()).and_then(|()| to.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            done => done.context("cannot write the page"),
        };
    }
    write_file(path, html.as_bytes()).with_context(said)
}

fn write_file(path: &Path, page: &[u8]) -> io::Result<()> {
    if unlinked::is_of_system(path) {
        return unlinked::create_named_private(path)?.write_all(page);
    }
    unlinked::refuse(path)?;
    if path.metadata().is_ok_and(|it| !it.is_file() && !it.is_dir()) {
        // A pipe or a device is no file that could be replaced.
        return File::options().write(true).open(path)?.write_all(page);
    }
    if path.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    let mut hidden = OsString::from(".");
    hidden.push(path.file_name().unwrap_or_default());
    hidden.push(format!(".{}", std::process::id()));
    let written = path.with_file_name(hidden);
    if written.symlink_metadata().is_ok() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    let unfinished = Unfinished::new(written);
    unlinked::create_new_private(unfinished.path())?.write_all(page)?;
    unfinished.finish(path)
}
