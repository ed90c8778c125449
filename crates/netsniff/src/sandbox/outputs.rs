//! What a process still writes once it has given up its rights, and whether it can.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use netsniff_console::paths::is_stdin;
use netsniff_pipeline::recording::options::Options;
use rustix::fs::{Access, Mode, OFlags, access};

use super::Identity;

/// Files and directories that are written.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    /// Directories of our own, which are made.
    directories: Vec<PathBuf>,
    /// Directories of others, in which files are made and removed.
    folders: Vec<PathBuf>,
    /// Files that are there and are written.
    pub(super) files: Vec<PathBuf>,
    /// Directories in which files are read.
    pub(super) readable: Vec<PathBuf>,
    /// A file that is open already, to be removed at the end.
    pidfile: Option<PathBuf>,
    /// Ports of TCP that are connected to.
    pub(super) ports: Vec<u16>,
}

impl Outputs {
    /// Files will come and go in this directory.
    #[must_use]
    pub fn with_directory(mut self, path: &Path) -> Self {
        self.directories.push(path.to_owned());
        self
    }

    /// The files of this recording will be written: one that is there is emptied, and may be a device or a
    /// pipe; others are made where they lie.
    #[must_use]
    pub fn with_recording(mut self, recording: &Options) -> Self {
        match recording.only_file() {
            // An index is made beside it.
            Some(file) if recording.index.is_some() => self.folders.push(folder(&file)),
            Some(file) if file.exists() => self.files.push(file),
            _ if is_stdin(&recording.output) => {}
            _ => self.folders.push(folder(&recording.output)),
        }
        self
    }

    /// Files in these directories will be read again, as far as the user may; what is not there is left out.
    #[must_use]
    pub fn with_readable<'a>(mut self, folders: impl Iterator<Item = &'a Path>) -> Self {
        self.readable.extend(folders.map(or_here).filter(|it| it.is_dir()).map(Path::to_owned));
        self.readable.sort_unstable();
        self.readable.dedup();
        self
    }

    /// These ports of TCP will be connected to, on any host.
    #[must_use]
    pub fn with_ports(mut self, ports: impl Iterator<Item = u16>) -> Self {
        self.ports.extend(ports);
        self.ports.sort_unstable();
        self.ports.dedup();
        self
    }

    /// This file, which is open, will be removed.
    #[must_use]
    pub fn with_pidfile(mut self, path: Option<&Path>) -> Self {
        self.pidfile = path.map(Path::to_owned);
        self
    }

    /// Directories in which files come and go.
    pub(super) fn all_folders(&self) -> impl Iterator<Item = &PathBuf> {
        self.directories.iter().chain(&self.folders)
    }

    /// The directory of the file with the number of the process.
    pub(super) fn pid_folder(&self) -> Option<PathBuf> {
        self.pidfile.as_deref().map(folder)
    }

    /// Whether there are outputs, and all of them are a user's: what is not there yet will be in a
    /// directory that is.
    pub(super) fn belong_to(&self, uid: u32) -> bool {
        let mut all = self.all_folders().chain(&self.files).peekable();
        let is_of_user = |path: &PathBuf| {
            let there = path.ancestors().map(or_here).find_map(|it| fs::metadata(it).ok());
            there.is_some_and(|metadata| metadata.uid() == uid)
        };
        all.peek().is_some() && all.all(is_of_user)
    }

    /// Makes the directories that are not there, for the user who will write to them.
    pub(super) fn make(&self, identity: &Identity) -> anyhow::Result<()> {
        for directory in &self.directories {
            make(directory, identity)
                .with_context(|| format!("cannot make the directory {}", directory.display()))?;
        }
        for folder in &self.folders {
            fs::metadata(folder)
                .with_context(|| format!("cannot write to {}", folder.display()))?;
        }
        Ok(())
    }

    /// Why the process cannot write them, and what to do about it.
    pub(super) fn refused(&self, identity: &Identity) -> Option<String> {
        let directory = |path: &&PathBuf| !may(path, Access::WRITE_OK | Access::EXEC_OK);
        let refused = self.all_folders().find(directory);
        let file = |path: &&PathBuf| !may(path, Access::WRITE_OK);
        let path = refused.or_else(|| self.files.iter().find(file))?;
        let called = identity.called();
        let is_of_others = self.folders.contains(path);
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let shut = path.ancestors().skip(1).filter(|above| !may(above, Access::EXEC_OK)).last();
        let mends = match shut {
            Some(shut) => format!("sudo chmod o+x {}", quoted(shut)),
            // Others work there, too: a directory below it is given away rather than the whole.
            None if is_of_others => {
                let below = path.join("captures");
                format!(
                    "sudo install -d -o {} {}    to record there",
                    identity.uid(),
                    quoted(&below)
                )
            }
            None => format!("sudo chown {} {}", identity.uid(), quoted(&path)),
        };
        Some(format!(
            "{} cannot be written by {called}, who goes on with the capture. This mends it:\n  {mends}\n\
             or choose who writes by --user; --no-drop lets root",
            path.display()
        ))
    }

    /// Whether nothing is to be read but what is written: the root directory tells.
    pub(super) fn are_all_there_is(&self) -> bool {
        let is_root = |path: &PathBuf| path.canonicalize().is_ok_and(|it| it.parent().is_none());
        self.all_folders().any(is_root) || fs::read_dir("/").is_err()
    }
}

/// The directories and files, for people.
impl fmt::Display for Outputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut paths: Vec<_> = self.all_folders().chain(&self.files).collect();
        paths.sort();
        paths.dedup();
        let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        match paths.as_slice() {
            [] => f.write_str("no file can be opened")?,
            paths => write!(f, "only {} can be written", paths.join(", "))?,
        }
        let readable: Vec<_> =
            self.readable.iter().map(|path| path.display().to_string()).collect();
        if !readable.is_empty() {
            write!(f, ", files in {} can be read", readable.join(", "))?;
        }
        let ports: Vec<_> = self.ports.iter().map(u16::to_string).collect();
        if ports.is_empty() {
            Ok(())
        } else {
            write!(f, ", TCP goes to port {} only", ports.join(", "))
        }
    }
}

/// Where a file lies.
fn folder(path: &Path) -> PathBuf {
    or_here(path.parent().unwrap_or(path)).to_owned()
}

fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

fn may(path: &Path, access_wanted: Access) -> bool {
    access(path, access_wanted).is_ok()
}

/// Makes a directory and those above it; what is made belongs to the user.
fn make(path: &Path, identity: &Identity) -> io::Result<()> {
    let path = or_here(path);
    match fs::create_dir(path) {
        Ok(()) => {
            // By the descriptor and not through a link, so that nothing else is given away.
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let made = rustix::fs::open(path, flags, Mode::empty())?;
            if fs::File::from(made.try_clone()?).metadata()?.uid() != identity.uid() {
                fchown(made, Some(identity.uid()), Some(identity.gid()))?;
            }
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make(path.parent().ok_or(error)?, identity)?;
            make(path, identity)
        }
        Err(error) => Err(error),
    }
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@,".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
