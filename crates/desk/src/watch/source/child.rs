//! An analysis, which is a process of its own: what the screen does costs it no packet, and it confines itself as ever.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::Context as _;
use netsniff_console::FAILED;

use super::{Ending, Listener, Told, next_rows};
use crate::logs::Reader;

/// Lines of what it says that are kept.
const SAID: usize = 3;

/// A running analysis, which ends with this value.
#[derive(Debug)]
pub(crate) struct Analysis(Arc<Mutex<Child>>);

impl Analysis {
    /// Starts it; its rows are told.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub(crate) fn start(
        program: &Path,
        words: &[OsString],
        reads_stdin: bool,
        listener: Listener,
    ) -> anyhow::Result<Self> {
        let stdin = if reads_stdin { Stdio::inherit() } else { Stdio::null() };
        let mut command = Command::new(program);
        command.args(words).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start the analysis")?;
        let output = child.stdout.take().context("the analysis has no output")?;
        let said = child.stderr.take().map(listen);
        let child = Arc::new(Mutex::new(child));
        let waits = Arc::clone(&child);
        let read = move || {
            if rows(output, &listener) {
                // Where nobody listens any more, nobody asks how it ended.
                let _ = listener(Told::Ended(ending(&waits, said)));
            }
        };
        thread::Builder::new().name("rows".to_owned()).spawn(read)?;
        Ok(Self(child))
    }
}

impl Drop for Analysis {
    fn drop(&mut self) {
        let mut child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // It has nothing to save: what it writes comes here.
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Hands rows over until there are no more. Returns whether somebody still wants to know how it ended.
fn rows(output: impl Read + Send + 'static, listener: &Listener) -> bool {
    let mut reader = Reader::of(output);
    loop {
        let mut rows = Vec::new();
        let goes_on = next_rows(&mut reader, None, &mut rows);
        if !rows.is_empty() && listener(Told::Rows(rows)).is_none() {
            return false;
        }
        if !goes_on {
            return true;
        }
    }
}

/// Reads what a process says, of which the last lines are kept.
pub(crate) fn listen(said: impl Read + Send + 'static) -> JoinHandle<Vec<String>> {
    thread::spawn(move || {
        let mut kept = VecDeque::new();
        let mut reader = BufReader::new(said);
        loop {
            let mut line = Vec::new();
            match reader.by_ref().take(4096).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return kept.into(),
                Ok(_) => {
                    let line = String::from_utf8_lossy(&line);
                    kept.push_back(line.trim_start_matches("netsniff: ").trim_end().to_owned());
                }
            }
            if kept.len() > SAID {
                kept.pop_front();
            }
        }
    })
}

/// How it ended.
fn ending(child: &Mutex<Child>, said: Option<JoinHandle<Vec<String>>>) -> Ending {
    let status = child.lock().unwrap_or_else(PoisonError::into_inner).wait();
    let said = said.and_then(|said| said.join().ok()).unwrap_or_default();
    let code = status.as_ref().ok().and_then(|status| u8::try_from(status.code()?).ok());
    let how = match status {
        Ok(status) if status.success() => "read to its end".to_owned(),
        Ok(status) if said.is_empty() => format!("the analysis ended: {status}"),
        Ok(_) => said.join("; "),
        Err(error) => format!("the analysis ended: {error}"),
    };
    Ending { how, code: code.unwrap_or(FAILED) }
}
