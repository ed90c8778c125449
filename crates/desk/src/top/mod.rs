//! `netsniff top`: the live view in the terminal. It reads rows of logs, and sees no packet of what it watches.
//!
//! | module | concern |
//! |---|---|
//! | `args` | the arguments |
//! | `model`, `keys` | what is shown, and what keys make of it |
//! | `screen` | drawing |
//! | `terminal` | keys in, screens out |
//! | `jobs` | what is done beside it: extract, record, packets as text |

mod args;
mod jobs;
mod keys;
mod model;

mod screen;
mod terminal;
#[cfg(test)]
mod tests;

use std::io::{IsTerminal as _, stdout};
use std::sync::mpsc::{Receiver, sync_channel};

use anyhow::Context as _;
use netsniff_console::terminal::signs::Signs;
use netsniff_console::{DONE, FAILED, UsageError, print, say};

use self::args::Input;
pub use self::args::TopArgs;
use self::jobs::Jobs;
use self::model::{Event, Model};
use crate::watch::source::child::Analysis;
use crate::watch::source::{Ending, Listener, folder};

/// Events that may wait. Where the terminal is slow, whoever reads rows waits, and the analysis behind its pipe.
const QUEUE: usize = 16;

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], and what keeps it from showing anything.
pub fn run(args: &TopArgs) -> anyhow::Result<u8> {
    let input = args.input()?;
    let mut model = args.model(&input)?;
    model.signs = Signs::of(&stdout());
    if !args.once && !stdout().is_terminal() {
        let said = "standard output is no terminal: --once prints one screen as text";
        return Err(UsageError(said.to_owned()).into());
    }
    let (sender, events) = sync_channel(QUEUE);
    let program = std::env::current_exe().context("cannot find this program")?;
    let events_of_rows = sender.clone();
    let listener: Listener = Box::new(move |told| events_of_rows.send(Event::Told(told)).ok());
    let _analysis = match &input {
        Input::Folder(directory) => {
            folder::start(directory, !args.once, listener)?;
            None
        }
        Input::Analysis => {
            let reads_stdin = args.inputs.iter().any(|path| path.as_os_str() == "-");
            let words = args.analysis();
            Some(Analysis::start(&program, &words, reads_stdin, listener)?)
        }
    };
    #[cfg(target_os = "linux")]
    if args.traffic.is_live() {
        let sockets = sender.clone();
        let tell = move |table| sockets.send(Event::Sockets(table)).ok();
        crate::watch::source::processes::watch(tell).context("cannot look for processes")?;
    }
    if args.once {
        drop(sender);
        return once(args, &mut model, &events);
    }
    let jobs = Jobs {
        program,
        files: args.inputs.clone(),
        extraction: args.traffic.extraction("-q"),
        recording: args.traffic.recording(),
        events: sender,
    };
    terminal::show(&mut model, &events, &jobs)?;
    Ok(DONE)
}

/// Prints one screen, once all is read. What kept some of it from being read is the exit code.
fn once(args: &TopArgs, model: &mut Model, events: &Receiver<Event>) -> anyhow::Result<u8> {
    // Those who look for processes never end.
    for event in events {
        model.update(event);
        if model.ended.is_some() {
            break;
        }
    }
    let (how, code) = match model.ended.clone() {
        Some(Ending { how, code }) => (how, code),
        None => ("nothing was read".to_owned(), FAILED),
    };
    if code != DONE || model.data().rows == 0 {
        say(&how);
    }
    if model.data().rows == 0 {
        return Ok(if code == DONE { FAILED } else { code });
    }
    let (columns, rows) = args.size;
    print(stdout().lock(), &screen::as_text(model, columns, rows))?;
    Ok(code)
}
