//! What the view lets this program do beside it: extract packets, show them, record.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::SyncSender;
use std::thread;

use super::model::Event;
use crate::watch::packets;
use crate::watch::recording::{Outcome, Recording};
use crate::watch::source::Told;
use crate::watch::source::child::listen;

/// What jobs are about.
#[derive(Clone, Debug)]
pub(crate) struct Jobs {
    /// This program.
    pub(crate) program: PathBuf,
    /// The captures that are read.
    pub(crate) files: Vec<PathBuf>,
    /// The arguments of an extraction from them, but for the connection and where to write.
    pub(crate) extraction: Vec<OsString>,
    /// The arguments of a recording of what is captured, but for where to write.
    pub(crate) recording: Vec<OsString>,
    pub(crate) events: SyncSender<Event>,
}

impl Jobs {
    fn extract(&self, uid: &str, output: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.extraction).args(["--uid", uid, "-w"]).arg(output).arg("--");
        command.args(&self.files).stdin(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Writes the packets of a connection to a file.
    pub(crate) fn extract_to(&self, uid: &str, file: &str) {
        let path = PathBuf::from(file);
        if path.exists() {
            return self.say(format!("{file} exists: name another file"));
        }
        let mut command = self.extract(uid, &path);
        let (events, file) = (self.events.clone(), file.to_owned());
        thread::spawn(move || {
            let said = match command.stdout(Stdio::null()).output() {
                Ok(done) if done.status.success() => format!("extracted to {file}"),
                Ok(done) => last_line(&done.stderr),
                Err(error) => format!("cannot extract: {error}"),
            };
            // Where nobody listens any more, nobody is to be told.
            let _ = events.send(Event::Told(Told::Said(said)));
        });
    }

    /// Reads the packets of a connection.
    pub(crate) fn show_packets(&self, uid: &str) {
        let mut command = self.extract(uid, Path::new("-"));
        let (events, title) = (self.events.clone(), format!("packets of {uid}"));
        thread::spawn(move || {
            let event = match shown(&mut command) {
                Ok(lines) => Event::Text(title, lines),
                Err(wrong) => Event::Told(Told::Said(wrong)),
            };
            let _ = events.send(event);
        });
    }

    /// Begins to record.
    pub(crate) fn record(&self, file: &str) -> Option<Recording> {
        let events = self.events.clone();
        let ended = move |how: &Outcome| {
            let said = how.clone().unwrap_or_else(|wrong| wrong);
            let _ = events.send(Event::RecordingEnded(said));
        };
        let begun = Recording::begin(&self.program, &self.recording, Path::new(file), ended);
        begun.map_err(|wrong| self.end_recording(wrong)).ok()
    }

    fn say(&self, text: String) {
        let events = self.events.clone();
        // The queue may be full, and the one who asks is the one who empties it.
        thread::spawn(move || events.send(Event::Told(Told::Said(text))));
    }

    fn end_recording(&self, text: String) {
        let events = self.events.clone();
        thread::spawn(move || events.send(Event::RecordingEnded(text)));
    }
}

fn shown(command: &mut Command) -> Result<Vec<String>, String> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
    let said = child.stderr.take().map(listen);
    let lines = child.stdout.take().map_or_else(|| Ok(Vec::new()), packets::lines);
    // Its output is closed now, so that it ends whatever is left.
    let status = child.wait().map_err(|error| error.to_string())?;
    let said = said.and_then(|said| said.join().ok()).unwrap_or_default();
    match lines {
        Ok(lines) if !lines.is_empty() => Ok(lines),
        Ok(_) if said.is_empty() => Err(format!("no packet was found ({status})")),
        Err(wrong) if said.is_empty() => Err(wrong),
        _ => Err(said.join("; ")),
    }
}

fn last_line(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    said.lines().last().unwrap_or("the packets could not be extracted").to_owned()
}
