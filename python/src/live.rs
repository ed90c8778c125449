//! Analyses of live traffic, by the command as a process: it gives up its rights once it captures, which would be
//! those of Python in this one, and packets do not wait for Python.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::SyncSender;
use std::thread::{self, JoinHandle};

use arrow_ipc::reader::StreamReader;
use netsniff_console::USAGE;
use netsniff_output::LogSet;
use pyo3::prelude::*;
use rustix::process::{Pid, Signal, kill_process};

use crate::batches::LogBatch;
use crate::failure::Failure;
use crate::stream::{Books, Shared, Stream};

/// Sentences of the process that are kept, and bytes of each.
const MOST_SAID: usize = 100;
const LONGEST: u64 = 4096;

/// Starts `program`, which streams one log in Arrow's format with these words.
#[pyfunction]
pub(crate) fn capture(
    py: Python<'_>,
    program: OsString,
    words: Vec<OsString>,
    log: &str,
) -> PyResult<Stream> {
    let unknown = || Failure::Usage(format!("there is no log {log:?}"));
    let started = LogSet::named(log).ok_or_else(unknown).and_then(|logs| {
        let work = move |taker, shared: &Shared| run(&program, words, logs, &taker, shared);
        Stream::start(logs, work)
    });
    started.map_err(|failure| failure.raised(py))
}

fn run(
    program: &OsString,
    words: Vec<OsString>,
    logs: LogSet,
    taker: &SyncSender<LogBatch>,
    shared: &Shared,
) -> Result<Books, Failure> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let cannot = |error| Failure::Other(format!("cannot run {}: {error}", program.display()));
    let mut child = command.spawn().map_err(cannot)?;
    let says = child.stderr.take().map(listen);
    shared.on_stop(ending(&child));
    let read = child.stdout.take().map_or(Ok(()), |rows| hand_on(rows, logs, taker));
    // Once it is waited for, its number may be that of another process.
    shared.forget_stop();
    if read.is_err() {
        // Whoever has enough lets it end in good order.
        ending(&child)();
    }
    let status = child.wait().map_err(cannot)?;
    let said = says.and_then(|says| says.join().ok()).unwrap_or_default();
    match status.code() {
        Some(0) => {}
        Some(code) if code == i32::from(USAGE) => return Err(Failure::Usage(said.join("\n"))),
        _ if said.is_empty() => return Err(Failure::Other(format!("it ended with {status}"))),
        _ => return Err(Failure::Other(said.join("\n"))),
    }
    read.map(|()| Books { summary: None, warnings: said })
}

/// What lets a process end in good order, while it is there.
fn ending(child: &Child) -> impl FnMut() + Send + 'static {
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    move || {
        // It may have ended by itself.
        let _ = process.map(|process| kill_process(process, Signal::TERM));
    }
}

/// Hands on batches as they come.
fn hand_on(rows: impl Read, logs: LogSet, taker: &SyncSender<LogBatch>) -> Result<(), Failure> {
    let Some(log) = logs.places().next() else { return Ok(()) };
    let broken = |error| Failure::Other(format!("cannot read rows: {error}"));
    for batch in StreamReader::try_new_buffered(rows, None).map_err(broken)? {
        let batch = batch.map_err(broken)?;
        taker.send(LogBatch { log, batch }).map_err(|_| Failure::Closed)?;
    }
    Ok(())
}

/// Keeps the last sentences of a process.
fn listen(says: impl Read + Send + 'static) -> JoinHandle<Vec<String>> {
    thread::spawn(move || {
        let (mut said, mut says) = (Vec::new(), BufReader::new(says));
        loop {
            let mut line = Vec::new();
            let read = says.by_ref().take(LONGEST).read_until(b'\n', &mut line);
            if !matches!(read, Ok(1..)) {
                return said;
            }
            if said.len() == MOST_SAID {
                said.remove(0);
            }
            let line = String::from_utf8_lossy(&line);
            said.push(line.trim_end().trim_start_matches("netsniff: ").to_owned());
        }
    })
}
