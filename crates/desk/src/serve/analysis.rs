//! An analysis whose logs are shown: a process of its own, as for the view in the terminal.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use netsniff_console::say;
use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use rustix::process::{Pid, Signal, kill_process};

use crate::report::SUMMARY;

/// How often it is asked whether it has ended.
const PAUSE: Duration = Duration::from_millis(50);
/// How long it may take to end.
const PATIENCE: Duration = Duration::from_secs(70);
/// Bytes of a summary, at most.
const SUMMARY_SIZE: u64 = 64 << 20;
/// Bytes of a line of what it says.
const LONGEST: u64 = 4096;

/// A running analysis, which ends with this value.
#[derive(Debug)]
pub(super) struct Analysis {
    child: Arc<Mutex<Child>>,
}

impl Analysis {
    /// Starts it. `ended` is told how it ended, when it has.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub(super) fn start(
        words: &[OsString],
        directory: &Path,
        ended: impl FnOnce(bool, String) + Send + 'static,
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        // Ctrl-C is for this process, which ends it in its time.
        command.args(words).arg("--end-with-parent").stdin(Stdio::null()).process_group(0);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start the analysis")?;
        let said = child.stderr.take().map(pass_on);
        let summary = child.stdout.take().map(gather);
        let child = Arc::new(Mutex::new(child));
        let (waits, directory) = (Arc::clone(&child), directory.to_owned());
        let wait = move || {
            let status = wait(&waits);
            let said = said.and_then(|said| said.join().ok()).flatten();
            let (is_good, how) = ending(&status, said);
            let summary = summary.and_then(|summary| summary.join().ok()).unwrap_or_default();
            if is_good && let Err(error) = write(&directory, &summary) {
                say(&format!("cannot write {SUMMARY} in {}: {error}", directory.display()));
            }
            ended(is_good, how);
        };
        thread::Builder::new().name("analysis".to_owned()).spawn(wait)?;
        Ok(Self { child })
    }

    fn has_ended(&self) -> bool {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        !matches!(child.try_wait(), Ok(None))
    }

    fn signal(&self, signal: Signal) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        // Until it was waited for its number is nobody else's.
        if let (Ok(None), Some(pid)) =
            (child.try_wait(), i32::try_from(child.id()).ok().and_then(Pid::from_raw))
        {
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Analysis {
    /// Lets it write what it has, and end its logs.
    fn drop(&mut self) {
        self.signal(Signal::TERM);
        let begin = Instant::now();
        while !self.has_ended() {
            if begin.elapsed() > PATIENCE {
                self.signal(Signal::KILL);
            }
            thread::sleep(PAUSE);
        }
    }
}

fn wait(child: &Mutex<Child>) -> std::io::Result<ExitStatus> {
    loop {
        let status = child.lock().unwrap_or_else(PoisonError::into_inner).try_wait();
        match status {
            Ok(None) => thread::sleep(PAUSE),
            Ok(Some(status)) => return Ok(status),
            Err(error) => return Err(error),
        }
    }
}

/// Whether its logs are of use, and how it ended.
fn ending(status: &std::io::Result<ExitStatus>, said: Option<String>) -> (bool, String) {
    let code = status.as_ref().ok().and_then(ExitStatus::code);
    let is_good =
        code.is_some_and(|code| code == 0 || code == i32::from(netsniff_console::DAMAGED));
    let how = match (code, said) {
        (Some(0), _) => "read to its end".to_owned(),
        (_, Some(said)) => said,
        (_, None) => match status {
            Ok(status) => format!("the analysis ended: {status}"),
            Err(error) => format!("the analysis ended: {error}"),
        },
    };
    (is_good, how)
}

/// Gathers the summary that it prints at its end.
fn gather(printed: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut summary = Vec::new();
        // Whatever cannot be read is no summary, which a report says.
        let _ = printed.take(SUMMARY_SIZE).read_to_end(&mut summary);
        summary
    })
}

/// Writes the summary beside the logs. The directory may belong to the user whom the analysis became, so that no
/// link in it is followed.
fn write(directory: &Path, summary: &[u8]) -> std::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(directory, flags, Mode::empty())?;
    let name = format!(".{SUMMARY}.{}", std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(&directory, &name, flags, Mode::RUSR | Mode::WUSR)?);
    let written = file.write_all(summary);
    let written = written.and_then(|()| Ok(renameat(&directory, &name, &directory, SUMMARY)?));
    if written.is_err() {
        let _ = unlinkat(&directory, &name, AtFlags::empty());
    }
    written
}

/// Passes on what it says, and keeps the last line.
fn pass_on(said: impl Read + Send + 'static) -> JoinHandle<Option<String>> {
    thread::spawn(move || {
        let (mut last, mut reader) = (None, BufReader::new(said));
        loop {
            let mut line = Vec::new();
            match reader.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return last,
                Ok(_) => {
                    let line = String::from_utf8_lossy(&line);
                    let line = line.trim_start_matches("netsniff: ").trim_end();
                    say(line);
                    last = Some(line.to_owned());
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_summary_is_not_written_through_a_link() {
        let directory = std::env::temp_dir().join(format!("netsniff-link-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let other = directory.join("other");
        fs::write(&other, "kept").unwrap();
        std::os::unix::fs::symlink(&other, directory.join(SUMMARY)).unwrap();
        write(&directory, b"{}").unwrap();
        let (kept, summary) =
            (fs::read(&other).unwrap(), fs::read(directory.join(SUMMARY)).unwrap());
        let files = fs::read_dir(&directory).unwrap().count();
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!((kept.as_slice(), summary.as_slice(), files), (&b"kept"[..], &b"{}"[..], 2));
    }
}
